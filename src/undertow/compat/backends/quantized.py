"""Which library computes with quantised tensors: none, there are no such tensors here."""

from __future__ import annotations

__all__ = ["engine", "supported_engines"]

engine = "none"
supported_engines = ["none"]
