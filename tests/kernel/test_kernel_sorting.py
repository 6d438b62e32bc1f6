"""Generated sorts and searches against NumPy's: sizes, types, ties, special values and threads."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends.cpu.backend import CpuBackend
from undertow.backends.cpu.forms import sorting
from undertow.backends.cpu.forms.searching import run_search
from undertow.backends.cpu.forms.sorting import run_rank, run_sort
from undertow.backends.reference import NumpyBackend
from undertow.devices import Device
from undertow.dtypes import bfloat16
from undertow.kernel.sorting import FEW

REAL = [np.dtype(c) for c in "?bhilBHILefd"] + [bfloat16.numpy]
REFERENCE = NumpyBackend(Device("reference"))
CPU = CpuBackend(Device("cpu"))
# One element, a vector and one more, counted, dealt, and beyond what fits into the first cache.
SIZES = (1, 2, 9, 16, 17, FEW, FEW + 1, 300, 5000)


def sample(shape: Any, dtype: Any, ties: bool = False) -> Any:
    """Elements of the whole range of a type, or few of them over and over."""
    rng = np.random.default_rng(0)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        if ties:
            return rng.choice(np.array([info.min, 0, 1, info.max], dtype), shape)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    x = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)
    x = (np.round(rng.standard_normal(shape)) if ties else x).astype(dtype)
    for special in (np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0):
        x[rng.random(shape) < 0.03] = special
    return x


def check(x: Any, dim: int, descending: bool, count: int | None) -> None:
    found = run_sort(x, dim, descending, count, CPU)
    for got, want in zip(found, REFERENCE.sort(x, dim, descending, count), strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        assert got.flags.c_contiguous
        assert got.tobytes() == want.tobytes()


def counts(n: int) -> list[int | None]:
    return [None, *sorted({c for c in (1, 2, 7, 40, n // 9, n // 2, n) if 1 <= c <= n})]


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("ties", [False, True])
def test_types_and_sizes(dtype: Any, ties: bool) -> None:
    for n in SIZES:
        x = sample((3, n), dtype, ties)
        for descending in (False, True):
            for count in counts(n):
                check(x, 1, descending, count)


@pytest.mark.parametrize("shape", [(7, 300), (300, 7), (5, 6, 130), (40, 1), (1, 40), (2, 600, 3)])
def test_layouts(shape: tuple[int, ...]) -> None:
    whole = sample(shape, np.dtype("f4"), True)
    turned = (slice(None, None, -1),) * whole.ndim
    packed = np.zeros(shape, [("tag", "i2"), ("x", "f4")])
    packed["x"] = whole
    views = [whole, whole.T, whole[turned], whole[..., ::2], packed["x"]]
    for x in [*views, np.broadcast_to(whole[..., :1], shape)]:
        for dim in range(x.ndim):
            for count in (None, min(3, x.shape[dim])):
                check(x, dim, True, count)


@pytest.mark.parametrize("dtype", ["f4", "i4", "i8", "u1"])
def test_rows_whose_elements_are_all_the_same(dtype: str) -> None:
    kind = np.dtype(dtype).kind
    for value in (0, 1, np.nan if kind == "f" else np.iinfo(dtype).max):
        x = np.full((2, 3000), value, dtype)
        for descending in (False, True):
            for count in (None, 5, 200):
                check(x, 1, descending, count)


def test_the_first_elements_lie_together_or_in_one_group() -> None:
    for x in (np.arange(5000.0), -np.arange(5000.0), np.where(np.arange(5000) % 32, 0.0, 1.0)):
        for count in (5, 40):
            for descending in (False, True):
                check(x.astype("f4"), 0, descending, count)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1", "e"])
def test_results_do_not_depend_on_threads(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "SEVERAL", 1)
    before = ut.get_num_threads()
    try:
        for threads in (1, 2, 3, 8):
            ut.set_num_threads(threads)
            for shape in ((1000,), (9, 700), (500, 9), (1, 1, 5000)):
                for ties in (False, True):
                    check(sample(shape, np.dtype(dtype), ties), len(shape) - 1, ties, None)
            check(sample((40, 3000), np.dtype(dtype)), 1, True, 12)
    finally:
        ut.set_num_threads(before)


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("ties", [False, True])
def test_ranks(dtype: Any, ties: bool) -> None:
    for shape, dim in (((3, 500), 1), ((3, 1001), 1), ((600, 5), 0), ((20000,), 0)):
        x, n = sample(shape, dtype, ties), shape[dim]
        for rank in (n // 16, n // 3, n // 2, n - 2, n - 1):
            found = run_rank(x, dim, rank, CPU)
            for got, want in zip(found, REFERENCE.ranked(x, dim, rank), strict=True):
                assert (got.shape, got.dtype) == (want.shape, want.dtype)
                assert got.tobytes() == want.tobytes()


def test_ranks_that_a_sample_misleads() -> None:
    places = np.arange(8000)
    sampled = np.zeros(8000, bool)
    sampled[np.arange(400) * 8000 // 400] = True  # the cube root squared
    for x in (places, -places, places % 20, np.where(sampled, 1e6, places), np.sin(places)):
        for rank in (500, 4000, 7999):
            for dtype in ("f4", "i8"):
                rows = np.stack([x, x[::-1]]).astype(dtype)
                found = run_rank(rows, 1, rank, CPU)
                np.testing.assert_array_equal(found[1], REFERENCE.ranked(rows, 1, rank)[1])


def test_ranks_on_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "SEVERAL", 1)
    before = ut.get_num_threads()
    x = sample((50, 900), np.dtype("f4"))
    try:
        for threads in (1, 2, 3, 8):
            ut.set_num_threads(threads)
            for got, want in zip(
                run_rank(x, 1, 450, CPU), REFERENCE.ranked(x, 1, 450), strict=True
            ):
                assert got.tobytes() == want.tobytes()
    finally:
        ut.set_num_threads(before)


def test_who_writes_meanwhile_does_no_harm() -> None:
    """Elements may be others when they are read again; only elements of the row are ever read."""
    x = np.zeros((4, 4096), "f4")
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            x[...] = np.nan
            x[...] = 0

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(200):
            values, indices = run_sort(x, 1, True, 20, CPU)
            assert values.shape == indices.shape == (4, 20)
            assert np.isin(values[~np.isnan(values)], (0,)).all()
            values, indices = run_rank(x, 1, 2000, CPU)
            assert values.shape == indices.shape == (4, 1)
    finally:
        done.set()
        writer.join()


def test_what_has_no_kernel() -> None:
    assert run_sort(np.zeros((0, 3), "f4"), 1, False, None, CPU) is None
    assert run_sort(np.zeros((3, 0), "f4"), 1, False, None, CPU) is None
    assert run_sort(np.ones((2, 3), "f4"), 1, False, 0, CPU) is None
    assert run_sort(np.ones(3, ">f4"), 0, False, None, CPU) is None
    assert run_rank(np.ones(499, "f4"), 0, 250, CPU) is None
    assert run_rank(np.ones(5000, "f4"), 0, 3, CPU) is None
    for k in (0, 1, 3):
        values, indices = ut.ones(2, 3).topk(k)
        assert values.shape == indices.shape == (2, k)


def test_the_ops_that_sort() -> None:
    x = ut.tensor(sample((20, 700), np.dtype("f4"), True))
    values, indices = x.sort(descending=True)
    best = x.topk(30)
    np.testing.assert_array_equal(best.values.numpy(), values[:, :30].numpy())
    assert best.indices.equal(indices[:, :30])
    assert x.argsort(descending=True).equal(indices)
    lowest = x.topk(5, largest=False, sorted=False)
    assert lowest.indices.equal(x.sort().indices[:, :5])
    assert x.kthvalue(350).indices.equal(x.argsort()[:, 349])
    numbers = x.nan_to_num()
    assert numbers.median(1).indices.equal(numbers.argsort()[:, 349])
    assert numbers.msort().equal(numbers.sort(0).values)


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("right", [False, True])
def test_searches(dtype: Any, right: bool) -> None:
    for count in (1, 2, 3, 8, 100, 5000):
        for ties in (False, True):
            edges, _ = REFERENCE.sort(sample((2, count), dtype, ties), 1, False)
            values = np.concatenate([sample((2, 300), dtype, ties), edges], 1)
            for e, v in ((edges, values), (edges[0], values[0]), (edges[1], values[:, ::3])):
                found = run_search(e, v, right)
                want = REFERENCE.searchsorted(e, v, right)
                assert (found.shape, found.dtype) == (want.shape, want.dtype)
                np.testing.assert_array_equal(found, want)


def test_searches_of_odd_sizes_and_threads() -> None:
    edges = np.sort(np.random.default_rng(0).standard_normal((3, 77)), 1)
    before = ut.get_num_threads()
    try:
        for threads in (1, 3):
            ut.set_num_threads(threads)
            for width in (1, 2, 5, 9, 1023, 1025, 3000):
                values = np.random.default_rng(1).standard_normal((3, width))
                found = run_search(edges, values, False)
                np.testing.assert_array_equal(found, REFERENCE.searchsorted(edges, values, False))
    finally:
        ut.set_num_threads(before)
    assert run_search(edges[0], np.array(0.5), False).shape == ()
    assert run_search(edges[:, :0], values, False) is None
    assert run_search(edges, values[:, :0], False) is None
    assert run_search(edges.astype("f4"), values, False) is None
