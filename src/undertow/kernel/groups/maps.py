"""The form `map` for groups: a thread for each element, any number of outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..complex_lower import PARTS, Pair
from ..expr import Expr
from ..ir import Function
from ..lower import Lowering, NotCompiled
from ..maps import converted
from ..offsets import at_row
from .complex_functions import DeviceComplexLowering
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
    elements, the `rank` sizes, then for each buffer its steps, then the numbers. `dtype` is that of
    the parts where some operands or outputs are pairs, whose steps count in parts.
    """
    f = Function(name, "i32", double)
    outs = [f.buffer(f"out{i}", PARTS.get(t, t), written=True) for i, t in enumerate(outputs)]
    given = Inputs(f, inputs)
    count = f.param("count")
    sizes = [f.param(f"n{d}") for d in range(rank)]
    steps = [steps_of(f, f"step{i}", rank) for i in range(len(outs) + len(given.buffers))]
    given.take_numbers()
    with each(f, count) as i:
        places = at_row(i, sizes, steps)
        args = given.values(places[len(outs) :], dtype)
        paired = given.paired or any(t in PARTS for t in outputs)
        lowering = (DeviceComplexLowering if paired else Lowering)(f, args, dtype)
        values: list[Any] = [lowering.value(e) for e in exprs]
        for t, b, place, value in zip(outputs, outs, places, values, strict=False):
            if t in PARTS:
                pair = value if isinstance(value, Pair) else Pair(value, f.const(0.0, b.scalar))
                for at, part in zip((place, place + 1), pair, strict=True):
                    f.store(b, at, converted(f, part, b.scalar))
            elif isinstance(value, Pair):
                raise NotCompiled("a complex result in a real array")
            else:
                f.store(b, place, converted(f, value, b.scalar))
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
