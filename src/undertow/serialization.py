"""Where users of torch look for saving and loading, and for what a file may name."""

from .files.checkpoint import load, save
from .files.safe_globals import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "load",
    "safe_globals",
    "save",
]
