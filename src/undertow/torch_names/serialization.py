"""Where users of torch look for saving and loading, and for what a file may name."""

from ..files.checkpoint import get_unsafe_globals_in_checkpoint, load, save
from ..files.safe_globals import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)

MAP_LOCATION = FILE_LIKE = object  # in annotations
DEFAULT_PROTOCOL = 2
__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "safe_globals",
    "save",
]
