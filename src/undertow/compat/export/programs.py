"""`export`: the program of a call, from one recording, or from two where sizes vary.

Note [sizes of programs]
Where sizes vary the module is called with the given ones and with others. A number that is the same
in both calls is a constant of the program; one that is not must be a · size + b of one named size,
or of a product of two (as in `onnx`), and the program computes it. Then the program is held against
the module with further sizes, also with the least and the greatest that a `Dim` allows if those
inputs are not large: a difference, or an error of either, is an error here.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from math import prod
from typing import Any

from ...core.tensor import Tensor
from ...errors import ArgumentError, UnsupportedError
from ...nn.modules.module import Module
from ...onnx.graph import Axis, Formula
from ...onnx.graph import Graph as Sizes
from ...onnx.tracing import Value
from ...utils import _pytree as pytree
from ..fx.codegen import _PyTreeCodeGen, _PyTreeInfo
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..fx.recording import Builder, Recording, _shallow, input_names
from .dynamic_shapes import _MOST, Varying, varying
from .exported_program import CallSpec, ExportedProgram, Guard
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)

_PRIMES = (2, 3, 5, 7, 11)
_TRIED = 1 << 20  # inputs of more elements are not made to try a bound


def export(
    mod: Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    **options: Any,
) -> ExportedProgram:
    """The program of `mod(*args, **kwargs)`; sizes in `dynamic_shapes` may vary.

    The module is called, and what runs is recorded: branches are those that were taken, numbers
    those that were read. A module that changes its buffers is refused: put it into `eval()`.

    >>> import undertow as ut
    >>> batch = ut.export.Dim("batch")
    >>> model = ut.nn.Sequential(ut.nn.Flatten(), ut.nn.Linear(6, 2))
    >>> program = ut.export.export(model, (ut.ones(4, 2, 3),), dynamic_shapes=({0: batch},))
    >>> program.module()(ut.ones(7, 2, 3)).shape
    (7, 2)
    """
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise ArgumentError(f"[export] args must be a tuple, got {type(args).__name__}")
    kwargs = dict(kwargs or {})
    recording = Recording(mod, args, kwargs)
    tops = input_names(mod, _shallow(recording.in_spec))
    sizes = varying(args, kwargs, tops, dynamic_shapes)
    if any(not v.must for v in sizes):
        try:
            return _program(mod, args, kwargs, recording, sizes)
        except (UnsupportedError, ArgumentError):
            sizes = [v for v in sizes if v.must]
    return _program(mod, args, kwargs, recording, sizes)


def _program(
    mod: Module, args: Any, kwargs: Any, recording: Recording, sizes: list[Varying]
) -> ExportedProgram:
    names = input_names(mod, recording.in_spec)
    builder = _Lifting(recording, mod, names, sizes)
    builder.build()
    unlifted = builder.unlifted()
    guard = Guard(recording.in_spec, recording.leaves, names, builder.sizes)
    if sizes:
        for roots in _further(recording, sizes, builder.roots):
            _compare(mod, unlifted, recording, roots, sizes)
    lifted = GraphModule(builder.constants, builder.graph, "GraphModule")
    kept = mod.state_dict(keep_vars=True)
    others = {n: b for n, b in mod.named_buffers(remove_duplicate=False) if n not in kept}
    return ExportedProgram(
        lifted,
        ExportGraphSignature(builder.input_specs, builder.output_specs),
        dict(kept),
        {**others, **builder.lifted_constants},
        CallSpec(recording.in_spec, recording.out_spec),
        (args, kwargs),
        guard,
        unlifted,
    )


def _further(
    recording: Recording, sizes: list[Varying], first: dict[str, int]
) -> Iterator[dict[str, int]]:
    """Named sizes at which a program is tried: some next to the first, and the bounds."""
    for added in (1, 3):
        roots = {n: r + added * (i + 1) for i, (n, r) in enumerate(first.items())}
        yield _fitting(sizes, roots, first)
    least = {n: max([v.least for v in sizes if v.name == n]) or r for n, r in first.items()}
    most = {n: min([v.most for v in sizes if v.name == n]) for n in first}
    most = {n: first[n] if size == _MOST else size for n, size in most.items()}
    for roots in (least, most):
        if roots != first and _elements(recording, sizes, roots) <= _TRIED:
            yield roots


def _elements(recording: Recording, sizes: list[Varying], roots: dict[str, int]) -> int:
    """How many elements the inputs have at other sizes."""
    shapes = {i: list(x.shape) for i, x in enumerate(recording.leaves) if isinstance(x, Tensor)}
    for v in sizes:
        shapes[v.leaf][v.dim] = v.size(roots[v.name])
    return sum(map(prod, shapes.values()))


def _fitting(sizes: list[Varying], roots: dict[str, int], first: dict[str, int]) -> dict[str, int]:
    """Named sizes within their bounds."""
    found = {}
    for name, root in roots.items():
        least = max([v.least for v in sizes if v.name == name])
        most = min([v.most for v in sizes if v.name == name])
        if root > most:
            root = most if most != first[name] else max(least, first[name] - 1)
        found[name] = max(root, least)
    return found


def _resized(recording: Recording, sizes: list[Varying], roots: dict[str, int]) -> list[Any]:
    """The leaves of the inputs, repeated or cut to other sizes."""
    leaves = list(recording.leaves)
    for v in sizes:
        t, wanted = leaves[v.leaf], v.size(roots[v.name])
        times = [1] * t.ndim
        times[v.dim] = -(-wanted // max(t.shape[v.dim], 1))
        leaves[v.leaf] = t.detach().repeat(*times).narrow(v.dim, 0, wanted).contiguous()
    return leaves


def _compare(
    mod: Module, made: Module, recording: Recording, roots: dict[str, int], sizes: list[Varying]
) -> None:
    """Raise unless the program does what the module does with other sizes."""
    args, kwargs = pytree.tree_unflatten(_resized(recording, sizes, roots), recording.in_spec)
    wanted = pytree.tree_leaves(mod(*args, **kwargs))
    try:
        found = pytree.tree_leaves(made(*args, **kwargs))
        same = all(
            a.shape == b.shape and a.allclose(b, rtol=1e-3, atol=1e-4, equal_nan=True)
            if isinstance(a, Tensor)
            else a == b
            for a, b in zip(wanted, found, strict=True)
        )
    except Exception as error:
        raise UnsupportedError(f"[export] with sizes {roots} the program fails: {error}") from error
    if not same:
        raise UnsupportedError(
            f"[export] with sizes {roots} the program gives other values than the module: what it "
            "does depends on a size in a way that cannot be followed; make that size fixed"
        )


class _Lifting(Builder):
    """A builder whose state is inputs, and whose numbers follow sizes."""

    def __init__(
        self, recording: Recording, mod: Module, names: list[str], sizes: list[Varying]
    ) -> None:
        super().__init__(recording, mod)
        self.mod = mod
        self.names = names
        self.sizes = sizes
        self.input_specs: list[InputSpec] = []
        self.output_specs: list[OutputSpec] = []
        self.lifted_constants: dict[str, Any] = {}
        self.roots: dict[str, int] = {}
        for v in sizes:
            self.roots.setdefault(v.name, v.root(recording.leaves[v.leaf].shape[v.dim]))
        self._sources: dict[Axis, Node] = {}
        self._axes: Sizes | None = None

    def build(self) -> None:
        """The whole graph."""
        steps = list(self.recording.steps())
        others = self._others(len(steps))
        self._lift_state(steps)
        for i, node in enumerate(self.inputs(self.names)):
            arg: Any = ConstantArgument(node.name, self.recording.leaves[i])
            if i in self.recording.inputs:
                arg = TensorArgument(node.name)
            self.input_specs.append(InputSpec(InputKind.USER_INPUT, arg, None))
        for step, other in zip(steps, others or steps, strict=True):
            if step.op is not other.op:
                raise UnsupportedError(
                    f"[export] the ops that run depend on a size: {step.op.name} and "
                    f"{other.op.name}; make that size fixed"
                )
            if others:
                step = step._replace(
                    inputs=tuple(map(self._number, step.inputs, other.inputs)),
                    params=tuple(map(self._number, step.params, other.params)),
                )
            self.step(step)
        results = []
        for value in self.recording.outputs:
            node = self.of(value)
            results.append(node)
            arg = (
                TensorArgument(node.name) if isinstance(node, Node) else ConstantArgument("", node)
            )
            self.output_specs.append(OutputSpec(OutputKind.USER_OUTPUT, arg, None))
        self.graph.output(tuple(results))

    # State ----------------------------------------------------------------------------------------
    def _lift_state(self, steps: list[Any]) -> None:
        """Inputs for all parameters and buffers, and for the constants that are used."""
        values = {v.name: v for v in self.recording.trace.values if v.name and not v.varies}
        persistent = set(self.mod.state_dict(keep_vars=True))
        for kind, mark, named in (
            (InputKind.PARAMETER, "p", self.mod.named_parameters()),
            (InputKind.BUFFER, "b", self.mod.named_buffers()),
        ):
            for path, _ in named:
                node = self.graph.placeholder(f"{mark}_{path.replace('.', '_')}")
                kept = path in persistent if kind is InputKind.BUFFER else None
                self.input_specs.append(InputSpec(kind, TensorArgument(node.name), path, kept))
                if path in values:
                    self.lift(values[path], node)
        used = [v for step in steps for v in step.inputs if isinstance(v, Value)]
        for value in [*used, *[v for v in self.recording.outputs if isinstance(v, Value)]]:
            if id(value) in self.nodes or value.made_by is not None or value.varies:
                continue
            name = f"lifted_tensor_{len(self.lifted_constants)}"
            self.lifted_constants[name] = value.tensor
            node = self.graph.placeholder(f"c_{name}")
            self.lift(value, node)
            given = TensorArgument(node.name)
            self.input_specs.append(InputSpec(InputKind.CONSTANT_TENSOR, given, name))

    # Sizes ----------------------------------------------------------------------------------------
    def _others(self, count: int) -> list[Any] | None:
        """The steps of a second recording, with other sizes."""
        if not self.sizes:
            return None
        roots = {n: r * _PRIMES[i % 5] + i // 5 for i, (n, r) in enumerate(self.roots.items())}
        roots = _fitting(self.sizes, roots, self.roots)
        leaves = _resized(self.recording, self.sizes, roots)
        args, kwargs = pytree.tree_unflatten(leaves, self.recording.in_spec)
        try:
            second = Recording(self.mod, args, kwargs, warns=False)
        except Exception as error:
            raise UnsupportedError(
                f"[export] with sizes {roots} the module fails: {error}; make that size fixed"
            ) from error
        steps = list(second.steps())
        if len(steps) != count:
            raise UnsupportedError(
                f"[export] {count} ops run with sizes {self.roots}, {len(steps)} with {roots}; "
                "make that size fixed"
            )
        axes = [
            Axis(str(v.leaf), v.dim, v.name, v.size(self.roots[v.name]), v.size(roots[v.name]))
            for v in self.sizes
            if self.roots[v.name] != roots[v.name]
        ]
        self._axes = Sizes(axes, 18)
        return steps

    def _number(self, first: Any, second: Any) -> Any:
        """A parameter that is the first in one recording and the second in the other."""
        if isinstance(first, (tuple, list)):
            if type(first) is type(second) and len(first) == len(second):
                parts = [self._number(a, b) for a, b in zip(first, second, strict=True)]
                return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
        elif isinstance(first, slice) and isinstance(second, slice):
            ends = [(f.start, f.stop, f.step) for f in (first, second)]
            return slice(*map(self._number, *ends))
        elif isinstance(first, Value):
            if isinstance(second, Value):
                self._same_constant(first, second)
                return first
        elif first is second or (type(first) is type(second) and first == second):
            return first
        elif type(first) is int and type(second) is int:
            assert self._axes is not None
            fits = list(self._axes.fits(first, second))
            if fits:
                best = min(fits, key=lambda f: (abs(f.added), len(f.axes), f.factor, f.axes))
                return self._formula(best)
        raise UnsupportedError(
            f"[export] a parameter of an op is {first!r} with one size and {second!r} with "
            "another, which does not follow the size; make that size fixed"
        )

    def _same_constant(self, first: Value, second: Value) -> None:
        if first.varies or first.made_by is not None or first.name is not None:
            return
        a, b = first.tensor, second.tensor
        if a.shape != b.shape or not a.equal(b):
            raise UnsupportedError(
                f"[export] a constant tensor of shape {a.shape} depends on a size that varies; "
                "compute it with ops in forward, or make that size fixed"
            )

    def _formula(self, formula: Formula) -> Any:
        """The node of a number that follows sizes."""
        assert self._axes is not None
        made: Any = None
        for i in formula.axes:
            size = self._size(self._axes.axes[i])
            made = size if made is None else self._call(operator.mul, made, size)
        if formula.factor != 1:
            made = self._call(operator.mul, made, formula.factor)
        return self._call(operator.add, made, formula.added) if formula.added else made

    def _call(self, function: Any, *args: Any) -> Node:
        return self.graph.call_function(function, args)

    def _size(self, axis: Axis) -> Node:
        if axis not in self._sources:
            source = self.nodes[id(self.recording.inputs[int(axis.input)])]
            self._sources[axis] = self.graph.call_method("size", (source, axis.dim))
        return self._sources[axis]

    # The module -----------------------------------------------------------------------------------
    def unlifted(self) -> GraphModule:
        """The program with its state as attributes, and the containers of the call."""
        graph = Graph()
        attributes: dict[str, Any] = dict(self.constants)
        known: dict[Node, Node] = {}
        placeholders = [n for n in self.graph.nodes if n.op == "placeholder"]
        for node, spec in zip(placeholders, self.input_specs, strict=True):
            if spec.kind is InputKind.USER_INPUT:
                known[node] = graph.node_copy(node)
            else:
                assert spec.target is not None
                known[node] = graph.create_node("get_attr", spec.target)
                if spec.kind is InputKind.CONSTANT_TENSOR:
                    attributes[spec.target] = self.lifted_constants[spec.target]
                else:
                    attributes[spec.target] = self.root[spec.target]
        output = graph.graph_copy(self.graph, known)
        graph.output(output)
        spec_in = self.recording.in_spec
        tops = input_names(self.mod, _shallow(spec_in))
        info = _PyTreeInfo(tops, spec_in, self.recording.out_spec)
        graph.set_codegen(_PyTreeCodeGen(info))
        return GraphModule(attributes, graph)
