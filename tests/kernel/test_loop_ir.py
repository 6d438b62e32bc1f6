"""The loop IR: its checker, its text, and its code on all types, strides, tails and lane widths."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from undertow.backends.cpu.codegen import jit
from undertow.backends.cpu.codegen.kernels import TYPES, address
from undertow.backends.cpu.codegen.kernels import machine as this_machine
from undertow.backends.cpu.codegen.llvm import emit
from undertow.backends.cpu.codegen.llvm_values import Machine, lanes_of
from undertow.dtypes import bfloat16
from undertow.kernel.ir import FLOATS, INTEGERS, SIGNED, Buffer, Function, IRError, Value
from undertow.kernel.ir_check import check

MACHINES = [Machine(16, False, False), Machine(32, True, True), Machine(64, True, True)]
NUMPY = {kind: dtype for dtype, kind in TYPES.items()} | {"bf16": bfloat16.numpy}
LENGTHS = (0, 1, 2, 3, 7, 15, 16, 17, 31, 33, 64, 65, 127, 200)
_C_TYPES = {"i64": ctypes.c_int64, "f32": ctypes.c_float, "f64": ctypes.c_double}
_numbers = iter(range(10**6))


def machines() -> Any:
    """Those whose vectors this processor has."""
    widest = 64 if "avx512bw" in jit.features() else 32 if "avx2" in jit.features() else 16
    return pytest.mark.parametrize(
        "machine", [m for m in MACHINES if m.vector <= widest], ids=lambda m: f"{m.vector}bytes"
    )


def run(f: Function, machine: Machine, *args: Any, pool: int = 0) -> None:
    """Compile a checked kernel for a machine, and call it with arrays and numbers."""
    check(f)
    f.name = f"{f.name}_{machine.vector}_{next(_numbers)}"
    at = jit.load(f.name, emit(f, machine))
    kinds = [ctypes.c_void_p] * (1 + len(f.buffers)) + [_C_TYPES[p.dtype] for p in f.params]
    given = [address(a) if isinstance(a, np.ndarray) else a for a in args]
    ctypes.CFUNCTYPE(None, *kinds)(at)(pool, *given)


def sample(kind: str, count: int, seed: int = 0) -> Any:
    """Numbers of a type, with awkward ones among them."""
    rng = np.random.default_rng(seed)
    dtype = NUMPY[kind]
    if kind in ("f16", "bf16", *FLOATS):
        x = rng.standard_normal(count) * 100
        x[::7] = 0.0
        x[3::11] = np.inf
        x[5::13] = np.nan
        x[6::17] = -0.0
        return x.astype(dtype)
    if kind == "bool":
        return rng.random(count) < 0.5
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, count, dtype, endpoint=True)
    x[::5] = info.max
    x[1::5] = info.min
    return x


# The checker ---------------------------------------------------------------------------------
def kernel() -> tuple[Function, Buffer, Buffer, Value]:
    f = Function("k")
    return f, f.buffer("x", "f32"), f.buffer("y", "f32", written=True), f.param("n")


def _broken_store_to_input(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    f.store(x, 0, 1.0)


def _broken_foreign_buffer(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    f.store(y, 0, f.load(Buffer("z", "f32", False), 0))


def _broken_store_of_another_type(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    f.store(y, 0, n)


def _broken_offset(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    f.store(y, f.cast(n, "i32"), 1.0)


def _broken_scope(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    with f.loop(n) as i:
        inside = f.load(x, i)
    f.store(y, 0, inside)


def _broken_index(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    with f.vector(n) as i:
        pass
    f.store(y, i, 1.0)


def _broken_mixed_types(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    f.store(y, 0, f.call("add", f.load(x, 0), n))


def _broken_operation(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    f.append(Value(f, "frobnicate", (n,), "i64"))


def _broken_domain(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    f.call("sqrt", n)


def _broken_arity(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    f.append(Value(f, "add", (n,), "i64"))


def _broken_condition(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    with f.branch(n):
        f.store(y, 0, 1.0)


def _broken_select(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    f.append(Value(f, "select", (n < 3, n, f.load(x, 0)), "i64"))


def _broken_bitcast(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    f.bitcast(n, "f32")


def _broken_cast(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    f.cast(n, "f16")


def _broken_nested_parallel(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    with f.loop(n), f.parallel(n):
        pass


def _broken_nested_vector(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    with f.vector(n), f.loop(n), f.vector(n):
        pass


def _broken_extent(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    with f.loop(f.cast(n, "i32")):
        pass


def _broken_state_across_threads(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    total = f.state(f.const(0, "f32"), combine=lambda a, b: a + b)
    with f.parallel(n) as i:
        total.add(f.load(x, i))


def _broken_state_read_across_threads(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    total = f.state(f.const(0, "f32"), combine=lambda a, b: a + b)
    with f.parallel(n) as i:
        f.store(y, i, total.get()[0])


def _broken_state_type(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    f.state(f.const(0, "f32"), combine=lambda a, b: a + b).set(n)


def _broken_load_shared_with_threads(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    first = f.load(x, 0) * 2
    with f.parallel(n) as i:
        f.store(y, i, first)


def _broken_thread(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    f.store(y, f.thread(), 1.0)


def _broken_prefetch(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    f.prefetch(Buffer("z", "f32", False), 0)


def _broken_invoke(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    with f.vector(n) as i:
        f.invoke(n, (x, i))


def _broken_lookup(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    f.lookup((1.0, 2.0), f.cast(n, "i32"), "f32")


def _broken_names(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    f.param("x")


def _broken_buffer_type(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    f.buffer("z", "f8")


def _broken_param_type(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    f.param("p", "i32")


def _broken_each_outside_lanes(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    with f.loop(n) as i, f.each(f.load(x, i) < 0) as found:
        f.store(y, found, 1.0)


def _broken_each_before_the_end(f: Function, x: Buffer, y: Buffer, n: Value) -> None:
    with f.vector(n) as i:
        with f.each(f.load(x, i) < 0) as found:
            f.store(y, found, 1.0)
        f.store(y, i, 2.0)


BROKEN = [g for name, g in sorted(globals().items()) if name.startswith("_broken")]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda g: g.__name__.removeprefix("_broken_"))
def test_the_checker_refuses(broken: Callable[..., None]) -> None:
    parts = kernel()
    check(parts[0])
    broken(*parts)
    with pytest.raises(IRError, match=r"^k: "):
        check(parts[0])


def test_what_only_the_builder_can_refuse() -> None:
    f, x, _, n = kernel()
    with pytest.raises(IRError, match="truth"):
        bool(n < 3)
    with pytest.raises(IRError, match="numbers alone"):
        f.call("add", 1, 2)
    with pytest.raises(IRError, match="no constant"):
        f.const(1.5, "i64")
    with pytest.raises(ValueError, match="argument"):
        f.state(f.const(0, "f32"), combine=lambda a, b: a + b).set(1.0, 2.0)
    assert x.scalar == "f32"


@machines()
def test_lanes_that_disagree(machine: Machine) -> None:
    """A branch and a loop's extent need one value for all lanes, a prefetch places in order."""
    for use in ("branch", "loop", "prefetch"):
        f, x, y, n = kernel()
        with f.vector(n) as i:
            v = f.load(x, i)
            if use == "branch":
                with f.branch(v < 0):
                    f.store(y, i, v)
            elif use == "loop":
                with f.loop(f.cast(v, "i64")):
                    f.store(y, i, v)
            else:
                f.prefetch(x, f.cast(v, "i64"))
        with pytest.raises(IRError, match=r"differs between lanes|without order"):
            emit(f, machine)


