"""Signal processing: torch's `signal`."""

from . import windows

__all__ = ["windows"]
