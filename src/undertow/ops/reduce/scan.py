"""Running totals along a dimension, their differences, and integrals by the trapezoid rule."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ... import dtypes
from ...backends.base import Array, Forms
from ...core.dispatch import apply, cast
from ...core.op import Op
from ...core.printing import in_lines
from ...core.register import alias, function
from ...core.tensor import Tensor
from ...dtypes import DTypeLike, Number
from ...errors import ArgumentError, DTypeError, ShapeError
from ...shapes import Shape, as_int, reduced_shape, wrap_dim
from ..create.creation import arange
from ..elementwise.comparison import where
from ..shape.joining import cat
from ..shape.movement import along, narrowed, own_dim, reshaped


class Selection(NamedTuple):
    """Elements picked along a dimension: what `max`, `sort`, `topk`, `cummax` … return."""

    values: Tensor
    indices: Tensor

    def __repr__(self) -> str:
        return in_lines(self)


def place(g: Tensor, shape: Shape, dim: int, index: Tensor) -> Tensor:
    """The rule of a selection: zeros of `shape` with `g` added where `index` points along `dim`."""
    if g.ndim < len(shape):
        kept = reduced_shape(shape, (dim,), True)
        g, index = reshaped(g, kept), reshaped(index, kept)
    return g.new_zeros(shape).scatter_add(dim, index, g)


# Note [recurrence]
# h[i] = a[i] * h[i-1] + b[i] is closed under differentiation: the cotangent of b is the same
# recurrence run from the other end, and that of a is its product with the h before. It needs no
# division, so whatever is derived from it (cumprod, prod, logcumsumexp) is right to any order
# also where elements are zero.


def _shift_forward(k: Forms, x: Array, dim: int, step: int, fill: Any) -> Any:
    out = k.full(x.shape, fill, x.dtype)
    count = x.shape[dim] - abs(step)
    if count > 0:
        target, source = (step, 0) if step > 0 else (0, -step)
        k.assign(
            k.slice(out, along(dim, slice(target, target + count))),
            k.slice(x, along(dim, slice(source, source + count))),
        )
    return out


_shift = Op(
    "shift",
    _shift_forward,
    affine=True,
    inputs="x",
    params="dim step fill",
    vjp={"x": lambda g, dim, step: shift(g, dim, -step)},
)
_recurrence = Op(
    "recurrence",
    lambda k, a, b, dim, reverse: k.recurrence(a, b, dim, reverse),
    inputs="a b",
    params="dim reverse",
)


def shift(x: Tensor, dim: int, step: int, fill: float = 0) -> Tensor:
    """`x` moved `step` positions along `dim`; what falls off is lost, what opens is `fill`."""
    return apply(_shift, (x,), (dim, step, fill))


def recurrence(a: Tensor, b: Tensor, dim: int, reverse: bool = False) -> Tensor:
    """`h[i] = a[i] * h[i-1] + b[i]` along `dim` (`h[i+1]` when reversed); see Note [recurrence]."""
    return apply(_recurrence, (a, b), (dim, reverse))


def _back_through_time(g: Tensor, a: Tensor, dim: int, reverse: bool) -> Tensor:
    return recurrence(shift(a, dim, 1 if reverse else -1), g, dim, not reverse)


@_recurrence.vjp("a")
def _recurrence_a(g: Tensor, a: Tensor, out: Tensor, dim: int, reverse: bool) -> Tensor:
    return _back_through_time(g, a, dim, reverse) * shift(out, dim, -1 if reverse else 1)


@_recurrence.vjp("b")
def _recurrence_b(g: Tensor, a: Tensor, dim: int, reverse: bool) -> Tensor:
    return _back_through_time(g, a, dim, reverse)


# Sums and products -----------------------------------------------------------------------------
_cumsum = Op("cumsum", lambda k, x, dim: k.scan("sum", x, dim), inputs="x", params="dim")
_cumprod = Op("cumprod", lambda k, x, dim: k.scan("prod", x, dim), inputs="x", params="dim")


@_cumsum.vjp("x")
def _cumsum_rule(g: Tensor, dim: int) -> Tensor:
    return apply(_cumsum, (g.flip(dim),), (dim,)).flip(dim)


@_cumprod.vjp("x")
def _cumprod_rule(g: Tensor, x: Tensor, out: Tensor, dim: int) -> Tensor:
    return recurrence(shift(x, dim, -1), g, dim, True) * shift(out, dim, 1, 1)


def others(x: Tensor, dim: int) -> Tensor:
    """For each element the product of all the others along `dim`, without dividing."""
    before = apply(_cumprod, (shift(x, dim, 1, 1),), (dim,))
    after = apply(_cumprod, (shift(x, dim, -1, 1).flip(dim),), (dim,)).flip(dim)
    return before * after


def accumulator(input: Tensor, dtype: Any) -> Tensor:
    """`input` in the dtype that sums and products have: as asked, else int64 for integers."""
    if dtype is not None:
        return cast(input, dtypes.as_dtype(dtype))
    return cast(input, dtypes.int64) if input._array.dtype.kind in "iub" else input


def _scan(op: Op, input: Tensor, dim: Any) -> Any:
    d = wrap_dim(op.name, dim, input.ndim)
    if input.ndim:
        return apply(op, (input,), (d,))
    outs = apply(op, (input.reshape(1),), (d,))
    return tuple(o.reshape(()) for o in outs) if op.outputs > 1 else outs.reshape(())


@function(inplace=True)
def cumsum(input: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
    """The running sum along `dim`; integers are summed as int64.

    >>> import undertow as ut
    >>> ut.tensor([1, 2, 3]).cumsum(0)
    tensor([1, 3, 6])
    """
    return _scan(_cumsum, accumulator(input, dtype), dim)


@function(inplace=True)
def cumprod(input: Tensor, dim: int, *, dtype: DTypeLike | None = None) -> Tensor:
    """The running product along `dim`; integers are multiplied as int64.

    >>> import undertow as ut
    >>> ut.tensor([1, 2, 3, 4]).cumprod(0)
    tensor([ 1,  2,  6, 24])
    """
    return _scan(_cumprod, accumulator(input, dtype), dim)


# Extremes --------------------------------------------------------------------------------------
_cummax = Op(
    "cummax",
    lambda k, x, dim: k.scan("max", x, dim),
    inputs="x",
    params="dim",
    outputs=2,
    differentiable=1,
    vjp={"x": lambda g, x_shape, dim, out1: place(g, x_shape, dim, out1)},
)
_cummin = Op(
    "cummin",
    lambda k, x, dim: k.scan("min", x, dim),
    inputs="x",
    params="dim",
    outputs=2,
    differentiable=1,
    vjp={"x": lambda g, x_shape, dim, out1: place(g, x_shape, dim, out1)},
)


def _running_extreme(op: Op, input: Tensor, dim: Any) -> Selection:
    if input._array.dtype.kind == "c":
        raise DTypeError(
            f"[{op.name}] complex numbers have no order, got {input.dtype}; take abs() first"
        )
    return Selection(*_scan(op, input, dim))


@function()
def cummax(input: Tensor, dim: int) -> Selection:
    """The running maximum along `dim`, and the index of the last element that attains it.

    >>> import undertow as ut
    >>> values, indices = ut.tensor([1, 3, 2, 3]).cummax(0)
    >>> values, indices
    (tensor([1, 3, 3, 3]), tensor([0, 1, 1, 3]))
    """
    return _running_extreme(_cummax, input, dim)


@function()
def cummin(input: Tensor, dim: int) -> Selection:
    """The running minimum along `dim`, and the index of the last element that attains it.

    >>> import undertow as ut
    >>> ut.tensor([3, 1, 2]).cummin(0).values
    tensor([3, 1, 1])
    """
    return _running_extreme(_cummin, input, dim)


# Logarithms of sums ----------------------------------------------------------------------------
_logcumsumexp = Op(
    "logcumsumexp", lambda k, x, dim: k.scan("logaddexp", x, dim), inputs="x", params="dim"
)


@_logcumsumexp.vjp("x")
def _logcumsumexp_rule(g: Tensor, x: Tensor, out: Tensor, dim: int) -> Tensor:
    # Each total depends on the one before by exp(out[i-1] - out[i]), which never exceeds one; where
    # nothing but -inf has been seen, it does not depend on it at all.
    total = where(out == -math.inf, 0, out)
    carry = (out - shift(total, dim, -1, math.inf)).exp()
    return recurrence(carry, g, dim, True) * (x - total).exp()


def _doubled(total: Tensor, dim: int) -> Tensor:
    """The same of complex numbers: totals of 1, 2, 4 … elements, added to those behind them."""
    step, size = 1, total.shape[dim]
    while step < size:
        before = narrowed(total, dim, 0, size - step)
        joined = narrowed(total, dim, step, size - step).logaddexp(before)
        total = cat((narrowed(total, dim, 0, step), joined), dim)
        step *= 2
    return total


def _turns(x: Tensor, total: Tensor, dim: int) -> Tensor:
    """How many turns lie between the angles of `total` and those that adding one by one gives.

    There each angle is within a quarter turn of what it comes from: the element if that is the
    larger one, else the total before.
    """
    angle = total.imag
    leads = x.real >= shift(total.real, dim, 1, -math.inf)
    turns = (where(leads, x.imag, shift(angle, dim, 1)) - angle).div(2 * math.pi).round()
    turns = where(turns.isfinite(), turns, 0)
    since = apply(_cumsum, (where(leads, 0, turns),), (dim,))
    line = [-1 if d == dim else 1 for d in range(x.ndim)]
    places = arange(x.shape[dim], device=x.device).reshape(line)
    last = cummax(where(leads, places, 0), dim).values
    return since + (turns - since).gather(dim, last)


@function()
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """`log(cumsum(exp(input)))` along `dim`, without overflow.

    >>> import undertow as ut
    >>> ut.tensor([1000.0, 1000.0]).logcumsumexp(0)
    tensor([1000.0000, 1000.6932])
    """
    if input._array.dtype.kind in "iub":
        raise DTypeError(
            f"[logcumsumexp] needs a floating tensor, got {input.dtype}; convert it first, for "
            "example with .to(ut.float32)"
        )
    if input.is_complex():
        d = wrap_dim("logcumsumexp", dim, input.ndim)
        if not input.numel() or not input.ndim:
            return input.clone()
        total = _doubled(input, d)
        return total + _turns(input.detach(), total.detach(), d) * (2j * math.pi)
    return _scan(_logcumsumexp, input, dim)


# Differences and integrals ---------------------------------------------------------------------
def _neighbours(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Each element but the last, and each but the first."""
    count = max(x._array.shape[dim] - 1, 0)
    return narrowed(x, dim, 0, count), narrowed(x, dim, x._array.shape[dim] - count, count)


