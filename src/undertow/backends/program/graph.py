"""What a recorded call did: stores of memory, and steps that read and write pieces of them.

Note [recordings]
A recording is a list of steps in the order in which they ran. A step is a launch of a kernel with
all of its arguments, or a call of a form that has no launches as data, or a question about data
whose answer must be the same again. Arrays are pieces of stores: a store is memory that somebody
allocated, a piece is where in it an array begins, and its layout. So a view is no step, and a write
through one is a write to its store. Stores are numbered in the order in which they are met, so two
recordings of the same work are equal, number by number.

Where a store comes from decides what becomes of it in a program:
  made      by a form, while recording. If nobody holds it after the call, it is a part of the
            program's block of memory; else it is a result, which every call makes anew.
  scratch   of a launch, whose content nobody needs afterwards.
  argument  of the recorded function: another one with every call, or the same with all so far.
  outer     was there before. It must be the very same object in both recordings; or it is a
            constant that each of them has made by itself, and then it has the same bytes in both.
"""

from __future__ import annotations

import struct
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class Piece(NamedTuple):
    """An array: a place in a store, and a layout."""

    store: int
    offset: int  # in bytes
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any


class Store:
    """Memory; see Note [recordings]."""

    __slots__ = ("address", "argument", "held", "last", "made_at", "nbytes", "origin", "root")

    def __init__(self, root: Any, origin: str, at: int, held: bool) -> None:
        low, high = bounds(root)
        self.address, self.nbytes = low, high - low
        self.origin = origin
        self.argument: int | None = None  # which one
        self.made_at = self.last = at  # the first and the last step that know it
        self.held = root if held else None
        self.root = weakref.ref(root)

    def holds(self, other: Store) -> bool:
        """Whether another one lies in its memory."""
        low, high = other.address, other.address + other.nbytes
        return low < self.address + self.nbytes and self.address < high and self.alive

    @property
    def alive(self) -> bool:
        """Whether anybody holds it."""
        return self.root() is not None


class Mapped(NamedTuple):
    """What a launch computes, element by element: expressions of pieces, then of numbers."""

    exprs: tuple[Any, ...]  # one for each piece that is written
    order: tuple[int, ...]  # which operand is each argument of an expression
    ins: tuple[Piece, ...]
    outs: tuple[Piece, ...]
    compute: str  # the type


class Drawn(NamedTuple):
    """Where a launch's random words come from: its numbers have their block and the seed."""

    draw: int
    offset: int  # in what was drawn
    rest: int  # of the offset in the stream, by words in a block
    place: int  # among the numbers: of the block, and two words of the seed


class Launched(NamedTuple):
    """A launch of a kernel."""

    name: str
    entry: int
    pool: int
    pieces: tuple[Piece, ...]
    ints: tuple[int, ...]
    numbers: tuple[Any, ...]
    kinds: tuple[str, ...]  # of the numbers
    asked: int | None  # which question gives the numbers, if they are asked for again
    rows: Any  # of an update: (rows of pieces, places, widths)
    writes: frozenset[int] = frozenset()  # stores; all others are only read
    map: Mapped | None = None  # what it computes, if that is a map
    drawn: Drawn | None = None  # of random numbers


class Called(NamedTuple):
    """A form that is called as it is; `args` has pieces in the place of arrays."""

    form: str
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]
    results: tuple[Piece, ...]  # those in fresh memory
    places: tuple[Any, ...]  # where among what the form gives these are
    drawn: tuple[int, int] | None  # of random numbers: which draw, and the offset in it


class Checked(NamedTuple):
    """A question about data, `require` or `within`, and the answer."""

    form: str
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]
    answer: Any


class Told(NamedTuple):
    """Something that is done on the host, in this place."""

    number: int  # among what was told


