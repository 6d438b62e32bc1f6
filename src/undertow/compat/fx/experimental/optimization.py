"""Modules made faster for evaluation: norms folded into the layers before them."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from .... import nn
from ....nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node

__all__ = ["extract_subgraph", "fuse", "matches_module_pattern", "remove_dropout"] + [
    "replace_node_module"
]

_PATTERNS: list[tuple[Any, Any]] = [
    (nn.Conv1d, nn.BatchNorm1d),
    (nn.Conv2d, nn.BatchNorm2d),
    (nn.Conv3d, nn.BatchNorm3d),
    (nn.Linear, nn.BatchNorm1d),
]


def _parent_name(target: str) -> tuple[str, str]:
    path, _, name = target.rpartition(".")
    return path, name


def matches_module_pattern(pattern: Iterable[Any], node: Node, modules: dict[str, Any]) -> bool:
    """Whether a node and the one before it call modules of these two classes."""
    if not node.args:
        return False
    return all(
        isinstance(step, Node)
        and step.op == "call_module"
        and type(modules.get(step.target)) is kind
        for kind, step in zip(pattern, (node.args[0], node), strict=True)
    )


def replace_node_module(node: Node, modules: dict[str, Any], new_module: nn.Module) -> None:
    """Put a module in the place of the one that a node calls."""
    path, name = _parent_name(node.target)
    modules[node.target] = new_module
    setattr(modules[path], name, new_module)


def fuse(model: nn.Module, inplace: bool = False, no_trace: bool = False) -> nn.Module:
    """A model for evaluation in which batch norms are folded into the layers before them.

    >>> import undertow as ut
    >>> from undertow.fx.experimental.optimization import fuse
    >>> model = ut.nn.Sequential(ut.nn.Conv2d(1, 2, 3), ut.nn.BatchNorm2d(2)).eval()
    >>> x = ut.rand(1, 1, 5, 5)
    >>> fused = fuse(model)
    >>> len(list(fused.graph.nodes)), ut.allclose(fused(x), model(x), atol=1e-6)
    (3, True)
    """
    if not inplace:
        model = copy.deepcopy(model)
    ready = no_trace and isinstance(model, GraphModule)
    traced: Any = model if ready else symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for pattern in _PATTERNS:
        for node in graph.nodes:
            if not matches_module_pattern(pattern, node, modules):
                continue
            before, norm = node.args[0], modules[node.target]
            if len(before.users) > 1 or not norm.track_running_stats:
                continue
            fold = fuse_linear_bn_eval if pattern[0] is nn.Linear else fuse_conv_bn_eval
            replace_node_module(before, modules, fold(modules[before.target], norm))
            node.replace_all_uses_with(before)
            graph.erase_node(node)
    return GraphModule(traced, graph)


def remove_dropout(model: nn.Module) -> nn.Module:
    """A model without its dropout layers."""

    class Remover(Transformer):
        """Passes on what dropout is given."""

        def call_module(self, target: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
            if isinstance(self.submodules[target], nn.Dropout):
                return args[0]
            return super().call_module(target, args, kwargs)

    return Remover(symbolic_trace(model)).transform()


def extract_subgraph(
    orig_module: nn.Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]
) -> GraphModule:
    """Some nodes of a module as a module of their own."""
    graph = Graph()
    known = {node: graph.placeholder(node.name) for node in inputs}
    for node in nodes:
        known[node] = graph.node_copy(node, lambda n: known[n])
    graph.output([known[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)
