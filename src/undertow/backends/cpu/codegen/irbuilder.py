"""A small builder of LLVM IR text, for kernels that are written by hand.

A value is the text of an operand, `%t7`, or a Python integer, which is folded where that is easy.
Locals that change are memory slots; LLVM's first passes turn them into registers.

>>> f = Function("total", [("ptr", "x"), ("i64", "n"), ("ptr", "result")])
>>> sum = f.variable("float", "0.0")
>>> with f.loop(0, "%n") as i:
...     x = f.load("float", f.at("%x", f.mul(i, 4)))
...     sum.set(f.op(f"fadd float {sum.get()}, {x}"))
>>> f.store("float", sum.get(), "%result")
>>> print(module(f).splitlines()[0])
define void @total(ptr %x, i64 %n, ptr %result) {
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from . import halves

Value = str | int


class Variable:
    """A local that can be set."""

    __slots__ = ("_function", "_slot", "_type")

    def __init__(self, function: Function, type: str, slot: str) -> None:
        self._function, self._type, self._slot = function, type, slot

    def get(self) -> str:
        """Its value here."""
        return self._function.op(f"load {self._type}, ptr {self._slot}")

    def set(self, value: Value) -> None:
        """Give it a value from here on."""
        self._function.put(f"store {self._type} {value}, ptr {self._slot}")


class Function:
    """The text of one function without a result; `text` ends it."""

    def __init__(
        self, name: str, parameters: Sequence[tuple[str, str]], attributes: str = ""
    ) -> None:
        given = ", ".join(f"{type} %{name}" for type, name in parameters)
        self._head = f"define void @{name}({given}) {attributes}{' ' * bool(attributes)}{{"
        self._slots: list[str] = []
        self._lines: list[str] = []
        self._names = 0
        self.declared: set[str] = set()

    def text(self) -> str:
        """The whole definition."""
        head = [self._head, "entry:", *self._slots, "  br label %start", "start:"]
        return "\n".join([*head, *self._lines, "  ret void", "}"])

    def put(self, line: str) -> None:
        """Write an instruction without a result."""
        self._lines.append(f"  {line}")

    def op(self, instruction: str) -> str:
        """Write an instruction, and name its result."""
        result = f"%t{self.fresh()}"
        self.put(f"{result} = {instruction}")
        return result

    def declare(self, signature: str) -> None:
        """Say that a function from elsewhere is called: `declare("float @sqrtf(float)")`."""
        self.declared.add(f"declare {signature}")

    def variable(self, type: str, value: Value | None = None) -> Variable:
        """A new local; without a value it must be set before it is read."""
        made = Variable(self, type, self.slot(type))
        if value is not None:
            made.set(value)
        return made

    def slot(self, type: str) -> str:
        """The address of memory for a value, which lives as long as the call."""
        slot = f"%v{self.fresh()}"
        self._slots.append(f"  {slot} = alloca {type}")
        return slot

    # Integers of 64 bits ---------------------------------------------------------------------
    def add(self, x: Value, y: Value) -> Value:
        """x + y."""
        if isinstance(x, int) and isinstance(y, int):
            return x + y
        return y if x == 0 else x if y == 0 else self.op(f"add i64 {x}, {y}")

    def sub(self, x: Value, y: Value) -> Value:
        """x - y."""
        if isinstance(x, int) and isinstance(y, int):
            return x - y
        return x if y == 0 else self.op(f"sub i64 {x}, {y}")

    def mul(self, x: Value, y: Value) -> Value:
        """x * y."""
        if isinstance(x, int) and isinstance(y, int):
            return x * y
        if x == 0 or y == 0:
            return 0
        return y if x == 1 else x if y == 1 else self.op(f"mul i64 {x}, {y}")

    def div(self, x: Value, y: Value) -> str:
        """x // y of numbers that are not negative."""
        return self.op(f"udiv i64 {x}, {y}")

    def rem(self, x: Value, y: Value) -> str:
        """x % y of numbers that are not negative."""
        return self.op(f"urem i64 {x}, {y}")

    def least(self, x: Value, y: Value) -> str:
        """The smaller one."""
        return self.select(self.compare("slt", x, y), x, y)

    def most(self, x: Value, y: Value) -> str:
        """The larger one."""
        return self.select(self.compare("sgt", x, y), x, y)

    def compare(self, how: str, x: Value, y: Value) -> str:
        """A truth value; `how` as in LLVM: eq, ne, slt, sge …"""
        return self.op(f"icmp {how} i64 {x}, {y}")

    def select(self, condition: str, x: Value, y: Value, type: str = "i64") -> str:
        """x if the condition holds, else y."""
        return self.op(f"select i1 {condition}, {type} {x}, {type} {y}")

    # Memory ----------------------------------------------------------------------------------
    def at(self, pointer: str, offset: Value) -> str:
        """The address so many bytes further."""
        return pointer if offset == 0 else self.op(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def load(self, type: str, pointer: str, align: int = 4) -> str:
        """What stands at an address."""
        return self.op(f"load {type}, ptr {pointer}, align {align}")

    def store(self, type: str, value: Value, pointer: str, align: int = 4) -> None:
        """Write to an address."""
        self.put(f"store {type} {value}, ptr {pointer}, align {align}")

    def prefetch(self, pointer: str, write: bool = False, cache: int = 1) -> None:
        """Ask for a line of memory that will be needed, in the first or second cache.

        It never faults.
        """
        self.declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        how = f"i32 {int(write)}, i32 {4 - cache}, i32 1"
        self.put(f"call void @llvm.prefetch.p0(ptr {pointer}, {how})")

    # Vectors ---------------------------------------------------------------------------------
    def splat(self, type: str, lanes: int, scalar: Value) -> str:
        """A vector of one value."""
        vector = f"<{lanes} x {type}>"
        one = self.op(f"insertelement {vector} poison, {type} {scalar}, i64 0")
        lane = f"<{lanes} x i32> zeroinitializer"
        return self.op(f"shufflevector {vector} {one}, {vector} poison, {lane}")

    def shuffle(self, vector: str, x: str, y: str, lanes: Sequence[int]) -> str:
        """Chosen lanes of two vectors, those of the second one counted on from the first's."""
        chosen = ", ".join(f"i32 {lane}" for lane in lanes)
        given = f"{vector} {x}, {vector} {y}, <{len(lanes)} x i32> <{chosen}>"
        return self.op(f"shufflevector {given}")

    def first_lanes(self, lanes: int, count: Value) -> str:
        """A mask of the first `count` lanes."""
        ramp = ", ".join(f"i32 {lane}" for lane in range(lanes))
        count = self.splat("i32", lanes, self.op(f"trunc i64 {count} to i32"))
        return self.op(f"icmp slt <{lanes} x i32> <{ramp}>, {count}")

    def load_lanes(
        self,
        vector: str,
        suffix: str,
        pointer: str,
        mask: str,
        align: int,
        other: str = "zeroinitializer",
    ) -> str:
        """The lanes of a mask from memory; those of `other`, or zero, in the others."""
        lanes = f"<{vector[1:].split()[0]} x i1>"
        name = f"@llvm.masked.load.{suffix}.p0"
        self.declare(f"{vector} {name}(ptr, i32, {lanes}, {vector})")
        where = f"ptr {pointer}, i32 {align}, {lanes} {mask}"
        return self.op(f"call {vector} {name}({where}, {vector} {other})")

    def store_lanes(
        self, vector: str, suffix: str, value: str, pointer: str, mask: str, align: int
    ) -> None:
        """Write the lanes of a mask."""
        lanes = f"<{vector[1:].split()[0]} x i1>"
        name = f"@llvm.masked.store.{suffix}.p0"
        self.declare(f"void {name}({vector}, ptr, i32, {lanes})")
        self.put(f"call void {name}({vector} {value}, ptr {pointer}, i32 {align}, {lanes} {mask})")

    def gather(self, vector: str, suffix: str, places: str, mask: str, align: int) -> str:
        """What stands at the addresses of a mask's lanes, zero in the others."""
        lanes = vector[1:].split()[0]
        name = f"@llvm.masked.gather.{suffix}.v{lanes}p0"
        self.declare(f"{vector} {name}(<{lanes} x ptr>, i32, <{lanes} x i1>, {vector})")
        where = f"<{lanes} x ptr> {places}, i32 {align}, <{lanes} x i1> {mask}"
        return self.op(f"call {vector} {name}({where}, {vector} zeroinitializer)")

    def scatter(
        self, vector: str, suffix: str, value: str, places: str, mask: str, align: int
    ) -> None:
        """Write to the addresses of a mask's lanes."""
        lanes = vector[1:].split()[0]
        name = f"@llvm.masked.scatter.{suffix}.v{lanes}p0"
        self.declare(f"void {name}({vector}, <{lanes} x ptr>, i32, <{lanes} x i1>)")
        where = f"<{lanes} x ptr> {places}, i32 {align}, <{lanes} x i1> {mask}"
        self.put(f"call void {name}({vector} {value}, {where})")

    # Halves ----------------------------------------------------------------------------------
    def widen(self, value: str, memory: str, lanes: int = 0) -> str:
        """What was loaded, of type half, i16 (a bfloat16) or the type itself, as a float."""
        if memory not in ("half", "i16"):
            return value
        return halves.widen(self.op, value, memory, lanes, native=True)

    def narrow(self, value: str, memory: str, lanes: int = 0) -> str:
        """A float as it is stored: to nearest, ties to even, and a NaN stays one."""
        if memory not in ("half", "i16"):
            return value
        return halves.narrow(self.op, value, memory, lanes, native=True)

    # Flow ------------------------------------------------------------------------------------
    @contextmanager
    def loop(self, begin: Value, end: Value, step: Value = 1) -> Iterator[str]:
        """Count from `begin` by `step` while below `end`."""
        counter, number = self.variable("i64", begin), self.fresh()
        self._label(f"head{number}")
        i = counter.get()
        below = self.compare("slt", i, end)
        self.put(f"br i1 {below}, label %body{number}, label %exit{number}")
        self._lines.append(f"body{number}:")
        yield i
        counter.set(self.add(i, step))
        self.put(f"br label %head{number}")
        self._lines.append(f"exit{number}:")

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Only if the condition holds."""
        number = self.fresh()
        self.put(f"br i1 {condition}, label %then{number}, label %over{number}")
        self._lines.append(f"then{number}:")
        yield
        self._label(f"over{number}")

    def _label(self, name: str) -> None:
        self.put(f"br label %{name}")
        self._lines.append(f"{name}:")

    def take(self, slots: Sequence[str], lines: Sequence[str]) -> None:
        """Write lines that somebody else has made, with memory that they need."""
        self._slots += slots
        self._lines += lines

    def fresh(self) -> int:
        """A number that no name has yet."""
        self._names += 1
        return self._names


def module(*functions: Function) -> str:
    """The text of several functions, with what they call."""
    declared = sorted(set().union(*(f.declared for f in functions)))
    return "\n".join([*(f.text() for f in functions), *declared])
