"""Generated kernels that read and write at index arrays, copy, convert and draw, against NumPy."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends import memory
from undertow.backends.cpu.backend import CpuBackend
from undertow.backends.cpu.calls import choice, launch
from undertow.backends.cpu.forms import indexing, scatter
from undertow.backends.cpu.forms.random import run_philox
from undertow.backends.philox import philox_words
from undertow.backends.reference import NumpyBackend
from undertow.devices import Device
from undertow.dtypes import bfloat16

KINDS = ("set", "add", "mul", "max", "min")
REAL = [np.dtype(c) for c in "?bhilBHILefd"] + [bfloat16.numpy]
NUMPY = NumpyBackend(Device("cpu"))
CPU = CpuBackend(Device("cpu"))


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels however small the arrays, on several threads, buckets of few rows, in small parts."""
    monkeypatch.setattr(choice, "MODE", "always")
    monkeypatch.setattr(scatter, "SORTED", 1)
    monkeypatch.setattr(scatter, "SPREAD", 0)
    monkeypatch.setattr(scatter, "BUCKET", 256)
    monkeypatch.setattr(scatter, "TOGETHER", 100)
    launch.PLANS.clear()
    before = ut.get_num_threads()
    ut.set_num_threads(2)
    yield
    ut.set_num_threads(before)


def numbers(rng: np.random.Generator, shape: Any, dtype: Any) -> Any:
    """Small numbers, so that products stay in range, and some NaNs and infinities."""
    x = np.asarray(rng.standard_normal(shape) * 2)
    if dtype.kind in "fV":
        x[rng.random(shape) < 0.02] = np.nan
        x[rng.random(shape) < 0.02] = -np.inf
    elif dtype.kind == "u":
        x = abs(x)
    elif dtype.kind == "c":
        return (x + 1j * rng.standard_normal(shape)).astype(dtype)
    return x.astype(dtype)


def same(found: Any, expected: Any) -> None:
    """Equal bit for bit, but for which NaN it is."""
    assert found.dtype == expected.dtype
    if found.dtype.kind == "V":
        found, expected = found.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_array_equal(found, expected)


def layouts(x: Any) -> list[Any]:
    """The same elements as `x`, lying in memory in other ways."""
    if not x.ndim:
        return [x]
    found = [x, np.asfortranarray(x)]
    spread = np.zeros([2 * n + 1 for n in x.shape], x.dtype)
    view = spread[tuple([slice(1, None, 2)] * x.ndim)]
    view[...] = x
    backward = np.flip(x).copy()
    return [*found, view, np.flip(backward)]


# gather and take -----------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [np.int64, np.int32])
@pytest.mark.parametrize("shape", [(37,), (5, 40), (4, 3, 33), (2, 3, 4, 5)])
def test_gather(shape: tuple[int, ...], kind: Any) -> None:
    rng = np.random.default_rng(1)
    for dim in range(len(shape)):
        x = numbers(rng, shape, np.dtype(np.float32))
        sizes = tuple(n if d == dim else max(1, n - 1) for d, n in enumerate(shape))
        sizes = tuple(2 * n if d == dim else n for d, n in enumerate(sizes))
        index = rng.integers(0, shape[dim], sizes).astype(kind)
        for a, i in itertools.product(layouts(x), layouts(index)):
            same(indexing.run_gather(a, dim, i), NUMPY.gather(a, dim, i))


@pytest.mark.parametrize("width", [1, 3, 16, 17, 100])
def test_gather_of_rows(width: int) -> None:
    """An index that is expanded along the rows picks whole ones."""
    rng = np.random.default_rng(2)
    x = numbers(rng, (50, width), np.dtype(np.float32))
    index = np.broadcast_to(rng.integers(0, 50, (70, 1)), (70, width))
    for a in layouts(x):
        same(indexing.run_gather(a, 0, index), NUMPY.gather(a, 0, index))


