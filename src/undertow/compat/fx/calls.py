"""What a call that `__torch_function__` tells of is in a graph: a function or a method."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from ...core.register import FUNCTIONS
from ...core.tensor import Tensor
from .naming import _NATIVE, PACKAGE, package

_FUNCTIONAL = f"{PACKAGE}.nn.functional"
_INPLACE_OPERATORS = {"__iadd__": "add_", "__isub__": "sub_", "__imul__": "mul_"} | {
    "__itruediv__": "div_"
}
_METHODS_OF_OPERATORS = (
    {f"__{name}__": name for name in ("add", "sub", "mul", "matmul", "eq", "ne", "lt", "le", "gt")}
    | {"__ge__": "ge", "__truediv__": "div", "__pow__": "pow"}
    | _INPLACE_OPERATORS
)


@functools.lru_cache(maxsize=1)
def _methods() -> dict[int, str]:
    """What only Tensor has, by identity, with its name."""
    found: dict[int, str] = {}
    for name, method in vars(Tensor).items():
        if callable(method) and getattr(package(), name, None) is not method:
            found.setdefault(id(method), name)
    return found


@functools.lru_cache(maxsize=1024)
def _defaults(function: Any) -> inspect.Signature:
    return inspect.signature(function)


def as_called(function: Any, args: Any, kwargs: Any) -> tuple[str, Any, Any, Any]:
    """The kind of node, its target and its arguments.

    Like torch's, functions of `nn.functional` that are written in Python are recorded with all
    their options, those that have a default by name: passes over graphs look for them there.
    """
    name = _methods().get(id(function))
    if name is not None:
        return "call_method", _METHODS_OF_OPERATORS.get(name, name), args, kwargs
    if (
        getattr(function, "__module__", "") == _FUNCTIONAL
        and function.__name__ not in _NATIVE
        and getattr(package().nn.functional, function.__name__, None) is function
    ):
        try:
            bound = _defaults(function).bind(*args, **kwargs)
        except TypeError:  # the call itself will tell
            return "call_function", function, args, kwargs
        bound.apply_defaults()
        known = bound.signature.parameters
        if all(p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in known.values()):
            given = bound.arguments
            needed = [n for n in given if known[n].default is inspect.Parameter.empty]
            options = {n: v for n, v in given.items() if n not in needed}
            return "call_function", function, tuple(given[n] for n in needed), options
    if function is FUNCTIONS["einsum"] and len(args) == 2 and isinstance(args[1], (list, tuple)):
        args = (args[0], *args[1])  # passes look for the operands there
    return "call_function", function, args, kwargs
