"""Operators that only torch's compiler makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ...errors import UnsupportedError


def _refused(name: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(
            f"[_higher_order_ops.{name}] is made by torch's compiler, which is not here; call the "
            "function that it would hold"
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Refused: only torch's compiler makes it."
    return refuse


auto_functionalized = _refused("auto_functionalized")
auto_functionalized_v2 = _refused("auto_functionalized_v2")
call_torchbind = _refused("call_torchbind")
invoke_subgraph = _refused("invoke_subgraph")
run_const_graph = _refused("run_const_graph")
with_effects = _refused("with_effects")
