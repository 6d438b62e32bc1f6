"""`replace_pattern`: every place of a graph that looks like one function, as another one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ...nn.modules.module import Module
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _get_attr, _has_attr
from .node import Node

if TYPE_CHECKING:
    from .passes.utils.matcher_utils import InternalMatch

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """A place that was replaced: the last node of the pattern, and what stood for its nodes."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A place that was replaced, and the nodes that came there."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(
    gm: GraphModule,
    pattern: Callable[..., Any] | GraphModule,
    replacement: Callable[..., Any] | GraphModule,
) -> list[Match]:
    """Replace what looks like `pattern` by `replacement`, which takes the same arguments.

    >>> import undertow as ut
    >>> traced = ut.fx.symbolic_trace(lambda x, y: ut.cat([x, y]).sum())
    >>> found = ut.fx.replace_pattern(
    ...     traced, lambda a, b: ut.cat([a, b]), lambda a, b: ut.stack([a, b])
    ... )
    >>> print(traced.code.strip())
    def forward(self, x, y):
        stack = torch.stack([x, y]);  x = y = None
        sum_1 = stack.sum();  stack = None
        return sum_1
    """
    return [Match(m.anchor, m.nodes_map) for m in _replace_pattern(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """The same for the places that all filters let through; a callback may make the replacement."""
    return _replace_pattern(
        gm,
        pattern,
        replacement,
        match_filters or [],
        ignore_literals,
        replacement_callback,
        node_name_match,
    )


def _graph_of(what: Any) -> Graph:
    if isinstance(what, GraphModule):
        return what.graph
    return what if isinstance(what, Graph) else symbolic_trace(what).graph


def _replace_pattern(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: Any = (),
    ignore_literals: bool = False,
    replacement_callback: Any = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    from .passes.utils.matcher_utils import SubgraphMatcher

    graph, shape = gm.graph, _graph_of(pattern)
    matcher = SubgraphMatcher(shape, ignore_literals=ignore_literals)
    matches = [
        m
        for m in matcher.match(graph, node_name_match=node_name_match)
        if all(wanted(m, graph, shape) for wanted in match_filters)
    ]
    if replacement is None and replacement_callback is None:
        raise AssertionError(
            "[replace_pattern] give a replacement, or a replacement_callback that makes one"
        )
    common = _graph_of(replacement) if replacement is not None else None
    became: dict[Node, Node] = {}  # what was replaced may be an input of a later match
    done = []
    for match in matches:
        new = replacement_callback(match, graph, shape) if replacement_callback else common
        assert new is not None
        done.append(_replace(graph, shape, new, match, became))
    gm.recompile()
    if isinstance(replacement, Module):
        _take_attributes(gm, replacement)
    return done


def _replace(
    graph: Graph, shape: Graph, new: Graph, match: InternalMatch, became: dict[Node, Node]
) -> ReplacedPatterns:
    inputs = [n for n in new.nodes if n.op == "placeholder"]
    if len(match.placeholder_nodes) != len(inputs):
        raise AssertionError(
            f"[replace_pattern] the pattern takes {len(match.placeholder_nodes)} arguments, the "
            f"replacement {len(inputs)}"
        )
    given: list[Any] = []
    for node in match.placeholder_nodes:
        now = became.get(node, node) if isinstance(node, Node) else node
        if now is not node:
            match.nodes_map = {k: now if v is node else v for k, v in match.nodes_map.items()}
        given.append(now)
    match.placeholder_nodes = given
    values: dict[Node, Any] = dict(zip(inputs, given, strict=True))
    users = {u for n in match.returning_nodes for u in n.users}
    place = next((n for n in graph.nodes if n in users), None)
    if place is None:
        place = max(match.returning_nodes).next
    with graph.inserting_before(place):
        made = graph.graph_copy(new, values)
    results = (made,) if isinstance(made, Node) else tuple(made)
    added = [n for n in values.values() if not any(n is g for g in given)]
    if len(results) != len(match.returning_nodes):
        raise AssertionError(
            f"[replace_pattern] the pattern returns {len(match.returning_nodes)} values, the "
            f"replacement {len(results)}"
        )
    for old, result in zip(match.returning_nodes, results, strict=True):
        old.replace_all_uses_with(result)
        became[old] = result
    for node in reversed(shape.nodes):
        if node.op not in ("placeholder", "output"):
            graph.erase_node(match.nodes_map[node])
    return ReplacedPatterns(match.anchors[0], match.nodes_map, added)


def _take_attributes(gm: GraphModule, replacement: Module) -> None:
    """Let the module have what its graph now asks for, from the replacement."""
    gm.delete_all_unused_submodules()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or _has_attr(gm, node.target):
            continue
        if not _has_attr(replacement, node.target):
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node during subgraph rewriting with target '
                f"{node.target}, but the referenced attribute does not exist in the replacement "
                "GraphModule"
            )
        value = copy.deepcopy(_get_attr(replacement, node.target))
        if isinstance(value, Module):
            gm.add_submodule(node.target, value)
        else:
            setattr(gm, node.target, value)
    gm.graph.lint()
