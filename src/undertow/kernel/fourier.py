"""Fourier transforms of sizes that are powers of two, as kernels of the loop IR.

Note [Stockham]
A transform of n = R m elements, of which each stands for s neighbours, is m small transforms of R
elements and then R of m elements that stand for s R neighbours each: a pass reads the elements p,
p + m, p + 2m … of each neighbour and writes what it finds at R p, R p + 1 …, times powers of
exp(-2 pi i p / n). After all passes everything is in order, without a permutation. The neighbours
are what runs in lanes. Of a transform along rows there are none in the first pass: there, lanes
run over p. Along columns, some columns together are neighbours from the beginning on.

Real and imaginary parts lie apart in between, in memory of the thread's own. An inverse transform
is the forward one with the two exchanged, before and after.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .ir import WIDTH, Buffer, Function, Value

COLUMNS = 16  # that are transformed together
LINE = 64  # bytes of a cache line
BLOCK = 4096  # numbers of a long row that a thread takes at a time
Pair = tuple[Value, Value]
_HALF = math.sqrt(0.5)


def radices_of(n: int) -> tuple[int, ...]:
    """The radices of a power of two from 16 up: eights, then sixteens for what they leave.

    >>> radices_of(1024), radices_of(2048), radices_of(32)
    ((8, 8, 16), (8, 16, 16), (8, 4))
    """
    bits = n.bit_length() - 1
    if bits in (4, 5):
        return (4, 4) if bits == 4 else (8, 4)
    wide = bits % 3
    return (8,) * ((bits - 4 * wide) // 3) + (16,) * wide


@functools.lru_cache(maxsize=64)
def twiddles(n: int, dtype: str) -> Any:
    """For each pass and power j but 0: the real parts for all p, then the imaginary ones."""
    found = []
    for radix in radices_of(n):
        m = n // radix
        for j in range(1, radix):
            angle = np.arange(m) * (-2 * np.pi * j / n)
            found += [np.cos(angle), np.sin(angle)]
        n = m
    return np.concatenate(found).astype(dtype)


def fft_function(name: str, dtype: str, n: int, inverse: bool, columns: bool) -> Function:
    """The kernel of Note [Stockham], for rows of n complex numbers, or for columns of as many.

    Buffers: out and x, pairs of real numbers; two of 2 n elements for each thread, and for columns
    COLUMNS as many; the twiddles. Parameters: the rows, or the matrices and their columns; and what
    the result is multiplied by.
    """
    f = Function(name)
    k = _Transform(f, dtype, n, COLUMNS if columns else 1)
    lines = f.param("lines")
    wide = f.param("columns") if columns else f.const(1, "i64")
    scale = f.param("scale", dtype)
    blocks = (wide + (COLUMNS - 1)) // COLUMNS if columns else wide
    with f.parallel(lines * blocks if columns else lines) as block:
        if columns:
            left = (block % blocks) * COLUMNS
            base = (block // blocks) * (wide * n) + left
            count = f.call("minimum", wide - left, COLUMNS)
        else:
            base, count = block * n, f.const(1, "i64")
        k.begin()

        def place(i: Value, c: Value | None) -> Value:
            """Where element i (of column c) begins in x and out."""
            return (base + i if c is None else base + i * wide + c) * 2

        def read(i: Value, c: Value | None) -> Pair:
            first, second = _pair(f, k.x, place(i, c))
            return (second, first) if inverse else (first, second)

        def write(i: Value, c: Value | None, value: Pair) -> None:
            re, im = value[0] * scale, value[1] * scale
            _store_pair(f, k.out, place(i, c), (im, re) if inverse else (re, im))

        def fetch(i: Value) -> None:
            """Rows are far apart, so nobody else foresees where the next one lies."""
            for line in range(0, 2 * COLUMNS, LINE // WIDTH[dtype]):
                f.prefetch(k.x, (base + i * wide) * 2 + line)

        k.passes(read, write, count, fetch)
    return f


def real_fft_function(name: str, dtype: str, n: int, inverse: bool) -> Function:
    """Rows of 2 n real numbers to half of their spectrum, n + 1 numbers, or back.

    With Z the transform of the rows taken as n pairs, A = Z[k], B = conj(Z[n - k]), the spectrum is
    X[k] = (A + B) / 2 - i (A - B) / 2 exp(-pi i k / n); and back, with A and B of X, it is
    Z[k] = (A + B) / 2 + i (A - B) / 2 exp(pi i k / n). All in the memory of the thread.
    Buffers: those of `fft_function`, then the turns. Parameters: the rows; the scale of X or Z.
    """
    f = Function(name)
    k = _Transform(f, dtype, n, 1)
    table = f.buffer("turns", dtype)
    lines, scale = f.param("lines"), f.param("scale", dtype)
    with f.parallel(lines) as row:
        short, long = row * (2 * n), row * (2 * n + 2)
        k.begin()
        half = scale * 0.5
        if inverse:
            source = k.planes[1]
            # the parts of what is transformed are exchanged, and exchanged again when written
            ends = _joined_ends(f, k.x, long, n, half)
            k.put(source, f.const(0, "i64"), (ends[1], ends[0]))
            with f.vector(n - 1) as i:
                re, im = _unmixed(f, table, n, i + 1, *_mirrored(f, k.x, long, n, i), half, True)
                k.put(source, i + 1, (im, re))
            k.passes(
                lambda i, c: k.take(source, i),
                lambda i, c, value: _store_pair(f, k.out, short + i * 2, (value[1], value[0])),
                f.const(1, "i64"),
            )
        else:
            target = k.planes[(len(radices_of(n)) - 1) % 2]
            k.passes(
                lambda i, c: _pair(f, k.x, short + i * 2),
                lambda i, c, value: k.put(target, i, value),
                f.const(1, "i64"),
            )
            _store_ends(f, k.out, long, n, k.take(target, f.const(0, "i64")), scale)
            with f.vector(n - 1) as i:
                given = k.take(target, i + 1), k.take(target, (n - 1) - i)
                found = _unmixed(f, table, n, i + 1, *given, half, False)
                _store_pair(f, k.out, long + (i + 1) * 2, found)
    return f


def halves_function(name: str, dtype: str, n: int, inverse: bool) -> Function:
    """Between the Z and the X of `real_fft_function`, for rows that are too long for it.

    Buffers: out and x, rows of n + 1 and n pairs, or the inverse; the turns. Parameter: the rows.
    """
    f = Function(name)
    out, x = f.buffer("out", dtype, written=True), f.buffer("x", dtype)
    table, lines = f.buffer("turns", dtype), f.param("lines")
    blocks = -(-n // BLOCK)
    half = f.const(0.5, dtype)
    with f.parallel(lines * blocks) as part:
        row, start = part // blocks, (part % blocks) * BLOCK
        short, long = row * (2 * n), row * (2 * n + 2)
        source, target = (long, short) if inverse else (short, long)
        with f.branch(start == 0):
            if inverse:
                _store_pair(f, out, target, _joined_ends(f, x, source, n, half))
            else:
                _store_ends(f, out, target, n, _pair(f, x, source), f.const(1, dtype))
        with f.vector(f.call("minimum", n - 1 - start, BLOCK)) as lane:
            i = start + lane
            found = _unmixed(f, table, n, i + 1, *_mirrored(f, x, source, n, i), half, inverse)
            _store_pair(f, out, target + (i + 1) * 2, found)
    return f


def _mirrored(f: Function, x: Buffer, row: Value, n: int, i: Value) -> tuple[Pair, Pair]:
    """The pairs i + 1 and n - i - 1 of a row."""
    return _pair(f, x, row + (i + 1) * 2), _pair(f, x, row + (2 * n - 2) - i * 2)


def _joined_ends(f: Function, x: Buffer, row: Value, n: int, half: Value) -> Pair:
    """Z[0] of X[0] and X[n], of which only the real parts count."""
    first, last = f.load(x, row), f.load(x, row + 2 * n)
    return (first + last) * half, (first - last) * half


def _store_ends(f: Function, out: Buffer, row: Value, n: int, z: Pair, scale: Value) -> None:
    """X[0] and X[n] of Z[0]."""
    zero = z[0] * 0.0  # not finite where Z[0] is not
    _store_pair(f, out, row, ((z[0] + z[1]) * scale, zero))
    _store_pair(f, out, row + 2 * n, ((z[0] - z[1]) * scale, zero))


def _unmixed(
    f: Function,
    table: Buffer,
    n: int,
    at: Value,
    one: Pair,
    other: Pair,
    half: Value,
    inverse: bool,
) -> Pair:
    """X or Z at a place, of A and the conjugate of B; half is the factor 1/2, with the scale."""
    cosine, sine = f.load(table, at), f.load(table, at + (n + 1))
    (a, b), (c, d) = one, other
    re, im = (-(b + d), a - c) if inverse else (b + d, c - a)
    if inverse:
        sine = -sine
    first = f.fma(re, cosine, a + c) - im * sine
    second = f.fma(re, sine, b - d) + im * cosine
    return first * half, second * half


class _Transform:
    """The passes of one transform, in a kernel whose buffers these are."""

    def __init__(self, f: Function, dtype: str, n: int, width: int) -> None:
        self.f, self.n, self.width = f, n, width
        self.out, self.x = f.buffer("out", dtype, written=True), f.buffer("x", dtype)
        self.planes = [f.buffer("a", dtype, written=True), f.buffer("b", dtype, written=True)]
        self.table = f.buffer("table", dtype)
        self.area = f.const(0, "i64")

    def begin(self) -> None:
        """Find the memory of this thread."""
        self.area = self.f.thread() * (2 * self.n * self.width)

    def take(self, source: Buffer, i: Value) -> Pair:
        """A number in the thread's memory."""
        at, plane = self.area + i, self.n * self.width
        return self.f.load(source, at), self.f.load(source, at + plane)

    def put(self, target: Buffer, i: Value, value: Pair) -> None:
        at, plane = self.area + i, self.n * self.width
        self.f.store(target, at, value[0])
        self.f.store(target, at + plane, value[1])

    def passes(
        self,
        read: Callable[[Value, Value | None], Pair],
        write: Callable[[Value, Value | None, Pair], None],
        count: Value,
        fetch: Callable[[Value], None] = lambda i: None,
    ) -> None:
        """All passes; the first one reads and the last one writes element i (of column c).

        `fetch` is told which element of all columns will be read next.
        """
        f, width, columns = self.f, self.width, self.width > 1
        left_over, s, at = self.n, width, 0
        radices = radices_of(self.n)
        for number, radix in enumerate(radices):
            m = left_over // radix
            source, target = self.planes[number % 2 - 1], self.planes[number % 2]
            powers = functools.partial(_powers, f, self.table, at, m, radix)
            if number == 0 and not columns:
                with f.vector(m) as p:
                    found = dft(f, [read(p + m * j, None) for j in range(radix)])
                    self._pass(target, _turned_by(f, found, powers(p)), p * radix, 1)
            elif number == 0:
                with f.loop(m) as p:
                    following = f.call("minimum", p + 1, m - 1)
                    for j in range(radix):
                        fetch(following + m * j)
                    with f.vector(count) as c:
                        found = dft(f, [read(p + m * j, c) for j in range(radix)])
                        found = _turned_by(f, found, powers(p))
                        self._pass(target, found, p * (radix * width) + c, width)
            elif number < len(radices) - 1:
                with f.loop(m) as p:
                    factors = powers(p)
                    with f.vector(s) as q:
                        given = [self.take(source, (p + m * j) * s + q) for j in range(radix)]
                        found = _turned_by(f, dft(f, given), factors)
                        self._pass(target, found, p * (radix * s) + q, s)
            elif columns:
                with f.loop(s // width) as q, f.vector(count) as c:
                    given = [
                        self.take(source, (q + (s // width) * j) * width + c) for j in range(radix)
                    ]
                    for j, value in enumerate(dft(f, given)):
                        write(q + (s // width) * j, c, value)
            else:
                with f.vector(s) as q:
                    given = [self.take(source, q + s * j) for j in range(radix)]
                    for j, value in enumerate(dft(f, given)):
                        write(q + s * j, None, value)
            at += 2 * (radix - 1) * m
            left_over, s = m, s * radix

    def _pass(self, target: Buffer, found: list[Pair], place: Value, step: int) -> None:
        """Write what a pass has found; the first goes to `place`, the others follow by step.

        Each part in a row, for Note [transposes] of the CPU's kernels.
        """
        f = self.f
        for part, plane in enumerate((0, self.n * self.width)):
            first = self.area + place + plane
            places = [first, *[first + step * j for j in range(1, len(found))]]
            for at, value in zip(places, found, strict=True):
                f.store(target, at, value[part])


def _pair(f: Function, buffer: Buffer, even: Value) -> Pair:
    odd = even + 1
    return f.load(buffer, even), f.load(buffer, odd)


def _store_pair(f: Function, buffer: Buffer, even: Value, value: Pair) -> None:
    odd = even + 1
    f.store(buffer, even, value[0])
    f.store(buffer, odd, value[1])


def _powers(f: Function, table: Buffer, at: int, m: int, radix: int, p: Value) -> list[Pair]:
    """exp(-2 pi i p j / n) for the powers j from 1."""
    return [
        (f.load(table, p + (at + 2 * j * m)), f.load(table, p + (at + (2 * j + 1) * m)))
        for j in range(radix - 1)
    ]


def _turned_by(f: Function, found: list[Pair], powers: list[Pair]) -> list[Pair]:
    """All but the first times their powers."""
    turned = [
        (f.fma(re, c, -(im * s)), f.fma(re, s, im * c))
        for (re, im), (c, s) in zip(found[1:], powers, strict=True)
    ]
    return [found[0], *turned]


def dft(f: Function, values: list[Pair]) -> list[Pair]:
    """The transform of 1, 2, 4, 8 or 16 numbers, in registers."""
    n = len(values)
    if n == 1:
        return values
    even, odd = dft(f, values[::2]), dft(f, values[1::2])
    low, high = [], []
    for k, ((a, b), (c, d)) in enumerate(zip(even, odd, strict=True)):
        c, d = _turned(f, c, d, 16 * k // n)
        low.append((a + c, b + d))
        high.append((a - c, b - d))
    return low + high


def _turned(f: Function, re: Value, im: Value, sixteenths: int) -> Pair:
    """Times exp(-2 pi i sixteenths / 16), for less than a half turn."""
    if sixteenths == 0:
        return re, im
    if sixteenths >= 4:  # a quarter turn, and the rest
        return _turned(f, im, -re, sixteenths - 4)
    if sixteenths == 2:
        return (re + im) * _HALF, (im - re) * _HALF
    c, s = math.cos(math.pi * sixteenths / 8), math.sin(math.pi * sixteenths / 8)
    return f.fma(im, s, re * c), f.fma(re, -s, im * c)


@functools.lru_cache(maxsize=64)
def turns(n: int, dtype: str) -> Any:
    """exp(-2 pi i k / n) for k to n/2: the real parts, then the imaginary ones."""
    angle = np.arange(n // 2 + 1) * (-2 * np.pi / n)
    return np.concatenate([np.cos(angle), np.sin(angle)]).astype(dtype)
