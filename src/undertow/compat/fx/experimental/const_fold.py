"""What does not depend on the inputs, computed once."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ....core.register import FUNCTIONS
from ....core.tensor import Tensor
from ....nn.modules.module import Module
from ....nn.parameter import Parameter
from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule, _get_attr
from ..node import Node

__all__ = ["FoldedGraphModule", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A graph module in which what is constant is computed by `run_folding`, or the first call.

    `const_subgraph_module` computes it, in the order of `folded_names`; it is None if there is
    nothing to compute.
    """

    const_subgraph_module: GraphModule | None  # no default here, which would hide the module
    folded_names: tuple[str, ...] = ()
    has_folding_been_run: bool = False

    def run_folding(self) -> None:
        """Compute what is constant, if that has not been done."""
        if self.has_folding_been_run or self.const_subgraph_module is None:
            return
        self.has_folding_been_run = True
        values = self.const_subgraph_module()
        for name, value in zip(self.folded_names, values, strict=True):
            delattr(self, name)
            if isinstance(value, Tensor):
                value = Parameter(value.detach(), requires_grad=value.requires_grad)
            setattr(self, name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.run_folding()
        return super().__call__(*args, **kwargs)


def split_const_subgraphs(
    module: Module,
    skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: str = "cpu",
) -> FoldedGraphModule:
    """A module that computes what does not depend on its inputs only once.

    >>> import undertow as ut
    >>> from undertow.fx.experimental.const_fold import split_const_subgraphs
    >>> class Scaled(ut.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.w = ut.nn.Parameter(ut.ones(2))
    ...
    ...     def forward(self, x):
    ...         return x + (self.w * 2 + 1)
    >>> folded = split_const_subgraphs(Scaled())
    >>> folded(ut.zeros(2)).detach(), [n.op for n in folded.graph.nodes]
    (tensor([3., 3.]), ['placeholder', 'get_attr', 'call_function', 'output'])
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant = _constant(traced, skip_folding_node_fn)
    ends = [n for n in constant if n.op != "get_attr" and any(u not in constant for u in n.users)]
    names = [
        f"_FX_CONST_FOLDED_ATTRS_{i}" if i else "_FX_CONST_FOLDED_ATTRS" for i in range(len(ends))
    ]
    graph = copy.deepcopy(traced.graph)
    copies = dict(zip(traced.graph.nodes, graph.nodes, strict=True))
    for name, node in zip(names, ends, strict=True):
        with graph.inserting_before(copies[node]):
            read = graph.create_node("get_attr", name)
        read.meta = dict(node.meta)
        copies[node].replace_all_uses_with(read)
    for node in reversed(constant):
        if not copies[node].users:
            graph.erase_node(copies[node])
    root: dict[str, Any] = {
        name: Parameter(FUNCTIONS["empty"](0), requires_grad=False) for name in names
    }
    for node in graph.nodes:
        if node.op in ("get_attr", "call_module") and node.target not in root:
            root[node.target] = _get_attr(traced, node.target)
    made = FoldedGraphModule(root, graph, "FoldedGraphModule")
    made.folded_names = tuple(names)
    made.const_subgraph_module = _computing(traced, constant, ends) if ends else None
    return made


def _computing(traced: GraphModule, constant: list[Node], ends: list[Node]) -> GraphModule:
    """A module without inputs that computes some nodes."""
    graph = Graph()
    known: dict[Node, Node] = {}
    for node in constant:
        known[node] = graph.node_copy(node, lambda n: known[n])
    graph.output(tuple(known[n] for n in ends))
    return GraphModule(traced, graph)


def _constant(traced: GraphModule, skip: Callable[[Node], bool] | None) -> list[Node]:
    """The nodes that depend on no input, in order."""
    found: dict[Node, None] = {}
    for node in traced.graph.nodes:
        folds = (
            node.op in ("call_function", "call_method", "call_module")
            and bool(node.all_input_nodes)
            and all(used in found for used in node.all_input_nodes)
            and not node.is_impure()
            and not (skip is not None and skip(node))
        )
        if node.op == "get_attr" or folds:
            found[node] = None
    return list(found)
