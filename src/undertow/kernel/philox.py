"""The form philox: the words of the Philox 4x32-10 stream, a vector of counters at a time."""

from __future__ import annotations

from .ir import Function, Value

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
WORD = 0xFFFFFFFF
BLOCK = 4096  # counters; four words each


def round_keys(f: Function, low: Value, high: Value) -> list[list[Value]]:
    """The keys of all rounds, from the two words of the seed, which are i64."""
    keys = [f.cast(word, "u64") for word in (low, high)]
    return [
        [(key + step * i) & WORD for key, step in zip(keys, KEY_STEPS, strict=True)]
        for i in range(ROUNDS)
    ]


def block_words(f: Function, counter: Value, keys: list[list[Value]]) -> list[Value]:
    """The four words of a counter's block, held in u64 as their products are; both are u64."""
    words = [counter & WORD, counter >> 32, f.const(0, "u64"), f.const(0, "u64")]
    for first, second in keys:
        # Each even word is multiplied; its product's words cross over to the other pair.
        left, right = words[0] * MULTIPLIERS[0], words[2] * MULTIPLIERS[1]
        words = [
            (right >> 32) ^ words[1] ^ first,
            right & WORD,
            (left >> 32) ^ words[3] ^ second,
            left & WORD,
        ]
    return words


def philox_function(name: str) -> Function:
    """The blocks of the counters from `first` on, one after the other.

    The words are stored in pairs. Buffers: out. Parameters: the number of counters, the first of
    them, and the two words of the seed, the lower one first.
    """
    f = Function(name)
    out = f.buffer("out", "u64", written=True)
    number, first = f.param("number"), f.param("first")
    keys = round_keys(f, f.param("low"), f.param("high"))
    with f.parallel((number + (BLOCK - 1)) // BLOCK) as block:
        start = block * BLOCK
        with f.vector(f.call("minimum", number - start, BLOCK)) as i:
            place = start + i
            words = block_words(f, f.cast(first + place, "u64"), keys)
            for j in (0, 1):  # on a little-endian machine
                f.store(out, place * 2 + j, words[2 * j] | (words[2 * j + 1] << 32))
    return f
