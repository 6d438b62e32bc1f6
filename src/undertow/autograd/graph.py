"""The recorded graph: its nodes and edges, and what becomes of the values that they save."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary, ref

from ..backends.locks import Lock
from ..backends.registry import backend_of
from ..core.dispatch import transfer
from ..core.modes import State, Switch, current, enter, leave
from ..core.node import AccumulateGrad, Node, RemovableHandle
from ..core.tensor import Tensor, node_of, share, wrap
from ..errors import ArgumentError, DTypeError, GradientError, ShapeError
from .engine import Run, accumulate, running

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
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


def _call(self: Node, *grad_outputs: Tensor | None) -> Any:
    """What the rule of this node alone makes of gradients of its outputs; no hook runs.

    The answer is one gradient for each input, None where none is wanted; of a leaf's node, the
    gradient is added to the leaf's.

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * 3).grad_fn(ut.tensor([1.0, 10.0]))
    (tensor([ 3., 30.]), None)
    """
    grads = list(grad_outputs)
    if len(grads) != len(self.metas):
        raise DTypeError(
            f"[{self.name()}] has {len(self.metas)} outputs, got {len(grads)} gradients"
        )
    for i, (grad, (shape, _)) in enumerate(zip(grads, self.metas, strict=True)):
        if grad is not None and tuple(grad.shape) != tuple(shape):
            raise ShapeError(
                f"[{self.name()}] gradient {i} has shape {tuple(grad.shape)}, the output "
                f"{tuple(shape)}"
            )
    arrived = any(g is not None for g in grads)
    if isinstance(self, AccumulateGrad):
        if grads[0] is not None:
            accumulate(self, grads, bare=False)
        return ()
    if not arrived and not self.runs_empty:
        return (None,) * len(self.parents) if len(self.parents) != 1 else None
    if any(g is None for g in grads):
        grads = self.materialize(grads)
    results = tuple(self.backward(grads, self.parents))
    return results if len(results) != 1 else results[0]


Node.__call__ = _call  # type: ignore[method-assign]  # here: core knows no engine


class _Handles(RemovableHandle):
    """Takes several hooks away at once."""

    __slots__ = ("_handles",)

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> RemovableHandle:
    """Call `fn(grads)` once per backward pass, when the gradients of all `tensors` are there.

    Tensors that a pass does not reach get None. With `mode="any"`, `fn(grad)` is called with the
    first gradient that is there.

    >>> import undertow as ut
    >>> a, b = (ut.tensor(v, requires_grad=True) for v in (2.0, 3.0))
    >>> handle = ut.autograd.graph.register_multi_grad_hook([a, b], print)
    >>> (a * b).backward()
    [tensor(3.), tensor(2.)]
    """
    given = list(tensors)
    if mode not in ("all", "any"):
        raise ArgumentError(f"[register_multi_grad_hook] mode must be 'all' or 'any', got {mode!r}")
    lock = Lock()
    arrived: WeakKeyDictionary[Run, list[tuple[int, Tensor | None]]] = WeakKeyDictionary()
    nodes = [ref(node) for node in (node_of(t) for t in given) if node is not None]
    if mode == "all" and len(nodes) < len(given):
        raise GradientError("[register_multi_grad_hook] a tensor does not require gradients")

    def hook_at(i: int) -> Callable[[Tensor | None], None]:
        def hook(grad: Tensor | None) -> None:
            run = running.get()
            assert run is not None
            with lock:
                found = arrived.setdefault(run, [])
                found.append((i, grad))
                count = len(found)
            if mode == "any":
                if count == 1:
                    fn(grad)
            elif count == sum(node() in run.task.numbers for node in nodes):
                grads: list[Tensor | None] = [None] * len(given)
                for j, g in found:
                    grads[j] = g
                fn(grads)

        return hook

    return _Handles(
        [t.register_hook(hook_at(i)) for i, t in enumerate(given) if node_of(t) is not None]
    )


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
    for t in [tensor] if isinstance(tensor, Tensor) else list(tensor):
        if not t.is_inference():  # which has none, and is never saved
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


class _SavedValue:
    """A tensor that a node saved: the user's memory, or a copy once that has been changed."""

    __slots__ = ("__weakref__", "tensor", "version")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.version = tensor._version


class _Rescue:
    """Copies what has been saved before it is changed in place."""

    def __init__(self) -> None:
        # By the id of the memory's version counter, which a saved value keeps alive.
        self._saved: dict[int, WeakSet[_SavedValue]] = {}
        self.cloned: WeakValueDictionary[int, Tensor] = WeakValueDictionary()  # copies in use

    @property
    def tid_to_weakhandle(self) -> dict[int, WeakSet[_SavedValue]]:
        """What is saved and has not been changed since, by memory; under torch's name."""
        return {memory: values for memory, values in self._saved.items() if len(values)}

    def pack(self, t: Tensor) -> _SavedValue:
        value = _SavedValue(t)
        self._saved.setdefault(id(share(t).version), WeakSet()).add(value)
        return value

    def unpack(self, value: _SavedValue) -> Tensor:
        return value.tensor

    def writing(self, t: Tensor) -> None:
        copies: dict[int, Tensor] = {}  # one for all that saved the same elements
        for value in self._saved.pop(id(share(t).version), ()):
            if value.tensor._version == value.version:  # else it is lost, and unpacking says so
                array = value.tensor._array
                copy = copies.get(id(array))
                if copy is None:
                    copy = copies[id(array)] = wrap(backend_of(array).copy(array))
                    self.cloned[id(copy)] = copy
                value.tensor = copy

    def clear(self) -> None:
        """Forget what has been saved: changing it is an error again."""
        self._saved.clear()


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_Rescue]:
    """Allow to change tensors in place that operations have saved; they are copied before.

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0], requires_grad=True)
    >>> with ut.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x.clone()
    ...     z = (y * y).sum()
    ...     _ = y.zero_()
    >>> z.backward()
    >>> x.grad
    tensor([2., 4.])
    """
    if current().writing is not None:
        raise GradientError("[allow_mutation_on_saved_tensors] cannot be nested")
    rescue = _Rescue()
    with saved_tensors_hooks(rescue.pack, rescue.unpack):
        token = enter(current().but(writing=rescue.writing))
        try:
            yield rescue
        finally:
            leave(token)


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
