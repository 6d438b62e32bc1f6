"""Offsets of operands in the loop IR: sums of indices times steps, without terms that are zero."""

from __future__ import annotations

from collections.abc import Sequence

from .ir import Function, Value

Offset = Value | int  # in elements; 0 is left out of sums


def plus(a: Offset, b: Offset) -> Offset:
    """`a + b`."""
    if isinstance(a, int) and a == 0:
        return b
    return a if isinstance(b, int) and b == 0 else a + b


def times(at: Offset, step: Offset) -> Offset:
    """`at * step`; a step that is known is 0 or 1."""
    if isinstance(step, int):
        return at if step else 0
    return at * step


def moved(bases: Sequence[Offset], at: Offset, steps: Sequence[Offset]) -> list[Offset]:
    """Each operand's offset `at` its steps further on."""
    return [plus(b, times(at, s)) for b, s in zip(bases, steps, strict=True)]


def product(f: Function, sizes: Sequence[Value]) -> Value:
    """The number of elements of a shape."""
    total = sizes[0] if sizes else f.value(1, f.index)
    for size in sizes[1:]:
        total = total * size
    return total


def quotient(a: Value, b: Value) -> Value:
    """`a / b`, rounded up."""
    return (a + (b - 1)) // b


def at_row(row: Value, sizes: Sequence[Value], steps: Sequence[Sequence[Offset]]) -> list[Offset]:
    """The operands' offsets at a number of a row: `steps` of each along dimensions of `sizes`."""
    offsets: list[Offset] = [0] * len(steps)
    for d in reversed(range(len(sizes))):
        at = row % sizes[d] if d else row
        row = row // sizes[d] if d else row
        offsets = moved(offsets, at, [s[d] for s in steps])
    return offsets
