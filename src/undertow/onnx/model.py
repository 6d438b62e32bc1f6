"""The parts of an ONNX model as protobuf messages: tensors, attributes, nodes, graphs."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import dtypes
from ..core.tensor import Tensor
from ..dtypes import DType
from ..errors import UnsupportedError
from ..files.elements import elements_of
from .protobuf import message

# ONNX's numbers for element types.
ELEMENTS: dict[DType, int] = {
    dtypes.float32: 1,
    dtypes.uint8: 2,
    dtypes.int8: 3,
    dtypes.int16: 5,
    dtypes.int32: 6,
    dtypes.int64: 7,
    dtypes.bool: 9,
    dtypes.float16: 10,
    dtypes.float64: 11,
    dtypes.complex64: 14,
    dtypes.complex128: 15,
    dtypes.bfloat16: 16,
}
IR_VERSION = 8
_LARGEST = 2**31 - 1  # bytes of a protobuf message
Dims = tuple[int | str, ...]  # a size, or the name of one that varies


class Node(NamedTuple):
    """One operation of the graph."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]


def tensor_message(name: str, t: Tensor) -> bytes:
    """A tensor with its elements."""
    raw = elements_of(t)
    return message((1, list(t.shape)), (2, ELEMENTS[t.dtype]), (8, name), (9, raw))


def attribute_message(name: str, value: Any) -> bytes:
    """An attribute: an integer, a float, text, a tensor, or a list of integers or texts."""
    if isinstance(value, int):
        return message((1, name), (3, int(value)), (20, 2))
    if isinstance(value, float):
        return message((1, name), (2, value), (20, 1))
    if isinstance(value, str):
        return message((1, name), (4, value), (20, 3))
    if isinstance(value, Tensor):
        return message((1, name), (5, tensor_message("", value)), (20, 4))
    if any(isinstance(v, str) for v in value):
        return message((1, name), (9, list(value)), (20, 8))
    return message((1, name), (8, [int(v) for v in value]), (20, 7))


def node_message(node: Node, number: int) -> bytes:
    attributes = [attribute_message(k, v) for k, v in node.attributes.items()]
    return message(
        (1, list(node.inputs)),
        (2, list(node.outputs)),
        (3, f"{node.op}_{number}"),
        (4, node.op),
        (5, attributes),
    )


def value_message(name: str, dtype: DType, dims: Dims) -> bytes:
    """What an input or output is: its element type, and its sizes or their names."""
    sizes = [message((2, d)) if isinstance(d, str) else message((1, d)) for d in dims]
    shape = message((1, sizes))
    return message((1, name), (2, message((1, message((1, ELEMENTS[dtype]), (2, shape))))))


def model_message(
    nodes: list[Node],
    constants: dict[str, Tensor],
    inputs: list[tuple[str, DType, Dims]],
    outputs: list[tuple[str, DType, Dims]],
    opset: int,
) -> bytes:
    """A whole model."""
    size = sum(t.nbytes for t in constants.values())
    if size > _LARGEST:
        raise UnsupportedError(
            f"[onnx.export] the weights take {size:,} bytes, one file holds up to {_LARGEST:,}; "
            "export parts of the model, or convert it to float16"
        )
    graph = message(
        (1, [node_message(n, i) for i, n in enumerate(nodes)]),
        (2, "undertow"),
        (5, [tensor_message(name, t) for name, t in constants.items()]),
        (11, [value_message(*i) for i in inputs]),
        (12, [value_message(*o) for o in outputs]),
    )
    return message((1, IR_VERSION), (2, "undertow"), (7, graph), (8, message((1, ""), (2, opset))))
