"""Sparse tensors by coordinates in other shapes: permuted, selected from, joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.modes import current
from ..core.register import FUNCTIONS
from ..core.tensor import Tensor
from ..errors import (
    ArgumentError,
    BoundsError,
    DimError,
    DTypeError,
    InplaceError,
    ShapeError,
    UnsupportedError,
)
from ..layouts import sparse_coo, strided
from ..ops.create.creation import arange, zeros
from ..ops.create.creation import zeros_like as dense_zeros_like
from ..ops.index.scatter import index_select as dense_index_select
from ..ops.reduce.sort import searchsorted
from ..ops.shape.joining import cat as dense_cat
from ..shapes import as_int, wrap_dim
from .compressed import SparseCompressed
from .coo import SparseCOO
from .tensor import SparseTensor


def permute(x: SparseCOO, *dims: Any) -> SparseCOO:
    """The dimensions in another order; sparse ones stay before dense ones."""
    given = dims[0] if len(dims) == 1 and isinstance(dims[0], Sequence) else dims
    order = [wrap_dim("permute", d, x.ndim) for d in given]
    sparse = x.sparse_dim()
    if sorted(order) != list(range(x.ndim)) or sorted(order[:sparse]) != list(range(sparse)):
        raise DimError(
            f"[permute] dims {tuple(given)} must name each of {x.ndim} dimensions once, and the "
            f"{sparse} sparse ones first, for sparse dimensions stay before dense ones"
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
    if index.numel() and not (bool(index.min() >= -size) and bool(index.max() < size)):
        raise BoundsError(f"[index_select] an index is out of range for dim {at} of size {size}")
    index = index % size if size else index  # negative ones count from the end
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


def narrow_copy(input: SparseCOO, dim: int, start: int, length: int) -> SparseCOO:
    """What has `length` indices from `start` on in a dimension."""
    x = input.to_sparse_coo()
    at, sparse = wrap_dim("narrow_copy", dim, x.ndim), x.sparse_dim()
    size = x.shape[at]
    start = as_int("narrow_copy", "start", start)
    start = start + size if start < 0 else start
    if start < 0 or length < 0 or start + length > size:
        raise BoundsError(
            f"[narrow_copy] {length} from {start} on are out of range for dim {at} of size {size}"
        )
    shape = (*x.shape[:at], length, *x.shape[at + 1 :])
    if at >= sparse:
        values = x._stored.narrow(at - sparse + 1, start, length)
        return SparseCOO(x._places, values, shape, x._coalesced)
    here = x._places[at]
    which = ((here >= start) & (here < start + length)).nonzero().squeeze(1)
    rows = [x._places[d] - (start if d == at else 0) for d in range(sparse)]
    places = dense_index_select(dense_cat([row.unsqueeze(0) for row in rows]), 1, which)
    return SparseCOO(places, dense_index_select(x._stored, 0, which), shape, x._coalesced)


def zeros_like(
    input: SparseTensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
    pin_memory: bool = False,
) -> Any:
    """A tensor of its shape and layout that stores nothing."""
    wanted = input.layout if layout is None else layout
    if memory_format is not None and wanted is not strided:
        raise ArgumentError(
            f"[zeros_like] a memory_format is for dense tensors, got {memory_format}"
        )
    if dtype is None:
        dtype = input.dtype
    if device is None:
        device = input.device
    if wanted is strided:
        return zeros(input.shape, dtype=dtype, device=device, requires_grad=requires_grad)
    found = input.to_sparse_coo().detach()
    values = found._stored[:0].to(device, dtype)
    none = SparseCOO(found._places[:, :0].to(device), values, input.shape, True)
    like: SparseTensor = none
    if wanted is input.layout:
        like = input._like(none)
    elif wanted is not sparse_coo:
        like = none.to_sparse(layout=wanted)
    if isinstance(input, SparseCompressed) and isinstance(like, SparseCompressed):
        like._places.kind = input._places.kind
    return like.requires_grad_() if requires_grad else like


def empty_like(input: SparseTensor, **options: Any) -> Any:
    """`zeros_like`; by rows or columns, with the positions of the tensor."""
    if isinstance(input, SparseCompressed) and options.get("layout") in (None, input.layout):
        options.pop("layout", None)
        return input._with(dense_zeros_like(input._stored.detach(), **options))
    return zeros_like(input, **options)


def _random(name: str) -> Callable[..., Any]:
    def like(input: SparseTensor, **options: Any) -> Any:
        if not isinstance(input, SparseCompressed) or options.get("layout") not in (
            None,
            input.layout,
        ):
            raise input._undefined(name, "has no random elements, having no order of its own")
        options.pop("layout", None)
        return input._with(FUNCTIONS[name](input._stored.detach(), **options))

    return like


def sparse_resize_(self: SparseCOO, size: Any, sparse_dim: int, dense_dim: int) -> SparseCOO:
    """Another shape in place, in which all that is stored has its coordinates still."""
    shape = tuple(size)
    if not isinstance(self, SparseCOO):
        raise self._undefined("sparse_resize_", "keeps its shape")
    if self.requires_grad and current().grad:
        raise InplaceError("[sparse_resize_] a tensor that requires gradients keeps its shape")
    if len(shape) != sparse_dim + dense_dim:
        raise ShapeError(
            f"[sparse_resize_] {sparse_dim} sparse and {dense_dim} dense dimensions need as many "
            f"sizes, got {shape}"
        )
    if self._nnz():
        counts = (self.sparse_dim(), self.dense_dim())
        if counts != (sparse_dim, dense_dim):
            raise ShapeError(
                f"[sparse_resize_] what is stored has {counts[0]} sparse and {counts[1]} dense "
                f"dimensions, got {sparse_dim} and {dense_dim}"
            )
        if any(a < b for a, b in zip(shape, self.shape, strict=True)):
            raise ShapeError(f"[sparse_resize_] {tuple(self.shape)} does not shrink to {shape}")
        if shape[sparse_dim:] != tuple(self.shape[sparse_dim:]):
            raise self._undefined("sparse_resize_", "keeps the dense dimensions of what it stores")
        places, values = self._places, self._stored
    else:
        places = self._places.new_zeros(sparse_dim, 0)
        values = self._stored.new_zeros(0, *shape[sparse_dim:])
    self._hold(SparseCOO(places, values, shape, self._coalesced))
    return self


def sparse_resize_and_clear_(self: SparseCOO, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    """Another shape in place, in which nothing is stored."""
    return sparse_resize_(self.zero_(), size, sparse_dim, dense_dim)


def resize_as_(self: SparseCOO, other: Any, memory_format: Any = None) -> Any:
    """The shape of another sparse tensor, in place."""
    return sparse_resize_(self, other.shape, other.sparse_dim(), other.dense_dim())


def _method(name: str) -> Callable[..., Any]:
    """The method of a layout, as a function."""

    def call(input: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(input, SparseTensor):
            raise UnsupportedError(f"[{name}] takes a dense tensor with dense arguments")
        return getattr(type(input), name, _nothing(name))(input, *args, **kwargs)

    return call


def _nothing(name: str) -> Callable[..., Any]:
    def refuse(input: Any, *args: Any, **kwargs: Any) -> Any:
        raise input._undefined(name)

    return refuse


def numpy(input: SparseTensor, *args: Any, **kwargs: Any) -> Any:
    """An error: NumPy's arrays are dense."""
    raise DTypeError(f"[numpy] a {input.layout.name} tensor is no array; use to_dense() first")


ANSWERS: dict[str, Callable[..., Any]] = {
    "cat": cat,
    "concat": cat,
    "concatenate": cat,
    "stack": stack,
    "narrow_copy": narrow_copy,
    "zeros_like": zeros_like,
    "empty_like": empty_like,
    "rand_like": _random("rand_like"),
    "randn_like": _random("randn_like"),
    "sparse_resize_": sparse_resize_,
    "sparse_resize_and_clear_": sparse_resize_and_clear_,
    "resize_as_": resize_as_,
    "resize_as_sparse_": resize_as_,
    "swapaxes": _method("transpose"),
    "swapdims": _method("transpose"),
    "numpy": numpy,
}
