"""Where a graph has the shape of another one, the pattern."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from .....core.tensor import Tensor
from ...graph import Graph
from ...graph_module import _get_attr
from ...node import Node

__all__ = ["InternalMatch", "SubgraphMatcher"]

_ENDS = ("placeholder", "output")


@dataclass
class InternalMatch:
    """One place where the pattern was found: which node stands for each of the pattern's."""

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(
            self.anchors,
            dict(self.nodes_map),
            list(self.placeholder_nodes),
            list(self.returning_nodes),
        )

    def computing(self) -> list[Node]:
        """The nodes that the match takes in."""
        return [gn for pn, gn in self.nodes_map.items() if pn.op not in _ENDS]


class SubgraphMatcher:
    """Finds a pattern, from what it returns to its inputs.

    >>> import undertow as ut
    >>> from undertow.fx.passes.utils.matcher_utils import SubgraphMatcher
    >>> pattern = ut.fx.symbolic_trace(lambda a: a.exp().log()).graph
    >>> graph = ut.fx.symbolic_trace(lambda x: (x + 1).exp().log() * 2).graph
    >>> [match.computing() for match in SubgraphMatcher(pattern).match(graph)]
    [[log, exp]]
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        if not len(pattern.nodes):
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output" and not node.is_impure() and not node.users:
                raise AssertionError(
                    "SubgraphMatcher cannot be initialized with an pattern with dead code"
                )
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        output = pattern.output_node()
        self.pattern_returning_nodes = output.all_input_nodes
        self.pattern_anchors = (
            [output] if match_output else [n for n in output.all_input_nodes if len(n.users) == 1]
        )

    def _nodes_are_equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op in _ENDS:
            return True
        if pn.op == "get_attr":
            wanted = _get_attr(pn.graph.owning_module, pn.target)
            found = _get_attr(gn.graph.owning_module, gn.target)
            return type(wanted) is type(found) and isinstance(found, Tensor)
        return bool(pn.target == gn.target)

    def _match_nodes(
        self, pn: Node, gn: Node, match: InternalMatch, node_name_match: str = ""
    ) -> bool:
        if pn in match.nodes_map:
            return match.nodes_map[pn] is gn
        if any(gn is v for v in match.nodes_map.values()):
            return False
        if not self._nodes_are_equal(pn, gn, node_name_match):
            return False
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        same = len(pn.args) == len(gn.args) and list(pn.kwargs) == list(gn.kwargs)
        return same and self._match_args(
            [*pn.args, *pn.kwargs.values()], [*gn.args, *gn.kwargs.values()], match
        )

    def _match_args(self, wanted: Any, found: Any, match: InternalMatch) -> bool:
        if len(wanted) != len(found):
            return False
        for a, b in zip(wanted, found, strict=True):
            if isinstance(a, Node) and isinstance(b, Node):
                same = self._match_nodes(a, b, match)
            elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
                same = self._match_args(a, b, match)
            else:
                same = self._match_literals(a, b, match) or self.ignore_literals
            if not same:
                return False
        return True

    def _match_literals(self, wanted: Any, found: Any, match: InternalMatch) -> bool:
        if isinstance(wanted, Node):
            if wanted.op != "placeholder":
                return False
            if wanted in match.nodes_map:
                return bool(match.nodes_map[wanted] == found)
            match.nodes_map[wanted] = found
            return True
        return type(found) is type(wanted) and bool(found == wanted)

    def _is_contained(self, match: InternalMatch) -> bool:
        """Whether nobody outside uses what is inside, but for what the pattern returns."""
        inside = {gn: pn for pn, gn in match.nodes_map.items() if pn.op != "placeholder"}
        return all(
            pn in self.pattern_returning_nodes or all(user in inside for user in gn.users)
            for gn, pn in inside.items()
        )

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """All places, in the order of the graph."""
        candidates = [
            (anchor, [n for n in graph.nodes if self._nodes_are_equal(anchor, n, node_name_match)])
            for anchor in self.pattern_anchors
        ]
        found: list[InternalMatch] = []

        def extend(i: int, match: InternalMatch) -> None:
            if i == len(candidates):
                known = match.nodes_map
                match.placeholder_nodes = [known[n] for n in self.pattern_placeholder_nodes]
                match.returning_nodes = [known[n] for n in self.pattern_returning_nodes]
                found.append(match)
                return
            anchor, nodes = candidates[i]
            for node in nodes:
                trial = copy.copy(match)
                if self._match_nodes(anchor, node, trial, node_name_match):
                    extend(i + 1, trial)

        if candidates and all(nodes for _, nodes in candidates):
            extend(0, InternalMatch(self.pattern_anchors))
        found = [m for m in found if self._is_contained(m) and _closed(m.computing())]
        if not self.remove_overlapping_matches:
            return found
        taken: set[Node] = set()
        apart = []
        for match in found:
            if taken.isdisjoint(match.computing()):
                apart.append(match)
                taken.update(match.computing())
        return apart


def _closed(nodes: list[Node]) -> bool:
    """Whether no way leads out of some nodes and back into them."""
    inside = set(nodes)
    front = [user for node in nodes for user in node.users if user not in inside]
    seen = set()
    while front:
        node = front.pop()
        if node in inside:
            return False
        if node not in seen:
            seen.add(node)
            front += node.users
    return True
