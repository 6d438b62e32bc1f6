"""Copies of inputs with zeros around them, whose spatial dimensions are one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ....kernel.copies import pad_function
from ..calls.launch import Launch, Plan, Room, plan_of, planned, run
from ..codegen.kernels import kernel, type_of
from .direct_layout import steps_of_six, three

LINE = 64  # bytes of memory that caches hold together
SEVERAL = 1 << 15  # elements of a copy that threads share


def padded(x: Any, low: Sequence[int], reach: Sequence[int], behind: int) -> Any:
    """The input with zeros around it, its spatial dimensions, sizes of `reach`, as one.

    The first element stands at `low`; where that is negative, elements are left out. Rows of
    channels begin an odd number of lines apart, so that they do not collide in a cache, with some
    zeros `behind` them: no NaN to wait for where nobody reads.
    """
    plan = plan_of(_make, (x,), tuple(low), tuple(reach), behind)
    return run(plan, (x[plan.more],))[0]


def _make(operands: tuple[Any], low: Sequence[int], reach: Sequence[int], behind: int) -> Plan:
    (x,) = operands
    whole = (-(-(math.prod(reach) + behind) * x.itemsize // LINE) | 1) * LINE // x.itemsize
    begins = [max(at, 0) for at in low]
    skipped = [max(-at, 0) for at in low]
    sizes = zip(x.shape[3:], reach, skipped, begins, strict=True)
    counts = [max(min(n - s, r - b), 0) for n, r, s, b in sizes]
    steps = [math.prod(reach[d + 1 :]) for d in range(len(reach))]
    first = sum(b * s for b, s in zip(begins, steps, strict=True)) if math.prod(counts) else 0
    dense = x.strides[-1] == x.itemsize or counts[-1] <= 1
    ints = [*x.shape[:3], *three(counts), first, *three(steps, 0)[:2], whole]
    ints += steps_of_six(x)[: 5 if dense else 6]
    shape = (*x.shape[:3], whole)
    of = (..., *[slice(s, s + n) for s, n in zip(skipped, counts, strict=True)])
    launch = Launch(kernel("pad", pad_function, type_of(x.dtype), dense), 2, ints)
    alone = math.prod(shape) <= SEVERAL
    return planned(launch, [Room(shape, x.dtype)], alone=alone, more=of)