@pytest.mark.parametrize("dtype", [*REAL, np.dtype("F")], ids=str)
def test_take_of_every_dtype(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    x = numbers(rng, (40, 19), dtype)
    index = rng.integers(0, 40, (3, 50))
    same(indexing.run_take(x, (index,)), x[index])


ALL = slice(None)


@pytest.mark.parametrize(
    "key",
    [
        lambda i: (i(6, 9),),
        lambda i: (ALL, i(7, 9)),
        lambda i: (ALL, ALL, i(8, 9)),
        lambda i: (i(6, 9), i(7, 9)),
        lambda i: (i(6, 4, 1), i(7, 5)),
        lambda i: (ALL, i(7, 9), i(8, 1)),
        lambda i: (i(6, 9), ALL, i(8, 9)),  # apart: the indexed dimensions go first
        lambda i: (i(6, 9), i(7, 9), i(8, 9)),
        lambda i: (i(6),),
        lambda i: (ALL, i(7, 0)),
    ],
)
def test_take(key: Callable[..., Any]) -> None:
    rng = np.random.default_rng(4)
    x = numbers(rng, (6, 7, 8), np.dtype(np.float64))

    def index(size: int, *shape: int) -> Any:
        return np.asarray(rng.integers(0, size, shape))

    chosen = key(index)
    for a in layouts(x):
        same(CPU.take(a, chosen), NUMPY.take(a, chosen))


def test_complex_rows_are_left_to_numpy() -> None:
    x = np.arange(6, dtype=np.complex128)
    index = np.array([5, 0])
    assert indexing.run_take(x, (index,)) is None
    same(CPU.take(x, (index,)), x[[5, 0]])


@pytest.mark.parametrize("bad", [-1, 10, 2**40, -(2**62)])
def test_wild_indices_stay_inside(bad: int) -> None:
    """The ops check indices; memory that changes afterwards must not lead anywhere else."""
    x = np.arange(10.0)
    index = np.array([3, bad, 4])
    found = indexing.run_take(x, (index,))
    assert found.tolist() == [3.0, 9.0, 4.0]
    room = np.zeros(30)
    for limit in (1, 10**9):
        scatter.SORTED = limit  # buckets, then lines
        launch.PLANS.clear()
        scatter.run_put("add", room[10:20], (index,), np.ones(3), True)
    assert room[:10].tolist() == room[20:].tolist() == [0.0] * 10
    assert room.sum() == 6


def test_indices_out_of_range_are_errors_on_large_tensors() -> None:
    x = ut.zeros(100_000)
    for bad in (100_000, -100_001):
        index = ut.zeros(50_000, dtype=ut.int64)
        index[-1] = bad
        with pytest.raises(IndexError, match="out of range"):
            x[index]
        with pytest.raises(IndexError, match="out of range"):
            ut.gather(x, 0, index)
        with pytest.raises(IndexError, match="out of range"):
            x.index_add(0, index, ut.ones(50_000))


# scatter and put -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [*((k, np.dtype(c)) for k in KINDS for c in "?if"), *(("add", t) for t in REAL)],
)
def test_put_of_rows(kind: str, dtype: Any) -> None:
    """Duplicates combine in order; into a copy and in place; few indices and many."""
    rng = np.random.default_rng(5)
    for height, count, width in ((5, 40, 17), (60, 300, 1), (300, 40, 4), (1, 20, 3), (40, 0, 3)):
        x, source = numbers(rng, (height, width), dtype), numbers(rng, (count, width), dtype)
        index = rng.integers(0, height, count)
        with np.errstate(all="ignore"):
            expected = NUMPY.put(kind, x, (index,), source)
        same(CPU.put(kind, x, (index,), source), expected)
        strided = list(zip(layouts(x), layouts(source), strict=True))
        for a, s in strided if dtype.char == "f" else strided[:1]:
            target = a.copy(order="K")
            assert CPU.put(kind, target, (index,), s, True) is target
            same(target, expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sort", [1, 10**9], ids=["buckets", "lines"])
def test_scatter(kind: str, sort: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scatter, "SORTED", sort)
    rng = np.random.default_rng(6)
    for shape in ((60,), (9, 33), (5, 4, 21), (2, 3, 4, 5)):
        for dim in range(len(shape)):
            x = numbers(rng, shape, np.dtype(np.float32))
            sizes = tuple(3 * n if d == dim else max(1, n - 1) for d, n in enumerate(shape))
            index = rng.integers(0, shape[dim], sizes)
            source = numbers(rng, sizes, x.dtype)
            still = np.broadcast_to(index[..., :1], sizes)
            for i in (index, still, index.astype(np.int32), np.asfortranarray(index)):
                with np.errstate(all="ignore"):
                    expected = NUMPY.scatter(kind, x, dim, i, source)
                found = scatter.run_scatter(kind, x, dim, i, source, False)
                same(found, expected)
                for a in layouts(x)[1:] if kind == "add" else ():
                    target = a.copy(order="K")
                    scatter.run_scatter(kind, target, dim, i, source, True)
                    same(target, expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "key",
    [
        lambda i: (ALL, i(7, 30)),
        lambda i: (ALL, ALL, i(8, 30)),
        lambda i: (i(6, 30), i(7, 30)),
        lambda i: (i(6, 4, 1), i(7, 5)),
        lambda i: (ALL, i(7, 30), i(8, 1)),
        lambda i: (i(6, 30), ALL, i(8, 30)),
        lambda i: (i(6, 30), i(7, 30), i(8, 30)),
    ],
)
def test_put_at_several_dimensions(kind: str, key: Callable[..., Any]) -> None:
    rng = np.random.default_rng(7)
    x = numbers(rng, (6, 7, 8), np.dtype(np.float64))
    chosen = key(lambda size, *shape: rng.integers(0, size, shape))
    shape = x[chosen].shape
    for source in (
        numbers(rng, shape, x.dtype),
        np.broadcast_to(np.float64(1.5), shape),
        numbers(rng, shape[-1:], x.dtype),
    ):
        with np.errstate(all="ignore"):
            expected = NUMPY.put(kind, x, chosen, source)
        for a in layouts(x)[:: 1 if kind == "add" else 4]:
            same(CPU.put(kind, a, chosen, source), expected)
            target = a.copy(order="K")
            CPU.put(kind, target, chosen, source, True)
            same(target, expected)


def test_put_into_zeros_that_are_one_in_memory() -> None:
    rng = np.random.default_rng(8)
    index, source = rng.integers(0, 90, 500), numbers(rng, (500, 16), np.dtype(np.float32))
    zeros = np.broadcast_to(np.float32(0), (90, 16))
    same(CPU.put("add", zeros, (index,), source), NUMPY.put("add", zeros, (index,), source))


def test_put_of_what_shares_memory() -> None:
    """The source, or the index, may be the target itself."""
    x = np.arange(20.0).reshape(10, 2)
    index = np.array([1, 1, 0, 9, 3])
    expected = NUMPY.put("add", x.copy(), (index,), x[3:8])
    target = x.copy()
    CPU.put("add", target, (index,), target[3:8], True)
    same(target, expected)
    order = np.array([3, 2, 2, 0])
    expected = NUMPY.put("set", order.copy(), (order.copy(),), order + 1)
    CPU.put("set", order, (order,), order + 1, True)
    same(order, expected)


@pytest.mark.parametrize("sort", [1, 10**9], ids=["buckets", "lines"])
def test_the_number_of_threads_does_not_show(sort: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scatter, "SORTED", sort)
    rng = np.random.default_rng(9)
    x, source = (rng.standard_normal((n, 16)).astype(np.float32) for n in (500, 30_000))
    index = rng.zipf(1.5, 30_000) % 500
    wide = rng.standard_normal((3, 500)).astype(np.float32)
    many, picks = (rng.integers(0, 500, (3, 20_000)) for _ in range(2))
    values = rng.standard_normal((3, 20_000)).astype(np.float32)
    results = []
    for number in (1, 2, 3, 8):
        ut.set_num_threads(number)
        launch.PLANS.clear()
        results.append(
            [
                CPU.put("add", x, (index,), source),
                CPU.take(x, (index,)),
                CPU.scatter("add", wide, 1, many, values),
                CPU.gather(wide, 1, picks),
                CPU.put("add", x[:, 0], (index,), source[:, 0]),
                CPU.copy(source.T),
                CPU.philox(7, 5, 100_001),
            ]
        )
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a.view(np.uint32), b.view(np.uint32))


