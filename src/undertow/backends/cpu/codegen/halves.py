"""Numbers of two bytes as LLVM IR: from memory to float, and back, to nearest with ties to even.

Types of memory are LLVM's: `half`, and `i16` for a bfloat16, which LLVM does not know everywhere.
`op` writes an instruction and returns the name of its result; with `lanes`, values are vectors.

Note [halves by integers]
A processor without instructions for it would call a library for each element of type half. Instead
exponents are moved by adding to the bits. A subnormal number has no leading one in its bits; adding
a number whose last bit is worth a half's last one lets the addition find its bits, and round them.
"""

from __future__ import annotations

from collections.abc import Callable

_EXPONENT = 23  # bits to the right of a float's exponent


def widen(op: Callable[[str], str], value: str, memory: str, lanes: int, native: bool) -> str:
    """What was loaded, as a float; `native` if there are instructions for halves."""
    if memory == "half" and native:
        return op(f"fpext {_of('half', lanes)} {value} to {_of('float', lanes)}")
    bits = _Bits(op, lanes)
    if memory == "i16":
        return bits.float(bits.do("shl", bits.word(value), 16))
    short = op(f"bitcast {_of('half', lanes)} {value} to {_of('i16', lanes)}")
    word = bits.word(short)
    moved = bits.do("shl", bits.do("and", word, 0x7FFF), 13)
    exponent = bits.do("and", moved, 0x1F << _EXPONENT)
    normal = bits.do("add", moved, 112 << _EXPONENT)
    special = bits.do("add", moved, 224 << _EXPONENT)  # infinities and NaN
    least = bits.do("add", moved, 113 << _EXPONENT)
    least = bits.add(least, "fsub", 113 << _EXPONENT)
    found = bits.choose("eq", exponent, 0x1F << _EXPONENT, special, normal)
    found = bits.choose("eq", exponent, 0, least, found)
    sign = bits.do("shl", bits.do("and", word, 0x8000), 16)
    return bits.float(bits.do("or", found, sign))


def narrow(op: Callable[[str], str], value: str, memory: str, lanes: int, native: bool) -> str:
    """A float as it is stored; a NaN stays one."""
    single = _of("float", lanes)
    if memory == "half" and native:
        return op(f"fptrunc {single} {value} to {_of('half', lanes)}")
    bits = _Bits(op, lanes)
    word = op(f"bitcast {single} {value} to {_of('i32', lanes)}")
    if memory == "i16":
        odd = bits.do("and", bits.do("lshr", word, 16), 1)
        rounded = bits.do("add", word, bits.do("add", odd, 0x7FFF))
        quiet = bits.do("or", word, 0x400000)
        nan = op(f"fcmp uno {single} {value}, {value}")
        return bits.short(bits.do("lshr", bits.select(nan, quiet, rounded), 16))
    size = bits.do("and", word, 0x7FFFFFFF)
    odd = bits.do("and", bits.do("lshr", size, 13), 1)
    rounded = bits.do("add", bits.do("add", size, (-112 << _EXPONENT) + 0xFFF), odd)
    found = bits.do("lshr", rounded, 13)
    least = bits.do("sub", bits.add(size, "fadd", 126 << _EXPONENT), 126 << _EXPONENT)
    found = bits.choose("ult", size, 113 << _EXPONENT, least, found)
    found = bits.choose("uge", size, 143 << _EXPONENT, bits.do("or", bits.zero, 0x7C00), found)
    found = bits.choose("ugt", size, 255 << _EXPONENT, bits.do("or", bits.zero, 0x7E00), found)
    sign = bits.do("and", bits.do("lshr", word, 16), 0x8000)
    short = bits.short(bits.do("or", found, sign))
    return op(f"bitcast {_of('i16', lanes)} {short} to {_of('half', lanes)}")


class _Bits:
    """Instructions on the bits of floats."""

    def __init__(self, op: Callable[[str], str], lanes: int) -> None:
        self.op, self.lanes = op, lanes
        self.kind = _of("i32", lanes)
        self.zero = "zeroinitializer" if lanes else "0"

    def do(self, name: str, a: str, b: str | int) -> str:
        if isinstance(b, int):
            b = f"splat (i32 {b})" if self.lanes else str(b)
        return self.op(f"{name} {self.kind} {a}, {b}")

    def add(self, a: str, name: str, b: int) -> str:
        """The bits of a sum or difference of floats, of which these are the bits."""
        single = _of("float", self.lanes)
        other = self.float(self.do("or", self.zero, b))
        found = self.op(f"{name} {single} {self.float(a)}, {other}")
        return self.op(f"bitcast {single} {found} to {self.kind}")

    def choose(self, compare: str, a: str, b: int, then: str, otherwise: str) -> str:
        return self.select(self.do(f"icmp {compare}", a, b), then, otherwise)

    def select(self, when: str, then: str, otherwise: str) -> str:
        flag = _of("i1", self.lanes)
        return self.op(f"select {flag} {when}, {self.kind} {then}, {self.kind} {otherwise}")

    def word(self, value: str) -> str:
        return self.op(f"zext {_of('i16', self.lanes)} {value} to {self.kind}")

    def short(self, value: str) -> str:
        return self.op(f"trunc {self.kind} {value} to {_of('i16', self.lanes)}")

    def float(self, value: str) -> str:
        return self.op(f"bitcast {self.kind} {value} to {_of('float', self.lanes)}")


def _of(kind: str, lanes: int) -> str:
    return f"<{lanes} x {kind}>" if lanes else kind
