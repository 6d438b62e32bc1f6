"""Arrays into a batch and out of it; see Note [batches]."""

from __future__ import annotations

from typing import Any

from ..base import Array, Forms
from ..registry import backend_of
from .frames import BatchArray, Frame


def split(k: Forms, x: Array, frame: Frame, dim: int) -> Array:
    """The elements along a dimension as a batch."""
    order = (dim, *[d for d in range(len(x.shape)) if d != dim])
    return BatchArray(k.permute(x, order), frame.over(k), False)


def joined(k: Forms, x: Array, frame: Frame, dim: int) -> Array:
    """The elements of a batch along a new dimension."""
    if frame not in k.frames:
        whole = k.expand(k.slice(x, (None, ...)), (frame.size, *x.shape))
    else:
        whole = _outermost(x, frame)
    below = backend_of(whole)
    order = (*range(1, dim + 1), 0, *range(dim + 1, len(whole.shape)))
    return below.permute(whole, order)


def _outermost(x: Array, frame: Frame) -> Array:
    """The whole of a batch by `frame`, which may have other batches around it."""
    k = x.backend
    if k.frame is frame:
        return k.full_size(x)
    inner = _outermost(x.whole, frame)  # the element's dimension of `frame` before that of k
    below = backend_of(inner)
    order = (1, 0, *range(2, len(inner.shape)))
    return BatchArray(below.permute(inner, order), k.frame.over(below))


def shared(k: Any, x: Array, frame: Frame) -> Array:
    """One array as a batch of equal ones."""
    if frame in k.frames:
        return x
    if k.frames and k.frames[-1].level > frame.level:
        inner = backend_of(x.whole)
        found = shared(inner, x.whole, frame)
        return BatchArray(found, k.frame.over(backend_of(found)), False)
    return BatchArray(k.slice(x, (None, ...)), frame.over(k), False)


def summed(k: Any, x: Array, frame: Frame) -> Array:
    """The sum over a batch."""
    if frame not in k.frames:
        whole = k.expand(k.slice(x, (None, ...)), (frame.size, *x.shape))
        return k.reduce("sum", whole, (0,), False)
    k = x.backend
    if k.frame is frame:
        return k.below.reduce("sum", k.full_size(x), (0,), False)
    found = summed(k.below, x.whole, frame)
    return BatchArray(found, k.frame.over(backend_of(found)))


def varies(array: Any, frame: Frame) -> bool:
    """Whether the elements of a frame may differ in an array."""
    while array.__class__ is BatchArray:
        if array.backend.frame is frame:
            return bool(array.whole.shape[0] != 1 or frame.size == 1)
        array = array.whole
    return False
