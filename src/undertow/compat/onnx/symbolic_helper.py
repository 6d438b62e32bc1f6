"""Marks of functions that write ONNX nodes for torch's exporter; the one here calls none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ...onnx.kinds import TensorProtoDataType

__all__ = ["parse_args", "quantized_args"]
# The numbers of dtypes in an ONNX file, by the names that torch's exporter has for them.
cast_pytorch_to_onnx = {
    name: TensorProtoDataType[kind]
    for name, kind in {
        "Byte": "UINT8",
        "Char": "INT8",
        "Short": "INT16",
        "Int": "INT32",
        "Long": "INT64",
        "Half": "FLOAT16",
        "Float": "FLOAT",
        "Double": "DOUBLE",
        "BFloat16": "BFLOAT16",
        "Bool": "BOOL",
        "ComplexFloat": "COMPLEX64",
        "ComplexDouble": "COMPLEX128",
        "Undefined": "UNDEFINED",
    }.items()
}
F = TypeVar("F", bound=Callable[..., Any])


def parse_args(*arg_descriptors: str) -> Callable[[F], F]:
    """A mark with the types of arguments: the function itself.

    >>> parse_args("v", "i")(abs) is abs
    True
    """
    return lambda fn: fn


def quantized_args(*arg_q_descriptors: bool, **options: Any) -> Callable[[F], F]:
    """A mark with the arguments that may be quantised: the function itself."""
    return lambda fn: fn
