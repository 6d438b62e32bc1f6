"""An ONNX graph as it grows, and the sizes in it that vary.

Note [sizes that vary]
A model is traced with the sizes that were given and, where axes are dynamic, with others: first
with each named size times a prime number of its own. A number that is the same in both traces is a
constant. One that is not is a · size + b of one of the named sizes, or of a product of two, and the
graph computes it from the shape of an input. All that is done again with other sizes, and with the
two traces exchanged; the formulas must hold there, and the graph must be the same. All numbers are
compared: shapes, operands, parameters of ops, elements of constants. So none that varies between
the probes (see `probing`) is silently built in; what a probe does not reach is not noticed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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


class Formula(NamedTuple):
    """A size: factor · the product of axes, by their places, + added."""

    factor: int
    axes: tuple[int, ...]
    added: int


class Graph:
    """Nodes in order, and constants.

    `told` are the formulas that sizes must follow, in the order in which they are asked for.
    """

    def __init__(
        self, axes: Sequence[Axis], opset: int, told: Sequence[Formula] | None = None
    ) -> None:
        self.nodes: list[Node] = []
        self.constants: dict[str, Tensor] = {}
        self.opset = opset
        self.axes = axes
        self.formulas: list[Formula] = []
        self._told = told
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
        fits = list(self.fits(first, second))
        if self._told is not None:
            at = len(self.formulas)
            fits = [f for f in self._told[at : at + 1] if self._holds(f, first, second)]
        if not fits:
            names = ", ".join(sorted({axis.name for axis in self.axes}))
            raise UnsupportedError(
                f"[onnx.export] {what} depends on a dynamic axis ({names}) in a way that is not "
                f"linear: it is {first} and {second} for sizes "
                f"{', '.join(f'{a.first} and {a.second}' for a in self.axes)}; make that axis fixed"
            )
        formula = min(fits, key=lambda f: (abs(f.added), len(f.axes), f.factor, f.axes))
        self.formulas.append(formula)
        if not formula.axes:
            return self.numbers([first])
        found, *others = [self._axis_size(self.axes[i]) for i in formula.axes]
        for other in others:
            found = self.node("Mul", found, other)
        if formula.factor != 1:
            found = self.node("Mul", found, self.numbers([formula.factor]))
        if formula.added:
            found = self.node("Add", found, self.numbers([formula.added]))
        return found

    def fits(self, first: int, second: int) -> Iterator[Formula]:
        """The formulas that give these numbers in the two traces."""
        if first == second:
            yield Formula(0, (), first)
            return
        for i, axis in enumerate(self.axes):
            later = range(i + 1, len(self.axes))
            others = [(i, j) for j in later if self.axes[j].name != axis.name]
            for places in [(i,), *others]:
                low, high = self._products(places)
                factor, rest = divmod(second - first, high - low)
                if not rest and factor > 0:
                    yield Formula(factor, places, first - factor * low)

    def _products(self, places: Sequence[int]) -> tuple[int, int]:
        axes = [self.axes[i] for i in places]
        return math.prod([a.first for a in axes]), math.prod([a.second for a in axes])

    def _holds(self, formula: Formula, *sizes: int) -> bool:
        products = self._products(formula.axes)
        return sizes == tuple([formula.factor * p + formula.added for p in products])

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
