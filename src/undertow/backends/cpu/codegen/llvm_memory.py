"""LLVM IR text that reads and writes memory: loads, stores, gathers, pairs; see Note [lanes]."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ....kernel.ir import STREAM, WIDTH, Buffer, IRError, Moved, Prefetch, Store, Value
from . import halves
from .llvm_values import IN_MEMORY, TYPES, Reg, Values, suffix, zero

HALVES = ("f16", "bf16")
_TURNED = ("f32", "f64", "i32", "i64", *HALVES)


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
            place = self.new(f"getelementptr {kind}, ptr {self.pointer(buffer)}, i64 {at.text}")
            return Reg(self.widen(self.new(f"load {kind}, ptr {place}"), buffer.dtype, 0))
        lanes = self.lanes
        if at.step == 1:
            text = self.contiguous(buffer, at.text, self.mask)
        elif at.step == -1:
            text = self.backwards(buffer, at.text)
        elif at.step == 2:
            text = self.every_other(buffer, at.text)
        else:
            text = self.gather(self.places(buffer, at, kind), kind, WIDTH[buffer.dtype])
        return Reg(self.widen(text, buffer.dtype, lanes), varying=True)

    def pointer(self, buffer: Buffer) -> str:
        """Where a buffer begins."""
        if not isinstance(buffer, Moved):
            return f"%{buffer.name}"
        return self.values[id(buffer)].text

    def contiguous(self, buffer: Buffer, offset: str, mask: str) -> str:
        """A vector of neighbours; zero in lanes that are masked off."""
        lanes, kind, align = self.lanes, IN_MEMORY[buffer.dtype], WIDTH[buffer.dtype]
        vector = f"<{lanes} x {kind}>"
        place = self.new(f"getelementptr {kind}, ptr {self.pointer(buffer)}, i64 {offset}")
        if not mask:
            return self.new(f"load {vector}, ptr {place}, align {align}")
        name = f"@llvm.masked.load.v{lanes}{suffix(kind)}.p0"
        self.module.declare(name, vector, ["ptr", "i32", f"<{lanes} x i1>", vector])
        given = f"ptr {place}, i32 {align}, <{lanes} x i1> {mask}"
        return self.new(f"call {vector} {name}({given}, {vector} zeroinitializer)")

    def pair(self, first: Any, second: Any) -> bool:
        """Two loads or stores as one, if these are the lanes' pairs; see Note [pairs]."""
        buffer, offset = touched(first)
        at = self.reg(offset)
        if at.step == -2 and not self.mask and not isinstance(first, Store):
            return self.pairs_backwards(first, second, at)
        if at.varying or at.step != 2:
            return False
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

        every = range(lanes)
        if not isinstance(first, Store):
            low, high = (self.contiguous(buffer, o, m) for o, m in zip(offsets, masks, strict=True))
            for v, odd in ((first, 0), (second, 1)):
                text = self.picked(low, kind, [2 * i + odd for i in every], high)
                self.values[id(v)] = Reg(self.widen(text, buffer.dtype, lanes), varying=True)
            return True
        re, im = (
            self.narrow(self.vector(self.reg(s.value), s.value.dtype), buffer.dtype, lanes)
            for s in (first, second)
        )
        for half, start, mask in zip((0, lanes // 2), offsets, masks, strict=True):
            text = self.picked(re, kind, [half + i // 2 + (i % 2) * lanes for i in every], im)
            place = self.new(f"getelementptr {kind}, ptr {self.pointer(buffer)}, i64 {start}")
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

    def pairs_backwards(self, first: Any, second: Any, at: Reg) -> bool:
        """The loads of a pair in each lane, where pairs come in descending order."""
        lanes, kind = self.lanes, IN_MEMORY[first.args[0].dtype]
        low, high = (
            self.contiguous(first.args[0], self.integer("sub", at.text, str(less)), "")
            for less in (2 * lanes - 2, lanes - 2)
        )
        for v, odd in ((first, 0), (second, 1)):
            picks = [2 * (lanes - 1 - i) + odd for i in range(lanes)]
            text = self.picked(low, kind, picks, high)
            self.values[id(v)] = Reg(self.widen(text, first.args[0].dtype, lanes), varying=True)
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
        picks = [2 * i + (2 * i >= lanes) for i in range(lanes)]
        return self.picked(low, IN_MEMORY[buffer.dtype], picks, high)

    def backwards(self, buffer: Buffer, offset: str) -> str:
        """A vector of elements with step minus one."""
        picks = range(self.lanes - 1, -1, -1)
        mask = self.picked(self.mask, "i1", picks) if self.mask else ""
        first = self.integer("sub", offset, str(self.lanes - 1))
        found = self.contiguous(buffer, first, mask)
        return self.picked(found, IN_MEMORY[buffer.dtype], picks)

    def picked(self, a: str, kind: str, picks: Iterable[int], b: str = "poison") -> str:
        """A vector of the elements of two vectors, counted through, that are listed."""
        vector, listed = f"<{self.lanes} x {kind}>", ", ".join(f"i32 {p}" for p in picks)
        return self.new(
            f"shufflevector {vector} {a}, {vector} {b}, <{self.lanes} x i32> <{listed}>"
        )

    # Transposes -------------------------------------------------------------------------------
    def transpose(self, group: Sequence[Any]) -> bool:
        """As many loads or stores as there are lanes as whole vectors; see Note [transposes].

        Loads of lanes that are masked off read again what the last one reads.
        """
        buffer, offset = touched(group[0])
        at = self.reg(offset)
        if at.varying or at.step in (-1, 0, 1, 2) or buffer.dtype not in _TURNED:
            return False
        kind, align = IN_MEMORY[buffer.dtype], WIDTH[buffer.dtype]
        if isinstance(group[0], Store):
            if self.mask or buffer.dtype in HALVES:
                return False
            rows = [self.vector(self.reg(s.value), s.value.dtype) for s in group]
            for lane, text in enumerate(self.turned(rows, kind)):
                place = self.of_lane(at, lane)
                of = f"getelementptr {kind}, ptr {self.pointer(buffer)}, i64 {place}"
                where = self.new(of)
                self.line(f"store <{self.lanes} x {kind}> {text}, ptr {where}, align {align}")
        else:
            rows = []
            for lane in range(self.lanes):
                text = self.contiguous(buffer, self.of_lane(at, lane), "")
                rows.append(self.widen(text, buffer.dtype, self.lanes))
            for v, text in zip(group, self.turned(rows, TYPES[buffer.scalar]), strict=True):
                self.values[id(v)] = Reg(text, varying=True)
        return True

    def of_lane(self, at: Reg, lane: int) -> str:
        """An affine offset in a lane; beyond the last one, of that."""
        number = str(lane)
        if self.mask and lane:
            inside = self.new(f"icmp sle i64 {lane}, {self.last}")
            number = self.new(f"select i1 {inside}, i64 {lane}, i64 {self.last}")
        return self.integer("add", at.text, self.integer("mul", str(at.step), number))

    def turned(self, rows: list[str], kind: str) -> list[str]:
        """The columns of a square matrix: blocks change places, in every round smaller ones.

        The first round takes halves of vectors, which come from memory as they are wanted.
        """
        lanes = self.lanes
        size = lanes // 2
        while size:
            low = [i if i & size == 0 else lanes + i - size for i in range(lanes)]
            high = [i + size if i & size == 0 else lanes + i for i in range(lanes)]
            for i in range(lanes):
                if i & size == 0:
                    a, b = rows[i], rows[i + size]
                    rows[i] = self.picked(a, kind, low, b)
                    rows[i + size] = self.picked(a, kind, high, b)
            size //= 2
        return rows

    def shifted(self, buffer: Buffer, at: Reg, ahead: int) -> Reg:
        """The elements `ahead` of those at an offset, from the vectors that begin there."""
        lanes = self.lanes
        first = ahead - ahead % lanes
        text = self.contiguous(buffer, self.integer("add", at.text, str(first)), "")
        if ahead > first:
            more = self.contiguous(buffer, self.integer("add", at.text, str(first + lanes)), "")
            picks = [ahead - first + j for j in range(lanes)]
            text = self.picked(text, IN_MEMORY[buffer.dtype], picks, more)
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
        return self.new(f"getelementptr {kind}, ptr {self.pointer(buffer)}, {offsets}")

    def store(self, s: Store) -> None:
        at = self.reg(s.offset)
        kind = IN_MEMORY[s.buffer.dtype]
        if not at.varying and at.step == 0:
            place = self.new(f"getelementptr {kind}, ptr {self.pointer(s.buffer)}, i64 {at.text}")
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
            place = self.new(f"getelementptr {kind}, ptr {self.pointer(s.buffer)}, i64 {at.text}")
            if not self.mask and s.stream:
                self.streams = self.module.streams = True
                align = min(STREAM, lanes * align)
                self.line(f"store {vector} {text}, ptr {place}, align {align}, !nontemporal !0")
                return
            if not self.mask or s.whole:
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
            part = self.picked(text, kind, [(first + j) // 2 for j in range(lanes)])
            start = self.integer("add", offset, str(first))
            place = self.new(f"getelementptr {kind}, ptr {self.pointer(buffer)}, i64 {start}")
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
        place = self.new(f"getelementptr {kind}, ptr {self.pointer(s.buffer)}, i64 {at.text}")
        self.module.declare("@llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
        self.line(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 3, i32 1)")

    def widen(self, text: str, dtype: str, lanes: int) -> str:
        """What a load gives as a value; see Note [memory types] of the loop IR."""
        if dtype == "bool":
            byte = f"<{lanes} x i8>" if lanes else "i8"
            return self.new(f"icmp ne {byte} {text}, {zero('i8', lanes)}")
        if dtype in HALVES:
            native = self.module.machine.half
            return halves.widen(self.new, text, IN_MEMORY[dtype], lanes, native)
        return text

    def narrow(self, text: str, dtype: str, lanes: int) -> str:
        """A value as a store writes it."""
        if dtype == "bool":
            byte = f"<{lanes} x i8>" if lanes else "i8"
            return self.new(f"zext {self.type('bool', lanes)} {text} to {byte}")
        if dtype in HALVES:
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


def touched(s: Any) -> tuple[Buffer, Value]:
    """Which buffer, and where, a load or a store touches."""
    return (s.buffer, s.offset) if isinstance(s, Store) else (s.args[0], s.args[1])


def neighbours(body: Sequence[Any], first: int, count: int) -> Sequence[Any]:
    """So many statements from the first on, if they load or store one element after the other."""
    group = body[first : first + count]
    kind = _kind(group[0])
    if len(group) < count or not kind or any(_kind(s) is not kind for s in group):
        return ()
    buffer, (base, begin) = touched(group[0])[0], _apart(touched(group[0])[1])
    for number, s in enumerate(group):
        other, place = touched(s)
        root, ahead = _apart(place)
        if other is not buffer or root is not base or ahead != begin + number:
            return ()
    return group


def _kind(s: Any) -> type | None:
    """Store, or Value for a plain load."""
    if isinstance(s, Value):
        return Value if s.op == "load" and not s.args[2] else None
    return Store if isinstance(s, Store) else None


def _apart(offset: Value) -> tuple[Value, int]:
    """An offset as another one and a constant that is added."""
    ahead = 0
    while offset.op == "add" and offset.args[1].op == "const":
        ahead += offset.args[1].args[0]
        offset = offset.args[0]
    return offset, ahead
