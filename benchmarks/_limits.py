"""The machine's limits, measured by generated kernels: memory bandwidth and multiply-adds.

    python benchmarks/_limits.py

Bandwidth depends on how much memory is walked through again and again, since part of it stays in
the caches; so it is measured for several sizes, and a workload is held against what the machine
does for as much memory as the workload uses.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from _race import clock_for

import undertow as ut
from undertow.backends.cpu.codegen.kernels import address, compiled, machine
from undertow.backends.cpu.threads import pool
from undertow.kernel.ir import Function

SIZES = (2, 8, 24, 48, 96, 192, 768)  # megabytes; the last does not fit into any cache
BLOCK = 16384  # elements per block of a kernel
CHAINS = 12  # of dependent multiply-adds side by side: enough for two units of latency 5


class Limits(NamedTuple):
    """Bytes per second by size, and floating-point operations per second."""

    triad: dict[int, float]  # a = b + s * c: two reads and one write
    read: dict[int, float]
    flops: float
    flops_single: float  # on one thread

    def seconds(self, read: int, written: int, flops: int, resident: int) -> float:
        """The least time for so much traffic and arithmetic on so many bytes of arrays."""
        curve = self.read if written < read / 16 else self.triad
        return max((read + written) / _at(curve, resident or read + written), flops / self.flops)

    def __str__(self) -> str:
        return "\n".join(
            f"# {name}: " + ", ".join(f"{v / 1e9:.0f} ({n >> 20} MB)" for n, v in curve.items())
            for name, curve in (("triad GB/s", self.triad), ("read  GB/s", self.read))
        ) + (
            f"\n# multiply-adds: {self.flops / 1e9:.0f} GFLOP/s, "
            f"{self.flops_single / 1e9:.0f} on one thread"
        )


def _at(curve: dict[int, float], size: int) -> float:
    """The value at a size between those measured."""
    return float(np.interp(math.log(max(size, 1)), [math.log(n) for n in curve], [*curve.values()]))


def triad_kernel(stream: bool) -> Function:
    """`a = b + s * c`; with `stream`, past the caches."""
    f = Function("triad")
    a = f.buffer("a", "f32", written=True)
    b, c = f.buffer("b", "f32"), f.buffer("c", "f32")
    blocks, s = f.param("blocks"), f.param("s", "f32")
    with f.parallel(blocks) as block, f.vector(BLOCK, unroll=4) as i:
        at = block * BLOCK + i
        f.store(a, at, f.load(b, at) + s * f.load(c, at), stream)
    return f


def read_kernel() -> Function:
    """The sum of each block."""
    f = Function("read")
    sums, x = f.buffer("sums", "f32", written=True), f.buffer("x", "f32")
    blocks = f.param("blocks")
    with f.parallel(blocks) as block:
        total = f.state(f.const(0, "f32"), combine=lambda a, b: a + b)
        with f.vector(BLOCK, unroll=8) as i:
            total.add(f.load(x, block * BLOCK + i))
        f.store(sums, block, total.get()[0])
    return f


def multiply_add_kernel() -> Function:
    """Chains of `v = v * scale + shift`, side by side, on registers."""
    f = Function("multiply_add")
    x = f.buffer("x", "f32", written=True)
    blocks, turns = f.param("blocks"), f.param("turns")
    scale, shift = f.param("scale", "f32"), f.param("shift", "f32")
    lanes = machine().vector // 4
    with f.parallel(blocks) as block, f.vector(lanes) as i:
        at = block * lanes + i
        first = f.load(x, at)
        chains = f.state(
            *(first + float(k) for k in range(CHAINS)), combine=lambda *both: both[:CHAINS]
        )
        with f.loop(turns):
            chains.set(*(f.fma(v, scale, shift) for v in chains.get()))
        total = first
        for v in chains.get():
            total = total + v
        f.store(x, at, total)
    return f


@functools.cache
def _compiled(kernel: Callable[..., Function], *arguments: Any) -> Callable[..., None]:
    return compiled(kernel(*arguments))


def _ones(size: int) -> Any:
    """An array that begins at a line of the caches, as streamed stores need it."""
    memory = np.ones(size + 16, np.float32)
    return memory[-address(memory) % 64 // 4 :][:size]


def _best(seconds: float, kernel: Callable[..., None], *arguments: Any) -> float:
    """The shortest of a kernel's runs in so much time, after one that does not count."""
    given = [address(a) if isinstance(a, np.ndarray) else a for a in arguments]
    kernel(pool.pointer(), *given)
    clock = clock_for(ut.get_num_threads())
    best, end = math.inf, clock() + seconds
    while (begin := clock()) < end:
        kernel(pool.pointer(), *given)
        best = min(best, clock() - begin)
    return best


def measure(seconds: float = 0.05, rounds: int = 3) -> Limits:
    """All limits; the best of so many rounds, with so many seconds for each measurement."""
    found = [_round(seconds) for _ in range(rounds)]
    triad, read = ({n: max(f[i][n] for f in found) for n in found[0][i]} for i in (0, 1))
    return Limits(triad, read, max(f.flops for f in found), max(f.flops_single for f in found))


def _round(seconds: float) -> Limits:
    read = _compiled(read_kernel)
    triads, reads = {}, {}
    for size in (megabytes << 20 for megabytes in SIZES):
        blocks = size // (12 * BLOCK)
        a, b, c = (_ones(blocks * BLOCK) for _ in range(3))
        triads[size] = 0.0
        for stream in (False, True):
            a[:] = 0
            spent = _best(seconds, _compiled(triad_kernel, stream), a, b, c, blocks, 1.5)
            assert (a == 2.5).all()
            triads[size] = max(triads[size], 12 * a.size / spent)
        del a, b, c
        blocks = size // (4 * BLOCK)
        x, sums = _ones(blocks * BLOCK), np.zeros(blocks, np.float32)
        reads[size] = 4 * x.size / _best(seconds, read, sums, x, blocks)
        assert (sums == BLOCK).all()
        del x
    return Limits(triads, reads, *_multiply_adds(seconds))


def _multiply_adds(seconds: float) -> tuple[float, float]:
    """Operations per second on all threads, and on one."""
    kernel = _compiled(multiply_add_kernel)
    blocks, turns, lanes = 64, 20_000, machine().vector // 4
    x = np.ones(blocks * lanes, np.float32)
    work = 2 * CHAINS * turns * blocks * lanes
    threads = ut.get_num_threads()
    together = work / _best(seconds, kernel, x, blocks, turns, 0.5, 0.25)
    ut.set_num_threads(1)
    alone = work / _best(seconds, kernel, x, blocks, turns, 0.5, 0.25)
    ut.set_num_threads(threads)
    return together, alone


if __name__ == "__main__":
    ut.set_num_threads(2)
    print(measure())