@function()
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """The n-th difference of neighbours along `dim`; booleans are compared.

    >>> import undertow as ut
    >>> ut.diff(ut.tensor([1, 4, 9]), prepend=ut.tensor([0]))
    tensor([1, 3, 5])
    """
    d = own_dim("diff", dim, input.ndim)
    if as_int("diff", "n", n) < 0:
        raise ArgumentError(f"[diff] n must be 0 or more, got {n}")
    for name, part in (("prepend", prepend), ("append", append)):
        if part is not None and (
            part.ndim != input.ndim
            or reduced_shape(part.shape, (d,), False) != reduced_shape(input.shape, (d,), False)
        ):
            raise ShapeError(
                f"[diff] {name} of shape {part.shape} does not fit {input.shape}: they may differ "
                f"in dimension {d} only"
            )
    if n == 0:
        return input.clone()
    if prepend is not None or append is not None:
        input = cat([t for t in (prepend, input, append) if t is not None], d)
    boolean = input.dtype is dtypes.bool
    for _ in range(min(n, input.shape[d])):
        before, after = _neighbours(input, d)
        input = after ^ before if boolean else after - before
    return input


def _trapezoids(op: str, y: Tensor, x: Tensor | None, dx: Any, dim: int) -> tuple[Tensor, int]:
    """Twice the area of each trapezoid, and the dimension along which they stand."""
    d = own_dim(op, dim, y.ndim)
    for name, t in (("y", y), ("x", x)):
        if t is not None and t.dtype is dtypes.bool:
            raise DTypeError(f"[{op}] is not defined for bool, got it for {name}; convert it first")
    left, right = _neighbours(accumulator(y, None), d)
    if x is None:
        return (left + right) * dx, d
    if x.ndim == 1 and x.shape[0] != y.shape[d]:
        raise ShapeError(
            f"[{op}] needs one x for each sample: x has {x.shape[0]}, y has {y.shape[d]} along "
            f"dimension {d}"
        )
    if x.ndim < y.ndim:
        lead = (1,) * (y.ndim - x.ndim)
        x = reshaped(x, (*lead[:d], x.shape[0], *lead[d:]) if x.ndim == 1 else (*lead, *x.shape))
    from_, to = _neighbours(x, d - y.ndim + x.ndim)
    return (to - from_) * (left + right), max(x.ndim, y.ndim) - y.ndim + d


@function(method=False)
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Number = 1, dim: int = -1) -> Tensor:
    """The integral of samples `y` along `dim` by the trapezoid rule, at points `x` or `dx` apart.

    >>> import undertow as ut
    >>> ut.trapezoid(ut.tensor([1.0, 5.0, 10.0]), ut.tensor([1.0, 3.0, 6.0]))
    tensor(28.5000)
    """
    areas, d = _trapezoids("trapezoid", y, x, dx, dim)
    return areas.sum(d) / 2


alias("trapezoid", "trapz")


@function(method=False)
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Number = 1, dim: int = -1
) -> Tensor:
    """The running integral of samples `y` along `dim` by the trapezoid rule.

    >>> import undertow as ut
    >>> ut.cumulative_trapezoid(ut.tensor([1.0, 5.0, 10.0]))
    tensor([ 3.0000, 10.5000])
    """
    areas, d = _trapezoids("cumulative_trapezoid", y, x, dx, dim)
    return cumsum(areas, d) / 2
