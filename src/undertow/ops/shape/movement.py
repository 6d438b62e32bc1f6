"""Views of one tensor: by shape, by the order of its dimensions, by broadcasting and slicing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, overload

from ... import dtypes
from ...backends.base import Array, Forms
from ...backends.registry import OF_CLASS, backend_of
from ...core.dispatch import apply, widened
from ...core.op import Op
from ...core.register import attach, function
from ...core.tensor import Tensor
from ...core.views import viewed
from ...dtypes import DType, DTypeLike
from ...errors import ArgumentError, BoundsError, DimError, ShapeError
from ...shapes import Ints, Shape, as_int, as_ints, infer_size, wrap_dim, wrap_dims

# Primitives ----------------------------------------------------------------------------------
_view = Op(
    "view",
    lambda k, x, shape: k.reshape(x, shape),
    inputs="x",
    params="shape",
    view=True,
    vjp={"x": lambda g, x_shape: reshaped(g, x_shape)},
    bare={"x": lambda k, g, x_shape: in_shape(k, g, x_shape)},
)
_copied = Op(
    "reshape",
    lambda k, x, shape: k.reshape(k.copy(x), shape),
    inputs="x",
    params="shape",
    vjp={"x": lambda g, x_shape: reshaped(g, x_shape)},
    bare={"x": lambda k, g, x_shape: in_shape(k, g, x_shape)},
)
_permute: Op = Op(
    "permute",
    lambda k, x, dims: k.permute(x, dims),
    inputs="x",
    params="dims",
    view=True,
    vjp={"x": lambda g, dims: apply(_permute, (g,), (inverse_permutation(dims),))},
    bare={"x": lambda k, g, dims: k.permute(g, inverse_permutation(dims))},
)
_slice = Op(
    "slice",
    lambda k, x, slices: k.slice(x, slices),
    inputs="x",
    params="slices",
    view=True,
    vjp={"x": lambda g, x_shape, slices: embed(g, x_shape, slices)},
    bare={"x": lambda k, g, x_shape, slices: _embed_forward(k, g, x_shape, slices)},
)


def _embed_forward(k: Forms, x: Array, shape: Shape, slices: tuple[Any, ...]) -> Any:
    out = k.full(shape, 0, x.dtype)
    k.assign(k.slice(out, slices), x)
    return out


_embed = Op(
    "embed",
    _embed_forward,
    inputs="x",
    params="shape slices",
    vjp={"x": lambda g, slices: slice_view(g, slices)},
)


def in_shape(k: Forms, x: Array, shape: Shape) -> Any:
    """An array in a shape that fits: a view, or of a copy if it has none."""
    view = k.reshape(x, shape)
    return k.reshape(k.copy(x), shape) if view is None else view


def reshaped(x: Tensor, shape: Shape) -> Tensor:
    """`x` in a shape known to fit: itself, a view, or a copy, whatever is cheapest."""
    return x if x._array.shape == shape else _in_shape(x, shape)


def _in_shape(x: Tensor, shape: Shape) -> Tensor:
    """A view in another shape if the strides allow it, else a copy."""
    array = x._array
    view = (OF_CLASS.get(array.__class__) or array.backend).reshape(array, shape)
    if view is None:
        return reshaped_copy(x, shape)
    return viewed(_view, x, view, (shape,))


def _in_order(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """The view with the dimensions in an order that is one."""
    array = x._array
    backend = OF_CLASS.get(array.__class__) or array.backend
    return viewed(_permute, x, backend.permute(array, dims), (dims,))


def reshaped_copy(x: Tensor, shape: Shape) -> Tensor:
    """A copy of `x` in a shape known to fit, for functions whose result is never a view."""
    out: Tensor = apply(_copied, (x,), (shape,))
    return out


def slice_view(x: Tensor, slices: tuple[Any, ...]) -> Tensor:
    """The view `x[slices]` by slices, integers and None, resolved already (in range, >= 0)."""
    array = x._array
    backend = OF_CLASS.get(array.__class__) or array.backend
    return viewed(_slice, x, backend.slice(array, slices), (slices,))


def embed(x: Tensor, shape: Shape, slices: tuple[Any, ...]) -> Tensor:
    """The adjoint of `slice_view`: zeros of `shape` with `x` written at `slices`."""
    return apply(_embed, (x,), (shape, slices))


def along(dim: int, entry: Any) -> tuple[Any, ...]:
    """Slices that take `entry` along one dimension and all of those before it."""
    return (slice(None),) * dim + (entry,)


def inverse_permutation(dims: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that undoes `dims`.

    >>> inverse_permutation((2, 0, 1))
    (1, 2, 0)
    """
    inverse = [0] * len(dims)
    for i, d in enumerate(dims):
        inverse[d] = i
    return tuple(inverse)


