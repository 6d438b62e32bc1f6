"""Kernels of windows against NumPy's: geometries, layouts, types, special values, threads."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.autograd import grad
from undertow.backends.cpu.forms.windows import LONG, run_spans, run_window
from undertow.backends.reference import NumpyBackend
from undertow.devices import Device
from undertow.dtypes import bfloat16
from undertow.kernel.windows import Geometry

F = ut.nn.functional
REFERENCE = NumpyBackend(Device("reference"))
KINDS = ["float32", "float64", "float16", "int8", "uint8", "int32", "int64"]


def geometry(rng: np.random.Generator, kind: str, rank: int) -> Geometry:
    """Any that has a window: dilated, padded by more than the kernel, cut off, with strides."""
    while True:

        def some(low: int, high: int) -> tuple[int, ...]:
            return tuple(rng.integers(low, high, rank).tolist())

        ends = [some(0 if kind == "max" else -1, 4) for _ in range(2)]
        found = Geometry(
            some(1, 60 if rank == 1 else 12),
            some(2, 4),
            some(1, 4),
            tuple(zip(*ends, strict=True)),
            (1,) * rank if kind == "max" else some(1, 4),
            some(1, 4),
        )
        if min(found.output) > 0 and min(found.padded) > 0:
            return found


def layouts(x: Any, lead: int) -> list[Any]:
    """The same elements row-major, reversed in memory, channels last, and with gaps."""
    found = [x, np.asfortranarray(x), np.repeat(x, 2, -1)[..., ::2], x[..., ::-1].copy()[..., ::-1]]
    if lead:
        last = np.ascontiguousarray(np.moveaxis(x, lead - 1, -1))
        found.append(np.moveaxis(last, -1, lead - 1))
    return found


def compare(kind: str, x: Any, g: Geometry) -> None:
    """The kernel's answer is NumPy's; sums are of small whole numbers, so they are exact."""
    got = run_window(kind, x, g.kernel, *g.steps)
    want = REFERENCE.window(kind, x, g.kernel, *g.steps)
    assert got is not None, "there is no kernel"
    told = f"{kind} {x.dtype} {x.shape} {x.strides} {g}"
    if kind == "sum":
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(got, want, told)
        return
    (values, places), (best, found) = got, want
    assert (values.dtype, places.dtype) == (x.dtype, found.dtype)
    np.testing.assert_array_equal(values.astype(np.float64), best.astype(np.float64), told)
    ones = np.ones(g.size)
    seen = REFERENCE.window("sum", ones, g.kernel, *g.steps) > 0
    np.testing.assert_array_equal(np.where(seen, places, 0), np.where(seen, found, 0), told)
    assert places.min() >= 0
    assert places.max() < ones.size


@pytest.mark.parametrize("kind", ["max", "sum"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_geometries(kind: str, rank: int) -> None:
    rng = np.random.default_rng(rank)
    for trial in range(40):
        g = geometry(rng, kind, rank)
        lead = trial % 3
        shape = (*rng.integers(1, 20, lead).tolist(), *g.size)
        x = rng.integers(-5, 6, shape).astype(np.float32)
        compare(kind, x, g)
        compare(kind, layouts(x, lead)[trial % (4 + (lead > 0))], g)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_spans(rank: int) -> None:
    """Windows as even as can be: sums of whole numbers, and the first largest of few values."""
    rng = np.random.default_rng(rank)
    for _ in range(12):
        size, output = (tuple(rng.integers(1, 40 if rank == 1 else 14, rank)) for _ in range(2))
        size, output = tuple(map(int, size)), tuple(map(int, output))
        for x in layouts(rng.integers(-4, 5, (3, 9, *size)).astype(np.float32), 2):
            sums, (values, places) = run_spans("sum", x, output), run_spans("max", x, output)
            assert np.array_equal(sums, REFERENCE.spans("sum", x, output))
            expected = REFERENCE.spans("max", x, output)
            assert np.array_equal(values, expected[0])
            assert np.array_equal(places, expected[1])
            assert places.dtype == expected[1].dtype


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_elements_of_wide_windows_are_lanes(dtype: str) -> None:
    """The first of equal elements and the last NaN win, whatever lane they are in."""
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, (5, 1003)).astype(dtype)
    if dtype != "int32":
        x[1], x[2, ::97], x[3, 200:] = -np.inf, np.nan, np.nan
    flat = Geometry((1003,), (100,), (90,), ((20, 30),), (1,), (1,))
    high = Geometry((17, 59), (3, 25), (2, 17), ((1, 1), (3, 3)), (1, 1), (2, 1))
    for kind in ("max", "sum"):
        compare(kind, x, flat)
        compare(kind, x.reshape(5, 17, 59), high)
    for output in ((7,), (41,)):
        values, places = run_spans("max", x, output)
        expected = REFERENCE.spans("max", x, output)
        assert np.array_equal(values, expected[0], equal_nan=dtype != "int32")
        ordered = values == values  # of several NaN the form may give any
        assert np.array_equal(places[ordered], expected[1][ordered])


def test_long_windows_lose_no_digits() -> None:
    """Sums of pieces are added in double precision."""
    x = np.full((2, 3_000_000), 0.1, np.float32)
    want = np.float32(np.float64(np.float32(0.1)) * 1_500_000)
    assert np.allclose(run_spans("sum", x, (2,)), want, rtol=1e-5, atol=0)


def test_neighbours_that_see_the_same_are_one_run() -> None:
    """As in the gradient of a mean over windows of their stride."""
    x = np.random.default_rng(0).integers(-4, 5, (3, 9)).astype(np.float32)
    g = Geometry((900,), (100,), (100,), ((0, 0),), (1,), (1,)).of_input
    compare("sum", x, g)
    assert np.array_equal(run_spans("sum", x, (1000,)), REFERENCE.spans("sum", x, (1000,)))


@pytest.mark.parametrize("kind", ["max", "sum"])
@pytest.mark.parametrize("dtype", [*KINDS, "bfloat16"])
def test_types(kind: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    for rank in (1, 2):
        g = geometry(rng, kind, rank)
        x = rng.integers(0, 5, (2, 9, *g.size))
        x = x.astype(bfloat16.numpy if dtype == "bfloat16" else dtype)
        for each in (x, layouts(x, 2)[-1]):
            compare(kind, each, g)


def test_special_values() -> None:
    """NaN wins, the first of equal ones does, and -inf is found where there is nothing else."""
    rng = np.random.default_rng(0)
    for rank in (1, 2, 3):
        for _ in range(20):
            g = geometry(rng, "max", rank)
            x = rng.integers(-2, 3, (2, 9, *g.size)).astype(np.float32)
            x[rng.random(x.shape) < 0.4] = -np.inf
            x[rng.random(x.shape) < 0.1] = np.nan
            x[x == 1] = np.inf
            x[x == 2] = -0.0
            compare("max", x, g)
            compare("max", layouts(x, 2)[-1], g)


def test_wide_windows_and_long_rows() -> None:
    """More elements than are unrolled, and rows that several threads share."""
    rng = np.random.default_rng(0)
    x = rng.integers(-9, 9, (2, 3 * LONG + 5)).astype(np.float32)
    for kind in ("max", "sum"):
        compare(kind, x, Geometry(x.shape[1:], (20,), (1,), ((9, 10),), (1,), (1,)))
        compare(kind, x, Geometry(x.shape[1:], (3,), (2,), ((1, 0),), (1,), (7,)))
        compare(kind, x[0], Geometry(x.shape[1:], (11,), (5,), ((0, 0),), (1,), (1,)))
    compare("sum", x, Geometry(x.shape[1:], (4,), (1,), ((3, 3),), (3,), (1,)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_divided_sums(dtype: str) -> None:
    """Half precision is rounded once, after the division."""
    g = Geometry((9, 8), (3, 3), (2, 2), ((1, 1),) * 2, (1, 1), (1, 1))
    x = np.random.default_rng(0).standard_normal((2, 9, 9, 8)).astype(dtype)
    for each in (x, layouts(x, 2)[-1]):
        got = run_window("sum", each, g.kernel, *g.steps, 7.0)
        total = REFERENCE.window("sum", x.astype(np.float64), g.kernel, *g.steps) / 7
        assert got.dtype == x.dtype
        np.testing.assert_allclose(got, total, rtol=2 * np.finfo(dtype).eps, atol=1e-6)
        np.testing.assert_allclose(
            got, REFERENCE.window("sum", x, g.kernel, *g.steps, 7.0), rtol=1e-3, atol=1e-6
        )


def test_results_keep_the_channels_last() -> None:
    x = np.moveaxis(np.ones((2, 6, 6, 32), np.float32), -1, 1)
    values, places = run_window("max", x, (2, 2), (2, 2), ((0, 0),) * 2, (1, 1), (1, 1))
    for found in (values, places):
        assert found.shape == (2, 32, 3, 3)
        assert np.moveaxis(found, 1, -1).flags.c_contiguous


def test_where_there_is_no_kernel() -> None:
    """Nothing to pool, no dimension to pool over, and types that kernels do not know."""
    more = ((2,), (2,), ((0, 0),), (1,), (1,))
    assert run_window("sum", np.ones((0, 4), np.float32), *more) is None
    assert run_window("sum", np.ones((2, 1), np.float32), *more) is None
    assert run_window("sum", np.ones((2, 4), np.complex64), *more) is None
    assert run_window("max", np.ones(4, np.float32), (), (), (), (), ()) is None


# The ops -------------------------------------------------------------------------------------
def ones(x: ut.Tensor, number: float = 1.0) -> ut.Tensor:
    return ut.full((x.shape[1],), number, dtype=x.dtype)


CASES = {
    "max 3 by 3": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max with ceil_mode": lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
    "max dilated": lambda x: F.max_pool2d(x, 3, 2, 1, 2),
    "max of everything": lambda x: F.max_pool2d(x, (41, 37)),
    "mean 3 by 3": lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "mean 2 by 2": lambda x: F.avg_pool2d(x, 2),
    "mean of everything": lambda x: F.avg_pool2d(x, (41, 37)),
    "batch_norm": lambda x: F.batch_norm(x, None, None, ones(x, 3.0), training=True),
    "batch_norm by fixed": lambda x: F.batch_norm(x, ones(x), ones(x, 4.0), None, ones(x)),
    "group_norm": lambda x: F.group_norm(x, 4, ones(x, 2.0)),
}


@pytest.mark.parametrize("name", CASES)
def test_precision_and_any_number_of_threads(name: str) -> None:
    """Single precision is near to double, and the same bits whoever computes it."""
    rng = np.random.default_rng(0)
    data = rng.standard_normal((4, 16, 41, 37))
    cotangent = rng.standard_normal(CASES[name](ut.tensor(data)).shape)

    def results(dtype: Any) -> list[Any]:
        x = ut.tensor(data.astype(dtype), requires_grad=True)
        y = CASES[name](x)
        (slope,) = grad(y, x, ut.tensor(cotangent.astype(dtype)))
        return [y.detach().numpy(), slope.numpy()]

    before = ut.get_num_threads()
    try:
        ut.set_num_threads(1)
        alone = results(np.float32)
        for threads in (2, 3):
            ut.set_num_threads(threads)
            for found, same in zip(results(np.float32), alone, strict=True):
                assert found.tobytes() == same.tobytes()
    finally:
        ut.set_num_threads(before)
    for found, exact in zip(alone, results(np.float64), strict=True):
        np.testing.assert_allclose(found, exact, rtol=2e-5, atol=2e-5)


def test_gradients_of_gradients_agree_with_differences() -> None:
    """Of large arrays, along a direction: the kernels of the second order are the first's."""
    rng = np.random.default_rng(0)
    x = ut.tensor(rng.standard_normal((2, 8, 20, 21)), requires_grad=True)
    step = ut.tensor(rng.standard_normal(x.shape))
    for pool in (lambda t: F.max_pool2d(t, 3, 2, 1), lambda t: F.avg_pool2d(t, 3, 2, 1)):

        def slope(t: Any, pool: Any = pool) -> Any:
            return grad((pool(t) ** 3).sum(), t, create_graph=True)[0]

        (second,) = grad(slope(x), x, step)
        tiny = 1e-6
        ahead, behind = (slope((x + s * tiny * step).detach().requires_grad_()) for s in (1, -1))
        difference = (ahead - behind).detach().numpy() / (2 * tiny)
        np.testing.assert_allclose(second.numpy(), difference, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("features", ["-avx512f", "-avx"])
def test_narrower_vectors(features: str) -> None:
    """The same in vectors of 32 and 16 bytes."""
    code = """
from test_kernel_windows import *
test_geometries("max", 1)
test_geometries("sum", 2)
test_types("max", "bfloat16")
test_types("sum", "int8")
test_wide_windows_and_long_rows()
test_precision_and_any_number_of_threads("max 3 by 3")
"""
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    environment = {**os.environ, "UNDERTOW_CPU_FEATURES": features, "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
