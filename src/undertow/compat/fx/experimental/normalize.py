"""Calls with all arguments under the names of their parameters."""

from __future__ import annotations

from typing import Any

from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node
from ..operator_schemas import normalize_function, normalize_module

__all__ = ["NormalizeArgs"]


class NormalizeArgs(Transformer):
    """Makes a graph in which functions and layers are called with keywords only.

    >>> import undertow as ut
    >>> from undertow.fx.experimental.normalize import NormalizeArgs
    >>> traced = ut.fx.symbolic_trace(lambda x: ut.nn.functional.relu(x))
    >>> normalized = NormalizeArgs(traced).transform()
    >>> next(n.kwargs for n in normalized.graph.nodes if n.op == "call_function")
    {'input': x, 'inplace': False}
    """

    def __init__(self, module: GraphModule, normalize_to_only_use_kwargs: bool = True) -> None:
        super().__init__(module)
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        """The call with its arguments named, if its signature is known."""
        found = None
        if getattr(target, "__module__", "") not in ("_operator", "builtins", "math"):
            only = self.normalize_to_only_use_kwargs
            found = normalize_function(target, args, kwargs, normalize_to_only_use_kwargs=only)
        args, kwargs = found if found else (args, kwargs)
        return super().call_function(target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        """The call with its arguments named, if it is one of `nn`."""
        only = self.normalize_to_only_use_kwargs
        found = normalize_module(self.module, target, args, kwargs, only)
        args, kwargs = found if found else (args, kwargs)
        return super().call_module(target, args, kwargs)

    def run_node(self, n: Node) -> Any:
        """The node of the new graph."""
        return super().run_node(n)
