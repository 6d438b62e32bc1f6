"""An ONNX graph as it grows, and the sizes in it that vary.

Note [sizes that vary]
A model is traced with the sizes that were given and, where axes are dynamic, once more with others:
each named size times a prime number of its own. A number that is the same in both traces is a
constant. One that is not is a · size + b of one of the named sizes, or of a product of two, and the
graph computes it from the shape of an input. All that is done twice, with other primes: if the two
graphs differ, a size varied in another way, which is an error, so that none is silently built in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import dtypes
from ..core.register import FUNCTIONS
from ..core.tensor import Tensor
from ..dtypes import DType
from ..errors import UnsupportedError
from .model import Node

LAST = 2**63 - 1  # "to the end" in a slice


class Axis(NamedTuple):
    """A size that varies: of which input and dimension, and what it is in the two traces."""

    input: str
    dim: int
    name: str
    first: int
    second: int


class Graph:
    """Nodes in order, and constants."""

    def __init__(self, axes: Sequence[Axis], opset: int) -> None:
        self.nodes: list[Node] = []
        self.constants: dict[str, Tensor] = {}
        self.opset = opset
        self._axes = axes
        self._known: dict[Any, str] = {}
        self._count = 0

    def name(self, prefix: str = "value") -> str:
        """A name that nothing has yet."""
        self._count += 1
        return f"{prefix}_{self._count}"

    def node(self, op: str, *inputs: str, count: int = 1, **attributes: Any) -> Any:
        """Add an operation; the name of its result, or a list of names."""
        outputs = tuple([self.name(op.lower()) for _ in range(count)])
        self.nodes.append(Node(op, inputs, outputs, attributes))
        return outputs[0] if count == 1 else list(outputs)

    # Constants --------------------------------------------------------------------------------
    def tensor(self, t: Tensor, name: str | None = None) -> str:
        """A constant with these elements."""
        name = name or self.name("constant")
        self.constants[name] = t
        return name

    def number(self, value: Any, dtype: DType) -> str:
        """A constant of no dimensions."""
        return self._once((repr(value), dtype), value, dtype)

    def numbers(self, values: Sequence[int]) -> str:
        """A vector of integers."""
        return self._once(tuple(values), list(values), dtypes.int64)

    def _once(self, key: Any, value: Any, dtype: DType) -> str:
        if key not in self._known:
            self._known[key] = self.tensor(FUNCTIONS["tensor"](value, dtype=dtype))
        return self._known[key]

    # Sizes ------------------------------------------------------------------------------------
    def size(self, first: int, second: int, what: str) -> str:
        """A vector of one number, which is `first` in one trace and `second` in the other."""
        if first == second:
            return self.numbers([first])
        fits = []
        for i, axis in enumerate(self._axes):
            others = [a for a in self._axes[i + 1 :] if a.name != axis.name]
            for term in [(axis,), *((axis, other) for other in others)]:
                low, high = (math.prod(sizes) for sizes in zip(*[a[3:] for a in term], strict=True))
                factor, rest = divmod(second - first, high - low)
                if not rest and factor > 0:
                    fits.append((abs(first - factor * low), len(term), factor, term))
        if fits:  # the simplest
            added, _, factor, term = min(fits)
            found = self._axis_size(term[0])
            for axis in term[1:]:
                found = self.node("Mul", found, self._axis_size(axis))
            if factor != 1:
                found = self.node("Mul", found, self.numbers([factor]))
            if added:
                low = math.prod([a.first for a in term])
                found = self.node("Add", found, self.numbers([first - factor * low]))
            return found
        names = ", ".join(sorted({axis.name for axis in self._axes}))
        raise UnsupportedError(
            f"[onnx.export] {what} depends on a dynamic axis ({names}) in a way that is not linear:"
            f" it is {first} and {second} for sizes "
            f"{', '.join(f'{a.first} and {a.second}' for a in self._axes)}; make that axis fixed"
        )

    def _axis_size(self, axis: Axis) -> str:
        key = ("axis", axis.input, axis.dim)
        if key not in self._known:
            shape = self.node("Shape", axis.input)
            self._known[key] = self.node("Gather", shape, self.numbers([axis.dim]), axis=0)
        return self._known[key]

    def sizes(self, first: Sequence[int], second: Sequence[int], what: str) -> str:
        """A vector of numbers that are these in the two traces."""
        if tuple(first) == tuple(second):
            return self.numbers(first)
        parts = [self.size(a, b, what) for a, b in zip(first, second, strict=True)]
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=0)
