"""`undertow.library`: operators of your own, in Python, that take part in autograd.

`custom_op` makes one from a function with annotations; `Library` from a schema. Either gets a
derivative by `register_autograd`. Without one, a backward through a `custom_op` is an error, and
one through a kernel of a `Library` goes through the ops that it is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import ArgumentError, UnsupportedError
from .._ops import EXPLICIT, IMPLICIT, OpOverload, add_kernel, forget, lookup, make_rule
from .._ops import define as _define
from ..schemas import infer_schema
from .checks import opcheck
from .custom import CustomOpDef, custom_op

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "get_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]

Function = Callable[..., Any]


class Library:
    """The operators of one namespace: `define` their schemas, `impl` their kernels.

    >>> import undertow as ut
    >>> lib = ut.library.Library("example_library", "DEF")
    >>> lib.define("twice(Tensor x) -> Tensor")
    'twice'
    >>> lib.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
    >>> ut.ops.example_library.twice(ut.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "IMPL", "FRAGMENT"):
            raise ArgumentError(f"[Library] kind is DEF, IMPL or FRAGMENT, got {kind!r}")
        if ns in ("prim", "prims") or (kind == "DEF" and ns == "aten"):
            raise ArgumentError(f"[Library] {ns!r} is torch's own; take another name")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._made: list[OpOverload] = []

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Make an operator of a schema, `name(Tensor x) -> Tensor`; its name comes back."""
        name, _, rest = schema.strip().partition("(")
        op = _define(f"{self.ns}::{name.strip()}", f"({rest}", tags=tags)
        self._made.append(op)
        return name.strip()

    def impl(
        self, op_name: Any, fn: Function, dispatch_key: str = "", *, with_keyset: bool = False
    ) -> None:
        """Give an operator a kernel for a device ("CPU"), or for all ("CompositeExplicit…")."""
        if with_keyset:
            raise UnsupportedError("[Library.impl] there are no sets of dispatch keys here")
        if not callable(fn):
            raise ArgumentError(f"[Library.impl] a kernel is a function, got {type(fn).__name__}")
        name = op_name if isinstance(op_name, str) else lookup(op_name).name()
        if "::" not in name:
            name = f"{self.ns}::{name}"
        if name.startswith("aten::"):
            raise UnsupportedError(
                f"[Library.impl] {name} is a function of the library's own and stays what it is"
            )
        add_kernel(name, dispatch_key or self.dispatch_key or IMPLICIT, fn)

    def fallback(self, fn: Function, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """An error: there is no dispatcher to fall back from."""
        raise UnsupportedError(
            "[Library.fallback] there is no dispatcher; use impl for each operator"
        )

    def _destroy(self) -> None:
        """Take its operators away."""
        for op in self._made:
            forget(op)
        self._made.clear()


@contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A `Library` whose operators are there while the block lasts."""
    made = Library(*args, **kwargs)
    try:
        yield made
    finally:
        made._destroy()


def fallthrough_kernel() -> None:
    """A kernel that lets the next one run; there is none to give here."""
    raise UnsupportedError("[fallthrough_kernel] kernels are not stacked here")


