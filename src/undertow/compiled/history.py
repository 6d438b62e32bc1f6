"""The history of what a compiled function returned: one node, whose backward is a program, too.

Note [two parts]
Where a function returns tensors with a history, its recording goes on: the backward is run once
from a cotangent of ones, as a second part of the same program. A call runs the first part and gives
its results one node. What the backward needs stays in the program's memory meanwhile, so a second
call that comes before the first one's backward, or before its results are gone, is an eager one.
With create_graph, and for cotangents inside of transforms, the function runs again, eagerly, and
that is differentiated.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np

from ..autograd.api import grad as gradients
from ..backends.cpu.codegen.jit import address
from ..backends.registry import CPU
from ..core.modes import current, enter
from ..core.node import Node
from ..core.tensor import Tensor, share, wrap
from ..errors import InplaceError, UnsupportedError
from ..utils._pytree import tree_flatten


class CompiledCall(Node):
    """See Note [two parts]."""

    __slots__ = ("call", "changed", "program", "tensors")

    def __init__(self, program: Any, tensors: Any, call: Any, metas: Any) -> None:
        parents, indices = [], []
        for kind, value in program.targets:
            t = tensors[value] if kind == "argument" else None
            parents.append(value if t is None else t._node)
            indices.append(0 if t is None else t._index)
        self._begin(tuple(parents), tuple(indices), metas)
        self.program, self.tensors, self.call = program, tensors, call
        self.changed: list[tuple[Any, int]] = []  # versions that must not change

    def name(self) -> str:
        return "CompiledBackward0"

    def keep(self, tensors: Any) -> None:
        """Notice changes of tensors until the backward."""
        for t in tensors:
            version = share(t).version
            self.changed.append((version, version.value))

    def materialize(self, grads: list[Any]) -> list[Any]:
        return [
            wrap(CPU.full(shape, 0, dtype)) if g is None else g
            for g, (shape, dtype) in zip(grads, self.metas, strict=True)
        ]

    def backward(self, grads: list[Any], wanted: Any) -> Any:
        if self.saved is None:
            raise self.freed()
        for version, value in self.changed:
            if version.value != value:
                raise InplaceError(
                    "[compile] a tensor that the backward of a compiled function needs was changed "
                    "in place since its forward; clone() it before changing it"
                )
        if current().grad or not all(isinstance(g._array, np.ndarray) for g in grads):
            return self._again(grads)
        program = self.program
        with program.lock:
            table, split = program.table, program.trace.split
            if not program.settled:  # an interrupt has ended the last backward
                table.rewrite()
            program.settled = False
            held = []
            for piece, g in zip(split.cotangents, grads, strict=True):
                array = g._array
                if array.strides != piece.strides:
                    array = CPU.copy(array)
                held.append(array)
                table.place(piece.store, address(array) - piece.offset)
            results = [program.results[p.store] for p in split.grads if p is not None]
            for result in results:
                result.renew()
            table.run_rest()
            found = [
                None if p is None else wrap(program.results[p.store].seen(p)) for p in split.grads
            ]
            for result in results:  # a leaf may keep it as it is
                result.array = None
            program.settled = True
        return found

    def _again(self, grads: list[Any]) -> Any:
        """Gradients that have a history: of a second, eager call."""
        program = self.program
        trace = program.trace
        if trace.recording.draws or trace.written or trace.recording.told:
            raise UnsupportedError(
                "[compile] create_graph, or a transform of the backward, through a compiled "
                "function that draws random numbers or changes tensors would have to run it "
                "again; call the function that was compiled"
            )
        function, args, kwargs = self.call
        state = current()
        enter(state.but(grad=True))
        try:
            outs = tree_flatten(function(*args, **kwargs))[0]
        finally:
            enter(state)
        outs = [t for t in outs if isinstance(t, Tensor) and t._node is not None]
        inputs = []
        for kind, value in program.targets:
            inputs.append(self.tensors[value] if kind == "argument" else value.leaf())
        return gradients(outs, inputs, grads, create_graph=state.grad, allow_unused=True)

    def release(self) -> None:
        self.saved = None
        self.tensors = self.call = None


def is_busy(reference: Any) -> bool:
    """Whether the memory of a program still belongs to an earlier call."""
    node = None if reference is None else reference()
    return node is not None and node.saved is not None


def attach(program: Any, tensors: Any, call: Any, arrays: list[Any]) -> list[Tensor]:
    """The results of a first part, with their history."""
    metas = tuple([(a.shape, a.dtype) for a in arrays])
    node = CompiledCall(program, tensors, call, metas)
    found = [wrap(a, node, i) for i, a in enumerate(arrays)]
    node.keep(program.needed)
    node.keep([tensors[j] for j in program.needed_arguments])
    node.keep([t for t, needed in zip(found, program.needed_results, strict=True) if needed])
    program.busy = ref(node)
    return found
