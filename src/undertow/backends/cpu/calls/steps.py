"""Forms of several launches: found out once for a layout, and then run without their Python.

Note [steps]
A form such as a convolution copies, transforms, multiplies and copies again. Which launches that
takes, of which arrays, depends on layouts and options alone. So it is rehearsed once, on operands
that only lie like the real ones: its Python runs, and none of its launches does (`rehearsed` in
launch.py). What is left is a list of launches, and for each of their arrays which operand it is a
part of, or where it lies in one block of memory, in which memory is used again as soon as nobody
needs what was there. Whatever such a form does by NumPy would be missing, so it asks `Launching`
for copies, sums and zeros. Numbers that tell whether a result is right (`sound`) are looked at when
all has run.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....kernel.lower import NotCompiled
from ...memory import LINE, scratch
from ...program.graph import bounds, planned
from ..codegen.kernels import address
from ..threads.pool import pointer, threads_of
from . import launch

KEPT = 4 << 20  # bytes of memory that a thread has at hand, and caches know; see Note [scratch]


class Steps:
    """Launches over operands and one block of memory; see Note [steps]."""

    def __init__(self, work: Callable[..., Any], operands: Sequence[Any]) -> None:
        """`work(*operands)` is what is rehearsed; NotCompiled if it is not all launches."""
        given = [None if o is None else _alike(o) for o in operands]
        taken, doubts = launch.rehearsed(lambda: work(*given))
        if not taken or None in taken:
            raise NotCompiled("more than launches")
        places = _Places(given, taken, doubts)
        found = []
        for one, pool, arrays in taken:
            buffers = arrays[: one.buffers]
            wanted = [places.of(a, one) for a in buffers]
            held = [a for a, (kind, _) in zip(buffers, wanted, strict=True) if kind == _HELD]
            found.append((one.plain(held), threads_of(pool), wanted, arrays[one.buffers :]))
        asked = [places.of(d) for d in doubts]
        self.size, lists = places.size, places.lists
        self.parts, self.views, self.held = lists
        self.kept = self.size <= KEPT and not doubts  # nobody needs what is left in the block
        self.alone = self.kept and len(taken) == 1  # nor what is there between launches
        # All arrays one after the other: operands, parts, views of operands, what is held.
        begins = [0, *itertools.accumulate([len(operands), *map(len, lists)])]
        self.calls = [
            (one, threads, _picked([begins[kind] + at for kind, at in wanted]), numbers)
            for one, threads, wanted, numbers in found
        ]
        tables = {id(t): t for one, *_ in found for t in one.holds if t.__class__ is np.ndarray}
        self.nbytes = sum([t.nbytes for t in tables.values()])
        self.doubts = [
            (begins[kind] + at, d.dtype) for (kind, at), d in zip(asked, doubts, strict=True)
        ]

    def run(self, *operands: Any) -> Sequence[Any]:
        """Launch them; the numbers that are finite if the result is right."""
        arrays = [*operands]
        kept = self.kept
        if self.alone:
            arrays += map(launch.keep(self.size).__getitem__, self.parts)
        elif self.size:
            block = launch.take_kept(self.size) if kept else scratch(self.size)
            arrays += map(block.__getitem__, self.parts)
        for which, at in self.views:
            arrays.append(operands[which][at])
        arrays += self.held
        noting = launch.tapped and launch.written()
        for one, threads, pick, numbers in self.calls:
            given, pool = pick(arrays), pointer(threads) if threads else 0
            if noting:
                launch.note(one, pool, (*given, *numbers))
            one.run(pool, *given, *numbers)
        if kept and self.size and not self.alone:
            launch.put_back(block)
        if not self.doubts:
            return ()
        return [arrays[at][: dtype.itemsize].view(dtype) for at, dtype in self.doubts]


def _picked(indices: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    if len(indices) == 1:
        return lambda arrays: (arrays[indices[0]],)
    return operator.itemgetter(*indices)


def _alike(a: Any) -> Any:
    """An array that lies like another one, in memory of its own, which is never touched.

    It is none of the blocks that are used again: one more of a size, and results would take turns
    in memory that caches do not know.
    """
    low, high = (place - address(a) for place in bounds(a))
    whole = np.empty(high - low + LINE, np.uint8)
    return np.ndarray(a.shape, a.dtype, whole, -address(whole) % LINE - low, a.strides)


_OPERAND, _PART, _VIEW, _HELD = range(4)  # what an array of a launch is


class _Places:
    """Where the arrays of launches are."""

    def __init__(
        self, operands: Sequence[Any], taken: Sequence[Any], doubts: Sequence[Any]
    ) -> None:
        self.operands, self.lists = operands, ([], [], [])  # type: Any, Any
        self.which = {id(_root(o)): i for i, o in enumerate(operands) if o is not None}
        # By root, which is held: the first byte that is used, the first and the last step that do.
        rooms: dict[int, list[Any]] = {}
        for step, (one, _, arrays) in enumerate([*taken, (None, 0, doubts)]):
            for a in arrays if one is None else arrays[: one.buffers]:
                root = _root(a)
                if id(root) not in self.which and not _kept(a, root, one):
                    low = bounds(a)[0]
                    room = rooms.setdefault(id(root), [root, low, step, step])
                    room[1], room[3] = min(room[1], low), step
        spans = [(bounds(r)[1] - low, born, died) for r, low, born, died in rooms.values()]
        offsets, self.size = planned(spans)
        self.rooms = {
            root: (at, room[1], span[0])
            for at, span, (root, room) in zip(offsets, spans, rooms.items(), strict=True)
        }

    def of(self, a: Any, one: Any = None) -> tuple[int, int]:
        """Which of the four it is, and its place among these."""
        root = _root(a)
        which = self.which.get(id(root))
        if which is not None:
            index = _index(self.operands[which], a)
            return (_OPERAND, which) if index is None else self._listed(_VIEW, (which, index))
        if _kept(a, root, one):
            return self._listed(_HELD, a)
        at, low, size = self.rooms[id(root)]
        return self._listed(_PART, slice(at + address(a) - low, at + size))

    def _listed(self, kind: int, one: Any) -> tuple[int, int]:
        known = self.lists[kind - 1]
        for place, other in enumerate(known):
            if other is one or (kind != _HELD and other == one):
                return kind, place
        known.append(one)
        return kind, len(known) - 1


def _root(a: Any) -> Any:
    """The array whose memory this is a view of; `as_strided` puts an object between the two."""
    below = a.base
    if below is not None and not isinstance(below, np.ndarray):
        below = getattr(below, "base", None)
    return _root(below) if isinstance(below, np.ndarray) else a


def _kept(a: Any, root: Any, one: Any) -> bool:
    """Whether its content is there before: a table of the launch, or what is kept for good."""
    return id(root) in launch.FIXED or (one is not None and any(a is t for t in one.holds))


def _index(operand: Any, a: Any) -> tuple[slice, ...] | None:
    """The index of a view of an operand that begins where `a` does; None for itself.

    The view covers what `a` does, for those who ask which memory a launch reads.
    """
    left = address(a) - address(operand)
    if not left:
        return None
    at = [0] * operand.ndim
    for d in sorted(range(operand.ndim), key=lambda d: -operand.strides[d]):
        step = operand.strides[d]
        if step > 0:
            at[d] = min(left // step, operand.shape[d] - 1)
            left -= at[d] * step
    low, high = bounds(a)
    for step in (1, -1) if not left else ():
        index = tuple([slice(i, None, step if i else 1) for i in at])
        begin, end = bounds(operand[index])
        if begin <= low and high <= end:
            return index
    raise NotCompiled("a view that is not told by an index")