def test_gradients_of_large_lookups() -> None:
    """Forward, backward and twice backward through the kernels, against small pieces of NumPy."""
    rng = np.random.default_rng(10)
    table = rng.standard_normal((300, 16))
    index = rng.integers(0, 300, 5000)
    weight = ut.tensor(table, requires_grad=True)
    rows = ut.nn.functional.embedding(ut.tensor(index), weight)
    same(rows.detach().numpy(), table[index])
    (g,) = ut.autograd.grad((rows**3).sum(), weight, create_graph=True)
    times = np.bincount(index, minlength=300)[:, None]
    np.testing.assert_allclose(g.detach().numpy(), 3 * table**2 * times, rtol=1e-12)
    (h,) = ut.autograd.grad(g.sum(), weight)
    np.testing.assert_allclose(h.numpy(), 6 * table * times, rtol=1e-12)


# Copies --------------------------------------------------------------------------------------
@pytest.mark.parametrize("to", REAL, ids=str)
def test_conversions(to: Any) -> None:
    rng = np.random.default_rng(11)
    for dtype in REAL:
        x = rng.standard_normal((23, 37)) * 90
        x[0, :5] = 0, -0.0, 0.4, -0.6, 1
        x = abs(x).astype(dtype) if dtype.kind == "u" else x.astype(dtype)
        more = [*layouts(x), x[3], x[:, :0], x[::-2, 1::3]] if dtype.char in "?fL" else []
        for a in (x, *more):
            same(CPU.cast(a, to), NUMPY.cast(a, to))


