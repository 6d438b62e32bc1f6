"""Diagonals and triangles of matrices."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...backends.base import Array, Forms
from ...backends.registry import backend_on
from ...core.dispatch import apply
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor, wrap
from ...devices import DeviceLike
from ...dtypes import DTypeLike
from ...errors import ArgumentError, DimError, DTypeError
from ...kernel.expr import call, trace
from ...shapes import Shape, as_int, wrap_dim
from .movement import reshaped


# Diagonals -----------------------------------------------------------------------------------
def _diagonal_forward(k: Forms, x: Array, offset: int, dim1: int, dim2: int) -> Any:
    strides = [s // x.dtype.itemsize for s in x.strides]
    rows, columns = x.shape[dim1], x.shape[dim2]
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    start = strides[dim2] * offset if offset >= 0 else -strides[dim1] * offset
    others = [d for d in range(len(strides)) if d not in (dim1, dim2)]
    return k.as_strided(
        x,
        (*[x.shape[d] for d in others], length),
        (*[strides[d] for d in others], strides[dim1] + strides[dim2]),
        start if length else 0,
    )


def _embed_forward(k: Forms, x: Array, shape: Shape, offset: int, dim1: int, dim2: int) -> Any:
    out = k.full(shape, 0, x.dtype)
    k.assign(_diagonal_forward(k, out, offset, dim1, dim2), x)
    return out


_diagonal: Op = Op(
    "diagonal",
    _diagonal_forward,
    inputs="x",
    params="offset dim1 dim2",
    view=True,
    vjp={
        "x": lambda g, x_shape, offset, dim1, dim2: apply(
            _embed_diagonal, (g,), (x_shape, offset, dim1, dim2)
        )
    },
)
_embed_diagonal: Op = Op(
    "diag_embed",
    _embed_forward,
    inputs="x",
    params="shape offset dim1 dim2",
    vjp={"x": lambda g, offset, dim1, dim2: apply(_diagonal, (g,), (offset, dim1, dim2))},
)


def diagonal_of(op: str, ndim: int, offset: Any, dim1: Any, dim2: Any) -> tuple[int, int, int]:
    """The parameters of `_diagonal`, checked."""
    first, second = wrap_dim(op, dim1, ndim, "dim1"), wrap_dim(op, dim2, ndim, "dim2")
    if first == second:
        raise ArgumentError(f"[{op}] dim1 and dim2 must differ, got {dim1} and {dim2}")
    return as_int(op, "offset", offset), first, second


@function()
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A view of a diagonal in the plane of two dimensions, as a new last dimension.

    >>> import undertow as ut
    >>> ut.tensor([[1, 2], [3, 4]]).diagonal()
    tensor([1, 4])
    """
    where = diagonal_of("diagonal", input.ndim, offset, dim1, dim2)
    return apply(_diagonal, (input,), where)


@function()
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices of zeros with the last dimension of `input` on a diagonal.

    >>> import undertow as ut
    >>> ut.tensor([1, 2]).diag_embed()
    tensor([[1, 0],
            [0, 2]])
    """
    if not input.ndim:
        raise DimError("[diag_embed] expects at least 1 dimension, got 0; use unsqueeze first")
    shift, first, second = diagonal_of("diag_embed", input.ndim + 1, offset, dim1, dim2)
    return _embedded(input, shift, first, second)


def _embedded(x: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    shape = list(x._array.shape[:-1])
    side = x._array.shape[-1] + abs(offset)
    for d in sorted((dim1, dim2)):
        shape.insert(d, side)
    return apply(_embed_diagonal, (x,), (tuple(shape), offset, dim1, dim2))


@function()
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A matrix with a vector on its diagonal, or a copy of the diagonal of a matrix.

    >>> import undertow as ut
    >>> ut.diag(ut.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    >>> ut.diag(ut.tensor([[1, 2], [3, 4]]), 1)
    tensor([2])
    """
    offset = as_int("diag", "diagonal", diagonal)
    if input.ndim == 1:
        return _embedded(input, offset, 0, 1)
    if input.ndim != 2:
        raise DimError(
            f"[diag] expects 1 or 2 dimensions, got {input.ndim}; use diagonal or diag_embed"
        )
    return apply(_diagonal, (input,), (offset, 0, 1)).clone()


