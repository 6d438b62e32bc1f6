"""Generated reductions against NumPy: layouts, types, special values, threads and digits."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import undertow as ut
from undertow import dtypes
from undertow.backends.cpu.forms.reductions import run_map_reduce, run_reduce
from undertow.backends.reference import NumpyBackend
from undertow.devices import Device
from undertow.kernel.expr import call, trace

REFERENCE = NumpyBackend(Device("reference"))
BFLOAT16 = dtypes.bfloat16.numpy
VALUES = ("sum", "mean", "prod", "max", "min", "squares")
KINDS = (*VALUES, "any", "all", "argmax", "argmin")
EDGES = (1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 8191, 8192, 8193, 16385)
# One for each way that the loops can run: rows, rows in pieces, columns, columns in pieces, and
# several dimensions of each kind in turn.
LAYOUTS = (
    ((70, 130), (1,)),
    ((20000,), (0,)),
    ((3, 9001), (1,)),
    ((9, 700), (0,)),
    ((301, 70), (0,)),
    ((4, 5, 6, 40), (1, 3)),
    ((40, 5, 6, 20), (0, 2)),
    ((3, 50, 2, 33), (0, 1, 3)),
    ((500, 3), (1,)),
)


def expected(kind, x, dims, keepdim=False):
    """What NumPy finds in float64, or with the type's own arithmetic."""
    floating = x.dtype.kind not in "iub"
    wide = x.astype(np.float64) if floating and kind not in ("argmax", "argmin") else x
    if kind == "squares":
        centred = wide - wide.mean(axis=dims, keepdims=True)
        return (centred * centred).sum(axis=dims, keepdims=keepdim)
    if kind == "mean":
        return wide.mean(axis=dims, keepdims=keepdim)
    return REFERENCE.reduce(kind, wide, dims, keepdim)


def compare(kind, x, dims, keepdim=False):
    got = run_reduce(kind, x, dims, keepdim)
    want = expected(kind, x, dims, keepdim)
    assert got is not None
    assert got.shape == want.shape
    floating = x.dtype.kind not in "iub" and kind in VALUES
    assert got.dtype == (x.dtype if floating else want.dtype)
    if floating and kind in ("sum", "mean", "prod", "squares"):
        eps = 2.0**-7 if x.dtype == BFLOAT16 else float(np.finfo(x.dtype).eps)
        scale = expected(kind, np.abs(x), dims, keepdim) if kind in ("sum", "mean") else want
        if x.dtype == np.float64:  # then what it is compared with has errors, too
            eps *= x.size if kind == "prod" else 8
        error = np.abs(got.astype(np.float64) - want)
        np.testing.assert_array_less(error, 8 * eps * np.abs(scale) + 1e-37, err_msg=kind)
    else:
        np.testing.assert_array_equal(got, want.astype(got.dtype), err_msg=kind)
    return got


