"""How to compute one matrix product: which tiles, how k is cut, what is packed, how many tasks.

Everything here is arithmetic on shapes and strides; nothing is compiled.

Note [choices]
All costs are in cycles of one core, from measurements; only their ratios matter.
  - thin or wide: see Note [thin]. Few columns are summed along k, if k is contiguous in A; so are few
    rows if it is in B, as the transposed product.
  - transposed: the wide tiles store whole vectors along rows of the result. A result whose columns
    are contiguous instead is computed as its transpose, and so is a column vector.
  - B in place or packed: packing costs a pass over B and pays when several row panels use it. In
    place, rows of B must be contiguous.
  - A in place or packed: read in place it costs nothing as long as k is contiguous. Otherwise each
    step touches other lines of memory, and A is packed once it is too large for the first cache.
  - tasks: the cut into parts of rows and columns that ends first if tasks are handed out one by one.
    Cutting columns repeats what is done for A, cutting rows repeats the packing of B.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from .gemm_thin import MOST_COLUMNS, thin_tile
from .gemm_tiles import Target, Tile, evenly, largest_tile, widest

PARALLEL = 1 << 20  # multiply-adds from which on several threads are used
_PACK = {"rows": 0.6, "turned": 0.9, "any": 3.0}  # cycles per element
_START = 1000  # cycles per task


class Setting(NamedTuple):
    """What the choices depend on besides the operands."""

    target: Target
    level1: int  # bytes of cache
    level2: int
    threads: int


class Operands(NamedTuple):
    """One product: sizes, and steps in bytes."""

    m: int
    n: int
    k: int
    batch: int  # how many matrices
    a: tuple[int, int]  # (by row, by k)
    b: tuple[int, int]  # (by k, by column)
    c: tuple[int, int]  # (by row, by column)
    size: int  # bytes of an element to compute with
    halves: bool = False  # elements in memory are half as wide, and converted by packing

    def transposed(self) -> Operands:
        """The product b' @ a', whose result is the same memory."""
        m, n, k, batch, a, b, c, *rest = self
        return Operands(n, m, k, batch, b[::-1], a[::-1], c[::-1], *rest)


class Choice(NamedTuple):
    """The answer."""

    thin: bool
    transposed: bool
    tile: Tile  # the largest
    lanes: int  # columns that a strip's width counts: those of a vector, or 1
    strips: int
    panels: int
    depth: int
    pack_a: str  # "" or how: see `gemm_pack`
    pack_b: str
    group: int
    row_parts: int
    column_parts: int


def choose(given: Operands, setting: Setting) -> Choice:
    """The best way for these operands."""
    for transposed, o in ((False, given), (True, given.transposed())):
        if _is_thin(o, setting.target):
            return _thin(o, setting, transposed)
    turn = not _unit(given.c[1], given.n, given) or (
        given.n == 1 and given.m > 1 and _unit(given.c[0], given.m, given)
    )
    return _wide(given.transposed() if turn else given, setting, turn)


def _unit(step: int, length: int, o: Operands) -> bool:
    """Whether neighbours in a dimension are neighbours in memory."""
    return step == o.size or length <= 1


def _is_thin(o: Operands, target: Target) -> bool:
    lanes = target.vector // o.size
    few = o.n <= max(1, lanes // 4) or (o.n <= lanes and o.k >= 4 * lanes)
    return few and _unit(o.a[1], o.k, o) and o.k >= lanes and not o.halves


def _thin(o: Operands, setting: Setting, transposed: bool) -> Choice:
    strips = evenly(o.n, MOST_COLUMNS)
    tile = thin_tile(setting.target, math.ceil(o.n / strips))
    panels = evenly(o.m, tile.rows)
    depth = _depth(o.k, setting.level2 // (16 * tile.rows * o.size))
    pack_b = "" if _unit(o.b[0], o.k, o) else _how(o.b[1], o.b[0], o)
    lanes = setting.target.vector // o.size

    def cost(panels: int, strips: int) -> float:
        work = panels * tile.rows * o.n * o.k / lanes
        return work + o.k * o.n * _PACK.get(pack_b, 0)

    rows, _ = _parts(panels, 1, o, setting, cost)
    return Choice(True, transposed, tile, 1, strips, panels, depth, "", pack_b, 1, rows, 1)


def _wide(o: Operands, setting: Setting, transposed: bool) -> Choice:
    target, size = setting.target, o.size
    lanes = target.vector // size
    vectors = math.ceil(o.n / lanes)
    strips = evenly(vectors, widest(target))
    tile = largest_tile(target, math.ceil(vectors / strips))
    panels = evenly(o.m, tile.rows)
    usual = largest_tile(target, widest(target)).rows
    depth = o.k if o.halves else _depth(o.k, setting.level1 // (4 * usual * size))
    pack_b = ""
    if o.halves or not _unit(o.b[1], o.n, o) or (panels > 2 and o.m * o.k > 1024):
        pack_b = _how(o.b[0], o.b[1], o)
    pack_a = ""
    if o.halves or (not _unit(o.a[1], o.k, o) and strips > 1 and o.m * o.k * size > setting.level1):
        pack_a = _how(o.a[0], o.a[1], o)
    row = packed_row(depth, size, target)
    group = max(1, setting.level2 // 4 // row // tile.rows)
    room = setting.level2 * (2 if pack_a else 0.5)
    fitting = max(1, int(room / (depth * size * tile.vectors * lanes or 1)))

    def cost(panels: int, strips: int) -> float:
        rows, columns = panels * tile.rows, strips * tile.vectors * lanes
        work = rows * columns * o.k / (2 * lanes)
        packing = columns * o.k * _PACK.get(pack_b, 0) + rows * o.k * _PACK.get(pack_a, 0.05)
        return work + packing

    rows, columns = _parts(panels, strips, o, setting, cost, evenly(strips, fitting))
    return Choice(
        False, transposed, tile, lanes, strips, panels, depth, pack_a, pack_b, group, rows, columns
    )


def packed_row(depth: int, size: int, target: Target) -> int:
    """Bytes of a packed row with k fastest: whole vectors, and no power of two apart."""
    return (depth * size // target.vector + 1) * target.vector


def _how(slow: int, fast: int, o: Operands) -> str:
    """How to pack rows of `fast` steps, one for each `slow` step."""
    width = o.size // 2 if o.halves else o.size
    return "rows" if fast == width else "turned" if slow == width else "any"


def _depth(k: int, most: int) -> int:
    """The size of blocks of k, equal ones that are whole lines of memory."""
    most = max(16, most // 16 * 16)
    return math.ceil(math.ceil(k / evenly(k, most)) / 16) * 16


def _parts(
    panels: int,
    strips: int,
    o: Operands,
    setting: Setting,
    cost: Callable[[int, int], float],
    least: int = 1,
) -> tuple[int, int]:
    """Into how many parts to cut rows and columns."""
    threads = setting.threads
    if threads == 1 or o.m * o.n * o.k * o.batch < PARALLEL:
        return 1, least
    best, found = math.inf, (1, least)
    for columns in range(least, min(strips, least + 2 * threads) + 1):
        for rows in range(1, min(panels, 4 * threads) + 1):
            tasks = rows * columns * o.batch
            one = cost(math.ceil(panels / rows), math.ceil(strips / columns)) + _START
            total = math.ceil(tasks / threads) * one
            total += one * 0.1  # of threads that come late, or are held up
            if total < best:
                best, found = total, (rows, columns)
    return found
