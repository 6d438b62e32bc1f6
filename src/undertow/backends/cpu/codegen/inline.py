"""Scalar expressions inside functions that are written by hand: what follows a product's sums.

Note [activations]
A short expression is written for each vector. A long one, such as gelu, is written once, in a loop
over vectors in memory: for each of 24 sums LLVM would take a second, and nobody sees the loop
beside such a function's own instructions.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....kernel.expr import Expr
from ....kernel.ir import WIDTH
from ....kernel.ir import Function as Loops
from ....kernel.lower import lower
from .irbuilder import Function
from .llvm import Emitter
from .llvm_values import Machine, Module, Reg

_NAMES = {"float": "f32", "double": "f64"}


SHORT = 4  # values of the loop IR


def apply(
    f: Function, expr: Expr, values: Sequence[str], type: str, lanes: int, machine: Machine
) -> list[str]:
    """Write `expr` of each of some vectors, of so many lanes of an LLVM type; the results' names.

    See Note [activations].
    """
    dtype, vector = _NAMES[type], f"<{lanes} x {type}>"
    loops = Loops("inline")
    x = loops.param("x", dtype)
    result = lower(loops, expr, [x], dtype)

    def one(value: str) -> str:
        module = Module(loops, machine)
        module.lanes = lanes
        e = Emitter(module)
        e.mark, e.lanes = f"e{f.fresh()}.", lanes
        e.values = {id(x): Reg(value, varying=True)}
        e.block(loops.body)
        (text,) = e.operands([result], lanes)
        f.take(e.allocas, e.lines)
        f.declared.update(module.globals())
        return text

    if len(loops.body) <= SHORT or len(values) == 1:
        return [one(value) for value in values]
    size = lanes * WIDTH[dtype]
    room = f.slot(f"[{len(values)} x {vector}]")
    for n, value in enumerate(values):
        f.store(vector, value, f.at(room, n * size))
    with f.loop(0, len(values) * size, size) as offset:
        place = f.at(room, offset)
        f.store(vector, one(f.load(vector, place)), place)
    return [f.load(vector, f.at(room, n * size)) for n in range(len(values))]
