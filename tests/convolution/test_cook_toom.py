"""Convolutions by tiles: their values, their errors, and that nothing spreads."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import undertow as ut
import undertow.nn.functional as F
from undertow.backends import cpu
from undertow.backends.cpu.calls import launch
from undertow.backends.cpu.calls.steps import Steps
from undertow.backends.cpu.convolution import choose, conv, cook_toom_plan, lanes, woven
from undertow.backends.cpu.convolution import cook_toom_forms as forms
from undertow.backends.cpu.convolution.choose import only
from undertow.backends.reference import NumpyBackend
from undertow.backends.registry import backend_on
from undertow.errors import ArgumentError

# batch, channels, outputs, size, kernel, padding, groups
CASES = [
    (2, 16, 24, (61,), (3,), (1,), 1),
    (3, 17, 8, (40,), (5,), (0,), 1),
    (1, 32, 12, (33,), (4,), (5,), 2),
    (2, 5, 7, (100,), (7,), (3,), 1),
    (2, 9, 30, (64,), (2,), (1,), 3),
    (3, 13, 11, (39,), (6,), (2,), 1),
    (2, 16, 16, (17, 29), (3, 3), (1, 1), 1),
    (2, 12, 10, (12, 13), (2, 3), (0, 2), 2),
    (5, 33, 20, (7, 7), (3, 3), (1, 1), 1),
    (5, 12, 14, (4, 4), (3, 3), (1, 1), 1),
    (2, 12, 17, (9, 21), (1, 5), (3, 0), 1),
    (2, 11, 10, (11, 16), (5, 5), (2, 2), 1),
    (2, 12, 10, (6, 9, 11), (3, 3, 3), (1, 1, 1), 1),
    (1, 14, 9, (5, 7, 30), (1, 1, 4), (0, 0, 2), 1),
    (2, 12, 10, (5, 4, 13), (2, 3, 2), (1, 0, 1), 2),
]
FAST = [(2, 12, 7, (15, 18), (3, 3), (1, 1), 1), (2, 12, 9, (9, 14), (2, 3), (1, 1), 1)]
# batch, channels, outputs, size, kernel, padding, groups; and the stride
WINDOWS = [
    ((2, 16, 24, (61,), (8,), (1,), 1), 4),
    ((3, 5, 18, (90,), (3,), (4,), 1), 2),
    ((2, 32, 12, (70,), (11,), (0,), 2), 3),
    ((2, 24, 20, (50,), (1,), (0,), 1), 2),
    ((2, 16, 16, (17, 29), (3, 3), (1, 1), 1), 2),
    ((2, 3, 17, (21, 22), (7, 7), (3, 3), 1), 2),
    ((2, 12, 20, (12, 13), (2, 5), (0, 2), 2), 3),
    ((2, 12, 20, (13, 11), (7, 9), (3, 4), 1), 1),
    ((3, 20, 18, (8, 8), (1, 1), (0, 0), 1), 2),
    ((1, 6, 18, (7, 8, 9), (3, 3, 3), (1, 1, 1), 1), 2),
    ((2, 4, 17, (9, 6, 13), (2, 1, 6), (0, 0, 3), 1), 3),
    ((2, 5, 18, (300,), (7,), (0,), 1), 6),
    ((3, 3, 35, (19, 32), (3, 3), (1, 1), 1), 1),
    ((5, 16, 17, (6, 3), (1, 1), (0, 0), 1), (1, 4)),
    ((4, 16, 18, (7, 4), (2, 2), (0, 0), 1), (1, 3)),
]
# batch, channels, outputs, size, kernel, padding, groups; and the dilation
DILATED = [
    ((2, 16, 24, (256,), (3,), (8,), 1), 8),
    ((3, 17, 8, (160,), (5,), (0,), 1), 4),
    ((1, 32, 12, (133,), (4,), (5,), 2), 2),
    ((2, 5, 7, (200,), (7,), (9,), 1), 3),
    ((2, 9, 30, (340,), (3,), (40,), 3), 16),
    ((2, 12, 10, (26, 34), (3, 3), (2, 4), 1), (2, 4)),
    ((1, 12, 9, (7, 9, 50), (1, 2, 3), (0, 2, 0), 1), (2, 3, 2)),
]
# batch, channels, outputs, size, kernel, padding, groups; and the stride
PHASES = [
    ((2, 16, 24, (121,), (8,), (1,), 1), 4),
    ((3, 5, 18, (90,), (3,), (4,), 1), 2),
    ((2, 32, 12, (170,), (11,), (0,), 2), 3),
    ((1, 7, 9, (80,), (13,), (6,), 1), 5),
    ((2, 16, 16, (17, 29), (3, 3), (1, 1), 1), 2),
    ((2, 8, 17, (21, 24), (4, 4), (1, 1), 1), 2),
    ((2, 6, 10, (22, 23), (4, 3), (0, 5), 2), 2),
    ((2, 8, 10, (19, 24), (5, 2), (2, 0), 1), (3, 1)),
    ((1, 6, 18, (7, 12, 13), (3, 3, 4), (1, 1, 1), 1), 2),
    ((2, 9, 8, (140,), (21,), (4,), 1), 1),
    ((2, 8, 9, (120,), (16,), (3,), 1), 2),
    ((1, 6, 9, (20, 22), (7, 6), (3, 2), 1), 1),
]
FEW = CASES[:2] + CASES[6:7]


def forget() -> None:
    """What was chosen by other limits than a test sets."""
    launch.PLANS.clear()
    for choice in (forms.tiling, lanes.windows, woven.weaving):
        choice.cache_clear()


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Whether each convolution by tiles was right; there are no others but where a test says so."""
    found: list[bool] = []
    run = Steps.run

    def watched(self, *operands):
        asked = run(self, *operands)
        if any(one.kernel.name == "cook_toom" for one, *_ in self.calls):
            found.append(all(map(launch.sound, asked)))
        return asked

    monkeypatch.setattr(Steps, "run", watched)
    monkeypatch.setattr(launch, "PLANS", launch.Plans())
    with only("fewer"):
        yield found


