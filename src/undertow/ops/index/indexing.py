"""Indexing: `x[…]` to read and to write, and its named forms by positions and by masks.

Note [indexing]
An index is taken apart into a basic part (integers, slices, None, Ellipsis), which is a view, and
an advanced part, one integer tensor for each of some dimensions of that view. Masks become the
coordinates of their true elements. The advanced part is the primitive `index`, whose adjoint
`unindex` adds into zeros, so that repeated indices accumulate. As in torch, and unlike NumPy, an
integer is always basic: it never decides where the indexed dimensions go. And as in torch, a short
list that holds more than numbers, x[[[0, 1], [1, 2]]], is read as a tuple, x[[0, 1], [1, 2]].

Note [last wins]
Where an op *sets* the same element twice, the last value in index order wins, and the gradient
goes to that value alone (torch leaves both undefined). So setting has an adjoint of its own:
`index_last` reads like `index`, but gives zero for every value that a later one replaced.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.base import Array, Forms
from ...backends.registry import backend_of
from ...core.batching import differs
from ...core.dispatch import apply, cast, expand
from ...core.inplace import check_writable, overwrite, update
from ...core.op import Op
from ...core.reading import READERS, tell
from ...core.register import attach
from ...core.tensor import Tensor, share, wrap
from ...errors import ArgumentError, BoundsError, DTypeError, IndexingError, ShapeError
from ...kernel.expr import call, trace
from ...shapes import Shape, broadcast_shapes
from ..shape.movement import reshaped, slice_view

_ALL = slice(None)
_INT64, _BOOL = dtypes.int64.numpy, dtypes.bool.numpy
_LONG_LIST = 32  # elements, from which on a list is never a tuple
_NO_NUMBERS = (Tensor, slice, list, tuple, range, np.ndarray)
EQUAL = trace(lambda a, b: a == b, 2)
CHOOSE = trace(lambda mask, a, b: call("where", mask, a, b), 3)
_WRAP = trace(lambda i, size: call("where", i < 0, i + size, i), 2)


# Primitives ----------------------------------------------------------------------------------
def _key(indices: Sequence[Any], dims: tuple[int, ...]) -> tuple[Any, ...]:
    """The index tuple of `k.take` that applies indices[i] to dimension dims[i]."""
    key: list[Any] = [_ALL] * (dims[-1] + 1)
    for d, index in zip(dims, indices, strict=True):
        key[d] = index
    return tuple(key)


def _index_forward(k: Forms, x: Array, *rest: Any) -> Any:
    *indices, dims = rest
    return k.take(x, _key(indices, dims))


def _unindex_forward(k: Forms, x: Array, *rest: Any) -> Any:
    *indices, dims, shape = rest
    return k.put("add", blank(k, shape, x.dtype), _key(indices, dims), x)


def blank(k: Forms, shape: Shape, dtype: Any) -> Any:
    """Zeros to write into, one in memory, of which the write makes its own array."""
    return k.expand(k.full((), 0, dtype), shape)


def _index_last_forward(k: Forms, x: Array, *rest: Any) -> Any:
    *indices, dims = rest
    key = _key(indices, dims)
    found = k.take(x, key)
    order = k.reshape(k.arange(0, 1, found.size, _INT64), found.shape)
    writer = k.take(k.put("set", blank(k, x.shape, _INT64), key, order), key)
    return k.map(CHOOSE, (k.map(EQUAL, (writer, order), _BOOL), found, 0), x.dtype)


def _index_put_forward(k: Forms, x: Array, value: Array, *rest: Any, inplace: bool = False) -> Any:
    *indices, dims, kind = rest
    return k.put(kind, x, _key(indices, dims), value, inplace)


_index = Op(
    "index",
    _index_forward,
    inputs="x *indices",
    params="dims",
    vjp={"x": lambda g, indices, dims, x_shape: apply(_unindex, (g, *indices), (dims, x_shape))},
)
_unindex: Op = Op(
    "unindex",
    _unindex_forward,
    inputs="x *indices",
    params="dims shape",
    vjp={"x": lambda g, indices, dims: apply(_index, (g, *indices), (dims,))},
)
_index_last = Op(
    "index_last",
    _index_last_forward,
    inputs="x *indices",
    params="dims",
    vjp={
        "x": lambda g, indices, dims, x_shape: apply(
            _index_put, (g.new_zeros(x_shape), g, *indices), (dims, "set")
        )
    },
)
_index_put: Op = Op(
    "index_put",
    _index_put_forward,
    inputs="x value *indices",
    params="dims kind",
    vjp={
        "x": lambda g, indices, dims, kind: (
            g if kind == "add" else apply(_index_put, (g, g.new_zeros(()), *indices), (dims, kind))
        ),
        "value": lambda g, indices, dims, kind: apply(
            _index if kind == "add" else _index_last, (g, *indices), (dims,)
        ),
    },
)
_wrap_index = Op(
    "wrap_index", lambda k, x, size: k.map(_WRAP, (x, size), x.dtype), inputs="x", params="size"
)
nonzero_op = Op("nonzero", lambda k, x: k.nonzero(x), inputs="x")


def put(
    name: str, x: Tensor, value: Tensor, indices: Sequence[Tensor], dims: tuple[int, ...], kind: str
) -> Tensor:
    """`x` with `value`, which broadcasts, set or added at `index` positions.

    A `name_` that ends so writes into `x` itself.
    """
    shape = indexed_shape(name, x.shape, [i.shape for i in indices], dims)
    inputs = (x, expand(_fitted(name, value, shape), shape), *indices)
    if name.endswith("_"):
        return update(name, _index_put, inputs, (dims, kind))
    return apply(_index_put, inputs, (dims, kind))


def index(x: Tensor, indices: Sequence[Tensor], dims: tuple[int, ...]) -> Tensor:
    """`x` indexed at some dimensions (in rising order) by tensors that are in range."""
    return apply(_index, (x, *indices), (dims,))


def unindex(x: Tensor, indices: Sequence[Tensor], dims: tuple[int, ...], shape: Shape) -> Tensor:
    """The adjoint of `index`: zeros of that shape with `x` added at the indexed positions."""
    return apply(_unindex, (x, *indices), (dims, shape))


index_by = index  # for functions that have an argument `index`


# Checking indices ----------------------------------------------------------------------------
def position_tensor(op: str, value: Any, name: str = "index") -> Tensor:
    """An int64 tensor from one of an index dtype."""
    if not isinstance(value, Tensor):
        raise DTypeError(f"[{op}] {name} must be an integer tensor, got {type(value).__name__}")
    dtype = value._array.dtype
    if dtype == _INT64:
        return value
    if dtype == dtypes.int32.numpy:
        return cast(value, dtypes.int64)
    raise DTypeError(
        f"[{op}] {name} must be int64 or int32, got {value.dtype}; convert it with .to(ut.int64)"
    )


def in_range(op: str, index: Tensor, size: int, dim: int, negative: bool = False) -> Tensor:
    """`index` if it lies in 0 … size - 1; negative ones are counted from the end if allowed."""
    array = index._array
    if not array.size:
        return index
    k = backend_of(array)
    if 0 in array.strides:  # an expanded index says the same along a dimension
        array = k.slice(array, tuple([0 if step == 0 else _ALL for step in array.strides]))
    first = -size if negative else 0

    def error(host: Any) -> BoundsError:
        low, high = int(host.min()), int(host.max())
        allowed = f"expected {first} to {size - 1}" if size else "there is nothing to index"
        return BoundsError(
            f"[{op}] index {high if high >= size else low} is out of range for dimension {dim} of "
            f"size {size}; {allowed}"
        )

    least = k.require(array, first, size, error)
    counted_back = negative and (least is None or least < 0)
    return apply(_wrap_index, (index,), (size,)) if counted_back else index


def coordinates(mask: Tensor) -> list[Tensor]:
    """The coordinates of the true elements, one tensor for each dimension of the mask."""
    table = apply(nonzero_op, (mask.detach(),))._array
    k = backend_of(table)
    return [wrap(k.copy(k.slice(table, (_ALL, d)))) for d in range(table.shape[1])]


def same_dtype(op: str, x: Tensor, other: Tensor, name: str) -> None:
    """Raise unless both have one dtype."""
    if x._array.dtype != other._array.dtype:
        raise DTypeError(
            f"[{op}] input and {name} must have one dtype, got {x.dtype} and {other.dtype}; "
            f"convert it with .to({x.dtype})"
        )


def fitting(op: str, x: Tensor, value: Tensor, items: Sequence[Any], name: str) -> Tensor:
    """`value` as it is written into `x` at an index: of the same dtype.

    As in torch, a single element is cast where the index is one mask: that is a `masked_fill`.
    """
    if value._array.size == 1 and value.dtype.category <= max(x.dtype.category, 2):
        tensors = [i for i in items if isinstance(i, Tensor)]
        if len(tensors) == 1 and tensors[0]._array.dtype == _BOOL:
            return cast(value, x.dtype)
    same_dtype(op, x, value, name)
    return value


def number_for(op: str, x: Tensor, value: Any) -> Any:
    """A Python number as an element of `x` can hold it: no NaN in integers, no complex in reals."""
    category = x.dtype.category
    if isinstance(value, complex) and category < 3:
        raise DTypeError(f"[{op}] the complex number {value} cannot be stored in {x.dtype}")
    if category == 1:
        return dtypes.fit(op, value, x.dtype)
    return bool(value) if category == 0 else value


def fill_value(op: str, x: Tensor, value: Any) -> Any:
    """A number, or a zero-dimensional tensor cast to the dtype of `x`."""
    if isinstance(value, Tensor):
        if value.ndim:
            raise ShapeError(
                f"[{op}] value must be a number or a zero-dimensional tensor, got shape "
                f"{value.shape}"
            )
        return cast(value, x.dtype)
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (bool, int, float, complex)):
        raise DTypeError(f"[{op}] value must be a number, got {type(value).__name__}")
    return number_for(op, x, value)


def as_tensor_of(op: str, x: Tensor, value: Any) -> Tensor:
    """`value` as a tensor of the dtype of `x` on its device; numbers become zero-dimensional."""
    filled = fill_value(op, x, value)
    if isinstance(filled, Tensor):
        return filled
    return wrap(backend_of(x._array).full((), filled, x._array.dtype))


# x[…] ----------------------------------------------------------------------------------------
def _getitem(self: Tensor, key: Any) -> Tensor:
    """The elements at an index, as in torch: basic indices give a view, others a copy."""
    kind = key.__class__
    if kind is int:
        shape = self._array.shape
        if shape and -shape[0] <= key < shape[0]:
            return slice_view(self, (key if key >= 0 else key + shape[0],))
    elif kind is slice:
        shape = self._array.shape
        if shape:
            return slice_view(self, (_slice("getitem", key, shape[0]),))
    elif kind is tuple:
        slices = _plain_slices(self._array.shape, key)
        if slices is not None:
            return slice_view(self, slices)
    elif kind is Tensor:
        flat, places = _by_whole_mask(self, key)
        if places is not None:
            return index_by(flat, (places,), (0,))
    slices, indices, dims = _resolve("getitem", self, key)
    if slices is not None:
        self = slice_view(self, slices)
    return index_by(self, indices, dims) if dims else self


def _plain_slices(shape: Shape, key: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """An index of integers in range and slices alone; None for any other."""
    if len(key) > len(shape):
        return None
    found: list[Any] = []
    for item, size in zip(key, shape, strict=False):
        kind = item.__class__
        if kind is slice:
            found.append(_slice("getitem", item, size))
        elif kind is int and -size <= item < size:
            found.append(item if item >= 0 else item + size)
        else:
            return None
    return tuple(found)


def _by_whole_mask(x: Tensor, mask: Tensor) -> Any:
    """For `x[mask]`: x with the masked dimensions made one, and the true positions along it."""
    array, shape = mask._array, x._array.shape
    count = len(array.shape)
    if array.dtype != _BOOL or not count or array.shape != shape[:count]:
        return x, None
    if count > 1 and not x.is_contiguous():
        return x, None
    flat = x if count == 1 else reshaped(x, (array.size, *shape[count:]))
    return flat, coordinates(reshaped(mask.detach(), (array.size,)))[0]


def _setitem(self: Tensor, key: Any, value: Any) -> None:
    """Write `value`, broadcast and cast, at an index; autograd sees it, also through views."""
    if isinstance(key, Tensor):
        flat, places = _by_whole_mask(self, key)
        if places is not None:
            value = fitting("setitem", self, _value_for(self, value), (key,), "value")
            put("setitem_", flat, value, (places,), (0,), "set")
            return
    slices, indices, dims = _resolve("setitem", self, key)
    value = _value_for(self, value)
    if dims:
        target = self if slices is None else slice_view(self, slices)
        if value._array.dtype != self._array.dtype:
            items = [index_item("setitem", self, i) for i in _items(key)]
            value = fitting("setitem", self, value, items, "value")
        put("setitem_", target, value, indices, dims, "set")
        return
    assert slices is not None
    alias = self._alias
    if value._node is None and self._node is None and (alias is None or alias.base is None):
        # No history to write: straight into memory.
        k = backend_of(self._array)
        place = k.slice(self._array, slices)
        check_writable("setitem", self)
        source = _fitted("setitem", value, tuple(place.shape))
        if backend_of(source._array) is k and k.steps is None:
            k.assign(place, source._array)
            share(self).version.value += 1
            return
    target = slice_view(self, slices)
    overwrite("setitem", target, _fitted("setitem", value, target.shape))


def _value_for(x: Tensor, value: Any) -> Tensor:
    """What is written into `x`, as a tensor."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.ndarray):
        dtypes.of_array(value.dtype)
        return cast(wrap(backend_of(x._array).from_host(value)), x.dtype)
    return as_tensor_of("setitem", x, value)


