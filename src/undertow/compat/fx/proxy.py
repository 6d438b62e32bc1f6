"""`Proxy`: stands for a value while a function is traced, and writes down what is done with it."""

from __future__ import annotations

import collections
import copy
import dis
import enum
import inspect
import operator
import sys
import traceback
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from ...nn.parameter import Parameter
from ...utils._pytree import tree_leaves
from . import traceback as fx_traceback
from .calls import as_called
from .graph import Graph
from .node import Argument, Node, Target, base_types, map_aggregate, map_arg
from .operator_schemas import check_for_mutable_operation
from .operators import magic_methods, reflectable_magic_methods

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "ScopeContextManager",
    "TraceError",
    "TracerBase",
]

_HERE = str(Path(__file__).parent)
_LIBRARY = str(Path(__file__).parents[2])
_COPIED_META = ("nn_module_stack", "source_fn_stack", "from_node", "custom", "torch_fn")


class TraceError(ValueError):
    """What a trace cannot follow: control flow that depends on values."""


class Scope:
    """The module in which a node was made."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path = module_path
        self.module_type = module_type


class ScopeContextManager:
    """The scope as another one, until the end of a `with`."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._before = copy.copy(scope)
        self._scope = scope
        scope.module_path = current_scope.module_path
        scope.module_type = current_scope.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *error: object) -> None:
        self._scope.module_path = self._before.module_path
        self._scope.module_type = self._before.module_type


def assert_fn(x: Any) -> None:
    """What an `assert` becomes when a tracer has `trace_asserts`."""
    assert x


class TracerBase:
    """What every tracer does: makes nodes, proxies of them, and arguments out of values."""

    graph: Graph
    record_stack_traces: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: collections.OrderedDict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, Any]]

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A new node of the graph; override it to check or change what is recorded."""
        if kind == "call_function" and self.check_mutable_operations:
            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if fx_traceback.has_preserved_node_meta():
            known = fx_traceback.get_current_meta()
            if known.get("stack_trace"):
                node.stack_trace = known["stack_trace"]
            node.meta.update((f, copy.copy(known[f])) for f in _COPIED_META if f in known)
        elif self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not node.stack_trace:
            stack = self._user_stack()
            if stack:
                node.stack_trace = "".join(stack.format()).strip()
        return node

    def _user_stack(self) -> traceback.StackSummary | None:
        """The calls from the first `forward` on, without the tracer's own."""
        frames = traceback.extract_stack()
        names = [f.name for f in frames]
        if "forward" not in names:
            return None
        kept = [f for f in frames[names.index("forward") :] if not f.filename.startswith(_HERE)]
        kept = [f for f in kept if not f.filename.startswith(_LIBRARY)] or kept
        return traceback.StackSummary.from_list(kept)

    def proxy(self, node: Node) -> Proxy:
        """What stands for the value of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """A new node, given values and proxies, and what stands for its value."""
        given: Any = self.create_arg(args)
        named: Any = self.create_arg(kwargs)
        if not isinstance(given, tuple) or not isinstance(named, dict):
            raise AssertionError("[Tracer.create_arg] must keep tuples and dictionaries")
        node = self.create_node(kind, target, given, named, name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def _find_user_frame(self) -> Any:
        """The frame of the program that is traced."""
        frame = inspect.currentframe()
        while frame is not None and frame.f_code.co_filename.startswith(_LIBRARY):
            frame = frame.f_back
        return frame

    def create_arg(self, a: Any) -> Argument:
        """A value as a node's argument; override it for further types."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            values = [self.create_arg(v) for v in a]
            return type(a)(*values) if hasattr(a, "_fields") else tuple(values)
        if isinstance(a, list):
            return [self.create_arg(v) for v in a]
        if isinstance(a, dict):
            return {self._key(k): self.create_arg(v) for k, v in a.items()}
        if isinstance(a, slice):
            return slice(*[self.create_arg(v) for v in (a.start, a.stop, a.step)])
        if isinstance(a, range):
            return range(*[self.create_arg(v) for v in (a.start, a.stop, a.step)])
        if is_dataclass(a) and not isinstance(a, type):
            named = {f.name: self.create_arg(getattr(a, f.name)) for f in fields(a)}
            return self.create_node("call_function", type(a), (), named)
        if isinstance(a, (*base_types, enum.Enum)) or a is None or a is ...:
            return a
        if getattr(a, "_is_operator", False):  # a packet of `ops`
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        if isinstance(key, str):
            return key
        key = self.create_arg(key)

        def refuse(n: Node) -> Any:
            raise RuntimeError(
                f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}"
            )

        map_arg(key, refuse)
        return key

    def _where(self) -> str:
        """The line of the traced program, for errors."""
        frame = self._find_user_frame()
        if frame is None:
            return ""
        code = frame.f_code
        found = traceback.extract_stack(frame, limit=1)[-1].line or ""
        return f"\n  {code.co_filename}:{frame.f_lineno} in {code.co_name}: {found}"

    def to_bool(self, obj: Proxy) -> bool:
        """What `bool(proxy)` is: an error that names the line, unless overridden."""
        raise TraceError(
            "symbolically traced variables cannot be used as inputs to control flow" + self._where()
        )

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """What `iter(proxy)` is: an error, unless overridden."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a "
            "loop or as a *args or **kwargs function argument. Index it instead, as in "
            "proxy[0], or move the loop into a function that fx.wrap makes a leaf" + self._where()
        )

    def keys(self, obj: Proxy) -> Any:
        """What `proxy.keys()` is, also for `**proxy`: a recorded call, unless overridden."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """The tracer of proxies that are made outside of a trace: it adds to the graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        graph._expect_proxies()
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.node_name_to_scope = {}