def _key(device: str) -> str:
    return EXPLICIT if device == "default" else "Meta" if device == "meta" else device.upper()


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Make an operator: `define("lib::name", "(Tensor x) -> Tensor")`; `impl` gives it a kernel.

    >>> import undertow as ut
    >>> ut.library.define("example_defined::half", "(Tensor x) -> Tensor")
    >>> @ut.library.impl("example_defined::half", "cpu")
    ... def half(x):
    ...     return x / 2
    >>> ut.ops.example_defined.half(ut.tensor([4.0]))
    tensor([2.])
    """
    if isinstance(qualname, Library):  # the older form: define(lib, schema, …) decorates a kernel
        name = qualname.define(schema)
        made = qualname

        def decorate(fn: Function) -> Function:
            made.impl(name, fn)
            return fn

        return decorate
    op = _define(qualname, schema, tags=tags)
    if lib is not None:  # which takes it away with its own
        lib._made.append(op)
    return None


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Library | None = None) -> Any:
    """Give an operator a kernel for devices: "cpu", ("cpu", "cuda") or "default" for all."""
    if isinstance(qualname, Library):  # the older form: impl(lib, name, dispatch_key)
        made, key = qualname, func or ""

        def decorate(fn: Function) -> Function:
            made.impl(types, fn, key)
            return fn

        return decorate

    def register(fn: Function) -> Function:
        for kind in [types] if isinstance(types, str) else types:
            add_kernel(qualname, kind if kind[:1].isupper() else _key(kind), fn)
        return fn

    return register if func is None else register(func)


def register_kernel(
    op: Any, device_types: Any, func: Function | None = None, /, *, lib: Any = None
) -> Any:
    """Give an operator a kernel for device types; None is for all."""

    def register(fn: Function) -> Function:
        if isinstance(op, CustomOpDef):
            return op.register_kernel(device_types, fn)
        return impl(lookup(op), "default" if device_types is None else device_types, fn)

    return register if func is None else register(func)


def register_fake(op: Any, func: Function | None = None, /, *, lib: Any = None, **more: Any) -> Any:
    """Say what an operator returns for tensors without elements (of the device `meta`)."""

    def register(fn: Function) -> Function:
        add_kernel(op, "Meta", fn)
        return fn

    return register if func is None else register(func)


impl_abstract = register_fake


def register_autograd(
    op: Any, backward: Function, /, *, setup_context: Function | None = None, lib: Any = None
) -> None:
    """Give an operator a derivative: `backward(ctx, *grads)`, with what `setup_context` kept.

    >>> import undertow as ut
    >>> @ut.library.custom_op("example_autograd::cube", mutates_args=())
    ... def cube(x: ut.Tensor) -> ut.Tensor:
    ...     return ut.from_numpy(x.detach().numpy() ** 3)
    >>> def setup(ctx, inputs, output):
    ...     ctx.save_for_backward(*inputs)
    >>> def backward(ctx, grad):
    ...     return 3 * ctx.saved_tensors[0] ** 2 * grad
    >>> ut.library.register_autograd("example_autograd::cube", backward, setup_context=setup)
    >>> x = ut.tensor([2.0], requires_grad=True)
    >>> cube(x).backward()
    >>> x.grad
    tensor([12.])
    """
    found = lookup(op)
    if found._schema.is_mutable:
        raise ArgumentError(
            f"[register_autograd] {found.name()} changes its arguments and can have no derivative; "
            "return new tensors"
        )
    found.rule = make_rule(found, backward, setup_context)


def register_vmap(op: Any, func: Function | None = None, /, *, lib: Any = None) -> Any:
    """Accepted: `func.vmap` calls an operator for every element and needs no rule."""
    lookup(op)
    return (lambda fn: fn) if func is None else func


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Cast the floating-point arguments of an operator within `autocast` of a device type."""
    lookup(op).casts[device_type] = cast_inputs


def register_torch_dispatch(
    op: Any, torch_dispatch_class: Any, func: Function | None = None, /, *, lib: Any = None
) -> Any:
    """What an operator does for a class with `__torch_dispatch__`, instead of asking that.

    `func(cls_or_mode, op, types, args, kwargs)` is called for arguments of that very class, or
    while a mode of it is on.
    """
    found = lookup(op)

    def register(fn: Function) -> Function:
        found.__dict__.setdefault("dispatched", {})[torch_dispatch_class] = fn
        return fn

    return register if func is None else register(func)


def get_ctx() -> Any:
    """The context of a function of `register_fake`: sizes that depend on elements are not known."""
    raise UnsupportedError("[library.get_ctx] sizes that depend on elements are not followed here")


def get_kernel(op: Any, dispatch_key: Any) -> Function:
    """The kernel of an operator for a dispatch key."""
    found, key = lookup(op), str(dispatch_key).rpartition(".")[2]
    kernel = found.kernels.get(key) or found.kernels.get(EXPLICIT)
    if kernel is None:
        raise ArgumentError(f"[get_kernel] {found.name()} has no kernel for {key}")
    return kernel


def triton_op(
    name: str, fn: Any = None, /, *, mutates_args: Iterable[str] | str, schema: Any = None
) -> Any:
    """An operator that launches kernels of Triton: refused when it is called."""

    def decorate(fn: Function) -> Function:
        def refuse(*args: Any, **kwargs: Any) -> Any:
            raise UnsupportedError(f"[{name}] kernels of Triton do not run here; use custom_op")

        return refuse

    return decorate if fn is None else decorate(fn)


def wrap_triton(triton_kernel: Any, /) -> Any:
    """An error: kernels of Triton do not run here."""
    raise UnsupportedError("[wrap_triton] kernels of Triton do not run here; use custom_op")
