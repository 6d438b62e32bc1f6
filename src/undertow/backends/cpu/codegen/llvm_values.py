"""LLVM IR text, value by value: registers, constants, arithmetic on scalars and on lanes."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from ....kernel.ir import COMPARISONS, FLOATS, INTEGERS, SIGNED, WIDTH, Function, IRError, Value


class Machine(NamedTuple):
    """What the generated code may use."""

    vector: int  # bytes
    fma: bool  # fused multiply-add
    half: bool  # conversions of float16
    scales: bool = False  # products with powers of two, of vectors of 64 bytes


TYPES = {"bool": "i1", "f32": "float", "f64": "double", **{t: f"i{t[1:]}" for t in INTEGERS}}
IN_MEMORY = {**TYPES, "bool": "i8", "f16": "half", "bf16": "i16"}
_FLOAT_OPS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INTEGER_OPS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "shl": "shl",
}
_INTRINSICS = {
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "rint": "rint",
    "maximum": "maximum",
    "minimum": "minimum",
    "copysign": "copysign",
    "abs": "fabs",
    "fma": "fma",
}
# Added to a small number, they leave its nearest whole number in the low bits.
_MAGIC = {"f32": 1.5 * 2.0**23, "f64": 1.5 * 2.0**52}


class Reg(NamedTuple):
    """A computed value: scalar text; in a vector loop also `step` (affine) or a whole vector."""

    text: str
    varying: bool = False
    step: Any = 0  # of an affine value: an int, or the text of a uniform i64


def lanes_of(f: Function, machine: Machine) -> int:
    """Lanes per vector: what one holds of the narrowest floating type, else of `f.element`."""
    widths = [WIDTH[b.scalar] for b in f.buffers if b.scalar in FLOATS]
    return machine.vector // min(widths, default=f.element or 4)


class Module:
    """What the functions of one kernel share: tables, declarations, what they turned out to use."""

    def __init__(self, f: Function, machine: Machine) -> None:
        self.f = f
        self.machine = machine
        self.lanes = lanes_of(f, machine)
        self.declared: dict[str, str] = {}
        self.streams = False
        self.rare = False
        self.functions: list[str] = []
        self.tables: dict[str, str] = {}

    def constants(self, entries: Sequence[Any], dtype: str) -> str:
        """The name of a constant table."""
        kind = TYPES[dtype]
        texts = [f"{kind} {real(e, dtype) if dtype in FLOATS else e}" for e in entries]
        body = f"private unnamed_addr constant [{len(texts)} x {kind}] [{', '.join(texts)}]"
        mark = hashlib.blake2b(body.encode(), digest_size=6).hexdigest()
        return self.tables.setdefault(body, f"@table_{mark}")

    def globals(self) -> list[str]:
        """What stands beside the functions: tables, declarations, what metadata mean."""
        found = [f"{name} = {body}" for body, name in self.tables.items()]
        found += ["!0 = !{i32 1}"] if self.streams else []
        found += ['!1 = !{!"branch_weights", i32 1, i32 1048576}'] if self.rare else []
        return [*found, *self.declared.values()]

    def declare(self, name: str, result: str, arguments: Sequence[str]) -> str:
        self.declared.setdefault(name, f"declare {result} {name}({', '.join(arguments)})")
        return name


class Values:
    """One LLVM function in the making: its lines, and the values they compute."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.machine = module.machine
        self.allocas: list[str] = []
        self.lines: list[str] = []
        self.count = 0
        self.mark = ""  # of the names in here, beside others
        self.values: dict[int, Reg] = {}
        self.states: dict[int, tuple[list[str], bool]] = {}  # variables, whether they are vectors
        self.lanes = 0  # of the vector loop we are in
        self.mask = ""  # of its last iteration
        self.left = ""  # the lanes that this has, in each lane
        self.last = ""  # the number of the last of them
        self.before = 0  # elements that unrolled copies before this one have taken
        self.depth = 0
        self.initial: dict[int, list[Reg]] = {}
        self.thread = "0"
        self.streams = False

    # Text ---------------------------------------------------------------------------------
    def text(self) -> str:
        return "\n".join(["entry:", *self.allocas, *self.lines])

    def line(self, text: str, alloca: bool = False) -> None:
        (self.allocas if alloca else self.lines).append("  " + text)

    def end(self) -> None:
        """The function's end; streaming stores are ordered before what others do next."""
        if self.streams:
            self.line("fence seq_cst")
        self.line("ret void")

    def name(self, prefix: str = "t") -> str:
        self.count += 1
        return f"%{self.mark}{prefix}{self.count}"

    def new(self, text: str) -> str:
        name = self.name()
        self.line(f"{name} = {text}")
        return name

    def label(self, name: str) -> None:
        self.lines.append(f"{name[1:]}:")

    # Values -------------------------------------------------------------------------------
    def define_params(self) -> None:
        """The kernel's parameters, and its own memory; see Note [groups] of the loop IR."""
        for tile in self.module.f.tiles:
            kind = f"[{tile.count} x {IN_MEMORY[tile.dtype]}]"
            self.line(f"%{tile.name} = alloca {kind}, align {self.machine.vector}", alloca=True)
        for p in self.module.f.params:
            self.values[id(p)] = Reg(f"%{p.name}")

    def reg(self, v: Value) -> Reg:
        return Reg(constant(v)) if v.op == "const" else self.values[id(v)]

    def scalar(self, v: Value) -> str:
        reg = self.reg(v)
        if reg.varying or reg.step != 0:
            raise IRError(f"{v!r} differs between lanes where one value is needed")
        return reg.text

    def type(self, dtype: str, lanes: int = 0) -> str:
        return f"<{lanes} x {TYPES[dtype]}>" if lanes else TYPES[dtype]

    def splat(self, text: str, kind: str, lanes: int) -> str:
        """A uniform scalar of the LLVM type `kind` in every lane."""
        if not text.startswith("%"):
            return f"splat ({kind} {text})"
        vector = f"<{lanes} x {kind}>"
        one = self.new(f"insertelement {vector} poison, {kind} {text}, i64 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        return self.new(f"shufflevector {vector} {one}, {vector} poison, {zeros}")

    def vector(self, reg: Reg, dtype: str) -> str:
        """A value as a vector of the current lanes."""
        if reg.varying:
            return reg.text
        kind = TYPES[dtype]
        base = self.splat(reg.text, kind, self.lanes)
        if reg.step == 0:
            return base
        steps = ramp(kind, self.lanes)
        vector = f"<{self.lanes} x {kind}>"
        if reg.step != 1:
            steps = self.new(f"mul {vector} {self.splat(str(reg.step), kind, self.lanes)}, {steps}")
        return self.new(f"add {vector} {base}, {steps}")

    def operands(self, args: Sequence[Value], lanes: int) -> list[str]:
        if lanes:
            return [self.vector(self.reg(a), a.dtype) for a in args]
        return [self.reg(a).text for a in args]

    # Operations ---------------------------------------------------------------------------
    def any(self, condition: Reg) -> Reg:
        """Whether a condition holds in some lane; see Note [rare lanes] of the loop IR."""
        if not condition.varying:
            return condition
        kind, text = self.type("bool", self.lanes), condition.text
        if self.mask:
            text = self.new(f"and {kind} {text}, {self.mask}")
        name = f"@llvm.vector.reduce.or.v{self.lanes}i1"
        self.module.declare(name, "i1", [kind])
        return Reg(self.new(f"call i1 {name}({kind} {text})"))

    def below(self, limit: str) -> str:
        """A mask of the lanes whose number is below a limit, which is a vector."""
        lanes = self.lanes
        return self.new(f"icmp sgt <{lanes} x i32> {limit}, {ramp('i32', lanes)}")

    def affine(self, op: str, a: Reg, b: Reg) -> Reg | None:
        """The sum, difference or product of affine values, if that is affine."""
        if a.varying or b.varying:
            return None
        if op == "mul":
            if a.step != 0 and b.step != 0:
                return None
            if b.step != 0:
                a, b = b, a
            factor: Any = b.text if b.text.startswith("%") else int(b.text)
            return Reg(self.integer("mul", a.text, b.text), step=self.step("mul", a.step, factor))
        return Reg(self.integer(op, a.text, b.text), step=self.step(op, a.step, b.step))

    def step(self, op: str, a: Any, b: Any) -> Any:
        if isinstance(a, int) and isinstance(b, int):
            return a + b if op == "add" else a - b if op == "sub" else a * b
        if op == "mul" and (a == 1 or b == 1):
            return b if a == 1 else a
        if b == 0 and op != "mul":
            return a
        if a == 0 and op == "add":
            return b
        return self.integer(op, str(a), str(b))

    def integer(self, op: str, a: str, b: str) -> str:
        return self.new(f"{op} i64 {a}, {b}")

    def operation(self, v: Value, texts: list[str], lanes: int) -> str:
        """One operation on scalars (lanes 0) or vectors."""
        source = v.args[0].dtype
        kind = self.type(source, lanes)
        op = v.op
        floating, signed = source in FLOATS, source in SIGNED
        if op in COMPARISONS:
            if floating:
                test = f"fcmp {'une' if op == 'ne' else 'o' + op}"
            else:
                sign = "" if op in ("eq", "ne") else "s" if signed else "u"
                test = f"icmp {sign}{op}"
            return self.new(f"{test} {kind} {texts[0]}, {texts[1]}")
        if op == "select":
            flag, kind = self.type("bool", lanes), self.type(v.dtype, lanes)
            return self.new(f"select {flag} {texts[0]}, {kind} {texts[1]}, {kind} {texts[2]}")
        if op == "cast":
            return self.cast(texts[0], source, v.dtype, lanes)
        if op == "bitcast":
            target = self.type(v.dtype, lanes)
            return self.new(f"bitcast {kind} {texts[0]} to {target}")
        if floating and op in _FLOAT_OPS:
            return self.new(f"{_FLOAT_OPS[op]} {kind} {texts[0]}, {texts[1]}")
        if floating and op == "neg":
            return self.new(f"fneg {kind} {texts[0]}")
        if op == "fma" and not self.machine.fma:
            product = self.new(f"fmul {kind} {texts[0]}, {texts[1]}")
            return self.new(f"fadd {kind} {product}, {texts[2]}")
        if op == "fused":
            return self.fused(texts, source, lanes)
        if op == "scale":
            return self.scale(texts[0], texts[1], source, lanes)
        if floating:
            return self.intrinsic(_INTRINSICS[op], source, lanes, texts)
        if op in _INTEGER_OPS:
            return self.new(f"{_INTEGER_OPS[op]} {kind} {texts[0]}, {texts[1]}")
        if op in ("div", "rem"):
            if lanes and self.mask:  # lanes that are masked off have loaded zeros
                ones = fill(TYPES[source], 1, lanes)
                flags = f"<{lanes} x i1> {self.mask}"
                texts[1] = self.new(f"select {flags}, {kind} {texts[1]}, {kind} {ones}")
            return self.new(f"{'s' if signed else 'u'}{op} {kind} {texts[0]}, {texts[1]}")
        if op == "shr":
            return self.new(f"{'ashr' if signed else 'lshr'} {kind} {texts[0]}, {texts[1]}")
        if op == "neg":
            return self.new(f"sub {kind} {zero(TYPES[source], lanes)}, {texts[0]}")
        if op == "not":
            ones = "true" if source == "bool" else "-1"
            return self.new(f"xor {kind} {texts[0]}, {fill(TYPES[source], ones, lanes)}")
        if op == "abs":
            return self.intrinsic("abs", source, lanes, texts, "i1 false")
        return self.intrinsic(f"{'s' if signed else 'u'}{op[:3]}", source, lanes, texts)

    def fused(self, texts: list[str], dtype: str, lanes: int) -> str:
        """`a * b + c` rounded once, also without the instruction for it.

        Then f32 is computed in f64, where the product is exact. In f64 Dekker's product and Knuth's
        sum give both roundings' errors; the result is right but for ties that they decide.
        """
        if self.machine.fma:
            return self.intrinsic("fma", dtype, lanes, texts)
        if dtype == "f32":
            a, b, c = (self.cast(t, "f32", "f64", lanes) for t in texts)
            kind = self.type("f64", lanes)
            product = self.new(f"fmul {kind} {a}, {b}")
            total = self.new(f"fadd {kind} {product}, {c}")
            return self.cast(total, "f64", "f32", lanes)
        kind = self.type("f64", lanes)

        def op(name: str, x: str, y: str) -> str:
            return self.new(f"f{name} {kind} {x}, {y}")

        def halves(x: str) -> tuple[str, str]:
            wide = op("mul", x, self.real(134217729.0, "f64", lanes))
            high = op("sub", wide, op("sub", wide, x))
            return high, op("sub", x, high)

        a, b, c = texts
        product = op("mul", a, b)
        (ah, al), (bh, bl) = halves(a), halves(b)
        low = op("sub", op("mul", ah, bh), product)
        low = op("add", op("add", low, op("mul", ah, bl)), op("mul", al, bh))
        low = op("add", low, op("mul", al, bl))
        total = op("add", product, c)
        part = op("sub", total, product)
        rest = op("add", op("sub", product, op("sub", total, part)), op("sub", c, part))
        return op("add", total, op("add", rest, low))

    def scale(self, x: str, n: str, dtype: str, lanes: int) -> str:
        """`x * 2**n`; see Note [scale] of the loop IR."""
        kind = self.type(dtype, lanes)
        if self.machine.scales and lanes * WIDTH[dtype] == 64:
            letter, word = ("ps", "i16") if dtype == "f32" else ("pd", "i8")
            name = f"@llvm.x86.avx512.mask.scalef.{letter}.512"
            self.module.declare(name, kind, [kind, kind, kind, word, "i32"])
            return self.new(
                f"call {kind} {name}({kind} {x}, {kind} {n}, {kind} zeroinitializer, "
                f"{word} -1, i32 4)"
            )
        # In two factors, lest one overflow; adding `magic` leaves a whole number in the low bits.
        magic, half = (self.real(v, dtype, lanes) for v in (_MAGIC[dtype], 0.5))
        word = self.type("i32" if dtype == "f32" else "i64", lanes)
        shift, one = (23, 127 << 23) if dtype == "f32" else (52, 1023 << 52)
        if self.machine.fma:
            first = self.intrinsic("fma", dtype, lanes, [n, half, magic])
        else:
            first = self.new(f"fmul {kind} {n}, {half}")
            first = self.new(f"fadd {kind} {first}, {magic}")
        rest = self.new(f"fsub {kind} {first}, {magic}")
        rest = self.new(f"fsub {kind} {n}, {rest}")
        second = self.new(f"fadd {kind} {rest}, {magic}")
        for part in (first, second):
            bits = self.new(f"bitcast {kind} {part} to {word}")
            bits = self.new(f"shl {word} {bits}, {fill(f'i{WIDTH[dtype] * 8}', shift, lanes)}")
            bits = self.new(f"add {word} {bits}, {fill(f'i{WIDTH[dtype] * 8}', one, lanes)}")
            power = self.new(f"bitcast {word} {bits} to {kind}")
            x = self.new(f"fmul {kind} {x}, {power}")
        return x

    def real(self, number: float, dtype: str, lanes: int) -> str:
        """A floating constant in every lane."""
        return fill(TYPES[dtype], real(number, dtype), lanes)

    def intrinsic(
        self, name: str, dtype: str, lanes: int, texts: Sequence[str], extra: str = ""
    ) -> str:
        kind = self.type(dtype, lanes)
        scalar = suffix(TYPES[dtype])
        full = f"@llvm.{name}.{f'v{lanes}' if lanes else ''}{scalar}"
        types = [kind] * len(texts) + ([extra.split()[0]] if extra else [])
        self.module.declare(full, kind, types)
        given = ", ".join([f"{kind} {t}" for t in texts] + ([extra] if extra else []))
        return self.new(f"call {kind} {full}({given})")

    def cast(self, text: str, source: str, target: str, lanes: int) -> str:
        a, b = self.type(source, lanes), self.type(target, lanes)
        if target == "bool":
            nothing = zero(TYPES[source], lanes)
            return self.new(
                f"{'fcmp une' if source in FLOATS else 'icmp ne'} {a} {text}, {nothing}"
            )
        if source in FLOATS:
            if target in FLOATS:
                return self.new(f"{'fpext' if target == 'f64' else 'fptrunc'} {a} {text} to {b}")
            return self.new(f"{'fptosi' if target in SIGNED else 'fptoui'} {a} {text} to {b}")
        if target in FLOATS:
            return self.new(f"{'sitofp' if source in SIGNED else 'uitofp'} {a} {text} to {b}")
        narrow, wide = (WIDTH[t] if t != "bool" else 0 for t in (source, target))
        if narrow == wide:
            return text
        how = "trunc" if narrow > wide else "sext" if source in SIGNED else "zext"
        return self.new(f"{how} {a} {text} to {b}")


def constant(v: Value) -> str:
    number = v.args[0]
    if v.dtype == "bool":
        return "true" if number else "false"
    return real(number, v.dtype) if v.dtype in FLOATS else str(number)


def real(number: float, dtype: str) -> str:
    if dtype == "f32":
        try:
            number = struct.unpack("f", struct.pack("f", number))[0]
        except OverflowError:
            number = float("inf") if number > 0 else float("-inf")
    return f"0x{struct.unpack('>Q', struct.pack('>d', number))[0]:016X}"


def suffix(kind: str) -> str:
    return {"float": "f32", "double": "f64", "half": "f16"}.get(kind, kind)


def ramp(kind: str, lanes: int) -> str:
    return "<" + ", ".join(f"{kind} {i}" for i in range(lanes)) + ">"


def fill(kind: str, number: Any, lanes: int) -> str:
    return f"splat ({kind} {number})" if lanes else str(number)


def zero(kind: str, lanes: int) -> str:
    return "zeroinitializer" if lanes else ("0.0" if kind in ("float", "double") else "0")
