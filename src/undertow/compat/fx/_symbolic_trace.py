"""`symbolic_trace`: a function or module as a graph, by calling it with proxies."""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from ...core.overriding import watching
from ...core.tensor import Tensor
from ...nn.modules.container import Sequential
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from ...utils import _pytree as pytree
from .codegen import _PyTreeCodeGen, _PyTreeInfo
from .graph import Graph
from .graph_module import GraphModule
from .naming import PACKAGE, package
from .node import Argument, _side_effectful_functions, base_types
from .patching import (
    _autowrap_check,
    _find_proxy,
    _new_patcher,
    _patch_wrapped_functions,
    _Patcher,
    _wrapped_fns_to_patch,
)
from .patching import _create_wrapped_func as _create_wrapped_func
from .patching import _create_wrapped_method as _create_wrapped_method
from .patching import _maybe_revert_all_patches as _maybe_revert_all_patches
from .patching import _wrapped_methods_to_patch as _wrapped_methods_to_patch
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase

__all__ = [
    "PH",
    "PHBase",
    "PHWithMeta",
    "ProxyableClassMeta",
    "Tracer",
    "is_fx_symbolic_tracing",
    "is_fx_tracing",
    "symbolic_trace",
    "wrap",
]

T = TypeVar("T")
HAS_VARSTUFF = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_orig_module_call: Callable[..., Any] = Module.__call__
_orig_module_getattr = Module.__getattr__
_proxyable_classes: dict[type, None] = {}
_is_fx_tracing_flag = False


def is_fx_tracing() -> bool:
    """Whether a function is being traced.

    >>> import undertow as ut
    >>> from undertow.fx._symbolic_trace import is_fx_tracing
    >>> is_fx_tracing()
    False
    """
    return _is_fx_tracing_flag


is_fx_symbolic_tracing = is_fx_tracing


