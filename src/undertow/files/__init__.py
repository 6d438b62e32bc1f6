"""Files: safetensors, and checkpoints in torch's own format, of which nothing is executed."""

from . import safetensors
from .checkpoint import load, save

__all__ = ["load", "safetensors", "save"]