def bounds(root: Any) -> tuple[int, int]:
    """The first byte of an array, and the one behind its last."""
    low = high = int(root.__array_interface__["data"][0])
    if root.size == 0:
        return low, low
    for n, s in zip(root.shape, root.strides, strict=True):
        if s < 0:
            low += (n - 1) * s
        else:
            high += (n - 1) * s
    return low, high + root.itemsize


def root_of(array: Any) -> Any:
    """The array whose memory this is a view of."""
    base = array.base
    while base is not None:
        if isinstance(base, np.ndarray):
            array = base
        base = getattr(base, "base", None)  # NumPy's as_strided has an object in between
    return array


class Recording:
    """Steps and stores; see Note [recordings]."""

    def __init__(self) -> None:
        self.stores: list[Store] = []
        self.steps: list[Any] = []
        self._by_root: dict[int, int] = {}
        self.asks: list[Any] = []  # functions that give the numbers of updates
        self.told: list[Callable[[], Any]] = []
        self.draws: list[tuple[Any, int]] = []  # generators, and how many words
        self.held: list[Any] = []  # what must not be freed
        self.doubtful = False  # whether something made inside is used by a name that hides it
        self.mark = -1  # the first step of a second part, which may run later

    def known(self, array: Any) -> int | None:
        """The store of an array, if it was met before."""
        if not isinstance(array, np.ndarray):  # of a transform, which is made of such
            return None
        root = root_of(array)
        found = self._by_root.get(id(root))
        if found is None or self.stores[found].root() is not root:
            return None
        return found

    def store(self, array: Any, origin: str) -> int:
        """The store of an array; a new one has this origin."""
        found = self.known(array)
        if found is None:
            root = root_of(array)
            found = self._by_root[id(root)] = len(self.stores)
            held = origin not in ("made", "scratch")
            new = Store(root, origin, len(self.steps), held)
            if origin == "outer" and any(s.origin == "made" and s.holds(new) for s in self.stores):
                self.doubtful = True
            self.stores.append(new)
        return found

    def piece(self, array: Any, origin: str = "outer") -> Piece:
        """An array as a piece."""
        number = self.store(array, origin)
        store = self.stores[number]
        store.last = len(self.steps)
        at = int(array.__array_interface__["data"][0]) - store.address
        return Piece(number, at, array.shape, array.strides, array.dtype)

    def described(self, value: Any) -> Any:
        """An argument of a form, with pieces in the place of arrays."""
        if isinstance(value, np.ndarray):
            return self.piece(value)
        if value.__class__ in (tuple, list):
            return tuple([self.described(v) for v in value])
        return value


# Comparing ------------------------------------------------------------------------------------
def difference(old: Recording, new: Recording) -> str | None:
    """What two recordings do not agree in; None if they are of the same work."""
    for i, (a, b) in enumerate(zip(old.steps, new.steps, strict=False)):
        if not _same(a, b):
            return _told(i, a, b)
    if len(old.steps) != len(new.steps):
        return f"{len(old.steps)} steps were recorded, then {len(new.steps)}"
    for i, (x, y) in enumerate(zip(old.stores, new.stores, strict=True)):
        if x.nbytes != y.nbytes or x.origin != y.origin or x.argument != y.argument:
            return f"memory {i} is of another size or origin"
        if x.origin == "outer" and x.held is not y.held and not _same_bytes(x.held, y.held):
            return f"a tensor that is no argument has changed ({_shown(y.held)})"
    for (g, n), (h, m) in zip(old.draws, new.draws, strict=True):
        if g is not h or n != m:
            return "random numbers are drawn from other generators"
    return None


def _same_bytes(a: Any, b: Any) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype or a.nbytes > 1 << 26:
        return False
    return bool(np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes())


def _shown(array: Any) -> str:
    return f"{array.dtype.name} of shape {tuple(array.shape)}"