# The text ------------------------------------------------------------------------------------
def test_the_text_of_a_kernel() -> None:
    f = Function("example")
    x, y = f.buffer("x", "f16"), f.buffer("y", "bool", written=True)
    n, scale = f.param("n"), f.param("scale", "f64")
    rows = (n + 7) // 8
    with f.parallel(rows) as r:
        best = f.state(
            f.const(-np.inf, "f32"),
            f.const(0, "i64"),
            combine=lambda a, i, b, j: (f.select(a < b, b, a), f.select(a < b, j, i)),
        )
        f.prefetch(x, r * 8 + 64)
        with f.vector(f.call("minimum", n - r * 8, 8)) as i:
            best.add(f.load(x, r * 8 + i) * f.cast(scale, "f32"), i)
        value, place = best.get()
        with f.branch(~(value != value)), f.loop(place & 3) as j:
            f.store(y, r + j, f.bitcast(value, "i32") >> 31 == -1)
    assert (
        str(f)
        == """\
void example(const f16* x, bool* y, i64 n, f64 scale) {
  i64 v0 = n + 7;
  i64 v1 = v0 / 8;
  parallel for (i64 i0 = 0; i0 < v1; i0++) {
    f32 s0_0 = -INFINITY;
    i64 s0_1 = 0;
    i64 v2 = i0 * 8;
    i64 v3 = v2 + 64;
    prefetch(x + v3);
    i64 v4 = i0 * 8;
    i64 v5 = n - v4;
    i64 v6 = minimum(v5, 8);
    vector for (i64 i1 = 0; i1 < v6; i1++) {
      i64 v7 = i0 * 8;
      i64 v8 = v7 + i1;
      f32 v9 = x[v8];
      f32 v10 = (f32) scale;
      f32 v11 = v9 * v10;
      f32 v12 = s0_0;
      i64 v13 = s0_1;
      bool v14 = v12 < v11;
      f32 v15 = v14 ? v11 : v12;
      bool v16 = v12 < v11;
      i64 v17 = v16 ? i1 : v13;
      s0_0 = v15;
      s0_1 = v17;
    }
    f32 v18 = s0_0;
    i64 v19 = s0_1;
    bool v20 = v18 != v18;
    bool v21 = !v20;
    if (v21) {
      i64 v22 = v19 & 3;
      for (i64 i2 = 0; i2 < v22; i2++) {
        i64 v23 = i0 + i2;
        i32 v24 = bits(i32) v18;
        i32 v25 = v24 >> 31;
        bool v26 = v25 == -1;
        y[v23] = v26;
      }
    }
  }
}"""
    )
    check(f)


