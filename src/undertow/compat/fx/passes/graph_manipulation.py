"""Subgraphs replaced and orders repaired, under torch's older names."""

from __future__ import annotations

from typing import Any

from ..graph_module import GraphModule
from ..node import Node
from .shape_prop import ShapeProp

__all__ = ["get_size_of_all_nodes", "replace_target_nodes_with"]


def replace_target_nodes_with(
    fx_module: GraphModule, old_op: str, old_target: Any, new_op: str, new_target: Any
) -> None:
    """Let every node that does one thing do another, with the same arguments."""
    for node in fx_module.graph.nodes:
        if node.op == old_op and node.target == old_target:
            node.op, node.target = new_op, new_target
    fx_module.recompile()


def get_size_of_all_nodes(fx_module: GraphModule, args: Any = None) -> None:
    """Write `size_bytes` into every node, given inputs."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        node.size_bytes = _bytes(node)  # type: ignore[attr-defined]


def _bytes(node: Node) -> int:
    known = node.meta.get("tensor_meta")
    if known is None or not hasattr(known, "dtype"):
        return 0
    size = known.dtype.itemsize
    for length in known.shape:
        size *= length
    return int(size)
