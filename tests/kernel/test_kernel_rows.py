"""Row programs as kernels, against NumPy in double precision; and the ops that are made of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

import undertow as ut
from undertow import dtypes
from undertow.backends.cpu.forms.rows import LONG, run_rows
from undertow.backends.reference import NumpyBackend
from undertow.backends.registry import CPU
from undertow.devices import Device
from undertow.kernel.expr import call, where
from undertow.kernel.row_program import rows
from undertow.ops.nn.classification import _forward_row, _slope_row
from undertow.ops.nn.normalisation import _backward_rows, _forward_rows
from undertow.ops.nn.softmax import _log_softmax_rows, _masked_softmax_rows, _softmax_rows

F = ut.nn.functional
REFERENCE = NumpyBackend(Device("reference"))
BFLOAT16 = dtypes.bfloat16.numpy
# Around the lanes of a vector, four vectors, a piece, a block, and what caches hold.
EDGES = (1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 1000, 4095, 4096, 4097, 20000)
# For results of about the size of one, from rows of some thousand elements.
TOLERANCE = {"float64": 2e-14, "float32": 5e-6, "float16": 2e-3, "bfloat16": 2e-2}


def everything(p, x, y, r, k):
    """Each kind of stage, and outputs of elements and rows from several loops."""
    low, high = p.min(x), p.max(x)
    middle = p.row((low + high) * 0.5 + r)
    e = p.keep(call("exp", (x - high) * 0.1))
    total = p.sum(e * y)
    late = p.sum(e * call("abs", x - middle))
    p.out((x - low) * k)
    p.out_row(middle)
    p.out(where(p.column == 0, 0.0, e * p.row(1.0 / (1.0 + total * total)) + late * 1e-4))
    p.out_row(total + p.first(y) * 0.5)


EVERYTHING = rows(everything, 2, 1, 1)


def plain(p, x, y, r, k):
    """Reductions in several loops, with nothing kept between them."""
    high = p.max(x * y)
    total = p.sum(x - high * 0.01)
    p.out((x - p.row(total * 0.001)) * r + k)
    p.out_row(p.sum(x * y - total * 0.001) + p.first(y))
    p.out_row(high - p.first(x) * 0.5)


PLAIN = rows(plain, 2, 1, 1)


def numbers(*shape, dtype=np.float32, seed=0):
    return np.asarray(np.random.default_rng(seed).standard_normal(shape)).astype(dtype)


def compare(program, operands, dims, kinds=None):
    """Run the kernel, compare with the program in double precision, return the results."""
    arrays = [o for o in operands if isinstance(o, np.ndarray)]
    kind = next(a.dtype for a in arrays if a.dtype.kind in "fV")
    kinds = kinds or (kind,) * len(program.outputs)
    got = run_rows(program, operands, dims, kinds)
    assert got is not None, "there is no kernel"
    wide = [
        o.astype(np.float64) if isinstance(o, np.ndarray) and o.dtype.kind in "fV" else o
        for o in operands
    ]
    with np.errstate(all="ignore"):
        want = REFERENCE.rows(program, wide, dims, (np.dtype(np.float64),) * len(kinds))
    for g, w, k, o in zip(got, want, kinds, program.outputs, strict=True):
        assert g.dtype == k
        assert g.shape == w.shape
        tolerance = TOLERANCE[kind.name] * (np.abs(w[np.isfinite(w)]).max(initial=1.0))
        np.testing.assert_allclose(
            g.astype(np.float64), w, rtol=TOLERANCE[k.name], atol=tolerance, err_msg=o.kind
        )
    return got


# Lengths, layouts and types ------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda d: d.__name__)
@pytest.mark.parametrize("n", EDGES)
def test_length(n, dtype):
    """Rows of any length, whole vectors or not."""
    x, y, r = (numbers(3, m, dtype=dtype, seed=m) for m in (n, n, 1))
    compare(EVERYTHING, (x, y, r, 0.5), (1,))
    compare(_softmax_rows, (4 * x,), (1,))
    compare(_log_softmax_rows, (4 * x,), (1,))


@pytest.mark.parametrize("n", EDGES)
def test_length_across(n):
    """The same where lanes take a row each; and any number of lanes."""
    x, y, r = numbers(n, 21, seed=1), numbers(n, 21, seed=2), numbers(1, 21)
    compare(EVERYTHING, (x, y, r, 0.5), (0,))
    x, y, r = numbers(2, 5, n, seed=1), numbers(2, 5, n, seed=2), numbers(2, 1, n)
    compare(EVERYTHING, (x, y, r, 0.5), (1,))


@pytest.mark.parametrize("n", EDGES)
def test_segments(n):
    """Rows in several pieces of memory, as the channels of a batch of images are."""
    for dtype in (np.float32, np.float64):
        x, y, r = (numbers(3, 4, m, dtype=dtype, seed=m) for m in (n, n, 1))
        compare(PLAIN, (x, y[:1], r[:1], 0.5), (0, 2))
        compare(PLAIN, (x[:, ::2], y[:, 1:3], r[:1, 2:], 0.5), (0, 2))
    x, y, r = numbers(2, 3, 4, n), numbers(4, 1), numbers(2, 3, 1, 1)
    compare(PLAIN, (x, y, r, 0.5), (2, 3))


def test_segments_that_keep_something():
    x = numbers(3, 4, 100)
    assert run_rows(_softmax_rows, (x,), (0, 2), (np.dtype(np.float32),)) is None


def layouts(*shape, seed=0):
    """One array in several layouts of memory."""
    x = numbers(*shape, seed=seed)
    turned = tuple(reversed(range(x.ndim)))
    swapped = (*range(1, x.ndim), 0)
    double = numbers(*(2 * n for n in shape), seed=seed)
    return [
        x,
        np.ascontiguousarray(x.transpose(turned)).transpose(turned),
        np.ascontiguousarray(x.transpose(swapped)).transpose(np.argsort(swapped)),
        double[(slice(None, None, 2),) * x.ndim],
        x[(slice(None, None, -1),) * x.ndim],
        np.broadcast_to(x[:1], shape),
        np.broadcast_to(x[..., :1], shape),
    ]


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (1, 2), (0, 1), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(5, 9, 20), (3, 1, 33), (1, 70, 2)])
def test_layout(shape, dims):
    """Any strides and any dims; where a kernel cannot walk them NumPy does."""
    kept = tuple(1 if d in dims else n for d, n in enumerate(shape))
    for i, x in enumerate(layouts(*shape)):
        for y in layouts(*shape, seed=5)[:3]:
            if run_rows(_softmax_rows, (x,), dims, (x.dtype,)) is None:
                assert len(dims) > 1
                continue
            compare(_softmax_rows, (x,), dims)
            if len(dims) == 1:
                compare(EVERYTHING, (x, y, numbers(*kept, seed=i), 2.0), dims)


@pytest.mark.parametrize("dtype", [np.float16, BFLOAT16, np.float32, np.float64], ids=str)
@pytest.mark.parametrize("dim", [0, 1])
def test_dtype(dtype, dim):
    """Half precision is computed in single: it is rounded once."""
    x, y = numbers(70, 90, dtype=dtype), numbers(70, 90, dtype=dtype, seed=1)
    r = numbers(*(1 if d == dim else n for d, n in enumerate(x.shape)), dtype=dtype)
    compare(EVERYTHING, (x, y, r, 0.25), (dim,))
    (p,) = compare(_softmax_rows, (x,), (dim,))
    exact = np.exp(x.astype(np.float64))
    exact /= exact.sum(dim, keepdims=True)
    step = 2.0 ** -{"float16": 11, "bfloat16": 8, "float32": 20, "float64": 48}[x.dtype.name]
    assert (np.abs(p.astype(np.float64) - exact) <= 1.01 * step * exact).all()


def test_dtypes_beside_each_other():
    """A half input with single weights, and results in types of their own."""
    x, w = numbers(50, 40, dtype=np.float16), numbers(40)
    kinds = tuple(map(np.dtype, (np.float16, np.float32, np.float32)))
    compare(_forward_rows(True, True, False), (x, w, 40.0, 1e-5), (1,), kinds)


def test_no_dims():
    """Over no dimension every element is a row."""
    for shape in ((), (1,), (3, 40)):
        (p,) = compare(_softmax_rows, (numbers(*shape),), ())
        np.testing.assert_array_equal(p, np.ones(shape))


def test_where_there_is_no_kernel():
    """Nothing, complex numbers, and single rows that are too long to leave to one thread."""
    for x in (
        np.zeros((0, 3), np.float32),
        np.zeros((3, 0), np.float32),
        np.zeros((3, 4), np.complex64),
    ):
        assert run_rows(_softmax_rows, (x,), (1,), (x.dtype,)) is None
    x = numbers(2, LONG)
    assert run_rows(_softmax_rows, (x,), (1,), (x.dtype,)) is None
    p = ut.softmax(ut.from_numpy(x), 1).numpy()
    np.testing.assert_allclose(p.sum(1, dtype=np.float64), 1, rtol=1e-5)


@pytest.mark.parametrize("shape", [(2048, 1040), (256, 8208)])
def test_streamed(shape):
    """Results that are larger than caches are written past them."""
    x, g = numbers(*shape, seed=1), numbers(*shape, seed=2)
    compare(_softmax_rows, (x,), (1,))
    w, middle = numbers(shape[1]), numbers(shape[0], 1)
    compare(_backward_rows(True, True, (True, True, True)), (g, x, w, middle, middle, 9.0), (1,))


# Special values ------------------------------------------------------------------------------
INF, NAN = np.inf, np.nan
EVERY_SOFTMAX = [_softmax_rows, _masked_softmax_rows, _log_softmax_rows]
SPECIAL = np.array(
    [
        [0, 0, 0, 0, 0],
        [-INF] * 5,
        [-INF, -INF, 3, -INF, -INF],
        [INF, 0, 0, 0, 0],
        [NAN, 1, 2, 3, 4],
        [1, 2, NAN, -INF, INF],
        [1.5e38, 1.5e38, -1.5e38, 0, 1],
        [-3e38, -3e38, -3e38, -3e38, -3e38],
        [1e-40, -1e-40, 0, -0.0, 1e-45],
        [88, 89, 90, -104, -90],
    ],
    np.float32,
)


@pytest.mark.parametrize("program", EVERY_SOFTMAX)
@pytest.mark.parametrize("repeats", [1, 7, 30])
def test_special_values(program, repeats):
    """Infinities and NaN come out as in NumPy, wherever in a vector they stand, in both ways."""
    x = np.tile(SPECIAL, repeats)
    x = np.concatenate([np.roll(x, i, 1) for i in range(5)])
    compare(program, (x,), (1,))
    compare(program, (np.ascontiguousarray(x.T),), (0,))


@pytest.mark.parametrize("dtype", [ut.float32, ut.float64, ut.float16, ut.bfloat16], ids=str)
def test_rows_of_nothing(dtype):
    """A row of -inf: NaN for softmax, zeros for the masked one, -inf for logsumexp."""
    x = ut.full((64, 100), -INF, dtype=dtype)
    assert ut.softmax(x, 1).isnan().all()
    assert (ut.ops.softmax.masked_softmax(x, 1) == 0).all()
    assert (x.logsumexp(1) == -INF).all()
    x.requires_grad_()
    (g,) = ut.autograd.grad(x.logsumexp(1).sum(), x)
    assert (g == 0).all()


def test_huge_and_equal():
    """No overflow: the largest is subtracted first."""
    x = ut.full((40, 1000), 3e38)
    np.testing.assert_allclose(ut.softmax(x, 1).numpy(), 1e-3, rtol=1e-6)
    np.testing.assert_allclose(ut.log_softmax(x, 1).numpy(), -np.log(1000), rtol=1e-6)
    y = ut.tensor([10000.0, 9999.0]).expand(2000, 2)
    loss = F.cross_entropy(y, ut.ones(2000, dtype=ut.int64), reduction="none").numpy()
    np.testing.assert_allclose(loss, 1 + np.log1p(np.exp(-1)), rtol=1e-6)


# Sums over columns ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    "shape", [(1, 5), (7, 33), (1000, 17), (333, 1024), (40, 5000), (3, 20000)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda d: d.__name__)
def test_columns(shape, dtype):
    """dx, dweight and dbias of layer_norm from one kernel, for any number of rows in a block."""
    g, x = numbers(*shape, dtype=dtype, seed=1), numbers(*shape, dtype=dtype, seed=2)
    w = numbers(shape[1], dtype=dtype, seed=3)
    middle = x.mean(1, keepdims=True)
    rstd = 1 / np.sqrt(x.var(1, keepdims=True) + 1)
    for needs in ((True, True, True), (False, True, False), (True, False, True)):
        program = _backward_rows(True, True, needs)
        operands = (g, x, w, middle, rstd, float(shape[1]))
        got = compare(program, operands, (1,))
        assert got[-1].shape == (1, shape[1])
        sliced = (np.repeat(g, 2, 1)[:, ::2], np.asfortranarray(x), *operands[2:])
        for a, b in zip(got, compare(program, sliced, (1,)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_columns_are_summed_accurately():
    """A million rows of single precision lose no more digits than a few."""
    n = 1 << 20
    g = np.full((n, 3), 0.1, np.float32)
    program = _backward_rows(False, False, (False, False, True))
    (total,) = run_rows(program, (g, g, g[:, :1], 3.0), (1,), (g.dtype,))
    np.testing.assert_allclose(total, np.float64(np.float32(0.1)) * n, rtol=5e-6)


# Threads -------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(64, 1000), (2048, 1040), (5, 50000), (1040, 2048)])
def test_any_number_of_threads_gives_the_same_bits(shape):
    """Blocks do not depend on the threads; large results are streamed, rows are fetched ahead."""
    x, g, w = numbers(*shape, seed=1), numbers(*shape, seed=2), numbers(shape[1])
    labels = np.random.default_rng(0).integers(0, shape[1], shape[0])
    before = ut.get_num_threads()

    def results():
        t, weight = ut.from_numpy(x).requires_grad_(), ut.from_numpy(w).requires_grad_()
        out = [
            ut.softmax(t, 1),
            ut.log_softmax(t, 0),
            F.rms_norm(t, w.shape, weight),
            F.layer_norm(t, w.shape, weight, weight),
            t.logsumexp(1),
            F.cross_entropy(t, ut.from_numpy(labels), reduction="none"),
        ]
        found = [o.detach().numpy() for o in out]
        seeds = [ut.from_numpy(g if o.ndim == 2 else g[:, 0].copy()) for o in out]
        grads = ut.autograd.grad(out, [t, weight], seeds)
        return [a.tobytes() for a in (*found, *(v.numpy() for v in grads))]

    try:
        ut.set_num_threads(1)
        alone = results()
        for count in (2, 3, 7):
            ut.set_num_threads(count)
            for _ in range(3):
                assert results() == alone
    finally:
        ut.set_num_threads(before)


# Other machines ------------------------------------------------------------------------------
@pytest.mark.parametrize("features", ["-avx512f", "-avx"])
def test_narrower_vectors(features):
    """The same programs in vectors of 32 and 16 bytes."""
    code = """
