"""What hooks return, under torch's name."""

from ..core.node import RemovableHandle

__all__ = ["RemovableHandle"]
