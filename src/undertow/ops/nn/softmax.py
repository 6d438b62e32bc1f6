"""Softmax and its relatives: exponentials divided by their sum along one dimension."""

from __future__ import annotations

import warnings
from typing import Any

from ... import dtypes
from ...backends.base import Array, Dims, Forms
from ...core.dispatch import apply, apply_alone, cast
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor
from ...dtypes import DTypeLike
from ...errors import ArgumentError, DTypeError
from ...kernel.expr import Expr, call, where
from ...kernel.row_program import Tracer, rows
from ...shapes import wrap_dims
from ..create.creation import empty_like
from ..reduce.reduction import sum


# Note [softmax rules]
# The Jacobian of softmax, diag(p) - p pᵀ, and that of log_softmax, I - 1 pᵀ, act on a cotangent by
# one reduction and one map. Those products are ops of their own, so that a backward makes few
# passes over memory; each is linear in the cotangent and has its own rules for higher orders.
def _softmax_row(p: Tracer, x: Expr) -> None:
    peak = p.peak(x)
    e = p.keep(call("exp", x - peak))
    p.out(e * p.row(1.0 / p.sum(e)))


def _masked_softmax_row(p: Tracer, x: Expr) -> None:
    peak = p.peak(x)
    finite = p.row(where(peak == float("-inf"), 0.0, peak))
    e = p.keep(call("exp", x - finite))
    total = p.sum(e)
    p.out(e * p.row(where(total == 0.0, 1.0, 1.0 / total)))


def _log_softmax_row(p: Tracer, x: Expr) -> None:
    peak = p.peak(x)
    p.out(x - peak - p.row(call("log", p.sum(call("exp", x - peak)))))


def _softmax_product_row(p: Tracer, v: Expr, weights: Expr) -> None:
    p.out(weights * (v - p.sum(v * weights)))


def _log_softmax_product_row(p: Tracer, v: Expr, log_p: Expr) -> None:
    p.out(v - call("exp", log_p) * p.sum(v))


_softmax_rows = rows(_softmax_row, 1)
_masked_softmax_rows = rows(_masked_softmax_row, 1)
_log_softmax_rows = rows(_log_softmax_row, 1)
_softmax_product_rows = rows(_softmax_product_row, 2)
_log_softmax_product_rows = rows(_log_softmax_product_row, 2)


def _forward(program: Any) -> Any:
    """An op's forward that runs a row program with one result."""

    def forward(k: Forms, x: Array, *more: Any) -> Any:
        *others, dims = more
        if not x.size:
            return k.copy(x)
        return k.rows(program, (x, *others), dims, (x.dtype,))[0]

    return forward


def _softmax_forward(k: Forms, x: Array, dims: Dims, masked: bool) -> Any:
    if not x.size:
        return k.copy(x)
    program = _masked_softmax_rows if masked else _softmax_rows
    return k.rows(program, (x,), dims, (x.dtype,))[0]


def softmax_vjp(g: Tensor, p: Tensor, dims: tuple[int, ...]) -> Tensor:
    """The cotangent of the scores whose softmax is `p`; see Note [softmax rules]."""
    return apply(_softmax_product, (g, p), (dims,))


