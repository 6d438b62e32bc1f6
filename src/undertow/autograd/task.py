"""The state of one backward pass: who is needed, who is ready, what has arrived.

A pure state machine: no threads, no arithmetic. The engine asks it what to add and what to run.

Note [slot order]
Every edge into a node's output has a number, its slot, given in the order of discovery from the
roots. Gradients are added in slot order, whatever order they arrive in: the sum of slots 0…k is
formed as soon as they are all there, later arrivals wait. So any schedule, serial or parallel,
adds the same numbers in the same order and gives the same bits. Discovery runs from the newest
nodes to the oldest, as execution does, so hardly anything ever waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.node import Node

Target = tuple[int, int, int]  # node number, its output, the slot there


class Slots:
    """The gradient of one output with several edges, as far as it has been summed."""

    __slots__ = ("busy", "next", "owned", "pending", "total", "value")

    def __init__(self) -> None:
        self.total = 1  # edges; counted on, since there are Slots only where there is a second one
        self.next = 0  # slots below are in `value`
        self.value: Any = None
        self.owned = False  # whether `value` was made by a sum here, so nobody else holds it
        self.pending: dict[int, Any] = {}
        self.busy = False  # somebody is adding at this moment

    def offer(self, slot: int, grad: Any) -> list[Any] | None:
        """A gradient (or None) has arrived at `slot`; answers as `claim` does."""
        self.pending[slot] = grad
        return self.claim()

    def claim(self) -> list[Any] | None:
        """Two gradients that the caller must now add and `settle`; None when there are none.

        They are the caller's: until then nobody else here holds them.
        """
        while not self.busy and self.next in self.pending:
            grad = self.pending.pop(self.next)
            if grad is not None and self.value is not None:
                self.busy = True
                pair = [self.value, grad]
                self.value = None
                return pair
            self.next += 1
            if grad is not None:
                self.value = grad
        return None

    def settle(self, value: Any) -> list[Any] | None:
        """The sum that was asked for; answers as `claim` does."""
        self.value = value
        self.owned = True
        self.next += 1
        self.busy = False
        return self.claim() if self.pending else None


class Task:
    """One backward pass over the graph above `roots`, given as (node, output) pairs.

    `wanted` is None to go down to every leaf, else the nodes to reach.
    """

    __slots__ = ("inbox", "left", "nodes", "numbers", "awaited", "seeds", "targets")

    def __init__(
        self, roots: Iterable[tuple[Node, int]], wanted: Iterable[Node] | None = None
    ) -> None:
        roots = list(roots)
        needed = None if wanted is None else _leading_to(roots, set(wanted))
        self.nodes: list[Node] = []
        self.numbers: dict[Node, int] = {}
        self.targets: list[list[Target | None]] = []  # by node, where each input's gradient goes
        # By node: for one output the gradient or its Slots, for several a list of those.
        self.inbox: list[Any] = []
        # By node of several outputs, those whose gradient is incomplete.
        self.awaited: dict[int, set[int]] = {}
        self.seeds: list[Target | None] = []
        for node, out in roots:
            self.seeds.append(self._edge(node, out, needed))
        self._discover(needed)
        self.left = len(self.nodes)

    def _discover(self, needed: set[Node] | None) -> None:
        """Number the nodes above the roots and their edges; see Note [slot order]."""
        nodes, numbers, targets, inbox = self.nodes, self.numbers, self.targets, self.inbox
        find, edge = numbers.get, self._edge
        for node in nodes:  # grows as it goes
            row: list[Target | None] = []
            for parent in node.parents:
                if parent is None:
                    row.append(None)
                elif parent._shape is None or needed is not None:
                    row.append(edge(parent, node.indices[len(row)], needed))
                else:  # `_edge`, unrolled for nodes of one output
                    j = find(parent)
                    if j is None:
                        row.append((len(nodes), 0, 0))
                        numbers[parent] = len(nodes)
                        nodes.append(parent)
                        inbox.append(None)
                    else:
                        cell = inbox[j]
                        if cell is None:
                            cell = inbox[j] = Slots()
                        row.append((j, 0, cell.total))
                        cell.total += 1
            targets.append(row)

    def _edge(self, node: Node, out: int, needed: set[Node] | None) -> Target | None:
        """One more edge into an output of a node; None if nobody needs what goes there."""
        if needed is not None and node not in needed:
            return None
        several = node._shape is None
        j = self.numbers.get(node)
        if j is None:
            j = self.numbers[node] = len(self.nodes)
            self.nodes.append(node)
            self.inbox.append([None] * len(node.metas) if several else None)
            if not several:
                return j, 0, 0
            self.awaited[j] = set()
        if several and out not in self.awaited[j]:
            self.awaited[j].add(out)
            return j, out, 0
        cells, place = (self.inbox[j], out) if several else (self.inbox, j)
        cell = cells[place]
        if cell is None:
            cell = cells[place] = Slots()
        cell.total += 1
        return j, out, cell.total - 1

    def take(self, i: int) -> list[Any]:
        """The summed gradients of node i's outputs; the task forgets them."""
        cells = self.inbox[i]
        self.inbox[i] = None
        if cells.__class__ is not list:  # of one output, whose Slots are done with
            return [cells]
        return [c.value if c.__class__ is Slots else c for c in cells]


def _leading_to(roots: list[tuple[Node, int]], wanted: set[Node]) -> set[Node]:
    """The nodes on some path from a root to a wanted node, both included."""
    consumers: dict[Node, list[Node]] = {node: [] for node, _ in roots}
    stack = list(consumers)
    while stack:
        node = stack.pop()
        for parent in node.parents:
            if parent is not None:
                found = consumers.get(parent)
                if found is None:
                    consumers[parent] = [node]
                    stack.append(parent)
                else:
                    found.append(node)
    needed = {node for node in wanted if node in consumers}
    stack = list(needed)
    while stack:
        for consumer in consumers[stack.pop()]:
            if consumer not in needed:
                needed.add(consumer)
                stack.append(consumer)
    return needed
