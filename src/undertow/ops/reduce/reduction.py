"""Reductions to one value: sum, mean, prod, extremes, any, all, logsumexp, norms …"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, NoReturn, overload

from ... import dtypes
from ...backends.base import Array, Dims, Forms
from ...core.dispatch import apply, apply_alone, cast, elementwise, expand
from ...core.fast import binary_function
from ...core.op import Op, elementwise_op
from ...core.printing import in_lines
from ...core.register import function
from ...core.tensor import Tensor
from ...dtypes import DTypeLike
from ...errors import ArgumentError, DimError, DTypeError
from ...kernel.expr import Expr, call, trace
from ...kernel.row_program import Tracer, rows
from ...shapes import Ints, Shape, reduced_shape, wrap_dim, wrap_dims
from ..elementwise.comparison import isnan, where
from ..shape.movement import reshaped
from .scan import Selection, accumulator, others, place


class MinMax(NamedTuple):
    """What `aminmax` returns."""

    min: Tensor
    max: Tensor

    def __repr__(self) -> str:
        return in_lines(self)


# What reductions share -------------------------------------------------------------------------
def spread(g: Tensor, shape: Shape, dims: tuple[int, ...]) -> Tensor:
    """A reduced value `g`, whatever keepdim was, expanded back over the reduced `dims`."""
    if g._array.shape:
        g = reshaped(g, reduced_shape(shape, dims, True))
    return expand(g, shape)


def _spread_array(k: Forms, g: Array, shape: Shape, dims: Dims) -> Any:
    """The same for arrays; see Note [bare rules]."""
    if g.shape:
        kept = reduced_shape(shape, dims, True)
        found = k.reshape(g, kept)
        g = k.reshape(k.copy(g), kept) if found is None else found
    return k.expand(g, shape)


def even_share(g: Tensor, x: Tensor, out: Tensor, dims: tuple[int, ...]) -> Tensor:
    """The rule of an extreme: `g` divided evenly among the elements that equal it."""
    shape = x.shape
    hit = ties(x, spread(out.detach(), shape, dims))
    count = apply(_sum, (cast(hit, dtypes.of_array(g._array.dtype)),), (dims, True))
    return where(hit, expand(reshaped(g, count.shape) / count, shape), 0)


# Whether elements are equal, or both NaN: an extreme that is NaN has its gradient go there.
ties = binary_function(
    elementwise_op("ties", lambda x, m: (x == m) | ((x != x) & (m != m)), inputs="x m", kind="bool")
)


def count_of(shape: Shape, dims: tuple[int, ...]) -> int:
    """How many elements each reduced value stands for."""
    return math.prod(shape[d] for d in dims)


def floating(op: str, input: Tensor, dtype: Any = None, hint: str = "") -> Tensor:
    """`input` cast to `dtype` if that is given; an error if integers are left."""
    if dtype is not None:
        input = cast(input, dtypes.as_dtype(dtype))
    if input._array.dtype.kind in "iub":
        fix = hint or "convert it first, for example with .to(ut.float32)"
        raise DTypeError(f"[{op}] needs a floating tensor, got {input.dtype}; {fix}")
    return input


def as_floating(input: Tensor) -> Tensor:
    """Integers and booleans in the default dtype; anything else as it is."""
    return cast(input, dtypes.get_default_dtype()) if input._array.dtype.kind in "iub" else input


def is_half(x: Tensor) -> bool:
    """Whether `x` is float16 or bfloat16, whose reductions are computed in float32."""
    dtype = x._array.dtype
    return dtype.itemsize == 2 and dtype.kind not in "iu"


def ordered(op: str, input: Tensor, dims: tuple[int, ...]) -> None:
    """Check that an extreme over `dims` exists: no empty dimension, no complex numbers."""
    array = input._array
    if array.size == 0 and 0 in [array.shape[d] for d in dims]:
        _empty(op, input.shape, dims)
    if array.dtype.kind == "c":
        raise DTypeError(
            f"[{op}] complex numbers have no order, got {input.dtype}; take abs() or .real first"
        )


def _empty(op: str, shape: Shape, dims: tuple[int, ...]) -> NoReturn:
    dim = next(d for d in dims if shape[d] == 0)
    fix = "reduce another dim" if 0 in dims and len(shape) > 1 else "give at least one element"
    raise DimError(
        f"[{op}] has no value over dim {dim} of size 0 of a tensor of shape {shape}; {fix}"
    )


QUOTIENT = trace(lambda x, n: x / n, 2)


# Sums and products -----------------------------------------------------------------------------
_sum = Op(
    "sum",
    lambda k, x, dims, keepdim: k.reduce("sum", x, dims, keepdim),
    inputs="x",
    params="dims keepdim",
    vjp={"x": lambda g, x_shape, dims: spread(g, x_shape, dims)},
    bare={"x": lambda k, g, x_shape, dims: _spread_array(k, g, x_shape, dims)},
)
_mean = Op(
    "mean",
    lambda k, x, dims, keepdim: k.reduce("mean", x, dims, keepdim),
    inputs="x",
    params="dims keepdim",
    vjp={"x": lambda g, x_shape, dims: spread(g / count_of(x_shape, dims), x_shape, dims)},
    bare={
        "x": lambda k, g, x_shape, dims: _spread_array(
            k, k.map(QUOTIENT, (g, count_of(x_shape, dims)), g.dtype), x_shape, dims
        )
    },
)
_prod = Op(
    "prod",
    lambda k, x, dims, keepdim: k.reduce("prod", x, dims, keepdim),
    inputs="x",
    params="dims keepdim",
)


_itself = trace(lambda x: x, 1)
_whole = Op(  # of integers and booleans, which become int64 on the way
    "whole",
    lambda k, x, kind, dims, keepdim: k.map_reduce(
        kind, _itself, [x], dims, keepdim, dtypes.int64.numpy
    ),
    inputs="x",
    params="kind dims keepdim",
)


def _total(op: Op, input: Tensor, dims: tuple[int, ...], keepdim: bool, dtype: Any) -> Tensor:
    """A sum or product, in the dtype that it has."""
    if dtype is not None:
        input = accumulator(input, dtype)
    elif input._array.dtype.kind in "iub":
        return apply(_whole, (input,), (op.name, dims, keepdim))
    return apply_alone(op, input, (dims, keepdim))


@_prod.vjp("x")
def _prod_rule(g: Tensor, x: Tensor, dims: tuple[int, ...]) -> Tensor:
    shape = x.shape
    if len(dims) == 1:
        return spread(g, shape, dims) * others(x, dims[0])
    rest = reshaped(others(reshaped(x, (x.numel(),)), 0), shape)  # all dimensions as one
    return spread(g, shape, dims) * rest


@function()
def sum(
    input: Tensor, dim: Ints | None = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
) -> Tensor:
    """The sum over all or some dimensions; integers are summed as int64.

    >>> import undertow as ut
    >>> ut.tensor([[1.0, 2.0], [3.0, 4.0]]).sum(dim=0)
    tensor([4., 6.])
    """
    return _total(_sum, input, wrap_dims("sum", dim, len(input._array.shape)), keepdim, dtype)


@function()
def mean(
    input: Tensor, dim: Ints | None = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
) -> Tensor:
    """The mean over all or some dimensions; NaN where there are no elements.

    >>> import undertow as ut
    >>> ut.tensor([[1.0, 2.0], [3.0, 5.0]]).mean(dim=1)
    tensor([1.5000, 4.0000])
    """
    input = floating("mean", input, dtype, "pass dtype=ut.float32 or convert it first")
    dims = wrap_dims("mean", dim, len(input._array.shape))
    return apply_alone(_mean, input, (dims, keepdim))


@function()
def prod(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
) -> Tensor:
    """The product over all dimensions or one; integers are multiplied as int64.

    The gradient is right to any order also where factors are zero.

    >>> import undertow as ut
    >>> ut.tensor([[1, 2], [3, 4]]).prod(dim=1)
    tensor([ 2, 12])
    """
    dims = wrap_dims(
        "prod", None if dim is None else (wrap_dim("prod", dim, input.ndim),), input.ndim
    )
    return _total(_prod, input, dims, keepdim, dtype)


# Selections --------------------------------------------------------------------------------------
_amax = Op(
    "amax",
    lambda k, x, dims, keepdim: k.reduce("max", x, dims, keepdim),
    inputs="x",
    params="dims keepdim",
    vjp={"x": lambda g, x, out, dims: even_share(g, x, out, dims)},
)
_amin = Op(
    "amin",
    lambda k, x, dims, keepdim: k.reduce("min", x, dims, keepdim),
    inputs="x",
    params="dims keepdim",
    vjp={"x": lambda g, x, out, dims: even_share(g, x, out, dims)},
)


_chosen = Op(
    "chosen",
    lambda k, x, kind, dim, keepdim: k.reduce(f"first_{kind}", x, (dim,), keepdim),
    inputs="x",
    params="kind dim keepdim",
    outputs=2,
    differentiable=1,
    vjp={"x": lambda g, x_shape, dim, out1: place(g, x_shape, dim, out1)},
)
_position = Op(
    "position",
    lambda k, x, kind, dim, keepdim: k.reduce(kind, x, (dim,), keepdim),
    inputs="x",
    params="kind dim keepdim",
)


def _extreme(op: Op, name: str, input: Tensor, dim: Any, keepdim: bool) -> Tensor:
    dims = wrap_dims(name, dim, input.ndim)
    ordered(name, input, dims)
    return apply_alone(op, input, (dims, keepdim))


def _along(name: str, input: Tensor, dim: Any, keepdim: bool) -> Selection:
    d = wrap_dim(name, dim, input.ndim)
    if not input.ndim:
        input, keepdim = reshaped(input, (1,)), False
    ordered(name, input, (d,))
    return Selection(*apply(_chosen, (input,), (name, d, keepdim)))


def _argument(name: str, input: Tensor, dim: Any, keepdim: bool) -> Tensor:
    shape = input.shape
    if dim is None or not shape:
        wrap_dim(name, dim or 0, len(shape))
        flat = reshaped(input.detach(), (input.numel(),))
        ordered(name, flat, (0,))
        found = apply(_position, (flat,), (name, 0, False))
        return reshaped(found, (1,) * len(shape)) if keepdim else found
    d = wrap_dim(name, dim, len(shape))
    ordered(name, input, (d,))
    return apply(_position, (input,), (name, d, keepdim))


@function()
def amax(input: Tensor, dim: Ints = (), keepdim: bool = False) -> Tensor:
    """The maximum over all or some dimensions; its gradient is shared evenly between ties.

    >>> import undertow as ut
    >>> ut.tensor([[1.0, 5.0], [3.0, 2.0]]).amax(dim=1)
    tensor([5., 3.])
    """
    return _extreme(_amax, "amax", input, dim, keepdim)


@function()
def amin(input: Tensor, dim: Ints = (), keepdim: bool = False) -> Tensor:
    """The minimum over all or some dimensions; its gradient is shared evenly between ties.

    >>> import undertow as ut
    >>> ut.tensor([[1.0, 5.0], [3.0, 2.0]]).amin(dim=1)
    tensor([1., 2.])
    """
    return _extreme(_amin, "amin", input, dim, keepdim)


@overload
def max(input: Tensor) -> Tensor: ...
@overload
def max(input: Tensor, dim: int, keepdim: bool = False) -> Selection: ...
@overload
def max(input: Tensor, other: Tensor, /) -> Tensor: ...
@overload
def max(input: Tensor, *, other: Tensor) -> Tensor: ...
@function()
def max(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The maximum: of all elements, along a dim with its indices, or of two tensors.

    Over all elements the gradient is shared evenly between ties; along a dim it goes to the
    element at the returned index, the first of the largest. NaN counts as largest.

    >>> import undertow as ut
    >>> x = ut.tensor([[1.0, 5.0], [3.0, 2.0]])
    >>> ut.max(x)
    tensor(5.)
    >>> values, indices = ut.max(x, dim=1)
    >>> indices
    tensor([1, 0])
    >>> ut.max(x, ut.tensor(2.5))
    tensor([[2.5000, 5.0000],
            [3.0000, 2.5000]])
    """
    if dim is None and other is None:
        return _extreme(_amax, "max", input, None, False)
    if other is not None or isinstance(dim, Tensor):
        return input.maximum(dim if other is None else other)
    return _along("max", input, dim, keepdim)


