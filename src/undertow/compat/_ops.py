"""Operators by name: `ut.ops.aten.add.Tensor`, and those that `library` defines.

`ops.<namespace>.<name>` is a packet of overloads; an overload is called, and knows its schema. The
namespace `aten` has the functions of the package under torch's inner names, see `aten`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from ..amp.autocast_mode import autocast, is_autocast_enabled
from ..autograd.function import Function
from ..core.dispatching import dispatchers
from ..core.modes import current, is_grad_enabled, no_grad
from ..core.node import Barrier
from ..core.overriding import EVERYBODY, NOBODY, answer, overriders
from ..core.tensor import Tensor, node_of
from ..errors import ArgumentError, GradientError, UnsupportedError
from ..utils._pytree import tree_flatten, tree_leaves, tree_map_only, tree_unflatten
from . import _higher_order_ops
from .schemas import FunctionSchema, parse

__all__ = ["HigherOrderOperator", "OpOverload", "OpOverloadPacket", "OperatorBase"]

Kernel = Callable[..., Any]
IMPLICIT, EXPLICIT = "CompositeImplicitAutograd", "CompositeExplicitAutograd"
_below: ContextVar[bool] = ContextVar("below autograd", default=False)
_OVERLOADS: dict[str, OpOverload] = {}  # by "namespace::name.overload"
_EARLY: dict[str, dict[str, Kernel]] = {}  # kernels that were given before their operator was made


class LibraryError(UnsupportedError, OSError):
    """A compiled library that cannot be loaded."""


@contextmanager
def below_autograd() -> Iterator[None]:
    """A block in which operators run their kernels, and no rule for autograd."""
    token = _below.set(True)
    try:
        yield
    finally:
        _below.reset(token)


def who_overrides(args: Any, kwargs: dict[str, Any]) -> list[Any] | None:
    """The arguments that answer functions themselves, also for a mode; None if nobody does."""
    state = current()
    if _below.get() or state.asks >= NOBODY:
        return None
    found = overriders((*args, *kwargs.values())) if state.asks == EVERYBODY else []
    return found if found or state.function_modes else None


def standing_in(args: Any, kwargs: dict[str, Any]) -> Any:
    """An argument that is no Tensor and answers functions itself, as a tracer's proxy; or None."""
    found = overriders((*args, *kwargs.values()))
    return next((value for value in found if not isinstance(value, Tensor)), None)


class OperatorBase:
    """What every operator is: one of its kind, so that a copy of it is itself."""

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


class HigherOrderOperator(OperatorBase):
    """An operator that takes functions: `cond` and its kind."""

    def __init__(self, name: str, *, cacheable: bool = False) -> None:
        self.__name__ = self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(f"[{self._name}] has no kernel here")

    def name(self) -> str:
        """Its name."""
        return self._name