class ProxyableClassMeta(type):
    """A metaclass: making an instance out of proxies is recorded as a call of the class."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """An instance, or the proxy of one."""
        proxy = _find_proxy(args, kwargs) if is_fx_tracing() else None
        if proxy is not None:
            return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


class PHBase:
    """In `concrete_args`: this leaf stays an input."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """A `PH` whose attributes the node of the input gets."""

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


def _transfer_attrs(fr: Any, to: Any) -> None:
    for name in dir(fr):
        value = getattr(fr, name)
        if not callable(value) and not name.startswith("__") and not hasattr(to, name):
            setattr(to, name, value)


def _patch_function(fn: FunctionType, nargs: int) -> FunctionType:
    """`fn` with *args and **kwargs as ordinary parameters, so that a proxy can stand for each."""
    code = fn.__code__.replace(
        co_argcount=nargs,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=fn.__code__.co_flags & ~HAS_VARSTUFF,
    )
    return FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


class Tracer(TracerBase):
    """Traces functions and modules; subclass it to say which modules are leaves, and more.

    >>> import undertow as ut
    >>> class Everything(ut.fx.Tracer):
    ...     def is_leaf_module(self, m, module_qualified_name):
    ...         return False
    >>> model = ut.nn.Sequential(ut.nn.Linear(2, 3), ut.nn.ReLU())
    >>> [n.op for n in ut.fx.Tracer().trace(model).nodes]
    ['placeholder', 'call_module', 'call_module', 'output']
    >>> [n.op for n in Everything().trace(model).nodes]
    ['placeholder', 'get_attr', 'get_attr', 'call_function', 'call_function', 'output']
    """

    _qualname_counter: dict[str, int] = collections.defaultdict(int)  # noqa: RUF012

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self._autowrap_function_ids = {
            id(value)
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        } | {id(f) for f in autowrap_functions}
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope = {}
        self.root: Module

    # What may be overridden -----------------------------------------------------------------
    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a module is one node, not traced into: those of `nn`, but for Sequential."""
        return m.__module__.startswith((f"{PACKAGE}.nn", f"{PACKAGE}.ao.nn")) and not isinstance(
            m, Sequential
        )

    def path_of_module(self, mod: Module) -> str:
        """The name of a module below the one that is traced."""
        paths = self.submodule_paths or {m: n for n, m in self.root.named_modules()}
        if mod not in paths:
            raise NameError("module is not installed as a submodule")
        return paths[mod]

    def call_module(
        self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What a module returns: a node if it is a leaf, else what its `forward` does."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            calls = self.num_calls.get(path, 0)
            key = f"{scope.module_path}@{calls}" if calls else scope.module_path
            self.module_stack[key] = (path, scope.module_type)
            self.num_calls[path] = calls + 1
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.popitem(last=True)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What reading an attribute of a module gives: a proxy for parameters."""
        named: Iterable[tuple[str, Any]] = ()
        if isinstance(attr_val, Parameter):
            named = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            named = self.root.named_buffers()
        for name, value in named:
            if value is attr_val:
                if name not in parameter_proxy_cache:
                    more: dict[str, Any] = {}
                    if "proxy_factory_fn" in inspect.signature(self.create_proxy).parameters:
                        more["proxy_factory_fn"] = (
                            functools.partial(_parameter_proxy, self, name, attr_val)
                            if self.param_shapes_constant
                            else None
                        )
                    parameter_proxy_cache[name] = self.create_proxy(
                        "get_attr", name, (), {}, **more
                    )
                return parameter_proxy_cache[name]
        return attr_val

    def create_arg(self, a: Any) -> Argument:
        """A value as a node's argument; tensors become attributes of the module."""
        if isinstance(a, (Tensor, Module)):
            named: Any = self.root.named_buffers
            if isinstance(a, Parameter):
                named = self.root.named_parameters
            elif isinstance(a, Module):
                named = self.root.named_modules
            for name, value in named():
                if value is a:
                    return self.create_node("get_attr", name, (), {})
            if isinstance(a, Parameter):
                raise NameError("parameter is not a member of this module")
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            values = tuple(self.create_arg(v) for v in a)
            return self.create_node("call_function", type(a), values, {})
        if isinstance(a, (Tensor, pytree.TreeSpec)):
            name = next((n for v, n in self.tensor_attrs.items() if v is a), None)
            if name is None:
                tensor = isinstance(a, Tensor)
                name = self.get_fresh_qualname(
                    "_tensor_constant" if tensor else "_tree_spec_constant"
                )
                self.tensor_attrs[a] = name
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        if type(a) in _proxyable_classes:
            name = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name for a new attribute of the module that is traced."""
        if not hasattr(self.root, f"{prefix}0"):
            self._qualname_counter[prefix] = 0
            return f"{prefix}0"
        i = self._qualname_counter[prefix]
        while hasattr(self.root, f"{prefix}{i}"):
            i += 1
        self._qualname_counter[prefix] = i + 1
        return f"{prefix}{i}"

    # Inputs -----------------------------------------------------------------------------------
    def create_args_for_root(
        self,
        root_fn: Callable[..., Any],
        is_module: bool,
        concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
    ) -> tuple[Any, list[Any]]:
        """The function to call, and a proxy or a concrete value for each of its parameters."""
        inner = inspect.unwrap(root_fn)
        code = inner.__code__
        total = code.co_argcount + code.co_kwonlyargcount
        every = list(code.co_varnames)
        names = iter(code.co_varnames)
        args: list[Any] = []
        if is_module:
            if total == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            next(names)
            args.append(self.root)
        signature = inspect.signature(inner)
        if (
            isinstance(concrete_args, tuple)
            and concrete_args
            and code.co_flags & HAS_VARSTUFF
            and total == 1
        ):
            for i, concrete in enumerate(concrete_args):
                proxy = self.create_proxy("placeholder", f"input_{i}", (), {})
                if isinstance(concrete, PHBase) and concrete is not PH:
                    _transfer_attrs(concrete, proxy.node)
                args.append(proxy)
            return root_fn, args
        wanted = [next(names) for _ in range(int(is_module), total)]
        if isinstance(concrete_args, tuple):
            if len(wanted) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(wanted)} arguments but got {len(concrete_args)} "
                    "concrete arguments"
                )
            concrete_args = dict(zip(wanted, concrete_args, strict=True))
        for name in wanted:
            args.append(self._proxy_placeholder(name, concrete_args, signature, inner))
        if code.co_kwonlyargcount > 0 or code.co_flags & HAS_VARSTUFF:
            if code.co_flags & inspect.CO_VARARGS:
                star = f"*{next(names)}"
                args.append(self._proxy_placeholder(star, concrete_args, signature, inner))
            if code.co_flags & inspect.CO_VARKEYWORDS:
                star = f"**{next(names)}"
                args.append(self._proxy_placeholder(star, concrete_args, signature, inner))
            root_fn = _patch_function(root_fn, len(args))  # type: ignore[arg-type]
        flat, spec = pytree.tree_flatten(tuple(args))
        if all(child.is_leaf() for child in spec.children_specs):
            return root_fn, args
        codegen = _PyTreeCodeGen(_PyTreeInfo(every[:total], spec, None))
        self.graph._codegen = codegen

        def flatten_fn(*leaves: Any) -> Any:
            out = root_fn(*pytree.tree_unflatten(list(leaves), spec))
            found, out_spec = pytree.tree_flatten(out)
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return found

        flatten_fn.__annotations__ = {}  # the graph's output would get its type
        return flatten_fn, flat

    def _proxy_placeholder(
        self, name: str, concrete_args: Any, sig: inspect.Signature, fn_for_analysis: Any
    ) -> Any:
        default: tuple[Any, ...] = ()
        if not name.startswith("*"):
            given = sig.parameters[name].default
            default = () if given is inspect.Parameter.empty else (given,)
        if concrete_args is not None and name in concrete_args:
            count = 0

            def specialize(value: Any) -> Any:
                nonlocal count
                count += 1
                out = self.create_proxy("placeholder", f"{name}_{count}", default, {})
                if isinstance(value, PHBase):
                    if value is not PH:
                        _transfer_attrs(value, out.node)
                    return out
                self._assert_same(out, value, name)
                return value

            return pytree.tree_map(specialize, concrete_args[name])
        kind = _annotation(fn_for_analysis, name)
        return self.create_proxy("placeholder", name, default, {}, type_expr=kind)

    def _assert_same(self, given: Proxy, value: Any, name: str) -> None:
        """Record that an input must be what it was specialized to."""
        told = f"{name} has been specialized to have value {value} but got another value"
        if type(value) is bool or (type(value) in base_types and type(value) is not Tensor):
            check = package()._assert
            self.create_proxy("call_function", check, (given == value, told), {}, name="_assert")
        elif value is None:
            self.create_proxy("call_function", _assert_is_none, (given, told), {})
        else:
            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized "
                "function. It is up to the user to make sure that your inputs match the inputs "
                "you specialized the function with.",
                stacklevel=2,
            )

    # The trace --------------------------------------------------------------------------------
    def trace(self, root: Module | Callable[..., Any], concrete_args: Any = None) -> Graph:
        """The graph of a module's `forward` or of a function."""
        if isinstance(root, Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(
                    f"traced_func_name={self.traced_func_name} doesn't exist in "
                    f"{type(root).__name__}"
                )
            fn = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {m: name for name, m in root.named_modules()}
        else:
            self.root = Module()
            fn = root
        self.graph = Graph(tracer_cls=type(self))
        if not isinstance(fn, FunctionType):
            raise AssertionError(f"[fx.trace] takes a module or a function, got {type(fn)}")
        self.graph._co_fields = {
            name: getattr(fn.__code__, name)
            for name in ("co_name", "co_filename", "co_firstlineno")
        }
        self.tensor_attrs: Any = _ByIdentity()
        for path, module in self.root.named_modules():
            for key, value in vars(module).items():
                if isinstance(value, (Tensor, pytree.TreeSpec)):
                    self.tensor_attrs[value] = f"{path}.{key}" if path else key
        with _tracing(), watching():
            fn_globals = fn.__globals__
            fn, args = self.create_args_for_root(fn, isinstance(root, Module), concrete_args)
            with _new_patcher() as patcher:
                self._patch(patcher, fn_globals)
                result = self.create_arg(fn(*args))
                returns = _annotation(inspect.unwrap(fn), "return")
                self.create_node("output", "output", (result,), {}, type_expr=returns)
        self.submodule_paths = None
        return self.graph

    def _patch(self, patcher: _Patcher, fn_globals: dict[str, Any]) -> None:
        """Let modules tell of their calls and parameters, and leaves of theirs."""
        cache: dict[str, Any] = {}

        @functools.wraps(_orig_module_getattr)
        def module_getattr(mod: Module, attr: str) -> Any:
            return self.getattr(attr, _orig_module_getattr(mod, attr), cache)

        @functools.wraps(_orig_module_call)
        def module_call(mod: Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return _orig_module_call(mod, *args, **kwargs)

            known = getattr(getattr(mod, "forward", mod), "__globals__", {})
            _autowrap_check(patcher, known, self._autowrap_function_ids)
            return self.call_module(mod, forward, args, kwargs)

        patcher.patch_method(Module, "__getattr__", module_getattr, deduplicate=False)
        patcher.patch_method(Module, "__call__", module_call, deduplicate=False)
        _patch_wrapped_functions(patcher)
        _autowrap_check(patcher, fn_globals, self._autowrap_function_ids)
        for module in self._autowrap_search:
            _autowrap_check(patcher, vars(module), self._autowrap_function_ids)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        made = type(self).__new__(type(self))
        for key, value in vars(self).items():
            shallow = key == "_autowrap_search"  # modules cannot be copied
            vars(made)[key] = copy.copy(value) if shallow else copy.deepcopy(value, memo)
        return made


def _annotation(fn: Any, name: str) -> Any:
    """The type that a function says, also if it says it in a string; None for `Any`."""
    kind = getattr(fn, "__annotations__", {}).get(name)
    if fn is Sequential.forward:  # annotated here for checkers, and not in torch
        return None
    if isinstance(kind, str):
        try:
            kind = eval(kind, fn.__globals__)
        except Exception:
            return None
    return None if kind is Any else kind


def _parameter_proxy(tracer: Any, name: str, value: Any, node: Any) -> ParameterProxy:
    return ParameterProxy(tracer, node, name, value)


class _ByIdentity:
    """A dictionary whose keys are compared by identity: tensors compare their elements."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Any, str]] = {}

    def __setitem__(self, key: Any, value: str) -> None:
        self._kept[id(key)] = key, value

    def __getitem__(self, key: Any) -> str:
        return self._kept[id(key)][1]

    def __contains__(self, key: Any) -> bool:
        return id(key) in self._kept

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key, or `default`."""
        return self._kept.get(id(key), (None, default))[1]

    def items(self) -> list[tuple[Any, str]]:
        """Keys and values."""
        return list(self._kept.values())


@contextlib.contextmanager
def _tracing() -> Iterator[None]:
    global _is_fx_tracing_flag
    before, _is_fx_tracing_flag = _is_fx_tracing_flag, True
    try:
        yield
    finally:
        _is_fx_tracing_flag = before


def wrap(fn_or_name: T) -> T:
    r"""Make a global function, given itself or its name, a leaf of traces; for module level.

    >>> import undertow as ut
    >>> exec("import undertow as ut\nut.fx.wrap('len')\ndef f(x): return len(x)", space := {})
    >>> print(ut.fx.symbolic_trace(space["f"]).graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %len_1 : [num_users=1] = call_function[target=builtins.len](args = (%x,), kwargs = {})
        return len_1
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__  # type: ignore[attr-defined]
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def symbolic_trace(
    root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
) -> GraphModule:
    """A module that does what `root` does, with a graph that can be read and changed.

    `concrete_args` fixes parameters to values, so that control flow can depend on them; in
    containers, leaves that stay inputs are `fx.PH`.

    >>> import undertow as ut
    >>> def f(x, scale):
    ...     return ut.relu(x * scale) if scale else x
    >>> traced = ut.fx.symbolic_trace(f, concrete_args={"scale": 2})
    >>> traced(ut.tensor([-1.0, 3.0]), 2)
    tensor([0., 6.])
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


def _assert_is_none(value: Any, msg: str) -> None:
    assert value is None, msg


_wrapped_fns_to_patch[id(globals()), "_assert_is_none"] = globals()
_side_effectful_functions.update((package()._assert, _assert_is_none))
