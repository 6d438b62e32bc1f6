"""Sparse tensors by coordinates in other shapes: permuted, selected from, joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from ..errors import BoundsError, DimError, ShapeError, UnsupportedError
from ..ops.creation import arange
from ..ops.joining import cat as dense_cat
from ..ops.scatter import index_select as dense_index_select
from ..ops.sort import searchsorted
from ..shapes import as_int, wrap_dim
from .coo import SparseCOO
from .tensor import SparseTensor


def permute(x: SparseCOO, *dims: Any) -> SparseCOO:
    """The dimensions in another order; sparse ones stay before dense ones."""
    given = dims[0] if len(dims) == 1 and isinstance(dims[0], Sequence) else dims
    order = [wrap_dim("permute", d, x.ndim) for d in given]
    sparse = x.sparse_dim()
    if sorted(order) != list(range(x.ndim)) or sorted(order[:sparse]) != list(range(sparse)):
        raise DimError(
            f"[permute] dims {tuple(given)} must name each of {x.ndim} dimensions once, the "
            f"{sparse} sparse ones first"
        )
    values = x._stored.permute(0, *[d - sparse + 1 for d in order[sparse:]])
    first = order[:sparse]
    same = x._coalesced and first == sorted(first)
    return SparseCOO(x._places[first], values, [x.shape[d] for d in order], same)


def unsqueeze(x: SparseCOO, dim: int) -> SparseCOO:
    """One more dimension of size 1, sparse if it is beside or before a sparse one."""
    at, sparse = wrap_dim("unsqueeze", dim, x.ndim + 1), x.sparse_dim()
    shape = (*x.shape[:at], 1, *x.shape[at:])
    if at > sparse:
        return SparseCOO(x._places, x._stored.unsqueeze(at - sparse + 1), shape, x._coalesced)
    none = x._places.new_zeros(1, x._nnz())
    places = dense_cat([x._places[:at], none, x._places[at:]])
    return SparseCOO(places, x._stored, shape, x._coalesced)


def select(x: SparseCOO, dim: int, index: int) -> SparseCOO | Tensor:
    """What has one index in a dimension; dense if that was the last sparse one."""
    at, sparse = wrap_dim("select", dim, x.ndim), x.sparse_dim()
    size, number = x.shape[at], as_int("select", "index", index)
    if not -size <= number < size:
        raise BoundsError(f"[select] index {number} is out of range for dim {at} of size {size}")
    number %= size
    shape = (*x.shape[:at], *x.shape[at + 1 :])
    if at >= sparse:
        values = x._stored.select(at - sparse + 1, number)
        return SparseCOO(x._places, values, shape, x._coalesced)
    which = (x._places[at] == number).nonzero().squeeze(1)
    values = dense_index_select(x._stored, 0, which)
    if sparse == 1:
        return values.sum(0, dtype=values.dtype)
    places = dense_index_select(dense_cat([x._places[:at], x._places[at + 1 :]]), 1, which)
    return SparseCOO(places, values, shape, x._coalesced)


def index_select(x: SparseCOO, dim: int, index: Tensor) -> SparseCOO:
    """What has the indices of a list in a dimension, each as often as it is listed."""
    at, sparse = wrap_dim("index_select", dim, x.ndim), x.sparse_dim()
    size, count = x.shape[at], index.numel()
    if index.numel() and not (bool(index.min() >= 0) and bool(index.max() < size)):
        raise BoundsError(f"[index_select] an index is out of range for dim {at} of size {size}")
    shape = (*x.shape[:at], count, *x.shape[at + 1 :])
    if at >= sparse:
        values = dense_index_select(x._stored, at - sparse + 1, index)
        return SparseCOO(x._places, values, shape, x._coalesced)
    ordered, order = index.reshape(-1).to(x._places.dtype).sort(stable=True)
    first = searchsorted(ordered, x._places[at].contiguous())
    times = searchsorted(ordered, x._places[at].contiguous(), right=True) - first
    which = arange(x._nnz(), device=x.device).repeat_interleave(times)
    before = (times.cumsum(0) - times)[which]
    found = order[first[which] + arange(which.shape[0], device=x.device) - before]
    rows = [found if d == at else x._places[d][which] for d in range(sparse)]
    places = dense_cat([row.unsqueeze(0) for row in rows])
    joined = SparseCOO(places, dense_index_select(x._stored, 0, which), shape, False)
    return joined.coalesce() if x._coalesced else joined


def cat(tensors: Sequence[Any], dim: int = 0) -> SparseCOO:
    """Sparse tensors one after the other along a dimension."""
    given = [t for t in tensors if isinstance(t, SparseCOO)]
    if len(given) != len(tensors):
        raise UnsupportedError("[cat] joins sparse tensors by coordinates; use to_sparse() first")
    one = given[0]
    at, sparse = wrap_dim("cat", dim, one.ndim), one.sparse_dim()
    for t in given:
        if t.sparse_dim() != sparse or [n for d, n in enumerate(t.shape) if d != at] != [
            n for d, n in enumerate(one.shape) if d != at
        ]:
            raise ShapeError(
                f"[cat] shapes {tuple(one.shape)} and {tuple(t.shape)} with {sparse} and "
                f"{t.sparse_dim()} sparse dimensions do not fit along dim {at}"
            )
    total = sum(t.shape[at] for t in given)
    places, values, start = [], [], 0
    for t in given:
        if at < sparse:
            rows = [t._places[d : d + 1] + (start if d == at else 0) for d in range(sparse)]
            places.append(dense_cat(rows))
            values.append(t._stored)
        else:
            axis = at - sparse + 1
            room = list(t._stored.shape)
            room[axis] = start
            front = t._stored.new_zeros(room)
            room[axis] = total - start - t.shape[at]
            places.append(t._places)
            values.append(dense_cat([front, t._stored, t._stored.new_zeros(room)], axis))
        start += t.shape[at]
    shape = [total if d == at else n for d, n in enumerate(one.shape)]
    joined = SparseCOO(dense_cat(places, 1), dense_cat(values), shape, False)
    return joined.coalesce() if at < sparse and all(t._coalesced for t in given) else joined


def stack(tensors: Sequence[Any], dim: int = 0) -> SparseCOO:
    """Sparse tensors of one shape along a new dimension."""
    return cat([unsqueeze(t, dim) if isinstance(t, SparseCOO) else t for t in tensors], dim)


def item(x: SparseCOO, key: Any) -> SparseCOO | Tensor:
    """What has some indices in the first dimensions."""
    found: Any = x
    for number in key if isinstance(key, tuple) else (key,):
        if not isinstance(number, int) or isinstance(number, bool):
            raise x._undefined("[]", f"is indexed by integers, got {number!r}")
        found = found.select(0, number)
    return found


def zeros_like(x: SparseTensor, **options: Any) -> SparseTensor:
    """A tensor of its shape and layout that stores nothing."""
    found = x.to_sparse_coo().detach()
    none = SparseCOO(found._places[:, :0], found._stored[:0], x.shape, True)
    dtype = options.pop("dtype", None)
    if options:
        raise x._undefined("zeros_like", f"takes no {', '.join(options)}")
    like: SparseTensor = x._like(none if dtype is None else none.to(dtype))
    return like
