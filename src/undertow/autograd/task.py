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

    def __init__(self, total: int) -> None:
        self.total = total
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

    __slots__ = ("inbox", "left", "nodes", "numbers", "remaining", "seeds", "targets")

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
        self.remaining: list[int] = []  # by node, outputs whose gradient is incomplete
        self.seeds: list[Target | None] = []  # where each root's seed goes
        self._discover(roots, needed)
        self.left = len(self.nodes)

    def _discover(self, roots: list[tuple[Node, int]], needed: set[Node] | None) -> None:
        nodes, numbers, targets = self.nodes, self.numbers, self.targets
        find = numbers.get
        counts: list[Any] = []  # by node, edges into its output (a list of them for several)
        shared: list[int] = []  # nodes that need Slots or have several outputs

        def edge(node: Node | None, out: int) -> Target | None:
            if node is None or (needed is not None and node not in needed):
                return None
            j = find(node)
            if j is None:
                j = numbers[node] = len(nodes)
                nodes.append(node)
                if len(node.metas) == 1:
                    counts.append(1)
                    return j, 0, 0
                counts.append([0] * len(node.metas))
                shared.append(j)
            count = counts[j]
            if count.__class__ is int:
                if count == 1:
                    shared.append(j)
                counts[j] = count + 1
                return j, 0, count
            slot = count[out]
            count[out] += 1
            return j, out, slot

        for node, out in roots:
            self.seeds.append(edge(node, out))
        if needed is None:
            for node in nodes:  # grows as it goes
                row: list[Target | None] = []
                for parent, out in zip(node.parents, node.indices):  # noqa: B905 (hot)
                    if parent is None:
                        row.append(None)
                        continue
                    # `edge`, unrolled for nodes of one output
                    j = find(parent)
                    if j is None:
                        if len(parent.metas) == 1:
                            row.append((len(nodes), 0, 0))
                            numbers[parent] = len(nodes)
                            nodes.append(parent)
                            counts.append(1)
                            continue
                    else:
                        count = counts[j]
                        if count.__class__ is int:
                            row.append((j, 0, count))
                            counts[j] = count + 1
                            if count == 1:
                                shared.append(j)
                            continue
                    row.append(edge(parent, out))
                targets.append(row)
        else:
            for node in nodes:
                pairs = zip(node.parents, node.indices, strict=True)
                targets.append([edge(p, out) if p in needed else None for p, out in pairs])
        self.inbox = [None] * len(nodes)
        self.remaining = [1] * len(nodes)
        for j in shared:
            count = counts[j]
            if count.__class__ is int:
                self.inbox[j] = Slots(count)
            else:
                self.inbox[j] = [None if c < 2 else Slots(c) for c in count]
                self.remaining[j] = sum(c > 0 for c in count)

    def take(self, i: int) -> list[Any]:
        """The summed gradients of node i's outputs; the task forgets them."""
        inbox = self.inbox[i]
        self.inbox[i] = None
        cells = inbox if inbox.__class__ is list else [inbox]
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
