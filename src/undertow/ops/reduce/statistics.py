"""Statistics: variance, deviation, medians, quantiles, modes, histograms."""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes
from ...backends.base import Array, Forms
from ...backends.registry import backend_of
from ...core.dispatch import apply, cast
from ...core.op import Op
from ...core.protocol import plain_number
from ...core.register import function
from ...core.tensor import Tensor, wrap
from ...errors import ArgumentError, DTypeError, ShapeError
from ...kernel.expr import call, trace
from ...shapes import Ints, as_int, reduced_shape, wrap_dim, wrap_dims
from ..elementwise.comparison import holds, isinf, isnan, where
from ..shape.movement import movedim, reshaped
from .reduction import count_of, even_share, floating, is_half, mean, ordered, spread
from .scan import Selection
from .sort import pick, sorted_along

# Variance --------------------------------------------------------------------------------------
_over = trace(lambda a, b: a / b, 2)
_root_of_quotient = trace(lambda a, b: call("sqrt", a / b), 2)
_var = Op(
    "var",
    lambda k, x, dims, keepdim, freedom: k.map(
        _over, [k.reduce("squares", x, dims, keepdim), freedom], x.dtype
    ),
    inputs="x",
    params="dims keepdim freedom",
)
_std = Op(
    "std",
    lambda k, x, dims, keepdim, freedom: k.map(
        _root_of_quotient, [k.reduce("squares", x, dims, keepdim), freedom], x.dtype
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


# With the mean as a second output, of one node.
_var_mean = Op(
    "var_mean",
    lambda k, x, dims, keepdim, freedom: (
        _var.forward(k, x, dims, keepdim, freedom),
        k.reduce("mean", x, dims, keepdim),
    ),
    inputs="x",
    params="dims keepdim freedom",
    outputs=2,
    partial=True,  # the zero of a missing cotangent would meet infinite slopes
)
_std_mean = Op(
    "std_mean",
    lambda k, x, dims, keepdim, freedom: (
        _std.forward(k, x, dims, keepdim, freedom),
        k.reduce("mean", x, dims, keepdim),
    ),
    inputs="x",
    params="dims keepdim freedom",
    outputs=2,
    partial=True,  # the zero of a missing cotangent would meet infinite slopes
)


def _with_mean(
    moment: Tensor | None, g: Tensor | None, shape: tuple[int, ...], dims: tuple[int, ...]
) -> Tensor | None:
    """The gradient by way of a moment and that by way of the mean, together."""
    if g is None:
        return moment
    part = spread(g / count_of(shape, dims), shape, dims)
    return part if moment is None else moment + part


@_var_mean.vjp("x")
def _(gs: Any, x: Tensor, dims: tuple[int, ...], freedom: float) -> Any:
    moment = None if gs[0] is None else _var_rule(gs[0], x, dims, freedom)
    return _with_mean(moment, gs[1], x.shape, dims)


@_std_mean.vjp("x")
def _(gs: Any, x: Tensor, out: Tensor, dims: tuple[int, ...], freedom: float) -> Any:
    moment = None if gs[0] is None else _std_rule(gs[0], x, out, dims, freedom)
    return _with_mean(moment, gs[1], x.shape, dims)


def _moment(op: Op, input: Tensor, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> Any:
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
        if op.outputs == 1:
            return cast(wide, input.dtype)
        return tuple(cast(w, input.dtype) for w in wide)
    if input._array.dtype.kind == "c":
        real = _moment(_var, input.real, dim, None, keepdim, correction)
        both = real + _moment(_var, input.imag, dim, None, keepdim, correction)
        if op is _std or op is _std_mean:
            both = both.sqrt()
        return both if op.outputs == 1 else (both, mean(input, dim, keepdim))
    shape = input._array.shape
    dims = wrap_dims(name, dim, len(shape))
    freedom = count_of(shape, dims) - (1 if correction is None else correction)
    return apply(op, (input,), (dims, keepdim, float(freedom) if freedom > 0 else 0.0))


@function()
def var(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """The variance over all or some dimensions: squared deviations over `n - correction`.

    correction is 1 by default (the unbiased estimate); `unbiased=False` means 0.

    >>> import undertow as ut
    >>> ut.tensor([1.0, 2.0, 4.0]).var()
    tensor(2.3333)
    """
    return _moment(_var, input, dim, unbiased, keepdim, correction)


@function()
def std(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """The standard deviation over all or some dimensions: the root of `var`.

    >>> import undertow as ut
    >>> ut.tensor([1.0, 2.0, 4.0]).std()
    tensor(1.5275)
    """
    return _moment(_std, input, dim, unbiased, keepdim, correction)


@function(method=False)
def var_mean(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """The variance and the mean.

    >>> import undertow as ut
    >>> ut.var_mean(ut.tensor([1.0, 2.0, 4.0, 5.0]))
    (tensor(3.3333), tensor(3.))
    """
    return _moment(_var_mean, input, dim, unbiased, keepdim, correction)


@function(method=False)
def std_mean(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean.

    >>> import undertow as ut
    >>> ut.std_mean(ut.tensor([1.0, 2.0, 4.0, 5.0]))
    (tensor(1.8257), tensor(3.))
    """
    return _moment(_std_mean, input, dim, unbiased, keepdim, correction)


# Medians and modes -----------------------------------------------------------------------------
_is_nan = trace(lambda x: x != x, 1)
_either = trace(lambda c, i, j: call("where", c, i, j), 3)
_middle = trace(lambda c: call("maximum", call("floor_div", c - 1, 2), 0), 1)  # of c numbers


def _middle_index(k: Forms, x: Array, dim: int, skip: bool) -> Any:
    """The index of the median along `dim`, kept."""
    int64, rank = dtypes.int64.numpy, len(x.shape)
    if not skip or x.dtype.kind in "iub":
        found = k.ranked(x, dim, (x.shape[dim] - 1) // 2)[1]
        if x.dtype.kind in "iub":
            return k.copy(found)
        greatest = k.reduce("argmax", x, (dim,), True)  # the first NaN, if there is one
        missing = k.map(_is_nan, [k.gather(x, dim, greatest)], dtypes.bool.numpy)
        return k.map(_either, [missing, greatest, found], int64)
    values, order = k.sort(x, dim, False)  # NaN stands behind the numbers
    rows = k.permute(values, (*[d for d in range(rank) if d != dim], dim))
    numbers = k.searchsorted(rows, k.full((*rows.shape[:-1], 1), math.nan, x.dtype), False)
    numbers = k.permute(numbers, (*range(dim), rank - 1, *range(dim, rank - 1)))
    return k.gather(order, dim, k.map(_middle, [numbers], int64))


def _median_forward(k: Forms, x: Array, skip: bool) -> Any:
    flat = k.reshape(k.copy(x), (x.size,))
    return k.reshape(k.gather(flat, 0, _middle_index(k, flat, 0, skip)), ())


_median = Op(
    "median",
    _median_forward,
    inputs="x",
    params="skip",
    vjp={"x": lambda g, x, out: even_share(g, x, out, tuple(range(x.ndim)))},
)
_median_position = Op("median_position", _middle_index, inputs="x", params="dim skip")


def _medians(op: str, input: Tensor, dim: Any, keepdim: bool, skip: bool) -> Any:
    if dim is None:
        if not input.numel() and input._array.dtype.kind not in "iubc":
            return input.sum() * math.nan
        ordered(op, input, tuple(range(input.ndim)))
        return apply(_median, (input,), (skip,))
    return _selected(_median_position, op, input, dim, keepdim, (skip,))


def _selected(
    position: Op, op: str, input: Tensor, dim: Any, keepdim: bool, more: tuple[Any, ...] = ()
) -> Selection:
    d = wrap_dim(op, dim, input.ndim)
    if not input.ndim:
        input, keepdim = reshaped(input, (1,)), False
    ordered(op, input, (d,))
    return pick(input, d, apply(position, (input,), (d, *more)), keepdim)


@function()
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | Selection:
    """The median of all elements, or along a dim with its index; NaN if any element is.

    Of an even number of elements it is the lower of the two in the middle.

    >>> import undertow as ut
    >>> ut.tensor([3.0, 1.0, 2.0, 4.0]).median()
    tensor(2.)
    >>> ut.tensor([[3.0, 1.0, 2.0]]).median(dim=1).indices
    tensor([2])
    """
    return _medians("median", input, dim, keepdim, False)


@function()
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | Selection:
    """The median of the elements that are not NaN, of all or along a dim with its index.

    >>> import undertow as ut
    >>> ut.tensor([3.0, float("nan"), 2.0]).nanmedian()
    tensor(2.)
    """
    return _medians("nanmedian", input, dim, keepdim, True)


_changes = trace(lambda a, b: a != b, 2)
_start_of_run = trace(lambda new, i: call("where", new, i, 0), 2)
_minus = trace(lambda a, b: a - b, 2)


def _mode_forward(k: Forms, x: Array, dim: int) -> Any:
    """The index of the last of the most frequent elements, of the smallest of those."""
    int64, bool_ = dtypes.int64.numpy, dtypes.bool.numpy
    values, order = k.sort(x, dim, False)
    count = x.shape[dim]
    head = (slice(None),) * dim
    pair = [k.slice(values, (*head, slice(1, None))), k.slice(values, (*head, slice(0, count - 1)))]
    first = k.full((*x.shape[:dim], 1, *x.shape[dim + 1 :]), True, bool_)
    new = k.concat([first, k.map(_changes, pair, bool_)], dim)
    steps = k.reshape(k.arange(0, 1, count, int64), (count,) + (1,) * (len(x.shape) - dim - 1))
    starts, _ = k.scan("max", k.map(_start_of_run, [new, steps], int64), dim)
    longest = k.reduce("argmax", k.map(_minus, [steps, starts], int64), (dim,), True)
    return k.gather(order, dim, longest)


_mode_position = Op("mode_position", _mode_forward, inputs="x", params="dim")


@function()
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Selection:
    """The most frequent element along `dim` (the smallest of several), and its last index.

    >>> import undertow as ut
    >>> value, index = ut.tensor([1, 3, 1, 2, 3]).mode()
    >>> value, index
    (tensor(1), tensor(2))
    """
    return _selected(_mode_position, "mode", input, dim, keepdim)


# Quantiles -------------------------------------------------------------------------------------
_ROUNDINGS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantiles(
    op: str, input: Tensor, q: Any, dim: Any, keepdim: bool, interpolation: str, skip: bool
) -> Tensor:
    input = floating(op, input)
    ordered(op, input, ())
    if interpolation not in _ROUNDINGS:
        raise ArgumentError(
            f"[{op}] interpolation must be one of {', '.join(_ROUNDINGS)}, got {interpolation!r}"
        )
    if not input.numel():
        raise ShapeError(f"[{op}] has no value for an empty tensor of shape {input.shape}")
    q = plain_number(q) if not isinstance(q, Tensor) else q
    if isinstance(q, (int, float)):
        q = wrap(backend_of(input._array).full((), q, input._array.dtype))
    elif not isinstance(q, Tensor):
        raise DTypeError(f"[{op}] q must be a number or a Tensor, got {type(q).__name__} {q!r}")
    elif q.dtype is not input.dtype:
        raise DTypeError(f"[{op}] q must have the input's dtype {input.dtype}, got {q.dtype}")
    if q.ndim > 1:
        raise ShapeError(f"[{op}] q must be a number or have 1 dimension, got shape {q.shape}")
    if not holds((q >= 0) & (q <= 1)):
        raise ArgumentError(f"[{op}] q must be between 0 and 1, got {q.tolist()}")
    if is_half(input):  # ranks of many elements are no halves
        wide = cast(input, dtypes.float32), cast(q, dtypes.float32)
        return cast(_quantiles(op, *wide, dim, keepdim, interpolation, skip), input.dtype)
    if dim is None or not input.ndim:
        wrap_dim(op, dim or 0, input.ndim)
        last, kept = reshaped(input, (input.numel(),)), (1,) * input.ndim
    else:
        d = wrap_dim(op, dim, input.ndim)
        last, kept = movedim(input, d, -1), reduced_shape(input.shape, (d,), True)
    out = _interpolated(last, reshaped(q, (q.numel(),)), interpolation, skip)
    shape = kept if keepdim else reduced_shape(last.shape, (last.ndim - 1,), False)
    return reshaped(movedim(out, -1, 0), (*q.shape, *shape))


def _interpolated(x: Tensor, q: Tensor, interpolation: str, skip: bool) -> Tensor:
    """The quantiles `q` along the last dimension, which they replace."""
    count = x.shape[-1]
    missing = isnan(x)
    if skip:  # NaN stands behind the numbers
        top = cast((~missing).sum(-1, keepdim=True) - 1, x.dtype)
        ranks = q * where(top < 0, 0, top)
    else:  # one NaN makes NaN: the last element
        ranks = where(missing.any(-1, keepdim=True), count - 1.0, q * (count - 1))
    x = sorted_along(x, x.ndim - 1, False).values
    if interpolation == "nearest":
        return x.gather(-1, cast(ranks.detach().round(), dtypes.int64))
    floor, ceil = ranks.detach().floor(), ranks.detach().ceil()
    if interpolation in ("lower", "higher"):
        rank = floor if interpolation == "lower" else ceil
        return x.gather(-1, cast(rank, dtypes.int64))
    below = x.gather(-1, cast(floor, dtypes.int64))
    above = x.gather(-1, cast(ceil, dtypes.int64))
    gap = above - below
    gap = where(isnan(gap), 0, gap)  # between two equal infinities there is none
    weight = ranks - floor if interpolation == "linear" else 0.5
    # From the finite end: between -inf and 1 it is -inf, not -inf + inf.
    return where(isinf(below), above - (1 - weight) * gap, below + weight * gap)


@function()
def quantile(
    input: Tensor,
    q: Tensor | float,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """The q-th quantiles of all elements, or along a dim; NaN if any element is.

    q is a number from 0 to 1 or a tensor of them, which then form the first dimension.
    interpolation between two elements: linear, lower, higher, midpoint, nearest.

    >>> import undertow as ut
    >>> ut.tensor([1.0, 2.0, 4.0]).quantile(ut.tensor([0.5, 0.75]))
    tensor([2., 3.])
    """
    return _quantiles("quantile", input, q, dim, keepdim, interpolation, False)


@function()
def nanquantile(
    input: Tensor,
    q: Tensor | float,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """The q-th quantiles of the elements that are not NaN; see `quantile`.

    >>> import undertow as ut
    >>> ut.tensor([1.0, float("nan"), 2.0]).nanquantile(0.5)
    tensor(1.5000)
    """
    return _quantiles("nanquantile", input, q, dim, keepdim, interpolation, True)


# Histograms ------------------------------------------------------------------------------------
_bin = trace(  # those outside go to a bin of their own behind the others
    lambda x, low, high, width, bins: call(
        "where",
        (x >= low) & (x <= high),
        call("minimum", call("floor", (x - low) * bins / width), bins - 1),
        bins,
    ),
    5,
)


def _histc_forward(k: Forms, x: Array, bins: int, low: float, high: float) -> Any:
    place = k.map(_bin, [x, low, high, high - low, float(bins)], x.dtype)
    count = k.bincount(k.cast(place, dtypes.int64.numpy), None, bins + 1)
    return k.cast(k.slice(count, (slice(0, bins),)), x.dtype)


_histc = Op("histc", _histc_forward, inputs="x", params="bins low high")
_bincount = Op(
    "bincount", lambda k, x, length: k.bincount(x, None, length), inputs="x", params="length"
)


@function()
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements fall into each of `bins` equal intervals from `min` to `max`.

    With `min == max` the range of the data is taken. Elements outside, and NaN, are not counted.
    Counts do not change with the elements: the result is a constant, as in torch.

    >>> import undertow as ut
    >>> ut.histc(ut.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    input = floating("histc", input)
    ordered("histc", input, ())
    if as_int("histc", "bins", bins) <= 0:
        raise ArgumentError(f"[histc] bins must be positive, got {bins}")
    low, high = float(min), float(max)
    if low == high and input.numel():
        low, high = (float(t) for t in input.detach().aminmax())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ArgumentError(f"[histc] the range must be finite, got {low} to {high}")
    if low > high:
        raise ArgumentError(f"[histc] max must not be below min, got min={low} and max={high}")
    if low == high:  # all are in the middle; their distance, since 1 can be below their rounding
        input, low, high = input - low, -1.0, 1.0
    return apply(_histc, (input.detach(),), (bins, low, high))


@function()
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each of 0, 1, 2 … occurs, or the sum of the weights of its occurrences.

    Unlike torch's, the result is differentiable in the weights.

    >>> import undertow as ut
    >>> ut.bincount(ut.tensor([1, 3, 1]))
    tensor([0, 2, 0, 1])
    """
    if input._array.dtype.kind not in "iu" or input.ndim != 1:
        raise DTypeError(
            f"[bincount] needs a tensor of integers with 1 dimension, got {input.dtype} of shape "
            f"{input.shape}"
        )
    if as_int("bincount", "minlength", minlength) < 0:
        raise ArgumentError(f"[bincount] minlength must be 0 or more, got {minlength}")
    length = minlength
    if input.numel():
        low, high = (int(t) for t in input.aminmax())
        if low < 0:
            raise ArgumentError(f"[bincount] counts integers from 0 on, got {low}")
        length = max(minlength, high + 1)
    positions = cast(input, dtypes.int64)
    if weights is None:
        return apply(_bincount, (positions,), (length,))
    if weights.shape != input.shape:
        raise ShapeError(
            f"[bincount] weights of shape {weights.shape} do not fit input of shape {input.shape}"
        )
    if weights.dtype is not dtypes.float32:
        weights = cast(weights, dtypes.float64)
    return weights.new_zeros((length,)).scatter_add(0, positions, weights)
