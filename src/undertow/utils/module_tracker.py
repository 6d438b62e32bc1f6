"""`ModuleTracker`: which modules are running, in a forward or in a backward."""

from __future__ import annotations

from functools import partial
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

from ..autograd.engine import queue_callback, running
from ..autograd.graph import register_multi_grad_hook
from ..core.tensor import Tensor
from ..nn.modules.module import (
    Module,
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from ._pytree import tree_leaves

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """Knows, inside a `with` block, the names of the modules that are running: `parents`.

    The first module that is called goes by its class, those below by their path from there;
    "Global" is always there. A backward leaves a module when the gradients of its inputs are there.

    >>> import undertow as ut
    >>> class Net(ut.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = ut.nn.Linear(2, 2)
    ...
    ...     def forward(self, x):
    ...         print(sorted(tracker.parents))
    ...         return self.layer(x)
    >>> with ut.utils.module_tracker.ModuleTracker() as tracker:
    ...     _ = Net()(ut.ones(1, 2))
    ['Global', 'Net']
    """

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: WeakKeyDictionary[Module, str] = WeakKeyDictionary()
        self._told: WeakKeyDictionary[Module, None] = WeakKeyDictionary()  # whose children have one
        self._handles: list[Any] = []
        self._waits = False  # for the end of a backward

    @property
    def is_bw(self) -> bool:
        """Whether a backward is running."""
        return running.get() is not None

    def __enter__(self) -> ModuleTracker:
        self._handles = [
            register_module_forward_pre_hook(self._enters),
            register_module_forward_hook(self._leaves),
        ]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _name(self, module: Module) -> str:
        name = self._names.setdefault(module, type(module).__name__)
        if module not in self._told:
            self._told[module] = None
            for child, below in module.named_children():
                self._names[below] = f"{name}.{child}"
                self._name(below)
        return name

    def _enters(self, module: Module, inputs: Any) -> None:
        name = self._name(module)
        self.parents.add(name)
        self._when_there(inputs, partial(self._backward_leaves, name))

    def _leaves(self, module: Module, inputs: Any, output: Any) -> None:
        name = self._name(module)
        self.parents.discard(name)
        self._when_there(output, partial(self._backward_enters, name))

    def _when_there(self, values: Any, call: Any) -> None:
        """Call it when a backward has the gradients of these."""
        found = [t for t in tree_leaves(values) if isinstance(t, Tensor) and t.requires_grad]
        if found:
            self._handles.append(register_multi_grad_hook(found, call))

    def _backward_enters(self, name: str, grads: Any) -> None:
        if not self._waits:
            self._waits = True
            queue_callback(self._backward_ends)
        self.parents.add(name)

    def _backward_leaves(self, name: str, grads: Any) -> None:
        self.parents.discard(name)

    def _backward_ends(self) -> None:
        self.parents = {"Global"}
        self._waits = False