attach("__getitem__", _getitem)
attach("__setitem__", _setitem)


def _delitem(self: Tensor, key: Any) -> None:
    """Elements of a tensor cannot be deleted."""
    raise DTypeError("[delitem] a tensor keeps its size; take what stays by indexing")


attach("__delitem__", _delitem)


def _fitted(op: str, value: Tensor, shape: Shape) -> Tensor:
    """`value` without the leading dimensions of size 1 that `shape` does not have."""
    given = value.shape
    extra = len(given) - len(shape)
    if extra > 0 and all(size == 1 for size in given[:extra]):
        value = reshaped(value, given[extra:])
    small = value.shape
    lead = len(shape) - len(small)
    if lead < 0 or any(s not in (1, t) for s, t in zip(small, shape[lead:], strict=True)):
        raise ShapeError(f"[{op}] a value of shape {given} does not broadcast to {shape}")
    return value


def indexed_shape(op: str, shape: Shape, shapes: Sequence[Shape], dims: tuple[int, ...]) -> Shape:
    """The shape of `index`: indexed dimensions side by side stay in place, others go first."""
    try:
        common = shapes[0] if len(shapes) == 1 else broadcast_shapes(op, *shapes)
    except ShapeError:
        listed = ", ".join(map(str, shapes))
        raise IndexingError(f"[{op}] index tensors of shapes {listed} do not broadcast") from None
    first, last = dims[0], dims[-1]
    if last - first == len(dims) - 1:
        return shape[:first] + common + shape[last + 1 :]
    return common + tuple(size for d, size in enumerate(shape) if d not in dims)


