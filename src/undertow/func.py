"""`undertow.func`: modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .core.tensor import Tensor
from .nn.modules.module import Module
from .nn.utils import stateless

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
    return stateless.functional_call(
        module, parameter_and_buffer_dicts, args, kwargs, tie_weights=tie_weights, strict=strict
    )
