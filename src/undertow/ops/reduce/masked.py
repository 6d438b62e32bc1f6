"""Reductions and normalisations over the elements that a mask lets through: `ut.masked`.

A masked element counts as what changes nothing: zero in a sum, minus infinity in a maximum. Where
all are masked, that is the result, and NaN of a mean, a median or a softmax.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import dtypes
from ...core.dispatch import cast
from ...core.register import FUNCTIONS, function
from ...core.tensor import Tensor
from ...dtypes import DTypeLike
from ...errors import ShapeError
from ...shapes import Ints, broadcast_shapes, wrap_dims
from ..elementwise.comparison import where


def _dims(input: Tensor, dim: Any) -> tuple[int, ...]:
    dims = (dim,) if isinstance(dim, int) else dim
    if dims is None or not input.ndim:
        return wrap_dims("masked", dims, input.ndim)
    return tuple(dims)


def _widest(dtype: Any, sign: int) -> float:
    """The number of a dtype below all others, or above."""
    if dtype.category > 1:
        return sign * math.inf
    return dtypes.iinfo(dtype).max if sign > 0 else dtypes.iinfo(dtype).min


def _kept(op: str, input: Tensor, mask: Tensor | None, dtype: Any) -> tuple[Tensor, Tensor | None]:
    """The input in its dtype, and the mask in its shape."""
    x = input if dtype is None else cast(input, dtypes.as_dtype(dtype))
    if mask is None:
        return x, None
    if mask.ndim > x.ndim or broadcast_shapes(op, mask.shape, x.shape) != x.shape:
        raise ShapeError(
            f"[{op}] a mask of shape {mask.shape} does not broadcast to {tuple(x.shape)}"
        )
    return x, mask.to(dtypes.bool).expand(x.shape)


def _filled(x: Tensor, mask: Tensor | None, value: float) -> Tensor:
    return x if mask is None else where(mask, x, value)


def _over(x: Tensor, dims: tuple[int, ...], keepdim: bool, reduce: Callable[..., Tensor]) -> Tensor:
    """A reduction that takes one dimension, over several."""
    for d in dims:
        x = reduce(x, d, keepdim=True)
    return x if keepdim or not dims else x.squeeze(dims)


def _count(x: Tensor, mask: Tensor | None, dims: tuple[int, ...], keepdim: bool) -> Any:
    if mask is None:
        return math.prod(x.shape[d] for d in dims)
    return mask.sum(dims, keepdim=keepdim) if dims else mask.to(dtypes.int64)


def _sum(x: Tensor, mask: Tensor | None, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    x = _filled(x, mask, 0)
    if not dims:
        return x.sum() if not x.ndim else x
    return x.sum(dims, keepdim=keepdim)


def _prod(x: Tensor, mask: Tensor | None, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    x = _filled(x, mask, 1)
    return _over(x, dims, keepdim, FUNCTIONS["prod"]) if x.ndim else FUNCTIONS["prod"](x)


def _mean(x: Tensor, mask: Tensor | None, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    x = x if x.dtype.category > 1 else cast(x, dtypes.get_default_dtype())
    return _sum(x, mask, dims, keepdim) / _count(x, mask, dims, keepdim)


def _amax(x: Tensor, mask: Tensor | None, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    return _filled(x, mask, _widest(x.dtype, -1)).amax(dims, keepdim=keepdim)


def _amin(x: Tensor, mask: Tensor | None, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    return _filled(x, mask, _widest(x.dtype, 1)).amin(dims, keepdim=keepdim)


def _logsumexp(x: Tensor, mask: Tensor | None, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    return _filled(x, mask, -math.inf).logsumexp(dims, keepdim=keepdim)


def _publish(name: str, doc: str, call: str, printed: str, fn: Callable[..., Tensor]) -> None:
    fn.__doc__ = f"""{doc}

    >>> import undertow as ut
    >>> x, mask = ut.tensor([1.0, 2.0, 4.0]), ut.tensor([True, False, True])
    >>> ut.masked.{name}({call})
    {printed}
    """
    function(space="masked", name=name)(fn)


def _reduction(name: str, what: str, printed: str, reduce: Callable[..., Tensor]) -> None:
    def run(
        input: Tensor,
        dim: Ints | None = None,
        *,
        keepdim: bool = False,
        dtype: DTypeLike | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        x, kept = _kept(f"masked.{name}", input, mask, dtype)
        return reduce(x, kept, _dims(x, dim), keepdim)

    _publish(name, f"{what} of the elements that are not masked.", "x, mask=mask", printed, run)


for _name, _what, _printed, _reduce in (
    ("sum", "The sum", "tensor(5.)", _sum),
    ("prod", "The product", "tensor(4.)", _prod),
    ("mean", "The mean", "tensor(2.5000)", _mean),
    ("amax", "The largest", "tensor(4.)", _amax),
    ("amin", "The smallest", "tensor(1.)", _amin),
    ("logsumexp", "The logarithm of the sum of exp", "tensor(4.0486)", _logsumexp),
):
    _reduction(_name, _what, _printed, _reduce)


def _position(name: str, what: str, printed: str, sign: int) -> None:
    def run(
        input: Tensor,
        dim: int | None = None,
        *,
        keepdim: bool = False,
        dtype: DTypeLike | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        x, kept = _kept(f"masked.{name}", input, mask, dtype)
        found = FUNCTIONS[name](_filled(x, kept, _widest(x.dtype, sign)), dim, keepdim=keepdim)
        return cast(found, x.dtype)  # as in torch: not an integer

    _publish(name, f"Where the {what} element that is not masked is.", "x, mask=mask", printed, run)


_position("argmax", "largest", "tensor(2.)", -1)
_position("argmin", "smallest", "tensor(0.)", 1)


def _along(name: str, doc: str, printed: str, fill: float, compute: str) -> None:
    def run(
        input: Tensor, dim: int, *, dtype: DTypeLike | None = None, mask: Tensor | None = None
    ) -> Tensor:
        x, kept = _kept(f"masked.{name}", input, mask, dtype)
        x = _filled(x, kept, fill)
        found: Tensor = FUNCTIONS[compute](-x if name == "softmin" else x, dim)
        return found

    _publish(name, doc, "x, 0, mask=mask", printed, run)


for _name, _doc, _printed, _fill, _compute in (
    ("cumsum", "Running sums over what is not masked.", "tensor([1., 1., 5.])", 0, "cumsum"),
    ("cumprod", "Running products over what is not masked.", "tensor([1., 1., 4.])", 1, "cumprod"),
    (
        "softmax",
        "`softmax` over what is not masked; zero elsewhere.",
        "tensor([0.0474, 0.0000, 0.9526])",
        -math.inf,
        "softmax",
    ),
    (
        "log_softmax",
        "`log_softmax` over what is not masked.",
        "tensor([-3.0486,    -inf, -0.0486])",
        -math.inf,
        "log_softmax",
    ),
    (
        "softmin",
        "`softmin` over what is not masked; zero elsewhere.",
        "tensor([0.9526, 0.0000, 0.0474])",
        math.inf,
        "softmax",
    ),
):
    _along(_name, _doc, _printed, _fill, _compute)


@function(space="masked")
def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The median of the elements that are not masked, the lower one of two.

    >>> import undertow as ut
    >>> ut.masked.median(ut.tensor([1.0, 9.0, 4.0]), 0, mask=ut.tensor([True, False, True]))
    tensor(1.)
    """
    x, kept = _kept("masked.median", input, mask, dtype)
    if kept is None:
        return x.median(dim, keepdim=keepdim).values
    found: Tensor = FUNCTIONS["nanmedian"](_filled(x, kept, math.nan), dim, keepdim=keepdim).values
    return found