# The code ------------------------------------------------------------------------------------
@machines()
@pytest.mark.parametrize("kind", NUMPY, ids=str)
def test_loads_and_stores(kind: str, machine: Machine) -> None:
    """Every memory type, every inner step, whole vectors and tails; nothing beyond is written."""
    for step in (None, 0, 1, 2):
        f = Function("move")
        x, y = f.buffer("x", kind), f.buffer("y", kind, written=True)
        n = f.param("n")
        along: Any = f.param("step") if step is None else step
        with f.vector(n, unroll=2) as i:
            f.store(y, i * 3 if step == 1 else i, f.load(x, i * along))
        assert lanes_of(f, machine) == machine.vector // (8 if kind == "f64" else 4)
        data = sample(kind, 1000)
        for count in LENGTHS:
            for taken in (2, 5) if step is None else (step,):
                room = np.zeros(700, NUMPY[kind])
                room[-1] = 1
                run_cached(f, machine, data, room, count, *([taken] if step is None else []))
                out = room[: 3 * count : 3] if step == 1 else room[:count]
                expected = np.zeros_like(out)
                if count:
                    expected[...] = data[0] if taken == 0 else data[: count * taken : taken]
                np.testing.assert_array_equal(_bits(out), _bits(expected))
                rest = room.copy()
                (rest[: 3 * count : 3] if step == 1 else rest[:count])[...] = 0
                assert not rest[:-1].any()
                assert rest[-1] == 1


@machines()
@pytest.mark.parametrize("kind", ["f32", "f64", "i32", "u8"])
def test_stores_with_step_two_leave_what_lies_between(kind: str, machine: Machine) -> None:
    f = Function("spread")
    x, y, n = f.buffer("x", kind), f.buffer("y", kind, written=True), f.param("n")
    with f.vector(n) as i:
        f.store(y, i * 2 + 1, f.load(x, i))
    for count in LENGTHS:
        data, target = sample(kind, max(count, 20)), sample(kind, 2 * count + 80, 1)
        expected = target.copy()
        expected[1 : 1 + 2 * count : 2] = data[:count]
        run_cached(f, machine, data, target, count)
        np.testing.assert_array_equal(target, expected)


