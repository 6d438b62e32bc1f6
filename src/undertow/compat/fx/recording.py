"""A call of a function as a graph of the ops that ran, with real values in the place of proxies.

Unlike `symbolic_trace` it follows any Python: what is recorded is what happened, so branches are
those that were taken and numbers those that were read. The ops are the library's own, with the
parameters that they ran with.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...core.dispatch import apply
from ...core.modes import no_grad
from ...core.op import OPS, Op
from ...core.tensor import Tensor
from ...errors import UnsupportedError
from ...nn.modules.module import Module
from ...onnx.tracing import Call, Trace, Value
from ...utils import _pytree as pytree
from .codegen import _PyTreeCodeGen, _PyTreeInfo
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, base_types
from .proxy import Proxy


class OpCall:
    """An op of the library as a function: of its inputs, then of its parameters.

    >>> import undertow as ut
    >>> from undertow.fx.recording import op_call
    >>> op_call("mul")(ut.ones(2), 3.0)
    tensor([3., 3.])
    """

    _is_operator = True

    def __init__(self, op: Op) -> None:
        self.op = op
        self.__name__ = self.__qualname__ = op.name
        self.__module__ = __name__

    def __call__(self, *args: Any) -> Any:
        proxy = next((a for a in args if isinstance(a, Proxy)), None)
        if proxy is not None:
            return proxy.tracer.create_proxy("call_function", self, args, {}, name=self.__name__)
        args = tuple([a.value if isinstance(a, Kept) else a for a in args])
        count = len(args) - len(self.op.params)
        return apply(self.op, args[:count], tuple(args[count:]))

    def __repr__(self) -> str:
        return f"<op {self.__name__}>"

    def __reduce__(self) -> Any:
        return op_call, (self.__name__,)


class Kept:
    """A parameter of an op that code cannot write: an attribute of the module has it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __fx_create_arg__(self, tracer: Any) -> Any:
        name = next(name for name, value in vars(tracer.root).items() if value is self)
        return tracer.create_node("get_attr", name, (), {})


_calls: dict[str, OpCall] = {}


def op_call(name: str) -> OpCall:
    """The op of a name as a function."""
    if name not in _calls:
        _calls[name] = OpCall(OPS[name])
    return _calls[name]


