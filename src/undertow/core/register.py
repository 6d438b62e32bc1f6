"""Public functions and Tensor methods: how an op's definition becomes `ut.add` and `x.add_`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from .dispatch import binary_door, elementwise, unary_door
from .inplace import inplace, inplace_door
from .op import Op
from .tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])

FUNCTIONS: dict[str, Callable[..., Any]] = {}  # undertow.<name>
FUNCTIONAL: dict[str, Callable[..., Any]] = {}  # undertow.nn.functional.<name>

_ALIASES = {"axis": "dim", "keepdims": "keepdim"}


def function(
    *,
    name: str | None = None,
    method: bool | str = True,
    inplace: bool = False,
    top: bool = True,
    functional: bool = False,
    dunder: str = "",
) -> Callable[[F], F]:
    """Publish a function.

    top: as `ut.name`; functional: as `ut.nn.functional.name`; method: as `Tensor.name` (or under
    the name given); inplace: also as `Tensor.name_`; dunder: operators such as "__add__".
    `axis` and `keepdims` are accepted for `dim` and `keepdim`.
    """

    def publish(fn: F) -> F:
        public = name or fn.__name__
        code = fn.__code__
        parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if "dim" in parameters or "keepdim" in parameters:
            fn = _with_aliases(fn)
        fn.__name__ = fn.__qualname__ = public
        fn.__module__ = "undertow.nn.functional" if functional and not top else "undertow"
        if top:
            _add(FUNCTIONS, public, fn)
        if functional:
            _add(FUNCTIONAL, public, fn)
        if method:
            attach(method if isinstance(method, str) else public, fn)
        if inplace:
            attach_inplace(public, fn)
        for operator in dunder.split():
            attach(operator, fn)
        return fn

    return publish


def alias(of: str, *names: str) -> None:
    """Publish a function, and its methods, under further names: `alias("mul", "multiply")`."""
    for name in names:
        if of in FUNCTIONS:
            _add(FUNCTIONS, name, FUNCTIONS[of])
        for suffix in ("", "_"):
            method = Tensor.__dict__.get(of + suffix)
            if method is not None:
                attach(name + suffix, method)


def attach(name: str, method: Any) -> None:
    """Give Tensor a method; a name that is taken is an error."""
    if name in Tensor.__dict__ and name not in ("__eq__", "__ne__"):
        raise ValueError(f"Tensor.{name} is defined already")
    setattr(Tensor, name, method)


def attach_inplace(name: str, fn: Callable[..., Any]) -> None:
    """Give Tensor the in-place method `name_`."""
    attach(f"{name}_", inplace(fn, f"{name}_"))


def _add(table: dict[str, Callable[..., Any]], name: str, fn: Callable[..., Any]) -> None:
    if name in table:
        raise ValueError(f"a function {name!r} is published already")
    table[name] = fn


def _with_aliases(fn: F) -> F:
    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            if kwargs.get("out", fn) is None:  # np.sum(tensor) calls tensor.sum(axis=…, out=None)
                del kwargs["out"]
            for alias in ("axis", "keepdims"):
                if alias in kwargs:
                    kwargs[_ALIASES[alias]] = kwargs.pop(alias)
        return fn(*args, **kwargs)

    return wrapped  # type: ignore[return-value]


def elementwise_function(
    op: Op,
    doc: str,
    *,
    name: str | None = None,
    method: bool | str = True,
    inplace: bool = False,
    top: bool = True,
    functional: bool = False,
    dunder: str = "",
) -> Callable[..., Tensor]:
    """Publish an elementwise op whose public signature is just its tensors; see `function`."""
    public = name or op.name
    doors = {1: unary_door, 2: binary_door}
    if op.arity in doors:
        door = doors[op.arity](op)
    else:

        def door(*operands: Any) -> Tensor:
            return elementwise(op, *operands)

    door.__doc__ = doc
    function(name=public, method=method, top=top, functional=functional, dunder=dunder)(door)
    if inplace:
        if op.arity == 2:
            attach(f"{public}_", inplace_door(op, door, f"{public}_"))
        else:
            attach_inplace(public, door)
    return door