def _resolve(
    op: str, x: Tensor, key: Any
) -> tuple[tuple[Any, ...] | None, list[Tensor], tuple[int, ...]]:
    """The view of an index (None: x itself), its index tensors, and the dimensions they index."""
    items = [index_item(op, x, i) for i in _items(key)]
    shape = x._array.shape
    used = sum(consumed(i) for i in items)
    rest = len(shape) - used
    if rest < 0:
        raise IndexingError(
            f"[{op}] {used} indices are too many for a tensor of shape {tuple(shape)}"
            + ("; use .item() to get its number" if not shape else "")
        )
    if sum(item is Ellipsis for item in items) > 1:  # not count: a tensor compares by element
        raise IndexingError(f"[{op}] an index has at most one Ellipsis")
    slices: list[Any] = []
    indices: list[Tensor] = []
    unchecked: list[tuple[int, int]] = []  # places in `indices`, and their dimensions in x
    dims: list[int] = []
    dim = 0  # in x
    at = 0  # in the view
    for item in items:
        if item is None:
            slices.append(None)
            at += 1
        elif item is Ellipsis:
            slices += [_ALL] * rest
            dim += rest
            at += rest
        elif item is True or item is False:
            # A new dimension of size 1 or 0: torch indexes it by [0] or [].
            slices.append(None)
            k = backend_of(x._array)
            indices.append(wrap(k.full((int(item),), 0, _INT64)))
            dims.append(at)
            at += 1
        elif item.__class__ is int:
            size = shape[dim]
            if not -size <= item < size:
                raise BoundsError(
                    f"[{op}] index {item} is out of range for dimension {dim} of size {size}"
                )
            slices.append(item + size if item < 0 else item)
            dim += 1
        elif item.__class__ is slice:
            slices.append(_slice(op, item, shape[dim]))
            dim += 1
            at += 1
        else:
            if item._array.dtype == _BOOL:
                found = index_positions(op, shape, dim, item)
            else:
                found = [item]
                unchecked.append((len(indices), dim))
            count = len(found)
            indices += found
            dims += range(at, at + count)
            slices += [_ALL] * count
            dim += count
            at += count
    if not any(0 in i.shape for i in indices):  # else nothing is read
        for place, d in unchecked:
            indices[place] = in_range(op, indices[place], shape[d], d, negative=True)
    if len(indices) > 1:
        indexed_shape(op, (), [i.shape for i in indices], (0,))  # they must broadcast
    if indices and all(s is _ALL for s in slices):
        return None, indices, tuple(dims)
    return tuple(slices), indices, tuple(dims)


