"""Enumerations of torch's exporter, which programs pass to it."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["OperatorExportTypes", "TensorProtoDataType", "TrainingMode"]


class TrainingMode(IntEnum):
    """Whether a model is exported for training; see `export`."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(IntEnum):
    """Which operators torch's older exporter writes; the one here writes ONNX's own."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TensorProtoDataType(IntEnum):
    """The numbers of dtypes in an ONNX file."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
