"""The loop IR: what a kernel does, as loops over typed scalars, for any code generator.

A `Function` has buffers and scalar parameters, and a body of statements in order: pure scalar
values (each computed once, where it stands), loads and stores, loops and states. It is built by
calling its methods:

>>> f = Function("double")
>>> x, y = f.buffer("x", "f32"), f.buffer("y", "f32", written=True)
>>> n = f.param("n")
>>> with f.vector(n) as i:
...     f.store(y, i, f.load(x, i) * 2)
>>> print(f)
void double(const f32* x, f32* y, i64 n) {
  vector for (i64 i0 = 0; i0 < n; i0++) {
    f32 v0 = x[i0];
    f32 v1 = v0 * 2.0;
    y[i0] = v1;
  }
}

Note [loops]
A `parallel` loop stands at the top level; its iterations are independent and may run on any thread
in any order. In a `vector` loop they are independent too, but for states, and run in lanes. A
`loop` runs in order. Which iterations share a thread or a vector is the generator's business, and
must not show in the result: so the iterations of a parallel loop never depend on the number of
threads, and a state says how two of its values combine.

Note [states]
A state is one or more variables that statements set; what a reduction has found so far. A vector
loop gives every lane a state of its own, which starts at the state's initial values, and combines
the lanes' states afterwards, in a fixed order, with the state that was there before the loop. So
the initial values must be neutral in `combine`.

Note [memory types]
f16 and bf16 exist only in buffers: a load widens to f32, a store rounds. bool is a byte in a
buffer. Offsets count elements and are i64. Buffers do not overlap unless they are equal, and a
kernel that reads and writes equal buffers does so at one offset per iteration.

Note [streams]
A streaming store goes past the caches, which pays for results that are larger than they are. It is
a hint, but for one promise: in a vector loop, where the store's offset is a multiple of the lanes,
its address is a multiple of STREAM bytes, or of the vector's bytes if these are fewer.

Note [whole vectors]
A `whole` store of neighbours writes, in a vector loop's last iterations, what belongs to none of
them too, up to a whole vector: anything, zeros if it was loaded from neighbours. Memory must be
there. It is for CPUs, where masks cost most of what a short loop takes.

Note [neighbours]
A load `ahead` of an offset is one of several of neighbouring elements. A generator may read whole
vectors from the offset on and shift them, since loads across the borders of cache lines are slow.
It pays where the offset begins a line. Memory must be readable for two STREAM bytes behind.

Note [groups]
On a device whose threads run in groups, an iteration of the parallel loop is a group, and vector
loops are shared by its threads. There a kernel may use memory of the group (`shared`), and a
`barrier` where threads wait for each other; in a vector loop only if that has as many iterations as
the group has threads, so that each thread runs one. Offsets and sizes are of the type `index`. On a
CPU a group is one thread, and its memory is on the stack: a kernel has room there for its tables.

Note [kernels in kernels]
`invoke` runs another kernel by its address, on this thread alone, with buffers that begin at given
offsets of this kernel's own.

Note [scale]
`scale` takes a whole number b, |b| at most twice the largest exponent of the type, and an `a` such
that a * 2**(b/2) is a normal number, or 0, infinite or NaN. The product is rounded once, also where
it is subnormal. That is what the last step of exp wants, and one instruction with AVX-512.

Note [rare lanes]
`any` says whether a condition holds in some lane of those that run together, so that a branch can
skip work that few lanes ever need. How many lanes run together must not show in the result: the
branch computes what lanes without the condition throw away. `Function.rare` does all of that.

Note [one lane after the other]
`each`, at the end of a vector loop, runs statements for those iterations in which a condition
holds, in order. Its index is that of the vector loop, as one number, and states that it sets are
not the lanes' but the kernel's own, so that it may append to a list. The conditions of later
iterations may be computed before it runs. `lanes` is how many iterations run together. Both are for
CPUs; how many lanes there are must not show in the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

FLOATS = ("f32", "f64")
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
SCALARS = ("bool", *INTEGERS, *FLOATS)
MEMORY = (*SCALARS, "f16", "bf16")
STREAM = 64  # bytes
WIDTH = {"bool": 1, "f16": 2, "bf16": 2, **{t: int(t[1:]) // 8 for t in INTEGERS + FLOATS}}

# Operations on scalars: the number of arguments, and the types that they take.
OPERATIONS: dict[str, tuple[int, tuple[str, ...]]] = {
    **dict.fromkeys(("add", "sub", "mul", "div"), (2, INTEGERS + FLOATS)),
    "rem": (2, INTEGERS),  # the sign of the dividend, as in C
    "neg": (1, SIGNED + FLOATS),
    "abs": (1, SIGNED + FLOATS),
    **dict.fromkeys(("sqrt", "floor", "ceil", "trunc", "rint"), (1, FLOATS)),
    **dict.fromkeys(("maximum", "minimum"), (2, FLOATS + INTEGERS)),  # NaN wins
    "copysign": (2, FLOATS),
    "fma": (3, FLOATS),  # a * b + c rounded once where the machine can, else twice
    "fused": (3, FLOATS),  # a * b + c rounded once on every machine; dear where it cannot
    "scale": (2, FLOATS),  # a * 2**b; see Note [scale]
    "any": (1, ("bool",)),  # see Note [rare lanes]
    **dict.fromkeys(("and", "or", "xor"), (2, ("bool", *INTEGERS))),
    "not": (1, ("bool", *INTEGERS)),
    **dict.fromkeys(("shl", "shr"), (2, INTEGERS)),  # shr keeps the sign of a signed type
    **dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne"), (2, SCALARS)),
}
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


class IRError(Exception):
    """A kernel that breaks a rule of the loop IR: a fault of the library, never of its user."""


class Value:
    """A scalar: a parameter, a constant, a loop's index or the result of an operation."""

    __slots__ = ("args", "dtype", "function", "name", "op")

    def __init__(self, function: Function, op: str, args: tuple[Any, ...], dtype: str) -> None:
        self.function = function
        self.op = op
        self.args = args
        self.dtype = dtype
        self.name = ""

    def __repr__(self) -> str:
        return _number(self) if self.op == "const" else self.name

    def __add__(self, other: Operand) -> Value:
        return self.function.call("add", self, other)

    def __radd__(self, other: Operand) -> Value:
        return self.function.call("add", other, self)

    def __sub__(self, other: Operand) -> Value:
        return self.function.call("sub", self, other)

    def __rsub__(self, other: Operand) -> Value:
        return self.function.call("sub", other, self)

    def __mul__(self, other: Operand) -> Value:
        return self.function.call("mul", self, other)

    def __rmul__(self, other: Operand) -> Value:
        return self.function.call("mul", other, self)

    def __truediv__(self, other: Operand) -> Value:
        return self.function.call("div", self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return self.function.call("div", other, self)

    def __floordiv__(self, other: Operand) -> Value:  # of integers, truncating
        return self.function.call("div", self, other)

    def __mod__(self, other: Operand) -> Value:
        return self.function.call("rem", self, other)

    def __neg__(self) -> Value:
        return self.function.call("neg", self)

    def __and__(self, other: Operand) -> Value:
        return self.function.call("and", self, other)

    def __or__(self, other: Operand) -> Value:
        return self.function.call("or", self, other)

    def __xor__(self, other: Operand) -> Value:
        return self.function.call("xor", self, other)

    def __invert__(self) -> Value:
        return self.function.call("not", self)

    def __lshift__(self, other: Operand) -> Value:
        return self.function.call("shl", self, other)

    def __rshift__(self, other: Operand) -> Value:
        return self.function.call("shr", self, other)

    def __lt__(self, other: Operand) -> Value:
        return self.function.call("lt", self, other)

    def __le__(self, other: Operand) -> Value:
        return self.function.call("le", self, other)

    def __gt__(self, other: Operand) -> Value:
        return self.function.call("gt", self, other)

    def __ge__(self, other: Operand) -> Value:
        return self.function.call("ge", self, other)

    def __eq__(self, other: Operand) -> Value:  # type: ignore[override]
        return self.function.call("eq", self, other)

    def __ne__(self, other: Operand) -> Value:  # type: ignore[override]
        return self.function.call("ne", self, other)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise IRError(f"the value {self!r} of a kernel has no truth value yet: use select")


Operand = Value | int | float | bool


class Buffer:
    """Memory that a kernel is given: the address of its first element."""

    __slots__ = ("count", "dtype", "name", "written")

    def __init__(self, name: str, dtype: str, written: bool, count: int = 0) -> None:
        self.name = name
        self.dtype = dtype
        self.written = written
        self.count = count  # of a group's own memory, see Note [groups]

    @property
    def scalar(self) -> str:
        """The type of a loaded element; see Note [memory types]."""
        return "f32" if self.dtype in ("f16", "bf16") else self.dtype


class Moved(Buffer):
    """A buffer that begins so many bytes after another one, from where it stands on."""

    __slots__ = ("bytes", "origin")

    def __init__(self, name: str, origin: Buffer, bytes: Value) -> None:
        super().__init__(name, origin.dtype, origin.written)
        self.origin = origin
        self.bytes = bytes


class Store:
    """`buffer[offset] = value`; see Note [streams] and Note [whole vectors]."""

    __slots__ = ("buffer", "offset", "stream", "value", "whole")

    def __init__(
        self, buffer: Buffer, offset: Value, value: Value, stream: bool, whole: bool
    ) -> None:
        self.buffer = buffer
        self.offset = offset
        self.value = value
        self.stream = stream
        self.whole = whole


class Barrier:
    """The threads of a group wait for each other; see Note [groups]."""

    __slots__ = ()


class Prefetch:
    """`buffer[offset]` will be read or written soon: a hint that changes no result."""

    __slots__ = ("buffer", "offset")

    def __init__(self, buffer: Buffer, offset: Value) -> None:
        self.buffer = buffer
        self.offset = offset


class State:
    """Variables that are set together; see Note [states]."""

    __slots__ = ("combine", "function", "inits", "name")

    def __init__(
        self, function: Function, name: str, inits: tuple[Value, ...], combine: Callable[..., Any]
    ) -> None:
        self.function = function
        self.name = name
        self.inits = inits
        self.combine = combine

    def get(self) -> tuple[Value, ...]:
        """The variables' values at this point."""
        return tuple(
            self.function.append(Value(self.function, "get", (self, i), init.dtype))
            for i, init in enumerate(self.inits)
        )

    def set(self, *values: Operand) -> None:
        """Give every variable a new value."""
        given = tuple(
            self.function.value(v, init.dtype) for v, init in zip(values, self.inits, strict=True)
        )
        self.function.append(Set(self, given))

    def add(self, *values: Operand) -> None:
        """Combine a further value in."""
        given = [
            self.function.value(v, init.dtype) for v, init in zip(values, self.inits, strict=True)
        ]
        self.set(*_tuple(self.combine(*self.get(), *given)))


class Invoke:
    """Run another kernel, alone on this thread; see Note [kernels in kernels]."""

    __slots__ = ("address", "args")

    def __init__(self, address: Value, args: list[tuple[Buffer, Value] | Value]) -> None:
        self.address = address
        self.args = args


class Set:
    """The variables of a state get new values."""

    __slots__ = ("state", "values")

    def __init__(self, state: State, values: tuple[Value, ...]) -> None:
        self.state = state
        self.values = values


class Loop:
    """`for index in range(extent)`; kind: parallel, vector or loop, see Note [loops]."""

    __slots__ = ("body", "exact", "extent", "index", "kind", "unroll")

    def __init__(self, kind: str, index: Value, extent: Value, unroll: int, exact: bool) -> None:
        self.kind = kind
        self.index = index
        self.extent = extent
        self.unroll = unroll  # vectors at once, each with states of its own
        self.exact = exact  # False: sums of products, which may round in any way
        self.body: list[Any] = []


class Each:
    """`body` for each lane with the condition; see Note [one lane after the other]."""

    __slots__ = ("body", "condition", "index")

    def __init__(self, condition: Value, index: Value) -> None:
        self.condition = condition
        self.index = index
        self.body: list[Any] = []


class Branch:
    """`if condition: body`, for what all lanes agree on."""

    __slots__ = ("body", "condition")

    def __init__(self, condition: Value) -> None:
        self.condition = condition
        self.body: list[Any] = []


class Function:
    """One kernel; see the module's example."""

    def __init__(self, name: str, index: str = "i64", double: bool = True) -> None:
        self.name = name
        self.index = index  # the type of offsets, sizes and loops' indices
        self.double = double  # whether f64 may be used where nothing else asks for it
        self.element = 0  # bytes of what lanes hold, if no buffer of floats tells
        self.exact = True  # of the loops that follow, see `Loop`
        self.buffers: list[Buffer] = []
        self.tiles: list[Buffer] = []  # the memory of a group
        self.views: list[Buffer] = []
        self.params: list[Value] = []
        self.body: list[Any] = []
        self._open: list[list[Any]] = [self.body]
        self._counts = {"v": 0, "i": 0, "s": 0, "b": 0}

    # Arguments ----------------------------------------------------------------------------
    def buffer(self, name: str, dtype: str, written: bool = False) -> Buffer:
        """A further buffer argument."""
        self.buffers.append(Buffer(name, dtype, written))
        return self.buffers[-1]

    def shared(self, name: str, dtype: str, count: int) -> Buffer:
        """Memory of the group for so many elements; see Note [groups]."""
        self.tiles.append(Buffer(name, dtype, True, count))
        return self.tiles[-1]

    def view(self, buffer: Buffer, dtype: str) -> Buffer:
        """The memory of a buffer as elements of another type, on a CPU."""
        self.views.append(Buffer(buffer.name, dtype, buffer.written, buffer.count))
        return self.views[-1]

    def moved(self, buffer: Buffer, bytes: Operand) -> Buffer:
        """The buffer that begins so many bytes after another one, on a CPU."""
        return self.append(Moved(self._fresh("b"), buffer, self.value(bytes, "i64")))

    def param(self, name: str, dtype: str = "") -> Value:
        """A further scalar argument, of the type of offsets unless told."""
        value = Value(self, "param", (), dtype or self.index)
        value.name = name
        self.params.append(value)
        return value

    # Values -------------------------------------------------------------------------------
    def const(self, number: float, dtype: str) -> Value:
        """A constant."""
        if dtype == "bool":
            number = bool(number)
        elif dtype in FLOATS:
            number = float(number)
        elif number != int(number):
            raise IRError(f"{number} is no constant of type {dtype}")
        else:
            number = int(number)
        return Value(self, "const", (number,), dtype)

    def value(self, operand: Operand, dtype: str) -> Value:
        """A number as a constant of the given type; a value as it is."""
        return operand if isinstance(operand, Value) else self.const(operand, dtype)

    def call(self, op: str, *operands: Operand) -> Value:
        """An operation of the list OPERATIONS; numbers take the type of the values beside them."""
        dtype = next((o.dtype for o in operands if isinstance(o, Value)), None)
        if dtype is None:
            raise IRError(f"{op} of numbers alone")
        args = tuple([self.value(o, dtype) for o in operands])
        result = "bool" if op in COMPARISONS else dtype
        return self.append(Value(self, op, args, result))

    def fma(self, a: Operand, b: Operand, c: Operand) -> Value:
        """`a * b + c`, rounded once where the machine can."""
        return self.call("fma", a, b, c)

    def select(self, condition: Value, yes: Operand, no: Operand) -> Value:
        """`yes` where the condition holds, else `no`; both are computed."""
        dtype = next(o.dtype for o in (yes, no) if isinstance(o, Value))
        args = (condition, self.value(yes, dtype), self.value(no, dtype))
        return self.append(Value(self, "select", args, dtype))

    def rare(self, condition: Value, usual: Any, compute: Callable[[], Any]) -> Any:
        """`compute()` where the condition holds, else `usual`; skipped if no lane wants it.

        Both are one value, or tuples of values of the same types. See Note [rare lanes].

        >>> f = Function("positive")
        >>> x, n = f.buffer("x", "f32", True), f.param("n")
        >>> with f.vector(n) as i:
        ...     v = f.load(x, i)
        ...     f.store(x, i, f.rare(v < 0, v, lambda: -v))
        """
        given = _tuple(usual)
        state = self.state(*given)
        with self.branch(self.call("any", condition)):
            found = _tuple(compute())
            state.set(*[self.select(condition, a, b) for a, b in zip(found, given, strict=True)])
        values = state.get()
        return values if isinstance(usual, tuple) else values[0]

    def lookup(self, table: Sequence[int | float], index: Value, dtype: str) -> Value:
        """`table[index]`, a constant table of a few entries; the i64 index must lie within."""
        entries = tuple(self.const(entry, dtype).args[0] for entry in table)
        return self.append(Value(self, "lookup", (entries, index), dtype))

    def cast(self, x: Value, dtype: str) -> Value:
        """Convert; a float that its integer type cannot hold gives any value."""
        return x if x.dtype == dtype else self.append(Value(self, "cast", (x,), dtype))

    def bitcast(self, x: Value, dtype: str) -> Value:
        """The same bits as another type of the same width."""
        return x if x.dtype == dtype else self.append(Value(self, "bitcast", (x,), dtype))

    # Statements ---------------------------------------------------------------------------
    def append(self, statement: Any) -> Any:
        """Add a statement at the end of the innermost open block."""
        if isinstance(statement, Value):
            statement.name = self._fresh("v")
        self._open[-1].append(statement)
        return statement

    def load(self, buffer: Buffer, offset: Operand, ahead: int = 0) -> Value:
        """`buffer[offset + ahead]`; see Note [neighbours]."""
        args = (buffer, self.value(offset, self.index), ahead)
        return self.append(Value(self, "load", args, buffer.scalar))

    def store(
        self,
        buffer: Buffer,
        offset: Operand,
        value: Operand,
        stream: bool = False,
        whole: bool = False,
    ) -> None:
        """`buffer[offset] = value`; see Note [streams] and Note [whole vectors]."""
        place = self.value(offset, self.index)
        self.append(Store(buffer, place, self.value(value, buffer.scalar), stream, whole))

    def prefetch(self, buffer: Buffer, offset: Operand) -> None:
        """Fetch `buffer[offset]` into the caches; any offset of the buffer's memory will do."""
        self.append(Prefetch(buffer, self.value(offset, self.index)))

    def barrier(self) -> None:
        """The threads of a group wait here for each other; see Note [groups]."""
        self.append(Barrier())

    def invoke(self, address: Value, *args: tuple[Buffer, Operand] | Operand) -> None:
        """Run the kernel at `address`; see Note [kernels in kernels]."""
        given = [
            (a[0], self.value(a[1], "i64")) if isinstance(a, tuple) else self.value(a, "i64")
            for a in args
        ]
        self.append(Invoke(address, given))

    def thread(self) -> Value:
        """The number of the thread that runs this iteration of the parallel loop."""
        return self.append(Value(self, "thread", (), "i64"))

    def lanes(self) -> Value:
        """How many iterations of a vector loop run together on this machine, a constant."""
        return self.append(Value(self, "lanes", (), "i64"))

    def state(self, *inits: Value, combine: Callable[..., Any] | None = None) -> State:
        """Variables set together; `combine(*left, *right)` joins two of their values.

        Without it the right ones are taken, as for variables that no lanes share.

        >>> f = Function("total")
        >>> x, out, n = f.buffer("x", "f32"), f.buffer("out", "f32", True), f.param("n")
        >>> total = f.state(f.const(0, "f32"), combine=lambda a, b: a + b)
        >>> with f.vector(n) as i:
        ...     total.add(f.load(x, i))
        >>> f.store(out, 0, total.get()[0])
        """
        if combine is None:
            combine = lambda *both: both[len(inits) :]
        state = State(self, self._fresh("s"), inits, combine)
        self.append(state)
        return state

    @contextmanager
    def _loop(self, kind: str, extent: Operand, unroll: int) -> Iterator[Value]:
        index = Value(self, "index", (), self.index)
        index.name = self._fresh("i")
        loop = Loop(kind, index, self.value(extent, self.index), unroll, self.exact)
        self.append(loop)
        self._open.append(loop.body)
        try:
            yield index
        finally:
            self._open.pop()

    def parallel(self, extent: Operand) -> Any:
        """`with f.parallel(n) as i`: iterations on any thread; see Note [loops]."""
        return self._loop("parallel", extent, 1)

    def vector(self, extent: Operand, unroll: int = 1) -> Any:
        """`with f.vector(n) as i`: iterations in lanes; see Note [loops]."""
        return self._loop("vector", extent, unroll)

    def loop(self, extent: Operand) -> Any:
        """`with f.loop(n) as i`: iterations in order."""
        return self._loop("loop", extent, 1)

    @contextmanager
    def each(self, condition: Value) -> Iterator[Value]:
        """`with f.each(c) as i`, in a vector loop; see Note [one lane after the other].

        >>> f = Function("negative")
        >>> x, out = f.buffer("x", "f32"), f.buffer("out", "i64", True)
        >>> n, number = f.param("n"), f.state(f.const(0, "i64"))
        >>> with f.vector(n) as i, f.each(f.load(x, i) < 0) as found:
        ...     (at,) = number.get()
        ...     f.store(out, at, found)
        ...     number.set(at + 1)
        """
        index = Value(self, "index", (), self.index)
        index.name = self._fresh("i")
        each = Each(condition, index)
        self.append(each)
        self._open.append(each.body)
        try:
            yield index
        finally:
            self._open.pop()

    @contextmanager
    def branch(self, condition: Value) -> Iterator[None]:
        """`with f.branch(c):` only if the condition holds; it is the same for all lanes."""
        branch = Branch(condition)
        self.append(branch)
        self._open.append(branch.body)
        try:
            yield
        finally:
            self._open.pop()

    def _fresh(self, letter: str) -> str:
        self._counts[letter] += 1
        return f"{letter}{self._counts[letter] - 1}"

    def __str__(self) -> str:
        from .ir_text import render  # which knows every statement of this file

        return render(self)


def traced_combine(state: State) -> tuple[list[Any], list[Value], tuple[Value, ...]]:
    """`state.combine` as statements: (body, its parameters, left then right, its results)."""
    f = state.function
    params = []
    for side in ("left", "right"):
        for i, init in enumerate(state.inits):
            value = Value(f, "param", (), init.dtype)
            value.name = f"{side}{i}"
            params.append(value)
    body: list[Any] = []
    f._open.append(body)
    try:
        results = _tuple(state.combine(*params))
    finally:
        f._open.pop()
    return body, params, results


def set_inside(body: Sequence[Any]) -> list[State]:
    """The states of lanes that the statements set, each once, in order."""
    found: dict[int, State] = {}
    for s in body:
        if isinstance(s, Set):
            found.setdefault(id(s.state), s.state)
        elif isinstance(s, Loop | Branch):
            for state in set_inside(s.body):
                found.setdefault(id(state), state)
    return list(found.values())


def _tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def _number(v: Value) -> str:
    number = v.args[0]
    if v.dtype in FLOATS and not math.isfinite(number):
        return "NAN" if number != number else "INFINITY" if number > 0 else "-INFINITY"
    return str(number).lower() if v.dtype == "bool" else repr(number)
