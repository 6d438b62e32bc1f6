"""Files that are written whole or not at all.

The pieces go to a new file in the same folder, which takes the place of the old one when all of
it is on the disk. Whoever reads meanwhile sees the old file, and so does everybody after a crash.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterable
from typing import Any

PathLike = str | os.PathLike[str]
_PIECES = 512  # in one call; the kernel takes at most 1024
_PART = 16 << 20  # bytes after which the kernel is told to begin writing
_LINUX = {"fallocate": "iiqq", "sync_file_range": "iqqi"}  # arguments of 32 and of 64 bits
_BEGIN = 2  # SYNC_FILE_RANGE_WRITE: begin, and do not wait


def is_path(file: Any) -> bool:
    """Whether this names a file, where a file object would do as well."""
    return isinstance(file, (str, os.PathLike))


def write_file(path: PathLike, pieces: Iterable[Any]) -> None:
    """Make `pieces` (bytes, or buffers of them), in order, the content of the file at `path`.

    A new file has the permissions that the umask allows, one that is replaced keeps its own.
    Links are followed. What is no regular file (a pipe, a device) is written as it is.
    """
    target = os.path.realpath(os.fspath(path))
    mode = _mode(target)
    if mode is not None and not stat.S_ISREG(mode):
        with open(target, "wb", buffering=0) as file:
            _write(file.fileno(), pieces)
        return
    folder = os.path.dirname(target)
    new = os.path.join(folder, f".undertow-{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        fd = os.open(new, flags | getattr(os, "O_CLOEXEC", 0), 0o666)
    except OSError as error:  # which names a file that the user did not ask for
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    try:
        try:
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(fd, stat.S_IMODE(mode))
            _write(fd, pieces)
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(new, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise
    _sync_folder(folder)


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except OSError:
        return None


def _sync_folder(folder: str) -> None:
    """Let the new name reach the disk, too, where a folder can be told to."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _write(fd: int, pieces: Iterable[Any]) -> None:
    """Everything, without joining it first; a call may write less than it was given.

    The kernel is told the size, and to begin with what it has: else the disk would wait until all
    is copied, and whoever waits for the disk would wait for both, one after the other.
    """
    views = [view for piece in pieces if (view := memoryview(piece).cast("B")).nbytes]
    size = sum(view.nbytes for view in views)
    early = size >= 2 * _PART and _linux("fallocate", fd, 0, 0, size)
    parts = [view[i : i + _PART] for view in views for i in range(0, view.nbytes, _PART)]
    parts.reverse()
    position = 0
    while parts:
        some = [parts.pop()]
        room = _PART - some[0].nbytes
        while parts and len(some) < _PIECES and parts[-1].nbytes <= room:
            room -= parts[-1].nbytes
            some.append(parts.pop())
        written = os.writev(fd, some) if hasattr(os, "writev") else os.write(fd, some[0])
        if early:
            _linux("sync_file_range", fd, position, written, _BEGIN)
        position += written
        while some and written >= some[0].nbytes:
            written -= some.pop(0).nbytes
        if some:
            some[0] = some[0][written:]
            parts += reversed(some)


def _linux(name: str, *args: int) -> bool:
    """Whether one of the kernel's calls that Python has no name for is there, and did it."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    call = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if call is None:
        return False
    kinds = {"i": ctypes.c_int, "q": ctypes.c_int64}
    call.argtypes = [kinds[letter] for letter in _LINUX[name]]
    if call(*args) == 0:
        return True
    if ctypes.get_errno() == errno.ENOSPC:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return False
