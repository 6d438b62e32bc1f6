"""Points that fill a cube evenly: Sobol's sequence, with the direction numbers of Joe and Kuo.

Point k is the exclusive or of some direction numbers, those of the bits of k's Gray code, so any
range of points is computed at once, whatever was drawn before. The table (`sobol_directions.bin`)
has, for each dimension but the first, the degree and the inner coefficients of its polynomial, and
as many numbers as the degree says; the others follow by recurrence.
"""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path
from typing import Any

from .. import dtypes
from ..core.generator import Generator
from ..core.register import FUNCTIONS
from ..core.tensor import Tensor
from ..errors import ArgumentError, UnsupportedError

__all__ = ["SobolEngine"]

MAXBIT = 30
KNOWN = 1111  # dimensions in the table


@cache
def _directions() -> list[list[int]]:
    """The direction numbers of every dimension, the first of them all ones."""
    table = (Path(__file__).parent / "sobol_directions.bin").read_bytes()
    found = [[1] * MAXBIT]
    at = 0
    while at < len(table):
        degree, inner = struct.unpack_from("<BH", table, at)
        numbers = list(struct.unpack_from(f"<{degree}H", table, at + 3))
        at += 3 + 2 * degree
        for k in range(degree, MAXBIT):
            value = numbers[k - degree] ^ (numbers[k - degree] << degree)
            for i in range(1, degree):
                if inner >> (degree - 1 - i) & 1:
                    value ^= numbers[k - i] << i
            numbers.append(value)
        found.append(numbers)
    return found


def _sobol_engine_initialize_state_(self: Tensor, dimension: int) -> Tensor:
    """Fill a tensor (dimension, 30) with direction numbers, as fractions of 2^30."""
    if dimension > KNOWN:
        raise UnsupportedError(
            f"[SobolEngine] direction numbers are here for {KNOWN} dimensions, got {dimension}; "
            "draw several sequences, each scrambled with a seed of its own"
        )
    rows = _directions()[:dimension]
    shifted = [[n << (MAXBIT - 1 - j) for j, n in enumerate(row)] for row in rows]
    return self.copy_(FUNCTIONS["tensor"](shifted, dtype=dtypes.int64))


def _points(state: Tensor, first: int, count: int) -> Tensor:
    """Points `first` to `first + count` of the sequence without a shift, as integers."""
    k = FUNCTIONS["arange"](first, first + count).unsqueeze(1)
    gray = k ^ (k >> 1)
    out = FUNCTIONS["zeros"]((count, state.shape[0]), dtype=dtypes.int64)
    for j in range(max(first + count - 1, 0).bit_length()):
        out = out ^ ((gray >> j & 1) * state[:, j])
    return out


def _sobol_engine_draw(
    quasi: Tensor, n: int, sobolstate: Tensor, dimension: int, num_generated: int, dtype: Any = None
) -> tuple[Tensor, Tensor]:
    """The `n` points behind the one that `quasi` is, and the last of them."""
    points = _points(sobolstate, num_generated, n + 1)
    moved = quasi ^ (points[1:] ^ points[0])
    wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    last = moved[-1].clone() if n else quasi
    return moved.to(wanted) * 2.0**-MAXBIT, last


def _sobol_engine_ff_(
    self: Tensor, n: int, sobolstate: Tensor, dimension: int, num_generated: int
) -> Tensor:
    """Move `self` to the point that is `n` further."""
    here = _points(sobolstate, num_generated, 1)
    there = _points(sobolstate, num_generated + n, 1)
    return self.copy_(self ^ (here ^ there)[0])


def _sobol_engine_scramble_(self: Tensor, ltm: Tensor, dimension: int) -> Tensor:
    """Multiply the bits of direction numbers by triangular matrices of bits, one per dimension."""
    places = FUNCTIONS["arange"](MAXBIT - 1, -1, -1)  # the highest bit is the first row
    bits = self.unsqueeze(-1) >> places & 1
    lower = ltm.tril(-1) + FUNCTIONS["eye"](MAXBIT, dtype=dtypes.int64)
    mixed = FUNCTIONS["matmul"](bits.double(), lower.double().mT).long() & 1
    return self.copy_((mixed << places).sum(-1))


class SobolEngine:
    """Points of Sobol's sequence in a cube: the same as torch's, unless they are scrambled.

    With `scramble=True`, bits are mixed and shifted by random numbers of `seed`, which are ours.

    >>> import undertow as ut
    >>> engine = ut.quasirandom.SobolEngine(dimension=2)
    >>> engine.draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = MAXBIT
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ArgumentError(
                f"[SobolEngine] dimension must be between 1 and {self.MAXDIM}, got {dimension}"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.sobolstate = FUNCTIONS["zeros"]((dimension, MAXBIT), dtype=dtypes.int64)
        _sobol_engine_initialize_state_(self.sobolstate, dimension)
        self.shift = FUNCTIONS["zeros"](dimension, dtype=dtypes.int64)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi.double() / 2**MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next `n` points, as the rows of a matrix."""
        wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
        first = self.num_generated == 0
        done = 0 if first else self.num_generated - 1
        result, self.quasi = _sobol_engine_draw(
            self.quasi, n - first, self.sobolstate, self.dimension, done, wanted
        )
        if first:
            result = FUNCTIONS["cat"]([self._first_point.to(wanted), result])
        self.num_generated += n
        return result if out is None else out.resize_as_(result).copy_(result)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next 2^m points, if that makes a power of two of all that were drawn."""
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ArgumentError(
                f"[SobolEngine] draw_base2({m}) makes {total} points of {self.num_generated}, "
                "which is no power of two, as an even distribution needs; use draw()"
            )
        return self.draw(2**m, out, dtype)

    def reset(self) -> SobolEngine:
        """Begin again with the first point."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out the next `n` points."""
        first = self.num_generated == 0
        done = 0 if first else self.num_generated - 1
        _sobol_engine_ff_(self.quasi, n - first, self.sobolstate, self.dimension, done)
        self.num_generated += n
        return self

    def _scramble(self) -> None:
        generator = None
        if self.seed is not None:
            generator = Generator()
            generator.manual_seed(self.seed)
        draw = FUNCTIONS["randint"]
        bits = draw(2, (self.dimension, MAXBIT), generator=generator)
        self.shift = (bits << FUNCTIONS["arange"](MAXBIT)).sum(-1)
        matrices = draw(2, (self.dimension, MAXBIT, MAXBIT), generator=generator).tril()
        _sobol_engine_scramble_(self.sobolstate, matrices, self.dimension)

    def __repr__(self) -> str:
        words = [f"dimension={self.dimension}"]
        words += ["scramble=True"] if self.scramble else []
        words += [] if self.seed is None else [f"seed={self.seed}"]
        return f"SobolEngine({', '.join(words)})"
