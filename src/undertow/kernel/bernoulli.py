"""The form `random_map`: a scalar expression of an element and of a Bernoulli draw made for it.

Note [draws]
A counter of the stream gives the words of four elements, so first the counters of a chunk run in
lanes, and their draws are packed as the bytes of one word each; read as bytes, they stand in the
order of the elements, and the expression is computed in lanes of those.
"""

from __future__ import annotations

from .expr import Expr
from .ir import Function
from .lower import Lowering
from .maps import converted
from .philox import block_words, round_keys

BLOCK = 16384  # elements
CHUNK = 1024  # elements that are drawn at once


def bernoulli_map_function(
    name: str, expr: Expr, dtype: str, compute: str, numbers: int
) -> Function:
    """The kernel of an expression over (element, draw, numbers …).

    Buffers: out and x, both of `dtype`, and twice the memory of CHUNK bytes for each thread.
    Parameters: the number of elements, the counter of the first four, the two words of the seed,
    the number below which a word is a draw of 1, and the numbers.
    """
    f = Function(name)
    out, x = f.buffer("out", dtype, written=True), f.buffer("x", dtype)
    packed, draws = f.buffer("packed", "u32", written=True), f.buffer("draws", "bool")
    n, first = f.param("n"), f.param("first")
    keys = round_keys(f, f.param("low"), f.param("high"))
    limit = f.cast(f.param("limit"), "u64")
    given = [f.cast(f.param(f"number{i}", "f64"), compute) for i in range(numbers)]
    with f.parallel((n + (BLOCK - 1)) // BLOCK) as block:
        begin = block * BLOCK
        size = f.call("minimum", n - begin, BLOCK)
        own = f.thread()
        with f.loop((size + (CHUNK - 1)) // CHUNK) as chunk:
            start = begin + chunk * CHUNK
            count = f.call("minimum", n - start, CHUNK)
            with f.vector((count + 3) // 4) as j:
                words = block_words(f, f.cast(first + start // 4 + j, "u64"), keys)
                bytes_ = f.const(0, "u32")
                for i, word in enumerate(words):  # on a little-endian machine
                    one = f.select(word < limit, f.const(1 << 8 * i, "u32"), f.const(0, "u32"))
                    bytes_ = one if i == 0 else bytes_ | one
                f.store(packed, own * (CHUNK // 4) + j, bytes_)
            with f.vector(count) as i:
                element, draw = f.load(x, start + i), f.load(draws, own * CHUNK + i)
                value = Lowering(f, [element, draw, *given], compute).value(expr)
                f.store(out, start + i, converted(f, value, out.scalar))
    return f