def sizes(op: str, given: Any, named: Any = None) -> Shape:
    """Integers given as `2, 3`, `(2, 3)`, `[2, -1]` or by name, not checked any further."""
    if named is None:
        for size in given:
            if size.__class__ is not int:
                break
        else:
            return given
    if named is not None:
        given = named if isinstance(named, (tuple, list)) else (named,)
    elif len(given) == 1 and isinstance(given[0], (tuple, list)):
        given = given[0]
    return as_ints(op, "size", given)


_inferred = lru_cache(512)(infer_size)


# The same elements in another shape ----------------------------------------------------------
@function()
def reshape(input: Tensor, *sizes_: Ints, shape: Ints | None = None) -> Tensor:
    """The same elements in another shape: a view where the strides allow it, else a copy.

    >>> import undertow as ut
    >>> ut.tensor([1, 2, 3, 4]).reshape(2, -1)
    tensor([[1, 2],
            [3, 4]])
    """
    wanted = _inferred("reshape", sizes("reshape", sizes_, shape), input._array.size)
    return _in_shape(input, wanted)


@overload
def view(input: Tensor, *size: int) -> Tensor: ...
@overload
def view(input: Tensor, size: Sequence[int]) -> Tensor: ...
@overload
def view(input: Tensor, dtype: DTypeLike) -> Tensor: ...
@function(top=False)
def view(input: Tensor, *sizes_: Any, size: Any = None, dtype: Any = None) -> Tensor:
    """The same memory in another shape; an error where the strides do not allow that.

    With a dtype, the same bytes as numbers of that dtype, as in torch; see `bits_as`.

    >>> import undertow as ut
    >>> ut.arange(6).view(2, 3)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    >>> ut.tensor([1.0]).view(ut.int32)
    tensor([1065353216], dtype=undertow.int32)
    """
    if dtype is not None or (len(sizes_) == 1 and isinstance(sizes_[0], DType)):
        from .strided import bits_as

        return bits_as(input, dtypes.as_dtype(sizes_[0] if dtype is None else dtype))
    array = input._array
    wanted = _inferred("view", sizes("view", sizes_, size), array.size)
    found = backend_of(array).reshape(array, wanted)
    if found is None:
        raise ShapeError(
            f"[view] a tensor of shape {input.shape} with strides {input.stride()} cannot be seen "
            f"as {wanted} without a copy; use reshape{wanted} or contiguous() first"
        )
    return viewed(_view, input, found, (wanted,))


@function(top=False)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """`view` in the shape of `other`.

    >>> import undertow as ut
    >>> ut.zeros(6).view_as(ut.ones(2, 3)).shape
    (2, 3)
    """
    return view(input, other.shape)


@function(top=False)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """`reshape` to the shape of `other`.

    >>> import undertow as ut
    >>> ut.zeros(6).reshape_as(ut.ones(2, 3)).shape
    (2, 3)
    """
    return reshape(input, other.shape)


