"""Reading and writing along one dimension: gather and scatter, and the index_… family.

`gather` and `ungather` (which adds into zeros) are an adjoint pair, as are setting and
`gather_last`; see Note [last wins] in `indexing`.
"""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes
from ...backends.base import Array, Forms
from ...backends.registry import backend_of
from ...core.dispatch import apply, expand
from ...core.inplace import update
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor, differentiated
from ...dtypes import Number
from ...errors import ArgumentError, DTypeError, IndexingError, ShapeError
from ...kernel.expr import trace
from ...shapes import broadcast_shapes, wrap_dim
from ..elementwise.comparison import where
from ..reduce.reduction import ties
from ..shape.joining import cat
from ..shape.movement import inverse_permutation, reshaped, slice_view
from .indexing import (
    CHOOSE,
    EQUAL,
    as_tensor_of,
    blank,
    in_range,
    index_by,
    number_for,
    position_tensor,
    put,
    same_dtype,
)
from .selection import publish_inplace

_INT64, _BOOL = dtypes.int64.numpy, dtypes.bool.numpy
_MINUS = trace(lambda a, b: a - b, 2)


# Primitives ----------------------------------------------------------------------------------
def _gather_last_forward(k: Forms, x: Array, index: Array, dim: int) -> Any:
    order = k.reshape(k.arange(0, 1, index.size, _INT64), index.shape)
    written = k.scatter("set", blank(k, x.shape, _INT64), dim, index, order)
    last = k.map(EQUAL, (k.gather(written, dim, index), order), _BOOL)
    return k.map(CHOOSE, (last, k.gather(x, dim, index), 0), x.dtype)


def _scatter_forward(
    k: Forms, x: Array, src: Array, index: Array, dim: int, kind: str, inplace: bool = False
) -> Any:
    return k.scatter(kind, x, dim, index, src, inplace)


_gather = Op(
    "gather",
    lambda k, x, index, dim: k.gather(x, dim, index),
    inputs="x index",
    params="dim",
    vjp={"x": lambda g, index, dim, x_shape: apply(_ungather, (g, index), (dim, x_shape))},
)
_ungather: Op = Op(
    "ungather",
    lambda k, x, index, dim, shape: k.scatter("add", blank(k, shape, x.dtype), dim, index, x),
    inputs="x index",
    params="dim shape",
    vjp={"x": lambda g, index, dim: apply(_gather, (g, index), (dim,))},
)
_gather_last = Op(
    "gather_last",
    _gather_last_forward,
    inputs="x index",
    params="dim",
    vjp={
        "x": lambda g, index, dim, x_shape: apply(
            _scatter, (g.new_zeros(x_shape), g, index), (dim, "set")
        )
    },
)
_scatter: Op = Op(
    "scatter",
    _scatter_forward,
    inputs="x src index",
    params="dim kind",
    vjp={
        "x": lambda g, index, dim, kind: (
            g if kind == "add" else apply(_scatter, (g, g.new_zeros(()), index), (dim, kind))
        ),
        "src": lambda g, index, dim, kind: apply(
            _gather if kind == "add" else _gather_last, (g, index), (dim,)
        ),
    },
)


# Checking ------------------------------------------------------------------------------------
def _at_least_1d(x: Tensor) -> Tensor:
    return x if x._array.shape else reshaped(x, (1,))


def _positions(op: str, input: Tensor, dim: int, index: Any) -> tuple[int, Tensor]:
    """`dim` from the front and `index` in int64, checked against `input`; zero-d counts as (1,)."""
    if isinstance(index, Tensor) and not index._array.size:
        index = index.to(dtypes.int64)  # of no positions the dtype does not matter, as in torch
    places = _at_least_1d(position_tensor(op, index))
    shape, wanted = input._array.shape or (1,), places._array.shape
    dim = wrap_dim(op, dim, input.ndim)
    if len(shape) != len(wanted):
        if places._array.size:
            raise ShapeError(
                f"[{op}] index must have as many dimensions as input, got shapes {index.shape} and "
                f"{input.shape}"
            )
        return dim, reshaped(places, (0,) * len(shape))
    for d, (size, limit) in enumerate(zip(wanted, shape, strict=True)):
        if size > limit and d != dim:
            raise ShapeError(
                f"[{op}] index of shape {index.shape} is larger than input of shape {input.shape} "
                f"in dimension {d}; only dimension {dim} may be"
            )
    return dim, in_range(op, places, shape[dim], dim)