@machines()
def test_halves(machine: Machine) -> None:
    """Every half is widened exactly, and floats around every half are rounded as by NumPy."""
    f = Function("widen")
    x, y, n = f.buffer("x", "f16"), f.buffer("y", "f32", written=True), f.param("n")
    with f.vector(n) as i:
        f.store(y, i, f.load(x, i))
    g = Function("narrow")
    z, w, m = g.buffer("z", "f32"), g.buffer("w", "f16", written=True), g.param("m")
    with g.vector(m) as i:
        g.store(w, i, g.load(z, i))
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    wide = np.empty(every.shape, np.float32)
    run(f, machine, every, wide, every.size)
    np.testing.assert_array_equal(wide, every.astype(np.float32))
    np.testing.assert_array_equal(np.signbit(wide), np.signbit(every))
    finite = np.unique(wide[np.isfinite(wide)])
    middle = (finite[1:] + finite[:-1]) / 2
    near = [np.nextafter(v, np.float32(to)) for v in (middle, finite) for to in (-np.inf, np.inf)]
    ends = np.float32([65519.996, 65520, 65536, 1e38, np.inf, np.nan, 1e-45, -0.0])
    floats = np.concatenate([middle, finite, *near, ends, -ends]).astype(np.float32)
    narrowed = np.empty(floats.shape, np.float16)
    run(g, machine, floats, narrowed, floats.size)
    with np.errstate(over="ignore", under="ignore"):
        expected = floats.astype(np.float16)
    np.testing.assert_array_equal(narrowed, expected)
    np.testing.assert_array_equal(np.signbit(narrowed), np.signbit(floats))


@machines()
@pytest.mark.parametrize("kind", ["f16", "f32", "f64", "i64"])
def test_neighbours_of_an_offset(kind: str, machine: Machine) -> None:
    shifts = (0, 1, 5, 15, 16, 17, 40)
    f = Function("ahead")
    x, n = f.buffer("x", kind), f.param("n")
    outs = [f.buffer(f"out{i}", kind, written=True) for i in range(len(shifts))]
    with f.vector(n) as i:
        for out, shift in zip(outs, shifts, strict=True):
            f.store(out, i, f.load(x, i + 3, ahead=shift))
    with f.branch(n > 0):  # outside of a vector loop, too
        f.store(outs[0], 0, f.load(x, n, ahead=2))
    for count in LENGTHS:
        data = sample(kind, 3 + count + max(shifts) + 64)
        results = [np.zeros(count, NUMPY[kind]) for _ in shifts]
        run_cached(f, machine, data, *results, count)
        for result, shift in zip(results, shifts, strict=True):
            expected = data[3 + shift : 3 + shift + count].copy()
            if count and not shift:
                expected[0] = data[count + 2]
            np.testing.assert_array_equal(result, expected)


@machines()
@pytest.mark.skipif(os.name != "posix", reason="needs mprotect")
def test_every_other_element_and_nothing_beyond_the_last(machine: Machine) -> None:
    """The elements end where a page begins that nobody may read."""
    page = mmap.PAGESIZE
    with mmap.mmap(-1, 2 * page) as area:
        whole = np.frombuffer(area, np.float32)
        whole[:] = np.arange(len(whole))
        f = Function("halve")
        x, y, n = f.buffer("x", "f32"), f.buffer("y", "f32", written=True), f.param("n")
        with f.vector(n) as i:
            f.store(y, i, f.load(x, i * 2))
        mprotect = ctypes.CDLL(None).mprotect
        mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        behind = whole.ctypes.data + page
        assert mprotect(behind, page, 0) == 0
        try:
            for count in (1, 2, 3, 7, 8, 15, 16, 17, 32, 45):
                given, out = whole[page // 4 - 2 * count + 1 : page // 4], np.zeros(count, "f")
                run_cached(f, machine, given, out, count)
                np.testing.assert_array_equal(out, given[::2])
        finally:
            assert mprotect(behind, page, mmap.PROT_READ | mmap.PROT_WRITE) == 0
        del whole, given


_compiled: dict[Any, Any] = {}


def run_cached(f: Function, machine: Machine, *args: Any) -> None:
    """`run`, compiling a function once for each machine."""
    key = (id(f), machine)
    if key not in _compiled:
        check(f)
        name = f"{f.name}_{machine.vector}_{next(_numbers)}"
        f.name = name
        at = jit.load(name, emit(f, machine))
        kinds = [ctypes.c_void_p] * (1 + len(f.buffers)) + [_C_TYPES[p.dtype] for p in f.params]
        _compiled[key] = (ctypes.CFUNCTYPE(None, *kinds)(at), f)
    given = [address(a) if isinstance(a, np.ndarray) else a for a in args]
    _compiled[key][0](0, *given)


def _bits(x: Any) -> Any:
    """The bits of an array; every NaN with the same ones."""
    x = x.copy()
    if x.dtype.kind in "fV":
        wide = x.astype(np.float64)
        x[np.isnan(wide)] = np.nan
    return x.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[x.itemsize])


