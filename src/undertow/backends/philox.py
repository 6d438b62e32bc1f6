"""Philox 4x32-10 (Salmon et al., 2011): random words as a pure function of seed and position.

The stream of a seed is the concatenation of the blocks of four 32-bit words that the counters
0, 1, 2, … give, so any stretch of it can be computed anywhere, in any order, on any device.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_MASK = 0xFFFFFFFF
_LOW = np.uint64(_MASK)
_SHIFT = np.uint64(32)
_CHUNK = 1 << 13  # counters at a time: the working set stays in the cache


def philox_words(seed: int, offset: int, count: int) -> Any:
    """Words `offset` to `offset + count` of the stream of `seed`, as a uint32 array."""
    first, last = offset // 4, (offset + count + 3) // 4
    out = np.empty((last - first, 4), np.uint32)
    for start in range(first, last, _CHUNK):
        stop = min(start + _CHUNK, last)
        counter = np.arange(start, stop, dtype=np.uint64)
        zero = np.zeros_like(counter)
        words = philox_blocks((counter & _LOW, counter >> _SHIFT, zero, zero.copy()), seed)
        block = out[start - first : stop - first]
        for i, word in enumerate(words):
            block[:, i] = word
    skip = offset - 4 * first
    return out.reshape(-1)[skip : skip + count]


def philox_blocks(counters: tuple[Any, Any, Any, Any], seed: int) -> tuple[Any, Any, Any, Any]:
    """Ten rounds on counters of four words each, held in uint64 arrays, which are overwritten."""
    c0, c1, c2, c3 = counters
    high0, high1 = np.empty_like(c0), np.empty_like(c0)
    key0, key1 = seed & _MASK, (seed >> 32) & _MASK
    for _ in range(10):
        np.multiply(c0, _MULTIPLIERS[0], c0)  # the product's words: the high one crosses over,
        np.multiply(c2, _MULTIPLIERS[1], c2)  # the low one takes the place of c3 or c1
        np.right_shift(c0, _SHIFT, high0)
        np.right_shift(c2, _SHIFT, high1)
        np.bitwise_and(c0, _LOW, c0)
        np.bitwise_and(c2, _LOW, c2)
        np.bitwise_xor(high1, c1, high1)
        np.bitwise_xor(high0, c3, high0)
        np.bitwise_xor(high1, np.uint64(key0), high1)
        np.bitwise_xor(high0, np.uint64(key1), high0)
        c0, c1, c2, c3, high0, high1 = high1, c2, high0, c0, c1, c3
        key0, key1 = (key0 + _KEY_STEPS[0]) & _MASK, (key1 + _KEY_STEPS[1]) & _MASK
    return c0, c1, c2, c3