def _same(a: Any, b: Any) -> bool:
    if a.__class__ is not b.__class__:
        return False
    if a.__class__ is Launched:
        if a[:5] != b[:5] or a.kinds != b.kinds or a.asked != b.asked or a.drawn != b.drawn:
            return False
        if a.drawn is not None:  # the block and the seed are asked for again
            at = a.drawn.place
            left, right = a.numbers, b.numbers
            return _equal(left[:at] + left[at + 3 :], right[:at] + right[at + 3 :])
        return a.asked is not None or _equal(a.numbers, b.numbers)
    if a.__class__ is Called:
        left, right = a, b
        if a.drawn is not None:  # the seed and the offset are asked for again
            left, right = a._replace(args=a.args[:-3]), b._replace(args=b.args[:-3])
            if a.form == "random_map":
                left, right = a._replace(args=a.args[:-2]), b._replace(args=b.args[:-2])
        return _equal(left, right)
    if a.__class__ is Checked:
        return a.form == b.form and _equal(a.args[:3], b.args[:3]) and _equal(a.answer, b.answer)
    return _equal(a, b)


def _equal(a: Any, b: Any) -> bool:
    """Whether two arguments are the same, number by number and type by type."""
    if a is b:
        return True
    if a.__class__ is not b.__class__:
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    if a.__class__ is float:
        return struct.pack("d", a) == struct.pack("d", b)
    try:
        return bool(a == b)
    except Exception:
        return False


def _told(i: int, a: Any, b: Any) -> str:
    def name(step: Any) -> str:
        if step.__class__ is Told:
            return "a change on the host"
        return str(getattr(step, "name", None) or step.form)

    if getattr(a, "form", "") == getattr(b, "form", "") == "to_host":
        return f"what decided in step {i} (an if, a bool()) was {a.answer} and then {b.answer}"
    if name(a) != name(b):
        return f"step {i} was {name(a)} and then {name(b)}"
    for x, y in zip(_numbers(a), _numbers(b), strict=False):
        if not _equal(x, y):
            return f"a number in step {i} ({name(a)}) was {x!r} and then {y!r}"
    return f"step {i} ({name(a)}) has other operands"


def _numbers(step: Any) -> list[Any]:
    found = list(getattr(step, "numbers", ()))
    for arg in getattr(step, "args", ()):
        if isinstance(arg, (int, float, str)):
            found.append(arg)
        elif arg.__class__ is tuple:
            found += [v for v in arg if isinstance(v, (int, float, str))]
    if isinstance(step, Checked):
        found.append(step.answer)
    return found


# Memory ---------------------------------------------------------------------------------------
LINE, PAGE, LARGE = 64, 4096, 1 << 20


def planned(sizes: Sequence[tuple[int, int, int]]) -> tuple[list[int], int]:
    """Where to put stores of (bytes, first step, last step) in one block, and its size.

    Each goes to the lowest place that is free as long as it lives: the largest first, or those
    that are made first, whichever needs less.

    >>> planned([(100, 0, 1), (100, 1, 2), (50, 2, 3)])
    ([0, 128, 0], 256)
    """
    numbers = range(len(sizes))
    by_size = sorted(numbers, key=lambda i: -sizes[i][0])
    by_time = sorted(numbers, key=lambda i: (sizes[i][1], -sizes[i][0]))
    return min((_placed(sizes, order) for order in (by_size, by_time)), key=lambda p: p[1])


def _placed(sizes: Sequence[tuple[int, int, int]], order: Sequence[int]) -> tuple[list[int], int]:
    offsets = [0] * len(sizes)
    placed: list[tuple[int, int, int, int]] = []  # begin, end, first, last
    total = 0
    for i in order:
        size, first, last = sizes[i]
        if not size:
            continue
        unit = PAGE if size >= LARGE else LINE
        at = 0
        for begin, end, born, died in placed:
            if died < first or last < born:
                continue
            if begin - at >= size:
                break
            if end > at:
                at = -(-end // unit) * unit
        offsets[i] = at
        end = at + -(-size // LINE) * LINE
        placed.append((at, end, first, last))
        placed.sort()
        total = max(total, end)
    return offsets, total