NATIVE: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "copysign": np.copysign,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}


def _operations() -> list[tuple[str, str]]:
    from undertow.kernel.ir import OPERATIONS

    return [
        (op, kind)
        for op, (_, kinds) in OPERATIONS.items()
        for kind in kinds
        if op in NATIVE or (op == "div" and kind in FLOATS)
    ]


@machines()
def test_operations(machine: Machine) -> None:
    """Each operation on each of its types, in lanes and alone, against NumPy."""
    from undertow.kernel.ir import COMPARISONS, OPERATIONS

    for op, kind in _operations():
        arity = OPERATIONS[op][0]
        result = "bool" if op in COMPARISONS else kind
        f = Function("operate")
        ins = [f.buffer(f"x{j}", kind) for j in range(arity)]
        lanes, alone = f.buffer("lanes", result, True), f.buffer("alone", result, True)
        n = f.param("n")
        with f.vector(n) as i:
            f.store(lanes, i, f.call(op, *[f.load(x, i) for x in ins]))
        with f.loop(n) as i:
            f.store(alone, i, f.call(op, *[f.load(x, i) for x in ins]))
        data = [sample(kind, 100, seed) for seed in range(arity)]
        outs = [np.zeros(100, NUMPY[result]) for _ in range(2)]
        run(f, machine, *data, *outs, 100)
        with np.errstate(all="ignore"):
            expected = NATIVE.get(op, np.true_divide)(*data)
        for out in outs:
            np.testing.assert_array_equal(_bits(out), _bits(expected), err_msg=f"{op} of {kind}")