def _covered(op: str, input: Tensor, index: Tensor, src: Tensor) -> Tensor:
    """The part of `src` that `index` covers."""
    same_dtype(op, input, src, "src")
    src = _at_least_1d(src)
    given, wanted = src._array.shape, index._array.shape
    if given == wanted:
        return src
    if not index._array.size:  # nothing is written; what has no elements fits anything
        return reshaped(slice_view(src, (slice(0, 0),) * len(given)), wanted)
    if len(given) != len(wanted) or any(a > b for a, b in zip(wanted, given, strict=True)):
        raise ShapeError(
            f"[{op}] src of shape {tuple(given)} does not cover an index of shape {tuple(wanted)}"
        )
    return slice_view(src, tuple(slice(0, size) for size in wanted))


def _vector(
    op: str, input: Tensor, dim: int, index: Any, negative: bool = False
) -> tuple[Tensor, int, Tensor]:
    """`input`, `dim` from the front, and positions along it, checked; zero-d counts as (1,)."""
    places = _at_least_1d(position_tensor(op, index))
    dim = wrap_dim(op, dim, input.ndim)
    if places.ndim != 1:
        raise IndexingError(f"[{op}] index must be a vector, got shape {index.shape}")
    x = _at_least_1d(input)
    return x, dim, in_range(op, places, x._array.shape[dim], dim, negative)