def chosen(x, w, **steps):
    """The algorithm that the table has for a convolution."""
    names, plain = [], choose.choose

    def noted(p, forced=""):
        found = plain(p)
        names.append(found[0])
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "PLANS", launch.Plans())
        patch.setattr(conv.table, "choose", noted)
        function(x.ndim - 2)(x, w, **steps)
    return names[-1]


def function(rank):
    return (F.conv1d, F.conv2d, F.conv3d)[rank - 1]


def given(case, seed=0, dtype=np.float32):
    n, c, o, size, kernel, _, groups = case
    rng = np.random.default_rng(seed)
    shapes = [(n, c, *size), (o, c // groups, *kernel), (o,)]
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def gradients(
    case, arrays, dtype=ut.float32, device="cpu", stride=1, dilation=1, ways=("fewer",) * 3
):
    """The result of a convolution and all its gradients, by algorithms, "" for the table's."""
    *_, size, _, padding, groups = case
    tensors = [ut.tensor(a, dtype=dtype, device=device).requires_grad_() for a in arrays]
    steps = {"padding": padding, "groups": groups, "stride": stride, "dilation": dilation}
    with forced(ways[0]):
        out = function(len(size))(*tensors, **steps)
    seed = np.random.default_rng(9).standard_normal(out.shape)
    seed = ut.tensor(seed.astype(np.float32), dtype=dtype, device=device)
    found = [out.detach()]
    for way, tensor in zip((*ways[1:], ""), tensors, strict=True):
        with forced(way):
            found += ut.autograd.grad(out, tensor, seed, retain_graph=True)
    return found


@contextlib.contextmanager
def forced(name: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choose, "forced", name)
        yield


@pytest.mark.parametrize("case", CASES + FAST, ids=str)
def test_values(case, answers, monkeypatch):
    """As the reference device has them in float64, and really with fewer products."""
    monkeypatch.setattr(cpu, "fast_convolution", "fast" if case in FAST else "auto")
    arrays = given(case)
    found = gradients(case, arrays)
    assert answers == [True] * 3
    for mine, right in zip(found, gradients(case, arrays, ut.float64, "reference"), strict=True):
        right = right.cpu()
        assert float((mine - right).abs().max()) <= 2e-5 * float(right.abs().max())


@pytest.mark.parametrize(("case", "dilation"), DILATED, ids=str)
def test_dilation(case, dilation, answers):
    """Tiles of every remainder, with the same bits for any number of threads and batch."""
    arrays = given(case)
    found = gradients(case, arrays, dilation=dilation)
    assert answers == [True] * 3
    expected = gradients(case, arrays, ut.float64, "reference", dilation=dilation)
    for mine, right in zip(found, expected, strict=True):
        right = right.cpu()
        assert float((mine - right).abs().max()) <= 2e-5 * float(right.abs().max())
    limit = ut.get_num_threads()
    try:
        ut.set_num_threads(1 if limit > 1 else 2)
        again = gradients(case, arrays, dilation=dilation)
    finally:
        ut.set_num_threads(limit)
    assert all(bool((a == b).all()) for a, b in zip(found, again, strict=True))
    last = gradients(case, [arrays[0][-1:], *arrays[1:]], dilation=dilation)[0]
    assert bool((last[0] == found[0][-1]).all())


@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("which", [0, 1])
def test_what_is_not_finite_and_dilated(value, which, answers):
    case, dilation = DILATED[0]
    arrays = given(case)
    arrays[which].flat[arrays[which].size // 2] = value
    found = gradients(case, arrays, dilation=dilation)
    assert False in answers
    with only("packed"):
        expected = gradients(case, arrays, dilation=dilation)
    for mine, right in zip(found, expected, strict=True):
        assert bool((mine.isnan() == right.isnan()).all())
        assert bool((mine.isinf() == right.isinf()).all())


def test_remainders_that_would_mostly_be_waste():
    """Four outputs of each of 64 remainders are 256 places."""
    x, w = ut.ones(1, 32, 200), ut.ones(32, 32, 3)
    assert chosen(x, w) == chosen(x, w, dilation=8) == "fewer"
    assert chosen(x, w, dilation=64) != "fewer"


@pytest.mark.parametrize(("case", "stride"), WINDOWS, ids=str)
def test_windows(case, stride, answers):
    """Sums over windows of any stride, with the same bits for any number of threads."""
    arrays = given(case)
    found = gradients(case, arrays, stride=stride, ways=["lanes"] * 3)
    assert len(answers) >= 3
    assert all(answers)
    expected = gradients(case, arrays, ut.float64, "reference", stride)
    for mine, right in zip(found, expected, strict=True):
        right = right.cpu()
        assert float((mine - right).abs().max()) <= 2e-5 * float(right.abs().max())
    limit = ut.get_num_threads()
    try:
        ut.set_num_threads(1 if limit > 1 else 2)
        again = gradients(case, arrays, stride=stride, ways=["lanes"] * 3)
    finally:
        ut.set_num_threads(limit)
    assert all(bool((a == b).all()) for a, b in zip(found, again, strict=True))


@pytest.mark.parametrize(("case", "stride"), WINDOWS, ids=str)
def test_bias_and_relu_are_part_of_windows(case, stride, answers):
    """By the tiles, whether results are one piece of memory or end with an image."""
    x, w, b = map(ut.from_numpy, given(case))
    fn, rest = function(x.ndim - 2), {"padding": case[5], "groups": case[6], "stride": stride}
    with only("lanes"):
        right = fn(x, w, **rest) + b[:, *[None] * (x.ndim - 2)]
        assert bool((fn(x, w, b, **rest) == right).all())
        assert bool((fn(x, w, b, **rest, activation="relu") == right.relu()).all())
    assert answers == [True] * 3


def test_plans_of_windows_know_the_taps(answers):
    """Arrays of the same shapes may be met by more taps and padding."""
    for taps in (3, 5, 9):
        case = (2, 16, 16, (64,), (taps,), (taps // 2,), 1)
        arrays = given(case)
        expected = gradients(case, arrays, ut.float64, "reference")
        found = gradients(case, arrays, ways=["lanes"] * 3)
        for mine, right in zip(found, expected, strict=True):
            right = right.cpu()
            assert float((mine - right).abs().max()) <= 2e-5 * float(right.abs().max())


@pytest.mark.parametrize(("case", "stride"), PHASES, ids=str)
def test_phases(case, stride, answers, monkeypatch):
    """Strides by phases, with the same bits for any number of threads, in any batch."""
    monkeypatch.setattr(choose, "WOVEN", 9)
    arrays, steps = given(case), {"stride": stride, "ways": ["fewer", "", "fewer"]}
    found = gradients(case, arrays, **steps)
    assert len(answers) >= 2
    assert all(answers)
    expected = gradients(case, arrays, ut.float64, "reference", stride)
    for mine, right in zip(found, expected, strict=True):
        right = right.cpu()
        assert float((mine - right).abs().max()) <= 2e-5 * float(right.abs().max())
    limit = ut.get_num_threads()
    try:
        ut.set_num_threads(1 if limit > 1 else 2)
        again = gradients(case, arrays, **steps)
    finally:
        ut.set_num_threads(limit)
    assert all(bool((a == b).all()) for a, b in zip(found, again, strict=True))
    last = gradients(case, [arrays[0][-1:], *arrays[1:]], **steps)
    assert bool((last[0][0] == found[0][-1]).all())


# The input's size, taps, strides, padding, output padding.
WOVEN = [
    ((70,), (4,), (2,), (1,), (0,)),
    ((41,), (3,), (2,), (1,), (1,)),
    ((33,), (8,), (4,), (2,), (3,)),
    ((37,), (7,), (3,), (0,), (2,)),
    ((9, 11), (4, 4), (2, 2), (1, 1), (0, 0)),
    ((12, 10), (3, 3), (2, 2), (1, 1), (1, 0)),
    ((10, 9), (2, 5), (1, 3), (0, 2), (0, 1)),
    ((8, 13), (4, 3), (2, 1), (3, 0), (1, 0)),
    ((7, 12), (5, 4), (3, 2), (0, 3), (2, 1)),
    ((3, 6, 7), (3, 3, 4), (1, 2, 2), (1, 0, 1), (0, 1, 0)),
    ((4, 5, 6), (2, 4, 3), (2, 2, 1), (0, 1, 1), (1, 0, 0)),
    ((41,), (4,), (4,), (0,), (0,)),
    ((33,), (2,), (2,), (0,), (1,)),
    ((16, 8), (2, 2), (2, 2), (0, 0), (0, 0)),
    ((9, 15), (2, 3), (2, 3), (1, 0), (0, 1)),
    ((3, 4, 9), (2, 2, 2), (2, 2, 2), (0, 0, 0), (0, 0, 0)),
]


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("size", "taps", "stride", "padding", "more"), WOVEN, ids=str)
def test_woven_phases_of_results(size, taps, stride, padding, more, groups):
    """All phases of a transposed convolution together, in any batch, by any number of threads."""
    rng = np.random.default_rng(5)
    x = ut.from_numpy(rng.standard_normal((3, 16 * groups, *size), dtype=np.float32))
    w = ut.from_numpy(rng.standard_normal((16 * groups, 17, *taps), dtype=np.float32))
    b = ut.from_numpy(rng.standard_normal(17 * groups, dtype=np.float32))
    plain = getattr(F, f"conv_transpose{len(size)}d")
    rest = {"stride": stride, "padding": padding, "output_padding": more, "groups": groups}
    right = plain(x.double(), w.double(), b.double(), **rest)

    def f(*given, **rest):
        with only("woven"):
            return plain(*given, **rest)

    found = f(x, w, b, **rest)
    assert float((found - right).abs().max()) <= 2e-5 * float(right.abs().max())
    assert bool((f(x[-1:], w, b, **rest) == found[-1:]).all())
    limit = ut.get_num_threads()
    try:
        ut.set_num_threads(1 if limit > 1 else 2)
        assert bool((f(x, w, b, **rest) == found).all())
    finally:
        ut.set_num_threads(limit)


def test_phases_of_results_beside_a_stride():
    """An input may be dilated along one dimension and met with a stride along another."""
    rng = np.random.default_rng(6)
    x = rng.standard_normal((2, 1, 24, 16, 31), dtype=np.float32)
    w = rng.standard_normal((1, 17, 24, 3, 1), dtype=np.float32)
    steps = ((1, 2), ((0, 2), (0, 0)), (3, 1), (1, 1))
    found, right = np.empty((2, 2, 1, 17, 46, 16), np.float32)
    backend_on("cpu").conv(found, x, w, None, *steps)
    NumpyBackend.conv(backend_on("cpu"), right, x, w, None, *steps)
    assert np.abs(found - right).max() < 1e-4


@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(("case", "stride"), [PHASES[0], PHASES[4]], ids=str)
def test_what_is_not_finite_in_phases(case, stride, value, which, answers):
    arrays = given(case)
    arrays[which].flat[arrays[which].size // 2] = value
    found = gradients(case, arrays, stride=stride, ways=["fewer", "woven", "fewer"])
    assert False in answers
    expected = gradients(case, arrays, stride=stride, ways=["packed"] * 3)
    for mine, right in zip(found, expected, strict=True):
        assert bool((mine.isnan() == right.isnan()).all())
        assert bool((mine.isinf() == right.isinf()).all())


def test_plans_of_phases_know_which_have_taps(answers):
    """Of 3 × 3 taps some phases have one less, of 4 × 4 none, in products of the same shapes."""
    rng = np.random.default_rng(0)
    x = ut.from_numpy(rng.standard_normal((1, 16, 16, 16), dtype=np.float32))
    for taps in (3, 4, 3):
        w = ut.from_numpy(rng.standard_normal((16, 16, taps, taps), dtype=np.float32))
        with only("packed"):
            right = F.conv2d(x.double(), w.double(), stride=2, padding=1)
        assert float((F.conv2d(x, w, stride=2, padding=1) - right).abs().max()) < 1e-4


BY_PHASES = [((5,), 2), ((7,), 2), ((8,), 4), ((9,), 4), ((3, 3), 2), ((4, 4), 2), ((5, 5), 2)]
BY_PHASES += [((8,), 1), ((9,), 1), ((20,), 1), ((6, 6), 1), ((7, 7), 1)]


@pytest.mark.parametrize(("taps", "stride"), BY_PHASES, ids=str)
def test_errors_of_phases(taps, stride, answers):
    """At most twice those of a plain sum, as of the forms they are made of."""
    size = (402,) if len(taps) == 1 else (22, 22)
    x, w, _ = given((1, 64, 16, size, taps, None, 1))
    found = function(len(size))(ut.from_numpy(x), ut.from_numpy(w), stride=stride).numpy()[0]
    assert answers == [True]
    every = (slice(None), *[slice(None, None, stride)] * len(size))
    exact = plain(x[0].astype(np.float64), w, np.float64)[every]
    sums = plain(x[0], w, np.float32)[every]
    assert np.square(found - exact).mean() ** 0.5 <= 2 * np.square(sums - exact).mean() ** 0.5


@pytest.mark.parametrize("case", FEW, ids=str)
def test_bias_and_relu_are_part_of_it(case, answers):
    x, w, b = map(ut.from_numpy, given(case))
    fn, padding = function(x.ndim - 2), case[5]
    right = fn(x, w, padding=padding) + b[:, *[None] * (x.ndim - 2)]
    assert bool((fn(x, w, b, padding=padding) == right).all())
    assert bool((fn(x, w, b, padding=padding, activation="relu") == right.relu()).all())
    assert answers == [True] * 3


def test_results_that_are_not_contiguous(answers):
    """As the gradients of transposed convolutions are written."""
    x, w = map(ut.from_numpy, given(CASES[0])[:2])
    with only("packed"):
        right = F.conv1d(x.double(), w.double(), padding=1)
    turned = x.transpose(1, 2).contiguous().transpose(1, 2)
    found = F.conv1d(turned, w.flip(2).contiguous().flip(2), padding=1)
    assert answers == [True]
    assert float((found - right).abs().max()) < 1e-4


@pytest.mark.parametrize("case", FEW, ids=str)
def test_threads_and_batches_change_nothing(case, answers):
    """The same bits for any number of threads, any batch, and any position in a batch."""
    arrays = given(case)
    limit = ut.get_num_threads()
    try:
        ut.set_num_threads(1)
        one = gradients(case, arrays)
        ut.set_num_threads(3)
        three = gradients(case, arrays)
    finally:
        ut.set_num_threads(limit)
    assert all(bool((a == b).all()) for a, b in zip(one, three, strict=True))
    x, w = map(ut.from_numpy, arrays[:2])
    fn, padding = function(x.ndim - 2), case[5]
    together = fn(x, w, padding=padding)
    for i in range(len(x)):
        assert bool((fn(x[i : i + 1], w, padding=padding)[0] == together[i]).all())
    again = fn(ut.cat([x[1:], x]), w, padding=padding)
    assert bool((again[len(x) - 1 :] == together).all())
    assert all(answers)


@pytest.mark.parametrize(("case", "stride"), [(CASES[1], 1), (CASES[6], 1), WINDOWS[0]], ids=str)
def test_images_are_computed_a_few_at_a_time(case, stride, answers, monkeypatch):
    """So that tables of tiles stay small, whatever the batch; results keep their bits."""
    arrays = given((5, *case[1:]))
    steps = {"stride": stride, "ways": ["fewer" if stride == 1 else "lanes"] * 3}
    together = gradients(case, arrays, **steps)
    tiles = []
    for limit in (1, 2 * together[0][0, 0].numel()):
        monkeypatch.setattr(cook_toom_plan, "TILES", limit)
        forget()
        few = gradients(case, arrays, **steps)
        assert bool((few[0] == together[0]).all())
        assert bool((few[1] == together[1]).all())
        assert float((few[2] - together[2]).abs().max()) < 1e-5 * float(together[2].abs().max())
        tiles.append(launch.PLANS.bytes)
    assert tiles[0] < tiles[1]


def table_bytes(plan):
    return sum(steps.nbytes for steps in plan.steps)


def test_plans_are_forgotten_when_their_tables_are_large(answers, monkeypatch):
    """Lengths that vary would otherwise fill the memory."""
    plans = launch.Plans()
    monkeypatch.setattr(launch, "PLANS", plans)
    monkeypatch.setattr(launch, "TABLES", 1 << 14)
    w = ut.ones(16, 16, 3)
    counted = []
    for size in range(100, 180, 5):
        F.conv1d(ut.ones(1, 16, size), w)
        counted.append(plans.bytes)
        assert plans.bytes <= 1 << 14
        assert plans.bytes == sum(table_bytes(plan) for plan in plans.values())
    assert max(counted) > 0  # 0 alone is what a list that was just forgotten counts
    assert len(plans) < 16 == len(answers)


def test_positions_far_outside_of_a_line(answers):
    """They are compared in 32 bits."""
    x, w = ut.ones(1, 32, 10), ut.ones(32, 32, 3)
    with only("lanes"):
        found = F.conv1d(x, w, padding=1 << 32, stride=1 << 31)
    assert found[0, 0].tolist() == [0, 0, 96, 0, 0]


def test_large_windows_are_not_unrolled(monkeypatch):
    """Their code would take minutes to compile."""
    monkeypatch.setattr(cook_toom_plan, "convolution", None)
    x, w = ut.ones(1, 16, 1000), ut.ones(16, 16, cook_toom_plan.TAPS + 1)
    assert F.conv1d(x, w, stride=2).max().item() == 16 * (cook_toom_plan.TAPS + 1)


def test_the_choice_does_not_look_at_the_batch(monkeypatch):
    """Otherwise a result would depend on what else is in its batch."""
    rng = np.random.default_rng(0)
    x = ut.from_numpy(rng.standard_normal((24, 32, 48), dtype=np.float32))
    w = ut.from_numpy(rng.standard_normal((32, 32, 3), dtype=np.float32))
    for limit in (1, 2, 1 << 15, 1 << 16, 1 << 20):
        monkeypatch.setattr(choose, "WORK", limit)
        forget()
        assert bool((F.conv1d(x, w)[3:4] == F.conv1d(x[3:4], w)).all())


def plain(x, w, dtype):
    """Valid windows of one image by sums in one order: the channels, then the taps."""
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], tuple(range(1, x.ndim)))
    total = np.zeros((len(w), *windows.shape[1 : x.ndim]), dtype)
    for c in range(w.shape[1]):
        for tap in np.ndindex(*w.shape[2:]):
            factor = w[(slice(None), c, *tap)].reshape(-1, *[1] * (x.ndim - 1))
            total = (total + windows[(c, ..., *tap)] * factor.astype(np.float64)).astype(dtype)
    return total


AUTO = [(r,) for r in forms.LINES] + [(r, r) for r in forms.SQUARES]


@pytest.mark.parametrize("taps", AUTO, ids=str)
def test_errors_are_at_most_twice_those_of_a_plain_sum(taps, answers):
    """The table of docs/inside_convolution.md: 64 channels of normal numbers, root mean squares."""
    size = (402,) if len(taps) == 1 else (22, 22)
    mine, sums = 0.0, 0.0
    for seed in range(2):
        x, w, _ = given((1, 64, 16, size, taps, None, 1), seed)
        found = function(len(size))(ut.from_numpy(x), ut.from_numpy(w)).numpy()
        exact = plain(x[0].astype(np.float64), w, np.float64)
        mine += float(np.square(found[0] - exact).mean())
        sums += float(np.square(plain(x[0], w, np.float32) - exact).mean())
    assert answers == [True, True]
    assert (mine / sums) ** 0.5 <= 2


@pytest.mark.parametrize("case", FEW, ids=str)
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("which", [0, 1])
def test_what_is_not_finite_reaches_what_it_must(case, value, which, answers):
    """Exactly the results that it reaches in a sum."""
    arrays = given(case)
    arrays[which].flat[arrays[which].size // 2] = value
    found = gradients(case, arrays)
    assert False in answers
    for mine, right in zip(found, gradients(case, arrays, ways=["packed"] * 3), strict=True):
        assert bool((mine.isnan() == right.isnan()).all())
        assert bool((mine.isinf() == right.isinf()).all())


def test_a_transform_may_overflow_where_a_sum_does_not(answers):
    x = np.zeros((1, 16, 40), np.float32)
    x[0, 0, 20], x[0, 0, 22] = 3e38, 3e38  # their sum is infinite
    w = np.zeros((16, 16, 3), np.float32)
    w[:, 0, 0] = 1
    found = F.conv1d(ut.from_numpy(x), ut.from_numpy(w))
    assert answers == [False]
    assert bool((found[0, :, 20] == float(np.float32(3e38))).all())
    assert bool(found.isfinite().all())


def test_modes(monkeypatch):
    x, w = map(ut.from_numpy, given((1, 32, 32, (15, 18), (3, 3), (1, 1), 1))[:2])
    found = {}
    for mode in ("exact", "fast", "auto"):
        monkeypatch.setattr(cpu, "fast_convolution", mode)
        assert (chosen(x, w) == "fewer") == (mode != "exact")
        assert chosen(x.double(), w.double()) != "fewer"
        found[mode] = F.conv2d(x, w)
    assert not bool((found["fast"] == found["auto"]).all())
    assert not bool((found["auto"] == found["exact"]).all())
    monkeypatch.setattr(cpu, "fast_convolution", "quick")
    with pytest.raises(ArgumentError, match="must be one of exact, auto, fast, got 'quick'"):
        F.conv2d(x, w)


def at_the_end(array: np.ndarray) -> np.ndarray:
    """A copy whose last byte is the last before memory that must not be read."""
    page = mmap.PAGESIZE
    pages = -(-array.nbytes // page) + 1
    memory = mmap.mmap(-1, pages * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    library = ctypes.CDLL(None)
    assert not library.mprotect(ctypes.c_void_p(start + (pages - 1) * page), page, 0)
    first = (pages - 1) * page - array.nbytes
    made = np.frombuffer(memory, array.dtype, array.size, first).reshape(array.shape)
    made[...] = array
    return made


BARELY = [  # image, taps, stride, padding: nothing is read beyond the last window
    ((32, 32), (2, 2), 2, 0),
    ((30, 34), (3, 3), 1, 0),
    ((33, 17), (1, 1), 1, 0),
    ((24, 36), (4, 4), 4, 0),
    ((35, 19), (3, 3), 2, 1),
    ((130,), (2,), 2, 0),
    ((129,), (3,), 2, 0),
    ((128,), (5,), 1, 2),
    ((131,), (8,), 4, 2),
]


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux to guard memory")
@pytest.mark.parametrize("mode", ["auto", "exact"])
@pytest.mark.parametrize(("size", "taps", "stride", "padding"), BARELY, ids=str)
def test_nothing_is_read_behind_an_array(size, taps, stride, padding, mode, monkeypatch):
    """By tiles of any kind, which are taken however few they are."""
    monkeypatch.setattr(cpu, "fast_convolution", mode)
    limits = [name for name in vars(choose) if name.endswith(("CHANNELS", "WORK", "POSITIONS"))]
    assert len(limits) == 6
    for name in limits:
        monkeypatch.setattr(choose, name, 0)
    rng = np.random.default_rng(7)
    f = function(len(size))
    given = [rng.standard_normal((2, 16, *size)), rng.standard_normal((16, 16, *taps))]
    x, w = (ut.from_numpy(at_the_end(a.astype(np.float32))).requires_grad_() for a in given)
    y = f(x, w, stride=stride, padding=padding)
    g = rng.standard_normal(tuple(y.shape)).astype(np.float32)
    found = (y, *ut.autograd.grad(y, (x, w), ut.from_numpy(at_the_end(g))))
    x, w = (ut.from_numpy(a).requires_grad_() for a in given)
    right = f(x, w, stride=stride, padding=padding)
    for mine, other in zip(
        found, (right, *ut.autograd.grad(right, (x, w), ut.from_numpy(g).double())), strict=True
    ):
        assert float((mine - other).detach().abs().max()) <= 2e-5 * float(
            other.detach().abs().max()
        )
