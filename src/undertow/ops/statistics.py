"""Statistics: variance, deviation, medians, quantiles, modes, histograms."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..core.dispatch import apply, cast
from ..core.op import Op
from ..core.register import function
from ..core.tensor import Tensor
from ..errors import ArgumentError
from ..kernel.expr import call, trace
from ..shapes import wrap_dims
from .comparison import where
from .reduction import count_of, floating, is_half, mean, spread

# Variance --------------------------------------------------------------------------------------
_over = trace(lambda a, b: a / b, 2)
_squared_difference = trace(lambda a, b: (a - b) * (a - b), 2)
_root_of_quotient = trace(lambda a, b: call("sqrt", a / b), 2)


def _spread_forward(k: Any, x: Any, dims: Any, keepdim: bool, freedom: float, last: Any) -> Any:
    """Squared deviations from the mean, summed, over the degrees of freedom: in two passes."""
    n = count_of(x.shape, dims)
    centre = k.map(_over, [k.reduce("sum", x, dims, True), float(n)], x.dtype)
    squares = k.map(_squared_difference, [x, centre], x.dtype)
    return k.map(last, [k.reduce("sum", squares, dims, keepdim), freedom], x.dtype)


_var = Op(
    "var",
    lambda k, x, dims, keepdim, freedom: _spread_forward(k, x, dims, keepdim, freedom, _over),
    inputs="x",
    params="dims keepdim freedom",
)
_std = Op(
    "std",
    lambda k, x, dims, keepdim, freedom: _spread_forward(
        k, x, dims, keepdim, freedom, _root_of_quotient
    ),
    inputs="x",
    params="dims keepdim freedom",
)


def _deviation(x: Tensor, dims: tuple[int, ...], freedom: float) -> Tensor:
    """Half the derivative of the variance: the distance from the mean, scaled."""
    return (x - mean(x, dims, True)) / freedom


@_var.vjp("x")
def _var_rule(g: Tensor, x: Tensor, dims: tuple[int, ...], freedom: float) -> Tensor:
    return spread(g * 2, x.shape, dims) * _deviation(x, dims, freedom)


@_std.vjp("x")
def _std_rule(g: Tensor, x: Tensor, out: Tensor, dims: tuple[int, ...], freedom: float) -> Tensor:
    # Where all elements are equal the deviation has a corner; its gradient there is zero.
    flat = out == 0
    slope = where(flat, 0, g) / where(flat, 1, out)
    return spread(slope, x.shape, dims) * _deviation(x, dims, freedom)


def _moment(
    op: Op, input: Tensor, dim: Any, unbiased: Any, keepdim: bool, correction: Any
) -> Tensor:
    name = op.name
    if isinstance(dim, bool):  # var(input, unbiased)
        dim, unbiased = None, dim
    if unbiased is not None:
        if correction is not None:
            raise ArgumentError(
                f"[{name}] takes unbiased or correction, not both: got unbiased={unbiased} and "
                f"correction={correction}"
            )
        correction = int(unbiased)
    input = floating(name, input)
    if is_half(input):
        wide = _moment(op, cast(input, dtypes.float32), dim, None, keepdim, correction)
        return cast(wide, input.dtype)
    shape = input._array.shape
    dims = wrap_dims(name, dim, len(shape))
    freedom = count_of(shape, dims) - (1 if correction is None else correction)
    return apply(op, (input,), (dims, keepdim, float(freedom) if freedom > 0 else 0.0))  # type: ignore[no-any-return]


@function()
def var(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: float | None = None,
) -> Tensor:  # fmt: skip
    """The variance over all or some dimensions: squared deviations over `n - correction`.

    correction is 1 by default (the unbiased estimate); `unbiased=False` means 0.

    >>> import undertow as ut
    >>> ut.tensor([1.0, 2.0, 4.0]).var()
    tensor(2.3333)
    """
    return _moment(_var, input, dim, unbiased, keepdim, correction)


@function()
def std(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: float | None = None,
) -> Tensor:  # fmt: skip
    """The standard deviation over all or some dimensions: the root of `var`.

    >>> import undertow as ut
    >>> ut.tensor([1.0, 2.0, 4.0]).std()
    tensor(1.5275)
    """
    return _moment(_std, input, dim, unbiased, keepdim, correction)


@function(method=False)
def var_mean(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The variance and the mean.

    >>> import undertow as ut
    >>> ut.var_mean(ut.tensor([1.0, 2.0, 4.0, 5.0]))
    (tensor(3.3333), tensor(3.))
    """
    spread_out = var(input, dim, unbiased, keepdim, correction=correction)
    return spread_out, mean(input, None if isinstance(dim, bool) else dim, keepdim)


@function(method=False)
def std_mean(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The standard deviation and the mean.

    >>> import undertow as ut
    >>> ut.std_mean(ut.tensor([1.0, 2.0, 4.0, 5.0]))
    (tensor(1.8257), tensor(3.))
    """
    spread_out = std(input, dim, unbiased, keepdim, correction=correction)
    return spread_out, mean(input, None if isinstance(dim, bool) else dim, keepdim)
