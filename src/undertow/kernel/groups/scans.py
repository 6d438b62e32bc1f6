"""The forms `scan` and `recurrence` for groups: a thread for each line, or for each piece of one.

A few long lines are cut into pieces (Note [pieces of lines] in kernel/scans): one launch finds what
each piece comes to, one what all pieces before it come to, and one the results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..accumulators import Kept
from ..elementary import FUNCTIONS
from ..ir import Function, Value
from ..offsets import at_row, moved, plus, times
from ..scans import Running, running
from .elements import each, steps_of


class RunningLogSum(Running):
    """The logarithm of a running sum of exponentials."""

    def __init__(self, f: Function, kind: str, dtype: str) -> None:
        super().__init__(f, "sum", dtype)

    def inits(self) -> Kept:
        return (self.f.const(-math.inf, self.types[0]),)

    def combine(self, *both: Value) -> Kept:
        f = self.f
        high, low = f.call("maximum", *both), f.call("minimum", *both)
        same = high == low  # infinities too, whose difference is NaN
        below = f.select(same, 0.0, low - high)
        return (high + FUNCTIONS["log1p"](f, FUNCTIONS["exp"](f, below)),)


def carried(f: Function, kind: str, dtype: str) -> Running:
    """What a scan carries along a line."""
    return (RunningLogSum if kind == "logaddexp" else running)(f, kind, dtype)


def carried_types(kind: str, dtype: str, double: bool) -> tuple[str, ...]:
    """The types of that."""
    return carried(Function("", "i32", double), kind, dtype).types


def scan_function(
    name: str,
    double: bool,
    kind: str,
    dtype: str,
    outs: Sequence[str],
    inputs: Sequence[str],
    kept: int,
    how: str,
) -> Function:
    """The kernel of a scan: `whole` lines, what `pieces` come to, or the results from `carry` on.

    Buffers: the outputs (of pieces: what is carried at their ends), with a carry what is carried
    into each piece, and the inputs. Parameters: the number of pieces, the length of a line, that of
    a piece, how many pieces a line has, the kept sizes; then for each output and input the kept
    steps and the step along the line.
    """
    f = Function(name, "i32", double)
    runs = carried(f, kind, dtype)
    types = runs.types if how == "pieces" else outs
    targets = [f.buffer(f"out{i}", t, written=True) for i, t in enumerate(types)]
    carries = [f.buffer(f"carry{i}", t) for i, t in enumerate(runs.types) if how == "carry"]
    ins = [f.buffer(f"in{i}", t) for i, t in enumerate(inputs)]
    count, length, piece, pieces = map(f.param, ("count", "length", "piece", "pieces"))
    sizes = [f.param(f"kept{d}") for d in range(kept)]
    written = [] if how == "pieces" else targets
    steps = [steps_of(f, f"step{i}", kept + 1) for i in range(len(written) + len(ins))]
    with each(f, count) as number:
        line, start = (number // pieces, (number % pieces) * piece)
        bases = at_row(line, sizes, [s[:-1] for s in steps])
        inits = [f.load(b, number) for b in carries] or runs.inits()
        state = f.state(*inits, combine=runs.combine)
        with f.loop(f.call("minimum", length - start, piece)) as i:
            at = start + i
            places = moved(bases, at, [s[-1] for s in steps])
            xs = [f.load(b, p) for b, p in zip(ins, places[len(written) :], strict=True)]
            found = runs.step(state.get(), xs, at)
            state.set(*found)
            for b, p, v in zip(written, places, found, strict=False):
                f.store(b, p, f.cast(v, b.scalar))
        if how == "pieces":
            for b, v in zip(targets, state.get(), strict=True):
                f.store(b, number, v)
    return f


def carry_function(name: str, double: bool, kind: str, dtype: str) -> Function:
    """What is carried into each piece, from what each comes to; a thread for each line.

    Buffers: what is carried, and what the pieces come to. Parameters: the number of lines, and that
    of the pieces of each.
    """
    f = Function(name, "i32", double)
    runs = carried(f, kind, dtype)
    outs = [f.buffer(f"out{i}", t, written=True) for i, t in enumerate(runs.types)]
    ins = [f.buffer(f"in{i}", t) for i, t in enumerate(runs.types)]
    lines, pieces = f.param("lines"), f.param("pieces")
    with each(f, lines) as line:
        state = f.state(*runs.inits(), combine=runs.combine)
        with f.loop(pieces) as i:
            at = plus(times(line, pieces), i)
            before = state.get()
            for b, v in zip(outs, before, strict=True):
                f.store(b, at, v)
            state.set(*runs.combine(*before, *[f.load(b, at) for b in ins]))
    return f
