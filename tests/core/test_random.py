"""Random numbers: the published vectors, the same numbers everywhere, and the right distributions.

Every statistical test has a fixed seed and a bound that a right implementation passes with a margin
and a wrong one (a shifted mean, a lost tail, a repeated block) does not.
"""

from __future__ import annotations

import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends import philox
from undertow.nn import functional as F

MANY = 100_000
erf = np.vectorize(math.erf, otypes=[float])


def seeded(seed: int = 1) -> ut.Generator:
    return ut.Generator().manual_seed(seed)


def ks(sample: Any, cdf: Any) -> float:
    """The Kolmogorov-Smirnov statistic times sqrt(n); above 1.95 has probability 0.001."""
    x = np.sort(np.asarray(sample, np.float64).ravel())
    n = len(x)
    expected = cdf(x)
    steps = np.arange(n + 1) / n
    return math.sqrt(n) * max((steps[1:] - expected).max(), (expected - steps[:-1]).max())


def chi_square(counts: Any, expected: Any) -> float:
    """The normalised chi-square statistic: about standard normal for many cells."""
    counts, expected = np.asarray(counts, float), np.asarray(expected, float)
    keep = expected > 5
    counts = np.append(counts[keep], counts[~keep].sum())
    expected = np.append(expected[keep], expected[~keep].sum() + 1e-9)
    value = ((counts - expected) ** 2 / np.maximum(expected, 1)).sum()
    freedom = len(counts) - 1
    return (value - freedom) / math.sqrt(2 * freedom)


def normal_cdf(x: Any) -> Any:
    return 0.5 * (1 + erf(x / math.sqrt(2)))


# The stream ---------------------------------------------------------------------------------
ONES = 0xFFFFFFFF