@function()
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements of `input` on its diagonal.

    >>> import undertow as ut
    >>> ut.diagflat(ut.tensor([[1], [2]]))
    tensor([[1, 0],
            [0, 2]])
    """
    flat = reshaped(input, (input._array.size,))
    return _embedded(flat, as_int("diagflat", "offset", offset), 0, 1)


# Triangles -----------------------------------------------------------------------------------
_KEEP = {
    "tril": trace(lambda row, column: call("le", column, row), 2),
    "triu": trace(lambda row, column: call("ge", column, row), 2),
}
_CHOOSE = trace(lambda keep, x: call("where", keep, x, 0), 2)
_BOOL = dtypes.bool.numpy
_INT = dtypes.int64.numpy


def _triangle(k: Forms, kind: str, rows: int, columns: int, diagonal: int) -> Any:
    diagonal = max(-rows, min(diagonal, columns))  # those beyond are alike, and could overflow
    row = k.reshape(k.arange(diagonal, 1, rows, _INT), (rows, 1))
    return k.map(_KEEP[kind], (row, k.arange(0, 1, columns, _INT)), _BOOL)


def _triangle_op(kind: str) -> Op:
    op = Op(
        kind,
        lambda k, x, diagonal: k.map(
            _CHOOSE, (_triangle(k, kind, x.shape[-2], x.shape[-1], diagonal), x), x.dtype
        ),
        inputs="x",
        params="diagonal",
        vjp={"x": lambda g, diagonal: apply(op, (g,), (diagonal,))},
    )
    return op


_tril, _triu = _triangle_op("tril"), _triangle_op("triu")


def _part(op: Op, x: Tensor, diagonal: Any) -> Tensor:
    if x.ndim < 2:
        raise DimError(f"[{op.name}] expects at least 2 dimensions, got {x.ndim}")
    return apply(op, (x,), (as_int(op.name, "diagonal", diagonal),))


@function(inplace=True)
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of matrices up to a diagonal, zeros above it.

    >>> import undertow as ut
    >>> ut.ones(2, 2).tril()
    tensor([[1., 0.],
            [1., 1.]])
    """
    return _part(_tril, input, diagonal)


@function(inplace=True)
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of matrices from a diagonal on, zeros below it.

    >>> import undertow as ut
    >>> ut.ones(2, 2).triu()
    tensor([[1., 1.],
            [0., 1.]])
    """
    return _part(_triu, input, diagonal)


@function(method=False)
def tril_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Row and column numbers of the lower triangle of a `row` by `col` matrix.

    >>> import undertow as ut
    >>> ut.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _indices("tril", row, col, offset, dtype, device)


@function(method=False)
def triu_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Row and column numbers of the upper triangle of a `row` by `col` matrix.

    >>> import undertow as ut
    >>> ut.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _indices("triu", row, col, offset, dtype, device)


def _indices(kind: str, row: Any, col: Any, offset: Any, dtype: Any, device: Any) -> Tensor:
    op = f"{kind}_indices"
    rows, columns = as_int(op, "row", row), as_int(op, "col", col)
    wanted = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)
    if rows < 0 or columns < 0:
        raise ArgumentError(f"[{op}] row and col cannot be negative, got {rows} and {columns}")
    if wanted not in (dtypes.int32, dtypes.int64):
        raise DTypeError(f"[{op}] gives int32 or int64, got dtype {wanted}")
    k = backend_on(device)
    found = k.nonzero(_triangle(k, kind, rows, columns, as_int(op, "offset", offset)))
    return wrap(k.cast(k.permute(found, (1, 0)), wanted.numpy))
