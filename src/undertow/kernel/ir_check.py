"""The checker of the loop IR: what a kernel must not do; see the notes in `ir.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .ir import (
    MEMORY,
    OPERATIONS,
    SCALARS,
    WIDTH,
    Barrier,
    Branch,
    Each,
    Function,
    Invoke,
    IRError,
    Loop,
    Moved,
    Prefetch,
    Set,
    State,
    Store,
    Value,
)


def check(f: Function) -> None:
    """Raise IRError for a kernel that breaks a rule; on in tests, it costs as much as emitting."""
    names = [b.name for b in f.buffers] + [p.name for p in f.params]
    if len(set(names)) != len(names):
        raise IRError(f"{f.name}: two arguments share a name: {names}")
    for b in f.buffers:
        if b.dtype not in MEMORY:
            raise IRError(f"{f.name}: buffer {b.name} of unknown type {b.dtype}")
    for p in f.params:
        if p.dtype not in (f.index, "i64", "f32", "f64", "u32"):
            raise IRError(f"{f.name}: parameter {p.name} of type {p.dtype}")
    _Checker(f).block(f.body, set(map(id, f.params)), set(), ())


class _Checker:
    def __init__(self, f: Function) -> None:
        self.f = f
        self.memory = [*f.buffers, *f.tiles, *f.views]
        self.impure: set[int] = set()  # values that depend on memory or a state

    def fail(self, what: str) -> None:
        raise IRError(f"{self.f.name}: {what}\n{self.f}")

    def known(self, v: Value, seen: set[int], dtype: str | None = None) -> None:
        if v.op != "const" and id(v) not in seen:
            self.fail(f"{v!r} is used outside the block that computes it")
        if dtype is not None and v.dtype != dtype:
            self.fail(f"{v!r} is {v.dtype} where {dtype} is expected")

    def block(
        self, body: Sequence[Any], seen: set[int], states: set[int], kinds: tuple[str, ...]
    ) -> None:
        seen, states, count = set(seen), set(states), len(self.memory)
        for s in body:
            if isinstance(s, Value):
                self.operation(s, seen, states)
                seen.add(id(s))
                if s.op == "thread" and "parallel" not in kinds:
                    self.fail("the number of the thread is asked for outside a parallel loop")
                if s.op in ("load", "get") or any(
                    isinstance(a, Value) and id(a) in self.impure for a in s.args
                ):
                    self.impure.add(id(s))
            elif isinstance(s, Store):
                if s.buffer not in self.memory or not s.buffer.written:
                    self.fail(f"store to {s.buffer.name}, which is not declared as written")
                self.known(s.offset, seen, self.f.index)
                self.known(s.value, seen, s.buffer.scalar)
            elif isinstance(s, Moved):
                if s.origin not in self.memory:
                    self.fail(f"{s.origin.name} is moved, which is no argument")
                self.known(s.bytes, seen, "i64")
                self.memory.append(s)
            elif isinstance(s, Prefetch):
                if s.buffer not in self.memory:
                    self.fail(f"prefetch from {s.buffer.name}, which is no argument")
                self.known(s.offset, seen, self.f.index)
            elif isinstance(s, Barrier):
                if "parallel" not in kinds:
                    self.fail("threads wait for each other outside a parallel loop")
            elif isinstance(s, Invoke):
                self.known(s.address, seen, "i64")
                for a in s.args:
                    self.known(a[1] if isinstance(a, tuple) else a, seen)
                if "vector" in kinds:
                    self.fail("a kernel is run inside a vector loop")
            elif isinstance(s, State):
                for init in s.inits:
                    self.known(init, seen)
                states.add(id(s))
            elif isinstance(s, Set):
                if id(s.state) not in states:
                    self.fail(f"state {s.state.name} is set outside its block")
                for value, init in zip(s.values, s.state.inits, strict=True):
                    self.known(value, seen, init.dtype)
            elif isinstance(s, Branch):
                self.known(s.condition, seen, "bool")
                self.block(s.body, seen, states, (*kinds, "branch"))
            elif isinstance(s, Each):
                self.known(s.condition, seen, "bool")
                if kinds[-1:] != ("vector",) or s is not body[-1]:
                    self.fail("one lane after the other, but not at the end of a vector loop")
                self.block(s.body, seen | {id(s.index)}, states, (*kinds, "each"))
            else:
                self.loop(s, seen, states, kinds)
        del self.memory[count:]

    def loop(self, s: Loop, seen: set[int], states: set[int], kinds: tuple[str, ...]) -> None:
        self.known(s.extent, seen, self.f.index)
        if s.kind == "parallel" and kinds:
            self.fail("a parallel loop stands inside another block")
        if s.kind == "vector" and "vector" in kinds:
            self.fail("a vector loop stands inside another")
        known = seen | {id(s.index)}
        if s.kind == "parallel":
            # Parallel iterations share no state, see Note [loops], and each thread computes what
            # stands before the loop again, as far as that is pure.
            known, states = known - self.impure, set()
        self.block(s.body, known, states, (*kinds, s.kind))

    def operation(self, v: Value, seen: set[int], states: set[int]) -> None:
        if v.op == "load":
            buffer, offset, ahead = v.args
            if ahead < 0:
                self.fail(f"load from {buffer.name} behind its offset")
            if buffer not in self.memory:
                self.fail(f"load from {buffer.name}, which is no argument")
            self.known(offset, seen, self.f.index)
        elif v.op in ("thread", "lanes"):
            pass
        elif v.op == "get":
            if id(v.args[0]) not in states:
                self.fail(f"state {v.args[0].name} is read outside its block")
        elif v.op == "lookup":
            self.known(v.args[1], seen, "i64")
        elif v.op == "select":
            self.known(v.args[0], seen, "bool")
            self.known(v.args[1], seen, v.dtype)
            self.known(v.args[2], seen, v.dtype)
        elif v.op in ("cast", "bitcast"):
            self.known(v.args[0], seen)
            if v.dtype not in SCALARS:
                self.fail(f"{v.op} to {v.dtype}, which is no type of a value")
            if v.op == "bitcast" and WIDTH[v.dtype] != WIDTH[v.args[0].dtype]:
                self.fail(f"bitcast of {v.args[0]!r} from {v.args[0].dtype} to {v.dtype}")
        elif v.op in OPERATIONS:
            count, types = OPERATIONS[v.op]
            if len(v.args) != count or v.args[0].dtype not in types:
                self.fail(f"{v.op} of {', '.join(f'{a!r}: {a.dtype}' for a in v.args)}")
            for a in v.args:
                self.known(a, seen, v.args[0].dtype)
        else:
            self.fail(f"unknown operation {v.op}")
