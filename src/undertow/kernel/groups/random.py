"""Random streams for groups: Philox in 32-bit words, and maps with a draw for each element."""

from __future__ import annotations

from ..expr import Expr
from ..ir import Function, Value
from ..lower import Lowering
from ..maps import converted
from ..offsets import at_row
from ..philox import KEY_STEPS, MULTIPLIERS, ROUNDS
from .elements import each, number_of, steps_of


def _product(f: Function, a: Value, b: int) -> tuple[Value, Value]:
    """The higher and the lower word of the product of two words."""
    low, high = a & 0xFFFF, a >> 16
    below, above = b & 0xFFFF, b >> 16
    least, middle = low * below, high * below
    other = low * above + (least >> 16)  # at most (2**16 - 1) * 2**16
    carry = (middle & 0xFFFF) + (other & 0xFFFF)
    upper = high * above + (middle >> 16) + (other >> 16) + (carry >> 16)
    return upper, a * b


def _words(f: Function, low: Value, high: Value, seed: tuple[Value, Value]) -> list[Value]:
    """The four words of a counter's block."""
    words = [low, high, f.const(0, "u32"), f.const(0, "u32")]
    keys = seed
    for number in range(ROUNDS):
        if number:
            keys = keys[0] + KEY_STEPS[0], keys[1] + KEY_STEPS[1]
        left, right = _product(f, words[0], MULTIPLIERS[0]), _product(f, words[2], MULTIPLIERS[1])
        words = [right[0] ^ words[1] ^ keys[0], right[1], left[0] ^ words[3] ^ keys[1], left[1]]
    return words


def _counter(f: Function) -> tuple[Value, Value, tuple[Value, Value]]:
    """Parameters: the first counter's words, and those of the seed, the lower ones first."""
    low, high = f.param("first_low", "u32"), f.param("first_high", "u32")
    return low, high, (f.param("seed_low", "u32"), f.param("seed_high", "u32"))


def _block(
    f: Function, low: Value, high: Value, seed: tuple[Value, Value], number: Value
) -> list[Value]:
    at = low + f.bitcast(number, "u32")
    return _words(f, at, high + f.cast(at < low, "u32"), seed)


def philox_function(name: str, double: bool) -> Function:
    """The blocks of the counters from the first on, one after the other.

    Buffers: out. Parameters: the number of counters, and those of `_counter`.
    """
    f = Function(name, "i32", double)
    out = f.buffer("out", "u32", written=True)
    count = f.param("count")
    low, high, seed = _counter(f)
    with each(f, count) as i:
        for j, word in enumerate(_block(f, low, high, seed, i)):
            f.store(out, i * 4 + j, word)
    return f


def random_map_function(
    name: str, double: bool, expr: Expr, dtype: str, compute: str, numbers: int, rank: int
) -> Function:
    """An expression over (element, draw, numbers …), a thread for the four elements of a counter.

    Buffers: out, row-major, and x. Parameters: the number of counters, that of the elements, those
    of `_counter`, the number below which a word is a draw of 1, the sizes and steps of x, and the
    numbers.
    """
    f = Function(name, "i32", double)
    out, x = f.buffer("out", dtype, written=True), f.buffer("x", dtype)
    count, n = f.param("count"), f.param("n")
    low, high, seed = _counter(f)
    limit = f.param("limit", "u32")
    sizes = [f.param(f"n{d}") for d in range(rank)]
    steps = steps_of(f, "step", rank)
    given = [number_of(f, f"number{i}", compute) for i in range(numbers)]
    with each(f, count) as i:
        for j, word in enumerate(_block(f, low, high, seed, i)):
            at = i * 4 + j
            with f.branch(at < n):
                (place,) = at_row(at, sizes, [steps])
                args = [f.load(x, place), word < limit, *given]
                value = Lowering(f, args, compute).value(expr)
                f.store(out, at, converted(f, value, out.scalar))
    return f