def _total(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    return sum(x, dims, True) if dims else x


_softmax_product = Op(
    "softmax_product",
    _forward(_softmax_product_rows),
    inputs="v p",
    params="dims",
    vjp={
        "v": lambda g, p, dims: softmax_vjp(g, p, dims),
        "p": lambda g, v, p, dims: g * (v - _total(v * p, dims)) - v * _total(g * p, dims),
    },
)
_log_softmax_product = Op(
    "log_softmax_product",
    _forward(_log_softmax_product_rows),
    inputs="v log_p",
    params="dims",
    vjp={
        "v": lambda g, log_p, dims: g - _total(g * log_p.exp(), dims),
        "log_p": lambda g, v, log_p, dims: -(g * log_p.exp() * _total(v, dims)),
    },
)
_softmax = Op(
    "softmax",
    _softmax_forward,
    symmetric=True,
    inputs="x",
    params="dims masked",
    vjp={"x": lambda g, out, dims: softmax_vjp(g, out, dims)},
    bare={"x": _softmax_product.forward},
)
_log_softmax = Op(
    "log_softmax",
    _forward(_log_softmax_rows),
    inputs="x",
    params="dims",
    vjp={"x": lambda g, out, dims: apply(_log_softmax_product, (g, out), (dims,))},
    bare={"x": _log_softmax_product.forward},
)


def _prepared(op: str, input: Tensor, dim: Any, dtype: Any) -> tuple[Tensor, tuple[int, ...]]:
    if dtype is not None:
        input = cast(input, dtypes.as_dtype(dtype))
    if input._array.dtype.kind in "biuc":
        fix = "take abs() or .real first" if input.is_complex() else "pass dtype=ut.float32"
        raise DTypeError(f"[{op}] expects a floating tensor, got {input.dtype}; {fix}")
    if dim is None:
        dim = 0 if input.ndim in (0, 1, 3) else 1
        warnings.warn(
            f"[{op}] took dimension {dim}, as old versions of torch did; pass dim={dim}",
            stacklevel=4,
        )
    return input, wrap_dims(op, dim, len(input._array.shape))


@function(functional=True)
def softmax(input: Tensor, dim: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """`exp(input)` divided by its sum along `dim`; never overflows.

    >>> import undertow as ut
    >>> ut.softmax(ut.tensor([0.0, 0.0, float("-inf")]), dim=0)
    tensor([0.5000, 0.5000, 0.0000])
    """
    input, dims = _prepared("softmax", input, dim, dtype)
    return apply_alone(_softmax, input, (dims, False))


def masked_softmax(input: Tensor, dim: int) -> Tensor:
    """Softmax in which a row of nothing but -inf gives zeros instead of NaN."""
    input, dims = _prepared("softmax", input, dim, None)
    return apply(_softmax, (input,), (dims, True))


@function(functional=True)
def log_softmax(input: Tensor, dim: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """`log(softmax(input, dim))`, accurate where the softmax itself would round to zero.

    >>> import undertow as ut
    >>> ut.log_softmax(ut.tensor([0.0, 1000.0]), dim=0)
    tensor([-1000.,     0.])
    """
    input, dims = _prepared("log_softmax", input, dim, dtype)
    return apply_alone(_log_softmax, input, (dims,))


@function(top=False, method=False, functional=True)
def softmin(input: Tensor, dim: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """`softmax(-input)`: the smallest element weighs most.

    >>> import undertow as ut
    >>> ut.nn.functional.softmin(ut.tensor([5.0, 5.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    input, dims = _prepared("softmin", input, dim, dtype)
    return apply(_softmax, (-input,), (dims, False))


@function(top=False, method=False, functional=True)
def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A random sample from the relaxed categorical distribution of `logits` along `dim`.

    With `hard` the sample is one-hot, and its gradient is that of the soft sample (straight
    through). `eps` has no effect, as in torch.

    >>> import undertow as ut
    >>> ut.nn.functional.gumbel_softmax(ut.zeros(3, 4), hard=True).sum(-1)
    tensor([1., 1., 1.])
    """
    if not tau > 0:
        raise ArgumentError(f"[gumbel_softmax] tau must be greater than 0, got {tau}")
    logits, dims = _prepared("gumbel_softmax", logits, dim, None)
    # A Gumbel number is minus the logarithm of an exponential one.
    noise = empty_like(logits).exponential_().log()
    soft: Tensor = apply(_softmax, ((logits - noise) / tau,), (dims, False))
    if not hard:
        return soft
    value = soft.detach()
    chosen = value.argmax(dim, keepdim=True) if dims else value.argmax()
    one_hot: Tensor = value.new_zeros(value.shape).scatter(dim, chosen, 1.0)
    return one_hot - value + soft
