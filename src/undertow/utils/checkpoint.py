"""`undertow.autograd.checkpoint` under torch's module name."""

from ..autograd.checkpoint import CheckpointError, checkpoint, checkpoint_sequential

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential"]
