"""The sizes of a matrix product's tiles and blocks, from the machine's registers and caches.

Note [tiles]
A tile is R rows of V vectors of the result, kept in registers while k runs. One step of k loads V
vectors of B and broadcasts R elements of A for R*V multiply-adds, so a tile with few loads for each
is about square in *registers*. R*V sums, V vectors of B and a broadcast must fit; without fused
multiply-add also a product. Measured with 32 registers of 512 bits: 6 rows of 4 vectors and 9 rows
of 3 run at 96 % of the peak, 14 rows of 2 at 89 %, 14 rows of one at 50 %.

Note [blocks]
Columns are cut into strips of at most V vectors, rows into panels of at most R rows, both as evenly
as possible, so that no remainder makes a tile of one row or one vector. A block of B, some strips
by `depth` steps of k, stays in the second cache while all row panels pass by; A is read in place, a
panel at a time, which stays in the first cache for all strips.
"""

from __future__ import annotations

import functools
import glob
import math
from pathlib import Path
from typing import NamedTuple

from ..codegen import jit
from ..codegen.llvm_values import Machine

IR_TYPES = {"half": "f16", "i16": "bf16", "float": "f32", "double": "f64"}  # of the loop IR
MOST_ROWS, MOST_WIDTH = 14, 8  # of tiles


class Target(NamedTuple):
    """What the generated code may use."""

    vector: int  # bytes
    registers: int  # that hold vectors
    fma: bool  # fused multiply-add
    masks: bool  # loads and stores of some lanes in one instruction
    half: bool  # conversions of float16
    attributes: str = ""  # of the functions, to narrow what LLVM may use; "" for this machine

    @property
    def machine(self) -> Machine:
        """The same for code from expressions."""
        return Machine(self.vector, self.fma, self.half)


class Tile(NamedTuple):
    """Rows and vectors per row."""

    rows: int
    vectors: int


@functools.cache
def host() -> Target:
    """This machine."""
    features, vector = jit.features(), jit.vector_bytes()
    arm = "neon" in features
    registers = 32 if vector == 64 or arm else 16
    fma, half = "fma" in features or arm, "f16c" in features or arm
    return Target(vector, registers, fma, "avx2" in features, half)


@functools.cache
def largest_tile(target: Target, vectors: int) -> Tile:
    """The largest tile of so many vectors per row; see Note [tiles].

    >>> [largest_tile(Target(64, 32, True, True, True), v).rows for v in (8, 4, 3, 2, 1)]
    [2, 6, 9, 14, 14]
    >>> [largest_tile(Target(32, 16, True, True, True), v).rows for v in (3, 2, 1)]
    [4, 6, 14]

    One row needs no registers for what is multiplied with it, so that it may have any width.
    """
    free = target.registers - vectors - (1 if target.fma else 2)
    return Tile(min(max(free // vectors, 1), MOST_ROWS), vectors)


def widest(target: Target) -> int:
    """The vectors per row of the best tile."""
    return 4 if target.registers >= 32 else 2


@functools.cache
def cache_sizes() -> tuple[int, int]:
    """Bytes of the first and second level of data cache of one core."""
    found = {1: 32 << 10, 2: 512 << 10}
    for folder in glob.glob("/sys/devices/system/cpu/cpu0/cache/index*"):
        try:
            names = ("level", "type", "size")
            level, kind, size = (Path(folder, name).read_text().strip() for name in names)
        except OSError:
            continue
        if kind != "Instruction" and int(level) in found and size.endswith("K"):
            found[int(level)] = int(size[:-1]) << 10
    return found[1], found[2]


def evenly(total: int, most: int) -> int:
    """Into how many parts of at most `most` to cut.

    >>> evenly(13, 6)
    3
    """
    return max(1, math.ceil(total / most))