from test_kernel_rows import *
for n in (1, 5, 33, 1000):
    test_length(n, np.float32)
    test_length_across(n)
test_columns((333, 1024), np.float32)
test_special_values(EVERY_SOFTMAX[0], 7)
test_dtype(BFLOAT16, 1)
test_norms_of_half_precision(ut.float16)
"""
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    environment = {**os.environ, "UNDERTOW_CPU_FEATURES": features, "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


# Ops -----------------------------------------------------------------------------------------
class Forms:
    """Counts the forms that the CPU is asked for."""

    def __init__(self, monkeypatch):
        self.counts = Counter()
        for form in ("rows", "map", "maps", "reduce", "map_reduce", "gather", "scatter", "cast"):
            monkeypatch.setattr(CPU, form, self.counting(form, getattr(CPU, form)))

    def counting(self, form, run):
        def counted(*args):
            if any(
                getattr(a, "size", 0) > 4096
                for o in args
                for a in (o if isinstance(o, tuple | list) else [o])
            ):
                self.counts[form] += 1
            return run(*args)

        return counted

    def taken(self):
        found = dict(self.counts)
        self.counts.clear()
        return found


X, W, LABELS = numbers(128, 512), numbers(512, seed=1), np.arange(128) * 4
ONE_KERNEL = {
    "softmax": lambda x: ut.softmax(x, 1),
    "softmax of columns": lambda x: ut.softmax(x, 0),
    "log_softmax": lambda x: ut.log_softmax(x, 1),
    "masked_softmax": lambda x: ut.ops.softmax.masked_softmax(x, 1),
    "logsumexp": lambda x: ut.logsumexp(x, 1),
    "layer_norm": lambda x: F.layer_norm(x, (512,), ut.from_numpy(W), ut.from_numpy(W)),
    "rms_norm": lambda x: F.rms_norm(x, (512,), ut.from_numpy(W).requires_grad_()),
    "cross_entropy": lambda x: F.cross_entropy(x, ut.from_numpy(LABELS)),
    "weighted": lambda x: F.cross_entropy(x, ut.from_numpy(LABELS), ut.from_numpy(abs(W))),
    "smoothed": lambda x: F.cross_entropy(x, ut.from_numpy(LABELS), label_smoothing=0.1),
}


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_one_kernel_each_way(name, monkeypatch):
    """The forward and the backward each pass over the large arrays once."""
    x = ut.from_numpy(X.copy()).requires_grad_()
    forms = Forms(monkeypatch)
    out = ONE_KERNEL[name](x)
    assert forms.taken() == {"rows": 1}
    out.backward(ut.ones_like(out))
    assert forms.taken() == ({"map": 1} if name == "logsumexp" else {"rows": 1})


@pytest.mark.parametrize("ignore", [None, 3, -100])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape, dim", [((60, 45), 1), ((4, 45, 5, 7), 1), ((45,), 0)])
def test_cross_entropy_programs(shape, dim, weighted, smoothing, ignore):
    """Both kernels of every variant, where the classes lie together and where they lie apart."""
    x = 3 * numbers(*shape)
    kept = tuple(1 if d == dim else n for d, n in enumerate(shape))
    target = np.random.default_rng(1).integers(0, 45, kept)
    if ignore is not None:
        target[target % 3 == 0] = ignore
    w = np.abs(numbers(45)).reshape([-1 if d == dim else 1 for d in range(len(shape))])
    v, scale = numbers(*kept, seed=2), np.abs(numbers(*kept, seed=3))
    columns = (w,) if weighted and smoothing else ()
    more = (scale,) if weighted else ()
    share = (1 - smoothing, smoothing / 45) if smoothing else ()
    forward = _forward_row(weighted, bool(smoothing), ignore)
    _, peak, total = compare(forward, (x, *columns, target, *more, *share), (dim,))
    numbers_ = (*share, 45.0) if smoothing else ()
    operands = (x, *columns, target, v, peak, total, *more, *numbers_)
    compare(_slope_row(weighted, bool(smoothing), ignore), operands, (dim,))


def test_nothing_of_the_size_of_the_logits_is_saved():
    """Cross entropy keeps its input and two numbers for each row."""
    x = ut.from_numpy(X.copy()).requires_grad_()
    kept = []
    with ut.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        F.cross_entropy(x, ut.from_numpy(LABELS), reduction="sum")
    assert sum(t.numel() for t in kept if t._array is not x._array) <= 5 * len(LABELS)


@pytest.mark.parametrize("dtype", [ut.float16, ut.bfloat16], ids=str)
def test_norms_of_half_precision(dtype):
    """Sums over rows and columns are in single precision, weights may be."""
    x = ut.from_numpy(10 + X).to(dtype).requires_grad_()
    w = ut.from_numpy(W).requires_grad_()
    for norm in (F.layer_norm, F.rms_norm):
        out = norm(x, (512,), w)
        assert out.dtype is dtype
        gx, gw = ut.autograd.grad(out, [x, w], ut.ones_like(out))
        assert gx.dtype is dtype
        assert gw.dtype is ut.float32
        x64, w64 = x.detach().double().requires_grad_(), w.detach().double().requires_grad_()
        want = norm(x64, (512,), w64)
        hx, hw = ut.autograd.grad(want, [x64, w64], ut.ones_like(want))
        tolerance = TOLERANCE[dtype.name]
        for found, exact in ((out, want), (gx, hx), (gw, hw)):
            scale = float(exact.abs().max())
            error = float((found.detach().double() - exact.detach()).abs().max())
            assert error <= tolerance * scale
