"""Models as ONNX files, which other programs run."""

from .exporting import export

__all__ = ["export"]
