"""The recorded graph: its nodes and edges, and what becomes of the values that they save."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..core.dispatch import transfer
from ..core.modes import State, Switch
from ..core.node import Node
from ..core.tensor import Tensor, node_of, share
from ..errors import DTypeError, GradientError

__all__ = [
    "GradientEdge",
    "Node",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class GradientEdge(NamedTuple):
    """An output of a node; `grad` and `backward` take it in place of a tensor."""

    node: Node
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where `tensor` stands in the graph.

    >>> import undertow as ut
    >>> x = ut.tensor(3.0, requires_grad=True)
    >>> y = x * x
    >>> edge = ut.autograd.graph.get_gradient_edge(y)
    >>> ut.autograd.grad(edge, x)
    (tensor(6.),)
    """
    node = node_of(tensor)
    if node is None:
        raise GradientError(
            f"[get_gradient_edge] the tensor of shape {tensor.shape} does not require gradients"
        )
    return GradientEdge(node, tensor._index)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Say that the memory of a tensor was changed by other means, so that uses of it are checked.

    >>> import undertow as ut
    >>> x, y = ut.ones(2, requires_grad=True), ut.ones(2)
    >>> z = (x * y).sum()
    >>> y.numpy()[0] = 5  # nobody can see this
    >>> ut.autograd.graph.increment_version(y)
    >>> z.backward()
    Traceback (most recent call last):
    undertow.errors.VersionError: [mul] its input 'b' of shape (2,), saved at version 0 ...
    """
    tensors = [tensor] if isinstance(tensor, Tensor) else list(tensor)
    for t in tensors:
        if t.is_inference():
            raise GradientError("[increment_version] an inference tensor has no version")
    for t in tensors:
        share(t).version.value += 1


class saved_tensors_hooks(Switch):
    """Keep what operations save for their backward in a form of your own.

    `pack(tensor)` gets a tensor without history and returns anything; `unpack` gets that back and
    returns the tensor: the same shape, dtype, device and, to be right, the same numbers. They run
    without recording. The innermost pair applies; Functions and double backward use it too.

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0], requires_grad=True)
    >>> with ut.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), ut.tensor):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = ()

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        for hook in (pack_hook, unpack_hook):
            if not callable(hook):
                raise DTypeError(
                    f"[saved_tensors_hooks] a hook is callable, got {type(hook).__name__}"
                )
        super().__init__(pack=pack_hook, unpack=unpack_hook)

    def _next(self, state: State) -> State:
        if state.refuse is not None:
            raise GradientError(f"[saved_tensors_hooks] disabled here: {state.refuse}")
        return super()._next(state)


class save_on_cpu(saved_tensors_hooks):
    """Move what operations save to the CPU's memory, and back when the backward needs it.

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0], device="reference", requires_grad=True)
    >>> with ut.autograd.graph.save_on_cpu():
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad.device
    device(type='reference')
    """

    __slots__ = ()

    def __init__(self, pin_memory: bool = False, device_type: str = "") -> None:
        # Memory is pinned for GPUs; the devices of today have nothing to gain from it.
        super().__init__(
            lambda t: (t.device, transfer(t, "cpu")), lambda packed: transfer(packed[1], packed[0])
        )


class disable_saved_tensors_hooks(Switch):
    """Make entering `saved_tensors_hooks` an error with this message, inside or already entered.

    >>> import undertow as ut
    >>> with ut.autograd.graph.disable_saved_tensors_hooks("not in this block"):
    ...     with ut.autograd.graph.save_on_cpu():
    ...         pass
    Traceback (most recent call last):
    undertow.errors.GradientError: [saved_tensors_hooks] disabled here: not in this block
    """

    __slots__ = ()

    def __init__(self, error_message: str) -> None:
        super().__init__(refuse=str(error_message))

    def _next(self, state: State) -> State:
        if state.pack is not None:
            raise GradientError(f"[saved_tensors_hooks] in use, but {self._changes['refuse']}")
        return super()._next(state)