class OpOverload(OperatorBase):
    """One overload of an operator that `library` defined: a schema, and kernels by dispatch key."""

    def __init__(self, namespace: str, schema: FunctionSchema, strict: bool = False) -> None:
        self.namespace, self._schema = namespace, schema
        self._opname = schema.name.rpartition("::")[2]
        self._overloadname = schema.overload_name or "default"
        self.kernels: dict[str, Kernel] = {}
        self.rule: type[Function] | None = None
        self.strict = strict  # of `custom_op`: its results are memory of their own
        self.casts: dict[str, Any] = {}  # dtypes of arguments within autocast, by device type
        self.tags: tuple[Any, ...] = ()
        self.__name__ = f"{self._opname}.{self._overloadname}"
        self.__qualname__, self.__module__ = self.__name__, f"undertow.ops.{namespace}"

    def name(self) -> str:
        """`namespace::name.overload`, without the overload where it is the default."""
        tail = f".{self._schema.overload_name}" if self._schema.overload_name else ""
        return f"{self.namespace}::{self._opname}{tail}"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return (
            f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"
        )

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """All overloads of this name."""
        return namespace(self.namespace)._packet(self._opname)

    @property
    def is_view(self) -> bool:
        """Whether its result is a view of an argument."""
        return any(r.alias_info and not r.is_write for r in self._schema.returns)

    def has_kernel_for_dispatch_key(self, key: Any) -> bool:
        """Whether there is a kernel for a dispatch key."""
        return str(key).rpartition(".")[2] in self.kernels

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        asked = who_overrides(args, kwargs)
        if asked is not None:
            return answer(self, asked, args, kwargs)
        values, named = self._schema.bind(args, kwargs)
        for kind, dtype in self.casts.items():
            if is_autocast_enabled(kind):
                with autocast(kind, enabled=False):
                    cast = functools.partial(Tensor.to, dtype=dtype)
                    return self(*tree_map_only(_floats, cast, values), **named)
        tensors = [t for t in tree_leaves((values, named)) if isinstance(t, Tensor)]
        wanted = is_grad_enabled() and any(t.requires_grad for t in tensors)
        device = tensors[0].device.type if tensors else "cpu"
        key = device.upper() if device != "meta" else "Meta"
        if not _below.get():
            for autograd in (f"Autograd{key}", "Autograd"):
                if autograd in self.kernels:
                    return self.kernels[autograd](*values, **named)
            if IMPLICIT in self.kernels and key not in self.kernels:
                return self.kernels[IMPLICIT](*values, **named)
            if wanted and (self.rule is not None or self.strict):
                return _differentiated(self, self.rule or _no_rule(self), values, named)
        state = current()
        if state.dispatches:
            found = dispatchers((*values, *named.values()))
            if found or state.dispatch_modes:
                return answer(self, found, tuple(values), named, "dispatch")
        kernel = self.kernels.get(key) or self.kernels.get(EXPLICIT) or self.kernels.get(IMPLICIT)
        if kernel is None or (key == "Meta" and self.strict and key not in self.kernels):
            raise UnsupportedError(
                f"[{self.name()}] has no kernel for the device {device!r}; register one with "
                f"library.{'register_fake' if key == 'Meta' else 'register_kernel'}"
            )
        kept = getattr(state.around, "operator", None)  # of a selective checkpoint
        if kept is None or self._schema.is_mutable or (wanted and not _below.get()):
            result = kernel(*values, **named)
        else:
            result = kept(self, kernel, values, named)
        if self.strict:
            _check_results(self, result, tensors)
        elif wanted:
            _close(self, result, tensors)
        return result


def _floats(x: Any) -> bool:
    return isinstance(x, Tensor) and x.is_floating_point()


def _check_results(op: OpOverload, result: Any, tensors: list[Tensor]) -> None:
    """Results of a `custom_op` are no arguments: their derivatives would be lost."""
    for found in tree_leaves(result):
        if isinstance(found, Tensor) and any(found is t or found._base is t for t in tensors):
            raise ArgumentError(
                f"[{op.name()}] returns an argument or a view of one, and its schema says that it "
                "does not; return a clone()"
            )


def _close(op: OpOverload, result: Any, tensors: list[Tensor]) -> None:
    """A kernel of a `Library` without a rule: a backward goes through what it was made of.

    A backward through a result that came another way, through NumPy for one, is an error.
    """
    for found in tree_leaves(result):
        if _floats(found) and not found.requires_grad and all(found is not t for t in tensors):
            meta = tuple(found.shape), found._array.dtype
            sources = [(node_of(t), t._index) for t in tensors]
            found._node = Barrier(_without_rule(op), sources, meta)


def _differentiated(
    op: OpOverload, rule: type[Function], values: list[Any], named: dict[str, Any]
) -> Any:
    """The results of an operator with its rule in the graph: lists of tensors are taken apart."""
    flat, spec = tree_flatten(values, lambda value: value is not values and _is_whole(value))
    call = _Call(op, spec, named)
    results = rule.apply(*flat, call)
    return tree_unflatten(list(results) if isinstance(results, tuple) else [results], call.out)


class _Call:
    """What a rule is told of a call beside its tensors; `out` is the structure of the results."""

    out: Any

    def __init__(self, op: OpOverload, spec: Any, named: dict[str, Any]) -> None:
        self.op, self.spec, self.named = op, spec, named