def test_large_integers_wrap_and_nan_is_true() -> None:
    x = np.array([300, -1, 2**40 + 5, -(2**63)])
    same(CPU.cast(x, np.dtype("B")), NUMPY.cast(x, np.dtype("B")))
    same(CPU.cast(x, np.dtype("i")), NUMPY.cast(x, np.dtype("i")))
    wild = np.array([np.nan, 0.0, -0.0, np.inf, 5e-324])
    assert CPU.cast(wild, np.dtype("?")).tolist() == [True, False, False, True, True]
    same(CPU.cast(np.array([300.7, -1.5]), np.dtype("B")), np.array([44, 255], "B"))


@pytest.mark.parametrize("dtype", [np.dtype(c) for c in "?hfdFD"] + [bfloat16.numpy], ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (130, 70), (65, 64, 3), (9, 1, 65, 10)])
def test_copies_of_any_layout(shape: tuple[int, ...], dtype: Any) -> None:
    rng = np.random.default_rng(12)
    x = numbers(rng, shape, dtype)
    for order in itertools.islice(itertools.permutations(range(x.ndim)), 12):
        for a in layouts(x):
            found = CPU.copy(a.transpose(order))
            same(found, NUMPY.copy(a.transpose(order)))
            assert found.flags.c_contiguous
            assert not np.may_share_memory(found, a)


def test_copies_keep_every_bit() -> None:
    """A NaN's bits too, which arithmetic would change."""
    words = np.arange(0x7F800000, 0x7F800000 + 5000, dtype=np.uint32)
    same(CPU.copy(words.view(np.float32)).view(np.uint32), words)
    halves = np.arange(1 << 16, dtype=np.uint16)
    same(CPU.copy(halves.view(np.float16)).view(np.uint16), halves)
    flags = np.array([0, 1, 255, 2], np.uint8)
    same(CPU.copy(flags.view(bool)).view(np.uint8), flags)


def test_assign() -> None:
    rng = np.random.default_rng(13)
    for shape, small in (((40, 70), (70,)), ((40, 70), (40, 1)), ((3, 40), ()), ((40, 70),) * 2):
        for dtype in (np.dtype("f"), np.dtype("l"), np.dtype("?")):
            source = rng.standard_normal(small) * 9
            for target in layouts(np.zeros(shape, dtype)):
                expected = target.copy()
                np.copyto(expected, source, casting="unsafe")
                CPU.assign(target, source)
                same(np.array(target), expected)


def test_assign_of_what_overlaps() -> None:
    x = np.arange(1000.0)
    expected = np.concatenate([x[:1], x[:-1]])
    CPU.assign(x[1:], x[:-1])
    same(x, expected)


@pytest.mark.parametrize("value", [0, -0.0, 1, 2.5, float("nan"), float("-inf"), True, 1 + 2j])
def test_full(value: Any) -> None:
    for dtype in (np.dtype("f"), np.dtype("e"), np.dtype("F"), np.dtype("?"), np.dtype("l")):
        if isinstance(value, complex) and dtype.kind != "c":
            continue
        if isinstance(value, float) and value != value and dtype.kind in "l?":
            continue
        if dtype.kind == "i" and not np.isfinite(value):
            continue
        for shape in ((), (0,), (3, 50)):
            found = CPU.full(shape, value, dtype)
            same(found, np.full(shape, value, dtype))
            if dtype.kind == "f":
                same(np.signbit(found), np.signbit(np.full(shape, value, dtype)))


@pytest.mark.parametrize("dtype", [np.dtype("f"), np.dtype("B"), np.dtype("D")], ids=str)
def test_concat(dtype: Any) -> None:
    rng = np.random.default_rng(14)
    for dim in (0, 1, 2, -1):
        shapes = [tuple(n if d == dim % 3 else 20 for d in range(3)) for n in (5, 0, 1, 33)]
        parts = [numbers(rng, s, dtype) for s in shapes]
        parts[0] = np.asfortranarray(parts[0])
        same(CPU.concat(parts, dim), np.concatenate(parts, dim))


