"""Kernels of windows: choose, lay out and call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....kernel.layout import Sizes, coalesce
from ....kernel.lower import NotCompiled
from ....kernel.pools import BLOCK, Pool, pool_function
from ....kernel.windows import Geometry, Padding, Spans
from ..calls.launch import Launch, Plan, Room, plan_of, planned, run
from ..calls.layouts import lay_out
from ..codegen.kernels import kernel, type_of

UNROLLED = 8  # elements of a span that are not worth a loop
LONG = 4096  # positions of a run at most, where runs are shared between threads
HOPS = 16  # positions from lane to lane at most, where windows are as even as can be
WIDE = 12  # elements of spans, on average, from which on they are better lanes than positions
CHANNELS = 8  # from which on they are better lanes than positions are, if they are innermost
_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)


def run_window(
    kind: str,
    x: Any,
    kernel: Sizes,
    stride: Sizes,
    padding: Padding,
    input_dilation: Sizes,
    dilation: Sizes,
    divisor: float = 1.0,
) -> Any:
    """`Backend.window`; None if there is no kernel."""
    if divisor != 1:
        kind = "mean"
    size = x.shape[x.ndim - len(kernel) :]
    geometry = Geometry(size, kernel, stride, padding, input_dilation, dilation)
    return _run_along(kind, x, geometry, (divisor,) if kind == "mean" else ())


def run_spans(kind: str, x: Any, output: Sizes) -> Any:
    """`Backend.spans`; None if there is no kernel.

    Sums are found along one dimension after the other, first along those that shrink the most,
    with what lies behind it in lanes.
    """
    lead = x.ndim - len(output)
    if kind == "max":
        return _run_along(kind, x, Spans(x.shape[lead:], output))

    def first(d: int) -> tuple[float, int]:
        ratio = output[d] / x.shape[lead + d]
        return ratio, d if ratio < 1 else -d

    for d in sorted(range(len(output)), key=first):
        size, shape = x.shape[lead + d], [*x.shape]
        if size == output[d]:
            continue
        shape[lead + d] = output[d]
        behind = math.prod(x.shape[lead + d + 1 :])
        planes = x.reshape(-1, size, behind).swapaxes(1, 2)
        found = _run_along(kind, planes, Spans((size,), output[d : d + 1]))
        if found is None:
            return None
        x = found.swapaxes(1, 2).reshape(shape)
    return x


def _run_along(
    kind: str, x: Any, geometry: Geometry | Spans, numbers: tuple[float, ...] = ()
) -> Any:
    plan = plan_of(_make, (x,), kind, geometry)
    if not plan:
        return None
    outs = run(plan, (x,), numbers)
    order = plan.more  # of the dimensions, if it is another one than in memory
    if order is not None:
        outs = [out.transpose(order) for out in outs]
    return outs[0] if len(outs) == 1 else tuple(outs)


def _make(arrays: tuple[Any], kind: str, geometry: Geometry | Spans) -> Plan:
    """The plan for an array like this."""
    (x,) = arrays
    _, (dtype,), _ = lay_out([x])
    rank, output = len(geometry.size), geometry.output
    if dtype == "bool" or not rank or 0 in output:
        raise NotCompiled("no numbers, or no windows")
    indices = None
    if kind == "max":
        indices = _INT32 if math.prod(geometry.size) < 1 << 31 else _INT64
    lead = x.ndim - rank
    steps = [s // x.itemsize for s in x.strides]
    channels = x.shape[lead - 1] if lead and steps[lead - 1] == 1 and steps[-1] != 1 else 0
    across = channels >= CHANNELS
    # In memory the results have their channels where x has them.
    order = [*range(lead - 1), *range(lead, x.ndim), lead - 1] if across else [*range(x.ndim)]
    shape = (*x.shape[:lead], *output)
    laid = tuple([shape[d] for d in order])
    own = [0] * x.ndim
    for i, d in enumerate(order):
        own[d] = math.prod(laid[i + 1 :])
    front = lead - across
    sizes, (x_lead, out_lead) = coalesce(shape[:front], [tuple(steps[:front]), tuple(own[:front])])
    outer = rank if across else rank - 1
    spans = [_spans(geometry, d) for d in range(rank)]
    tables = [spans[d][0] for d in range(outer)] + [spans[d][1] for d in range(outer)]
    ints: list[int] = [*sizes, *x_lead, *out_lead]
    for d in range(outer):
        step, here = spans[d][2], steps[lead + d]
        ints += [output[d], here, here * step, own[lead + d]]
        if indices:
            per_element = math.prod(geometry.size[d + 1 :])
            ints += [per_element, per_element * step]
    taps: int | None = None
    lane = hop = 1
    lanes = "channels" if across else "positions"
    if across:
        ints.append(channels)
    else:
        first, count, step = spans[-1]
        longest = LONG if rank == 1 else output[-1]
        ways = [(*way, _runs(first, count, *way, longest)) for way in ((1, 0), _hops(geometry))]
        hop, shift, runs = min(ways, key=lambda way: len(way[2]))
        tables.append(runs)
        most = int(count.max())
        taps = most if 0 < most <= UNROLLED else None
        lane = steps[-1] * shift
        if lane > 2 and steps[-1] * step == 1 and count.mean() >= WIDE:
            lanes = "elements"
        ints += [len(runs), steps[-1], steps[-1] * step]
        ints += [step, shift] if indices else []
    lane_known, hop_known = lane if lane in (0, 1, 2) else None, hop if hop == 1 else None
    index = "" if indices is None else type_of(indices)
    how = Pool(kind, dtype, index, len(sizes), outer, taps, lane_known, hop_known, lanes)
    ints += [lane] * (lane_known is None) + [hop] * (hop_known is None)
    cut = output[0] if outer else len(tables[-1])
    # Elements that are read for one position of the first dimension, or for a run.
    each = channels if across else output[-1]
    each *= math.prod([int(s[1].max()) for s in spans]) * math.prod(output[1:outer])
    chunk = min(max(BLOCK // max(each if outer else each // cut, 1), 1), cut)
    together = max(BLOCK // max(each * cut if outer else each, 1), 1)
    back = tuple(np.argsort(order).tolist()) if across else None
    results = [Room(laid, x.dtype)] + ([] if indices is None else [Room(laid, indices)])
    buffers = len(results) + 1 + len(tables)
    launch = Launch(kernel("window", pool_function, how), buffers, [together, chunk, *ints])
    return planned(launch, results, tables=tables, more=back)


def _spans(geometry: Geometry | Spans, d: int) -> tuple[Any, Any, int]:
    """The firsts and counts of the windows along a dimension, and the step within them.

    See Note [spans] in kernel/pools.

    >>> firsts, counts, step = _spans(Geometry((4,), (3,), (2,), ((1, 1),), (1,), (1,)), 0)
    >>> firsts.tolist(), counts.tolist(), step
    ([0, 1], [2, 3], 1)
    """
    if isinstance(geometry, Spans):
        begin, end = np.array(geometry.bounds(d), np.int64).T.copy()
        return begin, end - begin, 1
    size, spread, gap = geometry.size[d], geometry.input_dilation[d], geometry.dilation[d]
    start = np.arange(geometry.output[d]) * geometry.stride[d] - geometry.padding[d][0]
    # Of a dilated x, the taps t with start + t * gap = 0 (mod spread) meet elements.
    common = math.gcd(gap, spread)
    period = spread // common
    tap = -(start // common) * pow(gap // common, -1, period) % period if period > 1 else 0 * start
    first, step = (start + tap * gap) // spread, gap // common
    skipped = np.maximum(-(first // step), 0)  # that lie before the first element
    met = np.minimum(-((tap - geometry.kernel[d]) // period), -((first - size) // step))
    count = np.where(start % common == 0, np.maximum(met - skipped, 0), 0)
    return np.clip(first + skipped * step, 0, size - 1), count, step


def _hops(geometry: Geometry | Spans) -> tuple[int, int]:
    """The positions from lane to lane, and by how many elements of x their windows lie apart."""
    if isinstance(geometry, Spans):
        n, m = geometry.size[-1], geometry.output[-1]

        def runs(hop: int) -> float:
            """About how many there are: one for each remainder, and where it shifts otherwise."""
            return hop + 2 * m * abs(hop * n / m - round(hop * n / m))

        hop = min(range(1, min(m, HOPS) + 1), key=runs)
        return hop, round(hop * n / m)
    stride, spread = geometry.stride[-1], geometry.input_dilation[-1]
    hop = spread // math.gcd(stride, spread)
    return hop, hop * stride // spread


def _runs(first: Any, count: Any, hop: int, shift: int, longest: int) -> Any:
    """The runs of positions, each (first position, how many, first element, how many of these).

    See Note [runs] in kernel/pools.

    >>> _runs(np.array([0, 1, 3, 5]), np.array([2, 3, 3, 2]), 1, 2, 100).tolist()
    [[0, 1, 0, 2], [1, 2, 1, 3], [3, 1, 5, 2]]
    """
    found = []
    for rest in range(min(hop, len(first))):
        firsts, counts = first[rest::hop], count[rest::hop]
        joined = (np.diff(counts) == 0) & (np.diff(firsts) == shift)
        begins = np.flatnonzero(np.concatenate([[True], ~joined]))
        for begin, end in zip(begins, [*begins[1:], len(firsts)], strict=True):
            for at in range(begin, end, longest):
                found.append((rest + at * hop, min(longest, end - at), firsts[at], counts[at]))
    return np.array(found, np.int64)
