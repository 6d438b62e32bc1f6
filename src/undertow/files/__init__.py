"""Files: safetensors, and checkpoints in torch's own format, of which nothing is executed."""

from .. import nn as _nn  # noqa: F401  # whole, see Note [imports of threads]
from . import safetensors
from .checkpoint import load, save

__all__ = ["load", "safetensors", "save"]
