"""The loop IR as text of a dialect: iterations of the parallel loop as groups of threads.

Note [threads of a group]
What stands in the parallel loop is computed by all threads of the group alike, and what it stores
is stored by the first one. The iterations of a vector loop are dealt out to the threads. A state
that a vector loop sets is one per thread there; afterwards they are combined as a tree, in a fixed
order, in memory of the group, and all threads see the result. A vector loop with as many iterations
as threads is no loop at all, and only there may threads wait for each other.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...kernel.ir import (
    COMPARISONS,
    Barrier,
    Branch,
    Buffer,
    Function,
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
from .dialect import Binding, Dialect, Shared, Table

_CODES = {"i32": "i", "u32": "I", "f32": "f", "i64": "q", "u64": "Q", "f64": "d"}


class Text(NamedTuple):
    """A kernel in a dialect."""

    text: str
    entry: str
    bindings: tuple[bool, ...]  # whether each distinct buffer is written
    group: int
    words: int
    pack: struct.Struct  # of the buffers' offsets in elements, and the parameters


def render(f: Function, dialect: Dialect, sharing: Sequence[int], group: int) -> Text:
    """`f` for groups of so many threads; `sharing` tells the binding of each of its buffers."""
    return _Renderer(f, dialect, sharing, group).render()


class _Renderer:
    def __init__(self, f: Function, dialect: Dialect, sharing: Sequence[int], group: int) -> None:
        self.f, self.d, self.group = f, dialect, group
        self.bindings = []
        for number in range(max(sharing, default=-1) + 1):
            seen = [b for b, s in zip(f.buffers, sharing, strict=True) if s == number]
            types = tuple(dict.fromkeys(b.dtype for b in seen))
            self.bindings.append(Binding(f"b{number}", types, any(b.written for b in seen)))
        self.places = {
            id(b): (self.bindings[s], f"offset{i}")
            for i, (b, s) in enumerate(zip(f.buffers, sharing, strict=True))
        }
        self.lines: list[str] = []
        self.indent = "  "
        self.renamed: dict[tuple[str, int], str] = {}  # variables of states, for each thread
        self.slots: dict[tuple[str, int], Shared] = {}
        self.tables: dict[tuple[Any, str], Table] = {}
        self.alone = True  # all threads compute alike
        self.declared: set[int] = set()  # states

    def render(self) -> Text:
        f, d = self.f, self.d
        words = 0
        for i, _ in enumerate(f.buffers):
            self.line(d.let("i32", f"offset{i}", d.param("i32", words)))
            words += 1
        codes = "i" * words
        for p in f.params:
            self.line(d.let(p.dtype, p.name, d.param(p.dtype, words)))
            codes += _CODES[p.dtype]
            words += struct.calcsize(_CODES[p.dtype]) // 4
        self.line(d.let("i32", "thread", d.thread()))
        words += len(d.tail) // 4
        loops = [s for s in f.body if isinstance(s, Loop)]
        if len(loops) != 1 or loops[0].kind != "parallel" or loops[0] is not f.body[-1]:
            raise IRError(f"{f.name}: a kernel of groups is one parallel loop\n{f}")
        self.block(f.body)
        shared = [*(Shared(t.name, t.dtype, t.count) for t in f.tiles), *self.slots.values()]
        tables = list(self.tables.values())
        text = d.kernel(f.name, self.bindings, words, shared, tables, self.group, self.lines)
        flags = tuple(b.written for b in self.bindings)
        return Text(text, f.name, flags, self.group, words, struct.Struct("<" + codes))

    def line(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def open(self, head: str) -> None:
        self.line(head)
        self.indent += "  "

    def close(self) -> None:
        self.indent = self.indent[:-2]
        self.line("}")

    # Statements -------------------------------------------------------------------------------
    def block(self, body: Sequence[Any]) -> None:
        d = self.d
        for s in body:
            if isinstance(s, Value):
                self.line(d.let(s.dtype, s.name, self.formula(s)))
            elif isinstance(s, Store):
                self.store(s)
            elif isinstance(s, State):
                self.declared.add(id(s))
                for i, init in enumerate(s.inits):
                    self.line(d.var(init.dtype, f"{s.name}_{i}", self.value(init)))
            elif isinstance(s, Set):
                for i, value in enumerate(s.values):
                    self.line(d.set(value.dtype, self.variable(s.state, i), self.value(value)))
            elif isinstance(s, Branch):
                self.open(d.branch(self.value(s.condition)))
                self.block(s.body)
                self.close()
            elif isinstance(s, Barrier):
                self.line(d.barrier())
            elif isinstance(s, Loop):
                self.loop(s)
            elif not isinstance(s, Prefetch):
                raise IRError(f"{self.f.name}: {type(s).__name__} in a kernel of groups")

    def store(self, s: Store) -> None:
        if self.alone:
            self.open(self.d.branch(self.d.operation("eq", "i32", ("thread", "0"))))
        value = self.value(s.value)
        if s.buffer.count:
            at = f"{s.buffer.name}[{self.value(s.offset)}]"
            self.line(self.d.set(s.buffer.dtype, at, value))
        else:
            binding, index = self.place(s.buffer, s.offset)
            self.line(self.d.store(binding, s.buffer.dtype, index, value))
        if self.alone:
            self.close()

    def loop(self, s: Loop) -> None:
        before, self.d.precise = self.d.precise, s.exact
        self.written(s)
        self.d.precise = before

    def written(self, s: Loop) -> None:
        d, kind, name = self.d, s.index.dtype, s.index.name
        extent = self.value(s.extent)
        if s.kind == "loop":
            self.open(d.loop(kind, name, d.constant(0, kind), extent, d.constant(1, kind)))
            self.block(s.body)
            self.close()
        elif s.kind == "parallel":
            self.line(d.let(kind, name, d.group()))
            self.open(d.branch(d.operation("lt", kind, (name, extent))))
            self.block(s.body)
            self.close()
        else:
            self.threads(s, extent)

    def threads(self, s: Loop, extent: str) -> None:
        """A vector loop; see Note [threads of a group]."""
        d, kind, name = self.d, s.index.dtype, s.index.name
        states = [state for state in set_inside(s.body) if id(state) in self.declared]
        for state in states:
            for i, init in enumerate(state.inits):
                own = f"{state.name}_{i}_own{len(self.lines)}"
                self.line(d.var(init.dtype, own, self.value(init)))
                self.renamed[state.name, i] = own
        self.alone = False
        if s.extent.op == "const" and s.extent.args[0] == self.group:
            self.open("{")
            self.line(d.let(kind, name, "thread"))
        else:
            self.open(d.loop(kind, name, "thread", extent, d.constant(self.group, kind)))
        self.block(s.body)
        self.close()
        self.alone = True
        for state in states:
            self.joined(state)

    def joined(self, state: State) -> None:
        """Combine what the threads have found with what the state was before."""
        d = self.d
        count = len(state.inits)
        own = [self.renamed.pop((state.name, i)) for i in range(count)]
        tiles = [self.slot(init.dtype, i) for i, init in enumerate(state.inits)]
        for tile, name in zip(tiles, own, strict=True):
            self.line(d.set(tile.dtype, f"{tile.name}[thread]", name))
        self.line(d.barrier())
        width = self.group // 2
        while width:
            self.open(d.branch(d.operation("lt", "i32", ("thread", d.constant(width, "i32")))))
            right = [f"{t.name}[thread + {width}]" for t in tiles]
            found = self.combined(state, [f"{t.name}[thread]" for t in tiles], right)
            for tile, value in zip(tiles, found, strict=True):
                self.line(d.set(tile.dtype, f"{tile.name}[thread]", value))
            self.close()
            self.line(d.barrier())
            width //= 2
        self.open("{")
        before = [self.variable(state, i) for i in range(count)]
        found = self.combined(state, before, [f"{t.name}[0]" for t in tiles])
        for i, (name, value) in enumerate(zip(before, found, strict=True)):
            self.line(d.set(state.inits[i].dtype, name, value))
        self.close()
        self.line(d.barrier())

    def combined(self, state: State, left: list[str], right: list[str]) -> list[str]:
        """The statements of two of a state's values combined, and their names."""
        body, params, results = traced_combine(state)
        for p, text in zip(params, [*left, *right], strict=True):
            self.line(self.d.let(p.dtype, p.name, text))
        self.block(body)
        return [self.value(r) for r in results]

    def slot(self, dtype: str, number: int) -> Shared:
        """The memory of a group in which threads combine; `number` tells a state's variables."""
        made = Shared(f"tree_{dtype}_{number}", dtype, self.group)
        return self.slots.setdefault((dtype, number), made)

    def table(self, entries: tuple[float, ...], dtype: str) -> Table:
        """The table of these entries; kernels stand in one text, so its name is the kernel's."""
        made = Table(f"{self.f.name}_table{len(self.tables)}", dtype, entries)
        return self.tables.setdefault((entries, dtype), made)

    def variable(self, state: State, i: int) -> str:
        return self.renamed.get((state.name, i), f"{state.name}_{i}")

    # Values -----------------------------------------------------------------------------------
    def value(self, v: Value) -> str:
        return self.d.constant(v.args[0], v.dtype) if v.op == "const" else v.name

    def index(self, v: Value) -> str:
        """A value as an i32."""
        return self.value(v) if v.dtype == "i32" else self.d.cast(v.dtype, "i32", self.value(v))

    def place(self, buffer: Buffer, offset: Value, ahead: int = 0) -> tuple[Binding, str]:
        binding, start = self.places[id(buffer)]
        further = f" + {ahead}" if ahead else ""
        return binding, f"{start} + {self.index(offset)}{further}"

    def formula(self, v: Value) -> str:
        d, args = self.d, v.args
        if v.op == "load":
            buffer, offset, ahead = args
            if buffer.count:
                return f"{buffer.name}[{self.value(offset)}]"
            binding, index = self.place(buffer, offset, ahead)
            return d.load(binding, buffer.dtype, index)
        if v.op == "get":
            return self.variable(*args)
        if v.op == "any":  # a thread is alone with its lane
            return self.value(args[0])
        if v.op == "lookup":
            return d.lookup(self.table(args[0], v.dtype), self.index(args[1]))
        if v.op == "select":
            return d.select(v.dtype, *map(self.value, args))
        if v.op == "cast":
            return d.cast(args[0].dtype, v.dtype, self.value(args[0]))
        if v.op == "bitcast":
            return d.bitcast(args[0].dtype, v.dtype, self.value(args[0]))
        if v.op in COMPARISONS or v.dtype == args[0].dtype:
            return d.operation(v.op, args[0].dtype, [self.value(a) for a in args])
        raise IRError(f"{self.f.name}: {v.op} in a kernel of groups")