def _slices_of(op: str, input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """`source`, checked to have one slice of `input` along `dim` for each index."""
    same_dtype(op, input, source, "source")
    source = _at_least_1d(source) if not input.ndim else source
    shape = input.shape or (1,)
    wanted = (*shape[:dim], index.numel(), *shape[dim + 1 :])
    if source.shape != wanted:
        raise ShapeError(
            f"[{op}] source must have shape {wanted} for {index.numel()} indices along dimension "
            f"{dim} of an input of shape {input.shape}, got {source.shape}"
        )
    return source


# gather and scatter --------------------------------------------------------------------------
@function()
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Elements picked along `dim`: `out[i][j] = input[i][index[i][j]]` for dim 1.

    >>> import undertow as ut
    >>> x = ut.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> ut.gather(x, 1, ut.tensor([[0, 0], [1, 0]]))
    tensor([[1., 1.],
            [4., 3.]])
    """
    dim, places = _positions("gather", input, dim, index)
    return reshaped(apply(_gather, (_at_least_1d(input), places), (dim,)), index.shape)


@function()
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """`gather` with the other dimensions broadcast; without `dim`, from `input` as one row.

    >>> import undertow as ut
    >>> x = ut.tensor([[3, 1, 2], [9, 7, 8]])
    >>> ut.take_along_dim(x, ut.tensor([[0], [-1]]), dim=1)
    tensor([[3],
            [8]])
    """
    op = "take_along_dim"
    places = position_tensor(op, indices, "indices")
    if dim is None:
        input, places = reshaped(input, (input.numel(),)), reshaped(places, (places.numel(),))
        dim = 0
    if input.ndim != places.ndim:
        raise ShapeError(
            f"[{op}] input and indices must have as many dimensions, got shapes {input.shape} and "
            f"{indices.shape}"
        )
    dim = wrap_dim(op, dim, input.ndim)
    places = in_range(op, places, input.shape[dim] if input.ndim else 1, dim, negative=True)
    scalar = not places.ndim
    sides = [(*t.shape[:dim], 1, *t.shape[dim + 1 :]) for t in (input, places)]
    common = broadcast_shapes(op, *sides)
    input, places = (
        expand(t, (*common[:dim], t.shape[dim], *common[dim + 1 :]))
        if t.ndim
        else reshaped(t, (1,))
        for t in (input, places)
    )
    return reshaped(apply(_gather, (input, places), (dim,)), () if scalar else places.shape)


def _scattered(name: str, kind: str, input: Tensor, dim: int, index: Tensor, src: Any) -> Tensor:
    """`scatter` of one kind; a `name_` writes into `input` itself."""
    dim, places = _positions(name, input, dim, index)
    if isinstance(src, Tensor):
        source = _covered(name, input, places, src)
    else:
        source = expand(as_tensor_of(name, input, src), places.shape)
    inputs = (_at_least_1d(input), source, places)
    if name.endswith("_"):
        return update(name, _scatter, inputs, (dim, kind))
    return reshaped(apply(_scatter, inputs, (dim, kind)), input.shape)


def _scatter_any(
    name: str,
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    *,
    value: Any = None,
    reduce: str | None = None,
) -> Tensor:
    if (src is None) == (value is None):
        raise ArgumentError(f"[{name}] takes either src or value")
    if src is None:
        src = value
    if reduce is None or reduce == "add":
        return _scattered(name, "add" if reduce else "set", input, dim, index, src)
    if reduce != "multiply":
        raise ArgumentError(f'[{name}] reduce must be "add" or "multiply", got {reduce!r}')
    if not isinstance(src, Tensor):
        src = expand(as_tensor_of(name, input, src), index.shape)
    if name.endswith("_"):
        return input.scatter_reduce_(dim, index, src, "prod")
    return scatter_reduce(input, dim, index, src, "prod")


@function()
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | Number | None = None,
    *,
    value: Number | None = None,
    reduce: str | None = None,
) -> Tensor:
    """`input` with the elements of `src`, or one value, written where `gather` would read them.

    With `reduce` "add" or "multiply" they are added to, or multiplied with, what is there. Of
    elements written to the same place the last one stays, and receives the gradient.

    >>> import undertow as ut
    >>> ut.zeros(2, 3).scatter(1, ut.tensor([[2], [0]]), 1.0)
    tensor([[0., 0., 1.],
            [1., 0., 0.]])
    """
    return _scatter_any("scatter", input, dim, index, src, value=value, reduce=reduce)


publish_inplace("scatter", _scatter_any)


@function()
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """`input` plus the elements of `src`, each added where `gather` would read it.

    >>> import undertow as ut
    >>> ut.zeros(3).scatter_add(0, ut.tensor([0, 0, 2]), ut.tensor([1.0, 2.0, 5.0]))
    tensor([3., 0., 5.])
    """
    return _scattered("scatter_add", "add", input, dim, index, src)


publish_inplace(
    "scatter_add",
    lambda name, input, dim, index, src: _scattered(name, "add", input, dim, index, src),
)


# Reductions into places ----------------------------------------------------------------------
_scatter_extreme = Op("scatter_extreme", _scatter_forward, inputs="x src index", params="dim kind")
_scatter_prod = Op(
    "scatter_prod",
    lambda k, x, src, index, dim: k.scatter("mul", x, dim, index, src),
    inputs="x src index",
    params="dim",
    vjp={  # only for inputs without zeros, see _scattered_product
        "x": lambda g, x, out: g * (out / x),
        "src": lambda g, src, index, dim, out: apply(_gather, (g * out, index), (dim,)) / src,
    },
)


def _shared(g: Tensor, x: Tensor, src: Tensor, index: Tensor, dim: int, out: Tensor) -> Any:
    """Which elements attain the extreme, and the gradient divided evenly among those of a place."""
    mine = ties(x, out)
    theirs = ties(src, apply(_gather, (out, index), (dim,)))
    ones = where(mine, 1, g.new_zeros(g.shape))
    count = apply(_scatter, (ones, where(theirs, 1, g.new_zeros(src.shape)), index), (dim, "add"))
    return mine, theirs, g / count


@_scatter_extreme.vjp("x")
def _(g: Tensor, x: Tensor, src: Tensor, index: Tensor, dim: int, out: Tensor) -> Any:
    mine, _, part = _shared(g, x, src, index, dim, out)
    return where(mine, part, 0)


@_scatter_extreme.vjp("src")
def _(g: Tensor, x: Tensor, src: Tensor, index: Tensor, dim: int, out: Tensor) -> Any:
    _, theirs, part = _shared(g, x, src, index, dim, out)
    return where(theirs, apply(_gather, (part, index), (dim,)), 0)


def _of_all(kind: str, x: Tensor) -> Any:
    """A reduction of all elements, in all of a batch, as a value."""
    whole = backend_of(x._array).whole(x._array)
    k = backend_of(whole)
    return k.to_host(k.reduce(kind, whole, tuple(range(len(whole.shape))), False))


def _has_zero(x: Tensor) -> bool:
    return not _of_all("all", x)


def _scattered_product(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Products into places.

    The quotient rule is right to any order where no factor is zero. Otherwise each place's factors
    are laid out along a new dimension, filled up with ones, and multiplied by `prod`.
    """
    wanted = differentiated(x, src)
    if not wanted or not (_has_zero(x) or _has_zero(src)):
        return apply(_scatter_prod, (x, src, index), (dim,))
    size = x.shape[dim]
    rank = apply(_rank, (index,), (dim,))
    depth = 2 + int(_of_all("max", rank))
    blank = x.new_ones((*x.shape[:dim], (depth - 1) * size, *x.shape[dim + 1 :]))
    layers = apply(_scatter, (cat([x, blank], dim), src, index + (rank + 1) * size), (dim, "set"))
    return layers.unflatten(dim, (depth, size)).prod(dim)


def _rank_forward(k: Forms, index: Array, dim: int) -> Any:
    last = len(index.shape) - 1
    order = (*range(dim), *range(dim + 1, last + 1), dim)
    lines = k.copy(k.permute(index, order))
    ordered, origin = k.sort(lines, last, False)
    first = k.searchsorted(ordered, ordered, False)
    steps = k.arange(0, 1, lines.shape[last], _INT64)
    ranks = k.scatter("set", lines, last, origin, k.map(_MINUS, (steps, first), _INT64))
    return k.copy(k.permute(ranks, inverse_permutation(order)))


# How many elements before it along `dim` have the same index.
_rank = Op("rank", _rank_forward, inputs="index", params="dim")


def _start(name: str, x: Tensor, reduce: str) -> Any:
    """What the reduction of nothing is, for the dtype of `x`."""
    if reduce in ("sum", "mean", "prod"):
        return 1 if reduce == "prod" else 0
    low = reduce == "amax"
    category = x.dtype.category
    if category == 2:
        return -math.inf if low else math.inf
    if category == 0:
        return not low
    if category == 1:
        limits = dtypes.iinfo(x.dtype)
        return int(limits.min if low else limits.max)
    raise DTypeError(f"[{name}] {reduce} is not defined for {x.dtype}")


def _reduced(
    name: str, x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool
) -> Tensor:
    """`src` reduced into the places of `x` that `index` names; all checked."""
    if not index.numel():  # nothing is written, and `src` still has a gradient: of no elements
        return apply(_scatter, (x, src, index), (dim, "set"))
    if not include_self:
        x = apply(
            _scatter, (x, as_tensor_of(name, x, _start(name, x, reduce)), index), (dim, "set")
        )
    if reduce == "prod":
        return _scattered_product(x, dim, index, src)
    if reduce in ("amax", "amin"):
        _start(name, x, reduce)
        kind = "max" if reduce == "amax" else "min"
        return apply(_scatter_extreme, (x, src, index), (dim, kind))
    total = apply(_scatter, (x, src, index), (dim, "add"))
    if reduce == "sum":
        return total
    count = x.new_ones(x.shape)
    if not include_self:
        count = apply(_scatter, (count, count.new_zeros(()), index), (dim, "set"))
    count = apply(_scatter, (count, x.new_ones(src.shape), index), (dim, "add"))
    return total / count if x.dtype.category > 1 else total // count


def _check_reduce(name: str, reduce: str, allowed: tuple[str, ...]) -> None:
    if reduce not in allowed:
        raise ArgumentError(f"[{name}] reduce must be one of {', '.join(allowed)}, got {reduce!r}")


@function(inplace=True)
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """The elements of `src` reduced into the places where `gather` would read them.

    `reduce` is sum, prod, mean, amax or amin; `include_self` tells whether what `input` holds
    there takes part. Elements that tie for an extreme share its gradient evenly.

    >>> import undertow as ut
    >>> src, index = ut.tensor([1.0, 5.0, 2.0]), ut.tensor([0, 0, 1])
    >>> ut.zeros(3).scatter_reduce(0, index, src, "amax", include_self=False)
    tensor([5., 2., 0.])
    """
    name = "scatter_reduce"
    _check_reduce(name, reduce, ("sum", "prod", "mean", "amax", "amin"))
    dim, places = _positions(name, input, dim, index)
    source = _covered(name, input, places, src)
    out = _reduced(name, _at_least_1d(input), dim, places, source, reduce, include_self)
    return reshaped(out, input.shape)


# The index_… family --------------------------------------------------------------------------
@function()
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of `input` along `dim` that a vector of positions names.

    >>> import undertow as ut
    >>> ut.index_select(ut.tensor([[1, 2], [3, 4]]), 1, ut.tensor([1, 1]))
    tensor([[2, 2],
            [4, 4]])
    """
    x, dim, places = _vector("index_select", input, dim, index)
    found = index_by(x, (places,), (dim,))
    if input._array.shape:
        return found
    if places._array.size != 1:
        raise ShapeError(
            f"[index_select] a zero-dimensional tensor takes one index, got {places._array.size}"
        )
    return reshaped(found, ())


def _index_add_any(
    name: str, input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1
) -> Tensor:
    x, dim, places = _vector(name, input, dim, index)
    source = _slices_of(name, input, dim, places, source)
    if alpha != 1:
        source = source * number_for(name, input, alpha)
    return reshaped(put(name, x, source, (places,), (dim,), "add"), input.shape)


@function()
def index_add(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Number = 1
) -> Tensor:
    """`input` with `alpha` times the slices of `source` added to its slices at `index`.

    >>> import undertow as ut
    >>> ut.zeros(3).index_add(0, ut.tensor([0, 0, 2]), ut.tensor([1.0, 2.0, 3.0]))
    tensor([3., 0., 3.])
    """
    return _index_add_any("index_add", input, dim, index, source, alpha=alpha)


publish_inplace("index_add", _index_add_any)


def _index_copy_any(name: str, input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    x, dim, places = _vector(name, input, dim, index)
    if x.ndim == 1 and places.numel() == 1:  # one slice of one element
        source = _at_least_1d(source)
    source = _slices_of(name, input, dim, places, source)
    return reshaped(put(name, x, source, (places,), (dim,), "set"), input.shape)


@function()
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """`input` with its slices at `index` replaced by those of `source`.

    >>> import undertow as ut
    >>> ut.zeros(3).index_copy(0, ut.tensor([2, 0]), ut.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    return _index_copy_any("index_copy", input, dim, index, source)


publish_inplace("index_copy", _index_copy_any)


def _index_fill_any(name: str, input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    x, dim, places = _vector(name, input, dim, index, negative=True)
    value = as_tensor_of(name, input, value)
    return reshaped(put(name, x, value, (places,), (dim,), "set"), input.shape)


@function()
def index_fill(input: Tensor, dim: int, index: Tensor, value: Tensor | Number) -> Tensor:
    """`input` with every element of its slices at `index` replaced by one value.

    >>> import undertow as ut
    >>> ut.zeros(3).index_fill(0, ut.tensor([0, 2]), 7)
    tensor([7., 0., 7.])
    """
    return _index_fill_any("index_fill", input, dim, index, value)


publish_inplace("index_fill", _index_fill_any)


@function(inplace=True)
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """The slices of `source` reduced (prod, mean, amax, amin) into the slices at `index`.

    >>> import undertow as ut
    >>> ut.ones(2).index_reduce(0, ut.tensor([0, 0]), ut.tensor([2.0, 3.0]), "prod")
    tensor([6., 1.])
    """
    name = "index_reduce"
    _check_reduce(name, reduce, ("prod", "mean", "amax", "amin"))
    x, dim, places = _vector(name, input, dim, index)
    source = _slices_of(name, input, dim, places, source)
    column = reshaped(places, (*(1,) * dim, places.numel(), *(1,) * (x.ndim - dim - 1)))
    out = _reduced(name, x, dim, expand(column, source.shape), source, reduce, include_self)
    return reshaped(out, input.shape)