def _items(key: Any) -> Sequence[Any]:
    """The items of an index; see Note [indexing] about lists."""
    if isinstance(key, tuple):
        return key
    if isinstance(key, list) and len(key) < _LONG_LIST:
        for i in key:
            if i is None or i is Ellipsis or isinstance(i, _NO_NUMBERS):
                return key
    return (key,)


def index_positions(op: str, shape: Shape, dim: int, item: Tensor) -> list[Tensor]:
    """A bool or int64 tensor as index tensors for the dimensions from `dim` on, in range."""
    if item._array.dtype != _BOOL:
        return [in_range(op, item, shape[dim], dim, negative=True)]
    last = dim + item.ndim
    if item.shape != tuple(shape[dim:last]):
        raise IndexingError(
            f"[{op}] a mask of shape {item.shape} does not fit dimensions {dim} to {last - 1} of a "
            f"tensor of shape {tuple(shape)}"
        )
    return coordinates(item)


def consumed(item: Any) -> int:
    """How many dimensions of the tensor an item of an index takes up."""
    if item is None or item is Ellipsis or item is True or item is False:
        return 0
    return item.ndim if isinstance(item, Tensor) and item._array.dtype == _BOOL else 1


def index_item(op: str, x: Tensor, item: Any) -> Any:
    """One item of an index as None, Ellipsis, a bool, an int, a slice or a bool or int64 tensor."""
    if item is None or item is Ellipsis or item.__class__ in (int, bool, slice):
        return item
    if isinstance(item, np.bool_):
        return bool(item)
    if isinstance(item, (list, tuple, range, np.ndarray)):
        item = _listed(op, x, item)
    if isinstance(item, Tensor):
        dtype = item.dtype
        if dtype is dtypes.uint8:
            warnings.warn(
                "[index] a uint8 tensor is taken for a mask, which torch has deprecated; "
                "convert it with .to(ut.bool)",
                stacklevel=4,
            )
            item, dtype = cast(item, dtypes.bool), dtypes.bool
        if READERS and not item.ndim:
            tell(item)
        if dtype is dtypes.bool:
            return item if item.ndim else bool(backend_of(item._array).to_host(item._array))
        if not item.ndim and dtype.category == 1 and not differs(item):
            return int(backend_of(item._array).to_host(item._array))
        if dtype is not dtypes.int64 and dtype is not dtypes.int32:
            raise IndexingError(
                f"[{op}] a tensor that indexes must be int64, int32 or bool, got {dtype}; "
                "convert it with .to(ut.int64)"
            )
        return cast(item, dtypes.int64)
    try:
        return operator.index(item)
    except TypeError:
        raise IndexingError(
            f"[{op}] an index is made of integers, slices, None, Ellipsis, and integer or bool "
            f"tensors; got {type(item).__name__} {item!r}"
        ) from None


