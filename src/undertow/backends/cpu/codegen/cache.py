"""The kernel cache on disk: object code in a directory that only we can write.

`UNDERTOW_CACHE_DIR` names the directory (otherwise `undertow` in the user's cache directory),
`UNDERTOW_CACHE=0` switches the cache off, `UNDERTOW_CACHE_SIZE` is its limit in megabytes.

Note [trust]
What is read here is executed. So the directory must be ours, must not be writable by anybody else,
and must not be reached by somebody else's symbolic link; the same holds for every entry. The
directory is checked once, through the descriptor by which all entries are then opened, so nobody
can exchange it after the check. A checksum over key and content tells a truncated, damaged or
renamed entry; it is no defence against an attacker, the permissions are.

Note [concurrency]
An entry appears by a rename, whole, and is never changed. Two processes that compile the same
kernel at once write the same entry twice. Removing one that another process is reading does no
harm, and one that is gone is compiled again. No failure to read or write is an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
import sys
import time
import warnings
from pathlib import Path

from ....errors import ArgumentError

MEGABYTES = 256
_MAGIC = b"undertow kernel 1\n"
_DIGEST = 32
_ENTRY = re.compile(r"[0-9a-f]{64}\.kernel")
_TEMPORARY = re.compile(r"[0-9a-f]{64}\.[0-9a-f]{8}\.new")
_STALE = 3600.0  # seconds: a use is noted, and an unfinished entry removed, after so long
_EVERY = 32  # entries written between two looks at the size
_READ = os.O_RDONLY | sum(getattr(os, f, 0) for f in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class Disk:
    """A directory of entries, each found by a key of 64 hexadecimal digits."""

    def __init__(self, folder: Path, megabytes: int = MEGABYTES) -> None:
        self.folder = folder
        self.limit = megabytes << 20
        self._written = 0
        self._writable = True
        self._warned = False
        os.makedirs(folder, 0o700, exist_ok=True)
        link = os.lstat(folder)
        if stat.S_ISLNK(link.st_mode):
            self._refuse(_distrust(link, others_may_write=False))
        # Windows knows neither owners nor descriptors of directories; its profile is private.
        self._fd = os.open(folder, os.O_RDONLY) if os.open in os.supports_dir_fd else None
        self._refuse(_distrust(os.fstat(self._fd) if self._fd is not None else os.stat(folder)))

    def __del__(self) -> None:
        if getattr(self, "_fd", None) is not None:
            os.close(self._fd)  # type: ignore[arg-type]

    def get(self, key: str) -> bytes | None:
        """What was put under this key, unless it is not there or not sound."""
        path = self._path(f"{key}.kernel")
        try:
            with open(os.open(path, _READ, dir_fd=self._fd), "rb") as file:
                info = os.fstat(file.fileno())
                reason = _distrust(info) if stat.S_ISREG(info.st_mode) else "is not a file"
                if reason:
                    self._ignore(key, reason)
                    return None
                content = file.read()
                if info.st_mtime < time.time() - _STALE:  # for removal by last use
                    with contextlib.suppress(OSError):
                        os.utime(file.fileno() if os.utime in os.supports_fd else path)
        except OSError:
            return None
        start = len(_MAGIC) + _DIGEST
        data = content[start:]
        return data if content[:start] == _MAGIC + _checksum(key, data) else None

    def put(self, key: str, data: bytes) -> None:
        """Keep `data` under this key, if the disk lets us."""
        if not self._writable:
            return
        temporary = self._path(f"{key}.{secrets.token_hex(4)}.new")
        try:
            try:
                with open(os.open(temporary, _WRITE, 0o600, dir_fd=self._fd), "wb") as file:
                    file.write(_MAGIC + _checksum(key, data) + data)
                final = self._path(f"{key}.kernel")
                os.replace(temporary, final, src_dir_fd=self._fd, dst_dir_fd=self._fd)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=self._fd)
                raise
        except OSError:
            self._writable = False
            return
        if self._written % _EVERY == 0:
            with contextlib.suppress(OSError):
                self._trim()
        self._written += 1

    def _trim(self) -> None:
        """Remove what was not used for the longest time, until the rest is within the limit."""
        entries, total = [], 0
        with os.scandir(self.folder if self._fd is None else self._fd) as found:
            for entry in found:
                try:
                    info = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # another process was faster
                    continue
                if _ENTRY.fullmatch(entry.name):
                    entries.append((info.st_mtime, info.st_size, entry.name))
                    total += info.st_size
                elif _TEMPORARY.fullmatch(entry.name) and info.st_mtime < time.time() - _STALE:
                    self._remove(entry.name)
        entries.sort()
        for _, size, name in entries:
            if total <= self.limit:
                break
            self._remove(name)
            total -= size

    def _remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path(name), dir_fd=self._fd)

    def _path(self, name: str) -> str:
        return name if self._fd is not None else str(self.folder / name)

    def _refuse(self, reason: str | None) -> None:
        if reason:
            raise PermissionError(f"{self.folder} {reason}")

    def _ignore(self, key: str, reason: str) -> None:
        if not self._warned:
            self._warned = True
            _warn(f"an entry of the kernel cache is ignored: {self.folder / key}.kernel {reason}")


def from_environment() -> tuple[Disk | None, str]:
    """The cache that the environment asks for, or None; and where it is, or why there is none."""
    if _number("UNDERTOW_CACHE", 1) == 0:
        return None, "switched off by UNDERTOW_CACHE=0"
    megabytes = _number("UNDERTOW_CACHE_SIZE", MEGABYTES)
    try:
        folder = cache_folder()
        return Disk(folder, megabytes), str(folder)
    except PermissionError as error:
        if error.errno is None:  # ours
            _warn(f"the kernel cache on disk is not used: {error}")
        return None, str(error)
    except (OSError, RuntimeError) as error:  # no such disk, no home
        return None, str(error)


def cache_folder() -> Path:
    """Where Undertow keeps what it can make or fetch again."""
    given = os.environ.get("UNDERTOW_CACHE_DIR", "")
    if given:
        return Path(given).expanduser().absolute()
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    base = Path(os.environ.get(variable, ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "undertow"


def _number(name: str, default: int) -> int:
    given = os.environ.get(name, "") or str(default)
    if not given.isdecimal():
        raise ArgumentError(f"{name} must be a number, 0 or more, got {given!r}")
    return int(given)


def _checksum(key: str, data: bytes) -> bytes:
    return hashlib.blake2b(key.encode() + data, digest_size=_DIGEST).digest()


def _distrust(info: os.stat_result, *, others_may_write: bool = True) -> str | None:
    """Why code must not be loaded from a file or directory; see Note [trust]."""
    if not hasattr(os, "geteuid"):
        return None
    if info.st_uid != os.geteuid():
        return f"belongs to user {info.st_uid}, and you are user {os.geteuid()}"
    if others_may_write and info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written by other users (take that away by chmod go-w)"
    return None


def _warn(message: str) -> None:
    warnings.warn(
        f"{message}. What is loaded from there is executed, so it must be yours alone: mend it, "
        "name another directory in UNDERTOW_CACHE_DIR, or set UNDERTOW_CACHE=0",
        UserWarning,
        stacklevel=2,
    )
