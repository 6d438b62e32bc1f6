"""The forms `reduce` and `map_reduce` for groups of threads.

Note [results and threads]
Of a few elements, or of many results, a thread computes one result alone, in order. Else a group of
threads does, and combines what its threads have found as a tree. Few results of many elements are
cut into pieces of a fixed length, a group for each; what accumulates there goes to scratch memory,
and a second launch combines that.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from ..accumulators import Accumulator, Kept, Position, accumulator
from ..expr import Expr
from ..ir import Buffer, Function, Value
from ..lower import Lowering
from ..maps import converted
from ..offsets import Offset, at_row, moved, plus, quotient
from .elements import Inputs, Operand, each, steps_of


def reduce_function(
    name: str,
    double: bool,
    kind: str,
    expr: Expr,
    inputs: Sequence[Operand],
    compute: str,
    element: str,
    outs: Sequence[str],
    kept: int,
    reduced: int,
    how: str,
) -> Function:
    """The kernel that computes `expr` in the type `compute` and reduces it as of type `element`.

    `how` is thread, group or pieces; see Note [results and threads]. Its buffers are the outputs
    (with pieces: scratch memory for each value of the accumulator) and the inputs that are no
    numbers. Its parameters: the number of results, that of the elements of each, the length of a
    piece, the kept sizes, the reduced sizes, the outputs' kept steps, for each input its kept and
    its reduced steps; the numbers.
    """
    f = Function(name, "i32", double)
    kinds = accumulator(f, kind, element)
    types = kinds.types if how == "pieces" else outs
    targets = [f.buffer(f"out{i}", t, written=True) for i, t in enumerate(types)]
    given = Inputs(f, inputs)
    results, length, piece = map(f.param, ("results", "length", "piece"))
    kept_sizes = [f.param(f"kept{d}") for d in range(kept)]
    sizes = [f.param(f"reduced{d}") for d in range(reduced)]
    out_steps = steps_of(f, "out_step", kept)
    kept_steps = [steps_of(f, f"kept_step{i}", kept) for i, _ in enumerate(given.buffers)]
    steps = [steps_of(f, f"step{i}", reduced) for i, _ in enumerate(given.buffers)]
    given.take_numbers()

    def value(offsets: Sequence[Offset], at: Value) -> Kept:
        """What is kept of the element at these offsets, number `at` along the row."""
        args = given.values(offsets, compute)
        found = converted(f, Lowering(f, args, compute).value(expr), element)
        if isinstance(kinds, Position):
            return f.cast(found, kinds.types[0]), at
        return kinds.lengthen(kinds.element(found))

    if how == "thread":
        with each(f, results) as row:
            target, *bases = at_row(row, kept_sizes, [out_steps, *kept_steps])
            state = f.state(*kinds.inits(kinds.types), combine=kinds.combine)
            with ExitStack() as loops:
                at: Value = f.value(0, "i32")
                for d, size in enumerate(sizes):
                    i = loops.enter_context(f.loop(size))
                    bases = moved(bases, i, [s[d] for s in steps])
                    at = i
                state.add(*value(bases, at))
            _finish(f, kinds, targets, target, state.get(), length)
        return f
    pieces = quotient(length, piece)
    with f.parallel(results * pieces) as block:
        row, start = block // pieces, (block % pieces) * piece
        target, *bases = at_row(row, kept_sizes, [out_steps, *kept_steps])
        state = f.state(*kinds.inits(kinds.types), combine=kinds.combine)
        with f.vector(f.call("minimum", length - start, piece)) as i:
            at = start + i
            places = [plus(b, p) for b, p in zip(bases, at_row(at, sizes, steps), strict=True)]
            state.add(*value(places, at))
        if how == "pieces":
            for b, v in zip(targets, state.get(), strict=True):
                f.store(b, block, v)
        else:
            _finish(f, kinds, targets, target, state.get(), length)
    return f


def combine_function(
    name: str, double: bool, kind: str, element: str, outs: Sequence[str], kept: int
) -> Function:
    """The kernel that combines the pieces of `reduce_function`, a group for each result.

    Buffers: the outputs, and what was kept. Parameters: the number of results, of elements of each,
    of pieces of each, the kept sizes, and the outputs' kept steps.
    """
    f = Function(name, "i32", double)
    kinds = accumulator(f, kind, element)
    targets = [f.buffer(f"out{i}", t, written=True) for i, t in enumerate(outs)]
    parts = [f.buffer(f"part{i}", t) for i, t in enumerate(kinds.types)]
    results, length, pieces = map(f.param, ("results", "length", "pieces"))
    sizes = [f.param(f"kept{d}") for d in range(kept)]
    steps = steps_of(f, "out_step", kept)
    with f.parallel(results) as row:
        state = f.state(*kinds.inits(kinds.types), combine=kinds.combine)
        with f.vector(pieces) as i:
            state.add(*[f.load(b, row * pieces + i) for b in parts])
        (target,) = at_row(row, sizes, [steps])
        _finish(f, kinds, targets, target, state.get(), length)
    return f


def _finish(
    f: Function,
    kinds: Accumulator,
    targets: Sequence[Buffer],
    offset: Offset,
    kept: Kept,
    count: Value,
) -> None:
    """Store the results."""
    for b, v in zip(targets, kinds.results(kept, count), strict=True):
        f.store(b, offset, f.cast(v, b.scalar))
