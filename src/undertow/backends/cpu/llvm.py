"""The loop IR as LLVM IR text, with vector loops in the lanes of this machine.

Note [lanes]
Inside a vector loop a value is uniform (one scalar for all lanes), affine (an integer that grows by
a fixed step from lane to lane, as offsets do) or varying (a vector). An affine offset with step one
is a plain vector load or store, any other a gather or scatter, but for loads with step two: those
are two vectors and a shuffle, which reads what lies between the elements too, not beyond the last.
The last iterations, too few for a vector, run as one vector under a mask, so an element's value
never depends on where it stands.

Note [pairs]
Complex numbers lie as pairs: two loads, or two stores, that stand one after the other, at offsets
with step two of which the second is the first plus one. They are two whole vectors, and two
shuffles that take the parts out of them or lay them side by side; such stores may stream, too.

Note [jobs]
A kernel is exported as `void name(ptr pool, buffers…, params…)`. Each parallel loop becomes a body
`void (ptr context, i64 begin, i64 end, i64 thread)` over a part of its iterations; the context is
the arguments, stored one after the other. What stands at the top level beside parallel loops runs
once, on the caller's thread; pure values among it are computed again in each body.

Note [packed arguments]
From Python every argument of a native call costs a tenth of a microsecond, and small kernels have
more than twenty. So what Python calls is `void name(ptr packed)`, where the arguments lie one after
the other, in 8 bytes each: `struct` puts them there at a fifth of that.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...kernel.ir import (
    COMPARISONS,
    FLOATS,
    INTEGERS,
    SIGNED,
    STREAM,
    WIDTH,
    Branch,
    Buffer,
    Function,
    Invoke,
    IRError,
    Loop,
    Prefetch,
    Set,
    State,
    Store,
    Value,
    set_inside,
    traced_combine,
)
from . import halves


class Machine(NamedTuple):
    """What the generated code may use: bytes in a vector, fused multiply-add, half conversions."""

    vector: int
    fma: bool
    half: bool


_TYPES = {"bool": "i1", "f32": "float", "f64": "double", **{t: f"i{t[1:]}" for t in INTEGERS}}
_IN_MEMORY = {**_TYPES, "bool": "i8", "f16": "half", "bf16": "i16"}
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


class _Reg(NamedTuple):
    """A computed value: scalar text; in a vector loop also `step` (affine) or a whole vector."""

    text: str
    varying: bool = False
    step: Any = 0  # of an affine value: an int, or the text of a uniform i64


def lanes_of(f: Function, machine: Machine) -> int:
    """Lanes per vector: what a vector holds of the narrowest floating type, else of 4 bytes."""
    widths = [WIDTH[b.scalar] for b in f.buffers if b.scalar in FLOATS]
    return machine.vector // min(widths, default=4)


def emit(f: Function, machine: Machine, packed: bool = False) -> str:
    """The module of LLVM IR that exports `f`; for `packed` see Note [packed arguments]."""
    return _Module(f, machine).text(packed)


class _Module:
    def __init__(self, f: Function, machine: Machine) -> None:
        self.f = f
        self.machine = machine
        self.lanes = lanes_of(f, machine)
        self.declared: dict[str, str] = {}
        self.streams = False
        self.rare = False
        self.functions: list[str] = []
        self.tables: dict[str, str] = {}

    def text(self, packed: bool) -> str:
        arguments = [(f"%{b.name}", "ptr") for b in self.f.buffers]
        arguments += [(f"%{p.name}", _TYPES[p.dtype]) for p in self.f.params]
        bodies = [
            self.job(i, s, arguments)
            for i, s in enumerate(self.f.body)
            if isinstance(s, Loop) and s.kind == "parallel"
        ]
        head = ", ".join(f"{t} {a}" for a, t in [("%pool", "ptr"), *arguments])
        e = _Emitter(self)
        if bodies:
            e.line(f"%context = alloca [{len(arguments)} x i64], align 8", alloca=True)
            for i, (a, t) in enumerate(arguments):
                place = e.new(f"getelementptr i64, ptr %context, i64 {i}")
                e.line(f"store {t} {a}, ptr {place}")
        e.define_params()
        names = iter(bodies)
        for s in self.f.body:
            if isinstance(s, Loop) and s.kind == "parallel":
                e.run_job(next(names), e.scalar(s.extent))
            else:
                e.statement(s)
        e.end()
        name = f"@{self.f.name}"
        if packed:
            self.functions.append(_unpacking(name, [("%pool", "ptr"), *arguments]))
            name = f"internal void {name}.unpacked"
        else:
            name = f"void {name}"
        main = f"define {name}({head}) {{\n{e.text()}\n}}"
        tables = [f"{name} = {body}" for body, name in self.tables.items()]
        metadata = ["!0 = !{i32 1}"] if self.streams else []
        metadata += ['!1 = !{!"branch_weights", i32 1, i32 1048576}'] if self.rare else []
        return "\n\n".join([*tables, *self.functions, main, *self.declared.values(), *metadata])

    def job(self, number: int, loop: Loop, arguments: list[tuple[str, str]]) -> str:
        name = f"@{self.f.name}.job{number}"
        e = _Emitter(self)
        e.thread = "%thread"
        for i, (a, t) in enumerate(arguments):
            place = e.new(f"getelementptr i64, ptr %context, i64 {i}")
            e.line(f"{a} = load {t}, ptr {place}")
        e.define_params()
        for s in self.f.body:
            if s is loop:
                break
            if isinstance(s, Value) and s.op != "load" and s.op != "get":
                e.statement(s)
        e.counted(loop, "%begin", "%end")
        e.end()
        head = "ptr %context, i64 %begin, i64 %end, i64 %thread"
        self.functions.append(f"define internal void {name}({head}) noinline {{\n{e.text()}\n}}")
        return name

    def constants(self, entries: Sequence[Any], dtype: str) -> str:
        """The name of a constant table."""
        kind = _TYPES[dtype]
        texts = [f"{kind} {_real(e, dtype) if dtype in FLOATS else e}" for e in entries]
        body = f"private unnamed_addr constant [{len(texts)} x {kind}] [{', '.join(texts)}]"
        return self.tables.setdefault(body, f"@table{len(self.tables)}")

    def declare(self, name: str, result: str, arguments: Sequence[str]) -> str:
        self.declared.setdefault(name, f"declare {result} {name}({', '.join(arguments)})")
        return name


def _unpacking(name: str, arguments: Sequence[tuple[str, str]]) -> str:
    """The function that calls another one with arguments from memory."""
    lines = []
    for i, (_, t) in enumerate(arguments):
        lines.append(f"  %at{i} = getelementptr i64, ptr %packed, i64 {i}")
        lines.append(f"  %argument{i} = load {t}, ptr %at{i}")
    given = ", ".join(f"{t} %argument{i}" for i, (_, t) in enumerate(arguments))
    lines += [f"  call void {name}.unpacked({given})", "  ret void"]
    body = "\n".join(lines)
    return f"define void {name}(ptr %packed) {{\n{body}\n}}"


class _Emitter:
    """One LLVM function in the making."""

    def __init__(self, module: _Module) -> None:
        self.module = module
        self.machine = module.machine
        self.allocas: list[str] = []
        self.lines: list[str] = []
        self.count = 0
        self.values: dict[int, _Reg] = {}
        self.states: dict[int, tuple[list[str], bool]] = {}  # variables, whether they are vectors
        self.lanes = 0  # of the vector loop we are in
        self.mask = ""  # of its last iteration
        self.left = ""  # the lanes that this has, in each lane
        self.before = 0  # elements that unrolled copies before this one have taken
        self.depth = 0
        self.initial: dict[int, list[_Reg]] = {}
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
        return f"%{prefix}{self.count}"

    def new(self, text: str) -> str:
        name = self.name()
        self.line(f"{name} = {text}")
        return name

    def label(self, name: str) -> None:
        self.lines.append(f"{name[1:]}:")

    # Values -------------------------------------------------------------------------------
    def define_params(self) -> None:
        for p in self.module.f.params:
            self.values[id(p)] = _Reg(f"%{p.name}")

    def reg(self, v: Value) -> _Reg:
        return _Reg(_constant(v)) if v.op == "const" else self.values[id(v)]

    def scalar(self, v: Value) -> str:
        reg = self.reg(v)
        if reg.varying or reg.step != 0:
            raise IRError(f"{v!r} differs between lanes where one value is needed")
        return reg.text

    def type(self, dtype: str, lanes: int = 0) -> str:
        return f"<{lanes} x {_TYPES[dtype]}>" if lanes else _TYPES[dtype]

    def splat(self, text: str, kind: str, lanes: int) -> str:
        """A uniform scalar of the LLVM type `kind` in every lane."""
        if not text.startswith("%"):
            return f"splat ({kind} {text})"
        vector = f"<{lanes} x {kind}>"
        one = self.new(f"insertelement {vector} poison, {kind} {text}, i64 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        return self.new(f"shufflevector {vector} {one}, {vector} poison, {zeros}")

    def vector(self, reg: _Reg, dtype: str) -> str:
        """A value as a vector of the current lanes."""
        if reg.varying:
            return reg.text
        kind = _TYPES[dtype]
        base = self.splat(reg.text, kind, self.lanes)
        if reg.step == 0:
            return base
        ramp = _ramp(kind, self.lanes)
        vector = f"<{self.lanes} x {kind}>"
        if reg.step != 1:
            ramp = self.new(f"mul {vector} {self.splat(str(reg.step), kind, self.lanes)}, {ramp}")
        return self.new(f"add {vector} {base}, {ramp}")

    def operands(self, args: Sequence[Value], lanes: int) -> list[str]:
        if lanes:
            return [self.vector(self.reg(a), a.dtype) for a in args]
        return [self.reg(a).text for a in args]

    # Statements ---------------------------------------------------------------------------
    def block(self, body: Sequence[Any]) -> None:
        left = iter(body)
        before = next(left, None)
        for s in left:
            if _paired(before, s) and self.pair(before, s):
                before = next(left, None)
            else:
                self.statement(before)
                before = s
        if before is not None:
            self.statement(before)

    def statement(self, s: Any) -> None:
        if isinstance(s, Value):
            self.values[id(s)] = self.compute(s)
        elif isinstance(s, Store):
            self.store(s)
        elif isinstance(s, Prefetch):
            self.prefetch(s)
        elif isinstance(s, Invoke):
            self.invoke(s)
        elif isinstance(s, State):
            self.declare_state(s)
        elif isinstance(s, Set):
            self.set(s)
        elif isinstance(s, Branch):
            yes, after = self.name("yes"), self.name("after")
            # What few lanes need is laid out so that the usual way keeps its registers.
            hint = ", !prof !1" if s.condition.op == "any" else ""
            self.module.rare |= bool(hint)
            self.line(f"br i1 {self.scalar(s.condition)}, label {yes}, label {after}{hint}")
            self.label(yes)
            self.block(s.body)
            self.line(f"br label {after}")
            self.label(after)
        elif s.kind == "vector":
            self.vector_loop(s)
        else:
            self.counted(s, "0", self.scalar(s.extent))

    def invoke(self, s: Invoke) -> None:
        """Call another kernel, without a pool."""
        kernel = self.new(f"inttoptr i64 {self.scalar(s.address)} to ptr")
        given = ["ptr null"]
        for a in s.args:
            if isinstance(a, tuple):
                kind, at = _IN_MEMORY[a[0].dtype], self.scalar(a[1])
                place = self.new(f"getelementptr {kind}, ptr %{a[0].name}, i64 {at}")
                given.append(f"ptr {place}")
            else:
                given.append(f"{_TYPES[a.dtype]} {self.scalar(a)}")
        self.line(f"call void {kernel}({', '.join(given)})")

    def counted(self, loop: Loop, begin: str, end: str) -> None:
        """A loop over [begin, end) in order."""

        def body(i: str) -> None:
            self.values[id(loop.index)] = _Reg(i)
            self.block(loop.body)

        self.steps(begin, end, 1, body)

    def steps(self, begin: str, end: str, step: int, body: Callable[[str], None]) -> None:
        """`for (i = begin; i < end; i += step) body(i)`."""
        before, head, inside, latch, after = (
            self.name(part) for part in ("before", "head", "inside", "latch", "after")
        )
        i, following = self.name("i"), self.name("next")
        self.line(f"br label {before}")
        self.label(before)
        self.line(f"br label {head}")
        self.label(head)
        self.line(f"{i} = phi i64 [{begin}, {before}], [{following}, {latch}]")
        more = self.new(f"icmp slt i64 {i}, {end}")
        self.line(f"br i1 {more}, label {inside}, label {after}")
        self.label(inside)
        body(i)
        self.line(f"br label {latch}")
        self.label(latch)
        self.line(f"{following} = add nsw i64 {i}, {step}")
        self.line(f"br label {head}")
        self.label(after)

    def run_job(self, name: str, count: str) -> None:
        """Give the iterations of a parallel loop to the pool; without one, run them here."""
        alone, together, after = self.name("alone"), self.name("together"), self.name("after")
        single = self.new("icmp eq ptr %pool, null")
        few = self.new(f"icmp slt i64 {count}, 2")
        here = self.new(f"or i1 {single}, {few}")
        self.line(f"br i1 {here}, label {alone}, label {together}")
        self.label(alone)
        self.line(f"call void {name}(ptr %context, i64 0, i64 {count}, i64 0)")
        self.line(f"br label {after}")
        self.label(together)
        run = self.new("load ptr, ptr %pool")
        self.line(f"call void {run}(ptr %pool, ptr {name}, ptr %context, i64 {count})")
        self.line(f"br label {after}")
        self.label(after)

    # Vector loops -------------------------------------------------------------------------
    def vector_loop(self, loop: Loop) -> None:
        lanes = self.module.lanes
        wide = lanes * loop.unroll
        extent = self.scalar(loop.extent)
        outer = [s for s in set_inside(loop.body) if id(s) in self.states]
        scalars = {id(s): self.states[id(s)][0] for s in outer}
        copies = {id(s): [self.lane_state(s, lanes) for _ in range(loop.unroll)] for s in outer}
        rest = self.new(f"srem i64 {extent}, {wide}")
        whole = self.new(f"sub nsw i64 {extent}, {rest}")
        self.lanes = lanes

        def once(i: str, copy: int) -> None:
            for s in outer:
                self.states[id(s)] = (copies[id(s)][copy], True)
            self.values[id(loop.index)] = _Reg(i, step=1)
            self.block(loop.body)

        def full(i: str) -> None:
            for copy in range(loop.unroll):
                self.before = lanes * copy
                once(self.new(f"add nsw i64 {i}, {lanes * copy}") if copy else i, copy)
            self.before = 0

        def partial(i: str) -> None:
            left = self.new(f"sub nsw i64 {extent}, {i}")
            left = self.new(f"trunc i64 {left} to i32")
            self.left = self.splat(left, "i32", lanes)
            self.mask = self.below(self.left)
            once(i, 0)
            self.mask = ""

        self.steps("0", whole, wide, full)
        if loop.unroll > 1:
            done, rest = whole, self.new(f"srem i64 {extent}, {lanes}")
            whole = self.new(f"sub nsw i64 {extent}, {rest}")
            self.steps(done, whole, lanes, lambda i: once(i, 0))
        self.steps(whole, extent, lanes, partial)
        self.lanes = 0
        for s in outer:
            self.states[id(s)] = (scalars[id(s)], False)
            self.fold(s, copies[id(s)], lanes)

    def below(self, limit: str) -> str:
        """A mask of the lanes whose number is below a limit, which is a vector."""
        lanes = self.lanes
        return self.new(f"icmp sgt <{lanes} x i32> {limit}, {_ramp('i32', lanes)}")

    def lane_state(self, s: State, lanes: int) -> list[str]:
        """Variables of a state for every lane, at their initial values."""
        variables = []
        for init, start in zip(s.inits, self.initial[id(s)], strict=True):
            variable = self.name("state")
            kind = self.type(init.dtype, lanes)
            self.line(f"{variable} = alloca {kind}", alloca=True)
            filled = self.splat(start.text, _TYPES[init.dtype], lanes)
            self.line(f"store {kind} {filled}, ptr {variable}")
            variables.append(variable)
        return variables

    def fold(self, s: State, copies: list[list[str]], lanes: int) -> None:
        """Combine the lanes' states in pairs, then with the state from before the loop."""
        kinds = [i.dtype for i in s.inits]
        loaded = [
            [
                self.new(f"load {self.type(t, lanes)}, ptr {v}")
                for t, v in zip(kinds, copy, strict=True)
            ]
            for copy in copies
        ]
        while len(loaded) > 1:
            loaded = [
                self.combine(s, loaded[i], loaded[i + 1], lanes)
                if i + 1 < len(loaded)
                else loaded[i]
                for i in range(0, len(loaded), 2)
            ]
        (found,) = loaded
        while lanes > 1:
            halves: list[list[str]] = []
            for first in (0, lanes // 2):
                picks = ", ".join(f"i32 {first + j}" for j in range(lanes // 2))
                picks = f"<{lanes // 2} x i32> <{picks}>"
                halves.append(
                    [
                        self.new(
                            f"shufflevector {self.type(t, lanes)} {v}, "
                            f"{self.type(t, lanes)} poison, {picks}"
                        )
                        for t, v in zip(kinds, found, strict=True)
                    ]
                )
            lanes //= 2
            found = self.combine(s, halves[0], halves[1], lanes)
        one = [
            self.new(f"extractelement {self.type(t, 1)} {v}, i64 0")
            for t, v in zip(kinds, found, strict=True)
        ]
        before = [
            self.new(f"load {self.type(t)}, ptr {v}")
            for t, v in zip(kinds, self.states[id(s)][0], strict=True)
        ]
        joined = self.combine(s, before, one, 0)
        for t, v, r in zip(kinds, self.states[id(s)][0], joined, strict=True):
            self.line(f"store {self.type(t)} {r}, ptr {v}")

    def combine(self, s: State, left: list[str], right: list[str], lanes: int) -> list[str]:
        """`s.combine` of two lists of registers."""
        body, params, results = traced_combine(s)
        before, self.lanes = self.lanes, lanes
        for p, text in zip(params, [*left, *right], strict=True):
            self.values[id(p)] = _Reg(text, varying=lanes > 0)
        self.block(body)
        texts = self.operands(results, lanes)
        self.lanes = before
        return texts

    def declare_state(self, s: State) -> None:
        variables = []
        self.initial[id(s)] = [self.reg(init) for init in s.inits]
        for init in s.inits:
            variable = self.name("state")
            kind = self.type(init.dtype, self.lanes)
            self.line(f"{variable} = alloca {kind}", alloca=True)
            (start,) = self.operands([init], self.lanes)
            self.line(f"store {kind} {start}, ptr {variable}")
            variables.append(variable)
        self.states[id(s)] = (variables, self.lanes > 0)

    def set(self, s: Set) -> None:
        variables, wide = self.states[id(s.state)]
        lanes = self.lanes if wide else 0
        for variable, value, text in zip(
            variables, s.values, self.operands(s.values, lanes), strict=True
        ):
            kind = self.type(value.dtype, lanes)
            if lanes and self.mask:
                old = self.new(f"load {kind}, ptr {variable}")
                mask = f"<{lanes} x i1> {self.mask}"
                text = self.new(f"select {mask}, {kind} {text}, {kind} {old}")
            self.line(f"store {kind} {text}, ptr {variable}")

    # Memory -------------------------------------------------------------------------------
    def load(self, buffer: Buffer, offset: Value, ahead: int) -> _Reg:
        at = self.reg(offset)
        kind = _IN_MEMORY[buffer.dtype]
        if ahead:
            # One instruction shifts a pair of vectors, if they are as long as a line of the cache.
            if at.step == 1 and self.lanes * WIDTH[buffer.dtype] == STREAM:
                return self.shifted(buffer, at, ahead)
            at = at._replace(text=self.integer("add", at.text, str(ahead)))
        if not at.varying and at.step == 0:
            place = self.new(f"getelementptr {kind}, ptr %{buffer.name}, i64 {at.text}")
            return _Reg(self.widen(self.new(f"load {kind}, ptr {place}"), buffer.dtype, 0))
        lanes = self.lanes
        if at.step == 1:
            text = self.contiguous(buffer, at.text, self.mask)
        elif at.step == 2:
            text = self.every_other(buffer, at.text)
        else:
            text = self.gather(self.places(buffer, at, kind), kind, WIDTH[buffer.dtype])
        return _Reg(self.widen(text, buffer.dtype, lanes), varying=True)

    def contiguous(self, buffer: Buffer, offset: str, mask: str) -> str:
        """A vector of neighbours; zero in lanes that are masked off."""
        lanes, kind, align = self.lanes, _IN_MEMORY[buffer.dtype], WIDTH[buffer.dtype]
        vector = f"<{lanes} x {kind}>"
        place = self.new(f"getelementptr {kind}, ptr %{buffer.name}, i64 {offset}")
        if not mask:
            return self.new(f"load {vector}, ptr {place}, align {align}")
        name = f"@llvm.masked.load.v{lanes}{_suffix(kind)}.p0"
        self.module.declare(name, vector, ["ptr", "i32", f"<{lanes} x i1>", vector])
        given = f"ptr {place}, i32 {align}, <{lanes} x i1> {mask}"
        return self.new(f"call {vector} {name}({given}, {vector} zeroinitializer)")

    def pair(self, first: Any, second: Any) -> bool:
        """Two loads or stores as one, if these are the lanes' pairs; see Note [pairs]."""
        at = self.reg(first.offset if isinstance(first, Store) else first.args[1])
        if not self.lanes or at.varying or at.step != 2:
            return False
        buffer = first.buffer if isinstance(first, Store) else first.args[0]
        lanes, align = self.lanes, WIDTH[buffer.dtype]
        kind = _IN_MEMORY[buffer.dtype]
        vector = f"<{lanes} x {kind}>"
        masks = ["", ""]
        if self.mask:
            word = f"<{lanes} x i32>"
            twice = self.new(f"add {word} {self.left}, {self.left}")
            beyond = self.new(f"sub {word} {twice}, splat (i32 {lanes})")
            masks = [self.below(twice), self.below(beyond)]
        offsets = [at.text, self.integer("add", at.text, str(lanes))]

        def shuffled(a: str, b: str, picks: Sequence[int]) -> str:
            listed = ", ".join(f"i32 {p}" for p in picks)
            return self.new(f"shufflevector {vector} {a}, {vector} {b}, <{lanes} x i32> <{listed}>")

        every = range(lanes)
        if not isinstance(first, Store):
            low, high = (self.contiguous(buffer, o, m) for o, m in zip(offsets, masks, strict=True))
            for v, odd in ((first, 0), (second, 1)):
                text = shuffled(low, high, [2 * i + odd for i in every])
                self.values[id(v)] = _Reg(self.widen(text, buffer.dtype, lanes), varying=True)
            return True
        re, im = (
            self.narrow(self.vector(self.reg(s.value), s.value.dtype), buffer.dtype, lanes)
            for s in (first, second)
        )
        for half, offset, mask in zip((0, lanes // 2), offsets, masks, strict=True):
            text = shuffled(re, im, [half + i // 2 + (i % 2) * lanes for i in every])
            place = self.new(f"getelementptr {kind}, ptr %{buffer.name}, i64 {offset}")
            if mask:
                name = f"@llvm.masked.store.v{lanes}{_suffix(kind)}.p0"
                self.module.declare(name, "void", [vector, "ptr", "i32", f"<{lanes} x i1>"])
                given = f"{vector} {text}, ptr {place}, i32 {align}, <{lanes} x i1> {mask}"
                self.line(f"call void {name}({given})")
            elif first.stream:
                self.streams = self.module.streams = True
                wide = min(STREAM, lanes * align)
                self.line(f"store {vector} {text}, ptr {place}, align {wide}, !nontemporal !0")
            else:
                self.line(f"store {vector} {text}, ptr {place}, align {align}")
        return True

    def every_other(self, buffer: Buffer, offset: str) -> str:
        """A vector of elements with step two, from two vectors, the second ending with the last."""
        lanes = self.lanes
        masks = ["", ""]
        if self.mask:  # up to element 2 * left - 2
            kind = f"<{lanes} x i32>"
            twice = self.new(f"add {kind} {self.left}, {self.left}")
            for i, less in enumerate((1, lanes)):
                masks[i] = self.below(self.new(f"sub {kind} {twice}, splat (i32 {less})"))
        second = self.integer("add", offset, str(lanes - 1))
        low, high = (
            self.contiguous(buffer, at, mask)
            for at, mask in zip((offset, second), masks, strict=True)
        )
        picks = ", ".join(f"i32 {2 * i + (2 * i >= lanes)}" for i in range(lanes))
        vector = f"<{lanes} x {_IN_MEMORY[buffer.dtype]}>"
        return self.new(f"shufflevector {vector} {low}, {vector} {high}, <{lanes} x i32> <{picks}>")

    def shifted(self, buffer: Buffer, at: _Reg, ahead: int) -> _Reg:
        """The elements `ahead` of those at an offset, from the vectors that begin there."""
        lanes = self.lanes
        vector, first = f"<{lanes} x {_IN_MEMORY[buffer.dtype]}>", ahead - ahead % lanes
        text = self.contiguous(buffer, self.integer("add", at.text, str(first)), "")
        if ahead > first:
            more = self.contiguous(buffer, self.integer("add", at.text, str(first + lanes)), "")
            picks = ", ".join(f"i32 {ahead - first + j}" for j in range(lanes))
            text = self.new(
                f"shufflevector {vector} {text}, {vector} {more}, <{lanes} x i32> <{picks}>"
            )
        return _Reg(self.widen(text, buffer.dtype, lanes), varying=True)

    def gather(self, places: str, kind: str, align: int) -> str:
        """What lies at the lanes' addresses; zero in lanes that are masked off."""
        lanes = self.lanes
        vector = f"<{lanes} x {kind}>"
        name = f"@llvm.masked.gather.v{lanes}{_suffix(kind)}.v{lanes}p0"
        types = [f"<{lanes} x ptr>", "i32", f"<{lanes} x i1>", vector]
        self.module.declare(name, vector, types)
        return self.new(
            f"call {vector} {name}(<{lanes} x ptr> {places}, i32 {align}, "
            f"<{lanes} x i1> {self.mask or 'splat (i1 true)'}, "
            f"{vector} zeroinitializer)"
        )

    def places(self, buffer: Buffer, at: _Reg, kind: str) -> str:
        offsets = f"<{self.lanes} x i64> {self.vector(at, 'i64')}"
        return self.new(f"getelementptr {kind}, ptr %{buffer.name}, {offsets}")

    def store(self, s: Store) -> None:
        at = self.reg(s.offset)
        kind = _IN_MEMORY[s.buffer.dtype]
        if not at.varying and at.step == 0:
            place = self.new(f"getelementptr {kind}, ptr %{s.buffer.name}, i64 {at.text}")
            value = self.reg(s.value)
            if value.varying:  # lanes that store at one offset store one value: the first does
                vector = self.type(s.value.dtype, self.lanes)
                value = _Reg(self.new(f"extractelement {vector} {value.text}, i64 0"))
            text = self.narrow(value.text, s.buffer.dtype, 0)
            self.line(f"store {kind} {text}, ptr {place}")
            return
        lanes = self.lanes
        vector = f"<{lanes} x {kind}>"
        align = WIDTH[s.buffer.dtype]
        text = self.narrow(self.vector(self.reg(s.value), s.value.dtype), s.buffer.dtype, lanes)
        if at.step == 2 and lanes * align == STREAM:
            self.store_every_other(s.buffer, at.text, text)
            return
        if at.step == 1:
            place = self.new(f"getelementptr {kind}, ptr %{s.buffer.name}, i64 {at.text}")
            if not self.mask and s.stream:
                self.streams = self.module.streams = True
                align = min(STREAM, lanes * align)
                self.line(f"store {vector} {text}, ptr {place}, align {align}, !nontemporal !0")
                return
            if not self.mask:
                self.line(f"store {vector} {text}, ptr {place}, align {align}")
                return
            name, pointer, places = f"@llvm.masked.store.v{lanes}{_suffix(kind)}.p0", "ptr", place
        else:
            name = f"@llvm.masked.scatter.v{lanes}{_suffix(kind)}.v{lanes}p0"
            pointer, places = f"<{lanes} x ptr>", self.places(s.buffer, at, kind)
        self.module.declare(name, "void", [vector, pointer, "i32", f"<{lanes} x i1>"])
        self.line(
            f"call void {name}({vector} {text}, {pointer} {places}, i32 {align}, "
            f"<{lanes} x i1> {self.mask or 'splat (i1 true)'})"
        )

    def store_every_other(self, buffer: Buffer, offset: str, text: str) -> None:
        """Store a vector with step two as two, which leave what lies between as it is."""
        lanes, kind = self.lanes, _IN_MEMORY[buffer.dtype]
        vector, flags = f"<{lanes} x {kind}>", f"<{lanes} x i1>"
        even = "<" + ", ".join(f"i1 {'false' if j % 2 else 'true'}" for j in range(lanes)) + ">"
        name = f"@llvm.masked.store.v{lanes}{_suffix(kind)}.p0"
        self.module.declare(name, "void", [vector, "ptr", "i32", flags])
        for first in (0, lanes):
            mask = even
            if self.mask:
                word = f"<{lanes} x i32>"
                left = self.new(f"add {word} {self.left}, {self.left}")
                below = self.below(self.new(f"sub {word} {left}, splat (i32 {first})"))
                mask = self.new(f"and {flags} {below}, {even}")
            picks = ", ".join(f"i32 {(first + j) // 2}" for j in range(lanes))
            part = self.new(
                f"shufflevector {vector} {text}, {vector} poison, <{lanes} x i32> <{picks}>"
            )
            start = self.integer("add", offset, str(first))
            place = self.new(f"getelementptr {kind}, ptr %{buffer.name}, i64 {start}")
            self.line(
                f"call void {name}({vector} {part}, ptr {place}, i32 {WIDTH[buffer.dtype]}, "
                f"{flags} {mask})"
            )

    def prefetch(self, s: Prefetch) -> None:
        kind = _IN_MEMORY[s.buffer.dtype]
        at = self.reg(s.offset)
        if at.varying:
            raise IRError(f"a prefetch of {s.buffer.name} at places without order")
        if at.step == 1 and self.before * WIDTH[s.buffer.dtype] % STREAM:
            return  # an unrolled copy before this one asks for the line
        place = self.new(f"getelementptr {kind}, ptr %{s.buffer.name}, i64 {at.text}")
        self.module.declare("@llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
        self.line(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 3, i32 1)")

    def widen(self, text: str, dtype: str, lanes: int) -> str:
        """What a load gives as a value; see Note [memory types] of the loop IR."""
        if dtype == "bool":
            byte = f"<{lanes} x i8>" if lanes else "i8"
            return self.new(f"icmp ne {byte} {text}, {_zero('i8', lanes)}")
        if dtype in ("f16", "bf16"):
            native = self.module.machine.half
            return halves.widen(self.new, text, _IN_MEMORY[dtype], lanes, native)
        return text

    def narrow(self, text: str, dtype: str, lanes: int) -> str:
        """A value as a store writes it."""
        if dtype == "bool":
            byte = f"<{lanes} x i8>" if lanes else "i8"
            return self.new(f"zext {self.type('bool', lanes)} {text} to {byte}")
        if dtype in ("f16", "bf16"):
            native = self.module.machine.half
            return halves.narrow(self.new, text, _IN_MEMORY[dtype], lanes, native)
        return text

    # Operations ---------------------------------------------------------------------------
    def compute(self, v: Value) -> _Reg:
        if v.op == "load":
            return self.load(*v.args)
        if v.op == "thread":
            return _Reg(self.thread)
        if v.op == "get":
            state, i = v.args
            variables, wide = self.states[id(state)]
            kind = self.type(v.dtype, self.lanes if wide else 0)
            return _Reg(self.new(f"load {kind}, ptr {variables[i]}"), varying=wide)
        if v.op == "lookup":
            return self.lookup(v)
        regs = [self.reg(a) for a in v.args]
        if v.op == "any":
            return self.any(*regs)
        if v.dtype == "i64" and v.op in ("add", "sub", "mul") and any(r.step != 0 for r in regs):
            affine = self.affine(v.op, *regs)
            if affine is not None:
                return affine
        if v.op == "cast" and v.dtype == "i32" and type(regs[0].step) is int and regs[0].step:
            return _Reg(self.new(f"trunc i64 {regs[0].text} to i32"), step=regs[0].step)
        lanes = self.lanes if any(r.varying or r.step != 0 for r in regs) else 0
        return _Reg(self.operation(v, self.operands(v.args, lanes), lanes), varying=lanes > 0)

    def any(self, condition: _Reg) -> _Reg:
        """Whether a condition holds in some lane; see Note [rare lanes] of the loop IR."""
        if not condition.varying:
            return condition
        kind, text = self.type("bool", self.lanes), condition.text
        if self.mask:
            text = self.new(f"and {kind} {text}, {self.mask}")
        name = f"@llvm.vector.reduce.or.v{self.lanes}i1"
        self.module.declare(name, "i1", [kind])
        return _Reg(self.new(f"call i1 {name}({kind} {text})"))

    def lookup(self, v: Value) -> _Reg:
        """An entry of a constant table, which becomes a global of the module."""
        entries, index = v.args
        table = self.module.constants(entries, v.dtype)
        at = self.reg(index)
        kind = _TYPES[v.dtype]
        if not at.varying and at.step == 0:
            place = self.new(f"getelementptr {kind}, ptr {table}, i64 {at.text}")
            return _Reg(self.new(f"load {kind}, ptr {place}"))
        offsets = f"<{self.lanes} x i64> {self.vector(at, 'i64')}"
        places = self.new(f"getelementptr {kind}, ptr {table}, {offsets}")
        return _Reg(self.gather(places, kind, WIDTH[v.dtype]), varying=True)

    def affine(self, op: str, a: _Reg, b: _Reg) -> _Reg | None:
        """The sum, difference or product of affine values, if that is affine."""
        if a.varying or b.varying:
            return None
        if op == "mul":
            if a.step != 0 and b.step != 0:
                return None
            if b.step != 0:
                a, b = b, a
            factor: Any = b.text if b.text.startswith("%") else int(b.text)
            return _Reg(self.integer("mul", a.text, b.text), step=self.step("mul", a.step, factor))
        return _Reg(self.integer(op, a.text, b.text), step=self.step(op, a.step, b.step))

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
                ones = _fill(_TYPES[source], 1, lanes)
                flags = f"<{lanes} x i1> {self.mask}"
                texts[1] = self.new(f"select {flags}, {kind} {texts[1]}, {kind} {ones}")
            return self.new(f"{'s' if signed else 'u'}{op} {kind} {texts[0]}, {texts[1]}")
        if op == "shr":
            return self.new(f"{'ashr' if signed else 'lshr'} {kind} {texts[0]}, {texts[1]}")
        if op == "neg":
            return self.new(f"sub {kind} {_zero(_TYPES[source], lanes)}, {texts[0]}")
        if op == "not":
            ones = "true" if source == "bool" else "-1"
            return self.new(f"xor {kind} {texts[0]}, {_fill(_TYPES[source], ones, lanes)}")
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
        if self.machine.vector == 64 and lanes * WIDTH[dtype] == 64:
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
            bits = self.new(f"shl {word} {bits}, {_fill(f'i{WIDTH[dtype] * 8}', shift, lanes)}")
            bits = self.new(f"add {word} {bits}, {_fill(f'i{WIDTH[dtype] * 8}', one, lanes)}")
            power = self.new(f"bitcast {word} {bits} to {kind}")
            x = self.new(f"fmul {kind} {x}, {power}")
        return x

    def real(self, number: float, dtype: str, lanes: int) -> str:
        """A floating constant in every lane."""
        return _fill(_TYPES[dtype], _real(number, dtype), lanes)

    def intrinsic(
        self, name: str, dtype: str, lanes: int, texts: Sequence[str], extra: str = ""
    ) -> str:
        kind = self.type(dtype, lanes)
        scalar = _suffix(_TYPES[dtype])
        full = f"@llvm.{name}.{f'v{lanes}' if lanes else ''}{scalar}"
        types = [kind] * len(texts) + ([extra.split()[0]] if extra else [])
        self.module.declare(full, kind, types)
        given = ", ".join([f"{kind} {t}" for t in texts] + ([extra] if extra else []))
        return self.new(f"call {kind} {full}({given})")

    def cast(self, text: str, source: str, target: str, lanes: int) -> str:
        a, b = self.type(source, lanes), self.type(target, lanes)
        if target == "bool":
            zero = _zero(_TYPES[source], lanes)
            return self.new(f"{'fcmp une' if source in FLOATS else 'icmp ne'} {a} {text}, {zero}")
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


def _constant(v: Value) -> str:
    number = v.args[0]
    if v.dtype == "bool":
        return "true" if number else "false"
    return _real(number, v.dtype) if v.dtype in FLOATS else str(number)


def _real(number: float, dtype: str) -> str:
    if dtype == "f32":
        try:
            number = struct.unpack("f", struct.pack("f", number))[0]
        except OverflowError:
            number = float("inf") if number > 0 else float("-inf")
    return f"0x{struct.unpack('>Q', struct.pack('>d', number))[0]:016X}"


def _suffix(kind: str) -> str:
    return {"float": "f32", "double": "f64", "half": "f16"}.get(kind, kind)


def _ramp(kind: str, lanes: int) -> str:
    return "<" + ", ".join(f"{kind} {i}" for i in range(lanes)) + ">"


def _fill(kind: str, number: Any, lanes: int) -> str:
    return f"splat ({kind} {number})" if lanes else str(number)


def _zero(kind: str, lanes: int) -> str:
    return "zeroinitializer" if lanes else ("0.0" if kind in ("float", "double") else "0")


def _paired(first: Any, second: Any) -> bool:
    """Whether two statements touch neighbours in one buffer; see Note [pairs]."""
    if isinstance(first, Store) and isinstance(second, Store):
        a, b = first.offset, second.offset
        same = first.buffer is second.buffer
    elif isinstance(first, Value) and isinstance(second, Value) and first.op == second.op == "load":
        a, b = first.args[1], second.args[1]
        same = first.args[0] is second.args[0] and first.args[2] == second.args[2] == 0
    else:
        return False
    if not same or b.op != "add" or b.args[0] is not a:
        return False
    one: Value = b.args[1]
    return one.op == "const" and one.args[0] == 1
