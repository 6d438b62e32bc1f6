"""Frames: one call of `vmap`, the arrays that it maps, and how several of them are nested.

Note [batches]
Inside of `vmap` a tensor has the shape of one element, and its array, a `BatchArray`, holds all of
them: `whole` has the elements along a dimension more, the first. What is equal for all elements has
a first dimension of size 1, and is computed once. The backend of such an array answers each form
by the same form on the whole; so every op can be mapped, and its derivative, too.

A nested `vmap` makes a batch of batches: the whole of the inner one's array is an array of the
outer one. The backend of an array is such a tower, (frame over frame over device); where arrays of
several towers meet, they are lifted to one that has the frames of all. A frame is known by its
place, the outermost first, and by itself: what left a `vmap` by another way than its result is met
by nobody.

At the door, lifting a tensor that has a history is an op (`core/batching`), whose derivative is the
sum over the batch. Inside of forms it is nothing but a dimension of size 1.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError, DeviceError
from ..base import Backend
from ..registry import backend_of
from ..strided import row_major
from .lifting import UnmappedWriteError

if TYPE_CHECKING:
    from .backend import BatchBackend


class Frame:
    """One call of `vmap`: how many elements it maps, and inside of how many others."""

    __slots__ = ("_made", "level", "outer", "randomness", "size")

    def __init__(self, size: int, outer: Frame | None, randomness: str = "error") -> None:
        self.size = size
        self.outer = outer
        self.level: int = 1 if outer is None else outer.level + 1
        self.randomness = randomness
        self._made: dict[Backend, BatchBackend] = {}

    def over(self, below: Backend) -> BatchBackend:
        """The backend whose arrays are batches of those of another one."""
        found = self._made.get(below)
        if found is None:
            from .backend import BatchBackend

            found = self._made[below] = BatchBackend(self, below)
        return found


class BatchArray:
    """Arrays of one shape, one for each element of a batch; see Note [batches].

    What is equal for all elements may become different ones when it is written to (`grow`), unless
    its memory is somebody else's; so a view of it follows what it is a view of.
    """

    __slots__ = (
        "__weakref__", "_how", "_parent", "_seen", "_whole", "backend", "dtype", "fresh", "shape",
        "size", "strides",
    )  # fmt: skip
    __array_ufunc__ = None  # NumPy must not compute on it by accident

    def __init__(self, whole: Any, backend: BatchBackend, fresh: bool = True) -> None:
        self._whole = whole
        self.backend = backend
        self.fresh = fresh
        self._parent: BatchArray | None = None
        self._seen: Any = None
        self._how: Callable[[Any], Any] | None = None
        self.dtype = whole.dtype
        self.shape = shape = whole.shape[1:]
        # NumPy's empty arrays may have strides of 0, as if elements shared memory.
        self.strides = whole.strides[1:] if whole.size else row_major(shape, self.dtype.itemsize)
        size = 1
        for n in shape:
            size *= n
        self.size = size

    @property
    def whole(self) -> Any:
        """All elements, along the first dimension; of size 1 where they are equal."""
        parent = self._parent
        if parent is not None and parent.whole is not self._seen:
            self._seen = parent.whole
            assert self._how is not None
            self._whole = self._how(self._seen)
        return self._whole

    @whole.setter
    def whole(self, whole: Any) -> None:
        self._whole = whole

    def seen(self, whole: Any, how: Callable[[Any], Any]) -> BatchArray:
        """The view `whole`, which `how` makes of the whole of this array."""
        view = BatchArray(whole, self.backend, self.fresh)
        if whole.shape[0] != self.backend.frame.size:
            view._parent, view._seen, view._how = self, self.whole, how
        return view

    def grow(self) -> None:
        """Give each element memory of its own."""
        if self._parent is not None:
            self._parent.grow()
        elif not self.fresh:
            raise UnmappedWriteError()
        else:
            k = self.backend.below
            whole = self._whole
            self._whole = k.copy(k.expand(whole, (self.backend.frame.size, *whole.shape[1:])))

    def __repr__(self) -> str:
        return f"<{self.dtype.name} array of shape {self.shape}, {self.backend.frame.size} times>"


# The innermost `vmap` that is running.
enclosing: ContextVar[Frame | None] = ContextVar("undertow_vmap", default=None)


def frames_of(array: Any) -> tuple[Frame, ...]:
    """The frames of an array's tower, the outermost first."""
    return backend_of(array).frames


def reframed(array: Any, frames: tuple[Frame, ...]) -> Any:
    """An array of a function's second run, as one of the frames that the first run had."""
    if frames_of(array) == frames or array.__class__ is not BatchArray:
        return array
    below = reframed(array.whole, frames[:-1])
    return BatchArray(below, frames[-1].over(backend_of(below)), False)


def towering(arrays: Any) -> Backend:
    """The backend that has the frames of all of these arrays."""
    frames: dict[int, Frame] = {}
    base: Backend | None = None
    for array in arrays:
        k = backend_of(array)
        for frame in k.frames:
            if frames.setdefault(frame.level, frame) is not frame:
                raise ArgumentError(
                    "[vmap] a tensor that another call of vmap mapped is used here; return it from "
                    "there, so that it becomes a whole tensor"
                )
        if base is None or base is k.base:
            base = k.base
        else:
            raise DeviceError(
                f"[vmap] expects all tensors on one device, got {base.device} and {k.base.device}"
            )
    assert base is not None
    for level in sorted(frames):
        base = frames[level].over(base)
    return base


def drawing(k: Backend) -> Backend:
    """A backend with the frames whose elements each have random numbers of their own."""
    for frame in _different():
        if frame not in k.frames:
            k = frame.over(k)
    return k


def _different() -> list[Frame]:
    """The enclosing frames whose elements draw different numbers, the outermost first."""
    found = []
    frame = enclosing.get()
    while frame is not None:
        if frame.randomness == "different":
            found.append(frame)
        frame = frame.outer
    return found[::-1]


def copies(k: Backend) -> int:
    """How many elements draw numbers of their own."""
    count = 1
    for frame in k.frames:
        if frame.randomness == "different":
            count *= frame.size
    for frame in _different():
        if frame not in k.frames:
            raise ArgumentError(
                "[vmap] random numbers that differ between elements are drawn into a tensor that "
                "is not mapped; make it from a mapped one"
            )
    return count
