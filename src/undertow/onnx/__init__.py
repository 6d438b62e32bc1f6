"""Models as ONNX files, which other programs run."""

from typing import Any

from .exporting import export
from .kinds import OperatorExportTypes, TensorProtoDataType, TrainingMode
from .tracing import is_in_onnx_export

__all__ = [
    "OperatorExportTypes",
    "TensorProtoDataType",
    "TrainingMode",
    "export",
    "is_in_onnx_export",
    "register_custom_op_symbolic",
]


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Any, opset_version: int, custom_opsets: Any = None
) -> None:
    """Accepted: the exporter here follows what a model computes, and asks no symbolic function."""


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Accepted, as `register_custom_op_symbolic` is."""
