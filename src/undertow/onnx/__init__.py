"""Models as ONNX files, which other programs run."""

from .exporting import export
from .tracing import is_in_onnx_export

__all__ = ["export", "is_in_onnx_export"]
