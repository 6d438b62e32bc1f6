"""Reading and writing along one dimension: gather and scatter, and the index_… family.

`gather` and `ungather` (which adds into zeros) are an adjoint pair, as are setting and
`gather_last`; see Note [last wins] in `indexing`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.dispatch import apply
from ..core.inplace import update
from ..core.op import Op
from ..core.register import function
from ..core.tensor import Tensor
from ..errors import IndexingError, ShapeError
from ..shapes import wrap_dim
from .indexing import CHOOSE, EQUAL, in_range, position_tensor, same_dtype
from .indexing import index as index_by
from .movement import reshaped, slice_view

_INT64 = np.dtype(np.int64)
_BOOL = np.dtype(bool)


# Primitives ----------------------------------------------------------------------------------
def _gather_last_forward(k: Any, x: Any, index: Any, dim: int) -> Any:
    order = k.reshape(k.arange(0, 1, index.size, _INT64), index.shape)
    blank = k.full(x.shape, 0, _INT64)
    writer = k.gather(k.scatter("set", blank, dim, index, order, True), dim, index)
    last = k.map(EQUAL, (writer, order), _BOOL)
    return k.map(CHOOSE, (last, k.gather(x, dim, index), 0), x.dtype)


def _scatter_forward(
    k: Any, x: Any, src: Any, index: Any, dim: int, kind: str, inplace: bool = False
) -> Any:
    return k.scatter(kind, x, dim, index, src, inplace)


_gather = Op(
    "gather", lambda k, x, index, dim: k.gather(x, dim, index), inputs="x index", params="dim",
    vjp={"x": lambda g, index, dim, x_shape: apply(_ungather, (g, index), (dim, x_shape))},
)  # fmt: skip
_ungather = Op(
    "ungather",
    lambda k, x, index, dim, shape: k.scatter("add", k.full(shape, 0, x.dtype), dim, index, x, True),
    inputs="x index", params="dim shape",
    vjp={"x": lambda g, index, dim: apply(_gather, (g, index), (dim,))},
)  # fmt: skip
_gather_last = Op(
    "gather_last", _gather_last_forward, inputs="x index", params="dim",
    vjp={"x": lambda g, index, dim, x_shape: apply(
        _scatter, (g.new_zeros(x_shape), g, index), (dim, "set"))},
)  # fmt: skip
_scatter = Op(
    "scatter", _scatter_forward, inputs="x src index", params="dim kind",
    vjp={
        "x": lambda g, index, dim, kind: g if kind == "add" else apply(
            _scatter, (g, g.new_zeros(()), index), (dim, kind)),
        "src": lambda g, index, dim, kind: apply(
            _gather if kind == "add" else _gather_last, (g, index), (dim,)),
    },
)  # fmt: skip


# Checking ------------------------------------------------------------------------------------
def _at_least_1d(x: Tensor) -> Tensor:
    return x if x._array.shape else reshaped(x, (1,))


def _positions(op: str, input: Tensor, dim: int, index: Any) -> tuple[int, Tensor]:
    """`dim` from the front and `index` in int64, checked against `input`; zero-d counts as (1,)."""
    where = _at_least_1d(position_tensor(op, index))
    shape, wanted = input._array.shape or (1,), where._array.shape
    dim = wrap_dim(op, dim, input.ndim)
    if len(shape) != len(wanted):
        if where._array.size:
            raise ShapeError(
                f"[{op}] index must have as many dimensions as input, got shapes {index.shape} and "
                f"{input.shape}"
            )
        return dim, reshaped(where, (0,) * len(shape))
    for d, (size, limit) in enumerate(zip(wanted, shape, strict=True)):
        if size > limit and d != dim:
            raise ShapeError(
                f"[{op}] index of shape {index.shape} is larger than input of shape {input.shape} "
                f"in dimension {d}; only dimension {dim} may be"
            )
    return dim, in_range(op, where, shape[dim], dim)


def _covered(op: str, input: Tensor, index: Tensor, src: Tensor) -> Tensor:
    """The part of `src` that `index` covers."""
    same_dtype(op, input, src, "src")
    src = _at_least_1d(src)
    given, wanted = src._array.shape, index._array.shape
    if given == wanted:
        return src
    if len(given) != len(wanted) or any(a > b for a, b in zip(wanted, given, strict=True)):
        raise ShapeError(
            f"[{op}] src of shape {tuple(given)} does not cover an index of shape {tuple(wanted)}"
        )
    return slice_view(src, tuple(slice(0, size) for size in wanted))


def _vector(op: str, input: Tensor, dim: int, index: Any, negative: bool = False) -> Any:
    """`dim` from the front and a vector of positions along it, checked; zero-d counts as (1,)."""
    where = _at_least_1d(position_tensor(op, index))
    dim = wrap_dim(op, dim, input.ndim)
    if where.ndim != 1:
        raise IndexingError(f"[{op}] index must be a vector, got shape {index.shape}")
    return dim, in_range(op, where, (input._array.shape or (1,))[dim], dim, negative)


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
    dim, where = _positions("gather", input, dim, index)
    return reshaped(apply(_gather, (_at_least_1d(input), where), (dim,)), index.shape)


def _scattered(name: str, kind: str, input: Tensor, dim: int, index: Tensor, src: Any) -> Tensor:
    """`scatter` of one kind; a `name_` writes into `input` itself."""
    op = name.rstrip("_")
    dim, where = _positions(op, input, dim, index)
    inputs = (_at_least_1d(input), _covered(op, input, where, src), where)
    if op != name:
        update(name, _scatter, inputs, (dim, kind))
        return input
    return reshaped(apply(_scatter, inputs, (dim, kind)), input.shape)


@function()
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """`input` plus the elements of `src`, each added where `gather` would read it.

    >>> import undertow as ut
    >>> ut.zeros(3).scatter_add(0, ut.tensor([0, 0, 2]), ut.tensor([1.0, 2.0, 5.0]))
    tensor([3., 0., 5.])
    """
    return _scattered("scatter_add", "add", input, dim, index, src)


@function(name="scatter_add_", top=False)
def _(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """In-place form of `scatter_add`."""
    return _scattered("scatter_add_", "add", input, dim, index, src)


# The index_… family --------------------------------------------------------------------------
@function()
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of `input` along `dim` that a vector of positions names.

    >>> import undertow as ut
    >>> ut.index_select(ut.tensor([[1, 2], [3, 4]]), 1, ut.tensor([1, 1]))
    tensor([[2, 2],
            [4, 4]])
    """
    dim, where = _vector("index_select", input, dim, index)
    if input._array.shape:
        return index_by(input, (where,), (dim,))
    if where._array.size != 1:
        raise ShapeError(
            f"[index_select] a zero-dimensional tensor takes one index, got {where._array.size}"
        )
    return input.clone()
