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
_FLAGS = os.O_WRONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_OPEN = "/proc/self/fd"  # open files by number
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
    views = [view for piece in pieces if (view := memoryview(piece).cast("B")).nbytes]
    if mode is not None and not stat.S_ISREG(mode):
        with open(target, "wb", buffering=0) as file:
            _write(file.fileno(), views)
        return
    folder = os.path.dirname(target)
    new = os.path.join(folder, f".undertow-{secrets.token_hex(8)}.tmp")
    try:
        if not _write_unnamed(folder, new, mode, views):
            try:
                fd = os.open(new, _FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
            except OSError as error:  # which names a file that the user did not ask for
                raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
            _fill(fd, mode, views)
        os.replace(new, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise
    _sync_folder(folder)


def _write_unnamed(folder: str, new: str, mode: int | None, views: list[memoryview]) -> bool:
    """Write a file that gets its name when it is complete; False where there is no such thing.

    A process that is killed meanwhile leaves nothing behind.
    """
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir(_OPEN):
        return False
    try:
        fd = os.open(folder, _FLAGS | os.O_TMPFILE, 0o666)
    except OSError:  # a file system without them, or no such folder
        return False
    kept = os.dup(fd)
    try:
        _fill(fd, mode, views)
        # A folder is given, though the path is absolute, because only then Python asks the system
        # to follow the link.
        os.link(f"{_OPEN}/{kept}", new, src_dir_fd=kept, follow_symlinks=True)
    except OSError as error:
        if error.filename is None:  # not of the link, which some containers refuse
            raise
        return False
    finally:
        os.close(kept)
    return True


def _fill(fd: int, mode: int | None, views: list[memoryview]) -> None:
    """Give an open file its permissions and bytes, on the disk, and close it."""
    try:
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(fd, stat.S_IMODE(mode))
        _write(fd, views)
        os.fsync(fd)
    finally:
        os.close(fd)


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


def _write(fd: int, views: list[memoryview]) -> None:
    """Everything, without joining it first; a call may write less than it was given.

    The kernel is told the size, and to begin with what it has: else the disk would wait until all
    is copied, and whoever waits for the disk would wait for both, one after the other.
    """
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
