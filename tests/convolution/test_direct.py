"""Direct convolution kernels: all three products of a convolution, against NumPy in float64."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import undertow as ut
import undertow.nn.functional as F
from undertow.backends.cpu.calls import choice, launch
from undertow.backends.cpu.convolution import choose, direct
from undertow.backends.cpu.convolution.problem import Arrays, Problem
from undertow.backends.reference import NumpyBackend
from undertow.backends.registry import backend_on
from undertow.backends.sliding import correlate
from undertow.dtypes import bfloat16
from undertow.kernel.windows import Geometry


@pytest.fixture(autouse=True)
def kernels_however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "MODE", "always")
    monkeypatch.setattr(launch, "PLANS", launch.Plans())


class Product(NamedTuple):
    """The operands of the form `conv`."""

    out: Any
    x: Any
    w: Any
    bias: Any
    geometry: Geometry


class Case(NamedTuple):
    """Channels are those of a group."""

    size: tuple[int, ...]
    kernel: tuple[int, ...]
    batch: int = 2
    groups: int = 3
    inputs: int = 1
    outputs: int = 1
    stride: tuple[int, ...] = ()
    padding: tuple[tuple[int, int], ...] = ()
    dilation: tuple[int, ...] = ()

    @property
    def geometry(self) -> Geometry:
        rank = len(self.size)
        ones = (1,) * rank
        return Geometry(
            self.size,
            self.kernel,
            self.stride or ones,
            self.padding or ((0, 0),) * rank,
            ones,
            self.dilation or ones,
        )


def array(shape: tuple[int, ...], dtype: Any, layout: str, seed: int) -> Any:
    """Random numbers, in one of several layouts."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape).astype(dtype)
    if layout == "last":  # channels-last
        order = (0, *range(2, len(shape)), 1)
        values = np.ascontiguousarray(values.transpose(order))
        return values.transpose(0, len(shape) - 1, *range(1, len(shape) - 1))
    if layout == "apart":
        wide = np.full((*shape[:-1], 2 * shape[-1] + 3), np.nan, dtype)
        wide[..., 1 : 1 + 2 * shape[-1] : 2] = values
        return wide[..., 1 : 1 + 2 * shape[-1] : 2]
    if layout == "back":
        return values[..., ::-1]
    return values