@machines()
@pytest.mark.parametrize("kind", INTEGERS)
def test_integer_division_and_shifts(kind: str, machine: Machine) -> None:
    """Truncating, with the sign of the dividend; a signed type keeps its sign."""
    f = Function("divide")
    x, y = f.buffer("x", kind), f.buffer("y", kind)
    outs = [f.buffer(name, kind, True) for name in ("div", "rem", "shl", "shr")]
    n = f.param("n")
    with f.vector(n) as i:
        a, b = f.load(x, i), f.load(y, i)
        f.store(outs[0], i, a // b)
        f.store(outs[1], i, a % b)
        f.store(outs[2], i, a << (b & 7))
        f.store(outs[3], i, a >> (b & 7))
    data, by = sample(kind, 50), sample(kind, 50, 1)
    by[(by == 0) | ((data == np.iinfo(NUMPY[kind]).min) & (by + 1 == 0))] = 3
    found = [np.zeros_like(data) for _ in outs]
    run(f, machine, data, by, *found, 50)
    quotients = [
        abs(int(a)) // abs(int(b)) * (-1 if (a < 0) != (b < 0) else 1)
        for a, b in zip(data, by, strict=True)
    ]
    assert found[0].tolist() == quotients
    assert found[1].tolist() == [
        int(a) - q * int(b) for a, b, q in zip(data, by, quotients, strict=True)
    ]
    np.testing.assert_array_equal(found[2], data << (by & 7))
    np.testing.assert_array_equal(found[3], data >> (by & 7))


@machines()
def test_casts(machine: Machine) -> None:
    """Between all types; integers wrap, floats truncate."""
    kinds = ["bool", *INTEGERS, *FLOATS]
    for source in kinds:
        f = Function("convert")
        x = f.buffer("x", source)
        outs = [f.buffer(f"to_{kind}", kind, True) for kind in kinds]
        n = f.param("n")
        with f.vector(n) as i:
            v = f.load(x, i)
            for out in outs:
                f.store(out, i, f.cast(v, out.dtype))
        data = sample(source, 70)
        if source in FLOATS:
            data = np.nan_to_num(abs(data), posinf=3, nan=5).clip(0, 127)
        found = [np.zeros(70, NUMPY[kind]) for kind in kinds]
        run(f, machine, data, *found, 70)
        for out in found:
            np.testing.assert_array_equal(out, data.astype(out.dtype), err_msg=str(out.dtype))


@machines()
def test_bits_select_and_fused(machine: Machine) -> None:
    f = Function("mixed")
    x, y = f.buffer("x", "f64"), f.buffer("y", "f64", True)
    words = f.buffer("words", "i64", True)
    n = f.param("n")
    with f.vector(n) as i:
        v = f.load(x, i)
        f.store(words, i, f.bitcast(v, "i64"))
        f.store(y, i, f.select(v > 0, f.call("fused", v, v, -1.0), 2 - v))
    data = 1 + np.arange(-20, 21) * 2.0**-40
    data[::3] *= -1
    out, bits = np.zeros_like(data), np.zeros(data.size, np.int64)
    run(f, machine, data, out, bits, data.size)
    np.testing.assert_array_equal(bits, data.view(np.int64))
    from fractions import Fraction

    exact = [float(Fraction(v) ** 2 - 1) if v > 0 else 2 - v for v in data.tolist()]
    np.testing.assert_array_equal(out, exact)


@machines()
@pytest.mark.parametrize("unroll", [1, 4])
def test_states(machine: Machine, unroll: int) -> None:
    """Sums, extremes with their place, and a state that an ordered loop carries."""
    f = Function("states")
    x, out = f.buffer("x", "f64"), f.buffer("out", "f64", True)
    n = f.param("n")
    total = f.state(f.const(0, "f64"), combine=lambda a, b: a + b)

    def larger(a: Value, i: Value, b: Value, j: Value) -> tuple[Value, Value]:
        take = (b > a) | ((b == a) & (j < i))
        return f.select(take, b, a), f.select(take, j, i)

    best = f.state(f.const(-np.inf, "f64"), f.const(2**62, "i64"), combine=larger)
    with f.vector(n, unroll) as i:
        v = f.load(x, i)
        total.add(v)
        best.add(v, i)
    last = f.state(f.const(1, "f64"), combine=lambda a, b: b)
    with f.loop(n) as i:
        last.set(last.get()[0] * 0.5 + f.load(x, i))
    for j, value in enumerate(
        (*total.get(), best.get()[0], f.cast(best.get()[1], "f64"), *last.get())
    ):
        f.store(out, j, value)
    for count in LENGTHS[1:]:
        data = np.random.default_rng(count).integers(-50, 50, count).astype(float)
        found = np.zeros(4)
        run_cached(f, machine, data, found, count)
        carried = 1.0
        for v in data:
            carried = carried * 0.5 + v
        assert found.tolist() == [data.sum(), data.max(), data.argmax(), carried]


@machines()
def test_rare_lanes_and_lookups(machine: Machine) -> None:
    f = Function("rare")
    x, y = f.buffer("x", "f32"), f.buffer("y", "f32", True)
    n = f.param("n")
    table = (10.0, 20.0, 30.0, 40.0)
    with f.vector(n) as i:
        v = f.load(x, i)
        entry = f.lookup(table, i & 3, "f32")
        f.store(y, i, f.rare(v < -150, entry, lambda: entry + v))
    data = sample("f32", 130)
    for count in LENGTHS:
        out = np.zeros(max(count, 1), np.float32)
        run_cached(f, machine, data, out, min(count, 130))
        take = data[: min(count, 130)]
        entries = np.tile(np.float32(table), 40)[: take.size]
        expected = np.where(take < -150, entries + take, entries)
        np.testing.assert_array_equal(out[: take.size], expected)


@machines()
@pytest.mark.parametrize("unroll", [1, 4])
def test_one_lane_after_the_other(machine: Machine, unroll: int) -> None:
    """Appended in order, beside a state of the lanes; what has been appended stops the rest."""
    f = Function("each")
    x, y, count = f.buffer("x", "f32"), f.buffer("y", "i64", True), f.buffer("count", "i64", True)
    n, most = f.param("n"), f.param("most")
    number = f.state(f.const(0, "i64"))
    low = f.state(f.const(0, "i64"), combine=lambda a, b: a + b)
    with f.vector(n, unroll) as i:
        v = f.load(x, i)
        low.add(f.cast(v < 0, "i64"))
        with f.each((v < 0) & (number.get()[0] < most)) as found:
            (at,) = number.get()
            f.store(y, at, found)
            number.set(at + 1)
    f.store(count, 0, number.get()[0])
    f.store(count, 1, low.get()[0])
    data = sample("f32", 200)
    for size in LENGTHS:
        places = np.flatnonzero(data[:size] < 0)
        for limit in (1000, 5):
            out, counts = np.full(200, -1), np.zeros(2, np.int64)
            run_cached(f, machine, data, out, counts, size, limit)
            assert counts[1] == places.size
            assert min(places.size, limit) <= counts[0] <= places.size
            np.testing.assert_array_equal(out[: counts[0]], places[: counts[0]])
            assert (out[counts[0] :] == -1).all()


@machines()
def test_memory_of_a_kernel_and_its_lanes(machine: Machine) -> None:
    """A histogram in memory of its own, in parallel; views; and the width that lanes have."""
    f = Function("own")
    x, y = f.buffer("x", "u8"), f.buffer("y", "i64", True)
    rows, n = f.param("rows"), f.param("n")
    f.element = 8
    table, halves = f.shared("table", "i64", 256), f.view(y, "i32")
    with f.parallel(rows) as row:
        with f.vector(256) as i:
            f.store(table, i, 0)
        with f.loop(n) as i:
            at = f.cast(f.load(x, row * n + i), "i64")
            f.store(table, at, f.load(table, at) + 1)
        with f.vector(256) as i:
            f.store(y, row * 258 + i, f.load(table, i))
        f.store(y, row * 258 + 256, f.lanes())
        f.store(halves, (row * 258 + 257) * 2, f.const(7, "i32"))
    data = np.random.default_rng(0).integers(0, 256, (3, 1000)).astype(np.uint8)
    out = np.zeros((3, 258), np.int64)
    run(f, machine, data, out, 3, 1000)
    np.testing.assert_array_equal(out[:, :256], [np.bincount(r, minlength=256) for r in data])
    assert (out[:, 256] == machine.vector // 8).all()
    assert (out[:, 257] == 7).all()


@machines()
@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16", "i32"])
def test_transposes_of_moved_buffers(kind: str, machine: Machine) -> None:
    """Neighbours in rows that are apart, of lanes that may be missing; nothing else is read."""
    wide = "f32" if kind in ("f16", "bf16") else kind
    f = Function("turned")
    x, y = f.buffer("x", kind), f.buffer("y", wide, True)
    n, apart, skip = f.param("n"), f.param("apart"), f.param("skip")
    lanes = lanes_of(f, machine)
    start = f.moved(x, skip)
    with f.vector(n) as i:
        place = i * apart
        places = [place + j for j in range(lanes)]
        for j, value in enumerate([f.load(start, place) for place in places]):
            f.store(f.moved(y, j * 4096), i, value, whole=True)
    text = emit(f, machine)
    assert "gather" not in text
    size = NUMPY[kind].itemsize
    for count in (1, 2, lanes - 1, lanes, lanes + 1, 3 * lanes - 1):
        data = sample(kind, 3 + count * (lanes + 5) - 5)
        out = np.full((lanes, 4096 // NUMPY[wide].itemsize), 7, NUMPY[wide])
        run(f, machine, data, out, count, lanes + 5, 3 * size)
        rows = [data[3 + i * (lanes + 5) :][:lanes] for i in range(count)]
        want = np.array(rows).astype(NUMPY[wide]).T
        np.testing.assert_array_equal(out[:, :count], want)
        assert (out[:, count + lanes :] == 7).all()


@machines()
def test_parallel_loops_in_a_row(machine: Machine) -> None:
    """One after the other; pure values before them are known in all, and a serial part between."""
    from undertow.backends.cpu.threads import pool

    f = Function("phases")
    x, parts = f.buffer("x", "i64"), f.buffer("parts", "i64", True)
    out = f.buffer("out", "i64", True)
    n = f.param("n")
    blocks = (n + 99) // 100
    with f.parallel(blocks) as b:
        total = f.state(f.const(0, "i64"), combine=lambda a, c: a + c)
        with f.vector(f.call("minimum", n - b * 100, 100)) as i:
            total.add(f.load(x, b * 100 + i))
        f.store(parts, b, total.get()[0])
    before = f.state(f.const(0, "i64"), combine=lambda a, c: a + c)
    with f.loop(blocks) as b:
        mine = f.load(parts, b)
        f.store(parts, b, before.get()[0])
        before.add(mine)
    with f.parallel(blocks) as b:
        run_ = f.state(f.const(0, "i64"), combine=lambda a, c: a + c)
        with f.loop(f.call("minimum", n - b * 100, 100)) as i:
            run_.add(f.load(x, b * 100 + i))
            f.store(out, b * 100 + i, run_.get()[0] + f.load(parts, b))
    data = np.random.default_rng(0).integers(-9, 9, 4321)
    found, scratch = np.zeros_like(data), np.zeros(44, np.int64)
    run(f, machine, data, scratch, found, data.size, pool=pool.pointer())
    np.testing.assert_array_equal(found, np.cumsum(data))


@machines()
def test_streams_and_masked_tails(machine: Machine) -> None:
    """A streaming store writes what a plain one does, also beside a tail."""
    f = Function("stream")
    x, y = f.buffer("x", "f32"), f.buffer("y", "f32", True)
    n = f.param("n")
    with f.vector(n) as i:
        f.prefetch(x, n)
        f.store(y, i, f.load(x, i) + 1, stream=True)
    room = np.zeros(2000, np.float32)
    start = -address(room) % 64 // 4
    for count in LENGTHS:
        room[:] = 0
        run_cached(f, machine, np.arange(500, dtype=np.float32), room[start:], count)
        np.testing.assert_array_equal(room[start : start + count], np.arange(1, count + 1))
        assert not room[:start].any()
        assert not room[start + count :].any()


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: f"{m.vector}bytes")
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_an_unrolled_loop_asks_for_each_line_once(kind: str, machine: Machine) -> None:
    f = Function("ahead")
    x, n = f.buffer("x", kind), f.param("n")
    total = f.state(f.const(0.0, x.scalar), combine=lambda a, b: (a + b,))
    with f.vector(n, unroll=4) as i:
        f.prefetch(x, i + 1024)
        total.add(f.load(x, i))
    bytes_ = 4 * lanes_of(f, machine) * np.dtype(NUMPY[kind]).itemsize
    # Then come single vectors, and the rest.
    found = emit(f, machine).count("call void @llvm.prefetch")
    assert found == max(1, bytes_ // 64) + 2


def test_results_do_not_depend_on_the_lanes() -> None:
    """An element's value is the same wherever it stands, in every width of vectors."""
    from undertow.kernel.expr import call, trace
    from undertow.kernel.maps import Operand, map_function

    expr = trace(lambda a, b: call("exp", a) * b + call("tanh", b), 2)
    data = [sample("f32", 777, seed) for seed in (0, 1)]
    results = []
    widest, fma, half, _ = this_machine()
    for machine in [Machine(width, fma, half) for width in (16, 32, 64) if width <= widest]:
        f = map_function("lanes", [expr], [Operand("f32", 1)] * 2, [Operand("f32", 1)], "f32", 1)
        out = np.zeros(777, np.float32)
        run(f, machine, out, *data, 777)
        results.append(_bits(out))
        shifted = np.zeros(770, np.float32)
        run(f, machine, shifted, *[d[7:] for d in data], 770)
        np.testing.assert_array_equal(_bits(shifted), _bits(out[7:]))
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


def test_signed_names() -> None:
    assert set(SIGNED) < set(INTEGERS)
    assert set(NUMPY) == {"bool", *INTEGERS, *FLOATS, "f16", "bf16"}