@function()
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions `start_dim` to `end_dim` joined into one.

    >>> import undertow as ut
    >>> ut.zeros(2, 3, 4).flatten(1).shape
    (2, 12)
    """
    shape = input._array.shape
    ndim = len(shape)
    first = wrap_dim("flatten", start_dim, ndim, "start_dim")
    last = wrap_dim("flatten", end_dim, ndim, "end_dim")
    if first > last:
        raise ArgumentError(
            f"[flatten] start_dim {start_dim} comes after end_dim {end_dim} in shape {shape}"
        )
    if first == last and ndim:
        return input
    joined = math.prod(shape[first : last + 1])
    return reshaped(input, (*shape[:first], joined, *shape[last + 1 :]))


@function()
def ravel(input: Tensor) -> Tensor:
    """All elements in one contiguous dimension: a view where possible.

    >>> import undertow as ut
    >>> ut.tensor([[1, 2], [3, 4]]).ravel()
    tensor([1, 2, 3, 4])
    """
    return reshaped(contiguous(input), (input._array.size,))


@function()
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """One dimension split into several; one of their sizes may be -1.

    >>> import undertow as ut
    >>> ut.zeros(2, 12).unflatten(1, (3, -1)).shape
    (2, 3, 4)
    """
    shape = tuple(input._array.shape)
    d = wrap_dim("unflatten", dim, len(shape))
    if not shape:
        raise DimError("[unflatten] a tensor of 0 dimensions has no dimension to split")
    wanted = tuple(as_int("unflatten", "sizes", s) for s in sizes)
    if not wanted:
        raise ArgumentError("[unflatten] sizes must name at least one dimension")
    return view(input, (*shape[:d], *infer_size("unflatten", wanted, shape[d]), *shape[d + 1 :]))


@function()
def squeeze(input: Tensor, dim: Ints | None = None) -> Tensor:
    """A view without the dimensions of size 1: all of them, or those in `dim` that have size 1.

    >>> import undertow as ut
    >>> ut.zeros(1, 3, 1).squeeze().shape, ut.zeros(1, 3, 1).squeeze(0).shape
    ((3,), (3, 1))
    """
    return _in_shape(input, squeezed("squeeze", input._array.shape, dim))


def squeezed(op: str, shape: Shape, dim: Any) -> Shape:
    if dim is None:
        return tuple([s for s in shape if s != 1])
    if isinstance(dim, (tuple, list)):
        if not dim:
            return shape
        gone = wrap_dims(op, dim, len(shape))
        return tuple([s for d, s in enumerate(shape) if s != 1 or d not in gone])
    d = wrap_dim(op, dim, len(shape))
    return shape[:d] + shape[d + 1 :] if shape[d : d + 1] == (1,) else shape


@function()
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """A view with a new dimension of size 1 at position `dim`.

    >>> import undertow as ut
    >>> ut.zeros(3).unsqueeze(1).shape
    (3, 1)
    """
    return _in_shape(input, unsqueezed("unsqueeze", input._array.shape, dim))


def unsqueezed(op: str, shape: Shape, dim: Any) -> Shape:
    d = wrap_dim(op, dim, len(shape) + 1)
    return (*shape[:d], 1, *shape[d:])


# The dimensions in another order -------------------------------------------------------------
@function()
def permute(input: Tensor, *order: Ints, dims: Ints | None = None) -> Tensor:
    """A view with the dimensions in another order.

    >>> import undertow as ut
    >>> ut.zeros(2, 3, 4).permute(2, 0, 1).shape
    (4, 2, 3)
    """
    ndim = len(input._array.shape)
    return _in_order(input, _order(sizes("permute", order, dims), ndim))


@lru_cache(256)
def _order(dims: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    wanted = tuple([wrap_dim("permute", d, ndim) for d in dims])
    if sorted(wanted) != list(range(ndim)):
        raise ArgumentError(f"[permute] dims {wanted} are not an order of the {ndim} dimensions")
    return wanted


def swapped(op: str, ndim: int, first: Any, second: Any) -> tuple[int, ...]:
    a = wrap_dim(op, first, ndim, "dim0")
    b = wrap_dim(op, second, ndim, "dim1")
    return _exchanged(ndim, a, b)


@lru_cache(256)
def _exchanged(ndim: int, a: int, b: int) -> tuple[int, ...]:
    order = list(range(ndim))
    if ndim:
        order[a], order[b] = b, a
    return tuple(order)


@function()
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """A view with two dimensions exchanged.

    >>> import undertow as ut
    >>> ut.tensor([[1, 2], [3, 4]]).transpose(0, 1)
    tensor([[1, 3],
            [2, 4]])
    """
    order = swapped("transpose", len(input._array.shape), dim0, dim1)
    return _in_order(input, order)


@function()
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """The same as `transpose`.

    >>> import undertow as ut
    >>> ut.zeros(2, 3).swapaxes(0, 1).shape
    (3, 2)
    """
    return transpose(input, axis0, axis1)


@function()
def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """The same as `transpose`.

    >>> import undertow as ut
    >>> ut.zeros(2, 3).swapdims(0, 1).shape
    (3, 2)
    """
    return transpose(input, dim0, dim1)


def matrix_order(op: str, ndim: int) -> tuple[int, ...]:
    if ndim > 2:
        raise DimError(
            f"[{op}] expects at most 2 dimensions, got {ndim}; use mT or transpose(dim0, dim1)"
        )
    return _backwards(ndim)


@lru_cache
def _backwards(ndim: int) -> tuple[int, ...]:
    return tuple(range(ndim))[::-1]


@function()
def t(input: Tensor) -> Tensor:
    """A matrix transposed; a vector or zero-dimensional tensor as it is.

    >>> import undertow as ut
    >>> ut.tensor([[1, 2], [3, 4]]).t()
    tensor([[1, 3],
            [2, 4]])
    """
    return _in_order(input, matrix_order("t", len(input._array.shape)))


def _reversed(input: Tensor) -> Tensor:
    """A view with the dimensions in reverse order."""
    return _in_order(input, _backwards(len(input._array.shape)))


def _matrix_transpose(input: Tensor) -> Tensor:
    """A view with the last two dimensions exchanged."""
    ndim = len(input._array.shape)
    if ndim < 2:
        raise DimError(f"[mT] expects at least 2 dimensions, got {ndim}; use unsqueeze first")
    return _in_order(input, (*range(ndim - 2), ndim - 1, ndim - 2))


@function()
def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions exchanged and, for complex numbers, conjugated.

    >>> import undertow as ut
    >>> ut.tensor([[1, 2], [3, 4]]).adjoint()
    tensor([[1, 3],
            [2, 4]])
    """
    transposed = _matrix_transpose(input)
    return transposed.conj() if input._array.dtype.kind == "c" else transposed


