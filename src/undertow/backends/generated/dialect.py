"""How the text of a kernel is written: C's way, of which dialects change what differs.

The renderer (render.py) walks the loop IR and asks the dialect for every piece of text; it asks
for nothing but what stands here. `Dialect` writes C with OpenCL's names of built-in functions.

Note [exact]
`exact` is put around the result of every floating add, sub, mul, div and fma. A compiler that
reorders or simplifies floating arithmetic must be kept from it there; C compilers need nothing.

Note [types in text]
Values have the scalar types of the loop IR (kernel/ir.py); f16 and bf16 exist in buffers alone,
and a bool is a byte there. A dialect without a type (8 and 16 bits, i64) writes it as another one,
and keeps wrapping around.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from ...kernel.ir import FLOATS, INTEGERS, SIGNED
from ...kernel.ir_text import SYMBOLS as C_SYMBOLS


class Binding(NamedTuple):
    """A buffer that a kernel sees, and the memory types of the operands that look at it."""

    name: str
    dtypes: tuple[str, ...]
    written: bool


class Shared(NamedTuple):
    """Memory of a group: `name[size]` of scalar type `dtype`."""

    name: str
    dtype: str
    size: int


class Table(NamedTuple):
    """Constants that a kernel looks up: `name[len(entries)]` of scalar type `dtype`."""

    name: str
    dtype: str
    entries: tuple[float, ...]


class Dialect:
    """C with the names of OpenCL. See the notes."""

    name = "c"
    precise = True  # whether how the loop being written rounds matters: not in sums of products
    tail = b""  # words that every launch passes behind the kernel's own, see `word`

    TYPES: ClassVar[dict[str, str]] = {
        "bool": "bool",
        "i8": "char",
        "i16": "short",
        "i32": "int",
        "i64": "long",
        "u8": "uchar",
        "u16": "ushort",
        "u32": "uint",
        "u64": "ulong",
        "f32": "float",
        "f64": "double",
    }
    SYMBOLS: ClassVar[dict[str, str]] = C_SYMBOLS
    FUNCTIONS: ClassVar[dict[str, str]] = {
        "sqrt": "sqrt",
        "floor": "floor",
        "ceil": "ceil",
        "trunc": "trunc",
        "rint": "rint",
        "copysign": "copysign",
        "fma": "fma",
        "fused": "fma",
    }
    EXACT = ("add", "sub", "mul", "div", "fma")

    # The whole --------------------------------------------------------------------------------
    def kernel(
        self,
        entry: str,
        bindings: Sequence[Binding],
        words: int,
        shared: Sequence[Shared],
        tables: Sequence[Table],
        group: int,
        body: Sequence[str],
    ) -> str:
        """The text of a module with one kernel; `words` counts the parameters and the tail."""
        given = [f"{'' if b.written else 'const '}__global uchar* {b.name}" for b in bindings]
        given.append(f"const Words_{entry} words")
        lines = [
            "#pragma OPENCL FP_CONTRACT OFF",
            f"typedef struct {{ uint at[{max(words, 1)}]; }} Words_{entry};",
            *map(self.table, tables),
            f"__kernel __attribute__((reqd_work_group_size({group}, 1, 1)))",
            f"void {entry}({', '.join(given)}) {{",
            *[f"  __local {self.TYPES[s.dtype]} {s.name}[{s.size}];" for s in shared],
            *body,
            "}",
        ]
        return "\n".join(lines) + "\n"

    def thread(self) -> str:
        """The number of the thread in its group, an i32."""
        return "(int) get_local_id(0)"

    def group(self) -> str:
        """The number of the group, an i32, over the first two dimensions of the launch."""
        return "(int) (get_group_id(0) + get_group_id(1) * get_num_groups(0))"

    def barrier(self) -> str:
        """A statement: all threads of the group are here, and see what the others have written."""
        return "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"

    # Statements -------------------------------------------------------------------------------
    def let(self, dtype: str, name: str, value: str) -> str:
        """A value that never changes."""
        return f"const {self.TYPES[dtype]} {name} = {value};"

    def var(self, dtype: str, name: str, value: str) -> str:
        """A variable."""
        return f"{self.TYPES[dtype]} {name} = {value};"

    def set(self, dtype: str, name: str, value: str) -> str:
        """A variable, or an element of shared memory, gets another value."""
        return f"{name} = {value};"

    def loop(self, dtype: str, name: str, start: str, extent: str, step: str) -> str:
        """The head of a loop over an integer type, up to the opening brace."""
        kind = self.TYPES[dtype]
        return f"for ({kind} {name} = {start}; {name} < {extent}; {name} += {step}) {{"

    def branch(self, condition: str) -> str:
        """The head of a branch, up to the opening brace."""
        return f"if ({condition}) {{"

    # Memory -----------------------------------------------------------------------------------
    def param(self, dtype: str, word: int) -> str:
        """The parameter that begins at a word."""
        low = self.word(word)
        if dtype in ("i64", "u64", "f64"):
            wide = f"((ulong) {low} | (ulong) {self.word(word + 1)} << 32)"
            return wide if dtype == "u64" else self.bitcast("u64", dtype, wide)
        return low if dtype == "u32" else self.bitcast("u32", dtype, low)

    def word(self, number: int) -> str:
        """A word of the parameters, a u32."""
        return f"words.at[{number}]"

    def load(self, binding: Binding, dtype: str, index: str) -> str:
        """The element of a buffer, which holds `dtype`, at an index (i32) counted in elements."""
        at = f"{self.pointer(binding, dtype)}[{index}]"
        if dtype == "bool":
            return f"({at} != 0)"
        if dtype == "f16":
            return f"vload_half({index}, {self.pointer(binding, 'f16')})"
        return f"as_float((uint) {at} << 16)" if dtype == "bf16" else at

    def store(self, binding: Binding, dtype: str, index: str, value: str) -> str:
        """A statement that writes an element; the value is of the scalar type."""
        at = f"{self.pointer(binding, dtype)}[{index}]"
        if dtype == "bool":
            return f"{at} = {value} ? 1 : 0;"
        if dtype == "f16":
            return f"vstore_half_rte({value}, {index}, {self.pointer(binding, 'f16')});"
        if dtype == "bf16":  # to the nearest, ties to even; NaN stays one
            bits = f"as_uint({value})"
            near = f"(({bits} + 0x7FFFu + (({bits} >> 16) & 1u)) >> 16)"
            return f"{at} = (ushort) (isnan({value}) ? 0x7FC0u : {near});"
        return f"{at} = {value};"

    def pointer(self, binding: Binding, dtype: str) -> str:
        """A buffer as one of elements of a memory type."""
        kind = {"bool": "uchar", "f16": "half", "bf16": "ushort"}.get(dtype) or self.TYPES[dtype]
        return f"(({'' if binding.written else 'const '}__global {kind}*) {binding.name})"

    # Values -----------------------------------------------------------------------------------
    def constant(self, number: float, dtype: str) -> str:
        """A number as a value of a type."""
        if dtype == "bool":
            return "true" if number else "false"
        if dtype == "i32" and number > -(1 << 31):
            return str(int(number)) if number >= 0 else f"({int(number)})"
        if dtype in INTEGERS:
            return f"(({self.TYPES[dtype]}) {_digits(int(number), dtype)})"
        return self.infinite(number, dtype) if not math.isfinite(number) else _real(number, dtype)

    def infinite(self, number: float, dtype: str) -> str:
        """Infinity, its negative, or NaN."""
        if number != number:
            return "NAN" if dtype == "f32" else "((double) NAN)"
        text = "INFINITY" if dtype == "f32" else "((double) INFINITY)"
        return text if number > 0 else f"(-{text})"

    def exact(self, text: str, dtype: str) -> str:
        """See Note [exact]."""
        return text

    def select(self, dtype: str, condition: str, yes: str, no: str) -> str:
        """One of two values."""
        return f"({condition} ? {yes} : {no})"

    def cast(self, source: str, target: str, text: str) -> str:
        """A value in another type, integers wrapped around and floats truncated."""
        if target == "bool":
            return f"({text} != 0)"
        return f"(({self.TYPES[target]}) {text})"

    def bitcast(self, source: str, target: str, text: str) -> str:
        """The same bits in another type of the same width."""
        return f"as_{self.TYPES[target]}({text})"

    def table(self, table: Table) -> str:
        """A statement before the kernel: a table that it looks up."""
        entries = ", ".join(self.constant(entry, table.dtype) for entry in table.entries)
        kind = self.TYPES[table.dtype]
        return f"__constant {kind} {table.name}[{len(table.entries)}] = {{{entries}}};"

    def lookup(self, table: Table, index: str) -> str:
        """An entry of a table; the index is an i32."""
        return f"{table.name}[{index}]"

    def operation(self, op: str, dtype: str, args: Sequence[str]) -> str:
        """An operation of kernel/ir's list OPERATIONS on values of one type, but for `any`."""
        if op == "not":
            return f"(!{args[0]})" if dtype == "bool" else self._narrow(dtype, f"(~{args[0]})")
        if op == "neg":
            return self._narrow(dtype, f"(-{args[0]})")
        if op == "abs":
            if dtype in FLOATS:
                return f"fabs({args[0]})"
            return self._narrow(dtype, f"({args[0]} < 0 ? -{args[0]} : {args[0]})")
        if op in ("maximum", "minimum"):
            better = f"{args[0]} {'>' if op == 'maximum' else '<'} {args[1]}"
            if dtype in FLOATS:  # NaN wins, and +0 counts as larger than -0
                near = "fmax" if op == "maximum" else "fmin"
                nan = f"({args[0]} + {args[1]})"
                equal = f"{args[0]} == {args[1]}"
                sign = f"signbit({args[0]}) == {'0' if op == 'maximum' else '1'}"
                zero = f"({sign} ? {args[0]} : {args[1]})"
                best = f"({equal} ? {zero} : {near}({args[0]}, {args[1]}))"
                return f"(isnan({args[0]}) || isnan({args[1]}) ? {nan} : {best})"
            return f"({better} ? {args[0]} : {args[1]})"
        if op == "scale":  # OpenCL's ldexp is correctly rounded
            return f"ldexp({args[0]}, (int) {args[1]})"
        if op in self.FUNCTIONS:
            text = f"{self.FUNCTIONS[op]}({', '.join(args)})"
        else:
            text = f"({args[0]} {self.SYMBOLS[op]} {args[1]})"
        if op in self.EXACT and dtype in FLOATS:
            return self.exact(text, dtype)
        if op in ("lt", "le", "gt", "ge", "eq", "ne"):
            return text
        return self._narrow(dtype, text)

    def _narrow(self, dtype: str, text: str) -> str:
        """C computes in int what is narrower: back to the type, which wraps around."""
        narrow = ("i8", "i16", "u8", "u16")
        return f"(({self.TYPES[dtype]}) {text})" if dtype in narrow else text


def _digits(number: int, dtype: str) -> str:
    if dtype in SIGNED:
        if number == -(1 << 63):
            return "(-9223372036854775807L - 1)"
        return f"{number}L" if dtype == "i64" else f"({number})"
    return f"{number}{'UL' if dtype == 'u64' else 'u'}"


def _real(number: float, dtype: str) -> str:
    if dtype == "f64":
        return f"({number!r})"
    try:
        number = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return "INFINITY" if number > 0 else "(-INFINITY)"
    return f"({number!r}f)" if number else ("(-0.0f)" if math.copysign(1, number) < 0 else "0.0f")
