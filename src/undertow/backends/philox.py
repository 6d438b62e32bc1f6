"""Philox 4x32-10 (Salmon et al., 2011): random words as a pure function of seed and position.

The stream of a seed is the concatenation of the blocks of four 32-bit words that the counters
0, 1, 2, … give, so any stretch of it can be computed anywhere, in any order, on any device.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_MULTIPLIERS = np.array([[0xD2511F53], [0xCD9E8D57]], np.uint64)
_KEY_STEPS = np.array([[0x9E3779B9], [0xBB67AE85]], np.uint64)
_ROUNDS = np.arange(10, dtype=np.uint64).reshape(10, 1, 1)
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
_CHUNK = 1 << 13  # counters at a time: the working set stays in the cache


def philox_words(seed: int, offset: int, count: int) -> Any:
    """Words `offset` to `offset + count` of the stream of `seed`, as a uint32 array."""
    first, last = offset // 4, (offset + count + 3) // 4
    out = np.empty((last - first, 4), np.uint32)
    for start in range(first, last, _CHUNK):
        stop = min(start + _CHUNK, last)
        counter = np.zeros((4, stop - start), np.uint64)
        counter[0] = np.arange(start, stop, dtype=np.uint64)
        np.right_shift(counter[0], _SHIFT, counter[1])
        counter[0] &= _LOW
        out[start - first : stop - first] = philox_blocks(counter, seed).T
    skip = offset - 4 * first
    return out.reshape(-1)[skip : skip + count]


def philox_blocks(counter: Any, seed: int) -> Any:
    """The blocks of counters: four rows of words, held in uint64, in and out."""
    keys = np.array([[seed & 0xFFFFFFFF], [(seed >> 32) & 0xFFFFFFFF]], np.uint64)
    keys = (keys + _ROUNDS * _KEY_STEPS) & _LOW
    even, odd = counter[0::2].copy(), counter[1::2].copy()  # words 0, 2 and words 1, 3
    high = np.empty_like(even)
    crossed = high[::-1]
    for key in keys:
        # Each even word is multiplied; its product's words cross over to the other pair.
        np.multiply(even, _MULTIPLIERS, even)
        np.right_shift(even, _SHIFT, high)
        np.bitwise_and(even, _LOW, even)
        np.bitwise_xor(odd, key, odd)
        np.bitwise_xor(odd, crossed, odd)
        even, odd = odd, even[::-1]
    out = np.empty_like(counter)
    out[0::2], out[1::2] = even, odd
    return out
