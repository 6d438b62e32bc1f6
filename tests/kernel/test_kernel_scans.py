"""Generated scans and recurrences against NumPy: layouts, types, special values and threads."""

import math

import numpy as np
import pytest

import undertow as ut
from undertow import dtypes
from undertow.backends.cpu.forms.scans import run_scan
from undertow.backends.reference import NumpyBackend
from undertow.devices import Device

REFERENCE = NumpyBackend(Device("reference"))
BFLOAT16 = dtypes.bfloat16.numpy
# Lines side by side (narrow, wide, in pieces), and along memory (few, many, in pieces).
SHAPES = (
    (7, 300),
    (300, 7),
    (130, 200),
    (3, 70001),
    (70001, 3),
    (1200, 300),
    (5, 6, 7, 8),
    (1, 40),
    (40, 1),
    (90000,),
    (1,),
    (17,),
    (3, 20, 70),
)


def sample(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    return rng.standard_normal(shape).astype(dtype)


def views(x):
    yield x
    yield x.T
    yield x[(slice(None, None, 2),) * x.ndim]
    yield x[(slice(None, None, -1),) * x.ndim]


def wide(x):
    return x.astype(np.float64) if x.dtype.kind not in "iub" else x


def check_sum(x, dim):
    got = run_scan("sum", [x], dim)
    assert got.dtype == x.dtype
    if x.dtype.kind in "iub":
        np.testing.assert_array_equal(got, np.add.accumulate(x, dim, dtype=x.dtype))
        return
    exact = np.cumsum(wide(x), dim)
    eps = 2.0**-7 if x.dtype == BFLOAT16 else float(np.finfo(x.dtype).eps)
    slack = 1e-15 * np.cumsum(np.abs(wide(x)), dim) * math.sqrt(x.shape[dim])
    np.testing.assert_array_less(np.abs(wide(got) - exact), eps * np.abs(exact) + slack + 1e-300)


def check_extremes(x, dim):
    for kind in ("max", "min"):
        values, indices = run_scan(kind, [x], dim)
        want, places = REFERENCE.scan(kind, x, dim)
        np.testing.assert_array_equal(values, want)
        np.testing.assert_array_equal(indices, places)
        assert (values.dtype, indices.dtype) == (x.dtype, np.int64)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_layouts(shape):
    whole = sample(shape, "f4")
    for x in views(whole):
        for dim in range(x.ndim):
            check_sum(x, dim)
            check_extremes(np.round(x, 1), dim)
            factors = np.sign(x) * np.abs(x) ** np.float32(0.01)
            got, want = run_scan("prod", [factors], dim), np.cumprod(wide(factors), dim)
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-37)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("reverse", [False, True])
def test_recurrences(shape, reverse):
    for x in views(sample(shape, "f4")):
        a = np.tanh(x)[(slice(None, None, -1),) * x.ndim]
        for dim in range(x.ndim):
            got = run_scan("recurrence", [a, x], dim, reverse)
            want = REFERENCE.recurrence(wide(a), wide(x), dim, reverse)
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-5)


def test_the_first_factor_of_a_recurrence_is_not_used():
    for shape, dim in (((5, 30), 1), ((30, 5), 0), ((30, 100), 0)):
        a, b = np.ones(shape, "f4"), np.ones(shape, "f4")
        first = (slice(None),) * dim + (0,)
        a[first] = math.inf
        assert np.isfinite(run_scan("recurrence", [a, b], dim)).all()


@pytest.mark.parametrize(
    "dtype", ["f2", BFLOAT16, "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"], ids=str
)
def test_types(dtype):
    for shape, dim in (((9, 130), 1), ((40, 200), 0), ((50, 9), 0)):
        x = sample(shape, dtype)
        check_sum(x, dim)
        check_extremes(x, dim)
        if x.dtype.kind in "iub":
            got = run_scan("prod", [x], dim)
            np.testing.assert_array_equal(got, np.multiply.accumulate(x, dim, dtype=x.dtype))
        else:
            got = run_scan("recurrence", [x, x], dim)
            assert got.dtype == x.dtype
            want = REFERENCE.recurrence(wide(x), wide(x), dim, False)
            eps = 2.0**-7 if x.dtype == BFLOAT16 else float(np.finfo(x.dtype).eps)
            np.testing.assert_allclose(wide(got), want, rtol=4 * eps, atol=40 * eps)


