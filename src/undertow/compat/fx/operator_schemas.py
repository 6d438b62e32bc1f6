"""Arguments held against signatures: which parameter each of them is."""

from __future__ import annotations

import inspect
import numbers
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

from ... import nn
from ...dtypes import DType

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]


class ArgsKwargsPair(NamedTuple):
    """Positional and keyword arguments."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _normalized(
    signature: inspect.Signature, args: Any, kwargs: Any, only_kwargs: bool
) -> ArgsKwargsPair | None:
    if any(p.kind not in _NAMED for p in signature.parameters.values()):
        return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    values = list(bound.arguments.items())
    count = 0 if only_kwargs else len(args)
    return ArgsKwargsPair(tuple(v for _, v in values[:count]), dict(values[count:]))


def _signature(target: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(inspect.unwrap(target))
    except (TypeError, ValueError):
        return None


def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: Any = None,
    kwarg_types: Any = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call under the names of the parameters, with defaults; None if unknown.

    >>> import undertow as ut
    >>> from undertow.fx.operator_schemas import normalize_function
    >>> normalize_function(ut.nn.functional.relu, (1,)).kwargs
    {'inplace': False}
    """
    signature = _signature(target)
    if signature is None:
        return None
    return _normalized(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def normalize_module(
    root: nn.Module,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The same of the call of a layer of `nn`; None for other modules."""
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not have that target!"
        ) from error
    if getattr(nn, type(module).__name__, None) is not type(module):
        return None
    signature = inspect.signature(module.forward)
    return _normalized(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """The signatures of a function, one here; there are no schemas."""
    signature = _signature(op)
    found = None if signature is None else [signature]
    return (found, None) if return_schemas else found


def check_for_mutable_operation(target: Callable[..., Any], args: Any, kwargs: Any) -> None:
    """Raise if a function of the library's changes an argument in place."""
    from .node import _changes_in_place

    name = getattr(target, "__name__", "")
    if _changes_in_place(target, name) or kwargs.get("out") is not None:
        raise RuntimeError(
            f"Tried to trace mutable operation {name}. FX only supports functional code, so "
            "operations that mutate operands in-place (e.g. via `out` arguments) are not supported"
        )


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether a value of one type may stand where a signature wants another."""
    if signature_type is argument_type:
        return True
    origin = typing.get_origin(signature_type)
    if origin is typing.Union:
        return any(type_matches(c, argument_type) for c in typing.get_args(signature_type))
    if origin is list:
        (wanted,) = typing.get_args(signature_type)
        if argument_type is int and wanted is int:
            return True
        if not inspect.isclass(wanted) or typing.get_origin(argument_type) not in (list, tuple):
            return False
        given = [a for a in typing.get_args(argument_type) if a not in (..., ())]
        return all(inspect.isclass(a) and issubclass(a, wanted) for a in given)
    if signature_type is int and argument_type is DType:
        return True
    if signature_type is numbers.Number and argument_type in (int, float):
        return True
    if inspect.isclass(argument_type) and inspect.isclass(signature_type):
        return issubclass(argument_type, signature_type)
    return False


def create_type_hint(x: Any) -> Any:
    """The type of a list or tuple of values of these types."""
    if not isinstance(x, (list, tuple)):
        return x
    element: Any = x[0] if x else Any
    for kind in x:
        if not (inspect.isclass(kind) and inspect.isclass(element)):
            element = Any
            break
        if issubclass(element, kind):
            element = kind
        elif not issubclass(kind, element):
            element = Any
            break
    return list[element] if isinstance(x, list) else tuple[element, ...]
