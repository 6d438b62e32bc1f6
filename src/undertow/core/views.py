"""The way of views through the door: the backend has looked, here the tensor and node are made.

Note [short views]
A view computes nothing, so all of it is overhead: NumPy's look at the memory takes 0.3
microseconds, and there is about one more for the rest. So a view goes one way, on every device:
  1. The op's function works out plain integers (`shapes`: an int is taken as it is), and asks the
     backend for the array, once; `reshape` answers at the same time whether there is a view.
  2. `viewed` brings the input up to date and makes the tensor with its Alias (`view_of`). There is
     nothing to `begin` on the device, and nothing to warn about.
  3. If the input has a history, the node saves the facts that a view's rule asks for: a shape, a
     parameter (`Plan.facts`), and never a tensor.
Several views that fill their input (`viewed_together`) are the same, with one node for all.
The step that an Alias keeps is (op, params), for `op.forward` to do it again; see Note [views].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..backends.registry import OF_CLASS, backend_of
from ..backends.wrapped import WRAPPERS
from .modes import current
from .op import Op
from .record import record_alone
from .tensor import Tensor, node_of, share, view_of


def viewed(op: Op, x: Tensor, array: Any, params: tuple[Any, ...]) -> Tensor:
    """`array`, which the view op `op` made of `x`, as a tensor, recorded if a gradient is wanted.

    See Note [short views].
    """
    state = current()
    if state.around is not None:
        out: Tensor = state.around(op, (x,), params)
        return out
    if array.__class__ not in OF_CLASS and array.backend.steps is not None:
        if array.backend is WRAPPERS:
            return WRAPPERS.steps(op, (x,), params)
        array = array.backend.of_view(op, x, array, params)
    if x._alias is None:
        share(x)
        node = x._node
    else:
        node = node_of(x)
    t = view_of(x, array, (op, params), state.grad)
    if node is not None and state.grad:
        record_alone(op, x, node, params, t)
    return t


def viewed_together(
    op: Op,
    x: Tensor,
    params: tuple[Any, ...],
    step: Op,
    look: Callable[[Any, Any], Any],
    places: Sequence[Any],
) -> tuple[Tensor, ...]:
    """Views of `x` that fill it, as outputs of one node of `op`.

    Each is `step` at its place, and of arrays `look(array, place)`.
    """
    state = current()
    array = x._array
    if state.around is not None or len(places) == 1 or backend_of(array).steps is not None:
        pieces = [viewed(step, x, look(array, place), (place,)) for place in places]
        node = node_of(x) if len(places) > 1 else None
    else:
        share(x)
        node = node_of(x)
        grad = state.grad
        pieces = [view_of(x, look(array, place), (step, (place,)), grad) for place in places]
    if node is not None and state.grad and pieces:
        record_alone(op, x, node, params, *pieces)
    return tuple(pieces)