def sample(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    signs = np.where(rng.random(shape) < 0.4, -1, 1)
    return np.asarray(rng.uniform(0.5, 1.5, shape) * signs).astype(dtype)


# Layouts ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("shape", "dims"), LAYOUTS, ids=str)
def test_layouts(kind, shape, dims):
    if kind.startswith("arg"):
        dims = dims[-1:]
    x = sample(shape, "f4")
    if kind in ("any", "all"):
        x[...] = kind == "all"
        x[(-1,) * x.ndim] = kind == "any"
    compare(kind, x, dims)
    compare(kind, x, dims, True)


@pytest.mark.parametrize("kind", ["sum", "argmin"])
def test_strides(kind):
    x = sample((6, 40, 50), "f4")
    views = [
        x.transpose(2, 1, 0),
        x.transpose(1, 0, 2),
        x[:, ::2],
        x[..., ::3],
        x[::-1, :, ::-1],
        x[:, 5:30, 7:],
        x[:, :, :1].repeat(1, 2),
        np.broadcast_to(x[:, :1], x.shape),
        np.broadcast_to(x[:, :, :1], x.shape),
        np.broadcast_to(x[0, 0, :1], (30, 70)),
        x[1],
        x[:, 0],
        np.asfortranarray(x),
        x[:1],
        x[..., :1],
    ]
    for view in views:
        for d in range(view.ndim):
            compare(kind, view, (d,))
        if kind != "argmin":
            compare(kind, view, tuple(range(view.ndim)))
            compare(kind, view, (0, view.ndim - 1))
            compare(kind, view, ())


@pytest.mark.parametrize("kind", ["sum", "min", "argmax", "squares"])
def test_sizes_around_lanes_and_blocks(kind):
    for n in EDGES:
        line = sample((n,), "f4", n)
        compare(kind, line, (0,))
        compare(kind, sample((3, n), "f4", n), (1,))
        compare(kind, sample((n, 3), "f4", n), (0,))
        compare(kind, sample((5, n), "f4", n), (0,))
        compare(kind, sample((37, n), "f4", n)[:, : n - n // 3], (0,))


@given(st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_any_layout(data):
    rank = data.draw(st.integers(1, 4))
    shape = data.draw(st.lists(st.sampled_from((1, 2, 3, 7, 20, 33)), min_size=rank, max_size=rank))
    x = sample(shape, "f4", rank)
    for d in range(rank):
        start, step = (
            data.draw(st.integers(0, x.shape[d] - 1)),
            data.draw(st.sampled_from((1, 2, -1))),
        )
        x = x[(slice(None),) * d + (slice(start, None, step),)]
    x = x.transpose(data.draw(st.permutations(range(rank))))
    dims = tuple(sorted(data.draw(st.sets(st.integers(0, rank - 1)))))
    kind = data.draw(st.sampled_from(("sum", "max")))
    compare(kind, x, dims, data.draw(st.booleans()))


def test_nothing_to_reduce():
    for shape, dims in (((0, 3), (0,)), ((0, 3), (1,)), ((0,), (0,))):
        assert run_reduce("sum", np.zeros(shape, "f4"), dims, False) is None
    assert run_reduce("prod", np.ones((3, 4), "c8"), (0,), False) is None
    compare("sum", sample((), "f4"), ())
    compare("sum", sample((1, 1), "f4"), (0, 1))


# Types -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "dtype", ["f2", BFLOAT16, "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"], ids=str
)
def test_types(dtype):
    kinds = KINDS
    if np.dtype(dtype).kind in "iub":
        kinds = [k for k in KINDS if k not in ("mean", "squares")]
    for kind in kinds:
        layouts = (((33, 70), (1,)), ((40, 65), (0,)), ((17000,), (0,)))
        for shape, dims in layouts if kind in ("sum", "argmax") else layouts[:2]:
            x = sample(shape, dtype, 3)
            if kind == "prod" and x.dtype.kind not in "iub":
                x = np.abs(x)[: 20 if x.ndim > 1 else None] ** x.dtype.type(0.01)
            compare(kind, x, dims)


def test_integers_wrap():
    x = np.full((70, 200), 100, "i1")
    assert run_reduce("sum", x, (0, 1), False) == np.add.reduce(x, axis=(0, 1), dtype="i1")
    assert (run_reduce("prod", x + 3, (1,), False) == np.multiply.reduce(x + 3, 1, "i1")).all()


def test_sums_of_halves_do_not_stop():
    x = np.ones(5000, "f2")
    assert run_reduce("sum", x, (0,), False) == 5000
    assert run_reduce("mean", np.full(5000, 60000, "f2"), (0,), False) == 60000


# Special values --------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
@pytest.mark.parametrize("kind", ["max", "min", "argmax", "argmin"])
def test_nan_and_infinities(kind, dtype):
    for n in (1, 2, 17, 64, 130, 8200):
        x = sample((n,), dtype)
        cases = [
            x,
            np.full(n, -math.inf, dtype),
            np.full(n, math.inf, dtype),
            np.full(n, math.nan, dtype),
            np.zeros(n, dtype),
        ]
        for places in ((0,), (n - 1,), (n // 2,), (n // 3, n // 2), (min(16, n - 1), n - 1)):
            for special in (math.nan, math.inf, -math.inf):
                y = x.copy()
                y[list(places)] = special
                cases.append(y)
            both = y.copy()
            both[places[-1]] = math.nan
            cases.append(both)
        for y in cases:
            compare(kind, y, (0,))
            rows, columns = np.stack([x, y, x]), np.stack([x, y, x], axis=1)
            compare(kind, rows, (1,))
            compare(kind, columns, (0,))


def test_first_of_equal_extremes():
    for n in (5, 40, 300, 9000):
        for dtype in ("f4", "i4", "i8", "u1", "?"):
            x = sample((n,), dtype) if dtype == "?" else sample((n,), "i4") % 3
            x = x.astype(dtype)
            for kind in ("argmax", "argmin"):
                compare(kind, x, (0,))
                compare(kind, np.stack([x] * 20, axis=1), (0,))
    for dtype in ("i4", "u8", "i8"):
        for edge in (np.iinfo(dtype).min, np.iinfo(dtype).max):
            for kind in ("argmax", "argmin", "max", "min"):
                compare(kind, np.full((3, 70), edge, dtype), (1,))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "?", "f2"])
def test_extremes_with_their_places(dtype):
    for shape, dim in (((5, 20000), 1), ((100, 70), 1), ((300, 70), 0), ((9, 70), 0)):
        x = np.round(sample(shape, "f4") * 3).astype(dtype)
        if x.dtype.kind == "f":
            x[2, 3], x[4] = math.nan, -math.inf
        for kind in ("max", "min"):
            values, places = run_reduce(f"first_{kind}", x, (dim,), True)
            want = REFERENCE.reduce(f"first_{kind}", x, (dim,), True)
            np.testing.assert_array_equal(values, want[0])
            np.testing.assert_array_equal(places, want[1])
            assert (values.dtype, places.dtype) == (x.dtype, np.int64)


def test_infinite_sums():
    x = sample((3, 9000), "f4")
    x[0, 5000], x[1, 1], x[2, 2], x[2, 3] = math.inf, math.nan, math.inf, -math.inf
    np.testing.assert_array_equal(run_reduce("sum", x, (1,), False), [math.inf, math.nan, math.nan])
    assert np.isnan(run_reduce("squares", x, (1,), False)).all()
    np.testing.assert_array_equal(run_reduce("mean", x.T, (0,), False), [math.inf, *[math.nan] * 2])


# Digits ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("dims", [(0, 1), (0,), (1,)])
def test_sums_of_float32_are_as_good_as_in_pairs(dims):
    rng = np.random.default_rng(1)
    normal = rng.standard_normal((2048, 2048)).astype("f4")
    uniform = rng.random((2048, 2048)).astype("f4")
    cancelling = normal * np.float32(1e8)
    cancelling[1::2] = -cancelling[::2]
    cancelling[:, 0] += 1
    spikes = uniform + (uniform > 0.999) * np.float32(1e8)
    shuffled = rng.permutation(cancelling.ravel()).reshape(2048, 2048)
    for x in (normal, normal + np.float32(1e3), uniform, cancelling, shuffled, spikes):
        exact, size = x.sum(dims, dtype="f8"), np.abs(x).sum(dims, dtype="f8")
        error = np.abs(run_reduce("sum", x, dims, False) - exact)
        assert np.max(error / size) <= 16 * 2.0**-24
        error = np.abs(run_reduce("mean", x, dims, False) - x.mean(dims, dtype="f8"))
        assert np.max(error / np.abs(x).mean(dims, dtype="f8")) <= 16 * 2.0**-24


@pytest.mark.parametrize("shape", [(1 << 20,), (64, 16384), (16384, 64)])
def test_sums_of_float64_are_as_good_as_in_pairs(shape):
    rng = np.random.default_rng(2)
    for x in (
        rng.standard_normal(shape),
        rng.random(shape),
        rng.standard_normal(shape) * 1e8 + 1e8,
    ):
        for dims in ((0,), tuple(range(x.ndim))):
            got = np.ravel(run_reduce("sum", x, dims, False))
            lines = x.reshape(1, -1) if len(dims) == x.ndim else x.T
            for line, value in zip(lines[:5], got, strict=False):
                size = math.fsum(np.abs(line))
                assert abs(value - math.fsum(line)) <= 8 * 2.0**-53 * size


@pytest.mark.parametrize("dims", [(0, 1), (0,), (1,)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_variance_far_from_zero(dims, dtype):
    rng = np.random.default_rng(3)
    x = (1e6 + rng.standard_normal((700, 900))).astype(dtype)
    x[0, 0] = 0  # and an outlier where the kernel may look for a first guess
    centred = x.astype("f8") - x.mean(dims, dtype="f8", keepdims=True)
    want = (centred**2).sum(dims)
    got = run_reduce("squares", x, dims, False)
    assert np.max(np.abs(got / want - 1)) < (1.2e-7 if dtype == "f4" else 1e-12)
    assert run_reduce("squares", np.full((40, 50), 0.1, dtype), dims, False).max() == 0


# Threads ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_results_do_not_depend_on_threads(kind):
    before = ut.get_num_threads()
    arrays = [
        sample((300, 1111), "f4"),
        sample((1111, 300), "f8"),
        sample((3, 70000), "f4"),
        sample((70000, 3), "f4"),
        sample((40, 37, 200), "f4").transpose(1, 2, 0),
    ]
    if kind == "prod":
        arrays = [np.abs(a) ** a.dtype.type(0.01) for a in arrays]
    try:
        for x in arrays:
            for dims in ((0,), (1,), tuple(range(x.ndim))):
                if kind.startswith("arg") and len(dims) > 1:
                    continue
                found = []
                for threads in (1, 2, 3, 8):
                    ut.set_num_threads(threads)
                    found += [run_reduce(kind, x, dims, False).tobytes() for _ in range(3)]
                assert len(set(found)) == 1
    finally:
        ut.set_num_threads(before)


# With a map ------------------------------------------------------------------------------------
PRODUCT = trace(lambda a, b: a * b, 2)
POWER = trace(lambda x, p: call("sqrt", call("abs", x)) + p, 2)
NONZERO = trace(lambda x: x != 0, 1)
ITSELF = trace(lambda x: x, 1)


def test_map_of_broadcast_operands():
    x = sample((30, 1, 70), "f4")
    for other in (
        sample((40, 70), "f4", 1),
        sample((40, 1), "f4", 2),
        sample((30, 40, 70), "f4", 3),
    ):
        for a, b in ((x, other), (other, x)):
            for dims in ((0,), (1,), (2,), (0, 2), (0, 1, 2)):
                got = run_map_reduce("sum", PRODUCT, [a, b], dims, False, a.dtype)
                want = (a.astype("f8") * b).sum(dims)
                np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-5)


def test_map_with_numbers_and_types():
    x = sample((50, 60), "f4")
    got = run_map_reduce("max", POWER, [x, 0.25], (1,), True, x.dtype)
    np.testing.assert_allclose(got, (np.sqrt(np.abs(x)) + 0.25).max(1, keepdims=True), rtol=1e-6)
    x[x < 0] = 0
    for dtype in ("f4", "f2", "i4", "?"):
        y = x.astype(dtype)
        expr = ITSELF if dtype == "?" else NONZERO
        got = run_map_reduce("sum", expr, [y], (0,), False, np.dtype("i8"))
        assert got.dtype == np.int64
        np.testing.assert_array_equal(got, np.count_nonzero(y, axis=0))
