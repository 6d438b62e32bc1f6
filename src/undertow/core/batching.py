"""Tensors into a batch and out of it: the ops between `vmap` and what is around it.

Each pair is a pair of adjoints, so derivatives go through in both directions; see Note [batches].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..backends.batch import Frame, UnmappedWriteError, drawing, frames_of, towering
from ..backends.batch.moving import joined, shared, split, summed, varies
from ..backends.dual import primal_of, tangents
from ..backends.registry import backend_of
from ..backends.wrapped import WRAPPERS
from ..errors import UnsupportedError
from .dispatch import apply
from .modes import current
from .op import Op
from .tensor import Tensor, differentiated, wrap

_into: Op = Op(
    "into_batch",
    split,
    inputs="x",
    params="frame dim",
    view=True,
    vjp={"x": lambda g, frame, dim: out_of_batch(g, frame, dim)},
)
_out: Op = Op(
    "out_of_batch",
    joined,
    inputs="x",
    params="frame dim",
    vjp={"x": lambda g, frame, dim: apply(_into, (g,), (frame, dim))},
    conjugate=False,
)
_seen: Op = Op(  # the same of a view of an argument, which is a view of that again
    "view_out_of_batch",
    joined,
    inputs="x",
    params="frame dim",
    view=True,
    vjp={"x": lambda g, frame, dim: apply(_into, (g,), (frame, dim))},
)
_lift: Op = Op(
    "lift",
    shared,
    inputs="x",
    params="frame",
    vjp={"x": lambda g, frame: apply(_sum, (g,), (frame,))},
    conjugate=False,
)
_sum: Op = Op(
    "sum_over_batch",
    summed,
    inputs="x",
    params="frame",
    vjp={"x": lambda g, frame: lifted(g, (frame,))},
    conjugate=False,
)


def into_batch(x: Tensor, frame: Frame, dim: int) -> Tensor:
    """`x` with a dimension mapped by `frame`."""
    if backend_of(x._array) is WRAPPERS and differentiated(x):
        raise UnsupportedError("[vmap] a wrapper that requires gradients cannot be in a batch")
    found: Tensor = apply(_into, (x,), (frame, dim))
    return found


def out_of_batch(x: Tensor, frame: Frame, dim: int) -> Tensor:
    """What `frame` maps as a dimension again; what it does not map is repeated."""
    dim = dim % (x.ndim + 1)
    x = lifted(x, (frame,))  # so that the gradient of what is repeated is a sum
    found: Tensor = apply(_out, (x,), (frame, dim))
    return found


def seen_out_of_batch(x: Tensor, frame: Frame, dim: int) -> Tensor:
    """The same as a view: of a tensor each of whose elements has memory of its own."""
    found: Tensor = apply(_seen, (x,), (frame, dim % (x.ndim + 1)))
    return found


def lifted(x: Tensor, frames: Sequence[Frame]) -> Tensor:
    """`x` as equal elements of the batches of these frames, where it is none of theirs."""
    k = backend_of(x._array)
    alone = [frame for frame in frames if frame not in k.frames]
    if not alone:
        return x
    if current().around is None and not differentiated(x):  # nobody needs an op
        array = x._array
        for frame in alone:
            array = shared(backend_of(array), array, frame)
        return wrap(array)
    for frame in alone:
        x = apply(_lift, (x,), (frame,))
    return x


def met(inputs: Sequence[Any]) -> list[Any]:
    """Inputs of several towers, lifted to one that has the frames of all."""
    k = towering([t._array for t in inputs if isinstance(t, Tensor)])
    return [lifted(t, k.frames) if isinstance(t, Tensor) else t for t in inputs]


def fitted(op: str, target: Any, source: Any) -> Any:
    """An array to be written into another one, which must not have more frames."""
    k = backend_of(target)
    if any(frame not in k.frames for frame in frames_of(source)):
        raise UnmappedWriteError(op)
    return k.lift(source)


def is_mapped(t: Tensor, frame: Frame) -> bool:
    """Whether the elements of `frame` may differ in a tensor, or in a tangent of its."""
    array = t._array
    return varies(primal_of(array), frame) or any(is_mapped(d, frame) for d in tangents(array))


def has_all(t: Tensor, frame: Frame) -> bool:
    """Whether each element of `frame` has memory of its own in a tensor."""
    return varies(primal_of(t._array), frame)


def for_drawing(x: Tensor) -> Tensor:
    """`x` for an op that draws random numbers for each element of a batch."""
    k = drawing(backend_of(x._array))
    return lifted(x, k.frames)


def differs(t: Tensor) -> bool:
    """Whether a tensor may have a value of its own for each element of some batch."""
    return any(is_mapped(t, frame) for frame in frames_of(t._array))
