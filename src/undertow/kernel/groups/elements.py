"""What the forms of groups have in common: a thread for each element, offsets and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..complex_lower import PARTS, Pair
from ..ir import FLOATS, Function, Value
from ..offsets import Offset

BLOCK = 1024  # elements of a group
MOST = (1 << 31) - (1 << 16)  # elements of a launch


@contextmanager
def each(f: Function, count: Value) -> Iterator[Value]:
    """Deal out the numbers below `count` to threads; a context manager that gives each of them."""
    with f.parallel((count + (BLOCK - 1)) // BLOCK) as block:
        start = block * BLOCK
        with f.vector(f.call("minimum", count - start, BLOCK)) as i:
            yield start + i


def blocks(count: int) -> int:
    """The groups that `each` wants.

    >>> blocks(1025)
    2
    """
    return -(-count // BLOCK)


def steps_of(f: Function, name: str, rank: int) -> list[Offset]:
    """Parameters for an operand's steps."""
    return [f.param(f"{name}_{d}") for d in range(rank)]


class Operand(NamedTuple):
    """The type of an operand, and whether it is a number, which is a parameter of the kernel.

    "c64" and "c128" are pairs: two elements that lie beside each other, or two parameters.
    """

    dtype: str
    number: bool = False


class Inputs:
    """The operands of an expression: buffers, and numbers."""

    def __init__(self, f: Function, operands: Sequence[Operand]) -> None:
        self.f = f
        self.operands = operands
        self.types = [o.dtype for o in operands if not o.number]
        self.buffers = [f.buffer(f"in{i}", PARTS.get(t, t)) for i, t in enumerate(self.types)]
        self.numbers: list[Value | Pair] = []

    def take_numbers(self) -> None:
        """Parameters for the numbers."""
        given = [o.dtype for o in self.operands if o.number]
        self.numbers = [
            Pair(*[number_of(self.f, f"{part}{i}", PARTS[t]) for part in ("re", "im")])
            if t in PARTS
            else number_of(self.f, f"number{i}", t)
            for i, t in enumerate(given)
        ]

    @property
    def paired(self) -> bool:
        """Whether some operands are pairs."""
        return any(o.dtype in PARTS for o in self.operands)

    def values(self, offsets: Sequence[Offset], compute: str) -> list[Any]:
        """The expression's arguments, loaded at these offsets of the buffers."""
        f = self.f
        loaded = iter(
            [
                Pair(f.load(b, p), f.load(b, p + 1)) if t in PARTS else f.load(b, p)
                for t, b, p in zip(self.types, self.buffers, offsets, strict=True)
            ]
        )
        given = iter(self.numbers)
        args: list[Any] = [next(given) if o.number else next(loaded) for o in self.operands]
        if self.paired:
            return args
        # Numbers beside booleans alone tell the type; floats may be computed in a wider one.
        plain = bool(self.numbers) and all(t == "bool" for t in self.types)
        return [f.cast(a, compute) if plain or a.dtype in FLOATS else a for a in args]


def number_of(f: Function, name: str, dtype: str) -> Value:
    """A parameter that is a number of any type."""
    if dtype in FLOATS:
        return f.param(name, dtype)
    return f.cast(f.param(name, "i64" if dtype in ("i64", "u64") else "i32"), dtype)