def _is_whole(value: Any) -> bool:
    """Whether an argument is one to autograd: not a list of tensors."""
    return not isinstance(value, (list, tuple)) or any(
        v is not None and not isinstance(v, Tensor) for v in value
    )


@contextmanager
def _for_user(ctx: Any) -> Iterator[None]:
    """While a user's function has the context: `needs_input_grad` as the operator is called."""
    flags = list(ctx.needs_input_grad[:-1])
    ctx.needs_input_grad = tuple(tree_unflatten(flags, ctx._call.spec))
    try:
        yield
    finally:
        ctx.needs_input_grad = None


def make_rule(op: OpOverload, backward: Callable[..., Any], setup: Any) -> type[Function]:
    """The Function of an operator, out of what `register_autograd` was given."""
    by_name = any(a.kwarg_only for a in op._schema.arguments)

    class Rule(Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            call = ctx._call = args[-1]
            values = tree_unflatten(list(args[:-1]), call.spec)
            with below_autograd(), no_grad():
                result = call.op(*values, **call.named)
            leaves, call.out = tree_flatten(result)
            if setup is not None:
                more = {"keyword_only_inputs": call.named} if by_name else {}
                with _for_user(ctx):
                    setup(ctx=ctx, inputs=tuple(values), output=result, **more)
            return tuple(leaves) if len(leaves) != 1 else leaves[0]

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            given = tree_unflatten(list(grads), ctx._call.out)
            with _for_user(ctx):
                found = backward(ctx, *(given if isinstance(given, tuple) else (given,)))
            listed = found if isinstance(found, tuple) else (found,)
            flat: list[Any] = []
            for grad, child in zip(listed, ctx._call.spec.children_specs, strict=True):
                if child.is_leaf():
                    flat.append(grad)
                else:
                    flat += [None] * child.num_leaves if grad is None else list(grad)
            return *flat, None

    name = f"GeneratedBackwardFor_{op.namespace}_{op._opname}_{op._overloadname}"  # as in torch
    return type(name, (Rule,), {})


def _no_rule(op: OpOverload) -> type[Function]:
    def backward(ctx: Any, *grads: Any) -> Any:
        raise GradientError(_without_rule(op))

    return make_rule(op, backward, None)


def _without_rule(op: OpOverload) -> str:
    return (
        f"[{op.name()}] has no derivative; give it one with library.register_autograd, or detach "
        "its arguments"
    )


class OpOverloadPacket:
    """All overloads of one name; a call picks the first whose schema fits."""

    def __init__(self, namespace: str, name: str) -> None:
        self._qualified_op_name = f"{namespace}::{name}"
        self.__name__ = self._opname = name
        self.__module__ = f"undertow.ops.{namespace}"

    __copy__, __deepcopy__ = OperatorBase.__copy__, OperatorBase.__deepcopy__

    def __str__(self) -> str:
        return self._qualified_op_name.replace("::", ".")

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        start = f"{self._qualified_op_name}."
        return [n.removeprefix(start) for n in _OVERLOADS if n.startswith(start)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.overloads())

    def _overload(self, name: str) -> Any:
        return _OVERLOADS.get(f"{self._qualified_op_name}.{name}")

    def __getattr__(self, name: str) -> Any:
        found = None if name.startswith("__") else self._overload(name)
        if found is None:
            raise AttributeError(
                f"[ops] {self._qualified_op_name} has no overload {name!r}; it has "
                f"{', '.join(self.overloads()) or 'none'}"
            )
        self.__dict__[name] = found
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        asked = who_overrides(args, kwargs)
        if asked is not None:
            return answer(self, asked, args, kwargs)
        names = self.overloads()
        for name in names[:-1]:
            overload = getattr(self, name)
            if _fits(overload._schema, args, kwargs):
                return overload(*args, **kwargs)
        return getattr(self, names[-1])(*args, **kwargs)


def _fits(schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    try:
        values, named = schema.bind(args, kwargs)
    except ArgumentError:
        return False
    given = [*values, *named.values()]
    return all(
        isinstance(v, Tensor) == (a.type == "Tensor")
        for a, v in zip(schema.arguments, given, strict=True)
        if v is not None and "[" not in a.type
    )


class _OpNamespace:
    """The operators of one library: `ops.mylib`."""

    def __init__(self, name: str) -> None:
        self.name = self.__name__ = name

    def _packet(self, name: str) -> OpOverloadPacket:
        found: OpOverloadPacket = self.__dict__.setdefault(name, OpOverloadPacket(self.name, name))
        return found

    def __getattr__(self, name: str) -> Any:
        start = f"{self.name}::{name}."
        if self.name == "higher_order" and name in _higher_order_ops.__all__:
            return getattr(_higher_order_ops, name)
        if name.startswith("__") or not any(n.startswith(start) for n in _OVERLOADS):
            raise AttributeError(f"'_OpNamespace' {self.name!r} object has no attribute {name!r}")
        return self._packet(name)

    def __dir__(self) -> list[str]:
        start = f"{self.name}::"
        return sorted(
            {n[len(start) :].partition(".")[0] for n in _OVERLOADS if n.startswith(start)}
        )


_NAMESPACES: dict[str, Any] = {}


def namespace(name: str) -> Any:
    """`ops.<name>`, whether something is defined in it or not, as in torch."""
    if name not in _NAMESPACES:
        from .aten import Aten  # which needs what is here

        _NAMESPACES[name] = Aten() if name == "aten" else _OpNamespace(name)
    return _NAMESPACES[name]


def define(qualified: str, schema: str, strict: bool = False, tags: Any = ()) -> OpOverload:
    """Make an operator: `"lib::name.overload"` and what it takes and returns."""
    space, found, name = qualified.partition("::")
    if not found or not space or not name:
        raise ArgumentError(f"[library] an operator's name is 'library::name', got {qualified!r}")
    op = OpOverload(space, parse(f"{qualified}{schema}"), strict)
    full = f"{space}::{op._opname}.{op._overloadname}"
    op.tags = tuple(tags) if isinstance(tags, (tuple, list)) else (tags,)
    op.kernels |= _EARLY.pop(full, {})
    if full in _OVERLOADS and not strict:
        raise ArgumentError(f"[library] {qualified} is defined already")
    _OVERLOADS[full] = op
    packet = namespace(space)._packet(op._opname)
    packet.__dict__.pop(op._overloadname, None)
    return op


def forget(op: OpOverload) -> None:
    """Take an operator away."""
    _OVERLOADS.pop(f"{op.namespace}::{op.__name__}", None)
    namespace(op.namespace).__dict__.pop(op._opname, None)


def lookup(name: Any) -> OpOverload:
    """The operator of a name, or of an object that is one."""
    if isinstance(name, OpOverload):
        return name
    if isinstance(name, OpOverloadPacket):
        return lookup(f"{name._qualified_op_name}.default")
    if not isinstance(name, str):
        return lookup(name._opoverload)  # of a CustomOpDef
    space, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    found = _OVERLOADS.get(f"{space}::{base}.{overload or 'default'}")
    if found is None:
        raise ArgumentError(f"[library] there is no operator {name!r}; define it first")
    return found


def add_kernel(name: Any, key: str, kernel: Kernel) -> None:
    """Give an operator a kernel for a dispatch key, now or when it is made."""
    if isinstance(name, str) and "." not in name.partition("::")[2]:
        name = f"{name}.default"
    known = not isinstance(name, str) or name in _OVERLOADS
    kernels = lookup(name).kernels if known else _EARLY.setdefault(name, {})
    kernels[key] = kernel


def load_library(path: Any) -> None:
    """Torchvision's operators, written in ours, for its compiled file; an error for any other.

    >>> import undertow as ut
    >>> ut.ops.load_library("some_extension.so")
    Traceback (most recent call last):
    undertow.compat._ops.LibraryError: [ops.load_library] ...
    """
    if Path(path).parent.name == "torchvision" and Path(path).name.startswith("_C"):
        from .torchvision_ops import define_operators  # which needs what is here

        define_operators()
        return
    raise LibraryError(
        f"[ops.load_library] {path} is compiled for torch's own memory and cannot be loaded here; "
        "write the operator in Python with undertow.library.custom_op"
    )
