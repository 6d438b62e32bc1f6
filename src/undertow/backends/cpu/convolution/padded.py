"""Copies of inputs with zeros around them, whose spatial dimensions are one.

    void pad(pool, x, y, plan)

A plane of a channel is filled with zeros and then copied into, while it is in the first cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...base import Backend
from ...memory import empty
from ...threads import current_limit
from ..calls.launch import Launch, Plan, plan_of, planned
from ..codegen.irbuilder import Function, Value
from ..codegen.kernels import Kernel
from ..products.gemm import load
from ..products.gemm_tiles import Target, host
from ..threads.jobs import job_text
from ..threads.pool import pointer

LINE = 64  # bytes of memory that caches hold together
WORD = 4  # bytes that are moved at least
_CALL = ["x", "y", "plan"]
SEVERAL = 1 << 15  # elements of a copy that threads share
_FIELDS = [
    "tasks",  # channels of all groups and images
    "groups",
    "channels",
    "planes",
    "rows",
    "words",  # of a row
    "x_image",  # steps in bytes
    "x_group",
    "x_channel",
    "x_plane",
    "x_row",
    "y_first",  # where the first element is put
    "y_plane",
    "y_row",
    "lines",  # of a channel
]


def padded(x: Any, low: Sequence[int], reach: Sequence[int], behind: int, backend: Backend) -> Any:
    """The input with zeros around it, its spatial dimensions, sizes of `reach`, as one.

    The first element stands at `low`; where that is negative, elements are left out. Rows of
    channels begin an odd number of lines apart, so that they do not collide in a cache, with some
    zeros `behind` them: no NaN to wait for where nobody reads.
    """
    plan = plan_of(_make, (x,), tuple(low), tuple(reach), behind)
    of, into, shape = plan.more
    x = x[of]
    made = empty(shape, x.dtype)
    threads = current_limit() if made.size > SEVERAL else 1
    plan.launch.run(pointer(threads), x, made, *plan.tables)
    if into is not None:
        places = made[..., : math.prod(reach)].reshape(*x.shape[:3], *reach)
        assert places.base is not None  # a view
        backend.assign(places[into], x)
    return made


class _Places(NamedTuple):
    """What a plan remembers."""

    of: tuple[slice, ...]  # the elements that are copied
    into: tuple[slice, ...] | None  # where to, if somebody else must, since rows are no neighbours
    shape: tuple[int, ...]


def _make(operands: tuple[Any], low: Sequence[int], reach: Sequence[int], behind: int) -> Plan:
    (x,) = operands
    size = x.itemsize
    lines = -(-(math.prod(reach) + behind) * size // LINE) | 1
    of, into = [slice(None)] * 3, [slice(None)] * 3
    counts, first = [], 0
    steps = [math.prod(reach[d + 1 :]) * size for d in range(len(reach))]
    for d, (n, all, at) in enumerate(zip(x.shape[3:], reach, low, strict=True)):
        begin, skipped = max(at, 0), max(-at, 0)
        counts.append(max(min(n - skipped, all - begin), 0))
        of.append(slice(skipped, skipped + counts[-1]))
        into.append(slice(begin, begin + counts[-1]))
        first += begin * steps[d]
    straight = x.strides[-1] == size or counts[-1] <= 1
    before = [0] * (3 - len(reach))
    planes, rows, along = [1 for _ in before] + counts
    y_plane, y_row, _ = before + steps
    x_plane, x_row, _ = before + list(x.strides[3:])
    numbers = {
        "tasks": math.prod(x.shape[:3]),
        "groups": x.shape[1],
        "channels": x.shape[2],
        "planes": planes,
        "rows": rows if straight else 0,
        "words": along * size // WORD,
        "x_image": x.strides[0],
        "x_group": x.strides[1],
        "x_channel": x.strides[2],
        "x_plane": x_plane,
        "x_row": x_row,
        "y_first": first if math.prod(counts) else 0,
        "y_plane": y_plane,
        "y_row": y_row,
        "lines": lines,
    }
    table = np.array([numbers[name] for name in _FIELDS], np.int64)
    kernel = Kernel("pad", load("pad", pad_text, host()), ["ptr"] * (1 + len(_CALL)))
    shape = (*x.shape[:3], lines * LINE // size)
    more = _Places(tuple(of), None if straight else tuple(into), shape)
    return planned(Launch(kernel, len(_CALL), ()), tables=[table], more=more)


def pad_text(name: str, target: Target) -> str:
    """The code."""
    return job_text(name, _CALL, target.attributes, lambda f: None, lambda f: _tasks(f, target))


def _tasks(f: Function, target: Target) -> None:
    x, y, plan = (f.load("ptr", f.at("%call", 8 * n), 8) for n in range(3))
    field = {name: f.load("i64", f.at(plan, 8 * n), 8) for n, name in enumerate(_FIELDS)}
    lanes = target.vector // WORD
    vector = f"<{lanes} x i32>"
    with f.loop("%begin", "%end") as task:
        bytes = f.mul(field["lines"], LINE)
        into = f.at(y, f.mul(task, bytes))
        with f.loop(0, bytes, LINE) as at:
            for offset in range(0, LINE, target.vector):
                f.store(vector, "zeroinitializer", f.at(f.at(into, at), offset), WORD)
        channel, rest = f.rem(task, field["channels"]), f.div(task, field["channels"])
        group, image = f.rem(rest, field["groups"]), f.div(rest, field["groups"])
        of = x
        for number, step in ((image, "x_image"), (group, "x_group"), (channel, "x_channel")):
            of = f.at(of, f.mul(number, field[step]))
        into = f.at(into, field["y_first"])
        left = f.rem(field["words"], lanes)
        mask = f.first_lanes(lanes, left)
        whole = f.sub(field["words"], left)
        with f.loop(0, field["planes"]) as plane, f.loop(0, field["rows"]) as row:
            source, to = (
                f.at(
                    f.at(base, f.mul(plane, field[f"{which}_plane"])),
                    f.mul(row, field[f"{which}_row"]),
                )
                for base, which in ((of, "x"), (into, "y"))
            )

            def place(base: str, at: Value) -> str:
                return f.at(base, f.mul(at, WORD))

            with f.loop(0, whole, lanes) as at:
                f.store(vector, f.load(vector, place(source, at), WORD), place(to, at), WORD)
            with f.when(f.compare("ne", left, 0)):
                told = vector, f"v{lanes}i32"
                piece = f.load_lanes(*told, place(source, whole), mask, WORD)
                f.store_lanes(*told, piece, place(to, whole), mask, WORD)
