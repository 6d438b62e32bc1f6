"""Sums and softmax over the stored elements of sparse tensors."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..core.tensor import Tensor
from ..errors import DTypeError
from ..ops.create.creation import full
from ..ops.index.scatter import index_add, index_select, scatter_reduce
from ..shapes import Ints, wrap_dim, wrap_dims
from .coo import SparseCOO
from .tensor import SparseTensor


def _coo(op: str, input: Any) -> SparseCOO:
    if not isinstance(input, SparseTensor):
        raise DTypeError(f"[{op}] expects a sparse tensor, got {type(input).__name__}")
    return input.to_sparse_coo().coalesce()


def sum(input: Any, dim: Ints | None = None, dtype: Any = None) -> Any:
    """The sum of all elements, or over some dimensions.

    While sparse dimensions are left the result is sparse, else dense.

    >>> import undertow as ut
    >>> x = ut.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    >>> ut.sparse.sum(x), ut.sparse.sum(x, 0).to_dense()
    (tensor(12.), tensor([4., 0., 8.]))
    """
    found = _coo("sparse.sum", input)
    values = found._stored if dtype is None else found._stored.to(dtypes.as_dtype(dtype))
    if dim is None:
        return values.sum()
    sparse = found.sparse_dim()
    dims = wrap_dims("sparse.sum", dim, found.ndim)
    inner = tuple(d - sparse + 1 for d in dims if d >= sparse)
    if inner:
        values = values.sum(inner)
    left = [d for d in range(sparse) if d not in dims]
    if not left:
        return values.sum(0)
    shape = [n for d, n in enumerate(found.shape) if d not in dims]
    return SparseCOO(found._places[left], values, shape, len(left) == sparse).coalesce()


def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The softmax along a dimension, of the elements that are stored: others count as -inf.

    >>> import undertow as ut
    >>> x = ut.tensor([[0.0, 1.0, 1.0], [2.0, 0.0, 0.0]]).to_sparse()
    >>> ut.sparse.softmax(x, 1).to_dense()
    tensor([[0.0000, 0.5000, 0.5000],
            [1.0000, 0.0000, 0.0000]])
    """
    return _normalised("sparse.softmax", input, dim, dtype, logarithm=False)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The logarithm of `softmax`, at the positions that are stored.

    >>> import undertow as ut
    >>> x = ut.tensor([[0.0, 1.0, 1.0]]).to_sparse()
    >>> ut.sparse.log_softmax(x, 1).values()
    tensor([-0.6931, -0.6931])
    """
    return _normalised("sparse.log_softmax", input, dim, dtype, logarithm=True)


def _normalised(op: str, input: Any, dim: int, dtype: Any, logarithm: bool) -> Any:
    found = _coo(op, input)
    if dtype is not None:
        found = found.to(dtypes.as_dtype(dtype))
    if not found.is_floating_point():
        raise DTypeError(f"[{op}] takes floating tensors, got {found.dtype}; pass dtype=ut.float32")
    at = wrap_dim(op, dim, found.ndim)
    sparse = found.sparse_dim()
    if at >= sparse:
        inner = at - sparse + 1
        values = found._stored
        out = found._with(values.log_softmax(inner) if logarithm else values.softmax(inner))
    else:
        out = found._with(_along(op, found, at, logarithm))
    return input._like(out)


def _along(op: str, x: SparseCOO, at: int, logarithm: bool) -> Tensor:
    """The values, normalised within the lines along a sparse dimension."""
    others = [d for d in range(x.sparse_dim()) if d != at]
    lines, line = x._linear(others).unique(return_inverse=True)
    values, room = x._stored, (lines.shape[0], *x._stored.shape[1:])
    lowest = full(room, -float("inf"), dtype=x.dtype, device=x.device)
    spread = line.reshape(-1, *[1] * x.dense_dim()).expand(values.shape)
    largest = scatter_reduce(lowest, 0, spread, values.detach(), "amax")
    shifted = values - index_select(largest, 0, line)
    sums = index_add(values.new_zeros(room), 0, line, shifted.exp())
    if logarithm:
        return shifted - index_select(sums.log(), 0, line)
    return shifted.exp() / index_select(sums, 0, line)


def _sum(input: Any, dim: Ints | None = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """`ut.sum` of a sparse tensor; with `keepdim` it is in the layout of the tensor."""
    if dtype is None and input.dtype.category < 2:
        dtype = dtypes.int64
    found = sum(input, dim, dtype)
    if not keepdim or dim is None:
        return found
    if not isinstance(found, SparseTensor):
        shape = list(input.shape)
        for d in wrap_dims("sum", dim, input.ndim):
            shape[d] = 1
        found = found.reshape(shape)
        return found.to_sparse(input.sparse_dim()) if input.is_sparse else _in(input, found)
    for d in sorted(wrap_dims("sum", dim, input.ndim)):
        found = found.unsqueeze(d)
    return found if input.is_sparse else _in(input, found)


def _in(input: Any, found: Any) -> Any:
    if input.blocked:
        raise input._undefined("sum", "has blocks, which a sum over dimensions has not")
    return found.to_sparse(layout=input.layout)


def mean(input: Any, dim: Ints | None = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """`ut.mean` of all elements of a sparse tensor, stored or not, or over some dimensions."""
    if dtype is not None:
        input = input.to(dtypes.as_dtype(dtype))
    if input.dtype.category < 2:
        raise DTypeError(f"[mean] takes floating tensors, got {input.dtype}; pass dtype=ut.float32")
    found = _sum(input, dim, keepdim)
    return found / (input.numel() // max(found.numel(), 1))


def norm(
    input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    """The norm of all elements, over those that are stored."""
    if dim not in (None, (), []) or keepdim:
        raise input._undefined("norm", f"has a norm of all elements, got dim={dim}")
    return input._summed()._stored.norm(p, dtype=dtype)


def any(input: Any) -> Tensor:
    """Whether an element is not zero."""
    found: Tensor = input._summed()._stored.any()
    return found


def _softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    return softmax(input, dim, dtype=dtype)


def _log_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    return log_softmax(input, dim, dtype=dtype)


ANSWERS = {
    "any": any,
    "log_softmax": _log_softmax,
    "mean": mean,
    "native_norm": norm,
    "norm": norm,
    "softmax": _softmax,
    "sum": _sum,
}
__all__ = ["log_softmax", "softmax", "sum"]
