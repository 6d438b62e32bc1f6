"""WGSL, the text of WebGPU's kernels, as a dialect of generated text.

Note [fast math]
WGSL's compilers may take floating arithmetic for that of real numbers: they fold (x + c) - c to x,
and know no NaN. So every result of an add, sub, mul, div and fma passes through
`exact`, which ORs its bits with a zero that comes with the parameters; comparisons look for NaN in
the bits; infinity and NaN are parameters, too, since constant expressions must not have them.

Note [words of buffers]
Buffers are arrays of u32. Bytes and halves lie several in a word, and a store to one of them
changes its part of the word atomically, so that threads need not care who owns the rest. Nothing
else is atomic, and which thread comes first never shows.

Note [wide and narrow integers]
Integers narrower than 32 bits are computed in 32 and wrapped around; those of 64 are two words.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from typing import ClassVar

from ...kernel.ir import COMPARISONS, INTEGERS, SIGNED, WIDTH
from ..generated.dialect import Binding, Dialect, Shared, Table
from .wgsl_functions import functions

_WIDE = ("i64", "u64")
_LITERAL = re.compile(r"\(?-?[0-9.e+-]+f\)?")
_ZERO = re.compile(r"0\.0f|neg_\(0\.0f\)")
_TAIL = ("ZERO", "INFINITY", "NOT_A_NUMBER")
_NARROW = {"bool": 8, "i8": 8, "u8": 8, "i16": 16, "u16": 16, "f16": 16, "bf16": 16}


class Wgsl(Dialect):
    """See the notes."""

    name = "wgsl"
    tail = struct.pack("<3I", 0, 0x7F800000, 0x7FC00000)

    TYPES: ClassVar[dict[str, str]] = {
        "bool": "bool",
        **dict.fromkeys(("i8", "i16", "i32"), "i32"),
        **dict.fromkeys(("u8", "u16", "u32"), "u32"),
        **dict.fromkeys(_WIDE, "vec2<u32>"),
        "f32": "f32",
    }

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
        words = max(words, len(_TAIL))
        lines = [f"struct Words {{ at: array<vec4<u32>, {-(-words // 4)}> }};"]
        for i, b in enumerate(bindings):
            access = "read_write" if b.written else "read"
            element = "atomic<u32>" if _atomic(b) else "u32"
            lines.append(
                f"@group(0) @binding({i}) var<storage, {access}> {b.name}: array<{element}>;"
            )
        lines.append(f"@group(0) @binding({len(bindings)}) var<uniform> words: Words;")
        lines += [
            f"var<workgroup> {s.name}: array<{self.TYPES[s.dtype]}, {s.size}>;" for s in shared
        ]
        text = "\n".join(body)
        access_lines = [line for b in bindings for line in _accesses(b, text)]
        main = [
            f"@compute @workgroup_size({group})",
            f"fn {entry}(",
            "  @builtin(local_invocation_id) local: vec3<u32>,",
            "  @builtin(workgroup_id) place: vec3<u32>,",
            "  @builtin(num_workgroups) places: vec3<u32>,",
            ") {",
            text,
            "}",
        ]
        rest = "\n".join([*access_lines, *main])
        text = "\n".join([*lines, functions(rest), rest]) + "\n"
        for i, name in enumerate(_TAIL):
            text = re.sub(rf"\b{name}\b", self.word(words - len(_TAIL) + i), text)
        return text

    def thread(self) -> str:
        return "i32(local.x)"

    def group(self) -> str:
        return "i32(place.x + place.y * places.x)"

    def barrier(self) -> str:
        return "storageBarrier(); workgroupBarrier();"

    # Statements -------------------------------------------------------------------------------
    def let(self, dtype: str, name: str, value: str) -> str:
        return f"let {name}: {self.TYPES[dtype]} = {value};"

    def var(self, dtype: str, name: str, value: str) -> str:
        return f"var {name}: {self.TYPES[dtype]} = {value};"

    def loop(self, dtype: str, name: str, start: str, extent: str, step: str) -> str:
        more = self.operation("lt", dtype, (name, extent))
        following = self.operation("add", dtype, (name, step))
        return f"for ({self.var(dtype, name, start)} {more}; {name} = {following}) {{"

    # Memory -----------------------------------------------------------------------------------
    def param(self, dtype: str, word: int) -> str:
        if dtype in _WIDE:
            return f"vec2<u32>({self.word(word)}, {self.word(word + 1)})"
        return self.word(word) if dtype == "u32" else self.bitcast("u32", dtype, self.word(word))

    def word(self, number: int) -> str:
        return f"words.at[{number // 4}].{'xyzw'[number % 4]}"

    def load(self, binding: Binding, dtype: str, index: str) -> str:
        if dtype in _NARROW or dtype in _WIDE:
            return f"load_{dtype}_{binding.name}({index})"
        word = f"{binding.name}[{index}]"
        if _atomic(binding):
            word = f"atomicLoad(&{word})"
        return word if dtype == "u32" else f"bitcast<{self.TYPES[dtype]}>({word})"

    def store(self, binding: Binding, dtype: str, index: str, value: str) -> str:
        if dtype in _NARROW or dtype in _WIDE:
            return f"store_{dtype}_{binding.name}({index}, {value});"
        word = f"{binding.name}[{index}]"
        bits = value if dtype == "u32" else f"bitcast<u32>({value})"
        return f"atomicStore(&{word}, {bits});" if _atomic(binding) else f"{word} = {bits};"

    # Values -----------------------------------------------------------------------------------
    def constant(self, number: float, dtype: str) -> str:
        if dtype == "bool":
            return "true" if number else "false"
        if dtype in _WIDE:
            return f"vec2<u32>({int(number) & 0xFFFFFFFF}u, {int(number) >> 32 & 0xFFFFFFFF}u)"
        if dtype in INTEGERS:
            if dtype in SIGNED:
                digits = "-2147483647 - 1" if number == -(1 << 31) else f"{int(number)}"
                return f"({digits})" if number < 0 else digits
            return f"{int(number)}u"
        return _real(number)

    def infinite(self, number: float, dtype: str) -> str:
        if number != number:
            return "bitcast<f32>(NOT_A_NUMBER)"
        return f"bitcast<f32>(INFINITY{'' if number > 0 else ' | 0x80000000u'})"

    def exact(self, text: str, dtype: str) -> str:
        if not self.precise:
            return text
        return f"exact{text}" if text[0] == "(" else f"exact({text})"

    def select(self, dtype: str, condition: str, yes: str, no: str) -> str:
        return f"select({no}, {yes}, {condition})"

    def lookup(self, table: Table, index: str) -> str:
        # Not an array: one that is indexed at run time would be memory of each thread.
        *others, last = [self.constant(entry, table.dtype) for entry in table.entries]
        found = last
        for i, entry in reversed(list(enumerate(others))):
            found = self.select(table.dtype, f"{index} == {i}", entry, found)
        return found

    def cast(self, source: str, target: str, text: str) -> str:
        if source == target:
            return text
        if target == "bool":
            return self._truth(source, text)
        if source == "bool":
            one, zero = self.constant(1, target), self.constant(0, target)
            return f"select({zero}, {one}, {text})"
        if target == "f32":
            if source in ("i8", "i16", "u8", "u16"):  # exact however it is rounded
                return f"f32({text})"
            return f"{source}_to_f32({text})"
        if source == "f32":
            if target == "i32":
                return f"i32_of({text})"
            found = f"i64_of({text})"
            return found if target in _WIDE else self._low(target, f"{found}.x")
        if target in _WIDE:
            if source in _WIDE:
                return text
            return f"wide({text})" if source in SIGNED else f"vec2<u32>({text}, 0u)"
        if source in _WIDE:
            return self._low(target, f"({text}).x")
        kind = self.TYPES[target]
        return self._wrapped(target, text if self.TYPES[source] == kind else f"{kind}({text})")

    def _truth(self, source: str, text: str) -> str:
        if source == "f32":
            return f"((bitcast<u32>({text}) & 0x7fffffffu) != 0u)"
        return f"any({text} != vec2<u32>(0u, 0u))" if source in _WIDE else f"({text} != 0)"

    def _low(self, target: str, word: str) -> str:
        """A word, a u32, as a value of an integer type."""
        return self._wrapped(target, word if target[0] == "u" else f"bitcast<i32>({word})")

    def _wrapped(self, dtype: str, text: str) -> str:
        """A value of 32 bits wrapped around to a narrower type."""
        if WIDTH[dtype] == 4:
            return text
        return f"extractBits({text}, 0u, {WIDTH[dtype] * 8}u)"

    def bitcast(self, source: str, target: str, text: str) -> str:
        if target == "bool":
            return f"({text} != 0u)"
        if WIDTH[target] != 4:  # integers alone
            return self.cast(source, target, text)
        return f"bitcast<{self.TYPES[target]}>({text})"

    def operation(self, op: str, dtype: str, args: Sequence[str]) -> str:
        if dtype == "f32":
            return self._float(op, args)
        if dtype == "bool":
            return self._bool(op, args)
        if dtype in _WIDE:
            return self._wide(op, dtype, args)
        return self._integer(op, dtype, args)

    def _float(self, op: str, args: Sequence[str]) -> str:
        given = ", ".join(args)
        if op in COMPARISONS:
            test = f"{args[0]} {self.SYMBOLS[op]} {args[1]}"
            loose = [a for a in args if not _LITERAL.fullmatch(a)]
            if not loose:
                return f"({test})"
            numbers = f"ordered({', '.join(loose)})" if len(loose) > 1 else f"!is_nan({loose[0]})"
            return f"({test} || !{numbers})" if op == "ne" else f"({test} && {numbers})"
        if op in ("add", "sub", "mul", "div"):
            # x - x, x / x, and what has a zero would be folded before it is a result.
            a, b = (f"exact({t})" if _ZERO.fullmatch(t) else t for t in args)
            b = f"exact({b})" if a == b and op in ("sub", "div") else b
            return self.exact(f"({a} {self.SYMBOLS[op]} {b})", "f32")
        if op == "fma":
            return self.exact(f"fma({given})", "f32")
        names = {
            "maximum": "fmax_",
            "minimum": "fmin_",
            "neg": "neg_",
            "abs": "abs_",
            "copysign": "copysign_",
            "rint": "round",
        }
        return f"{names.get(op, op)}({given})"

    def _bool(self, op: str, args: Sequence[str]) -> str:
        if op == "not":
            return f"(!{args[0]})"
        a, b = args
        formulas = {
            "and": f"({a} && {b})",
            "or": f"({a} || {b})",
            "xor": f"({a} != {b})",
            "ne": f"({a} != {b})",
            "eq": f"({a} == {b})",
            "lt": f"(!{a} && {b})",
            "gt": f"({a} && !{b})",
            "le": f"(!{a} || {b})",
            "ge": f"({a} || !{b})",
        }
        return formulas[op]

    def _wide(self, op: str, dtype: str, args: Sequence[str]) -> str:
        sign = "" if dtype == "i64" else "u"
        a, b = (*args, "")[:2]
        if op in ("and", "or", "xor"):
            return f"({a} {self.SYMBOLS[op]} {b})"
        if op == "not":
            return f"(~{a})"
        if op in ("maximum", "minimum"):
            first, second = (a, b) if op == "maximum" else (b, a)
            return f"select({first}, {second}, {sign}lt64({a}, {b}))"
        if op in COMPARISONS:
            if op in ("eq", "ne"):
                return f"{'!' if op == 'ne' else ''}eq64({a}, {b})"
            given = (a, b) if op in ("lt", "ge") else (b, a)
            return f"{'!' if op in ('le', 'ge') else ''}{sign}lt64({', '.join(given)})"
        signless = ("add", "sub", "mul", "neg", "abs", "shl")
        return f"{'' if op in signless else sign}{op}64({', '.join(args)})"

    def _integer(self, op: str, dtype: str, args: Sequence[str]) -> str:
        sign = "" if dtype in SIGNED else "u"
        a, b = (*args, "")[:2]
        if op in COMPARISONS:
            return f"({a} {self.SYMBOLS[op]} {b})"
        if op in ("maximum", "minimum"):
            return f"{op[:3]}({a}, {b})"
        if op in ("and", "or", "xor"):
            return f"({a} {self.SYMBOLS[op]} {b})"
        if op == "shr":
            return f"{sign}shr32({a}, u32({b}))"
        if op == "shl":
            kind = self.TYPES[dtype]
            return self._wrapped(dtype, f"{kind}(shl32(u32({a}), u32({b})))")
        texts = {"neg": f"(-{a})", "not": f"(~{a})", "abs": f"abs({a})"}
        return self._wrapped(dtype, texts.get(op) or f"({a} {self.SYMBOLS[op]} {b})")


def _atomic(binding: Binding) -> bool:
    """See Note [words of buffers]."""
    return binding.written and any(dtype in _NARROW for dtype in binding.dtypes)


def _accesses(binding: Binding, text: str) -> list[str]:
    """The functions that load and store elements of a buffer which are no words, if called."""
    name = binding.name
    word = "atomicLoad(&{0}[{1}])" if _atomic(binding) else "{0}[{1}]"
    lines = []
    for dtype in dict.fromkeys(binding.dtypes):
        kind = Wgsl.TYPES.get(dtype, "f32")
        load, store = f"load_{dtype}_{name}(", f"store_{dtype}_{name}("
        if dtype in _WIDE:
            halves = word.format(name, "2 * i"), word.format(name, "2 * i + 1")
            if load in text:
                lines.append(
                    f"fn {load}i: i32) -> {kind} {{ return vec2<u32>({', '.join(halves)}); }}"
                )
            if store in text:
                write = "atomicStore(&{}[{}], {});" if _atomic(binding) else "{}[{}] = {};"
                both = write.format(name, "2 * i", "v.x"), write.format(name, "2 * i + 1", "v.y")
                lines.append(f"fn {store}i: i32, v: {kind}) {{ {' '.join(both)} }}")
        elif dtype in _NARROW:
            bits = _NARROW[dtype]
            per = 32 // bits
            index, shift = f"i >> {per.bit_length() - 1}u", f"(u32(i) & {per - 1}u) * {bits}u"
            if load in text:
                found = word.format(name, index)
                if kind == "i32":  # whose extractBits keeps the sign
                    found = f"bitcast<i32>({found})"
                part = f"extractBits({found}, {shift}, {bits}u)"
                lines.append(f"fn {load}i: i32) -> {kind} {{ return {_widened(dtype, part)}; }}")
            if store in text:
                lines.append(
                    f"fn {store}i: i32, v: {kind}) {{\n"
                    f"  let shift = {shift};\n"
                    f"  let part = {_narrowed(dtype)} << shift;\n"
                    f"  let changed = atomicLoad(&{name}[{index}]) ^ part;\n"
                    f"  atomicXor(&{name}[{index}], changed & ({(1 << bits) - 1}u << shift));\n}}"
                )
    return lines


def _widened(dtype: str, part: str) -> str:
    if dtype == "bool":
        return f"{part} != 0u"
    return f"from_{dtype}({part})" if dtype in ("f16", "bf16") else part


def _narrowed(dtype: str) -> str:
    if dtype == "bool":
        return "select(0u, 1u, v)"
    if dtype in ("f16", "bf16"):
        return f"to_{dtype}(v)"
    return f"({'u32(v)' if dtype[0] == 'i' else 'v'} & {(1 << _NARROW[dtype]) - 1}u)"


def _real(number: float) -> str:
    if not math.isfinite(number):
        return Wgsl().infinite(number, "f32")
    try:
        number = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return Wgsl().infinite(number, "f32")
    if not number and math.copysign(1, number) < 0:
        return "neg_(0.0f)"
    return f"({number!r}f)" if number < 0 else f"{number!r}f"
