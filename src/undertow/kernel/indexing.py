"""The forms gather and take: elements read at the positions that index arrays give.

Note [indirect offsets]
Both forms are one loop over the elements of the result. Every operand (the result, x and the index
arrays) has a step along each dimension, and x is read at

    x[i0 * step0 + i1 * step1 + … + index0[…] * reach0 + index1[…] * reach1 + …]

where `reach` is the step of x along the dimension that an index array picks from; the other steps
of x are zero along the dimensions of the index arrays. An index that does not change along the
innermost dimension picks whole rows, which are copied as vectors.

Note [clamped indices]
The ops check that indices are in range. But an index array may share memory with a program that
changes it afterwards, so kernels take the smaller of the index, read as unsigned, and the last one
allowed: whatever the indices are, only elements of x are read or written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .ir import Buffer, Function, Value
from .maps import BLOCK, Operand

AHEAD = 16  # rows; the processor alone looks ahead over half as many
Steps = list[list[Value | int]]


def gather_function(
    name: str, out: Operand, x: Operand, indices: Sequence[Operand], rank: int, stream: bool
) -> Function:
    """The kernel of Note [indirect offsets] over `rank` dimensions.

    Its buffers are out, x and the index arrays; its parameters the sizes, then for each buffer its
    steps (but for an innermost one that is known), then the reach and the last index allowed of
    each index array. To `stream`, out and its rows must be multiples of STREAM bytes.
    """
    f = Function(name)
    target, source = f.buffer("out", out.dtype, written=True), f.buffer("x", x.dtype)
    listed = [f.buffer(f"index{i}", o.dtype) for i, o in enumerate(indices)]
    sizes = [f.param(f"n{d}") for d in range(rank)]
    steps = step_params(f, [out, x, *indices], rank)
    reaches = reach_params(f, len(indices))
    whole = [still(step[-1]) for step in steps[2:]]

    def places_of(bases: list[Value]) -> Value:
        """Where in x a row begins, as far as the indices that pick whole rows tell."""
        begin = bases[1]
        for all_row, place, index, reach in zip(whole, bases[2:], listed, reaches, strict=True):
            if all_row:
                begin = begin + picked(f, index, place, reach)
        return begin

    with rows(f, sizes, steps) as (line, bases, start, count):
        if rank == 2 and all(whole):
            ahead = f.call("minimum", line + AHEAD, sizes[0] - 1)
            far = places_of(line_offsets(f, ahead, sizes[:1], steps)) + start * steps[1][-1]
            f.prefetch(source, far)
            f.prefetch(source, far + (count - 1) * steps[1][-1])
        begin = places_of(bases)
        # Loading lane by lane, a vector would only be taken apart and put together again.
        with f.vector(count) if all(whole) else f.loop(count) as i:
            at = start + i
            offset = begin + at * steps[1][-1]
            for all_row, place, step, index, reach in zip(
                whole, bases[2:], steps[2:], listed, reaches, strict=True
            ):
                if not all_row:
                    offset = offset + picked(f, index, place + at * step[-1], reach)
            f.store(target, bases[0] + at * steps[0][-1], f.load(source, offset), stream)
    return f


# Parts that the kernels of indexing share ------------------------------------------------------
def step_params(f: Function, operands: Sequence[Operand], rank: int) -> Steps:
    """The steps of each operand, as parameters but for an innermost one that is known."""
    steps: Steps = []
    for i, o in enumerate(operands):
        outer: list[Value | int] = [f.param(f"step{i}_{d}") for d in range(rank - 1)]
        steps.append([*outer, f.param(f"step{i}_{rank - 1}") if o.step is None else o.step])
    return steps


def reach_params(f: Function, count: int) -> list[tuple[Value, Value]]:
    """For each index array the parameters (reach, last index); see Note [indirect offsets]."""
    return [(f.param(f"reach{i}"), f.param(f"last{i}")) for i in range(count)]


def picked(f: Function, index: Buffer, place: Value, reach: tuple[Value, Value]) -> Value:
    """How far into x an element of an index array leads; see Note [clamped indices]."""
    step, last = reach
    found = f.cast(f.cast(f.load(index, place), "i64"), "u64")
    return f.cast(f.call("minimum", found, f.cast(last, "u64")), "i64") * step


@contextmanager
def rows(
    f: Function, sizes: Sequence[Value], steps: Steps
) -> Iterator[tuple[Value, list[Value], Value, Value]]:
    """Pieces of the innermost rows, in parallel: (row, operands' offsets, first element, count)."""
    n, rank = sizes[-1], len(sizes)
    lines: Value = f.value(1, "i64")
    for size in sizes[:-1]:
        lines = f.call("mul", lines, size) if lines.op != "const" else size
    piece = f.call("minimum", n, BLOCK)
    pieces = (n + (piece - 1)) // piece
    together = f.value(BLOCK, "i64") // piece
    groups = (lines + (together - 1)) // together
    with f.parallel(groups * pieces) as block:
        start = (block % pieces) * piece
        first = (block // pieces) * together
        with f.loop(f.call("minimum", lines - first, together)) as r:
            line = first + r
            bases = line_offsets(f, line, sizes[: rank - 1], steps)
            yield line, bases, start, f.call("minimum", n - start, piece)


def line_offsets(f: Function, line: Value, sizes: Sequence[Value], steps: Steps) -> list[Value]:
    """The operands' offsets at position `line`, row-major, of the leading dimensions."""
    bases = [f.value(0, "i64")] * len(steps)
    for d in reversed(range(len(sizes))):
        at = line if d == 0 else line % sizes[d]
        line = line if d == 0 else line // sizes[d]
        bases = [
            at * s[d] if b.op == "const" else b + at * s[d]
            for b, s in zip(bases, steps, strict=True)
        ]
    return bases


def still(step: Value | int) -> bool:
    """Whether an operand does not move along a dimension."""
    return isinstance(step, int) and step == 0
