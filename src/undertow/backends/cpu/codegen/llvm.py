"""The loop IR as LLVM IR text, with vector loops in the lanes of this machine.

Note [lanes]
Inside a vector loop a value is uniform (one scalar for all lanes), affine (an integer that grows by
a fixed step from lane to lane, as offsets do) or varying (a vector). An affine offset with step one
is a plain vector load or store, any other a gather or scatter, but for loads with step minus one,
which are turned round, and with step two: those are two vectors and a shuffle, which reads what
lies between the elements too, not beyond the last.
The last iterations, too few for a vector, run as one vector under a mask, so an element's value
never depends on where it stands.

Note [pairs]
Complex numbers lie as pairs: two loads, or two stores, that stand one after the other, at offsets
with step two of which the second is the first plus one. They are two whole vectors, and two
shuffles that take the parts out of them or lay them side by side; such stores may stream, too.

Note [transposes]
As many loads, or stores, as there are lanes that stand one after the other, at offsets of which
each is the one before plus one: whatever the step between lanes, each lane's elements are a whole
vector in memory, and the vectors are transposed in registers, where it would take a gather each.

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

from collections.abc import Callable, Sequence
from typing import Any

from ....kernel.ir import (
    Branch,
    Each,
    Function,
    Invoke,
    Loop,
    Moved,
    Prefetch,
    Set,
    State,
    Store,
    Value,
    set_inside,
    traced_combine,
)
from .llvm_memory import Memory, neighbours
from .llvm_values import IN_MEMORY, TYPES, Machine, Module, Reg


def emit(f: Function, machine: Machine, packed: bool = False) -> str:
    """The module of LLVM IR that exports `f`; for `packed` see Note [packed arguments]."""
    return _text(Module(f, machine), packed)


def _text(module: Module, packed: bool) -> str:
    arguments = [(f"%{b.name}", "ptr") for b in module.f.buffers]
    arguments += [(f"%{p.name}", TYPES[p.dtype]) for p in module.f.params]
    bodies = [
        _job(module, i, s, arguments)
        for i, s in enumerate(module.f.body)
        if isinstance(s, Loop) and s.kind == "parallel"
    ]
    head = ", ".join(f"{t} {a}" for a, t in [("%pool", "ptr"), *arguments])
    e = Emitter(module)
    if bodies:
        e.line(f"%context = alloca [{len(arguments)} x i64], align 8", alloca=True)
        for i, (a, t) in enumerate(arguments):
            place = e.new(f"getelementptr i64, ptr %context, i64 {i}")
            e.line(f"store {t} {a}, ptr {place}")
    e.define_params()
    names = iter(bodies)
    for s in module.f.body:
        if isinstance(s, Loop) and s.kind == "parallel":
            e.run_job(next(names), e.scalar(s.extent))
        else:
            e.statement(s)
    e.end()
    name = f"@{module.f.name}"
    if packed:
        module.functions.append(_unpacking(name, [("%pool", "ptr"), *arguments]))
        name = f"internal void {name}.unpacked"
    else:
        name = f"void {name}"
    main = f"define {name}({head}) {{\n{e.text()}\n}}"
    return "\n\n".join([*module.functions, main, *module.globals()])


def _job(module: Module, number: int, loop: Loop, arguments: list[tuple[str, str]]) -> str:
    name = f"@{module.f.name}.job{number}"
    e = Emitter(module)
    e.thread = "%thread"
    for i, (a, t) in enumerate(arguments):
        place = e.new(f"getelementptr i64, ptr %context, i64 {i}")
        e.line(f"{a} = load {t}, ptr {place}")
    e.define_params()
    for s in module.f.body:
        if s is loop:
            break
        if isinstance(s, Value) and s.op != "load" and s.op != "get":
            e.statement(s)
    e.counted(loop, "%begin", "%end")
    e.end()
    head = "ptr %context, i64 %begin, i64 %end, i64 %thread"
    module.functions.append(f"define internal void {name}({head}) noinline {{\n{e.text()}\n}}")
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


class Emitter(Memory):
    """One LLVM function: its statements, loops and states."""

    # Statements ---------------------------------------------------------------------------
    def block(self, body: Sequence[Any]) -> None:
        at = 0
        while at < len(body):
            done = self.together(body, at)
            if not done:
                self.statement(body[at])
            at += done or 1

    def together(self, body: Sequence[Any], at: int) -> int:
        """How many statements were taken as one; see Note [pairs] and Note [transposes]."""
        if not self.lanes:
            return 0
        two = neighbours(body, at, 2)
        if two and self.pair(*two):
            return 2
        many = two and neighbours(body, at, self.lanes)
        return self.lanes if many and self.transpose(many) else 0

    def statement(self, s: Any) -> None:
        if isinstance(s, Value):
            self.values[id(s)] = self.compute(s)
        elif isinstance(s, Store):
            self.store(s)
        elif isinstance(s, Prefetch):
            self.prefetch(s)
        elif isinstance(s, Moved):
            there = f"getelementptr i8, ptr {self.pointer(s.origin)}, i64 {self.scalar(s.bytes)}"
            self.values[id(s)] = Reg(self.new(there))
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
                kind, at = IN_MEMORY[a[0].dtype], self.scalar(a[1])
                place = self.new(f"getelementptr {kind}, ptr {self.pointer(a[0])}, i64 {at}")
                given.append(f"ptr {place}")
            else:
                given.append(f"{TYPES[a.dtype]} {self.scalar(a)}")
        self.line(f"call void {kernel}({', '.join(given)})")

    def counted(self, loop: Loop, begin: str, end: str) -> None:
        """A loop over [begin, end) in order."""

        def body(i: str) -> None:
            self.values[id(loop.index)] = Reg(i)
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

    def bits(self, condition: Value, before: int) -> str:
        """A bit for each lane with a condition, shifted by so many lanes."""
        lanes = self.lanes
        text, flags = self.vector(self.reg(condition), "bool"), f"<{lanes} x i1>"
        if self.mask:
            text = self.new(f"and {flags} {text}, {self.mask}")
        bits = self.new(f"bitcast {flags} {text} to i{lanes}")
        if lanes < 64:
            bits = self.new(f"zext i{lanes} {bits} to i64")
        return self.new(f"shl i64 {bits}, {before}") if before else bits

    def each(self, s: Each, first: str, bits: str) -> None:
        """The lanes from `first` on whose bits are set, one after the other."""
        before, head, inside, latch, after = (
            self.name(part) for part in ("before", "each", "lane", "latch", "after")
        )
        left, following = self.name("bits"), self.name("next")
        self.line(f"br label {before}")
        self.label(before)
        self.line(f"br label {head}")
        self.label(head)
        self.line(f"{left} = phi i64 [{bits}, {before}], [{following}, {latch}]")
        more = self.new(f"icmp ne i64 {left}, 0")
        self.line(f"br i1 {more}, label {inside}, label {after}")
        self.label(inside)
        name = self.module.declare("@llvm.cttz.i64", "i64", ["i64", "i1"])
        lane = self.new(f"call i64 {name}(i64 {left}, i1 true)")
        self.values[id(s.index)] = Reg(self.new(f"add nsw i64 {first}, {lane}"))
        self.block(s.body)
        self.line(f"br label {latch}")
        self.label(latch)
        less = self.new(f"sub i64 {left}, 1")
        self.line(f"{following} = and i64 {left}, {less}")
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
        last = loop.body[-1] if loop.body and isinstance(loop.body[-1], Each) else None
        body = loop.body[:-1] if last else loop.body
        outer = [s for s in set_inside(loop.body) if id(s) in self.states]
        scalars = {id(s): self.states[id(s)][0] for s in outer}
        copies = {id(s): [self.lane_state(s, lanes) for _ in range(loop.unroll)] for s in outer}
        rest = self.new(f"srem i64 {extent}, {wide}")
        whole = self.new(f"sub nsw i64 {extent}, {rest}")
        self.lanes = lanes

        def once(i: str, copy: int) -> None:
            for s in outer:
                self.states[id(s)] = (copies[id(s)][copy], True)
            self.values[id(loop.index)] = Reg(i, step=1)
            self.block(body)

        def full(i: str, copies: int = loop.unroll) -> None:
            found = "0"
            for copy in range(copies):
                self.before = lanes * copy
                once(self.new(f"add nsw i64 {i}, {lanes * copy}") if copy else i, copy)
                if last:
                    bits = self.bits(last.condition, self.before)
                    found = self.new(f"or i64 {found}, {bits}")
            self.before = 0
            if last:
                self.each(last, i, found)

        def partial(i: str) -> None:
            left = self.new(f"sub nsw i64 {extent}, {i}")
            self.last = self.new(f"sub nsw i64 {left}, 1")
            left = self.new(f"trunc i64 {left} to i32")
            self.left = self.splat(left, "i32", lanes)
            self.mask = self.below(self.left)
            full(i, 1)
            self.mask = ""

        self.steps("0", whole, wide, full)
        if loop.unroll > 1:
            done, rest = whole, self.new(f"srem i64 {extent}, {lanes}")
            whole = self.new(f"sub nsw i64 {extent}, {rest}")
            self.steps(done, whole, lanes, lambda i: full(i, 1))
        self.steps(whole, extent, lanes, partial)
        self.lanes = 0
        for s in outer:
            self.states[id(s)] = (scalars[id(s)], False)
            self.fold(s, copies[id(s)], lanes)

    def lane_state(self, s: State, lanes: int) -> list[str]:
        """Variables of a state for every lane, at their initial values."""
        variables = []
        for init, start in zip(s.inits, self.initial[id(s)], strict=True):
            variable = self.name("state")
            kind = self.type(init.dtype, lanes)
            self.line(f"{variable} = alloca {kind}", alloca=True)
            filled = self.splat(start.text, TYPES[init.dtype], lanes)
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
            self.values[id(p)] = Reg(text, varying=lanes > 0)
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
    # Operations ---------------------------------------------------------------------------
    def compute(self, v: Value) -> Reg:
        if v.op == "load":
            return self.load(*v.args)
        if v.op == "thread":
            return Reg(self.thread)
        if v.op == "lanes":
            return Reg(str(self.module.lanes))
        if v.op == "get":
            state, i = v.args
            variables, wide = self.states[id(state)]
            kind = self.type(v.dtype, self.lanes if wide else 0)
            return Reg(self.new(f"load {kind}, ptr {variables[i]}"), varying=wide)
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
            return Reg(self.new(f"trunc i64 {regs[0].text} to i32"), step=regs[0].step)
        lanes = self.lanes if any(r.varying or r.step != 0 for r in regs) else 0
        return Reg(self.operation(v, self.operands(v.args, lanes), lanes), varying=lanes > 0)
