"""Passes over a recording: what nobody reads goes, and maps of one shape become one.

Note [joining maps]
A map reads and writes whole pieces, element by element. Where one map reads what another one has
written, the two can be one, which computes both: what is between them stays in registers, and is
not written at all if nobody else reads it. Steps are looked at in their order. Each reads and
writes pieces of stores; two that meet in a piece, one of them writing, must stay in order. So steps
are the nodes of a graph, and a map may join another one, or a group, as long as no path leads from
one to the other by way of a third. Steps that do something on the host stay in order, too, and what
changes memory from outside stays on its side of them: a question about data that is answered in
another way leaves the program, and nothing may have been changed before it that was not.

Every element goes through the same operations as before, in the same types. So no bit differs.

What joins is limited by what a kernel can keep in registers (LIVE values) and by the size of its
code (MOST primitives). Beyond that a new group begins, so long chains become several kernels.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, NamedTuple

from ...kernel.expr import Expr, Shared, arg, call, substitute
from ...kernel.layout import row_major
from ..memory_types import scalar_type, type_of
from .graph import Called, Checked, Launched, Mapped, Piece, Recording

MOST = 60  # primitives of a kernel
LIVE = 12  # values that are known and still needed
BUFFERS = 16  # that a kernel reads or writes
WORTH = 1 << 16  # bytes that two maps must both read to be joined for that alone
_HOST = -1  # the store that stands for the order of effects


class Group(NamedTuple):
    """A map that is made of several."""

    exprs: Shared
    ins: tuple[Piece, ...]
    outs: tuple[Piece, ...]
    numbers: tuple[Any, ...]
    pool: int
    members: int


class Passed(NamedTuple):
    """What the passes have made of a recording: groups are among its steps."""

    recording: Recording
    dead: int
    groups: int
    maps: int  # in groups
    saved: int  # bytes that are neither written nor read any more
    reasons: dict[str, int]  # why maps were not joined with what they read


def passed(recording: Recording, kept: Iterable[int]) -> Passed:
    """A recording with fewer steps, in which only the stores `kept` must be as before."""
    lasting = {*kept}
    steps = _living(recording, lasting)
    dead = len(recording.steps) - len(steps)
    mark = recording.mark
    parts = [steps]
    if mark >= 0:
        first = [s for i, s in steps if i < mark]
        parts = [[p for p in steps if p[0] < mark], [p for p in steps if p[0] >= mark]]
        mark = len(first)
    found: list[Any] = []
    groups = maps = saved = 0
    reasons: dict[str, int] = {}
    for number, part in enumerate(parts):
        others = [s for q in parts if q is not part for _, s in q]
        outside = lasting | {a[0] for s in others for a in _touched(recording, s)}
        graph = _Graph(recording, outside)
        for _, step in part:
            graph.add(step)
        listed = graph.listed()
        if number == 0 and len(parts) == 2:
            mark = len(listed)
        found += listed
        groups += sum(s.__class__ is Group for s in listed)
        maps += sum(s.members for s in listed if s.__class__ is Group)
        saved += graph.saved
        for why, count in graph.reasons.items():
            reasons[why] = reasons.get(why, 0) + count
    made = copy(recording)
    made.steps, made.mark = found, mark
    return Passed(made, dead, groups, maps, saved, reasons)


def settled(recording: Recording, steps: Sequence[Any], inside: Iterable[int]) -> Recording:
    """The recording of these steps, with the lifetimes that stores have there."""
    made = copy(recording)
    made.steps = list(steps)
    made.stores = [copy(s) for s in recording.stores]
    used: dict[int, list[int]] = {}
    for i, step in enumerate(steps):
        for access in _touched(recording, step):
            used.setdefault(access[0], []).append(i)
    for number in inside:
        store = made.stores[number]
        if number in used:
            store.made_at, store.last = used[number][0], used[number][-1]
        else:
            store.nbytes = 0
    return made


# What steps read and write ------------------------------------------------------------------------
Access = tuple[int, int, int, bool]  # a store, the first byte, the one behind the last, written


def _touched(recording: Recording, step: Any) -> list[Access]:
    if step.__class__ is Launched:
        pieces = list(step.pieces)
        if step.rows is not None:
            pieces += [p for row in step.rows[0] for p in row]
        found = [(*_span(p), p.store in step.writes) for p in pieces]
        if step.asked is not None:
            asked = recording.asks[step.asked]
            if asked.__class__ is tuple:
                found.append((*_span(asked[1]), False))
        return found
    if step.__class__ is Group:
        found = [(*_span(p), False) for p in step.ins]
        return found + [(*_span(p), True) for p in step.outs]
    if step.__class__ in (Called, Checked):
        written = step.__class__ is Called
        pieces = _pieces((step.args, step.kwargs, getattr(step, "results", ())))
        return [(*_span(p), written) for p in pieces]
    return []


def _pieces(value: Any) -> list[Piece]:
    if value.__class__ is Piece:
        return [value]
    if value.__class__ is tuple:
        return [p for v in value for p in _pieces(v)]
    return []


def _span(p: Piece) -> tuple[int, int, int]:
    low = high = p.offset
    for n, s in zip(p.shape, p.strides, strict=True):
        if s < 0:
            low += (n - 1) * s
        else:
            high += (n - 1) * s
    return p.store, low, high + p.dtype.itemsize


def _living(recording: Recording, kept: set[int]) -> list[tuple[int, Any]]:
    """The steps that somebody needs, each with its number."""
    read = {*kept}
    found = []
    for i in range(len(recording.steps) - 1, -1, -1):
        step = recording.steps[i]
        fixed = step.__class__ is Launched and step.asked is None and step.drawn is None
        if fixed and step.writes:
            if read.isdisjoint(step.writes):
                continue
            if step.map is not None:
                read |= {p.store for p in step.map.ins}
                found.append((i, step))
                continue
        read |= {a[0] for a in _touched(recording, step)}
        found.append((i, step))
    return found[::-1]


# Pieces of one iteration space --------------------------------------------------------------------
def _spread(p: Piece, shape: tuple[int, ...]) -> Piece:
    """A piece as it is broadcast to a shape, with steps 0 along dimensions of one element."""
    lead = len(shape) - len(p.shape)
    own = [0 if n == 1 else s for n, s in zip(p.shape, p.strides, strict=True)]
    return p._replace(shape=shape, strides=(*[0] * lead, *own))


def _dense(p: Piece) -> tuple[int, ...]:
    return tuple([s * p.dtype.itemsize for s in row_major(p.shape)])


def _is_flat(p: Piece) -> bool:
    """Whether it looks the same in any shape: row-major, or one element."""
    return p.strides == _dense(p) or not any(p.strides)


def _reshaped(p: Piece, shape: tuple[int, ...]) -> Piece:
    dense = any(p.strides)
    p = p._replace(shape=shape)
    return p._replace(strides=_dense(p) if dense else (0,) * len(shape))


def _overlap(a: Piece, b: Piece) -> bool:
    if a.store != b.store:
        return False
    (_, low, high), (_, begin, end) = _span(a), _span(b)
    return low < end and begin < high


# Groups -------------------------------------------------------------------------------------------
class _Maps:
    """Maps that are computed together; see Note [joining maps]."""

    def __init__(self, shape: tuple[int, ...], compute: str) -> None:
        self.shape, self.compute = shape, compute
        self.flat = True
        self.steps: list[Launched] = []
        self.ins: dict[Piece, Expr] = {}
        self.numbers: dict[Any, Expr] = {}
        self.values: dict[Piece, Expr] = {}  # what was written
        self.count = 0  # of arguments

    def _argument(self) -> Expr:
        self.count += 1
        return arg(self.count - 1)

    def add(self, step: Launched) -> str | None:
        """Take a map in; or why not, and then it is no longer to be used."""
        m = step.map
        assert m is not None
        self.steps.append(step)
        if m.compute != self.compute and not (m.compute == "bool" and not _has_numbers(m, step)):
            return "another type"
        ins, outs = [_spread(p, m.outs[0].shape) for p in m.ins], [*m.outs]
        outs = [_spread(p, p.shape) for p in outs]
        flat = all(map(_is_flat, [*ins, *outs]))
        if _size(m.outs[0].shape) != _size(self.shape):
            return "another size"
        if m.outs[0].shape != self.shape:
            if flat:
                ins, outs = ([_reshaped(p, self.shape) for p in few] for few in (ins, outs))
            elif self.flat:
                self._reshape(m.outs[0].shape)
            else:
                return "another shape"
        self.flat = self.flat and flat
        given: list[Expr] = []
        for p in ins:
            known = self.values.get(p)
            if known is None:
                if any(_overlap(p, q) for q in self.values):
                    return "another view of it is read"
                known = self.ins.get(p)
                if known is None:
                    known = self.ins[p] = self._argument()
            given.append(known)
        for kind, number in zip(step.kinds, step.numbers, strict=True):
            key = (kind, type(number), repr(number))
            if key not in self.numbers:
                self.numbers[key] = self._argument()
            given.append(self.numbers[key])
        args = [given[i] for i in m.order]
        for p, expr in zip(outs, m.exprs, strict=True):
            for q in (*self.ins, *self.values):
                if q != p and _overlap(p, q):
                    return "it is written through another view"
            if not any(p.strides) and _size(p.shape) > 1:
                return "it is written through another view"
            self.values[p] = _stored(substitute(expr, args), p)
        return None

    def _reshape(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.ins = {_reshaped(p, shape): e for p, e in self.ins.items()}
        self.values = {_reshaped(p, shape): e for p, e in self.values.items()}

    def too_much(self) -> str | None:
        """What there is too much of for one kernel."""
        if len(self.ins) > BUFFERS:
            return "too many operands"
        operations, live = _effort([*self.values.values()])
        if operations > MOST:
            return "too many operations for one kernel"
        return "too many values for the registers" if live > LIVE else None

    def done(self, needed: set[int]) -> Group:
        """The group, of which others need these stores."""
        written = [(p, e) for p, e in self.values.items() if p.store in needed]
        used: set[int] = set()
        _arguments([e for _, e in written], used)
        ins = [(p, e.args[0]) for p, e in self.ins.items() if e.args[0] in used]
        numbers = [(k, e.args[0]) for k, e in self.numbers.items() if e.args[0] in used]
        place = {old: arg(new) for new, (_, old) in enumerate([*ins, *numbers])}
        args = [place.get(i, arg(0)) for i in range(self.count)]
        exprs = _all_substituted([e for _, e in written], args)
        given = {}
        for step in self.steps:
            for kind, number in zip(step.kinds, step.numbers, strict=True):
                given[kind, type(number), repr(number)] = number
        return Group(
            Shared(exprs),
            tuple([p for p, _ in ins]),
            tuple([p for p, _ in written]),
            tuple([given[k] for k, _ in numbers]),
            max([s.pool for s in self.steps]),
            len(self.steps),
        )


def _has_numbers(m: Mapped, step: Launched) -> bool:
    """Whether a map of booleans has numbers in it, whose type is that of the rest."""
    return bool(step.numbers) or any(_has_constant(e) for e in m.exprs)


def _has_constant(e: Expr) -> bool:
    return e.head == "const" or (e.head != "arg" and any(map(_has_constant, e.args)))


_BOOLEAN = frozenset(
    ["eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "signbit"]
    + ["logical_and", "logical_or", "logical_xor", "logical_not"]
)


def _stored(expr: Expr, p: Piece) -> Expr:
    """An expression as who reads the piece is to see it.

    A kernel may compute 1 + erf(x) in another way than erf(x): between two maps it must not, so
    `real`, which does nothing, stands between.
    """
    return call("real", expr) if expr.head == "erf" else expr


def _size(shape: Sequence[int]) -> int:
    n = 1
    for s in shape:
        n *= s
    return n


def _parts(exprs: Sequence[Expr]) -> list[Expr]:
    """All distinct parts, each behind those that it is made of."""
    seen: set[int] = set()
    found: list[Expr] = []

    def visit(e: Expr) -> None:
        if id(e) in seen:
            return
        seen.add(id(e))
        if e.head != "const":
            if e.head != "arg":
                for a in e.args:
                    visit(a)
            found.append(e)

    for e in exprs:
        visit(e)
    return found


def _effort(exprs: Sequence[Expr]) -> tuple[int, int]:
    """How many primitives expressions have, and how many values are known and needed at once."""
    parts = _parts(exprs)
    last: dict[int, int] = {}
    for i, e in enumerate(parts):
        last[id(e)] = i
        if e.head != "arg":
            for a in e.args:
                if a.head != "const":
                    last[id(a)] = i
    ends: dict[int, int] = {}
    for at in last.values():
        ends[at] = ends.get(at, 0) + 1
    live = most = 0
    for i in range(len(parts)):
        live += 1
        most = max(most, live)
        live -= ends.get(i, 0)
    return sum(e.head != "arg" for e in parts), most


def _arguments(exprs: Sequence[Expr], found: set[int]) -> None:
    found |= {e.args[0] for e in _parts(exprs) if e.head == "arg"}


def _all_substituted(exprs: Sequence[Expr], args: Sequence[Expr]) -> list[Expr]:
    """Expressions with arguments replaced; what they share, they still do."""
    done: dict[int, Expr] = {}
    for e in _parts(exprs):
        if e.head == "arg":
            done[id(e)] = args[e.args[0]]
        else:
            done[id(e)] = Expr(e.head, tuple([done.get(id(a), a) for a in e.args]))
    return [done.get(id(e), e) for e in exprs]


def joinable(m: Mapped) -> bool:
    """Whether a map may be a part of a group: its values have the types that are stored."""
    shape = m.outs[0].shape
    if any(p.shape != shape for p in m.outs):
        return False
    for p in (*m.ins, *m.outs):
        t = type_of(p.dtype)
        if t != "bool" and scalar_type(t) != m.compute:
            return False
    kinds = [type_of(m.ins[i].dtype) if i < len(m.ins) else m.compute for i in m.order]
    for e, p in zip(m.exprs, m.outs, strict=True):
        if e.head == "const":
            return False  # kernels may treat a constant in another way than a value
        stored = type_of(p.dtype)
        if stored != scalar_type(stored) or (stored == "bool") != _is_bool(e, kinds):
            return False
    return True


def _is_bool(e: Expr, kinds: Sequence[str]) -> bool:
    if e.head == "arg":
        return kinds[e.args[0]] == "bool"
    if e.head == "const":
        return isinstance(e.args[0], bool)
    if e.head in _BOOLEAN:
        return True
    inner = e.args[1:] if e.head == "where" else e.args
    return any(_is_bool(a, kinds) for a in inner)


# The graph ----------------------------------------------------------------------------------------
class _Node:
    __slots__ = ("before", "first", "maps", "step")

    def __init__(self, step: Any, at: int) -> None:
        self.step = step
        self.first = at  # the number of its first step
        self.maps: _Maps | None = None
        self.before: set[int] = set()  # nodes that must come first


class _Graph:
    """Steps and groups of them; see Note [joining maps]."""

    def __init__(self, recording: Recording, outside: set[int]) -> None:
        self.recording, self.outside = recording, outside
        self.nodes: list[_Node | None] = []
        self.behind: list[int] = []  # of each node, the set of those that come before, as bits
        self.accesses: dict[int, list[tuple[int, int, int, bool]]] = {}  # by store: node, span
        self.users: dict[int, set[int]] = {}  # by store
        self.readers: dict[Any, int] = {}  # by large piece, the last group that reads it
        self.alias: dict[int, int] = {}  # of nodes that have become a part of another
        self.count = self.saved = 0
        self.order = {id(s): i for i, s in enumerate(recording.steps)}
        self.reasons: dict[str, int] = {}

    def _now(self, node: int) -> int:
        while node in self.alias:
            node = self.alias[node]
        return node

    def add(self, step: Any) -> None:
        """The next step."""
        touched = _touched(self.recording, step)
        if step.__class__ is not Launched or step.asked is not None:
            touched.append((_HOST, 0, 1, True))
        elif any(a[3] and a[0] in self.outside for a in touched):
            touched.append((_HOST, 0, 1, False))
        before = self._hazards(touched)
        at = self.count
        self.count += 1
        node = None
        may_join = (
            step.__class__ is Launched
            and step.map is not None
            and step.asked is None  # its numbers are others in every call
            and joinable(step.map)
        )
        if may_join:
            node = self._joined(step, before)
        if node is None:
            node = len(self.nodes)
            new = _Node(step, at)
            new.before = before
            self.nodes.append(new)
            self.behind.append(self._all_behind(before))
            if may_join:
                new.maps = _Maps(step.map.outs[0].shape, step.map.compute)
                if new.maps.add(step) is not None or new.maps.too_much() is not None:
                    new.maps = None
        if step.__class__ is Launched and step.map is not None:
            for p in step.map.ins:
                if _size(p.shape) * p.dtype.itemsize >= WORTH:
                    self.readers[p] = node
        for store, low, high, written in touched:
            self.accesses.setdefault(store, []).append((node, low, high, written))
            self.users.setdefault(store, set()).add(node)

    def _hazards(self, touched: Sequence[Access]) -> set[int]:
        found: set[int] = set()
        for store, low, high, written in touched:
            for node, begin, end, wrote in reversed(self.accesses.get(store, ())):
                if (written or wrote) and low < end and begin < high:
                    found.add(self._now(node))
                    if wrote and begin <= low and high <= end:
                        break
        return found

    def _all_behind(self, before: Iterable[int]) -> int:
        found = 0
        for n in before:
            found |= self.behind[n] | 1 << n
        return found

    def _joined(self, step: Launched, before: set[int]) -> int | None:
        """The group that a map has joined."""
        assert step.map is not None
        near = sorted([n for n in before if self._maps(n) is not None], reverse=True)
        shared = [self._now(self.readers[p]) for p in step.map.ins if p in self.readers]
        others = [n for n in dict.fromkeys(shared) if n not in before and self._maps(n)]
        joined: int | None = None
        for n in [*near, *others]:
            if joined is not None and n not in near:
                break
            why = self._join(n, step, before) if joined is None else self._merge(n, joined)
            if why is None:
                if joined is None:
                    joined = n
            elif n in near:
                self.reasons[why] = self.reasons.get(why, 0) + 1
        return joined

    def _maps(self, n: int) -> _Maps | None:
        node = self.nodes[n]
        return None if node is None else node.maps

    def _between(self, n: int, before: Iterable[int]) -> bool:
        """Whether a path leads from a node to one of those, and further."""
        return any(m != n and self.behind[m] >> n & 1 for m in before)

    def _join(self, n: int, step: Launched, before: set[int]) -> str | None:
        if self._between(n, before):
            return "something else comes between"
        why = self._together([*self._steps(n), step], n)
        if why is None:
            self._absorb(n, before)
        return why

    def _merge(self, n: int, m: int) -> str | None:
        """Let the group n become a part of the group m."""
        one, other = self.nodes[n], self.nodes[m]
        assert one is not None
        assert other is not None
        if self._between(n, other.before) or self._between(m, one.before):
            return "something else comes between"
        steps = [*self._steps(n), *self._steps(m)]
        steps.sort(key=lambda s: self.order[id(s)])
        why = self._together(steps, m)
        if why is not None:
            return why
        self.nodes[n] = None
        self.alias[n] = m
        for users in self.users.values():
            if n in users:
                users.discard(n)
                users.add(m)
        for i, node in enumerate(self.nodes):
            if node is not None and n in node.before:
                node.before.discard(n)
                if i != m:
                    node.before.add(m)
            if self.behind[i] >> n & 1 and i != m:
                self.behind[i] |= self.behind[m] | 1 << m
        other.first = min(other.first, one.first)
        self._absorb(m, one.before - {m})
        return None

    def _steps(self, n: int) -> list[Launched]:
        maps = self._maps(n)
        assert maps is not None
        return maps.steps

    def _together(self, steps: Sequence[Launched], n: int) -> str | None:
        """Make the group of these maps the node's; or why not."""
        first = steps[0].map
        assert first is not None
        compute = next((s.map.compute for s in steps if s.map and s.map.compute != "bool"), "bool")
        made = _Maps(first.outs[0].shape, compute)
        for step in steps:
            why = made.add(step)
            if why is not None:
                return why
        why = made.too_much()
        node = self.nodes[n]
        if why is None and node is not None:
            node.maps = made
        return why

    def _absorb(self, n: int, before: set[int]) -> None:
        """A node that must come behind some more."""
        node = self.nodes[n]
        assert node is not None
        node.before |= before - {n}
        more = self._all_behind(before - {n})
        bit = 1 << n
        self.behind[n] |= more
        for i in range(len(self.behind)):
            if self.behind[i] & bit and i != n:
                self.behind[i] |= more

    # What becomes of it ---------------------------------------------------------------------
    def listed(self) -> list[Any]:
        """The steps in an order that is possible, near to the old one."""
        waiting = {i: set(n.before) for i, n in enumerate(self.nodes) if n is not None}
        after: dict[int, list[int]] = {}
        for i, before in waiting.items():
            for b in before:
                after.setdefault(b, []).append(i)
        ready = [(self._at(i), i) for i, b in waiting.items() if not b]
        heapq.heapify(ready)
        found: list[Any] = []
        while ready:
            _, i = heapq.heappop(ready)
            found += self._made(i)
            for j in after.get(i, ()):
                waiting[j].discard(i)
                if not waiting[j]:
                    heapq.heappush(ready, (self._at(j), j))
        assert len(waiting) == len(self.nodes) - len(self.alias)
        if any(waiting.values()):
            raise RuntimeError("[compile] steps wait for one another")
        return found

    def _at(self, n: int) -> int:
        node = self.nodes[n]
        assert node is not None
        return node.first

    def _made(self, n: int) -> list[Any]:
        node = self.nodes[n]
        assert node is not None
        if node.maps is None or len(node.maps.steps) == 1:
            return [node.step]
        stores = {p.store for p in node.maps.values}
        needed = {s for s in stores if s in self.outside or len(self.users[s]) > 1}
        group = node.maps.done(needed)
        before = [p for s in node.maps.steps for p in s.pieces]
        self.saved += sum(map(_moved, before)) - sum(map(_moved, (*group.ins, *group.outs)))
        return [group] if group.outs else []


def _moved(p: Piece) -> int:
    """Bytes that reading or writing a piece moves."""
    n = p.dtype.itemsize
    for size, step in zip(p.shape, p.strides, strict=True):
        n *= size if step else 1
    return int(n)
