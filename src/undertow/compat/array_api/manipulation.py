"""Shapes, order and joining, with the standard's signatures."""

from __future__ import annotations

from collections.abc import Sequence

import undertow as ut

from ...core.tensor import Tensor
from ...errors import ArgumentError, ShapeError
from ...shapes import Ints, wrap_dim
from .data_types import together

__all__ = [
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
]

moveaxis = ut.moveaxis


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """An array as if it had another shape, in which its elements repeat.

    >>> import undertow.array_api as xp
    >>> xp.broadcast_to(xp.asarray([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return ut.broadcast_to(x, tuple(shape))


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Arrays one after the other along an axis; with `axis=None`, all of their elements.

    >>> import undertow.array_api as xp
    >>> xp.concat([xp.asarray([1, 2]), xp.asarray([[3]])], axis=None)
    tensor([1, 2, 3])
    """
    parts = together(*arrays)
    if axis is None:
        return ut.cat([part.flatten() for part in parts])
    return ut.cat(parts, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Arrays of one shape along a new axis.

    >>> import undertow.array_api as xp
    >>> xp.stack([xp.asarray(1), xp.asarray(2)])
    tensor([1, 2])
    """
    return ut.stack(together(*arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis.

    >>> import undertow.array_api as xp
    >>> xp.unstack(xp.asarray([1, 2]))
    (tensor(1), tensor(2))
    """
    return ut.unbind(x, axis)


def expand_dims(x: Tensor, /, axis: int) -> Tensor:
    """A new axis of size one at this position.

    >>> import undertow.array_api as xp
    >>> xp.expand_dims(xp.ones(3), axis=0).shape
    (1, 3)
    """
    return ut.unsqueeze(x, axis)


def squeeze(x: Tensor, /, axis: Ints) -> Tensor:
    """Without these axes, which must have size one.

    >>> import undertow.array_api as xp
    >>> xp.squeeze(xp.ones((1, 3, 1)), axis=(0, 2)).shape
    (3,)
    """
    for a in (axis,) if isinstance(axis, int) else axis:
        size = x.shape[wrap_dim("squeeze", a, x.ndim)]
        if size != 1:
            raise ShapeError(f"[squeeze] axis {a} of shape {x.shape} has size {size}, not 1")
    return ut.squeeze(x, axis)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """The axes in another order.

    >>> import undertow.array_api as xp
    >>> xp.permute_dims(xp.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    return ut.permute(x, tuple(axes))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The matrices (the last two axes), transposed.

    >>> import undertow.array_api as xp
    >>> xp.matrix_transpose(xp.ones((4, 2, 3))).shape
    (4, 3, 2)
    """
    return x.mT


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """The same elements in another shape: a view (`copy=False`), a copy, or a view if possible.

    >>> import undertow.array_api as xp
    >>> xp.reshape(xp.arange(6), (2, -1)).shape
    (2, 3)
    """
    if copy is False:
        return x.view(shape)
    return ut.reshape(x.clone() if copy else x, tuple(shape))


def flip(x: Tensor, /, *, axis: Ints | None = None) -> Tensor:
    """The elements in reverse order along these axes, or along all.

    >>> import undertow.array_api as xp
    >>> xp.flip(xp.arange(3))
    tensor([2, 1, 0])
    """
    return ut.flip(x, tuple(range(x.ndim)) if axis is None else axis)


def roll(x: Tensor, /, shift: Ints, *, axis: Ints | None = None) -> Tensor:
    """The elements moved along axes, or along all as if flattened; what falls off comes first.

    >>> import undertow.array_api as xp
    >>> xp.roll(xp.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    if not isinstance(axis, (int, type(None))) and isinstance(shift, int):
        shift = (shift,) * len(axis)
    return ut.roll(x, shift, axis)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element, so many times.

    >>> import undertow.array_api as xp
    >>> xp.repeat(xp.asarray([1, 2]), xp.asarray([2, 1]))
    tensor([1, 1, 2])
    """
    times = repeats.long() if isinstance(repeats, Tensor) else repeats
    return ut.repeat_interleave(x, times, axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The whole, so many times along each axis.

    >>> import undertow.array_api as xp
    >>> xp.tile(xp.asarray([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    if not isinstance(repetitions, tuple):
        raise ArgumentError(f"[tile] repetitions must be a tuple, got {repetitions!r}")
    return ut.tile(x, repetitions)