def __getattr__(name: str) -> OpCall:
    if name in OPS:
        return op_call(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Flat:
    """A function of leaves, that calls one of trees, and shows the state of its module."""

    def __init__(self, fn: Any, spec: pytree.TreeSpec) -> None:
        self.fn = fn
        self.spec = spec
        if isinstance(fn, Module):
            self.named_parameters = fn.named_parameters
            self.named_buffers = fn.named_buffers
            self.named_modules = fn.named_modules

    def __call__(self, *leaves: Any) -> Any:
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return self.fn(*args, **kwargs)


@contextmanager
def _unchanged(fn: Any) -> Iterator[None]:
    """Refuse a module that changes its buffers, and give them back what they had."""
    buffers = list(fn.named_buffers()) if isinstance(fn, Module) else []
    before = [(name, b, b._version, b.detach().clone()) for name, b in buffers]
    try:
        yield
    finally:
        changed = [(name, b, kept) for name, b, version, kept in before if b._version != version]
        for _, buffer, kept in changed:
            with no_grad():
                buffer.copy_(kept)
    if changed:
        raise UnsupportedError(
            f"[export] the module changes its buffer {changed[0][0]!r} while it runs, which a "
            "recording cannot do again; call .eval() first"
        )


class Recording:
    """One call, as the parts of a graph: inputs, constants, steps, and what was returned."""

    def __init__(
        self,
        fn: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        what: str = "export",
        warns: bool = True,
    ) -> None:
        self.leaves, self.in_spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
        self.trace = Trace(what, warns)
        names = [str(i) for i, leaf in enumerate(self.leaves) if isinstance(leaf, Tensor)]
        with _unchanged(fn):
            out = self.trace.run(_Flat(fn, self.in_spec), self.leaves, names)
        self.results, self.out_spec = pytree.tree_flatten(out)
        self.inputs = {int(v.name): v for v in self.trace.values if v.varies and v.name is not None}
        self.outputs = [
            self.trace.find(r, "output") if isinstance(r, Tensor) else r for r in self.results
        ]

    def steps(self) -> Iterator[Call]:
        """The calls that the outputs need, in order."""
        kept: list[Call] = []
        wanted = {id(v) for v in self.outputs if isinstance(v, Value)}
        for call in reversed(self.trace.calls):
            if any(id(v) in wanted for v in call.outputs):
                kept.append(call)
                wanted.update(id(v) for v in call.inputs if isinstance(v, Value))
        yield from reversed(kept)


def input_names(fn: Any, in_spec: pytree.TreeSpec) -> list[str]:
    """A name for each leaf of the arguments, by the parameters of a function."""
    forward = fn.forward if isinstance(fn, Module) else fn
    try:
        parameters = list(inspect.signature(forward).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "arg")
    args, kwargs = in_spec.children_specs
    found: list[str] = []
    for i, child in enumerate(args.children_specs):
        found += _leaf_names(plain[i] if i < len(plain) else f"{rest}_{i - len(plain)}", child)
    for key, child in zip(kwargs.context or (), kwargs.children_specs, strict=True):
        found += _leaf_names(str(key), child)
    return found


def _leaf_names(name: str, spec: pytree.TreeSpec) -> list[str]:
    if spec.is_leaf():
        return [name]
    keys = spec.context if isinstance(spec.context, list) else range(len(spec.children_specs))
    return [
        n
        for k, c in zip(keys, spec.children_specs, strict=False)
        for n in _leaf_names(f"{name}_{k}", c)
    ]


class Builder:
    """Makes a graph of a recording; `states` are inputs of the graph instead of attributes."""

    def __init__(self, recording: Recording, fn: Any) -> None:
        self.recording = recording
        self.graph = Graph()
        self.nodes: dict[int, Node] = {}
        self.constants: dict[str, Any] = {}
        self.root = dict(_state(fn))

    def inputs(self, names: list[str]) -> list[Node]:
        """The placeholders of the leaves."""
        made = []
        for i, name in enumerate(names):
            node = self.graph.placeholder(name)
            value = self.recording.inputs.get(i)
            if value is not None:
                node.meta["val"] = value.tensor
                self.nodes[id(value)] = node
            made.append(node)
        return made

    def lift(self, value: Value, node: Node) -> None:
        """Let a node stand for a value."""
        node.meta["val"] = value.tensor
        self.nodes[id(value)] = node

    def of(self, value: Any) -> Any:
        """The node of a value; a constant becomes an attribute."""
        if not isinstance(value, Value):
            return value
        if id(value) not in self.nodes:
            named = value.name is not None
            made = self.graph.create_node("get_attr", value.name) if named else None
            self.lift(value, made or self.constant(value.tensor))
        return self.nodes[id(value)]

    def constant(self, value: Any) -> Node:
        """A node that reads a new attribute."""
        name = f"_{'tensor_' * isinstance(value, Tensor)}constant{len(self.constants)}"
        self.constants[name] = value
        return self.graph.create_node("get_attr", name)

    def step(self, call: Call) -> None:
        """The node of an op that ran."""
        params = [p if _is_plain(p) else self.constant(Kept(p)) for p in call.params]
        args = (*[self.of(v) for v in call.inputs], *params)
        made = self.graph.call_function(op_call(call.op.name), args, name=call.op.name)
        if len(call.outputs) == 1:
            self.lift(call.outputs[0], made)
        else:
            for i, value in enumerate(call.outputs):
                self.lift(value, self.graph.call_function(operator.getitem, (made, i)))
        if call.path:
            made.meta["nn_module_stack"] = {call.path: (call.path, None)}

    def module(self, name: str = "GraphModule") -> GraphModule:
        """The module of the graph."""
        return GraphModule(self.root | self.constants, self.graph, name)


def _is_plain(value: Any) -> bool:
    """Whether code can write a parameter of an op."""
    if isinstance(value, (tuple, list)):
        return all(map(_is_plain, value))
    if isinstance(value, slice):
        return all(map(_is_plain, (value.start, value.stop, value.step)))
    return value is None or value is ... or isinstance(value, (Node, *base_types))


def _state(fn: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(fn, Module):
        yield from fn.named_parameters(remove_duplicate=False)
        yield from fn.named_buffers(remove_duplicate=False)


def recorded(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> GraphModule:
    """A module that does what `fn(*args, **kwargs)` did, with that signature.

    >>> import undertow as ut
    >>> from undertow.fx.recording import recorded
    >>> def f(x, n):
    ...     for _ in range(n):
    ...         x = x * x
    ...     return {"result": x}
    >>> module = recorded(f, (ut.tensor(3.0), 2))
    >>> module(ut.tensor(2.0), 2)
    {'result': tensor(16.)}
    >>> [str(n.target) for n in module.graph.nodes if n.op == "call_function"]
    ['<op mul>', '<op mul>']
    """
    recording = Recording(fn, args, kwargs or {})
    builder = Builder(recording, fn)
    names = input_names(fn, recording.in_spec)
    builder.inputs(names)
    for call in recording.steps():
        builder.step(call)
    builder.graph.output([builder.of(v) for v in recording.outputs])
    spec = recording.in_spec
    top = input_names(fn, _shallow(spec))
    builder.graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(top, spec, recording.out_spec)))
    name = type(fn).__name__ if isinstance(fn, Module) else getattr(fn, "__name__", "GraphModule")
    return builder.module(name)


def _shallow(spec: pytree.TreeSpec) -> pytree.TreeSpec:
    """(args, kwargs) whose members are leaves."""
    leaf = pytree.tree_structure(0)
    parts = [
        pytree.TreeSpec(c.type, c.context, (leaf,) * len(c.children_specs))
        for c in spec.children_specs
    ]
    return pytree.TreeSpec(spec.type, spec.context, tuple(parts))