@pytest.mark.parametrize(
    "counter, key, expected",
    [  # the known answers that Random123 publishes for philox4x32-10
        ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((ONES,) * 4, (ONES,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_philox_known_answers(counter: Any, key: Any, expected: str) -> None:
    words = philox.philox_blocks(np.array([counter], np.uint64).T, key[0] | key[1] << 32)
    assert " ".join(f"{int(w):08x}" for w in words[:, 0]) == expected


def test_stream_is_the_concatenated_blocks() -> None:
    words = philox.philox_words(0, 0, 8)
    assert [f"{w:08x}" for w in words[:4]] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]


@pytest.mark.parametrize("offset", [0, 1, 2, 3, 4, 5, 4 * (1 << 32) - 6])
def test_any_stretch_is_the_same(offset: int) -> None:
    whole = philox.philox_words(99, offset, 50)
    for cut in (1, 7, 13):
        parts = [philox.philox_words(99, offset + i, min(cut, 50 - i)) for i in range(0, 50, cut)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = philox.philox_words(5, 3, 1000)
    monkeypatch.setattr(philox, "_CHUNK", 7)
    np.testing.assert_array_equal(philox.philox_words(5, 3, 1000), expected)


def assert_same_draw(a: Any, b: Any, dtype: ut.dtype = ut.float32) -> None:
    """The same words; logarithms, sines and cosines of them may be rounded differently."""
    np.testing.assert_allclose(a, b, rtol=8 * ut.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize(
    "draw",
    [
        lambda **k: ut.rand(5, 3, **k),
        lambda **k: ut.rand(5, dtype=ut.float64, **k),
        lambda **k: ut.rand(5, dtype=ut.bfloat16, **k),
        lambda **k: ut.randn(7, **k),
        lambda **k: ut.randn(7, dtype=ut.complex64, **k),
        lambda **k: ut.randint(-3, 40, (9,), **k),
        lambda **k: ut.randperm(20, **k),
        lambda generator, device: ut.zeros(9, device=device).exponential_(generator=generator),
        lambda generator, device: ut.zeros(9, device=device).bernoulli_(generator=generator),
        lambda generator, device: ut.poisson(ut.full((9,), 30.0, device=device), generator),
        lambda generator, device: ut.multinomial(ut.ones(9, device=device), 4, generator=generator),
    ],
)
def test_every_device_draws_the_same(draw: Any) -> None:
    here = draw(generator=seeded(), device="cpu")
    there = draw(generator=seeded(), device="reference")
    assert there.device == ut.device("reference")
    assert_same_draw(here.tolist(), there.cpu().tolist())
    again = draw(generator=seeded(2), device="cpu")
    assert again.tolist() != here.tolist()


def test_prefix_does_not_depend_on_the_size() -> None:
    for dtype in (ut.float32, ut.float64):
        for make in (ut.rand, ut.randn):
            short = make(10, generator=seeded(), dtype=dtype)
            long = make(10_000, generator=seeded(), dtype=dtype)
            assert_same_draw(long[:10].tolist(), short.tolist(), dtype)


# Generators ---------------------------------------------------------------------------------
def test_manual_seed_and_states() -> None:
    assert ut.manual_seed(3) is ut.default_generator
    assert ut.initial_seed() == 3
    first = ut.rand(5)
    state = ut.get_rng_state()
    assert state.dtype is ut.uint8
    second = ut.rand(5)
    assert first.tolist() != second.tolist()
    ut.set_rng_state(state)
    assert ut.rand(5).tolist() == second.tolist()
    ut.manual_seed(3)
    assert ut.rand(5).tolist() == first.tolist()


def test_generators_are_independent_of_the_default() -> None:
    ut.manual_seed(0)
    a = ut.rand(4)
    ut.manual_seed(0)
    ut.rand(100, generator=seeded())
    assert ut.rand(4).tolist() == a.tolist()


def test_generator_methods() -> None:
    g = ut.Generator("cpu")
    assert g.initial_seed() == ut.Generator().initial_seed()
    assert g.manual_seed(-1).initial_seed() == 2**64 - 1
    assert g.device == ut.device("cpu")
    ut.rand(3, generator=g)
    twin, copied = g.clone_state(), pickle.loads(pickle.dumps(g))
    expected = ut.rand(3, generator=g).tolist()
    assert ut.rand(3, generator=twin).tolist() == expected
    assert ut.rand(3, generator=copied).tolist() == expected
    assert ut.Generator().seed() != ut.Generator().seed()
    with pytest.raises(ut.errors.ArgumentError, match="64 bits"):
        g.manual_seed(2**64)
    with pytest.raises(ut.errors.DTypeError, match="integer"):
        g.manual_seed(1.5)  # type: ignore[arg-type]
    with pytest.raises(ut.errors.DTypeError, match="get_state"):
        g.set_state(ut.zeros(16))


def test_seed_reads_entropy() -> None:
    a, b = ut.seed(), ut.seed()
    assert a != b
    assert ut.initial_seed() == b


def test_threads_get_disjoint_stretches() -> None:
    g = seeded(8)
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(lambda _: ut.rand(64, generator=g, dtype=ut.float64), range(200)))
    found = np.sort(np.concatenate([p.numpy() for p in parts]))
    g = seeded(8)
    again = [ut.rand(64, generator=g, dtype=ut.float64).numpy() for _ in range(200)]
    expected = np.sort(np.concatenate(again))
    np.testing.assert_array_equal(found, expected)


# Continuous distributions -------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [ut.float32, ut.float64])
def test_uniform(dtype: Any) -> None:
    x = ut.rand(MANY, generator=seeded(), dtype=dtype).numpy()
    assert x.min() >= 0
    assert x.max() < 1
    assert ks(x, lambda v: v) < 1.95
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 4 / math.sqrt(MANY)
    bits = 24 if dtype is ut.float32 else 53
    scaled = x.astype(np.float64) * 2.0**bits
    assert (scaled == np.floor(scaled)).all()
    assert (scaled % 2 == 1).mean() == pytest.approx(0.5, abs=0.01), "the last bit is random"


@pytest.mark.parametrize("dtype", [ut.float16, ut.bfloat16])
def test_uniform_of_half_precision_stays_below_one(dtype: Any) -> None:
    """And its small numbers are as fine as the dtype has them, as in single precision."""
    x = ut.rand(MANY, generator=seeded(), dtype=dtype).float().numpy()
    assert 0 < x.min() < 2e-4
    assert x.max() < 1
    assert x.mean() == pytest.approx(0.5, abs=0.005)
    assert np.log(x).mean() == pytest.approx(-1, abs=0.02)
    assert len(np.unique(x)) > (1000 if dtype is ut.bfloat16 else 4000)
    between = ut.empty(MANY, dtype=dtype).uniform_(2, 3, generator=seeded()).float()
    assert (between.min().item(), between.max().item() < 3) == (2.0, True)


@pytest.mark.parametrize("dtype", [ut.float32, ut.float64])
def test_normal(dtype: Any) -> None:
    x = ut.randn(MANY, generator=seeded(), dtype=dtype).numpy().astype(np.float64)
    assert ks(x, normal_cdf) < 1.95
    for power, moment, bound in ((1, 0, 0.02), (2, 1, 0.03), (3, 0, 0.06), (4, 3, 0.15)):
        assert (x**power).mean() == pytest.approx(moment, abs=bound)
    pairs = np.corrcoef(x[0::2], x[1::2])[0, 1]
    assert abs(pairs) < 4 / math.sqrt(MANY / 2), "the two of one Box-Muller pair are independent"
    assert np.abs(x).max() > 3.8, "the tail is there"


def test_complex_normal_has_variance_one() -> None:
    x = ut.randn(MANY, generator=seeded(), dtype=ut.complex64).numpy()
    assert (np.abs(x) ** 2).mean() == pytest.approx(1, abs=0.02)
    assert x.real.std() == pytest.approx(math.sqrt(0.5), abs=0.01)


@pytest.mark.parametrize("dtype", [ut.float32, ut.float64])
def test_filled_in_place(dtype: Any) -> None:
    x = ut.empty(MANY, dtype=dtype)
    g = seeded(4)
    assert ks(x.uniform_(-2, 3, generator=g), lambda v: (v + 2) / 5) < 1.95
    assert ks(x.normal_(2, 3, generator=g), lambda v: normal_cdf((v - 2) / 3)) < 1.95
    assert ks(x.exponential_(2.5, generator=g), lambda v: -np.expm1(-2.5 * v)) < 1.95
    assert float(x.min()) > 0
    cauchy = x.cauchy_(1, 2, generator=g)
    assert ks(cauchy, lambda v: np.arctan((v - 1) / 2) / math.pi + 0.5) < 1.95
    log_normal = x.log_normal_(0.5, 0.25, generator=g)
    assert ks(log_normal, lambda v: normal_cdf((np.log(v) - 0.5) / 0.25)) < 1.95


def test_normal_of_tensors_and_numbers() -> None:
    mean = ut.tensor([[0.0], [100.0]]).expand(2, MANY)
    x = ut.normal(mean, ut.full((MANY,), 2.0), generator=seeded())
    assert x.shape == (2, MANY)
    assert x.mean(1).tolist() == pytest.approx([0, 100], abs=0.03)
    assert x.std(1).tolist() == pytest.approx([2, 2], abs=0.03)
    assert ut.normal(3.0, ut.zeros(4)).tolist() == [3.0] * 4
    assert ut.normal(ut.ones(4), 0.0).tolist() == [1.0] * 4
    y = ut.normal(1.0, 0.5, (MANY,), generator=seeded())
    assert ks(y, lambda v: normal_cdf((v - 1) / 0.5)) < 1.95
    assert ut.normal(ut.zeros(2, dtype=ut.float64), ut.ones(2)).dtype is ut.float64


def test_normal_is_differentiable_in_its_parameters() -> None:
    mean = ut.zeros(5, requires_grad=True)
    std = ut.ones(5, requires_grad=True)
    x = ut.normal(mean, std, generator=seeded())
    x.sum().backward()
    assert mean.grad.tolist() == [1.0] * 5
    assert std.grad.tolist() == x.detach().tolist()


# Discrete distributions ---------------------------------------------------------------------
@pytest.mark.parametrize("low, high", [(0, 2), (-3, 4), (5, 6), (0, 1000)])
def test_integers(low: int, high: int) -> None:
    x = ut.randint(low, high, (MANY,), generator=seeded()).numpy()
    assert x.min() >= low
    assert x.max() < high
    counts = np.bincount(x - low, minlength=high - low)
    if high - low > 1:
        assert abs(chi_square(counts, np.full(high - low, MANY / (high - low)))) < 4


def test_integers_of_every_dtype_and_range() -> None:
    whole = ut.randint(-(2**63), 2**63 - 1, (MANY,), generator=seeded()).numpy().astype(float)
    assert abs(whole.mean()) < 2**63 * 0.01
    assert whole.min() < -(2**62) * 1.9
    assert whole.max() > 2**62 * 1.9
    for dtype in (ut.uint8, ut.int8, ut.int16, ut.int32, ut.float32, ut.bool):
        high = 2 if dtype is ut.bool else 100
        x = ut.randint(0, high, (1000,), dtype=dtype, generator=seeded())
        assert x.dtype is dtype
        assert float(x.float().max()) == high - 1
    assert ut.randint(3, size=(2,)).shape == (2,)
    assert ut.randint(low=3, high=4, size=(2,)).tolist() == [3, 3]
    assert ut.randint_like(ut.zeros(2), 3, 4).tolist() == [3.0, 3.0]
    assert ut.randint(2**40, 2**40 + 1, ()).item() == 2**40


def test_random_in_place() -> None:
    g = seeded()
    for dtype, top in ((ut.int8, 127), (ut.uint8, 255), (ut.bool, 1), (ut.float16, 2**11)):
        x = ut.zeros(MANY, dtype=dtype).random_(generator=g).double().numpy()
        assert x.min() == 0
        assert x.max() == top
    x = ut.zeros(MANY).random_(generator=g).double().numpy()
    assert x.mean() == pytest.approx(2**23, rel=0.01)
    assert set(ut.zeros(100, dtype=ut.int64).random_(3, generator=g).tolist()) == {0, 1, 2}
    assert set(ut.zeros(100).random_(-1, 1, generator=g).tolist()) == {-1.0, 0.0}


def test_permutations_are_uniform() -> None:
    g = seeded()
    counts = dict.fromkeys(range(24), 0)
    for _ in range(2400):
        order = ut.randperm(4, generator=g).tolist()
        assert sorted(order) == [0, 1, 2, 3]
        rank = 0
        for i, v in enumerate(order):
            rank = rank * (4 - i) + sum(w < v for w in order[i + 1 :])
        counts[rank] += 1
    assert abs(chi_square(list(counts.values()), np.full(24, 100.0))) < 4
    assert ut.randperm(0).shape == (0,)
    assert ut.randperm(3, dtype=ut.float32).dtype is ut.float32


@pytest.mark.parametrize("dtype", [ut.float32, ut.float64, ut.float16, ut.bfloat16])
def test_bernoulli(dtype: Any) -> None:
    p = ut.tensor([0.0, 0.125, 0.5, 1.0], dtype=dtype).expand(MANY, 4)
    x = ut.bernoulli(p, generator=seeded())
    assert x.dtype is dtype
    assert x.float().mean(0).tolist() == pytest.approx([0, 0.125, 0.5, 1], abs=0.006)
    assert set(np.unique(x.float().numpy())) == {0.0, 1.0}
    assert x[:, 0].float().sum().item() == 0
    assert x[:, 3].float().sum().item() == MANY


def test_bernoulli_with_a_number() -> None:
    x = ut.zeros(MANY, dtype=ut.int64)
    assert x.bernoulli_(0.3, generator=seeded()).float().mean().item() == pytest.approx(
        0.3, abs=0.006
    )
    assert ut.bernoulli(ut.zeros(5), 1.0).tolist() == [1.0] * 5
    assert ut.bernoulli(ut.zeros(5), 0.0).tolist() == [0.0] * 5
    assert ut.zeros(2).bernoulli_(ut.tensor([1.0, 0.0])).tolist() == [1.0, 0.0]


def test_sampling_has_zero_gradient_not_none() -> None:
    p = ut.full((3,), 0.5, requires_grad=True)
    (ut.bernoulli(p) + ut.poisson(p)).sum().backward()
    assert p.grad.tolist() == [0.0, 0.0, 0.0]


def test_multinomial_with_replacement() -> None:
    weights = ut.tensor([[1.0, 0.0, 3.0, 0.0], [0.0, 2.0, 2.0, 4.0]])
    x = ut.multinomial(weights, MANY, replacement=True, generator=seeded()).numpy()
    assert x.dtype == np.int64
    for row, expected in zip(x, ([0.25, 0, 0.75, 0], [0, 0.25, 0.25, 0.5]), strict=True):
        np.testing.assert_allclose(np.bincount(row, minlength=4) / MANY, expected, atol=0.006)


def test_multinomial_without_replacement() -> None:
    g = seeded()
    weights = ut.tensor([0.0, 1.0, 2.0, 3.0]).expand(20_000, 4)
    x = ut.multinomial(weights, 3, generator=g).numpy()
    assert (np.sort(x, 1) == [1, 2, 3]).all()
    np.testing.assert_allclose(np.bincount(x[:, 0]) / len(x), [0, 1 / 6, 1 / 3, 1 / 2], atol=0.015)
    second = 1 / 6 * (2 / 5) + 1 / 2 * (2 / 3)  # P(second draw is 2)
    assert (x[:, 1] == 2).mean() == pytest.approx(second, abs=0.015)
    assert sorted(ut.multinomial(ut.ones(5), 5).tolist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("rate", [0.0, 0.3, 4.0, 9.9, 10.5, 40.0, 1000.0])
def test_poisson(rate: float) -> None:
    x = ut.poisson(ut.full((MANY,), rate, dtype=ut.float64), generator=seeded()).numpy()
    assert x.mean() == pytest.approx(rate, abs=4 * math.sqrt(rate / MANY) + 1e-12)
    assert x.var() == pytest.approx(rate, rel=0.03, abs=1e-12)
    if 0 < rate < 100:
        k = np.arange(200)
        expected = MANY * np.exp(k * math.log(rate) - rate - [math.lgamma(i + 1) for i in k])
        assert abs(chi_square(np.bincount(x.astype(int), minlength=200), expected)) < 4


def test_poisson_of_mixed_rates_and_dtypes() -> None:
    rate = ut.tensor([0.0, 5.0, 50.0], dtype=ut.float32).expand(20_000, 3)
    x = ut.poisson(rate, generator=seeded())
    assert x.dtype is ut.float32
    assert x.mean(0).tolist() == pytest.approx([0, 5, 50], abs=0.3)
    assert ut.poisson(ut.zeros(0)).shape == (0,)


def test_geometric() -> None:
    x = ut.zeros(MANY, dtype=ut.int64).geometric_(0.3, generator=seeded()).numpy()
    k = np.arange(1, 60)
    expected = MANY * 0.3 * 0.7 ** (k - 1)
    assert x.min() == 1
    assert abs(chi_square(np.bincount(x, minlength=60)[1:60], expected)) < 4


# Dropout ------------------------------------------------------------------------------------
def test_dropout_keeps_the_mean_and_its_mask_is_the_gradient() -> None:
    ut.manual_seed(0)
    x = ut.ones(MANY, requires_grad=True)
    y = F.dropout(x, 0.25)
    assert set(np.unique(y.detach().numpy())) == {0.0, np.float32(1 / 0.75)}
    assert y.mean().item() == pytest.approx(1, abs=0.01)
    y.sum().backward()
    assert x.grad.tolist() == y.detach().tolist()


@pytest.mark.parametrize("function", [F.dropout, F.alpha_dropout, F.feature_alpha_dropout])
def test_dropout_to_second_order(function: Any) -> None:
    x = ut.randn(3, 4, dtype=ut.float64, generator=seeded()).requires_grad_()

    def cube(x: ut.Tensor) -> ut.Tensor:
        ut.manual_seed(5)
        return function(x, 0.5, True) ** 3

    assert ut.autograd.gradcheck(cube, (x,))
    assert ut.autograd.gradgradcheck(cube, (x,))


@pytest.mark.parametrize(
    "function, shape, channels",
    [
        (F.dropout1d, (50, 40, 6), 2),
        (F.dropout1d, (500, 6), 1),
        (F.dropout2d, (50, 40, 3, 2), 2),
        (F.dropout2d, (50, 40, 6), 2),
        (F.dropout3d, (50, 40, 2, 3, 2), 2),
        (F.dropout3d, (500, 2, 3, 2), 1),
    ],
)
def test_channel_dropout(function: Any, shape: Any, channels: int) -> None:
    ut.manual_seed(1)
    y = function(ut.ones(shape), 0.3).numpy()
    rows = y.reshape(math.prod(shape[:channels]), -1)
    assert (rows == rows[:, :1]).all(), "a channel is dropped as a whole"
    assert (rows[:, 0] == 0).mean() == pytest.approx(0.3, abs=0.06)
    assert rows.max() == pytest.approx(1 / 0.7)


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    ut.manual_seed(0)
    x = ut.randn(MANY, generator=seeded())
    y = F.alpha_dropout(x, 0.4, training=True)
    assert y.mean().item() == pytest.approx(0, abs=0.02)
    assert y.std().item() == pytest.approx(1, abs=0.02)
    z = F.feature_alpha_dropout(x.reshape(-1, 50, 4), 0.4, training=True)
    assert z.mean().item() == pytest.approx(0, abs=0.06)
    assert z.std().item() == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize(
    "function",
    [F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, F.feature_alpha_dropout],
)
def test_dropout_edges(function: Any) -> None:
    x = ut.randn(2, 3, 4, 5, generator=seeded())
    if function is F.dropout1d:
        x = x[0]
    assert function(x, 0.5, training=False) is x
    assert function(x, 0.0, training=True).tolist() == x.tolist()
    assert not function(x, 1.0, training=True).numpy().any()
    y = x.clone()
    assert function(y, 1.0, training=True, inplace=True) is y
    assert not y.numpy().any()
    for p in (-0.1, 1.1, math.nan):
        with pytest.raises(ut.errors.ArgumentError, match=rf"\[{function.__name__}\].*{p}"):
            function(x, p, training=True)
    with pytest.raises(ut.errors.DTypeError, match="floating"):
        function(x.long(), 0.5, training=True)


# Errors, each before anything changes -------------------------------------------------------
@pytest.mark.parametrize(
    "call, error, match",
    [
        (lambda: ut.rand(2, dtype=ut.int64), ut.errors.DTypeError, r"\[rand\].*int64"),
        (lambda: ut.rand(), ut.errors.DTypeError, r"\[rand\] needs a size"),
        (lambda: ut.randn(-1), ut.errors.ShapeError, r"\[randn\].*negative"),
        (lambda: ut.rand_like(ut.tensor([1])), ut.errors.DTypeError, r"\[rand_like\]"),
        (lambda: ut.randint(3, 3, (2,)), ut.errors.ArgumentError, r"\[randint\].*3 and 3"),
        (lambda: ut.randint(3), ut.errors.DTypeError, r"\[randint\] is called as"),
        (lambda: ut.randint(0, 300, (2,), dtype=ut.uint8), ut.errors.ArgumentError, "299"),
        (lambda: ut.randperm(-1), ut.errors.ShapeError, r"\[randperm\]"),
        (lambda: ut.randperm(300, dtype=ut.uint8), ut.errors.ArgumentError, "299"),
        (lambda: ut.normal(0.0, 1.0), ut.errors.DTypeError, r"\[normal\] needs a size"),
        (lambda: ut.normal(0.0, -1.0, (2,)), ut.errors.ArgumentError, r"\[normal\].*-1"),
        (lambda: ut.normal(ut.zeros(1), -ut.ones(1)), ut.errors.ArgumentError, r"\[normal\].*-1"),
        (lambda: ut.normal(ut.tensor([1])), ut.errors.DTypeError, r"\[normal\].*int64"),
        (lambda: ut.bernoulli(ut.tensor([1.5])), ut.errors.ArgumentError, r"\[bernoulli\].*1.5"),
        (lambda: ut.bernoulli(ut.tensor([math.nan])), ut.errors.ArgumentError, r"nan"),
        (lambda: ut.bernoulli(ut.tensor([1])), ut.errors.DTypeError, r"\[bernoulli\]"),
        (lambda: ut.bernoulli(ut.zeros(1), 2.0), ut.errors.ArgumentError, r"\[bernoulli\].*2"),
        (lambda: ut.multinomial(ut.ones(3), 4), ut.errors.ArgumentError, "4 samples.* 3 nonzero"),
        (lambda: ut.multinomial(ut.tensor([0.0, 1.0]), 2), ut.errors.ArgumentError, "1 nonzero"),
        (lambda: ut.multinomial(ut.zeros(3), 1), ut.errors.ArgumentError, "all zero"),
        (lambda: ut.multinomial(-ut.ones(3), 1), ut.errors.ArgumentError, "-1"),
        (lambda: ut.multinomial(ut.ones(3), 0), ut.errors.ArgumentError, "num_samples"),
        (lambda: ut.multinomial(ut.ones(1, 1, 1), 1), ut.errors.ShapeError, "dimensions"),
        (lambda: ut.multinomial(ut.tensor([1]), 1), ut.errors.DTypeError, "floating"),
        (lambda: ut.poisson(-ut.ones(1)), ut.errors.ArgumentError, r"\[poisson\].*-1"),
        (lambda: ut.poisson(ut.tensor([1])), ut.errors.DTypeError, r"\[poisson\]"),
        (lambda: ut.zeros(1).uniform_(2, 1), ut.errors.ArgumentError, r"\[uniform_\].*2 and 1"),
        (lambda: ut.tensor([1]).uniform_(), ut.errors.DTypeError, r"\[uniform_\].*int64"),
        (lambda: ut.tensor([1]).normal_(), ut.errors.DTypeError, r"\[normal_\].*int64"),
        (lambda: ut.zeros(1).normal_(0, -1), ut.errors.ArgumentError, r"\[normal_\].*-1"),
        (lambda: ut.zeros(1).exponential_(0), ut.errors.ArgumentError, r"\[exponential_\].*0"),
        (lambda: ut.zeros(1).geometric_(1.0), ut.errors.ArgumentError, r"\[geometric_\].*1.0"),
        (lambda: ut.zeros(1).log_normal_(0, 0), ut.errors.ArgumentError, r"\[log_normal_\].*0"),
        (lambda: ut.zeros(1).cauchy_(0, 0), ut.errors.ArgumentError, r"\[cauchy_\].*0"),
        (lambda: ut.zeros(1).random_(2, 2), ut.errors.ArgumentError, r"\[random_\].*2 and 2"),
        (lambda: ut.tensor([1j]).random_(), ut.errors.DTypeError, r"\[random_\]"),
        (lambda: F.dropout1d(ut.ones(3)), ut.errors.ShapeError, r"\[dropout1d\].*2 or 3"),
        (lambda: F.dropout2d(ut.ones(3, 3)), ut.errors.ShapeError, r"\[dropout2d\].*3 or 4"),
        (lambda: F.dropout3d(ut.ones(3, 3)), ut.errors.ShapeError, r"\[dropout3d\].*4 or 5"),
    ],
)
def test_errors(call: Any, error: Any, match: str) -> None:
    ut.manual_seed(0)
    before = ut.get_rng_state().tolist()
    with pytest.raises(error, match=match):
        call()
    assert ut.get_rng_state().tolist() == before, "a refused call takes no random numbers"


def test_leaves_that_require_gradients_are_not_filled() -> None:
    x = ut.zeros(2, requires_grad=True)
    with pytest.raises(ut.errors.InplaceError):
        x.normal_()
    with ut.no_grad():
        x.normal_()
    assert x.requires_grad


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__, "-q"]))


def test_random_from_a_number_on() -> None:
    """With to=None all that the dtype holds; with one argument that is the bound."""
    x = ut.zeros(1000, dtype=ut.uint8).random_(250, None)
    assert set(x.tolist()) == {250, 251, 252, 253, 254, 255}
    assert set(ut.zeros(100, dtype=ut.int64).random_(None, 2).tolist()) == {0, 1}


def test_uniform_over_more_than_the_dtype_holds() -> None:
    with pytest.raises(ut.errors.ArgumentError, match=r"\[uniform_\] to - from"):
        ut.zeros(3).uniform_(-3e38, 3e38)


def test_bernoulli_fills_bools() -> None:
    out = ut.empty(2, dtype=ut.bool)
    ut.bernoulli(ut.tensor([0.0, 1.0]), out=out)
    assert out.tolist() == [False, True]


@pytest.mark.parametrize("dtype", [ut.float16, ut.bfloat16, ut.float8_e5m2])
def test_permutations_that_a_dtype_does_not_hold(dtype: Any) -> None:
    most = round(2 / ut.finfo(dtype).eps)
    assert ut.randperm(most + 1, dtype=dtype).float().sort().values.tolist() == list(
        range(most + 1)
    )
    with pytest.raises(ValueError, match="are not all numbers of"):
        ut.randperm(most + 2, out=ut.empty(0, dtype=dtype))