@function(space="masked")
def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The norm of order `ord` of the vectors of elements that are not masked.

    >>> import undertow as ut
    >>> ut.masked.norm(ut.tensor([3.0, 9.0, 4.0]), mask=ut.tensor([True, False, True]))
    tensor(5.)
    """
    x, kept = _kept("masked.norm", input, mask, dtype)
    order = 2.0 if ord is None else ord
    x = _filled(x, kept, 0.0 if order >= 0 else math.inf)
    return x.norm(order, _dims(x, dim), keepdim=keepdim)


@function(space="masked")
def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """`input` divided by the norm of what is not masked along `dim`; zero where it is masked.

    >>> import undertow as ut
    >>> ut.masked.normalize(ut.tensor([3.0, 9.0, 4.0]), 2, 0, mask=ut.tensor([True, False, True]))
    tensor([0.6000, 0.0000, 0.8000])
    """
    x, kept = _kept("masked.normalize", input, mask, dtype)
    length = norm(x, ord, dim, keepdim=True, mask=mask).clamp(min=eps)
    return _filled(x, kept, 0.0) / length


def _spread(
    op: str, input: Tensor, dim: Any, unbiased: Any, correction: Any, keepdim: bool, rest: Any
) -> Tensor:
    dtype, mask = rest
    x, kept = _kept(op, input, mask, dtype)
    x = x if x.dtype.category > 1 else cast(x, dtypes.get_default_dtype())
    dims = _dims(x, dim)
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    centred = x - _mean(x, kept, dims, True)
    # A complex variance is that of the distances; it stays complex, as torch's does.
    total = _sum(centred * centred.conj(), kept, dims, keepdim)
    count = _count(x, kept, dims, keepdim) - correction
    return total / (count.clamp(min=0) if isinstance(count, Tensor) else max(count, 0))


@function(space="masked")
def var(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance of the elements that are not masked.

    >>> import undertow as ut
    >>> ut.masked.var(ut.tensor([1.0, 9.0, 3.0]), mask=ut.tensor([True, False, True]))
    tensor(2.)
    """
    return _spread("masked.var", input, dim, unbiased, correction, keepdim, (dtype, mask))


@function(space="masked")
def std(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The standard deviation of the elements that are not masked.

    >>> import undertow as ut
    >>> ut.masked.std(ut.tensor([1.0, 9.0, 3.0]), mask=ut.tensor([True, False, True]))
    tensor(1.4142)
    """
    return _spread("masked.std", input, dim, unbiased, correction, keepdim, (dtype, mask)).sqrt()


@function(space="masked")
def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: DTypeLike | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """`logaddexp`, where a masked element adds nothing.

    >>> import undertow as ut
    >>> ut.masked.logaddexp(ut.tensor([0.0]), ut.tensor([5.0]), other_mask=ut.tensor([False]))
    tensor([0.])
    """
    x, kept = _kept("masked.logaddexp", input, input_mask, dtype)
    y, also = _kept("masked.logaddexp", other, other_mask, dtype)
    return _filled(x, kept, -math.inf).logaddexp(_filled(y, also, -math.inf))