def test_nan_and_infinities():
    x = sample((6, 70000), "f4")
    x[0, 40000], x[1, 20000], x[2, [10, 50000]] = math.nan, math.inf, math.nan
    x[3, 5], x[3, 40000], x[4] = math.inf, -math.inf, -math.inf
    x[5, ::7] = math.inf
    for y, dim in ((x, 1), (np.ascontiguousarray(x.T), 0), (np.repeat(x[:, ::300].T, 20, 1), 0)):
        check_extremes(y, dim)
        with np.errstate(invalid="ignore"):
            want = np.cumsum(wide(y), dim)
        got = run_scan("sum", [y], dim)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        np.testing.assert_array_equal(np.isinf(got), np.isinf(want))


def test_sums_do_not_drift():
    x = np.full(1 << 20, 0.1, "f4")
    exact = np.cumsum(x, dtype="f8")
    assert np.max(np.abs(run_scan("sum", [x], 0) / exact - 1)) < 2.0**-23


def test_what_has_no_kernel():
    assert run_scan("sum", [np.zeros((0, 3), "f4")], 0) is None
    assert run_scan("sum", [np.ones(5, "c8")], 0) is None


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min", "recurrence"])
def test_results_do_not_depend_on_threads(kind):
    before = ut.get_num_threads()
    try:
        for shape in ((3, 80000), (80000, 3), (1500, 300), (50, 40, 70), (120000,)):
            x = sample(shape, "f4")
            arrays = [np.tanh(x), x] if kind == "recurrence" else [x]
            for dim in range(x.ndim):
                found = set()
                for threads in (1, 2, 3, 8):
                    ut.set_num_threads(threads)
                    out = run_scan(kind, arrays, dim)
                    found.add(
                        b"".join(o.tobytes() for o in (out if type(out) is tuple else (out,)))
                    )
                assert len(found) == 1
    finally:
        ut.set_num_threads(before)


def odd(x, layout):
    """The same elements in memory that no kernel takes, in another order, or as they are."""
    if layout == "packed":  # steps of 6 bytes, elements at odd multiples of 2
        record = np.zeros(x.shape, [("tag", "i2"), ("x", x.dtype)])
        record["x"] = x
        return record["x"]
    if layout == "strided":
        return np.repeat(x, 3)[::3]
    return np.ascontiguousarray(x[::-1])[::-1] if layout == "reversed" else x


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("count", [500, 50000])
@pytest.mark.parametrize("layout", ["row", "strided", "reversed", "packed"])
def test_accuracy_does_not_depend_on_layout(layout, count, device):
    """Every element is the float64 result, rounded once; the gradient too, by its recurrence."""
    x = odd((sample(count, "f4") + np.float32(0.1)), layout)
    t = ut.from_numpy(x).to(device).requires_grad_()
    w = wide(x)
    for scan, exact in ((ut.cumsum, np.cumsum(w)), (ut.logcumsumexp, np.logaddexp.accumulate(w))):
        np.testing.assert_allclose(scan(t, 0).detach().cpu().numpy(), exact, rtol=1e-7, atol=1e-7)
    factors = odd(np.exp(x / 1000).astype("f4"), layout)
    t = ut.from_numpy(factors).to(device).requires_grad_()
    y = ut.cumprod(t, 0)
    exact = np.cumprod(wide(factors))
    np.testing.assert_allclose(y.detach().cpu().numpy(), exact, rtol=1e-7)
    (slope,) = ut.autograd.grad(y.sum(), t)
    later = np.cumsum(exact[::-1])[::-1] / wide(factors)
    np.testing.assert_allclose(slope.cpu().numpy(), later, rtol=1e-6)
