"""Checks of values that are looked at when the device is waited for anyway.

Each check is a launch that writes whether it failed into one byte of a small array; bringing values
to the host looks at all of them at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...kernel.expr import call, substitute, trace
from ..locks import Lock
from ..strided import StridedArray
from .reductions import Reductions

MOST = 64  # checks that wait; then all are looked at
_BOOL = np.dtype(bool)
_OUTSIDE = trace(
    lambda a, low, high: call(
        "logical_not", call("logical_and", call("ge", a, low), call("lt", a, high))
    ),
    3,
)
_OUTSIDE_WHOLE = trace(
    lambda a, low, high: call("logical_or", call("lt", a, low), call("gt", a, high)), 3
)
_OUTSIDE_BUT = trace(
    lambda a, low, high, but: call(
        "logical_and", substitute(_OUTSIDE_WHOLE, (a, low, high)), call("ne", a, but)
    ),
    4,
)


class Checks:
    """The checks of one device that were not looked at yet."""

    def __init__(self, k: Reductions) -> None:
        self.k = k
        self.flags: StridedArray | None = None
        self.waiting: list[tuple[StridedArray, Callable[[Any], Exception]]] = []
        self.lock = Lock()

    def add(
        self,
        x: StridedArray,
        low: float,
        high: float,
        error: Callable[[Any], Exception],
        but: int | None = None,
    ) -> None:
        """Check that `low <= x < high` everywhere, where an integer x is not `but`."""
        k = self.k
        with self.lock:
            if len(self.waiting) == MOST:
                self.look()
            if self.flags is None:
                self.flags = k.full((MOST,), False, _BOOL)
            at = len(self.waiting)
            slot = k.slice(self.flags, (slice(at, at + 1),))
            slot = k.reshape(slot, ())
            expr, numbers = _OUTSIDE, [low, high]
            if x.dtype.kind in "iu":  # numbers that the type holds
                span = np.iinfo(x.dtype)
                least, most = math.ceil(low), math.ceil(high) - 1
                expr, numbers = _OUTSIDE_WHOLE, [max(least, span.min), min(most, span.max)]
                if but is not None and span.min <= but <= span.max:
                    expr, numbers = _OUTSIDE_BUT, [*numbers, but]
            dims = tuple(range(len(x.shape)))
            k._map_reduce("any", expr, (x, *numbers), dims, False, _BOOL, slot)
            self.waiting.append((x, error))

    def look(self) -> None:
        """Raise the error of the first check that failed; the others are forgotten."""
        if not self.waiting:
            return
        with self.lock:
            waiting, self.waiting = self.waiting, []
            flags = self.k.to_host(self.flags) if self.flags is not None else []
        for failed, (x, error) in zip(flags, waiting, strict=False):
            if failed:
                raise error(self.k.to_host(x))
