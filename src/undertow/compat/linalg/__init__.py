"""Linear algebra: torch's `linalg`, published by `undertow.ops`."""

from ...core.register import SPACES as _spaces
from ...errors import LinAlgError as LinAlgError

globals().update(_spaces["linalg"])
__all__ = sorted([*_spaces["linalg"], "LinAlgError"])