@overload
def min(input: Tensor) -> Tensor: ...
@overload
def min(input: Tensor, dim: int, keepdim: bool = False) -> Selection: ...
@overload
def min(input: Tensor, other: Tensor, /) -> Tensor: ...
@overload
def min(input: Tensor, *, other: Tensor) -> Tensor: ...
@function()
def min(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The minimum: of all elements, along a dim with its indices, or of two tensors.

    Gradients and NaN as for `max`.

    >>> import undertow as ut
    >>> x = ut.tensor([[1.0, 5.0], [3.0, 2.0]])
    >>> ut.min(x)
    tensor(1.)
    >>> ut.min(x, dim=0).indices
    tensor([0, 1])
    """
    if dim is None and other is None:
        return _extreme(_amin, "min", input, None, False)
    if other is not None or isinstance(dim, Tensor):
        return input.minimum(dim if other is None else other)
    return _along("min", input, dim, keepdim)


@function()
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the first maximum along `dim`, or in the flattened tensor.

    >>> import undertow as ut
    >>> ut.tensor([[1.0, 5.0], [3.0, 2.0]]).argmax(dim=1)
    tensor([1, 0])
    """
    return _argument("argmax", input, dim, keepdim)


@function()
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the first minimum along `dim`, or in the flattened tensor.

    >>> import undertow as ut
    >>> ut.tensor([[1.0, 5.0], [3.0, 2.0]]).argmin()
    tensor(0)
    """
    return _argument("argmin", input, dim, keepdim)


# Logic -----------------------------------------------------------------------------------------
_truth = Op(
    "truth",
    lambda k, x, kind, dims, keepdim: k.reduce(kind, x, dims, keepdim),
    inputs="x",
    params="kind dims keepdim",
)


def _logic(kind: str, input: Tensor, dim: Any, keepdim: bool) -> Tensor:
    none = isinstance(dim, (tuple, list)) and not dim  # here, unlike in a sum, that is no dim
    dims = () if none else wrap_dims(kind, dim, input.ndim)
    out = apply(_truth, (input,), (kind, dims, keepdim))
    return cast(out, dtypes.uint8) if input.dtype is dtypes.uint8 else out


@function()
def any(input: Tensor, dim: Ints | None = None, keepdim: bool = False) -> Tensor:
    """Whether some element is nonzero, over all or some dimensions.

    >>> import undertow as ut
    >>> ut.tensor([[True, False], [False, False]]).any(dim=1)
    tensor([ True, False])
    """
    return _logic("any", input, dim, keepdim)


@function()
def all(input: Tensor, dim: Ints | None = None, keepdim: bool = False) -> Tensor:
    """Whether every element is nonzero, over all or some dimensions.

    >>> import undertow as ut
    >>> ut.tensor([[True, True], [False, True]]).all(dim=1)
    tensor([ True, False])
    """
    return _logic("all", input, dim, keepdim)


# Logarithms of sums ----------------------------------------------------------------------------
def _logsumexp_row(p: Tracer, x: Expr) -> None:
    peak = p.peak(x)
    finite = p.row(call("where", call("abs", peak) == math.inf, 0.0, peak))
    p.out_row(call("log", p.sum(call("exp", x - finite))) + finite)


_logsumexp_rows = rows(_logsumexp_row, 1)


def _logsumexp_forward(k: Forms, x: Array, dims: Dims, keepdim: bool) -> Any:
    kept = reduced_shape(x.shape, dims, True)
    if count_of(x.shape, dims) == 0:
        out = k.full(kept, -math.inf, x.dtype)
    else:
        (out,) = k.rows(_logsumexp_rows, (x,), dims, (x.dtype,))
    return out if keepdim else k.reshape(out, reduced_shape(x.shape, dims, False))


_logsumexp = Op(
    "logsumexp",
    _logsumexp_forward,
    inputs="x",
    params="dims keepdim",
    vjp={
        "x": lambda g, x, out, dims: _share(spread(g, x.shape, dims), x, spread(out, x.shape, dims))
    },
)


def _share(v: Tensor, x: Tensor, total: Tensor) -> Tensor:
    return elementwise(_logsumexp_share, v, x, total)


# The gradient's share of each element; where everything is -inf it is zero, not exp(-inf + inf).
_logsumexp_share = elementwise_op(
    "logsumexp_share",
    lambda v, x, total: v * call("exp", x - call("where", total == -math.inf, 0.0, total)),
    inputs="v x total",
    vjp={
        "v": lambda g, x, total: _share(g, x, total),
        "x": lambda g, out: g * out,
        "total": lambda g, out: -(g * out),
    },
)


@function()
def logsumexp(input: Tensor, dim: Ints, keepdim: bool = False) -> Tensor:
    """`log(sum(exp(input)))` over some dimensions, without overflow.

    Where all elements are -inf the result is -inf and the gradient zero (torch's is NaN).

    >>> import undertow as ut
    >>> ut.tensor([1000.0, 1000.0]).logsumexp(dim=0)
    tensor(1000.6932)
    """
    input = as_floating(input)
    dims = wrap_dims("logsumexp", dim, input.ndim)
    if input.is_complex() and input.numel():
        peak = amax(input.real.detach(), dims, True)
        peak = where(peak.isinf(), 0, peak)
        found = (input - peak).exp().sum(dims, True).log() + peak
        return found if keepdim else reshaped(found, reduced_shape(input.shape, dims, False))
    return apply(_logsumexp, (input,), (dims, keepdim))


# Without NaN, and without zeros ------------------------------------------------------------------
_is_nonzero = trace(lambda x: x != 0, 1)


def _count_forward(k: Forms, x: Array, dims: Dims) -> Any:
    test = _itself if x.dtype.kind == "b" else _is_nonzero
    return k.map_reduce("sum", test, [x], dims, False, dtypes.int64.numpy)


_count = Op("count_nonzero", _count_forward, inputs="x", params="dims")


@function()
def nansum(
    input: Tensor, dim: Ints | None = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
) -> Tensor:
    """The sum over all or some dimensions with NaN taken for zero.

    >>> import undertow as ut
    >>> ut.tensor([1.0, float("nan"), 3.0]).nansum()
    tensor(4.)
    """
    dims = wrap_dims("nansum", dim, input.ndim)
    if input._array.dtype.kind not in "iub":
        input = where(isnan(input), 0, input)
    return apply(_sum, (accumulator(input, dtype),), (dims, keepdim))


@function()
def nanmean(
    input: Tensor, dim: Ints | None = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
) -> Tensor:
    """The mean over all or some dimensions of the elements that are not NaN.

    >>> import undertow as ut
    >>> ut.tensor([1.0, float("nan"), 3.0]).nanmean()
    tensor(2.)
    """
    input = floating("nanmean", input, dtype, "pass dtype=ut.float32 or convert it first")
    if is_half(input):
        return cast(nanmean(input, dim, keepdim, dtype=dtypes.float32), input.dtype)
    dims = wrap_dims("nanmean", dim, input.ndim)
    missing = isnan(input)
    count = apply(_sum, (cast(~missing, input.dtype),), (dims, keepdim))
    return apply(_sum, (where(missing, 0, input),), (dims, keepdim)) / count


@function()
def count_nonzero(input: Tensor, dim: Ints | None = None) -> Tensor:
    """How many elements are nonzero, over all or some dimensions; NaN is nonzero.

    >>> import undertow as ut
    >>> ut.tensor([[0, 1, 2], [0, 0, 3]]).count_nonzero(dim=1)
    tensor([2, 1])
    """
    dims = wrap_dims("count_nonzero", dim, input.ndim)
    return apply(_count, (input,), (dims,))


@function()
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> MinMax:
    """The minimum and the maximum, of all elements or along a dim.

    >>> import undertow as ut
    >>> low, high = ut.tensor([3.0, 1.0, 2.0]).aminmax()
    >>> low, high
    (tensor(1.), tensor(3.))
    """
    dims = None if dim is None else (wrap_dim("aminmax", dim, input.ndim),)
    return MinMax(
        _extreme(_amin, "aminmax", input, dims, keepdim),
        _extreme(_amax, "aminmax", input, dims, keepdim),
    )


# Norms -----------------------------------------------------------------------------------------
_square = trace(lambda x: x * x, 1)
_root = trace(lambda s: call("sqrt", s), 1)
_power = trace(lambda x, p: call("pow", call("abs", x), p), 2)
_nonzero = trace(lambda x: call("where", x != 0, 1.0, 0.0), 1)


def _norm_forward(k: Forms, x: Array, p: float, dims: Dims, keepdim: bool) -> Any:
    if p == 0:
        return k.map_reduce("sum", _nonzero, [x], dims, keepdim, x.dtype)
    if p == 2:
        total = k.map_reduce("sum", _square, [x], dims, keepdim, x.dtype)
        return k.map(_root, [total], x.dtype)
    total = k.map_reduce("sum", _power, [x, p], dims, keepdim, x.dtype)
    return k.map(_power, [total, 1 / p], x.dtype)


_norm = Op("norm", _norm_forward, inputs="x", params="p dims keepdim")


@_norm.vjp("x")
def _norm_rule(g: Tensor, x: Tensor, out: Tensor, p: float, dims: tuple[int, ...]) -> Tensor:
    # sign(x) (|x| / norm)^(p - 1), and the subgradient zero where the norm is zero. What divides
    # is made harmless first, so that no order brings in NaN from there.
    if p == 0:
        return g.new_zeros(x.shape)
    flat = out == 0
    g, norm = where(flat, 0, g), where(flat, 1, out)
    if p >= 2:
        ratio = x / spread(norm, x.shape, dims)
        g = spread(g, x.shape, dims)
        return g * ratio if p == 2 else g * (ratio.sign() * ratio.abs() ** (p - 1))
    # Apart, an element at zero, where the second derivative is infinite, stays with itself.
    size = x.abs() if p > 1 else where(x == 0, 1, x.abs())
    scale = spread(g / norm ** (p - 1), x.shape, dims)
    return scale * (x.sign() * size ** (p - 1))


def vector_norm(op: str, x: Tensor, p: Any, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """The p-norm of the elements over `dims`, for any number p."""
    if is_half(x):
        return cast(vector_norm(op, cast(x, dtypes.float32), p, dims, keepdim), x.dtype)
    if x._array.dtype.kind == "c":
        x = x.abs()
    if p == math.inf or p == -math.inf or (p < 0 and not x.numel()):
        return _extreme(_amax if p > 0 else _amin, op, x.abs(), dims, keepdim)
    if p == 1 or (p != 0 and {x.shape[d] for d in dims} <= {1}):  # of one element, no square
        return apply(_sum, (x.abs(),), (dims, keepdim))
    return apply(_norm, (x,), (float(p), dims, keepdim))


@function()
def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: Ints | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The p-norm of the elements over all or some dimensions.

    p is a number (0 counts the nonzero elements), `inf`, `-inf`, "fro", which is 2, or "nuc", the
    sum of a matrix's singular values. Where the norm is zero its gradient is zero.

    >>> import undertow as ut
    >>> ut.tensor([[3.0, 4.0], [6.0, 8.0]]).norm(dim=1)
    tensor([ 5., 10.])
    """
    if input.is_complex() and dtype is not None and not dtypes.as_dtype(dtype).is_complex:
        raise DTypeError(
            f"[norm] dtype={dtype} would drop the imaginary parts of {input.dtype}; leave dtype "
            "out, or take abs() first"
        )
    input = floating("norm", input, dtype)
    if p is None or p == "fro":
        p = 2.0
    elif p == "nuc":
        from ..linalg.matrix_norms import nuclear_norm

        return nuclear_norm(input, tuple(range(input.ndim)) if dim is None else dim, keepdim)
    elif not isinstance(p, (int, float)):
        raise ArgumentError(f"[norm] p must be a number, 'fro' or 'nuc', got {p!r}")
    return vector_norm("norm", input, p, wrap_dims("norm", dim, input.ndim), keepdim)


@function()
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of `input - other`.

    >>> import undertow as ut
    >>> ut.dist(ut.tensor([1.0, 2.0]), ut.tensor([4.0, 6.0]))
    tensor(5.)
    """
    difference = floating("dist", input - other)
    return vector_norm("dist", difference, p, tuple(range(difference.ndim)), False)
