"""Keep freed memory for the next tensor instead of giving it back to the system at once.

A training step frees large arrays and asks for the same sizes again. With glibc's defaults the
pages go back to the kernel in between, and fetching them again, a page fault every 4 kB, can cost
more than the computation. So up to `KEEP` bytes at the top of the heap stay with the process.
`UNDERTOW_KEEP_MEMORY=0` leaves the allocator alone; so does anything that is not glibc.
"""

from __future__ import annotations

import os
import sys

KEEP = 512 << 20
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # glibc's <malloc.h>


def keep_memory() -> bool:
    """Tell glibc to keep freed memory; whether it was told."""
    if not sys.platform.startswith("linux") or os.environ.get("UNDERTOW_KEEP_MEMORY") == "0":
        return False
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    # Above the mmap threshold an array has a mapping of its own, given back when it is freed.
    told = [mallopt(option, KEEP) for option in (_MMAP_THRESHOLD, _TRIM_THRESHOLD)]
    return all(told)