def _listed(op: str, x: Tensor, item: Any) -> Tensor:
    """A list, range or array in an index as a tensor on the device of `x`."""
    if isinstance(item, (list, tuple)) and any(isinstance(i, Tensor) for i in item):
        item = [i.tolist() if isinstance(i, Tensor) else i for i in item]
    try:
        array = np.asarray(item)
    except ValueError:
        array = np.asarray(None)
    if not array.size and not isinstance(item, np.ndarray):
        array = array.astype(np.int64)
    if array.dtype.kind not in "iub":
        raise IndexingError(
            f"[{op}] a list or array in an index holds integers or bools, got {item!r:.60}"
        )
    if array.dtype.kind != "b" and array.dtype != np.uint8:
        array = array.astype(np.int64)
    return wrap(backend_of(x._array).from_host(array))


def _slice(op: str, item: slice, size: int) -> slice:
    if item.start is None and item.stop is None and item.step is None:
        return _ALL
    try:
        start, stop, step = item.indices(size)
    except (TypeError, ValueError) as error:
        kind = ArgumentError if isinstance(error, ValueError) else IndexingError
        raise kind(f"[{op}] {item}: {error}") from None
    if step < 0:
        raise ArgumentError(
            f"[{op}] a slice has a positive step, got {item}; use flip() to reverse a dimension"
        )
    return slice(start, stop, step)
