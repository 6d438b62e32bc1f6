"""Where users of torch look for checkpointing: `undertow.utils.checkpoint`."""

from . import checkpoint

__all__ = ["checkpoint"]
