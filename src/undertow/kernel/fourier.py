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
from typing import Any

import numpy as np

from .ir import Buffer, Function, Value

COLUMNS = 16  # that are transformed together
Pair = tuple[Value, Value]
_HALF = math.sqrt(0.5)


def radices_of(n: int) -> tuple[int, ...]:
    """The radices of a power of two from 16 up: eights, and fours or a two for the rest.

    >>> radices_of(1024), radices_of(32)
    ((8, 8, 4, 4), (8, 4))
    """
    bits = n.bit_length() - 1
    fours = {0: 0, 1: 2, 2: 1}[bits % 3]
    return (8,) * ((bits - 2 * fours) // 3) + (4,) * fours


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
    out, x = f.buffer("out", dtype, written=True), f.buffer("x", dtype)
    planes = [f.buffer("a", dtype, written=True), f.buffer("b", dtype, written=True)]
    table = f.buffer("table", dtype)
    lines = f.param("lines")
    wide = f.param("columns") if columns else f.const(1, "i64")
    scale = f.param("scale", dtype)
    width = COLUMNS if columns else 1
    blocks = (wide + (COLUMNS - 1)) // COLUMNS if columns else wide
    with f.parallel(lines * blocks if columns else lines) as block:
        if columns:
            left = (block % blocks) * COLUMNS
            base = (block // blocks) * (wide * n) + left
            count = f.call("minimum", wide - left, COLUMNS)
        else:
            base, count = block * n, f.const(1, "i64")
        area = f.thread() * (2 * n * width)

        def outside(i: Value, c: Value | None) -> tuple[Value, Value]:
            """Where the parts of element i (of column c) are in x and out."""
            place = base + i if c is None else base + i * wide + c
            even = place * 2
            return even, even + 1

        def read(i: Value, c: Value | None) -> Pair:
            even, odd = outside(i, c)
            first = f.load(x, even)
            second = f.load(x, odd)
            return (second, first) if inverse else (first, second)

        def write(i: Value, c: Value | None, value: Pair) -> None:
            even, odd = outside(i, c)
            re, im = value[0] * scale, value[1] * scale
            first, second = (im, re) if inverse else (re, im)
            f.store(out, even, first)
            f.store(out, odd, second)

        left_over, s, at = n, width, 0
        radices = radices_of(n)
        for number, radix in enumerate(radices):
            m = left_over // radix
            first, last = number == 0, number == len(radices) - 1
            source, target = planes[number % 2 - 1], planes[number % 2]
            step = functools.partial(_pass, f, table, at, m, radix, target, area, n * width)
            if first and not columns:
                with f.vector(m) as p:
                    found = dft(f, [read(p + m * j, None) for j in range(radix)])
                    step(found, p, p * radix, 1)
            elif first:
                with f.loop(m) as p, f.vector(count) as c:
                    found = dft(f, [read(p + m * j, c) for j in range(radix)])
                    step(found, p, p * (radix * width) + c, width)
            elif not last:
                with f.loop(m) as p:
                    factors = _factors(f, table, at, m, radix, p)
                    with f.vector(s) as q:
                        given = [
                            _take(f, source, area, n * width, (p + m * j) * s + q)
                            for j in range(radix)
                        ]
                        step(dft(f, given), p, p * (radix * s) + q, s, factors)
            elif columns:
                with f.loop(s // width) as q, f.vector(count) as c:
                    given = [
                        _take(f, source, area, n * width, (q + (s // width) * j) * width + c)
                        for j in range(radix)
                    ]
                    for j, value in enumerate(dft(f, given)):
                        write(q + (s // width) * j, c, value)
            else:
                with f.vector(s) as q:
                    given = [_take(f, source, area, n, q + s * j) for j in range(radix)]
                    for j, value in enumerate(dft(f, given)):
                        write(q + s * j, None, value)
            at += 2 * (radix - 1) * m
            left_over, s = m, s * radix
    return f


def _take(f: Function, source: Buffer, area: Value, plane: int, i: Value) -> Pair:
    return f.load(source, area + i), f.load(source, area + i + plane)


def _factors(f: Function, table: Buffer, at: int, m: int, radix: int, p: Value) -> list[Pair]:
    """exp(-2 pi i p j / n) for the powers j from 1."""
    return [
        (f.load(table, p + (at + 2 * j * m)), f.load(table, p + (at + (2 * j + 1) * m)))
        for j in range(radix - 1)
    ]


def _pass(
    f: Function,
    table: Buffer,
    at: int,
    m: int,
    radix: int,
    target: Buffer,
    area: Value,
    plane: int,
    found: list[Pair],
    p: Value,
    place: Value,
    step: int,
    factors: list[Pair] | None = None,
) -> None:
    """Multiply by the powers and write; `place` is that of the first, the others follow by step."""
    factors = factors or _factors(f, table, at, m, radix, p)
    for j, (re, im) in enumerate(found):
        if j:
            c, s = factors[j - 1]
            re, im = f.fma(re, c, -(im * s)), f.fma(re, s, im * c)
        f.store(target, area + place + step * j, re)
        f.store(target, area + place + (step * j + plane), im)


def dft(f: Function, values: list[Pair]) -> list[Pair]:
    """The transform of 1, 2, 4 or 8 numbers, in registers."""
    n = len(values)
    if n == 1:
        return values
    even, odd = dft(f, values[::2]), dft(f, values[1::2])
    low, high = [], []
    for k, ((a, b), (c, d)) in enumerate(zip(even, odd, strict=True)):
        c, d = _turned(c, d, 8 * k // n)
        low.append((a + c, b + d))
        high.append((a - c, b - d))
    return low + high


def _turned(re: Value, im: Value, eighths: int) -> Pair:
    """Times exp(-2 pi i eighths / 8)."""
    if eighths == 0:
        return re, im
    if eighths == 2:
        return im, -re
    if eighths == 1:
        return (re + im) * _HALF, (im - re) * _HALF
    return (im - re) * _HALF, -((re + im) * _HALF)


@functools.lru_cache(maxsize=64)
def turns(n: int, dtype: str) -> Any:
    """exp(-2 pi i k / n) for k to n/2: the real parts, then the imaginary ones."""
    angle = np.arange(n // 2 + 1) * (-2 * np.pi / n)
    return np.concatenate([np.cos(angle), np.sin(angle)]).astype(dtype)


def halves_function(name: str, dtype: str, half: int, inverse: bool) -> Function:
    """Between the transform Z of 2 h real numbers taken as h pairs, and half of their spectrum X.

    With A = Z[k], B = conj(Z[h - k]) it is X[k] = (A + B) / 2 - i (A - B) / 2 exp(-pi i k / h), and
    back, with A and B of X, Z[k] = (A + B) / 2 + i (A - B) / 2 exp(pi i k / h). Buffers: out and x,
    rows of h + 1 and h pairs, or the inverse; the turns. Parameter: the rows.
    """
    f = Function(name)
    out, x, table = f.buffer("out", dtype, written=True), f.buffer("x", dtype), f.buffer("t", dtype)
    lines = f.param("lines")
    with f.parallel(lines) as row:
        short, long = row * (2 * half), row * (2 * half + 2)
        source, target = (long, short) if inverse else (short, long)
        re, im = f.load(x, source), f.load(x, source + 1)
        if inverse:  # only the real parts of X[0] and X[h] count
            end = f.load(x, source + 2 * half)
            f.store(out, target, (re + end) * 0.5)
            f.store(out, target + 1, (re - end) * 0.5)
        else:
            zero = re * 0.0
            f.store(out, target, re + im)
            f.store(out, target + 1, zero)
            f.store(out, target + 2 * half, re - im)
            f.store(out, target + (2 * half + 1), zero)
        with f.vector(half - 1) as i:
            k = i + 1
            even = source + k * 2
            odd = even + 1
            a, b = f.load(x, even), f.load(x, odd)
            mirrored = (source + 2 * half) - k * 2
            c, d = f.load(x, mirrored), -f.load(x, mirrored + 1)
            cosine, sine = f.load(table, k), f.load(table, k + (half + 1))
            # (A - B) / 2, times -i and the turn; or times i and the turn back
            re, im = (a - c) * 0.5, (b - d) * 0.5
            re, im = (-im, re) if inverse else (im, -re)
            if inverse:
                sine = -sine
            first = f.fma(re, cosine, (a + c) * 0.5) - im * sine
            second = f.fma(re, sine, (b + d) * 0.5) + im * cosine
            even = target + k * 2
            odd = even + 1
            f.store(out, even, first)
            f.store(out, odd, second)
    return f
