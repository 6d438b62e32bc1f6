"""One call of a trace as it is written to the graph: what the writers of ops are given."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..dtypes import DType
from ..errors import UnsupportedError
from .graph import Graph
from .model import ELEMENTS
from .tracing import Call, Value, place

Shape = tuple[int, ...]


class Writer:
    """A call, and its twin in the second trace, whose sizes are others.

    `names` are those of its inputs in the graph; numbers stay numbers, and None is None.
    """

    def __init__(self, graph: Graph, call: Call, twin: Call, names: list[Any]) -> None:
        self.graph = graph
        self.call = call
        self.twin = twin
        self.names = names
        self.node = graph.node

    # What it is given -------------------------------------------------------------------------
    @property
    def x(self) -> str:
        """The first input."""
        return self.names[0]

    def param(self, name: str) -> Any:
        """A parameter of the op, by its name; it must not vary."""
        one, other = self.params(name)
        return self.fixed(name, one, other)

    def fixed(self, what: str, one: Any, other: Any) -> Any:
        """`one`, which must not vary."""
        if one != other and repr(one) != repr(other):  # nan is nan
            raise self.refused(
                f"its {what} varies with a dynamic axis: {one} and {other}; make that axis fixed"
            )
        return one

    def params(self, name: str) -> tuple[Any, Any]:
        """A parameter of the op in both traces."""
        i = self.call.op.params.index(name)
        return self.call.params[i], self.twin.params[i]

    def tensor(self, i: int = 0) -> Tensor:
        """An input, with the elements that it had."""
        value: Value = self.call.inputs[i]
        return value.tensor

    def shapes(self, i: int = 0) -> tuple[Shape, Shape]:
        """The shape of an input in both traces."""
        return self.tensor(i).shape, self.twin.inputs[i].tensor.shape

    def out_shapes(self, i: int = 0) -> tuple[Shape, Shape]:
        """The shape of an output in both traces."""
        return self.call.outputs[i].tensor.shape, self.twin.outputs[i].tensor.shape

    @property
    def rank(self) -> int:
        """Dimensions of the first input."""
        return self.tensor().ndim

    @property
    def dtype(self) -> DType:
        """That of the first output."""
        return self.call.outputs[0].tensor.dtype

    def refused(self, why: str) -> UnsupportedError:
        """The error for a call that cannot be written."""
        return UnsupportedError(
            f"[onnx.export] the op {self.call.op.name}{place(self.call.path)} cannot be exported: "
            f"{why}"
        )

    # What many need ---------------------------------------------------------------------------
    def number(self, value: float) -> str:
        """A constant of the dtype of the output."""
        return self.graph.number(value, self.dtype)

    def operand(self, one: Any, other: Any, dtype: DType) -> str:
        """A number among the operands; where it varies, it must be a size, or linear in one."""
        if repr(one) == repr(other):
            return self.graph.number(one, dtype)
        if not all(
            isinstance(n, int) or (type(n) is float and n.is_integer()) for n in (one, other)
        ):
            self.fixed("operand", one, other)
        what = f"an operand of {self.call.op.name}{place(self.call.path)}"
        size = self.graph.size(int(one), int(other), what)
        size = self.node("Squeeze", size, self.graph.numbers([0]))
        return self.node("Cast", size, to=ELEMENTS[dtype])

    def reshape(self, x: str, source: tuple[Shape, Shape], target: tuple[Shape, Shape]) -> str:
        """`x` in another shape: sizes that vary are kept (0), or found from the others (-1)."""
        if source == target:
            return x
        wanted: list[int] = []
        open_ = []
        for i, (one, other) in enumerate(zip(*target, strict=True)):
            kept = i < len(source[0]) and (source[0][i], source[1][i]) == (one, other)
            wanted.append(one if one == other else 0 if kept else -1)
            if wanted[-1] == -1:
                open_.append(i)
        if len(open_) <= 1:
            return self.node("Reshape", x, self.graph.numbers(wanted))
        return self.node("Reshape", x, self.sizes(*target))

    def sizes(self, one: Shape, other: Shape) -> str:
        """A shape as a vector."""
        return self.graph.sizes(
            one, other, f"a shape of {self.call.op.name}{place(self.call.path)}"
        )

    def transposed(self, x: str, rank: int) -> str:
        """`x` with its last two dimensions exchanged."""
        order = [*range(rank - 2), rank - 1, rank - 2]
        return self.node("Transpose", x, perm=order)

    def reduce(self, kind: str, x: str, dims: Any, keepdim: bool = True) -> str:
        """`ReduceSum` and its kin; without dims, x itself."""
        axes = self.graph.numbers(dims)
        return self.node(
            f"Reduce{kind}", x, axes, keepdims=int(keepdim), noop_with_empty_axes=int(not dims)
        )
