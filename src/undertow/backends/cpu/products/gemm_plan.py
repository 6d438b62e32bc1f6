"""How to compute one matrix product: which tiles, how k is cut, what is packed, how many tasks.

Everything here is arithmetic on shapes and strides; nothing is compiled.

Note [choices]
Each way to compute a product has an estimated cost, in cycles of one core; the cheapest is taken.
The numbers are measured, and only their ratios matter. The ways are:
  - wide tiles, `gemm_micro`, with vectors along rows of the result; or thin tiles, `gemm_thin`, for
    few columns, with vectors along k, if k is contiguous in A;
  - the product as it is, or transposed, b' @ a', which writes the same memory;
  - A and B packed, or read in place. In place, B must have contiguous rows. Reading in place costs
    nothing while the operand fits into the first cache, or if it is A and k is contiguous. Else
    nearly every step of k waits for a line of memory, in each tile anew. Packing is one pass.
  - deep blocks of k, of which many strips of B stay in the second cache; or shallow ones, of which
    one strip stays in the first while A passes. Shallow ones are packed faster, but the result is
    read and written once for each block.
How k is cut depends on the operands alone, never on the number of threads. Then the result is cut
into tasks: cutting columns repeats what is done for A, cutting rows repeats the packing of B. Tasks
are handed out one by one, and often one of the processors is slower than the others, because it
serves somebody else as well; the cut is best that ends first with and without such a one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .gemm_thin import MOST_COLUMNS, thin_tile
from .gemm_tiles import MOST_WIDTH, Target, Tile, evenly, largest_tile, widest
from .window_pack import WindowPacking

PARALLEL = 1 << 19  # multiply-adds from which on several threads are used
_PACK = {"": 0.0, "rows": 0.6, "transposed": 0.9, "any": 3.0}  # cycles per element
_READ = 0.02, 0.05  # cycles per element of A in a pass, if those of a block fit the second cache
_ROWS = 8  # rows of a B that passes once from memory, read side by side; see Note [passing]
_LINE = 64  # bytes
_WAIT = 4, 16  # cycles per step of k for lines that are in the second cache, or beyond
_PAGE = 4096  # bytes
_COLLISION = 1.6  # cycles per step of k for rows of A that collide in the first cache
_PASS = 0.1, 1.2  # cycles for an element of a result that fits into the second cache, or does not
_PASSING = 0.03  # the same where it is hidden behind waits for memory
_SPREAD = 3  # cycles to write an element whose neighbours are elsewhere
_SUM = 4  # cycles to add the lanes of one sum of a thin tile
_BREAK = 20  # cycles for a row in memory that is cut, where columns are
_CALL = 20  # cycles around a tile
_START = 1000  # cycles around a task
_LATE = 20000  # cycles that a thread may come late
_SLOW = 0.6  # the speed of a thread whose processor is shared


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
    width: int  # bytes of an element in memory: as many, or half as many, and packing converts it
    images: int = 1  # the product is the sum of so many, with these steps from one to the next
    a_image: int = 0
    b_image: int = 0

    def transposed(self) -> Operands:
        """The product b' @ a', whose result is the same memory."""
        a, b, c = self.b[::-1], self.a[::-1], self.c[::-1]
        return self._replace(
            m=self.n, n=self.m, a=a, b=b, c=c, a_image=self.b_image, b_image=self.a_image
        )

    def unit(self, step: int, length: int) -> bool:
        """Whether neighbours at this step are neighbours in memory."""
        return length <= 1 or step == self.width

    @property
    def halves(self) -> bool:
        """Whether elements must be converted, so that nothing can be read in place."""
        return self.width < self.size


class Choice(NamedTuple):
    """One way to compute it."""

    thin: bool
    transposed: bool
    spread: bool  # the columns of the result are not neighbours in memory
    tile: Tile  # the largest
    lanes: int  # columns that a strip's width counts in: those of a vector, of a tile, or 1
    panels: int
    strips: int
    depth: int  # steps of k in a block
    pack_a: str | WindowPacking = ""  # how, see kernel/packing; or in place
    pack_b: str | WindowPacking = ""
    group: int = 1  # panels of A that are packed together
    staying: int = 1  # strips of B that are packed together
    row_parts: int = 1
    column_parts: int = 1
    passing: bool = False  # a tile goes on to the end of its strip, which has any width


def choose(given: Operands, setting: Setting) -> Choice:
    """The cheapest way for these operands."""
    best, found = math.inf, None
    for transposed, o in ((False, given), (True, given.transposed())):
        for ways in (_wide, _thin):
            for way, cost, least in ways(o, setting, transposed):
                total = cost(o.m, o.n)
                if total < best:
                    best, found = total, (o, way, cost, least)
    assert found is not None  # wide tiles can do everything
    o, way, cost, least = found
    rows, columns = _parts(o, way, cost, least, setting)
    return way._replace(row_parts=rows, column_parts=columns)


def choose_packed(o: Operands, setting: Setting, windows: WindowPacking, left: bool) -> Choice:
    """The cheapest way if one operand, the left or the right one, is the windows of an array."""
    ways = [w for w in _wide(o, setting, False) if (w[0].pack_a if left else w[0].pack_b)]
    way, cost, least = min(ways, key=lambda way: way[1](o.m, o.n))
    rows, columns = _parts(o, way, cost, least, setting)
    way = way._replace(row_parts=rows, column_parts=columns)
    return way._replace(pack_a=windows) if left else way._replace(pack_b=windows)


def choose_in_place(o: Operands, setting: Setting) -> Choice:
    """The cheapest way that packs nothing, for few rows by a B with contiguous rows, on one thread.

    Strip by strip, so that each stays in the first cache for all rows: a product that is made again
    and again by the same B, which then comes from the second cache once each time.
    """
    ways = [w for w in _wide(o, setting, False) if not (w[0].pack_a or w[0].pack_b)]
    return min(ways, key=lambda way: way[1](o.m, o.n))[0]._replace(staying=1)


_Cost = Callable[[int, int], float]  # of so many rows by so many columns
_Ways = Iterator[tuple[Choice, _Cost, int]]  # with the parts into which columns must be cut


def _wide(o: Operands, setting: Setting, transposed: bool) -> _Ways:
    """Tiles of vectors, with A packed or not, B packed or not, and blocks deep or shallow."""
    target, size = setting.target, o.size
    lanes = target.vector // size
    vectors = math.ceil(o.n / lanes)
    few = o.m <= largest_tile(target, 2).rows
    passed = few and o.k * o.n * size > setting.level2 // 2  # B, once, from beyond
    strips = evenly(vectors, _width(o.m, target, passed))
    tile = largest_tile(target, math.ceil(vectors / strips))
    panels = evenly(o.m, tile.rows)
    spread = not o.unit(o.c[1], o.n)
    step = _tile_cycles(target, math.ceil(o.m / panels), math.ceil(vectors / strips))
    again = _PASS[o.m * o.n * size > setting.level2 * 0.8] + (_SPREAD if spread else 0)
    usual = largest_tile(target, widest(target)).rows
    deep = _depth(o.k, o.k + 15 if o.halves else setting.level1 // (4 * usual * size))
    shallow = _depth(o.k, setting.level1 * 2 // 3 // (widest(target) * target.vector))
    for pack_a, pack_b, depth in itertools.product((False, True), (False, True), (deep, shallow)):
        if (o.halves and not (pack_a and pack_b)) or not (pack_b or o.unit(o.b[1], o.n)):
            continue
        passing = passed and not (pack_b or spread)
        if passing and pack_a:  # a few of its lines stay while a strip passes
            continue
        collide = _collide(o.a[0], tile.rows, depth * widest(target) * target.vector, setting)
        if pack_a and not o.halves and o.unit(o.a[1], o.k) and not collide:
            continue
        if depth != deep and (o.halves or not pack_b or o.m * depth * size > setting.level2 // 2):
            continue
        how_a = _how(o.a[0], o.a[1], o) if pack_a else ""
        how_b = _how(o.b[0], o.b[1], o) if pack_b else ""
        waits: float = 0
        if not (pack_a or passing):
            near = o.unit(o.a[1], o.k)
            waits = collide * _COLLISION if near else _wait(o.m * o.k * size, setting)
        if not (pack_b or passed):  # else packing would wait for it as long
            waits += _wait(o.k * o.n * size, setting)
        group, staying = panels, strips
        if pack_a:
            row = packed_row(depth, size, target)
            groups = panels * tile.rows * row / (2 * setting.level2)
            group = math.ceil(panels / max(1, round(groups)))  # B is packed for each of them
        if depth != deep:
            staying = 1
        elif pack_b:
            strip = depth * tile.vectors * target.vector
            staying = max(1, setting.level2 // 2 // strip)
        # Columns that do not fit at once are parts of their own, unless that packs A again.
        least = 1 if pack_a or staying == 1 else evenly(strips, staying)
        unit, cut = lanes, strips
        if passed and not (pack_a or pack_b):
            depth = _depth(o.k, 2 * _ROWS)
        if passing:
            depth, unit = _ROWS, lanes * tile.vectors
            cut = min(math.ceil(o.n / unit), 1 if setting.threads == 1 else 4 * setting.threads)
            group, staying, least = 1, cut, 1
        once = _PACK[how_b] * (0.7 if staying == 1 else 1), _PACK[how_a]
        pass_width = staying * math.ceil(vectors / strips) * lanes  # columns in one pass over A

        def cost(
            rows: int,
            columns: int,
            depths: int = evenly(o.k, depth),
            waits: float = waits,
            once: tuple[float, float] = once,
            pass_width: int = pass_width,
            read: float = _READ[o.m * depth * size > setting.level2 // 2],
            call: int = 0 if passing else _CALL,
            again: float = _PASSING if passing else again,
        ) -> float:
            tiles = rows * columns / (o.m * o.n) * panels * strips
            work = tiles * (o.k * (step + waits) + depths * call)
            reading = math.ceil(columns / pass_width) * read
            packing = o.k * (columns * once[0] + rows * (once[1] + reading))
            return work + packing + rows * columns * depths * again

        choice = Choice(
            False,
            transposed,
            spread,
            tile,
            unit,
            panels,
            cut,
            depth,
            how_a,
            how_b,
            group,
            staying,
            passing=passing,
        )
        yield choice, cost, least


def _thin(o: Operands, setting: Setting, transposed: bool) -> _Ways:
    """Tiles of few columns with vectors along k."""
    if o.halves or not o.unit(o.a[1], o.k) or o.n > 4 * MOST_COLUMNS:
        return
    target = setting.target
    lanes = target.vector // o.size
    strips = evenly(o.n, MOST_COLUMNS)
    tile = thin_tile(target, math.ceil(o.n / strips))
    panels = evenly(o.m, tile.rows)
    depth = _depth(o.k, setting.level2 // (16 * tile.rows * o.size))
    depths = evenly(o.k, depth)
    how = "" if o.unit(o.b[0], o.k) else _how(o.b[1], o.b[0], o)
    step = _tile_cycles(target, tile.rows, tile.vectors)

    def cost(rows: int, columns: int) -> float:
        tiles = rows * columns / (o.m * o.n) * panels * strips
        steps = math.ceil(o.k / lanes) + depths
        work = tiles * (steps * step + depths * _CALL) + rows * columns * depths * _SUM
        return work + o.k * columns * _PACK[how]

    yield Choice(True, transposed, True, tile, 1, panels, strips, depth, "", how), cost, 1


def _width(m: int, target: Target, passed: bool) -> int:
    """Vectors in a strip: as many as fit if the rows are few, so that one panel takes all.

    Where B is passed once these are whole lines, so that none is fetched for two strips.

    >>> [_width(m, Target(32, 16, True, True, True), True) for m in (1, 2, 4, 6, 7)]
    [8, 4, 2, 2, 2]
    """
    usual = widest(target)
    if m > largest_tile(target, 2).rows:
        return usual
    whole = max(2, _LINE // target.vector) if passed else 1
    widths = range(whole, MOST_WIDTH + 1, whole)
    return max([2, *(v for v in widths if largest_tile(target, v).rows >= m)])


def _tile_cycles(target: Target, rows: int, vectors: int) -> float:
    """Cycles for one step of a tile: two operations and about one load each."""
    return max(rows * vectors * (0.5 if target.fma else 1), (rows + vectors) * 0.9)


def _collide(step: int, rows: int, beside: int, setting: Setting) -> bool:
    """Whether rows of A so far apart push each other out of the first cache.

    Lines of memory that are a multiple of a page apart share a few places in it, eight or twelve,
    with the strip of B that passes by; a strip that is larger than the cache leaves none anyway.

    >>> machine = Setting(Target(32, 16, True, True, True), 32 << 10, 512 << 10, 1)
    >>> _collide(4096, 6, 20 << 10, machine), _collide(4160, 6, 20 << 10, machine)
    (True, False)
    """
    return beside < setting.level1 < beside + rows * math.gcd(step, _PAGE)


def _wait(bytes: int, setting: Setting) -> int:
    if bytes <= setting.level1:
        return 0
    return _WAIT[0] if bytes <= setting.level2 // 2 else _WAIT[1]


def packed_row(depth: int, size: int, target: Target) -> int:
    """Bytes of a packed row with k fastest: whole vectors, and no power of two apart."""
    return (depth * size // target.vector + 1) * target.vector


def _how(slow: int, fast: int, o: Operands) -> str:
    """How to pack rows of `fast` steps, one for each `slow` step."""
    if fast == o.width:
        return "rows"
    return "transposed" if slow == o.width and not fast % o.width else "any"


def _depth(k: int, most: int) -> int:
    """The size of blocks of k, equal ones that are whole lines of memory."""
    blocks = evenly(k, max(16, most // 16 * 16))
    return max(1, math.ceil(k / blocks / 16)) * 16


def _parts(o: Operands, way: Choice, cost: _Cost, least: int, setting: Setting) -> tuple[int, int]:
    """Into how many parts to cut rows and columns."""
    threads = setting.threads
    if threads == 1 or o.m * o.n * o.k * o.images * o.batch < PARALLEL:
        return 1, least
    best, found = math.inf, (1, least)
    most = 1 if way.thin else way.strips
    columns_tried = {*range(least, least + 9), *(math.ceil(most / each) for each in range(1, 5))}
    rows_tried = {*range(1, 9), threads, 2 * threads, 4 * threads}
    for columns in sorted(c for c in columns_tried if least <= c <= most):
        for rows in sorted(r for r in rows_tried if r <= way.panels):
            tasks = rows * columns * o.batch
            height = min(o.m, math.ceil(way.panels / rows) * math.ceil(o.m / way.panels))
            width = min(o.n, math.ceil(way.strips / columns) * math.ceil(o.n / way.strips))
            one = _START + cost(height, width)
            if columns > 1:
                one += _BREAK * (height if way.pack_b else height + o.k)
            even, uneven = math.ceil(tasks / threads), _uneven(tasks, threads)
            total = (3 * even + uneven) / 4 * one + min(one, _LATE)
            if total < best:
                best, found = total, (rows, columns)
    return found


def _uneven(tasks: int, threads: int) -> float:
    """How long equal tasks take, in times of one, if one of the threads is slow.

    >>> _uneven(2, 2) > _uneven(8, 2) / 4  # of many small tasks the slow thread takes fewer
    True
    """
    span = tasks / (threads - 1 + _SLOW)
    while int(span + 1e-9) * (threads - 1) + int(span * _SLOW + 1e-9) < tasks:
        span = min(int(span + 1e-9) + 1, (int(span * _SLOW + 1e-9) + 1) / _SLOW)
    return span
