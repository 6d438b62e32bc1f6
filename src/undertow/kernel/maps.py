"""The form `map`: scalar expressions over broadcast operands, one pass, any number of outputs.

Note [blocks of a map]
The operands come with coalesced dimensions (kernel/layout). Blocks of about BLOCK elements are
independent: whole rows, or a piece of one long row. Where an operand does not lie along the rows,
blocks are square tiles, so that the lines of memory that its elements share stay in the cache.

Note [reading ahead]
Processors fetch ahead by themselves, but only into the second cache, and not across pages. What is
left to wait for is more than what they can compute meanwhile, if much is computed of each element:
fetching AHEAD bytes in advance makes exp of large arrays a third faster, and others up to a tenth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .complex_lower import PARTS, ComplexLowering, Pair
from .expr import Expr
from .ir import FLOATS, INTEGERS, STREAM, WIDTH, Buffer, Function, Value
from .lower import Lowering, NotCompiled

BLOCK = 16384  # elements
TILE = 64  # rows and columns
AHEAD = 4096  # bytes; see Note [reading ahead]


class Operand(NamedTuple):
    """The type of an operand and its step along the innermost dimension.

    Complex numbers are "c64" and "c128": pairs of f32 and f64, whose steps count pairs.
    The step is 0, 1 or None (a parameter of the kernel). A number has the step -1; it is a
    parameter itself.
    """

    dtype: str
    step: int | None


NUMBER = -1
ZERO = 0  # compared by identity: a value of the kernel has no truth


def map_function(
    name: str,
    exprs: Sequence[Expr],
    inputs: Sequence[Operand],
    outputs: Sequence[Operand],
    dtype: str,
    rank: int,
    stream: bool = False,
) -> Function:
    """The kernel of `exprs`, one per output, over the inputs.

    Its buffers are the outputs and the inputs that are no numbers; its parameters the `rank` sizes,
    then for each buffer its steps (but for an innermost one that is known), then the numbers. A
    kernel that streams has one more, the first: how many elements of every row (of every block, if
    there is only one row) lie before a multiple of STREAM bytes, in each output alike.
    """
    f = Function(name)
    outs = [
        f.buffer(f"out{i}", PARTS.get(o.dtype, o.dtype), written=True)
        for i, o in enumerate(outputs)
    ]
    arrays = [o for o in inputs if o.step != NUMBER]
    ins = [f.buffer(f"in{i}", PARTS.get(o.dtype, o.dtype)) for i, o in enumerate(arrays)]
    head = f.param("head") if stream else None
    sizes = [f.param(f"n{d}") for d in range(rank)]
    steps: list[list[Value | int]] = []
    for i, o in enumerate([*outputs, *arrays]):
        outer: list[Value | int] = [f.param(f"step{i}_{d}") for d in range(rank - 1)]
        steps.append([*outer, f.param(f"step{i}_{rank - 1}") if o.step is None else o.step])
    numbers: list[Any] = []
    for i, o in enumerate(inputs):
        if o.step != NUMBER:
            continue
        if o.dtype in PARTS:
            given = [f.param(f"number{i}_{part}", "f64") for part in ("re", "im")]
            numbers.append(Pair(*[f.cast(g, PARTS[o.dtype]) for g in given]))
        else:
            wide = "f64" if o.dtype in FLOATS else "i64"
            numbers.append(f.cast(f.param(f"number{i}", wide), o.dtype))
    paired = any(o.dtype in PARTS for o in (*inputs, *outputs))
    tiled = rank > 1 and any(o.step is None for o in [*outputs, *arrays])

    def elements(bases: Sequence[Value | int], start: Value, count: Value) -> None:
        """One row's elements from `start` on."""
        if head is None:
            part(bases, start, count, stream=False)
        else:
            before = f.call("minimum", head, count)
            part(bases, start, before, stream=False)
            part(bases, start + before, count - before, stream=True)

    def part(bases: Sequence[Value | int], start: Value, count: Value, stream: bool) -> None:
        with f.vector(count) as i:
            at = start + i
            places = [
                base if step is ZERO else at * step + base
                for base, (*_, step) in zip(bases, steps, strict=True)
            ]
            if not tiled:  # see Note [reading ahead]
                for b, p, o in zip(ins, places[len(outs) :], arrays, strict=True):
                    if o.step == 1 and o.dtype in PARTS:
                        for line in (0, STREAM):
                            f.prefetch(b, p * 2 + (AHEAD + line) // WIDTH[b.dtype])
                    elif o.step == 1:
                        f.prefetch(b, f.value(p, "i64") + AHEAD // WIDTH[o.dtype])
            loaded = iter(
                [
                    load_pair(f, b, p) if o.dtype in PARTS else f.load(b, p)
                    for b, p, o in zip(ins, places[len(outs) :], arrays, strict=True)
                ]
            )
            given = iter(numbers)
            args: list[Any] = [next(given) if o.step == NUMBER else next(loaded) for o in inputs]
            if paired:
                lowering: Lowering = ComplexLowering(f, args, PARTS.get(dtype, dtype))
            else:
                lowering = Lowering(f, args, dtype)
            for expr, out, place, o in zip(exprs, outs, places, outputs, strict=False):
                found: Any = lowering.value(expr)
                if o.dtype in PARTS:
                    store_pair(f, out, place, found, stream)
                elif isinstance(found, Pair):
                    raise NotCompiled(f"a complex result in {o.dtype}")
                else:
                    f.store(out, place, converted(f, found, out.scalar), stream)

    n = sizes[-1]
    if rank == 1:
        with f.parallel((n + (BLOCK - 1)) // BLOCK) as block:
            start = block * BLOCK
            elements([ZERO] * len(steps), start, f.call("minimum", n - start, BLOCK))
        return f
    rows: Value = sizes[0]
    for size in sizes[1:-1]:
        rows = rows * size
    piece = f.call("minimum", n, TILE if tiled else BLOCK)
    pieces = (n + (piece - 1)) // piece
    if tiled:
        together: Value = f.value(TILE, "i64")
    else:
        together = f.value(BLOCK, "i64") // piece
    groups = (rows + (together - 1)) // together
    with f.parallel(groups * pieces) as block:
        group = block // pieces
        start = (block % pieces) * piece
        count = f.call("minimum", n - start, piece)
        first = group * together
        with f.loop(f.call("minimum", rows - first, together)) as r:
            row = first + r
            bases: list[Value | int] = [ZERO] * len(steps)
            for d in reversed(range(rank - 1)):
                at = row if d == 0 else row % sizes[d]
                row = row if d == 0 else row // sizes[d]
                bases = [
                    at * s[d] if b is ZERO else b + at * s[d]
                    for b, s in zip(bases, steps, strict=True)
                ]
            elements(bases, start, count)
    return f


def load_pair(f: Function, buffer: Buffer, place: Value | int) -> Pair:
    """A complex number; see Note [pairs] of the code generator."""
    first = f.value(place, "i64") * 2
    second = first + 1
    return Pair(f.load(buffer, first), f.load(buffer, second))


def store_pair(
    f: Function, buffer: Buffer, place: Value | int, value: Any, stream: bool = False
) -> None:
    """Store a complex number, or a real one as such."""
    first = f.value(place, "i64") * 2
    second = first + 1
    pair = value if isinstance(value, Pair) else Pair(value, f.const(0.0, buffer.scalar))
    parts = [f.cast(part, buffer.scalar) for part in pair]
    f.store(buffer, first, parts[0], stream)
    f.store(buffer, second, parts[1], stream)


def converted(f: Function, value: Value, dtype: str) -> Value:
    """A result in the output's type; large integers wrap around, also those that were floats."""
    if value.dtype in FLOATS and dtype in INTEGERS:
        return f.cast(f.cast(value, "i64"), dtype)
    return f.cast(value, dtype)
