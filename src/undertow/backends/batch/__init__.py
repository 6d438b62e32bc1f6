"""A batch of arrays as one array: what `func.vmap` runs an op's forms on."""

from .frames import BatchArray, Frame, copies, drawing, enclosing, frames_of, reframed, towering
from .lifting import UnmappedWriteError, ValueLookedAtError

__all__ = [
    "BatchArray",
    "Frame",
    "UnmappedWriteError",
    "ValueLookedAtError",
    "copies",
    "drawing",
    "enclosing",
    "frames_of",
    "reframed",
    "towering",
]