def _hermitian(input: Tensor) -> Tensor:
    """The conjugate transpose of a matrix."""
    if input.ndim not in (0, 2):
        raise DimError(f"[H] expects a matrix, got {input.ndim} dimensions; use mH for batches")
    return adjoint(input) if input.ndim else input


def _adjoint(self: Tensor) -> Tensor:
    return adjoint(self)


attach("T", property(_reversed))
attach("mT", property(_matrix_transpose))
attach("mH", property(_adjoint, doc=adjoint.__doc__))
attach("H", property(_hermitian))


@function()
def movedim(input: Tensor, source: Ints, destination: Ints) -> Tensor:
    """A view with the dimensions `source` at the positions `destination`, the others in order.

    >>> import undertow as ut
    >>> ut.zeros(2, 3, 4).movedim(0, -1).shape
    (3, 4, 2)
    """
    return _movedim("movedim", input, source, destination)


@function()
def moveaxis(input: Tensor, source: Ints, destination: Ints) -> Tensor:
    """The same as `movedim`.

    >>> import undertow as ut
    >>> ut.zeros(2, 3, 4).moveaxis((0, 1), (1, 0)).shape
    (3, 2, 4)
    """
    return _movedim("moveaxis", input, source, destination)


def _movedim(op: str, input: Tensor, source: Any, destination: Any) -> Tensor:
    ndim = len(input._array.shape)
    sources = tuple([wrap_dim(op, d, ndim) for d in sizes(op, (source,))])
    targets = tuple([wrap_dim(op, d, ndim) for d in sizes(op, (destination,))])
    if len(sources) != len(targets) or any(len(set(d)) != len(d) for d in (sources, targets)):
        raise ArgumentError(
            f"[{op}] source and destination must name equally many distinct dimensions, got "
            f"{source} and {destination}"
        )
    if not ndim:
        return _in_order(input, ())
    at = dict(zip(targets, sources, strict=True))
    others = iter([d for d in range(ndim) if d not in sources])
    order = tuple([at[i] if i in at else next(others) for i in range(ndim)])
    return _in_order(input, order)


