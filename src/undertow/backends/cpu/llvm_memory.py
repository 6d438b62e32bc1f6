"""LLVM IR text that reads and writes memory: loads, stores, gathers, pairs; see Note [lanes]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...kernel.ir import STREAM, WIDTH, Buffer, IRError, Prefetch, Store, Value
from . import halves
from .llvm_values import IN_MEMORY, TYPES, Reg, Values, suffix, zero


class Memory(Values):
    """Values that come from memory, and go there."""

    def load(self, buffer: Buffer, offset: Value, ahead: int) -> Reg:
        at = self.reg(offset)
        kind = IN_MEMORY[buffer.dtype]
        if ahead:
            # One instruction shifts a pair of vectors, if they are as long as a line of the cache.
            if at.step == 1 and self.lanes * WIDTH[buffer.dtype] == STREAM:
                return self.shifted(buffer, at, ahead)
            at = at._replace(text=self.integer("add", at.text, str(ahead)))
        if not at.varying and at.step == 0:
            place = self.new(f"getelementptr {kind}, ptr %{buffer.name}, i64 {at.text}")
            return Reg(self.widen(self.new(f"load {kind}, ptr {place}"), buffer.dtype, 0))
        lanes = self.lanes
        if at.step == 1:
            text = self.contiguous(buffer, at.text, self.mask)
        elif at.step == 2:
            text = self.every_other(buffer, at.text)
        else:
            text = self.gather(self.places(buffer, at, kind), kind, WIDTH[buffer.dtype])
        return Reg(self.widen(text, buffer.dtype, lanes), varying=True)

    def contiguous(self, buffer: Buffer, offset: str, mask: str) -> str:
        """A vector of neighbours; zero in lanes that are masked off."""
        lanes, kind, align = self.lanes, IN_MEMORY[buffer.dtype], WIDTH[buffer.dtype]
        vector = f"<{lanes} x {kind}>"
        place = self.new(f"getelementptr {kind}, ptr %{buffer.name}, i64 {offset}")
        if not mask:
            return self.new(f"load {vector}, ptr {place}, align {align}")
        name = f"@llvm.masked.load.v{lanes}{suffix(kind)}.p0"
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
        kind = IN_MEMORY[buffer.dtype]
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
                self.values[id(v)] = Reg(self.widen(text, buffer.dtype, lanes), varying=True)
            return True
        re, im = (
            self.narrow(self.vector(self.reg(s.value), s.value.dtype), buffer.dtype, lanes)
            for s in (first, second)
        )
        for half, offset, mask in zip((0, lanes // 2), offsets, masks, strict=True):
            text = shuffled(re, im, [half + i // 2 + (i % 2) * lanes for i in every])
            place = self.new(f"getelementptr {kind}, ptr %{buffer.name}, i64 {offset}")
            if mask:
                name = f"@llvm.masked.store.v{lanes}{suffix(kind)}.p0"
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
        vector = f"<{lanes} x {IN_MEMORY[buffer.dtype]}>"
        return self.new(f"shufflevector {vector} {low}, {vector} {high}, <{lanes} x i32> <{picks}>")

    def shifted(self, buffer: Buffer, at: Reg, ahead: int) -> Reg:
        """The elements `ahead` of those at an offset, from the vectors that begin there."""
        lanes = self.lanes
        vector, first = f"<{lanes} x {IN_MEMORY[buffer.dtype]}>", ahead - ahead % lanes
        text = self.contiguous(buffer, self.integer("add", at.text, str(first)), "")
        if ahead > first:
            more = self.contiguous(buffer, self.integer("add", at.text, str(first + lanes)), "")
            picks = ", ".join(f"i32 {ahead - first + j}" for j in range(lanes))
            text = self.new(
                f"shufflevector {vector} {text}, {vector} {more}, <{lanes} x i32> <{picks}>"
            )
        return Reg(self.widen(text, buffer.dtype, lanes), varying=True)

    def gather(self, places: str, kind: str, align: int) -> str:
        """What lies at the lanes' addresses; zero in lanes that are masked off."""
        lanes = self.lanes
        vector = f"<{lanes} x {kind}>"
        name = f"@llvm.masked.gather.v{lanes}{suffix(kind)}.v{lanes}p0"
        types = [f"<{lanes} x ptr>", "i32", f"<{lanes} x i1>", vector]
        self.module.declare(name, vector, types)
        return self.new(
            f"call {vector} {name}(<{lanes} x ptr> {places}, i32 {align}, "
            f"<{lanes} x i1> {self.mask or 'splat (i1 true)'}, "
            f"{vector} zeroinitializer)"
        )

    def places(self, buffer: Buffer, at: Reg, kind: str) -> str:
        offsets = f"<{self.lanes} x i64> {self.vector(at, 'i64')}"
        return self.new(f"getelementptr {kind}, ptr %{buffer.name}, {offsets}")

    def store(self, s: Store) -> None:
        at = self.reg(s.offset)
        kind = IN_MEMORY[s.buffer.dtype]
        if not at.varying and at.step == 0:
            place = self.new(f"getelementptr {kind}, ptr %{s.buffer.name}, i64 {at.text}")
            value = self.reg(s.value)
            if value.varying:  # lanes that store at one offset store one value: the first does
                vector = self.type(s.value.dtype, self.lanes)
                value = Reg(self.new(f"extractelement {vector} {value.text}, i64 0"))
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
            name, pointer, places = f"@llvm.masked.store.v{lanes}{suffix(kind)}.p0", "ptr", place
        else:
            name = f"@llvm.masked.scatter.v{lanes}{suffix(kind)}.v{lanes}p0"
            pointer, places = f"<{lanes} x ptr>", self.places(s.buffer, at, kind)
        self.module.declare(name, "void", [vector, pointer, "i32", f"<{lanes} x i1>"])
        self.line(
            f"call void {name}({vector} {text}, {pointer} {places}, i32 {align}, "
            f"<{lanes} x i1> {self.mask or 'splat (i1 true)'})"
        )

    def store_every_other(self, buffer: Buffer, offset: str, text: str) -> None:
        """Store a vector with step two as two, which leave what lies between as it is."""
        lanes, kind = self.lanes, IN_MEMORY[buffer.dtype]
        vector, flags = f"<{lanes} x {kind}>", f"<{lanes} x i1>"
        even = "<" + ", ".join(f"i1 {'false' if j % 2 else 'true'}" for j in range(lanes)) + ">"
        name = f"@llvm.masked.store.v{lanes}{suffix(kind)}.p0"
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
        kind = IN_MEMORY[s.buffer.dtype]
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
            return self.new(f"icmp ne {byte} {text}, {zero('i8', lanes)}")
        if dtype in ("f16", "bf16"):
            native = self.module.machine.half
            return halves.widen(self.new, text, IN_MEMORY[dtype], lanes, native)
        return text

    def narrow(self, text: str, dtype: str, lanes: int) -> str:
        """A value as a store writes it."""
        if dtype == "bool":
            byte = f"<{lanes} x i8>" if lanes else "i8"
            return self.new(f"zext {self.type('bool', lanes)} {text} to {byte}")
        if dtype in ("f16", "bf16"):
            native = self.module.machine.half
            return halves.narrow(self.new, text, IN_MEMORY[dtype], lanes, native)
        return text

    def lookup(self, v: Value) -> Reg:
        """An entry of a constant table, which becomes a global of the module."""
        entries, index = v.args
        table = self.module.constants(entries, v.dtype)
        at = self.reg(index)
        kind = TYPES[v.dtype]
        if not at.varying and at.step == 0:
            place = self.new(f"getelementptr {kind}, ptr {table}, i64 {at.text}")
            return Reg(self.new(f"load {kind}, ptr {place}"))
        offsets = f"<{self.lanes} x i64> {self.vector(at, 'i64')}"
        places = self.new(f"getelementptr {kind}, ptr {table}, {offsets}")
        return Reg(self.gather(places, kind, WIDTH[v.dtype]), varying=True)


def paired(first: Any, second: Any) -> bool:
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
