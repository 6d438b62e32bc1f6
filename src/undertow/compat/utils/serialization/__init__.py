"""`torch.utils.serialization`: how files are written and read."""

from . import config

__all__ = ["config"]