# Broadcasting --------------------------------------------------------------------------------
@function(top=False)
def expand(
    input: Tensor, *sizes_: Ints, size: Ints | None = None, implicit: bool = False
) -> Tensor:
    """A view in which dimensions of size 1 are repeated without copying; -1 keeps a size.

    >>> import undertow as ut
    >>> ut.tensor([[1], [2]]).expand(-1, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    return expanded("expand", input, sizes("expand", sizes_, size))


def expanded(op: str, input: Tensor, wanted: Shape) -> Tensor:
    return widened(input, _expanded_shape(op, input._array.shape, wanted))


@lru_cache(256)
def _expanded_shape(op: str, shape: Shape, wanted: Shape) -> Shape:
    lead = len(wanted) - len(shape)
    if lead < 0:
        raise ShapeError(
            f"[{op}] {wanted} has fewer dimensions than the tensor of shape {shape}; "
            "dimensions can only be added in front"
        )
    result = list(wanted)
    for i, new in enumerate(wanted):
        old = shape[i - lead] if i >= lead else -1
        if new == -1 and old >= 0:
            result[i] = old
        elif new < 0 or (old >= 0 and old not in (1, new)):
            raise ShapeError(
                f"[{op}] shape {shape} does not expand to {wanted}: at dimension {i} size "
                f"{new} does not fit {'a new dimension' if old < 0 else old}; only size 1 expands"
            )
    return tuple(result)


@function(top=False)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """`expand` to the shape of `other`.

    >>> import undertow as ut
    >>> ut.zeros(3, 1).expand_as(ut.zeros(3, 4)).shape
    (3, 4)
    """
    return expanded("expand_as", input, other.shape)


@function()
def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """A view broadcast to `size`; the same as `expand`.

    >>> import undertow as ut
    >>> ut.tensor([1, 2]).broadcast_to((2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return expanded("broadcast_to", input, sizes("broadcast_to", (size,)))


# Slicing -------------------------------------------------------------------------------------
def narrowed(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    """`narrow` with arguments known to be in range."""
    return slice_view(x, along(dim, slice(start, start + length)))


def selected(x: Tensor, dim: int, index: int) -> Tensor:
    """`select` with arguments known to be in range."""
    return slice_view(x, along(dim, index))


def own_dim(op: str, dim: Any, ndim: int) -> int:
    """`dim` counted from the front, of a tensor that must have one."""
    if not ndim:
        raise DimError(f"[{op}] expects a tensor of at least 1 dimension, got 0; unsqueeze it")
    return wrap_dim(op, dim, ndim)


@function()
def narrow(input: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """A view of `length` positions of dimension `dim` from `start` on.

    >>> import undertow as ut
    >>> ut.tensor([1, 2, 3, 4]).narrow(0, 1, 2)
    tensor([2, 3])
    """
    shape = input._array.shape
    d = own_dim("narrow", dim, len(shape))
    size = shape[d]
    first, count = as_int("narrow", "start", start), as_int("narrow", "length", length)
    begin = first + size if first < 0 else first
    if count < 0 or not 0 <= begin <= size or begin + count > size:
        raise BoundsError(
            f"[narrow] start {first} and length {count} exceed dimension {d} of size {size}"
        )
    return narrowed(input, d, begin, count)


@function()
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """A view of position `index` of dimension `dim`, without that dimension.

    >>> import undertow as ut
    >>> ut.tensor([[1, 2], [3, 4]]).select(1, 0)
    tensor([1, 3])
    """
    return slice_view(input, selection(input, dim, index))


def selection(input: Tensor, dim: Any, index: Any) -> tuple[Any, ...]:
    shape = input._array.shape
    d = own_dim("select", dim, len(shape))
    i = as_int("select", "index", index)
    size = shape[d]
    if not -size <= i < size:
        raise BoundsError(f"[select] index {i} is out of range for dimension {d} of size {size}")
    return along(d, i + size if i < 0 else i)


@function()
def contiguous(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """The tensor itself if its elements lie in row-major order, else a copy that does.

    >>> import undertow as ut
    >>> ut.zeros(2, 3).t().contiguous().is_contiguous()
    True
    """
    array = input._array
    return input if backend_of(array).contiguous(array) else input.clone()
