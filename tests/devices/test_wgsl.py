"""Every operation of the loop IR as WGSL, run on a device, against NumPy; bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from undertow.kernel.ir import COMPARISONS, OPERATIONS
from wgsl_kernels import NUMPY, run

pytestmark = [pytest.mark.webgpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

INTEGERS = [t for t in NUMPY if t[0] in "iu"]
FLOATS = np.array(
    [0.0, 1, 1.5, 2.5, 0.1, 1e-20, 1e20, 3.4e38, 1.2e-38, 7.7, 1e8, 16777217, np.inf, np.nan, 2**31]
)
FLOATS = np.concatenate([FLOATS, -FLOATS]).astype(np.float32)


def integers(dtype: str) -> Any:
    info = np.iinfo(NUMPY[dtype])
    random = np.random.default_rng(0).integers(info.min, info.max, 40, NUMPY[dtype])
    edges = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7, 100]
    signed = [-1, -2, -7, -100] if info.min else []
    return np.concatenate([np.array(edges + signed, NUMPY[dtype]), random])


def pairs(values: Any) -> tuple[Any, Any]:
    return np.repeat(values, len(values)), np.tile(values, len(values))


def same(found: Any, expected: Any) -> None:
    expected = np.asarray(expected)
    assert found.dtype == expected.dtype
    if found.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
    np.testing.assert_array_equal(found, expected)


def truncated(op: Any) -> Any:
    def compute(a: Any, b: Any) -> Any:
        exact = np.vectorize(lambda x, y: int(op(int(x), int(y))), otypes=[object])(a, b)
        wrapped = np.array([int(v) & (2 ** (8 * a.itemsize) - 1) for v in exact], np.uint64)
        return wrapped.astype(f"u{a.itemsize}").view(a.dtype)

    return compute


def quotient(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": truncated(quotient),
    "rem": truncated(lambda x, y: x - quotient(x, y) * y),
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(runtime: Any, dtype: str) -> None:
    a, b = pairs(integers(dtype))
    for op, expected in BINARY.items():
        if op in ("div", "rem"):  # kernels do not divide by 0, see kernel/elementary_arith
            a, b = a[b != 0], b[b != 0]
        out = "bool" if op in COMPARISONS else dtype
        found = run(runtime, lambda f, x, y, op=op: f.call(op, x, y), [a, b], out)
        np.testing.assert_array_equal(found, expected(a, b), err_msg=op)
    unary = {"not": np.invert}
    if dtype[0] == "i":
        unary |= {"neg": np.negative, "abs": np.abs}
    for op, expected in unary.items():
        same(run(runtime, lambda f, x, op=op: f.call(op, x), [a], dtype), expected(a))
    bits = 8 * a.itemsize
    n = (np.arange(len(a)) % (bits + 3)).astype(a.dtype)
    left = np.where(n < bits, np.left_shift(a, np.minimum(n, bits - 1)), 0).astype(a.dtype)
    right = np.right_shift(a, np.minimum(n, bits - 1))
    filled = np.where(a < 0, ~np.zeros_like(a), np.zeros_like(a))
    right = np.where(n < bits, right, filled)
    same(run(runtime, lambda f, x, y: x << y, [a, n], dtype), left)
    same(run(runtime, lambda f, x, y: x >> y, [a, n], dtype), right)


@pytest.mark.parametrize("source", [*INTEGERS, "bool", "f32", "f16"])
def test_casts(runtime: Any, source: str) -> None:
    if source == "bool":
        a = np.array([True, False, True] * 5)
    elif source in ("f32", "f16"):
        a = np.concatenate([FLOATS, np.linspace(-200, 200, 99), [2**62, 2**40 + 2**20, -(2**62)]])
        a = a.astype(NUMPY[source])
    else:
        a = integers(source)
    for target in NUMPY:
        given = a
        if source in ("f32", "f16") and target[0] in "iu":
            bits = 31 if target == "i32" else 63
            given = a[np.abs(a.astype(np.float64)) < 2.0**bits]
            expected = given.astype(np.int64).astype(NUMPY[target])
        elif source in INTEGERS and target == "f16":
            expected = given.astype(np.float32).astype(np.float16)
        else:
            expected = given.astype(NUMPY[target])
        scalar = "f32" if target == "f16" else target
        found = run(runtime, lambda f, x, t=scalar: f.cast(x, t), [given], target)
        same(found, expected)


def test_floats(runtime: Any) -> None:
    random = np.random.default_rng(1).standard_normal(30).astype(np.float32) * np.float32(1e3)
    a, b = pairs(np.concatenate([FLOATS, random]))
    ops = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "copysign": np.copysign,
        "maximum": np.maximum,
        "minimum": np.minimum,
        **{op: BINARY[op] for op in COMPARISONS},
    }
    normal = np.finfo(np.float32).tiny
    for op, compute in ops.items():
        out = "bool" if op in COMPARISONS else "f32"
        found = run(runtime, lambda f, x, y, op=op: f.call(op, x, y), [a, b], out)
        expected = compute(a, b)
        if op in ("add", "sub", "mul", "div"):  # results too small may be flushed to zero
            keep = ~((expected != 0) & (np.abs(expected) < normal)) & ~np.isnan(expected)
            np.testing.assert_array_equal(np.isnan(found), np.isnan(expected), err_msg=op)
            found, expected = found[keep], expected[keep]
        np.testing.assert_array_equal(found, expected, err_msg=op)
    unary = {
        "neg": np.negative,
        "abs": np.abs,
        "sqrt": np.sqrt,
        "floor": np.floor,
        "ceil": np.ceil,
        "trunc": np.trunc,
        "rint": np.rint,
    }
    for op, compute in unary.items():
        found = run(runtime, lambda f, x, op=op: f.call(op, x), [a], "f32")
        np.testing.assert_array_equal(found, compute(a), err_msg=op)
        zeros = a == 0
        np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(compute(a)[zeros]))
    assert set(OPERATIONS) - set(ops) - set(unary) - set(BINARY) == {
        "fma",
        "fused",
        "scale",
        "any",
        "not",
        "shl",
        "shr",
    }


def test_fused_and_scale(runtime: Any) -> None:
    random = np.random.default_rng(2)
    a, b = random.standard_normal((2, 5000)).astype(np.float32)
    c = (-a * b).astype(np.float32)
    found = run(runtime, lambda f, x, y, z: f.call("fused", x, y, z), [a, b, c], "f32")
    same(found, (a.astype(np.float64) * b + c).astype(np.float32))
    near = c * random.uniform(-3, 3, 5000).astype(np.float32)
    found = run(runtime, lambda f, x, y, z: f.call("fused", x, y, z), [a, b, near], "f32")
    exact = a.astype(np.float64) * b + near
    assert np.mean(found != exact.astype(np.float32)) < 1e-3  # ties that the last sum decides
    n = random.integers(-120, 120, 5000).astype(np.float32)
    same(
        run(runtime, lambda f, x, y: f.call("scale", x, y), [a, n], "f32"),
        np.ldexp(a, n.astype(int)),
    )


def test_what_fast_math_would_fold(runtime: Any) -> None:
    x = np.concatenate([FLOATS, np.linspace(-9, 9, 50).astype(np.float32)])
    magic = np.float32(12582912)
    rounded = run(runtime, lambda f, v: (v + 12582912.0) - 12582912.0, [x], "f32")
    same(rounded, (x + magic) - magic)
    same(run(runtime, lambda f, v: v != v, [x], "bool"), np.isnan(x))
    same(run(runtime, lambda f, v: v == v, [x], "bool"), ~np.isnan(x))
    same(run(runtime, lambda f, v: ~(v < 3.0), [x], "bool"), ~(x < 3))
    folded: list[Callable[[Any], Any]] = [
        lambda v: v - v,
        lambda v: v / v,
        lambda v: v * 0.0,
        lambda v: 0.0 * v,
        lambda v: v + 0.0,
        lambda v: 0.0 - v,
        lambda v: v - 0.0,
        lambda v: 0.0 / v,
        lambda v: v / 0.0,
        lambda v: 1.0 / v,
        lambda v: v / 3.0,
        lambda v: v * v / v,
    ]
    for compute in folded:
        found = run(runtime, lambda f, v, compute=compute: compute(v), [x], "f32")
        expected = compute(x)
        np.testing.assert_array_equal(found, expected)
        some = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[some]), np.signbit(expected[some]))
    for number in (np.inf, -np.inf, np.nan):
        found = run(runtime, lambda f, v, c=number: f.select(v > 0, c, v), [x], "f32")
        np.testing.assert_array_equal(found, np.where(x > 0, np.float32(number), x))


@pytest.mark.parametrize("dtype", ["i8", "u8", "bool", "i16", "u16", "f16"])
def test_neighbours_in_a_word(runtime: Any, dtype: str) -> None:
    """Threads that store parts of one word leave each other's alone."""
    a = (np.random.default_rng(0).uniform(0, 100, 1001) > 50).astype(NUMPY[dtype])
    for _ in range(3):
        same(run(runtime, lambda f, x: x, [a], dtype), a)
