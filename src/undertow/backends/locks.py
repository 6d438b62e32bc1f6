"""A lock that an interrupt does not leave locked.

Note [taking a lock]
Up to Python 3.13 `with lock:` takes a lock and begins its block in one instruction. From 3.14 on it
calls `__enter__` first, and after a call an interrupt may arrive: then the lock is taken, the block
has not begun, and nobody will give the lock back. The `__enter__` of a class in Python is safe: an
interrupt inside is seen there, and after its return none arrives until the block has begun.
"""

from __future__ import annotations

import sys
from threading import RLock
from typing import Any

_RLock: Any = type(RLock())


class _Lock(_RLock):  # type: ignore[misc]
    """A lock that its thread may take again; with the C function `__exit__` that it inherits."""

    def __enter__(self) -> bool:
        held = self._recursion_count()
        try:
            return bool(self.acquire())
        except BaseException:
            if self._recursion_count() > held:
                self.release()
            raise


Lock: Any = _Lock if sys.version_info >= (3, 14) else RLock
