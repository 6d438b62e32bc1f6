"""What the forms of groups have in common: a thread for each element, offsets and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..ir import FLOATS, Function, Value
from ..maps import NUMBER, Operand
from ..offsets import Offset, quotient

BLOCK = 1024  # elements of a group
MOST = (1 << 31) - (1 << 16)  # elements of a launch


@contextmanager
def each(f: Function, count: Value) -> Iterator[Value]:
    """`with each(f, n) as i`: the numbers below n, dealt out to threads."""
    with f.parallel(quotient(count, f.value(BLOCK, f.index))) as block:
        start = block * BLOCK
        with f.vector(f.call("minimum", count - start, BLOCK)) as i:
            yield start + i


def blocks(count: int) -> int:
    """The groups that `each` wants.

    >>> blocks(1025)
    2
    """
    return -(-count // BLOCK)


def steps_of(f: Function, name: str, rank: int, last: int | None = None) -> list[Offset]:
    """Parameters for an operand's steps, but for an innermost one that is known."""
    known: list[Offset] = [] if last is None else [last]
    return [*(f.param(f"{name}_{d}") for d in range(rank - len(known))), *known]


def numbers_of(f: Function, inputs: Sequence[Operand]) -> list[Value]:
    """Parameters for the numbers among the operands."""
    return [number_of(f, f"number{i}", o.dtype) for i, o in enumerate(inputs) if o.step == NUMBER]


def number_of(f: Function, name: str, dtype: str) -> Value:
    """A parameter that is a number of any type."""
    if dtype in FLOATS:
        return f.param(name, dtype)
    return f.cast(f.param(name, "i64" if dtype in ("i64", "u64") else "i32"), dtype)