def products(case: Case, dtype: Any = np.float32, layout: str = "", seed: int = 0) -> list[Product]:
    """The forward, the input's and the weight's gradient, as the ops call them."""
    g, rank = case.geometry, len(case.size)
    last = range(3, 3 + rank)

    def make(lead: tuple[int, int], sizes: tuple[int, ...], dim: int, seed: int) -> Any:
        a = array((*lead, *sizes), dtype, layout, seed)
        shape = (*a.shape[:dim], case.groups, a.shape[dim] // case.groups, *a.shape[dim + 1 :])
        strides = (*a.strides[:dim], a.strides[dim] * shape[dim + 1], *a.strides[dim:])
        return np.lib.stride_tricks.as_strided(a, shape, strides)

    inputs, outputs = case.groups * case.inputs, case.groups * case.outputs
    xs, ws, ys = (
        [make(lead, sizes, dim, seed + i) for i in range(2)]
        for lead, sizes, dim, seed in (
            ((case.batch, inputs), case.size, 1, seed),
            ((outputs, case.inputs), case.kernel, 0, seed + 2),
            ((case.batch, outputs), g.output, 1, seed + 4),
        )
    )
    (x, dx), (w, dw), (y, out) = xs, ws, ys
    bias = array((case.groups, case.outputs), dtype, "", seed + 6)
    turned = w.transpose(0, 2, 1, *last)[(..., *(slice(None, None, -1),) * rank)]
    for a in (out, dx, dw):
        a[...] = 77
    return [
        Product(out, x, w, bias, g),
        Product(dx, y, turned, None, g.of_input),
        Product(
            dw.transpose(2, 0, 1, *last),
            x.transpose(2, 1, 0, *last),
            y.transpose(1, 2, 0, *last),
            None,
            g.of_kernel,
        ),
    ]


def run_direct(p: Product) -> bool:
    """Write a product by a direct kernel, if the table says so."""
    problem, row = Problem(*p, False, "auto"), choose.TABLE["direct"]
    way = row.plan(problem) if row.pays(problem) else None
    return way is not None and way.run(Arrays(*p[:4]), backend_on("cpu"))


def wide(p: Product, magnitude: bool = False) -> Any:
    """NumPy's answer in float64, or the sum of the terms' absolute values."""
    arrays = [None if a is None else a.astype(np.float64) for a in (p.x, p.w, p.bias)]
    if magnitude:
        arrays = [None if a is None else np.abs(a) for a in arrays]
    out = np.zeros(p.out.shape)
    correlate(out, *arrays, p.geometry, np.matmul)
    return out


def verify(p: Product, taken: bool | None = True) -> bool:
    """Run a product and compare; `taken` says whether there must be a kernel for it."""
    done = run_direct(p)
    assert taken is None or done == taken
    if done:
        half = p.x.itemsize == 2
        eps = 2.0**-24 if half or p.x.dtype == np.float32 else 2.0**-53
        # Products round once, sums grow a rounding error per tap or so; halves round at the end.
        terms = min(p.x.shape[2] * np.prod(p.geometry.kernel), 64)
        expected, size = wide(p), wide(p, magnitude=True)
        bound = (terms + 4) * eps * size
        if half:
            bound += np.abs(expected) * (2.0**-8 if p.x.dtype.name == "bfloat16" else 2.0**-11)
        assert np.all(np.abs(p.out.astype(np.float64) - expected) <= bound + 1e-30)
    return done


GRID = [
    Case((1024,), (7,), 2, 5, padding=((3, 3),)),
    Case((100,), (7,), padding=((3, 3),)),
    Case((5,), (3,), padding=((1, 1),)),  # shorter than any vector
    Case((1,), (1,)),
    Case((9000,), (9,), 2, 1, 1, 16, padding=((4, 4),)),  # tiles of rows, blocks of channels
    Case((700,), (5,), 2, 2, 1, 11, padding=((4, 0),)),  # channels beyond the blocks
    Case((5000,), (4,), 1, 2, 3, 2, padding=((2, 1),)),
    Case((333,), (40,), padding=((0, 39),)),  # more taps than are unrolled
    Case((333,), (37,), padding=((20, 20),), dilation=(3,)),
    Case((400,), (35,), padding=((-3, 5),), stride=(3,)),
    Case((4100,), (3,), 1, 1, padding=((-5, -7),), dilation=(50,)),
    Case((513,), (5,), padding=((2, 2),), stride=(2,)),
    Case((64,), (4,), padding=((1, 1),), stride=(5,)),  # elements that no window sees
    Case((56, 56), (3, 3), 1, 3, padding=((1, 1), (1, 1))),
    Case((56, 57), (3, 3), 1, 3, padding=((1, 1), (1, 1)), stride=(2, 2)),
    Case((14, 14), (3, 3), 5, 3, padding=((1, 1), (1, 1))),
    Case((150, 170), (7, 7), 1, 1, padding=((3, 3), (3, 3))),
    Case((33, 70), (3, 5), 2, 2, 2, 2, (2, 1), ((1, -1), (2, 3)), (1, 2)),
    Case((40, 9), (5, 3), 2, 2, 1, 3, (1, 2), ((2, 2), (-1, 4)), (4, 1)),
    Case((9, 10, 11), (3, 3, 3), padding=((1, 1),) * 3),
    Case((6, 90, 130), (3, 2, 5), 1, 1, 1, 2, padding=((1, 0), (1, 1), (2, 2)), stride=(1, 2, 1)),
    Case((12, 5, 64), (2, 3, 1), dilation=(3, 2, 1), padding=((3, 0), (0, 2), (0, 0))),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("case", GRID, ids=lambda c: f"{c.size}-{c.kernel}")
def test_a_grid_of_convolutions(case: Case, dtype: Any) -> None:
    for p in products(case, dtype):
        pairs = zip(p.geometry.input_dilation, p.geometry.kernel, strict=True)
        verify(p, taken=all(e <= taps for e, taps in pairs))  # else some positions see only zeros


@pytest.mark.parametrize("layout", ["last", "apart", "back"])
@pytest.mark.parametrize("case", [GRID[1], GRID[5], GRID[11], GRID[14], GRID[19]], ids=str)
def test_layouts(case: Case, layout: str) -> None:
    for p in products(case, layout=layout):
        verify(p, None)


@pytest.mark.parametrize("dtype", [np.float16, bfloat16.numpy], ids=["f16", "bf16"])
def test_halves_are_computed_in_single_precision(dtype: Any) -> None:
    for p in [*products(GRID[1], dtype), *products(GRID[4], dtype), *products(GRID[13], dtype)]:
        verify(p, True)


dims = st.integers(1, 3)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_convolution(data: Any) -> None:
    rank = data.draw(dims)
    each = st.tuples(*[st.integers(1, 4)] * rank)
    size = data.draw(st.tuples(*[st.integers(1, 70 if rank == 1 else 14)] * rank))
    pads = st.tuples(*[st.tuples(st.integers(-2, 20), st.integers(-2, 5))] * rank)
    case = Case(
        size,
        data.draw(each),
        data.draw(dims),
        data.draw(dims),
        data.draw(dims),
        data.draw(dims),
        data.draw(each),
        data.draw(pads),
        data.draw(each),
    )
    g = case.geometry
    assume(all(a <= b for a, b in zip(g.extent, g.padded, strict=True)))
    layout = data.draw(st.sampled_from(["", "last", "apart", "back"]))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    for p in products(case, dtype, layout):
        verify(p, None)


def test_nothing_to_do_and_what_others_do_better() -> None:
    for p in products(GRID[0]._replace(batch=0)):
        assert not verify(p, taken=False)
    for p in products(Case((100,), (3,), 2, 1, 64, 64)):
        verify(p, taken=False)
    for p in products(GRID[0], np.int64):
        assert direct.kernel_plan(Problem(*p, False, "auto")) is None


def test_no_element_shows_but_where_it_belongs() -> None:
    """NaN and infinities reach what they are multiplied with, zeros of the padding included.

    Zeros between the elements of a dilated input are multiplied with nothing. Weights that are not
    finite and meet padding never come here.
    """
    for case in (GRID[0], GRID[4], GRID[13], GRID[16]):
        for p in products(case):
            rng = np.random.default_rng(0)
            for a in (p.x,) if p.geometry.meets_zeros else (p.x, p.w):
                for value in (np.nan, np.inf, -np.inf):
                    at = tuple(rng.integers(0, n) for n in a.shape)
                    a[at] = value
            expected = np.zeros(p.out.shape)
            with np.errstate(invalid="ignore"):
                given = [None if a is None else a.astype(np.float64) for a in (p.x, p.w, p.bias)]
                correlate(expected, *given, p.geometry, np.matmul)
            if not run_direct(p):
                continue
            for test in (np.isnan, np.isposinf, np.isneginf):
                np.testing.assert_array_equal(test(p.out), test(expected))


def test_the_number_of_threads_does_not_show() -> None:
    before = ut.get_num_threads()
    try:
        for case in (GRID[0], GRID[4]._replace(batch=5), GRID[6], GRID[16], GRID[20]):
            results = []
            for threads in (1, 2, 3):
                ut.set_num_threads(threads)
                done = [p.out.copy() for p in products(case) if run_direct(p)]
                results.append([a.tobytes() for a in done])
            assert results[0] == results[1] == results[2]
    finally:
        ut.set_num_threads(before)


SMALL = {
    "conv1d": ((1, 8, 64), (8, 8, 3), {}),
    "padding": ((1, 8, 64), (8, 8, 3), {"padding": 1}),
    "strided": ((2, 6, 50), (9, 2, 5), {"groups": 3, "stride": 3, "padding": 4}),
    "conv2d": ((1, 8, 16, 16), (8, 8, 3, 3), {"padding": 1, "dilation": (1, 2)}),
}


@pytest.mark.parametrize("name", SMALL)
def test_a_small_convolution_is_nothing_but_its_kernel(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the form on views nor a view is asked for once there is a plan, and bits agree."""
    shape, kernel, how = SMALL[name]
    function = ut.conv1d if len(shape) == 3 else ut.conv2d
    backend = type(backend_on("cpu"))

    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in (shape, kernel, kernel[:1])]

    def run() -> list[Any]:
        leaves = [ut.from_numpy(a).requires_grad_() for a in arrays]
        y = function(*leaves, **how)
        y.backward(y.detach())
        return [t.numpy().tobytes() for t in (y.detach(), *[t.grad for t in leaves])]

    with monkeypatch.context() as patch:
        patch.setattr(backend, "convolution", NumpyBackend.convolution)
        by_views = run()
    run()  # makes the plans
    for form in ("conv", "permute", "slice", "reshape"):
        monkeypatch.setattr(backend, form, None)
    assert run() == by_views


@pytest.mark.parametrize("dilation", [1, 3])
def test_gradients_of_an_input_that_is_smaller_than_the_kernel(dilation: int) -> None:
    """There the kernel is the long array, and runs backwards."""
    rng = np.random.default_rng(2)
    shapes = [(1, 32, 2, 7), (12, 8, 3, 5)]
    arrays = [rng.standard_normal(shape) for shape in shapes]
    found = []
    for dtype, device in ((ut.float32, "cpu"), (ut.float64, "reference")):
        x, w = (ut.tensor(a, dtype=dtype, device=device).requires_grad_() for a in arrays)
        y = F.conv2d(x, w, padding="same", dilation=dilation, groups=4)
        found.append([g.cpu() for g in ut.autograd.grad((y * y).sum(), (x, w))])
    for mine, right in zip(*found, strict=True):
        assert float((mine - right).abs().max()) <= 1e-5 * float(right.abs().max())


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_weights_that_are_not_finite_do_not_meet_padding(value: float) -> None:
    """Nor do they in a plan that was made when all were finite."""
    x, w = ut.ones(1, 2, 64), ut.ones(2, 2, 3)
    y = ut.conv1d(x, w, padding=1)
    w[0, 0, 0] = value
    found = ut.conv1d(x, w, padding=1)
    assert found[0, 0, 0] == y[0, 0, 0]
    assert not found[0, 0, 1:].isfinite().any()
    assert ut.equal(found[0, 1], y[0, 1])
    of_x = ut.conv_transpose1d(y, w)  # the first tap meets zeros at the end
    assert of_x[0, 0, :-2].isfinite().sum() == 0
    assert of_x[0, :, -2:].isfinite().all()


def test_threads_of_python_have_scratch_memory_of_their_own() -> None:
    """Small kernels run outside the interpreter's lock, in memory that the thread keeps."""
    inputs = [ut.randn(1, 8, 500) for _ in range(8)]
    w = ut.randn(8, 8, 3)
    expected = [ut.conv1d(x, w) for x in inputs]
    with ThreadPoolExecutor(4) as threads:
        for _ in range(20):
            found = threads.map(lambda x: ut.conv1d(x, w), inputs)
            assert all(ut.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_scratch_memory_that_is_kept_has_room_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a kernel that needs a little more of it than the one before."""
    monkeypatch.setattr(launch, "_own", launch._Kept())
    rooms, plans = [], []

    def planned(p: Any) -> Any:
        plans.append(kernel_plan(p))
        return plans[-1]

    kernel_plan = direct.kernel_plan
    monkeypatch.setattr(direct, "kernel_plan", planned)
    for size in range(20, 500, 8):
        ut.conv1d(ut.randn(1, 1, size), ut.randn(1, 1, 3))
        assert plans[-1].alone
        needed = plans[-1].more
        rooms.append(launch._own.block.size - needed.bytes - needed.per_thread)
    assert len(plans) >= 60
    assert min(rooms) >= direct.BEHIND


def test_large_results_are_streamed() -> None:
    case = Case((16384,), (3,), 5, 1, 1, 32, padding=((1, 1),))
    first = products(case)[0]
    assert first.out.nbytes >= direct.STREAMED
    size = first.out.nbytes
    block = np.empty(size + 128, np.uint8)
    for offset in (0, 4):  # in a line of the cache
        start = -block.ctypes.data % 64 + offset
        out = block[start : start + size].view(np.float32).reshape(first.out.shape)
        out[...] = np.nan
        verify(first._replace(out=out))


@pytest.mark.parametrize("features", ["-avx512f", "-avx512f,-avx2,-fma,-f16c"])
def test_with_shorter_vectors(features: str) -> None:
    code = (
        "import test_direct as t\n"
        "t.choice.MODE = 'always'\n"
        "for case in t.GRID[:10] + t.GRID[13:15]:\n"
        "    for p in t.products(case):\n"
        "        t.verify(p, None)\n"
    )
    folder = os.path.dirname(__file__)
    path = os.pathsep.join([folder, *sys.path])
    environment = os.environ | {"UNDERTOW_CPU_FEATURES": features, "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
