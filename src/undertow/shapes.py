"""Arithmetic of shapes and dimension numbers, with the errors that name the op."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex, TypeAlias, overload

from .errors import ArgumentError, DimError, DTypeError, ShapeError

Shape = tuple[int, ...]
Ints: TypeAlias = int | Sequence[int]  # one for all dimensions, or one for each


_item: Any = tuple.__getitem__
_new: Any = tuple.__new__


def _whole(size: Any) -> int:
    try:
        return operator.index(size)
    except TypeError:
        raise DTypeError(f"[Size] sizes are integers, got {type(size).__name__}") from None


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple that knows its number of elements.

    It prints, compares and hashes as the tuple that it is. A slice of it, and a sum or a product
    with it, is a Size as well.

    >>> import undertow as ut
    >>> ut.ones(2, 3).shape.numel(), isinstance(ut.ones(2).shape, ut.Size), ut.Size([2, 3])
    (6, True, (2, 3))
    >>> ut.ones(2, 3, 4).shape[:-1].numel()
    6
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[SupportsIndex] = ()) -> Size:
        found: Any = tuple.__new__(cls, sizes)
        whole: Size = found
        for size in found:
            if not isinstance(size, int):
                return tuple.__new__(cls, [_whole(size) for size in found])
        return whole

    def numel(self) -> int:
        """The product of the sizes."""
        return math.prod(self)

    @overload
    def __getitem__(self, key: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> Size: ...
    def __getitem__(self, key: SupportsIndex | slice) -> int | Size:
        found = _item(self, key)
        return SIZES[found] if key.__class__ is slice else found

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Size:
        return Size(tuple.__add__(other, self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> Size:
        if getattr(times, "ndim", 0):  # an array multiplies the sizes
            return NotImplemented
        return _new(Size, tuple.__mul__(self, times))

    __rmul__ = __mul__


class _Sizes(dict[tuple[int, ...], Size]):
    """The Size of each shape that was asked for: looking it up is quicker than making one."""

    def __missing__(self, shape: Any) -> Size:
        if len(self) > 4096:
            self.clear()
        found: Size = _new(Size, shape)
        self[shape] = found
        return found


SIZES = _Sizes()


def as_int(op: str, name: str, value: Any) -> int:
    """`value` as a Python int, or an error that names the argument."""
    try:
        return operator.index(value)
    except TypeError:
        raise DTypeError(
            f"[{op}] {name} must be an integer, got {type(value).__name__} {value!r}"
        ) from None


def as_ints(op: str, name: str, values: Sequence[Any]) -> Shape:
    """Several values as Python ints."""
    for value in values:
        if value.__class__ is not int:
            return tuple([as_int(op, name, v) for v in values])
    return tuple(values)


def as_shape(op: str, sizes: Any) -> Shape:
    """A shape from `(2, 3)`, `2, 3` packed as a tuple, `((2, 3),)` or `(5,)`."""
    if isinstance(sizes, int):
        sizes = (sizes,)
    if len(sizes) == 1 and sizes[0].__class__ is not int and isinstance(sizes[0], Sequence):
        sizes = sizes[0]
    shape = as_ints(op, "size", sizes)
    if shape and min(shape) < 0:
        raise ShapeError(f"[{op}] sizes cannot be negative, got {shape}")
    return shape


def wrap_dim(op: str, dim: Any, ndim: int, name: str = "dim") -> int:
    """`dim` counted from the front; a zero-dimensional tensor accepts 0 and -1, as in torch."""
    d = dim if dim.__class__ is int else _as_dim(op, name, dim)
    limit = ndim or 1
    if not -limit <= d < limit:
        raise DimError(
            f"[{op}] {name} {d} is out of range for a tensor of {ndim} dimensions; "
            f"expected {-limit} to {limit - 1}"
        )
    return d + limit if d < 0 else d


def _as_dim(op: str, name: str, dim: Any) -> int:
    # A bool here is an argument in the wrong place: x.sum(True), x.topk(4, True).
    if isinstance(dim, bool):
        raise DTypeError(f"[{op}] {name} must be an integer, got bool {dim}; name the argument")
    return as_int(op, name, dim)


def wrap_dims(op: str, dims: Any, ndim: int) -> tuple[int, ...]:
    """Several dims counted from the front, without repeats; None or () means all of them."""
    if dims is None:
        return tuple(range(ndim))
    if dims.__class__ is int and ndim:
        return (wrap_dim(op, dims, ndim),)
    if not isinstance(dims, Iterable) or getattr(dims, "shape", None) == ():
        return (wrap_dim(op, dims, ndim),) if ndim else _check_zero_d(op, (dims,))
    listed = tuple(dims)
    if not listed:
        return tuple(range(ndim))
    if not ndim:
        return _check_zero_d(op, listed)
    wrapped = tuple(wrap_dim(op, d, ndim) for d in listed)
    if len(set(wrapped)) != len(wrapped):
        raise ArgumentError(f"[{op}] dims {listed} name a dimension twice")
    return wrapped


def _check_zero_d(op: str, dims: tuple[Any, ...]) -> tuple[int, ...]:
    for d in dims:
        wrap_dim(op, d, 0)
    return ()


def per_dim(op: str, name: str, value: Any, rank: int, least: int | None = 0) -> Shape:
    """An integer, or one for each of `rank` dimensions, as a tuple; none below `least`."""
    listed = value if isinstance(value, Sequence) else (value,)
    found = tuple([as_int(op, name, v) for v in listed])
    if len(found) == 1:
        found *= rank
    if len(found) != rank:
        raise ArgumentError(
            f"[{op}] {name} must be an integer or {rank} of them, one for each dimension, got "
            f"{value!r}"
        )
    if least is not None and min(found, default=least) < least:
        raise ArgumentError(f"[{op}] {name} must be at least {least}, got {value!r}")
    return found


def frozen(value: Any) -> Any:
    """Lists as tuples, so that arguments can be looked up in a cache."""
    return tuple([frozen(v) for v in value]) if isinstance(value, (list, tuple)) else value


def broadcast_shapes(op: str, *shapes: Shape) -> Shape:
    """The shape that all `shapes` broadcast to.

    >>> broadcast_shapes("add", (3, 1), (4,))
    (3, 4)
    """
    ndim = max((len(s) for s in shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        for i, size in enumerate(shape, ndim - len(shape)):
            if size != 1:
                if result[i] not in (1, size):
                    listed = " and ".join(str(tuple(s)) for s in shapes)
                    raise ShapeError(
                        f"[{op}] shapes {listed} do not broadcast: at dimension {i - ndim} "
                        f"sizes {result[i]} and {size} differ and neither is 1"
                    )
                result[i] = size
    return tuple(result)


def check_fits(op: str, name: str, shape: Shape, whole: Shape) -> None:
    """Raise unless `shape` broadcasts to `whole`: a weight may not make its loss larger."""
    if broadcast_shapes(op, shape, whole) != tuple(whole):
        raise ShapeError(
            f"[{op}] {name} of shape {tuple(shape)} does not broadcast to {tuple(whole)}"
        )


def reduced_shape(shape: Shape, dims: Iterable[int], keepdim: bool) -> Shape:
    """The shape after reducing over `dims`."""
    gone = set(dims)
    if keepdim:
        return tuple(1 if i in gone else s for i, s in enumerate(shape))
    return tuple(s for i, s in enumerate(shape) if i not in gone)


def infer_size(op: str, shape: Shape, numel: int) -> Shape:
    """`shape` with its one -1 replaced so that it holds `numel` elements.

    >>> infer_size("reshape", (2, -1), 6)
    (2, 3)
    """
    known = math.prod(shape)
    least = min(shape) if shape else 0
    if least >= 0:
        if known != numel:
            raise ShapeError(f"[{op}] shape {shape} holds {known} elements, got {numel}")
        return shape
    if least < -1 or shape.count(-1) > 1:
        raise ShapeError(f"[{op}] a shape takes sizes >= 0 and at most one -1, got {shape}")
    known = -known
    if known == 0 or numel % known:
        raise ShapeError(f"[{op}] cannot infer the -1 in {shape} for {numel} elements")
    at = shape.index(-1)
    return (*shape[:at], numel // known, *shape[at + 1 :])


def contiguous_strides(shape: Shape) -> tuple[int, ...]:
    """Row-major strides in elements.

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
