"""What this machine can do at most, measured: bytes and operations by the second."""

from __future__ import annotations

import functools
from time import perf_counter
from typing import NamedTuple

from ...backends.threads import get_num_threads
from ...core.modes import no_grad
from ...core.register import FUNCTIONS

_SIDE = 768  # of matrices whose product is bound by arithmetic
_LONG = 8_000_000  # elements that no cache holds
_TURNS = 4


class Limits(NamedTuple):
    """By the second, in float32, with as many threads as are set."""

    bytes: float
    flops: float

    def share(self, size: float, work: float, seconds: float) -> float:
        """Which part of a limit was reached, of the one that is nearer.

        >>> Limits(bytes=100.0, flops=1000.0).share(size=50, work=100, seconds=1.0)
        0.5
        """
        return max(size / self.bytes, work / self.flops) / seconds if seconds > 0 else 0.0


def limits() -> Limits:
    """The limits of the machine; the first call measures for a fraction of a second."""
    return _measured(get_num_threads())


@functools.cache
def _measured(threads: int) -> Limits:
    ones, add, matmul = (FUNCTIONS[name] for name in ("ones", "add", "matmul"))
    with no_grad():
        a, x, y = ones(_SIDE, _SIDE), ones(_LONG), ones(_LONG)
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(_TURNS):
            begin = perf_counter()
            add(x, y)
            middle = perf_counter()
            matmul(a, a)
            times[0].append(middle - begin)
            times[1].append(perf_counter() - middle)
    moved = 3 * _LONG * x.element_size()
    return Limits(moved / min(times[0]), 2 * _SIDE**3 / min(times[1]))