class Proxy:
    """Stands for the value of a node: operators, methods, attributes and functions are recorded.

    A proxy around a node of a finished graph adds to that graph, where nodes are inserted now.

    >>> import undertow as ut
    >>> graph = ut.fx.symbolic_trace(lambda x: ut.relu(x)).graph
    >>> relu = graph.find_nodes(op="call_function", target=ut.relu)[0]
    >>> with graph.inserting_after(relu):
    ...     half = (ut.fx.Proxy(relu) * 0.5).node
    >>> _ = graph.output_node().replace_input_with(relu, half)
    >>> print(graph.python_code("self").src.strip())
    def forward(self, x):
        relu = torch.relu(x);  x = None
        mul = relu * 0.5;  relu = None
        return mul
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = tracer if tracer is not None else GraphAppendingTracer(node.graph)
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, d: dict[str, Any]) -> None:
        self.__dict__ = d

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        made: Proxy = type(self).__new__(type(self))
        for key, value in self.__dict__.items():
            try:
                made.__dict__[key] = copy.deepcopy(value, memo)
            except Exception:
                made.__dict__[key] = copy.copy(value)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        here = sys._getframe(1)
        step = _instruction(here)
        if step is not None and step[0].opname == "UNPACK_SEQUENCE":
            return (self[i] for i in range(step[0].argval))  # type: ignore[index]
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _in_assert(sys._getframe(1)):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """Recorded; see `Tracer.keys`."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, please call fx.wrap('len') at module scope" + self.tracer._where()
        )

    @classmethod
    def __torch_function__(
        cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None
    ) -> Proxy:
        """Record the call of a function or method of the library's."""
        args, kwargs = args or (), kwargs or {}
        tracers = {p.tracer: None for p in tree_leaves((args, kwargs)) if isinstance(p, Proxy)}
        map_aggregate(
            (args, kwargs), lambda a: isinstance(a, Proxy) and tracers.update({a.tracer: None})
        )
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace "
                f"operations {orig_method}"
            )
        tracer = next(iter(tracers))
        kind, target, args, kwargs = as_called(orig_method, args, kwargs)
        name = None
        if kind == "call_function":
            name = tracer.graph._target_to_str(target)
        return tracer.create_proxy(kind, target, args, kwargs, name=name)


class MetaProxy(Proxy):
    """A proxy whose node also knows an example of its value, in `meta["val"]`."""

    def __init__(self, node: Node, tracer: TracerBase | None = None, fake_mode: Any = None) -> None:
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self) -> str:
        return f"MetaProxy({self.node.name})"


class Attribute(Proxy):
    """An attribute of a proxy: a method if it is called, else a node when one is asked for."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node that reads the attribute."""
        if self._node is None:
            made = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {})
            self._node = made.node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A proxy of a parameter, whose shape is known while it is traced."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Parameter) -> None:
        super().__init__(node, tracer)
        if not isinstance(param, Parameter):
            raise AssertionError(f"[ParameterProxy] takes a Parameter, got {type(param)}")
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The shape of the parameter."""
        return self.param.shape

    def size(self, dim: int | None = None) -> Any:
        """The shape of the parameter."""
        return self.param.size() if dim is None else self.param.size(dim)

    def dim(self) -> int:
        """How many dimensions the parameter has."""
        return self.param.ndim

    @property
    def ndim(self) -> int:
        """How many dimensions the parameter has."""
        return self.param.ndim

    def numel(self) -> int:
        """How many elements the parameter has."""
        return self.param.numel()

    def nelement(self) -> int:
        """How many elements the parameter has."""
        return self.param.numel()


def _instruction(frame: Any) -> tuple[Any, list[Any], int] | None:
    """The instruction that a frame stands at, among all of its code."""
    steps = list(dis.get_instructions(frame.f_code))
    at = bisect_left(steps, frame.f_lasti, key=lambda s: s.offset)
    return (steps[at], steps, at) if at < len(steps) else None


def _in_assert(frame: Any) -> bool:
    """Whether a truth value is asked for by an `assert`."""
    found = _instruction(frame)
    if found is None:
        return False
    _, steps, at = found
    while at < len(steps) and "JUMP" not in steps[at].opname:
        at += 1
    if at == len(steps) or "IF_TRUE" not in steps[at].opname:
        return False
    # From 3.14 on NOT_TAKEN stands between, and the error is one of several constants.
    behind = next((s for s in steps[at + 1 :] if s.opname != "NOT_TAKEN"), None)
    return behind is not None and (
        behind.opname == "LOAD_ASSERTION_ERROR"
        or (behind.opname == "LOAD_COMMON_CONSTANT" and "AssertionError" in behind.argrepr)
    )


def _recorded(name: str) -> Callable[..., Proxy]:
    function = getattr(operator, name)

    def operation(*args: Any, **kwargs: Any) -> Proxy:
        return args[0].tracer.create_proxy("call_function", function, args, kwargs)

    operation.__name__ = name
    return operation


def _reflected(name: str) -> Callable[[Proxy, Any], Proxy]:
    function = getattr(operator, name)

    def operation(self: Proxy, rhs: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", function, (rhs, self), {})

    operation.__name__ = operation.__qualname__ = f"__r{name.strip('_')}__"
    return operation


for _name in magic_methods:
    if hasattr(operator, _name):
        setattr(Proxy, f"__{_name.strip('_')}__", _recorded(_name))
for _name in reflectable_magic_methods:
    if hasattr(operator, _name):
        setattr(Proxy, f"__r{_name.strip('_')}__", _reflected(_name))
