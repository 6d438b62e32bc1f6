"""Checkpoints that all processes write and read together; nothing in them is executed.

A checkpoint is a folder: a file of tensors per process, and `metadata.json`, which says where each
tensor is. Tensors that all processes have are written once, in parts. Any number of processes can
read them. The folder appears at once and complete, or not at all.
"""

from __future__ import annotations

from typing import Any

from ...errors import UndertowError
from .folder import load as load
from .folder import load_state_dict as load_state_dict
from .writing import async_save as async_save
from .writing import save as save
from .writing import save_state_dict as save_state_dict


class CheckpointException(UndertowError, RuntimeError):
    """A checkpoint could not be written or read; the message says by which process."""


class FileSystemWriter:
    """Where to write: the folder `path`."""

    def __init__(self, path: Any, *args: Any, **kwargs: Any) -> None:
        self.path = path


class FileSystemReader(FileSystemWriter):
    """Where to read from: the folder `path`."""


__all__ = [
    "FileSystemReader",
    "FileSystemWriter",
    "CheckpointException",
    "async_save",
    "load",
    "save",
]
