"""What compiled functions and modules are in torch; none is made here."""

from __future__ import annotations

from typing import Any

from ...errors import UnsupportedError
from ...nn.modules.module import Module
from ..compiler import allow_in_graph, disable

__all__ = ["OptimizedModule", "disable", "innermost_fn", "is_dynamo_supported"]


class OptimizedModule(Module):
    """No module is one, since `ut.compile` gives back what it was given.

    >>> import undertow as ut
    >>> isinstance(ut.compile(ut.nn.Linear(2, 2)), ut._dynamo.OptimizedModule)
    False
    """

    def __init__(self, mod: Any = None, dynamo_ctx: Any = None) -> None:
        raise UnsupportedError("[OptimizedModule] nothing is compiled here; keep the module itself")


def is_dynamo_supported() -> bool:
    """Whether functions can be compiled: no."""
    return False


def check_if_dynamo_supported() -> None:
    """An error: functions cannot be compiled."""
    raise UnsupportedError("[torch.compile] functions are not compiled here; call them as they are")


innermost_fn = allow_in_graph
