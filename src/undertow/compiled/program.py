"""Programs: two recordings that agree, ready to run, with what must hold for it.

Note [guards]
A program is right as long as everything that its recording depended on is as it was. Before each
call it asks, in this order: the modes and the number of threads; the layouts of arguments, which
chose it among the function's programs; tensors from outside, their memory and whether they want
gradients; what is in `.grad`; the values that the user's Python has read (Note [watched values]);
the tensors and options of optimisers; and, only if the epoch of core/recording has moved on, the
attributes of modules. If anything differs, the call is an eager one.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from copy import copy
from threading import Lock, Thread
from time import perf_counter
from typing import Any

from .. import dtypes
from ..backends import memory
from ..backends.cpu.codegen.jit import address
from ..backends.cpu.joined import joined
from ..backends.cpu.table import Otherwise, Table
from ..backends.holders import getrefcount
from ..backends.program.graph import Called, Checked, Launched, Piece, Recording, bounds, difference
from ..backends.program.graph import root_of as _root
from ..backends.registry import CPU
from ..backends.strided import contiguous
from ..backends.threads import current_limit
from ..core.node import AccumulateGrad, Barrier
from ..core.recording import epoch
from ..core.tensor import Tensor, wrap
from ..utils._pytree import tree_is_leaf, tree_unflatten
from .history import attach, is_busy
from .interrupts import Deferred
from .trace import Output, Trace, early

_BYTES = dtypes.uint8.numpy
_USED_UP = (
    "Trying to backward through the graph a second time: a compiled function has run the backward "
    "of this result inside, as it was recorded; nothing is kept of its history"
)
BUSY = object()  # its memory belongs to an earlier call, or another thread is running it
JOIN_AFTER = 3  # calls; see Note [tables that come later]
JOIN = os.environ.get("UNDERTOW_COMPILE_JOIN", "1") == "1"
NOT_NOW = object()  # a guard has failed, or the data want another way


def disagreement(old: Trace, new: Trace) -> str | None:
    """What keeps two traces from being one program."""
    found = difference(old.recording, new.recording)
    if found is not None:
        return found
    if old.spec != new.spec or len(old.outputs) != len(new.outputs):
        return "it returns something else"
    for a, b in zip(old.outputs, new.outputs, strict=True):
        if a.kind != b.kind or a.tracked != b.tracked:
            return "it returns something else"
        if a.kind == "same":
            if a.value is not b.value:
                return "it returns another tensor from outside, or a view of one"
        elif a.value.__class__ is not b.value.__class__ or repr(a.value) != repr(b.value):
            return f"it returns {a.value!r} and then {b.value!r}"
    if [id(g.leaf) for g in old.grads] != [id(g.leaf) for g in new.grads]:
        return "gradients go to other leaves"
    for g, h in zip(old.grads, new.grads, strict=True):
        if (g.before is None) != (h.before is None) or g.read != h.read:
            return "gradients were there, and then not"
        if g.after.__class__ is not h.after.__class__ or (
            isinstance(g.after, Piece) and g.after != h.after
        ):
            return "gradients are left in another way"
        if g.read and g.before is not h.before:
            return "a gradient that is added to is another tensor"
    if (old.split is None) != (new.split is None):
        return "it returns something else"
    if old.split is not None and new.split is not None:
        mine, theirs = ([n for n, _ in t.split.targets] for t in (old, new))  # type: ignore[union-attr]
        leaves = [isinstance(n, AccumulateGrad) for n in mine]
        if leaves != [isinstance(n, AccumulateGrad) for n in theirs]:
            return "gradients go to other leaves"
        if old.split.grads != new.split.grads or old.recording.mark != new.recording.mark:
            return "the backward differs"
    if [s.optimizer for s in old.steps] != [s.optimizer for s in new.steps]:
        return "other optimisers have stepped"
    return None


class _Result:
    """Memory that outlives a call, of which each call needs its own, unless nobody has the last."""

    __slots__ = ("array", "nbytes", "piece", "store", "table", "tensor")

    def __init__(self, table: Table, store: int, piece: Piece | None) -> None:
        self.table, self.store = table, store
        self.nbytes = table.recording.stores[store].nbytes
        whole = piece is not None and piece.offset == 0
        if whole and piece is not None:
            size = piece.dtype.itemsize
            whole = contiguous(piece.shape, piece.strides, size)
            whole = whole and self.nbytes == size * _product(piece.shape)
        self.piece = piece if whole else None
        self.array: Any = None
        self.tensor: Any = None  # of a gradient

    def renew(self) -> None:
        """Memory that nobody else has."""
        if self.piece is not None:
            self.array = memory.empty(self.piece.shape, self.piece.dtype)
        else:
            self.array = memory.empty((max(self.nbytes, 1),), _BYTES)
        self.tensor = None
        self.table.place(self.store, address(self.array))

    def seen(self, piece: Piece) -> Any:
        """A piece of it as an array."""
        if self.piece is not None and piece == self.piece:
            return self.array
        return _view(self.array, piece)


class Program:
    """What runs in the place of a function; see Note [guards]."""

    def __init__(self, old: Trace, new: Trace, tensors: Sequence[Tensor]) -> None:
        rec = new.recording
        self.trace = new
        self.lock = Lock()
        self.calls = 0
        self.epoch = new.epoch
        self.threads = current_limit()
        fixed, movable = [], []
        results: dict[int, Piece | None] = {}
        for out in new.outputs:
            if out.kind == "made":
                results[out.value.store] = None if out.value.store in results else out.value
        if new.split is not None:
            for piece in new.split.grads:
                if piece is not None:
                    results[piece.store] = None if piece.store in results else piece
        for grad in new.grads:
            if isinstance(grad.after, Piece):
                known = grad.after.store in results
                results[grad.after.store] = None if known else grad.after
        self.fixed_arguments: list[tuple[int, Any]] = []
        self.arguments: list[tuple[int, int, int]] = []  # which, its store, offset in it
        self.refused: str | None = None
        moving: set[int] = set()
        for i, (a, b) in enumerate(zip(old.recording.stores, rec.stores, strict=True)):
            if b.origin == "argument":
                if a.held is b.held:
                    fixed.append(i)
                else:
                    movable.append(i)
                    moving.add(i)
            elif b.origin in ("outer", "table"):
                fixed.append(i)
            elif i in results:
                movable.append(i)
        for j, t in enumerate(tensors):
            number = rec.known(t._array)
            assert number is not None
            if number in moving:
                if t._node is not None and new.split is None:
                    self.refused = "an argument that wants a gradient is another tensor each time"
                at = address(t._array) - rec.stores[number].address
                self.arguments.append((j, number, at))
            else:
                self.fixed_arguments.append((j, t._array))
        written = new.written
        self.written = written
        moved = [rec.stores[i] for i in moving]
        self.moving_written = {
            i
            for i in moving
            for low, high in written
            if rec.stores[i].address < high and low < rec.stores[i].address + rec.stores[i].nbytes
        }
        self.apart = bool(written)
        held = {id(s.held) for s in moved}
        self.holders = [h for h in new.holders if id(_root(h[1])) not in held]
        known_roots = {id(_root(a)) for _, a, _ in self.holders}
        for a, b in zip(old.recording.stores, rec.stores, strict=True):
            if b.origin == "outer" and a.held is b.held and id(b.held) not in known_roots:
                self.refused = "memory is used of which no tensor is known"
            elif b.origin == "outer" and a.held is not b.held:
                low, high = b.address, b.address + b.nbytes
                if any(x < high and low < y for x, y in written):
                    self.refused = "something that is made on the host is changed"
        self._overlaps(rec, moving)
        ordered = self._ask_early(new)
        self.table = Table(ordered, CPU, fixed, movable)
        self.stays, self.moves = fixed, movable
        self.launches = self.table.launches
        self.better: Table | None = None  # see Note [tables that come later]
        self.joiner: Thread | None = None
        self.passes = f"maps are joined after {JOIN_AFTER} calls"
        self.results = {i: _Result(self.table, i, p) for i, p in results.items()}
        self.test = new.watch.tester()
        self._test_tensors = self._tester()
        for store in rec.stores:
            if store.origin == "argument":
                store.held = None
        self.placed: list[Any] = [None] * len(self.arguments)
        self.grads = [
            (g.leaf, g.after, self.results[g.after.store] if isinstance(g.after, Piece) else None)
            for g in new.grads
            if g.after != "same"
        ]
        self.of_grads = {g.after.store for g in new.grads if isinstance(g.after, Piece)}
        self.of_outputs = [r for i, r in self.results.items() if i not in self.of_grads]
        self.busy: Any = None
        if new.split is not None:
            self._split(new, tensors)
        self.simple = tree_is_leaf(tree_unflatten([None] * len(new.outputs), new.spec))
        self.settled = True  # whether all places are known
        # Whether something from outside is changed: then a call is made, or not, but never half.
        self.changes = bool(
            written or new.grads or new.versions or new.recording.told or new.recording.draws
        )
        self.shared = {o.value.store for o in new.outputs if o.kind == "made"} & self.of_grads

    def _split(self, trace: Trace, tensors: Sequence[Tensor]) -> None:
        """What there is to know for Note [two parts] of history.py."""
        rec, split = trace.recording, trace.split
        assert split is not None
        later = {p.store for p in split.grads if p is not None}
        self.of_outputs = [r for i, r in self.results.items() if i not in later]
        by_node = {id(t._node): j for j, t in enumerate(tensors) if t._node is not None}
        self.targets = [
            ("argument", by_node[id(node)]) if id(node) in by_node else ("leaf", node)
            for node, _ in split.targets
        ]
        used: set[int] = set()
        for step in rec.steps[rec.mark :]:
            pieces = list(getattr(step, "pieces", ())) + list(getattr(step, "args", ()))
            used |= {v.store for v in _flat(pieces) if isinstance(v, Piece)}
        arguments = {id(t) for t in tensors}
        self.needed = [
            t for t, array, _ in self.holders if rec.known(array) in used and id(t) not in arguments
        ]
        self.needed_arguments = [j for j, t in enumerate(tensors) if rec.known(t._array) in used]
        tracked = [o for o in trace.outputs if o.tracked]
        self.needed_results = [o.value.store in used for o in tracked]

    # Building -------------------------------------------------------------------------------
    def _overlaps(self, rec: Recording, moving: set[int]) -> None:
        """Two stores that overlap, one of them changed, are one memory by two names."""
        if not self.written:
            return
        kept = [
            (s.address, s.address + s.nbytes)
            for i, s in enumerate(rec.stores)
            if s.origin in ("argument", "outer") and s.nbytes
        ]
        kept.sort()
        for (_, end), (begin, _) in itertools.pairwise(kept):
            if begin < end:
                self.refused = "two tensors share memory that is changed, by different objects"

    def _ask_early(self, trace: Trace) -> Recording:
        """Questions about what was there before come first: then nothing has been changed.

        The trace itself stays in its order, for later witnesses.
        """
        rec = trace.recording
        asked = [(i, s) for i, s in enumerate(rec.steps) if isinstance(s, Checked)]
        first = [s for i, s in asked if early(trace, s, i)]
        self.asks_late = len(first) < len(asked)
        if first and any(not isinstance(s, Checked) for s in rec.steps[: len(first)]):
            chosen = {id(s) for s in first}
            rest = [s for s in rec.steps if id(s) not in chosen]
            places = [i for i, s in enumerate(rec.steps) if id(s) not in chosen]
            moved = {old: new + len(first) for new, old in enumerate(places)}
            for s in rec.stores:  # lifetimes are counted in steps
                s.made_at = moved.get(s.made_at, s.made_at)
                s.last = moved.get(s.last, len(rec.steps))
            for question in first:
                for piece in question.args:
                    if isinstance(piece, Piece):
                        rec.stores[piece.store].made_at = 0
            rec = copy(rec)
            rec.steps = first + rest
        return rec

    def _tester(self) -> Any:
        """Whether tensors from outside, and gradients, are what they were."""
        scope: dict[str, Any] = {}
        lines = ["def test():"]
        for i, (t, array, node) in enumerate(self.holders):
            scope[f"t{i}"], scope[f"a{i}"], scope[f"n{i}"] = t, array, node
            lines.append(f"    if t{i}._array is not a{i} or t{i}._node is not n{i}: return False")
            if isinstance(node, AccumulateGrad):
                lines.append(f"    if n{i}.hooks is not None or n{i}.post_accumulate: return False")
        for i, g in enumerate(self.trace.grads):
            scope[f"l{i}"], scope[f"g{i}"] = g.leaf, g.before
            if g.before is None:
                lines.append(f"    if l{i}._grad is not None: return False")
            elif g.read or g.after == "same":
                lines.append(f"    if l{i}._grad is not g{i}: return False")
            else:
                lines.append(f"    if l{i}._grad is None: return False")
        lines.append("    return True")
        exec("\n".join(lines), scope)
        return scope["test"]

    # Running --------------------------------------------------------------------------------
    def why_not(self, tensors: Sequence[Tensor]) -> str | None:
        """Which guard fails, in words."""
        if current_limit() != self.threads:
            return "the number of threads"
        for j, array in self.fixed_arguments:
            if tensors[j]._array is not array:
                return f"argument {j} is another tensor"
        if not self._test_tensors():
            return "a tensor from outside, or a gradient"
        name = self.trace.watch.changed()
        if name is not None:
            return name
        if not all(s.holds() for s in self.trace.steps):
            return "an optimiser"
        return None

    def call(self, tensors: Sequence[Tensor], again: Any) -> Any:
        """Run it, or NOT_NOW; `again` is the call itself, for who has to run it a second time."""
        if self.busy is not None and is_busy(self.busy):
            return BUSY
        if current_limit() != self.threads:
            return NOT_NOW
        for j, array in self.fixed_arguments:
            if tensors[j]._array is not array:
                return NOT_NOW
        if not self._test_tensors() or not self.test():
            return NOT_NOW
        for step in self.trace.steps:
            if not step.holds():
                return NOT_NOW
        if epoch.value != self.epoch:
            if not self.trace.watch.slow_test():
                return NOT_NOW
            self.epoch = epoch.value
        if self.lock.locked():
            return BUSY
        with self.lock:  # whose two ends are C: no interrupt comes between
            if self.busy is not None and is_busy(self.busy):  # since it was asked
                return BUSY
            if self.changes:
                with Deferred():
                    return self._call(tensors, again)
            return self._call(tensors, again)

    def _call(self, tensors: Sequence[Tensor], again: Any) -> Any:
        if not self.settled:
            self._forget_places()
        self.settled = False
        if self.better is not None:
            self._exchange(self.better)
        elif self.calls == JOIN_AFTER:
            self.improve()
        found = NOT_NOW
        if not self.arguments or self._place(tensors):
            found = self._run(tensors, again)
        self.settled = True
        return found

    def _forget_places(self) -> None:
        """Place everything anew: the last call has ended with an error, wherever that was."""
        self.placed = [None] * len(self.arguments)
        for result in self.results.values():
            result.table, result.array, result.tensor = self.table, None, None
        self.table.forget(self.moves)

    # A better table -------------------------------------------------------------------------
    def improve(self) -> Thread | None:
        """Begin to make a better table, once; the thread that does."""
        if self.joiner is None and JOIN:
            self.joiner = Thread(target=self._join, name="undertow-joiner", daemon=True)
            try:
                self.joiner.start()
            except RuntimeError:  # there are no more threads to be had
                self.passes = "maps are not joined: there is no thread for it"
        return self.joiner

    def _join(self) -> None:
        begin = perf_counter()
        try:
            found, told = joined(self.table, self.stays, self.moves)
        except Exception as error:  # the first table goes on
            self.passes = f"maps are not joined: {type(error).__name__}: {error}"
            return
        lines = [
            f"{told.maps} maps became {told.groups}, {told.dead} launches that nobody needs went, "
            f"{_bytes(told.saved)} less to read and write, {perf_counter() - begin:.2f} s"
        ]
        if told.reasons:
            why = ", ".join(f"{n} × {w}" for w, n in told.reasons.items())
            lines.append(f"maps that do not join what they read: {why}")
        self.passes = "\n".join(lines)
        self.better = found

    def _exchange(self, table: Table) -> None:
        """Run by another table from now on; what was placed is placed there."""
        self.table, self.better = table, None
        for store, result in self.results.items():
            result.table = table
            if result.array is not None:
                table.place(store, address(result.array))
        self.placed = [None] * len(self.arguments)

    def _place(self, tensors: Sequence[Tensor]) -> bool:
        table = self.table
        bases: dict[int, int] = {}
        for i, (j, store, offset) in enumerate(self.arguments):
            array = tensors[j]._array
            if self.placed[i] is array:
                bases.setdefault(store, table.base[store])
                continue
            base = address(array) - offset
            if bases.setdefault(store, base) != base:
                return False
            if self.apart or store in self.moving_written:
                low, high = bounds(array)
                for x, y in self.written_now():
                    if low < y and x < high:
                        return False
                if store in self.moving_written:
                    recorded = table.recording.stores[store].address
                    if (base - recorded) % 64 or not array.flags.writeable:
                        return False
        for i, (j, store, _) in enumerate(self.arguments):
            self.placed[i] = tensors[j]._array
            table.place(store, bases[store])
        if self.moving_written and len(self.arguments) > 1:
            spans = sorted([(*bounds(tensors[j]._array), store) for j, store, _ in self.arguments])
            for (_, end, s), (begin, _, r) in itertools.pairwise(spans):
                if begin < end and s != r:
                    return False
        return True

    def written_now(self) -> list[tuple[int, int]]:
        """Memory from outside that is changed and stays where it is."""
        moved = [self.table.recording.stores[i] for i in self.moving_written]
        spans = {(s.address, s.address + s.nbytes) for s in moved}
        return [w for w in self.written if w not in spans]

    def _run(self, tensors: Sequence[Tensor], again: Any) -> Any:
        trace, table = self.trace, self.table
        for output in self.of_outputs:
            if output.array is None or getrefcount(output.array) > 2:
                output.renew()
        for leaf, _, result in self.grads:
            if result is None:
                continue
            t = result.tensor
            if (
                t is None
                or self.asks_late  # it may be the gradient of the last call after all
                or getrefcount(result.tensor) > (4 if leaf._grad is t else 3)  # and `t`
                or getrefcount(result.array) > 3
                or result.store in self.shared
            ):
                result.renew()
        try:
            table.run()
        except Otherwise:
            return NOT_NOW
        for version, count in trace.versions:
            version.value += count
        for leaf, piece, result in self.grads:
            if result is None:
                leaf._grad = None
                continue
            if result.tensor is None:
                result.tensor = wrap(result.seen(piece))
            else:
                result.tensor._alias = None
            leaf._grad = result.tensor
        self.calls += 1
        if trace.split is not None:
            made = [self.results[o.value.store].seen(o.value) for o in trace.outputs if o.tracked]
            history = iter(attach(self, tensors, again, made))
            found = [next(history) if o.tracked else self._given(o, tensors) for o in trace.outputs]
        else:
            found = [self._given(out, tensors) for out in trace.outputs]
        if self.simple:
            return found[0]
        for i, out in enumerate(trace.outputs):
            if out.kind == "again":
                found[i] = found[out.value]
        return tree_unflatten(found, trace.spec)

    def _given(self, out: Output, tensors: Sequence[Tensor]) -> Any:
        if out.kind == "made":
            array = self.results[out.value.store].seen(out.value)
            if out.tracked:
                meta = (array.shape, array.dtype)
                return wrap(array, Barrier(_USED_UP, [], meta))
            return wrap(array)
        if out.kind == "argument":
            return tensors[out.value]
        return out.value

    # Telling --------------------------------------------------------------------------------
    def described(self) -> str:
        """A few lines about it."""
        steps = self.table.recording.steps
        calls = [c.step.form for c in self.table.calls if isinstance(c.step, Called)]
        names: dict[str, int] = {}
        for s in steps:
            if isinstance(s, Launched):
                kind = s.name.rpartition("_")[0] or s.name
                names[kind] = names.get(kind, 0) + 1
        counted = ", ".join(f"{n} {k}" for k, n in sorted(names.items(), key=lambda p: -p[1]))
        fewer = f", {self.launches} as recorded" if self.launches > self.table.launches else ""
        lines = [f"{self.table.launches} launches ({counted}){fewer}", *self.passes.splitlines()]
        if calls:
            forms = ", ".join(f"{calls.count(c)} {c}" for c in dict.fromkeys(calls))
            lines.append(f"{len(calls)} forms called from Python between them ({forms})")
        questions = sum(isinstance(s, Checked) for s in steps)
        if questions:
            lines.append(f"{questions} questions about data, asked before anything is changed")
        lines.append(
            f"{_bytes(self.table.memory)} of memory in one block, "
            f"{_bytes(self.table.before)} if each result had its own"
        )
        facts = self.trace.watch
        lines.append(
            f"guards: {len(self.fixed_arguments)} arguments that stay, {len(self.arguments)} that "
            f"move, {len(self.holders)} tensors from outside, {len(self.trace.grads)} gradients, "
            f"{len(facts.facts)} Python values, {len(facts.slow)} attributes of modules, "
            f"{len(self.trace.steps)} optimiser steps"
        )
        return "\n".join(lines)


def _flat(values: Any) -> list[Any]:
    found = []
    for v in values:
        if v.__class__ in (tuple, list):
            found += _flat(v)
        else:
            found.append(v)
    return found


def _bytes(n: int) -> str:
    return (
        f"{n} bytes" if n < 10_000 else f"{n / 1000:.0f} kB" if n < 10**7 else f"{n / 1e6:.0f} MB"
    )


def _product(shape: Sequence[int]) -> int:
    n = 1
    for s in shape:
        n *= s
    return n


def _view(root: Any, piece: Piece) -> Any:
    if 0 in piece.shape:  # which may begin behind all memory
        return root.__class__(piece.shape, piece.dtype)
    return root.__class__(piece.shape, piece.dtype, root, piece.offset, piece.strides)
