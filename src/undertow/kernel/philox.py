"""The form philox: the words of the Philox 4x32-10 stream, a vector of counters at a time."""

from __future__ import annotations

from .ir import Function, Value

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
BLOCK = 4096  # counters; four words each


def philox_function(name: str) -> Function:
    """The blocks of the counters from `first` on, one after the other.

    Buffers: out. Parameters: the number of counters, the first of them, and the two words of the
    seed, the lower one first.
    """
    f = Function(name)
    out = f.buffer("out", "u32", written=True)
    number, first = f.param("number"), f.param("first")
    keys = [f.cast(f.param(n), "u32") for n in ("low", "high")]
    with f.parallel((number + (BLOCK - 1)) // BLOCK) as block:
        start = block * BLOCK
        with f.vector(f.call("minimum", number - start, BLOCK)) as i:
            place = start + i
            counter = f.cast(first + place, "u64")
            words = [_low(f, counter), _high(f, counter)]
            words += [f.const(0, "u32")] * 2
            for turn in range(ROUNDS):
                words = _round(f, words, keys, turn)
            for j, word in enumerate(words):
                f.store(out, place * 4 + j, word)
    return f


def _round(f: Function, words: list[Value], keys: list[Value], turn: int) -> list[Value]:
    """Each even word is multiplied; its product's words cross over to the other pair."""
    products = [
        f.cast(word, "u64") * multiplier
        for word, multiplier in zip((words[0], words[2]), MULTIPLIERS, strict=True)
    ]
    crossed = []
    for product, odd, key, step in zip(
        reversed(products), (words[1], words[3]), keys, KEY_STEPS, strict=True
    ):
        turned = key + (step * turn & 0xFFFFFFFF)
        crossed += [_high(f, product) ^ odd ^ turned, _low(f, product)]
    return crossed


def _low(f: Function, x: Value) -> Value:
    return f.cast(x, "u32")


def _high(f: Function, x: Value) -> Value:
    return f.cast(x >> 32, "u32")