# Elementwise, in place -----------------------------------------------------------------------
def test_in_place_arithmetic() -> None:
    rng = np.random.default_rng(15)
    a, b = rng.standard_normal((2, 50, 60)).astype(np.float32)
    t = ut.tensor(a)
    view = t[:, ::2]
    at = view._array.__array_interface__["data"][0]
    view.mul_(ut.tensor(b[:, ::2])).add_(2.5).exp_()
    expected = a.copy()
    expected[:, ::2] = np.exp(a[:, ::2] * b[:, ::2] + 2.5)
    np.testing.assert_allclose(t.numpy(), expected, rtol=3e-7)
    assert view._array.__array_interface__["data"][0] == at
    assert t._version == 3
    t.add_(t[0])  # an operand that overlaps, but not element by element
    expected = t.numpy().copy()
    t.sub_(t.T.T)
    assert not t.numpy().any()
    square = ut.tensor(a[:, :50].copy())
    square.add_(square.T)
    np.testing.assert_array_equal(square.numpy(), a[:, :50] + a[:, :50].T)


def test_in_place_sums_with_a_factor() -> None:
    rng = np.random.default_rng(16)
    a, b = rng.standard_normal((2, 500)).astype(np.float32)
    t, other = ut.tensor(a), ut.tensor(b)
    same(t.add_(other, alpha=-0.1).numpy(), a + b * np.float32(-0.1))
    t = ut.tensor(a)
    same(t.sub_(other, alpha=3).numpy(), a - b * np.float32(3))
    same(t.add_(1.5, alpha=2).numpy(), a - b * np.float32(3) + np.float32(3))
    same(ut.tensor(a).div_(other).numpy(), a / b)
    whole = ut.tensor([1, 2])
    assert whole.add_(whole, alpha=2).tolist() == [3, 6]
    with pytest.raises(ValueError, match="alpha"):
        whole.add_(whole, alpha=0.5)
    with pytest.raises(TypeError):
        whole.add_(whole, 2)
    x = ut.ones(2, requires_grad=True)
    y = x * 1
    y.add_(x, alpha=3).sub_(x, alpha=0.5).sum().backward()
    assert x.grad.tolist() == [3.5, 3.5]


def test_in_place_arithmetic_is_still_recorded() -> None:
    x = ut.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    y[:1].exp_()
    y.mul_(3)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [3 * np.e, 3.0], rtol=1e-6)
    with pytest.raises(RuntimeError, match="leaf"):
        x.exp_()


# Memory --------------------------------------------------------------------------------------
def test_large_arrays_begin_a_line() -> None:
    for size in (1, 3, memory.LARGE // 4, 100_003):
        a = memory.empty((size,), np.dtype(np.float32))
        assert a.shape == (size,)
        assert a.flags.c_contiguous
        assert a.flags.writeable
        if a.nbytes >= memory.LARGE:
            assert a.__array_interface__["data"][0] % memory.LINE == 0
    t = ut.zeros(300, 300)
    assert t.storage_offset() == 0
    assert t[3:].storage_offset() == 900
    assert pickle.loads(pickle.dumps(t[3:])).shape == (297, 300)
    t[5:].add_(1)
    assert t.sum().item() == 295 * 300


# Random words --------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", [0, 123456789012345, 2**64 - 1])
def test_philox(seed: int) -> None:
    for offset, count in ((0, 1), (0, 16_384 * 4 + 3), (7, 999), (2**34 + 5, 70_001), (3, 0)):
        same(run_philox(seed, offset, count), philox_words(seed, offset, count))


@pytest.mark.parametrize("mode", ["never", "always"])
def test_draws_do_not_depend_on_the_path(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Integers and uniform numbers are equal, normal ones up to rounding."""
    monkeypatch.setattr(choice, "MODE", mode)
    choice._limits.clear()
    g = ut.Generator()
    assert ut.randint(-5, 1000, (3,), generator=g.manual_seed(4)).tolist() == [841, 11, 114]
    uniform = ut.rand(3, generator=g.manual_seed(4)).tolist()
    assert uniform == [0.13243025541305542, 0.7109265327453613, 0.6706991791725159]
    normal = ut.randn(3, generator=g.manual_seed(4)).numpy()
    np.testing.assert_allclose(normal, [-0.4887229, -1.9505252, 0.8607459], rtol=2e-6)
    choice._limits.clear()
