"""`undertow.func`: modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .core.tensor import Tensor
from .errors import ArgumentError, DTypeError
from .nn.modules.module import Module

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers, by name; it has its own again afterwards.

    A tensor that the module has under several names is replaced under all of them, unless
    `tie_weights=False`. `strict=True` wants every name.

    >>> import undertow as ut
    >>> layer = ut.nn.Linear(2, 1, bias=False)
    >>> w = ut.ones(1, 2, requires_grad=True)
    >>> y = ut.func.functional_call(layer, {"weight": w}, ut.tensor([[3.0, 4.0]]))
    >>> ut.autograd.grad(y.sum(), w)
    (tensor([[3., 4.]]),)
    """
    given: dict[str, Tensor] = {}
    dicts = parameter_and_buffer_dicts
    for part in [dicts] if isinstance(dicts, Mapping) else dicts:
        for name, value in part.items():
            if name in given:
                raise ArgumentError(f"[functional_call] {name!r} is given twice")
            if not isinstance(value, Tensor):
                raise DTypeError(
                    f"[functional_call] {name!r} must be a Tensor, got {type(value).__name__}"
                )
            given[name] = value
    own = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    unexpected = [name for name in given if name not in own]
    missing = [name for name in own if name not in given]
    if unexpected or (strict and missing):
        raise ArgumentError(
            f"[functional_call] {type(module).__name__} has no {unexpected}"
            if unexpected
            else f"[functional_call] with strict=True, {missing} of {type(module).__name__} miss"
        )
    if tie_weights:
        by_tensor = {id(own[name]): value for name, value in given.items()}
        given = {n: given.get(n, by_tensor.get(id(t), t)) for n, t in own.items()}
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    before: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for name, value in given.items():
            path, _, last = name.rpartition(".")
            holder = module.get_submodule(path)
            table: dict[str, Any] = (
                holder._parameters if last in holder._parameters else holder._buffers
            )
            before.append((table, last, table[last]))
            table[last] = value
        return module(*args, **(kwargs or {}))
    finally:
        for table, last, kept in reversed(before):
            table[last] = kept
