"""Programs on the CPU: a recording as words in memory that one native function runs through.

Note [tables]
Each launch of a recording becomes its packed arguments, laid out once: the pool, addresses, sizes
and numbers. A program runs them in order, without Python between them (`native.many`), for 10 to 20
nanoseconds each. What differs from call to call is written into the words before: the address of a
store (`place`), and numbers that are asked for (an optimiser's rates). What has no launches is
called as a form, between two stretches of launches; its fresh results are put where the program
expects them. A call that reads no array (`arange`) gives the same each time: it is made once, and
its results stay in the block.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import memory
from ..program.graph import LINE, Called, Checked, Launched, Piece, Recording, Told, planned
from .backend import CpuBackend
from .calls import native
from .codegen.kernels import address
from .forms import updates

_WORD = (1 << 64) - 1
_SMALL = 1 << 16  # bytes of a constant, at most
_KINDS = {"f32": "f", "f64": "d", "i64": "q"}


class Otherwise(Exception):
    """The data ask for another way than the recorded one."""


class Table:
    """A recording that can be run; see Note [tables].

    `fixed` tells which stores stay where they were when it was recorded (their roots are held),
    `movable` which ones are placed by the caller: arguments, and results. All others lie in one
    block.
    """

    def __init__(
        self, recording: Recording, cpu: Any, fixed: Sequence[int], movable: Sequence[int]
    ) -> None:
        self.recording, self.cpu = recording, cpu
        stores = recording.stores
        self.held = [
            stores[i].held if stores[i].held is not None else stores[i].root() for i in fixed
        ]
        self.base: list[int] = [0] * len(stores)
        for i in fixed:
            self.base[i] = stores[i].address
        self.inside = [i for i in range(len(stores)) if i not in {*fixed, *movable}]
        self.memory = 0  # bytes of the block
        self._constant = _constant(recording, set(self.inside))
        self._plan_memory()
        self._words: Any = None
        self._places: dict[int, tuple[Any, Any]] = {}  # by store: places of words, and offsets
        self._once: list[_Call] = []
        self._lay_out()
        self._make_constants()
        self.drawn: list[tuple[int, int]] = []

    # Memory ---------------------------------------------------------------------------------
    def _plan_memory(self) -> None:
        stores = self.recording.stores
        sizes = []
        for i in self.inside:
            s = stores[i]
            first, last, mark = s.made_at, s.last, self.recording.mark
            if i in self._constant:
                first, last = 0, len(self.recording.steps)
            elif first < mark <= last:  # a second part may run twice
                last = len(self.recording.steps)
            sizes.append((s.nbytes, first, last))
        offsets, total = planned(sizes)
        self.memory = total
        self.before = sum([size for size, _, _ in sizes])
        block = np.empty(total + memory.PAGE + 4 * LINE, np.uint8)
        at = -address(block) % memory.PAGE
        self.block = block[at : at + total + 2 * LINE]
        start = address(self.block)
        for i, offset in zip(self.inside, offsets, strict=True):
            self.base[i] = start + offset

    def fill(self, byte: int) -> None:
        """Overwrite the block, of which no call may need what is there; for tests."""
        self.block.fill(byte)
        self._make_constants()

    def _make_constants(self) -> None:
        for call in self._once:
            call.settle()
            call.run()

    # Words ----------------------------------------------------------------------------------
    def _lay_out(self) -> None:
        steps = self.recording.steps
        words: list[int] = []
        begins: list[int] = []
        uses: dict[int, list[tuple[int, int]]] = {}
        self._asked: list[tuple[int, int, tuple[str, ...]]] = []  # question, word, kinds
        self._random: list[tuple[Any, int]] = []  # draw, word of the block
        self._updates: list[tuple[int, Any]] = []  # word of where rows begin, rows
        self._tables: list[Any] = []
        for step in steps:
            begins.append(len(words))
            if step.__class__ is not Launched:
                continue
            words.append(step.pool)
            for p in step.pieces:
                uses.setdefault(p.store, []).append((len(words), p.offset))
                words.append(0)
            if step.rows is not None:
                self._updates.append((len(words) - 2, step.rows))  # where rows begin; blocks
                self._tables.append(None)
            words += [n & _WORD for n in step.ints]
            if step.asked is not None:
                self._asked.append((step.asked, len(words), step.kinds))
            if step.drawn is not None:
                self._random.append((step.drawn, len(words) + step.drawn.place))
            words += [_packed(k, n) for k, n in zip(step.kinds, step.numbers, strict=True)]
        self._words = np.array(words or [0], np.uint64)
        self._floats, self._doubles = self._words.view(np.float32), self._words.view(np.float64)
        self._places = {
            store: (np.array([w for w, _ in at], np.int64), np.array([o for _, o in at], np.uint64))
            for store, at in uses.items()
        }
        self.rewrite()
        self._steps: list[Callable[[], Any]] = []
        start = address(self._words)
        stretch: list[tuple[int, int]] = []
        large = False
        asked_at = {}
        for question, word, kinds in self._asked:
            asked_at[question] = (word, kinds)
        self.launches = 0
        self.calls: list[_Call] = []

        def flush() -> None:
            nonlocal stretch, large
            if stretch:
                self._steps.append(native.many(stretch, large))
                stretch, large = [], False

        self._mark = -1
        for i, step in enumerate(steps):
            if i == self.recording.mark:
                flush()
                self._mark = len(self._steps)
            if step.__class__ is Launched:
                if step.asked is not None:
                    flush()
                    self._steps.append(_Ask(self, step.asked, *asked_at[step.asked]))
                stretch.append((step.entry, start + 8 * begins[i]))
                large = (
                    large
                    or bool(step.pool)
                    or any(self.recording.stores[p.store].nbytes > 1 << 15 for p in step.pieces)
                )
                self.launches += 1
            elif step.__class__ is Told:
                flush()
                self._steps.append(self.recording.told[step.number])
            else:
                call = _Call(self, step)
                if step.__class__ is Called and any(
                    p.store in self._constant for p in step.results
                ):
                    self._once.append(call)
                    continue
                flush()
                self.calls.append(call)
                self._steps.append(call.run)
        flush()
        if self._mark < 0:
            self._mark = len(self._steps)

    def _write(self, store: int) -> None:
        places, offsets = self._places[store]
        self._words[places] = offsets + np.uint64(self.base[store])

    def place(self, store: int, at: int) -> None:
        """Let a store begin at this address from now on."""
        if self.base[store] == at:
            return
        self.ready = False
        self.base[store] = at
        if store in self._places:
            self._write(store)

    def rewrite(self) -> None:
        """Write all addresses once more: an interrupt may have kept one from being written."""
        self.ready = False
        for store in self._places:
            if self.base[store]:
                self._write(store)

    def forget(self, movable: Sequence[int]) -> None:
        """No longer know where stores are that the caller places."""
        self.ready = False
        for store in movable:
            self.base[store] = 0

    def _settle(self) -> None:
        """Bring up to date what depends on several addresses."""
        for i, (word, (rows, places, widths)) in enumerate(self._updates):
            addresses = [self.base[p.store] + p.offset for row in rows for p in row]
            sizes = [int(np.prod(row[0].shape, dtype=np.int64)) for row in rows]
            table = updates._begins(addresses, sizes, list(widths), places)
            if table is None:
                raise Otherwise("parameters overlap")
            self._tables[i] = table
            self._words[word] = address(table)
        for call in self.calls:
            call.settle()
        self.ready = True

    def array(self, piece: Piece) -> Any:
        """A piece as an array, which does not hold its memory."""
        stores = self.recording.stores
        if 0 in piece.shape:  # which may begin behind all memory
            return np.empty(piece.shape, piece.dtype)
        size = max(stores[piece.store].nbytes, 1)
        buffer: Any = (ctypes.c_char * size).from_address(self.base[piece.store])
        return np.ndarray(piece.shape, piece.dtype, buffer, piece.offset, piece.strides)

    # Running --------------------------------------------------------------------------------
    def run(self) -> None:
        """All steps; Otherwise leaves before anything outside was changed, if it is raised."""
        if not self.ready:
            self._settle()
        draws = self.recording.draws
        steps = self._steps if self._mark == len(self._steps) else self._steps[: self._mark]
        if draws:
            before = [(g, g._seed, g._offset) for g, _ in draws]
            self.drawn = [g.reserve(count) for g, count in draws]
            try:
                self._draw_words()
                for step in steps:
                    step()
            except Otherwise:
                for g, seed, offset in reversed(before):
                    g._seed, g._offset = seed, offset
                raise
            return
        for step in steps:
            step()

    def run_rest(self) -> None:
        """The second part."""
        if not self.ready:
            self._settle()
        for step in self._steps[self._mark :]:
            step()

    def _draw_words(self) -> None:
        for (which, within, rest, _), word in self._random:
            seed, offset = self.draw((which, within))
            if offset % 4 != rest:
                raise Otherwise("random words begin elsewhere in a block")
            self._words[word : word + 3] = offset // 4, seed & 0xFFFFFFFF, seed >> 32

    def draw(self, which: tuple[int, int]) -> tuple[int, int]:
        """The seed and the offset of random words in this call."""
        seed, offset = self.drawn[which[0]]
        return seed, offset + which[1]


def _constant(recording: Recording, inside: set[int]) -> set[int]:
    """Stores in the block that a call fills, which reads no array, and nothing else changes."""
    found: dict[int, int] = {}
    for i, step in enumerate(recording.steps):
        if step.__class__ is Called and step.form == "arange" and len(step.results) == 1:
            found[step.results[0].store] = i
    for i, step in enumerate(recording.steps):
        changed = getattr(step, "writes", ())
        if step.__class__ is Called:  # it may write into what it is given
            changed = [p.store for p in _flat(step.args) if p.__class__ is Piece]
            changed += [p.store for _, v in step.kwargs for p in _flat(v) if p.__class__ is Piece]
        for store in changed:
            if found.get(store, i) != i:
                del found[store]
    return {s for s in found if s in inside and recording.stores[s].nbytes <= _SMALL}


def _flat(value: Any) -> list[Any]:
    if value.__class__ is tuple:  # a piece is another class
        return [v for part in value for v in _flat(part)]
    return [value]


class _Ask:
    """Numbers that are asked for again, written into the words of a launch."""

    __slots__ = ("function", "piece", "table", "targets")

    def __init__(self, table: Table, question: int, word: int, kinds: Sequence[str]) -> None:
        self.table = table
        self.function, self.piece = table.recording.asks[question], None
        if self.function.__class__ is tuple:
            self.function, self.piece = self.function
        self.targets = []
        for i, kind in enumerate(kinds):
            if kind == "f32":
                self.targets.append((table._floats, 2 * (word + i)))
            else:
                self.targets.append((table._doubles, word + i))

    def __call__(self) -> None:
        if self.piece is None:
            found = self.function()
        else:
            found = self.function(self.table.array(self.piece).item())
        for (array, at), number in zip(self.targets, found, strict=True):
            array[at] = number


class _Call:
    """A form that is called, or a question about data."""

    __slots__ = ("args", "form", "kwargs", "outs", "step", "table")

    def __init__(self, table: Table, step: Called | Checked) -> None:
        self.table, self.step = table, step
        self.form = getattr(CpuBackend, step.form)
        self.args: Any = ()
        self.kwargs: Any = {}
        self.outs: Any = ()

    def settle(self) -> None:
        self.args = _built(self.table, self.step.args)
        self.kwargs = {n: _built(self.table, v) for n, v in self.step.kwargs}
        if self.step.__class__ is Called:
            self.outs = [self.table.array(p) for p in self.step.results]

    def run(self) -> None:
        step: Any = self.step
        table = self.table
        if step.__class__ is Checked:
            try:
                answer = self.form(table.cpu, *self.args, **self.kwargs)
            except Exception as error:
                raise Otherwise("an index is out of range") from error
            if answer != step.answer:
                raise Otherwise("the answer to a question about data is another one")
            return
        args = self.args
        if step.drawn is not None:
            seed, offset = table.draw(step.drawn)
            args = (
                (*args[:-2], seed, offset) if step.form == "random_map" else (seed, offset, args[2])
            )
        token = table.cpu.begin()
        try:
            found = self.form(table.cpu, *args, **self.kwargs)
        finally:
            table.cpu.end(token)
        for out, place in zip(self.outs, step.places, strict=True):
            value = found
            for i in place:
                value = value[i]
            if value.shape != out.shape or value.dtype != out.dtype:
                raise RuntimeError(
                    f"[compile] {step.form} gave {value.shape} where {out.shape} was recorded"
                )
            np.copyto(out, value)


def _built(table: Table, value: Any) -> Any:
    if value.__class__ is Piece:
        return table.array(value)
    if value.__class__ is tuple:
        return tuple([_built(table, v) for v in value])
    return value


def _packed(kind: str, number: Any) -> int:
    try:
        data = struct.pack(_KINDS[kind], number)
    except (struct.error, OverflowError):
        if kind == "i64":
            return int(number) & _WORD
        data = bytes(ctypes.c_float(number) if kind == "f32" else ctypes.c_double(number))
    return int.from_bytes(data.ljust(8, b"\0"), "little")
