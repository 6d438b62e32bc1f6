"""A module as a function of its parameters and buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError
from ..modules.module import Module


def functional_call(
    module: Module,
    parameters_and_buffers: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in place of its parameters and buffers.

    They are given by their paths, those that are not given stay, and a tensor that the module has
    under several names is replaced under all of them unless `tie_weights` is False.

    >>> import undertow as ut
    >>> layer = ut.nn.Linear(2, 1)
    >>> other = {"weight": ut.ones(1, 2), "bias": ut.zeros(1)}
    >>> ut.nn.utils.stateless.functional_call(layer, other, ut.tensor([3.0, 4.0]))
    tensor([7.])
    """
    given = _merged(parameters_and_buffers)
    places = _places(module, given, tie_weights, strict)
    before = [register[name] for register, name, _ in places]
    try:
        for register, name, path in places:
            register[name] = given[path]
        args = () if args is None else args if isinstance(args, tuple) else (args,)
        return module(*args, **(kwargs or {}))
    finally:
        for (register, name, path), value in zip(places, before, strict=True):
            if register[name] is not given[path] and isinstance(parameters_and_buffers, dict):
                parameters_and_buffers[path] = register[name]  # a buffer that forward replaced
            register[name] = value


def _merged(given: Any) -> dict[str, Any]:
    parts = [given] if isinstance(given, Mapping) else given
    if not isinstance(parts, Sequence) or not all(isinstance(d, Mapping) for d in parts):
        raise DTypeError(
            "[functional_call] takes a dictionary of tensors by path, or several, got "
            f"{type(given).__name__}"
        )
    merged: dict[str, Any] = {}
    for path, value in [item for part in parts for item in part.items()]:
        if path in merged:
            raise ArgumentError(f"[functional_call] {path!r} is given twice")
        if not isinstance(value, Tensor):
            raise DTypeError(
                f"[functional_call] {path!r} must be a Tensor, got {type(value).__name__}"
            )
        merged[path] = value
    return merged


def _places(
    module: Module, given: dict[str, Any], tie_weights: bool, strict: bool
) -> list[tuple[dict[str, Any], str, str]]:
    """The registers and names to change, each with the path of what comes there."""
    own: dict[str, tuple[dict[str, Any], str]] = {}
    for prefix, below in module.named_modules(remove_duplicate=False):
        for register in (below._parameters, below._buffers):
            for name in register:
                own[f"{prefix}.{name}" if prefix else name] = (register, name)
    if tie_weights:
        ties: dict[int, list[str]] = {}
        for path, (register, name) in own.items():
            if register[name] is not None:
                ties.setdefault(id(register[name]), []).append(path)
        for paths in ties.values():
            named = [path for path in paths if path in given]
            if len(named) > 1 and any(given[path] is not given[named[0]] for path in named):
                raise ArgumentError(
                    f"[functional_call] {named} are one tensor in the module, and were given "
                    "different values; pass one of them, or tie_weights=False"
                )
            for path in paths if named else ():
                given.setdefault(path, given[named[0]])
    unexpected = [path for path in given if path not in own]
    if unexpected:
        raise ArgumentError(f"[functional_call] {type(module).__name__} has no {unexpected}")
    missing = [p for p, (register, n) in own.items() if p not in given and register[n] is not None]
    if strict and missing:
        raise ArgumentError(
            f"[functional_call] with strict=True, {missing} of {type(module).__name__} miss"
        )
    return [(*own[path], path) for path in given]
