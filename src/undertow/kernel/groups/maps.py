"""The form `map` for groups: a thread for each element, any number of outputs."""

from __future__ import annotations

from collections.abc import Sequence

from ..expr import Expr
from ..ir import Function
from ..lower import Lowering
from ..maps import NUMBER, Operand, converted
from ..offsets import at_row
from .elements import each, number_of, numbers_of, steps_of


def map_function(
    name: str,
    double: bool,
    exprs: Sequence[Expr],
    inputs: Sequence[Operand],
    outputs: Sequence[Operand],
    dtype: str,
    rank: int,
) -> Function:
    """The kernel of `exprs`, one per output, over the inputs; see kernel/maps.

    Its buffers are the outputs and the inputs that are no numbers; its parameters the number of
    elements, the `rank` sizes, then for each buffer its steps (but for an innermost one that is
    known), then the numbers.
    """
    f = Function(name, "i32", double)
    outs = [f.buffer(f"out{i}", o.dtype, written=True) for i, o in enumerate(outputs)]
    arrays = [o for o in inputs if o.step != NUMBER]
    ins = [f.buffer(f"in{i}", o.dtype) for i, o in enumerate(arrays)]
    count = f.param("count")
    sizes = [f.param(f"n{d}") for d in range(rank)]
    steps = [steps_of(f, f"step{i}", rank, o.step) for i, o in enumerate([*outputs, *arrays])]
    numbers = numbers_of(f, inputs)
    with each(f, count) as i:
        places = at_row(i, sizes, steps)
        loaded = iter([f.load(b, p) for b, p in zip(ins, places[len(outs) :], strict=True)])
        given = iter(numbers)
        args = [next(given) if o.step == NUMBER else next(loaded) for o in inputs]
        if all(o.dtype == "bool" for o in arrays) and numbers:  # then the numbers tell the type
            args = [f.cast(a, dtype) for a in args]
        lowering = Lowering(f, args, dtype)
        values = [
            converted(f, lowering.value(e), b.scalar) for e, b in zip(exprs, outs, strict=True)
        ]
        for b, place, value in zip(outs, places, values, strict=False):
            f.store(b, place, value)
    return f


def fill_function(name: str, double: bool, word: str) -> Function:
    """Every element is a number. Buffers: out. Parameters: how many elements, the number."""
    f = Function(name, "i32", double)
    out = f.buffer("out", word, written=True)
    count, number = f.param("count"), number_of(f, "number", word)
    with each(f, count) as i:
        f.store(out, i, number)
    return f
