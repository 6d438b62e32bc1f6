"""Small things that passes use: orders of graphs, operations by name."""

from __future__ import annotations

from typing import Any

from ..graph import Graph
from ..graph_module import GraphModule
from ..naming import qualified_name
from ..node import Node

__all__ = ["CALLABLE_NODE_OPS", "get_node_target", "legalize_graph", "stable_topological_sort"]

CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_node_target(submodules: Any, node: Node) -> str:
    """What a node calls, as a name: of a module its class."""
    if node.op == "call_module":
        module = submodules[node.target]
        return qualified_name(type(getattr(module, "_base_class_origin", module)))
    return qualified_name(node.target) if callable(node.target) else node.target


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Order the nodes so that each stands behind what it uses, else as they stood."""
    made = Graph()
    copies: dict[Node, Node] = {}
    waiting = list(gm.graph.nodes)
    while waiting:
        later = []
        for node in waiting:
            if all(used in copies for used in node.all_input_nodes):
                copies[node] = made.node_copy(node, lambda n: copies[n])
            else:
                later.append(node)
        if len(later) == len(waiting):
            raise RuntimeError(f"Input graph has cycles, unable to add {later}")
        waiting = later
    made._codegen = gm.graph._codegen
    gm.graph = made
    return gm


legalize_graph = stable_topological_sort
