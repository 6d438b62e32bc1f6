"""Philox 4x32-10 (Salmon et al., 2011): random words as a pure function of seed and position.

The stream of a seed is the concatenation of the blocks of four 32-bit words that the counters
0, 1, 2, … give, so any stretch of it can be computed anywhere, in any order, on any device.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
_CHUNK = 1 << 14  # counters at a time: the working set stays in the cache


def philox_words(seed: int, offset: int, count: int) -> Any:
    """Words `offset` to `offset + count` of the stream of `seed`, as a uint32 array."""
    first, last = offset // 4, (offset + count + 3) // 4
    out = np.empty((last - first, 4), np.uint32)
    for start in range(first, last, _CHUNK):
        stop = min(start + _CHUNK, last)
        out[start - first : stop - first] = _blocks(seed, start, stop)
    skip = offset - 4 * first
    return out.reshape(-1)[skip : skip + count]


def _blocks(seed: int, start: int, stop: int) -> Any:
    """One block of four words for each counter from `start` to `stop`."""
    counter = np.arange(start, stop, dtype=np.uint64)
    c0, c1 = counter & _LOW, counter >> _SHIFT
    c2 = c3 = np.zeros_like(counter)
    key0, key1 = seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF
    for _ in range(10):
        product0, product1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0 = (product1 >> _SHIFT) ^ c1 ^ np.uint64(key0)
        c2 = (product0 >> _SHIFT) ^ c3 ^ np.uint64(key1)
        c1, c3 = product1 & _LOW, product0 & _LOW
        key0, key1 = (key0 + _KEY_STEPS[0]) & 0xFFFFFFFF, (key1 + _KEY_STEPS[1]) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=1)
