"""The form `map` for groups: a thread for each element, any number of outputs."""

from __future__ import annotations

from collections.abc import Sequence

from ..expr import Expr
from ..ir import Function
from ..lower import Lowering
from ..maps import converted
from ..offsets import at_row
from .elements import Inputs, Operand, each, number_of, steps_of


def map_function(
    name: str,
    double: bool,
    exprs: Sequence[Expr],
    inputs: Sequence[Operand],
    outputs: Sequence[str],
    dtype: str,
    rank: int,
) -> Function:
    """The kernel of `exprs`, one per output, over the inputs; see kernel/maps.

    Its buffers are the outputs and the inputs that are no numbers; its parameters the number of
    elements, the `rank` sizes, then for each buffer its steps, then the numbers.
    """
    f = Function(name, "i32", double)
    outs = [f.buffer(f"out{i}", t, written=True) for i, t in enumerate(outputs)]
    given = Inputs(f, inputs)
    count = f.param("count")
    sizes = [f.param(f"n{d}") for d in range(rank)]
    steps = [steps_of(f, f"step{i}", rank) for i in range(len(outs) + len(given.buffers))]
    given.take_numbers()
    with each(f, count) as i:
        places = at_row(i, sizes, steps)
        lowering = Lowering(f, given.values(places[len(outs) :], dtype), dtype)
        values = [
            converted(f, lowering.value(e), b.scalar) for e, b in zip(exprs, outs, strict=True)
        ]
        for b, place, value in zip(outs, places, values, strict=False):
            f.store(b, place, value)
    return f


def arange_function(name: str, double: bool, dtype: str, compute: str) -> Function:
    """`start + i * step`. Buffers: out. Parameters: how many elements, the start, the step."""
    f = Function(name, "i32", double)
    out = f.buffer("out", dtype, written=True)
    count = f.param("count")
    start, step = (number_of(f, name, compute) for name in ("start", "by"))
    with each(f, count) as i:
        f.store(out, i, converted(f, start + f.cast(i, compute) * step, out.scalar))
    return f


def fill_function(name: str, double: bool, word: str) -> Function:
    """Every element is a number. Buffers: out. Parameters: how many elements, the number."""
    f = Function(name, "i32", double)
    out = f.buffer("out", word, written=True)
    count, number = f.param("count"), number_of(f, "number", word)
    with each(f, count) as i:
        f.store(out, i, number)
    return f
