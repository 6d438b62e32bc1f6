"""Distributions: samples have the moments and gradients that they should, shapes, refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import undertow as ut
from distribution_table import CASES, IDS, TABLE, made
from undertow.distributions.gamma_samples import log_standard_gamma, slope

d = ut.distributions
DRAWS = 10_000
# Without a mean or a variance, or with a tail too long for so few draws, or of angles.
WILD = {"Cauchy", "HalfCauchy", "FisherSnedecor", "InverseGamma", "Pareto", "StudentT", "VonMises"}
CALM = [(n, p) for (n, p, _) in CASES if n not in WILD]


def has_mean(name: str, params: Any) -> bool:
    """Whether the class has a formula for its mean."""
    try:
        return bool(made(ut, name, params)[0].mean.isfinite().all())
    except NotImplementedError:
        return False


MEANS = [(n, p) for n, p in CALM if has_mean(n, p)]


@pytest.mark.parametrize("name, params", MEANS, ids=[f"{n}-{'-'.join(p)}" for n, p in MEANS])
def test_samples_have_the_moments(name: str, params: Any) -> None:
    """The mean and the variance of many draws, to five standard errors."""
    ut.manual_seed(1)
    of, _ = made(ut, name, params)
    drawn = of.sample((DRAWS,))
    error = 5 * (of.variance / DRAWS).sqrt()
    assert bool(((drawn.mean(0) - of.mean).abs() <= error + 1e-12).all())
    assert bool(((drawn.var(0) - of.variance).abs() <= 0.12 * of.variance + 1e-12).all())


@pytest.mark.parametrize(
    "name, params",
    [(n, p) for n, p in MEANS if made(ut, n, p)[0].has_rsample and "Straight" not in n],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_gradients_of_samples(name: str, params: Any) -> None:
    """The gradient of the mean of many draws is that of the mean."""
    ut.manual_seed(2)
    of, leaves = made(ut, name, params, grad=True)
    drawn = of.rsample((DRAWS,))
    weights = ut.linspace(0.5, 1.5, of.mean.numel(), dtype=ut.float64).reshape(of.mean.shape)
    found = ut.autograd.grad((drawn.mean(0) * weights).sum(), leaves, allow_unused=True)
    of, leaves = made(ut, name, params, grad=True)
    wanted = ut.autograd.grad((of.mean * weights).sum(), leaves, allow_unused=True)
    for f, w in zip(found, wanted, strict=True):
        if f is not None and w is not None:
            if "covariance_matrix" in params:  # which is symmetric
                f, w = (g + g.mT if g.ndim > 1 else g for g in (f, w))
            assert bool(((f - w).abs() <= 0.05 * w.abs() + 0.05).all())


def lower_gamma(a: float, x: float) -> float:
    """P(a, x) by its series, in more digits than double precision has."""
    a_, x_ = np.longdouble(a), np.longdouble(x)
    term = 1 / a_
    total = term
    for n in range(1, 600):
        term = term * x_ / (a_ + n)
        total += term
    return float(np.exp(a_ * np.log(x_) - x_ - np.longdouble(math.lgamma(a))) * total)


@pytest.mark.parametrize("a", [0.05, 0.7, 1.0, 4.2, 30.0, 99.0, 101.0, 300.0])
def test_implicit_slopes(a: float) -> None:
    """A sample moves with the concentration so that its place in the distribution stays."""
    spread = math.sqrt(a)
    for x in (max(a - 1.5 * spread, 0.02 * a), a, a + 2 * spread):
        h = 1e-5 * a
        by_a = (lower_gamma(a + h, x) - lower_gamma(a - h, x)) / (2 * h)
        density = math.exp((a - 1) * math.log(x) - x - math.lgamma(a))
        wanted = -by_a / density / x
        found = slope(ut.tensor(a, dtype=ut.float64), ut.tensor(math.log(x), dtype=ut.float64))
        assert float(found) == pytest.approx(wanted, rel=3e-6)


def test_implicit_slopes_differentiate_further() -> None:
    """The slope is written in ops: its own derivatives are right, on both sides of the change."""
    a = ut.tensor([0.3, 120.0], dtype=ut.float64)
    log_x = (a * 1.1).log()
    inputs = (a.requires_grad_(), log_x.detach().requires_grad_())
    assert ut.autograd.gradcheck(slope, inputs, rtol=1e-4, atol=1e-7)
    x = log_standard_gamma(a)
    (first,) = ut.autograd.grad(x.sum(), a, create_graph=True)
    (second,) = ut.autograd.grad(first.sum(), a)
    assert bool(second.isfinite().all())


def test_small_concentrations_do_not_underflow() -> None:
    """Proportions of a Dirichlet with a tiny concentration still add up to one."""
    ut.manual_seed(3)
    drawn = d.Dirichlet(ut.full((3,), 1e-4)).sample((100,))
    assert bool(((drawn.sum(-1) - 1).abs() < 1e-5).all())
    assert bool(d.Gamma(1e-4, 1.0).sample((100,)).isfinite().all())


@pytest.mark.parametrize("name, params, value", CASES, ids=IDS)
def test_shapes(name: str, params: Any, value: Any) -> None:
    """Samples and densities of an expanded distribution have the shapes of batch and event."""
    of, _ = made(ut, name, params)
    wide = of.expand((2, *of.batch_shape))
    assert wide.batch_shape == (2, *of.batch_shape)
    assert type(wide) is type(of)
    drawn = wide.sample((3,))
    assert drawn.shape == (3, *wide.batch_shape, *wide.event_shape)
    assert wide.log_prob(drawn).shape == (3, *wide.batch_shape)
    assert bool(of.support.check(of.sample((5,))).all())
    assert type(of).__name__ in repr(of)


@pytest.mark.parametrize("name", [n for n in TABLE if n not in ("LKJCholesky", "Wishart")])
def test_divergence_from_itself_is_zero(name: str) -> None:
    """Where there is a formula."""
    of, _ = made(ut, name, TABLE[name][0][0])
    try:
        found = d.kl_divergence(of, of)
    except NotImplementedError:
        return
    assert bool((found.abs() < 1e-9).all())


def test_divergence_is_the_mean_of_log_ratios() -> None:
    """By samples, for pairs of different classes."""
    ut.manual_seed(4)
    for p, q in (
        (d.Beta(2.0, 3.0), d.Normal(0.3, 0.4)),
        (d.Gamma(3.0, 2.0), d.Exponential(0.7)),
        (d.Normal(0.5, 1.2), d.Laplace(0.0, 1.0)),
        (d.Uniform(0.2, 0.8), d.Beta(1.5, 2.0)),
        (d.Exponential(1.5), d.Gumbel(0.5, 1.0)),
    ):
        x = p.sample((40_000,))
        ratios = p.log_prob(x) - q.log_prob(x)
        error = 5 * float(ratios.std()) / 200
        assert float(d.kl_divergence(p, q)) == pytest.approx(float(ratios.mean()), abs=error)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: d.Normal(0.0, -1.0), r"\[Normal\] parameter scale, of shape \(\), must satisfy"),
        (lambda: d.Bernoulli(), r"\[Bernoulli\] needs either probs or logits"),
        (lambda: d.Gamma(1.0, 1.0).log_prob(ut.tensor(-1.0)), r"\[Gamma\] a value lies outside"),
        (lambda: d.Normal(ut.zeros(2), 1.0).log_prob(ut.zeros(3)), r"\[Normal\] a value of shape"),
        (lambda: d.Uniform(1.0, 0.0), r"\[Uniform\] low must be below high"),
        (lambda: d.MultivariateNormal(ut.zeros(2)), r"\[MultivariateNormal\] needs exactly one"),
        (lambda: d.Independent(d.Normal(0.0, 1.0), 1), r"\[Independent\] cannot take 1"),
        (lambda: d.kl_divergence(d.Normal(0.0, 1.0), d.Poisson(1.0)), r"\[kl_divergence\] there"),
        (lambda: d.Poisson(1.0).rsample(), r"\[Poisson\] has no samples that can be diff"),
        (lambda: d.ReshapeTransform((2,), (3,)), r"\[ReshapeTransform\] shapes"),
    ],
)
def test_refusals(call: Any, message: str) -> None:
    """Errors name the class, the values and what is wanted."""
    with pytest.raises((ValueError, NotImplementedError), match=message):
        call()


def test_checks_can_be_left_out() -> None:
    """By an argument, or for all."""
    assert bool(d.Normal(0.0, -1.0, validate_args=False).log_prob(ut.tensor(0.0)).isnan())
    d.Distribution.set_default_validate_args(False)
    try:
        d.Normal(0.0, -1.0)
    finally:
        d.Distribution.set_default_validate_args(True)


def test_a_transformed_density_integrates_to_one() -> None:
    """The Jacobian is that of the transform."""
    of = d.TransformedDistribution(
        d.Normal(0.3, 0.8), [d.AffineTransform(0.5, -1.5), d.SigmoidTransform()]
    )
    x = ut.linspace(1e-6, 1 - 1e-6, 20_001)
    assert float(ut.trapezoid(of.log_prob(x).exp(), x)) == pytest.approx(1, abs=1e-3)


def test_torchs_module_names() -> None:
    """What stands together here is found under the module that torch has for it."""
    from undertow.distributions.chi2 import Chi2
    from undertow.distributions.laplace import Laplace

    assert Chi2 is d.Chi2
    assert Laplace is d.Laplace


def test_binomial_counts() -> None:
    """By inversion and by rejection, the mean and the variance."""
    ut.manual_seed(5)
    for n, p in ((5.0, 0.3), (40.0, 0.9), (1000.0, 0.4), (1e6, 2e-6)):
        drawn = ut.binomial(ut.full((DRAWS,), n), ut.full((DRAWS,), p)).double()
        variance = n * p * (1 - p)
        assert float(drawn.mean()) == pytest.approx(n * p, abs=5 * math.sqrt(variance / DRAWS))
        assert float(drawn.var()) == pytest.approx(variance, rel=0.1)
        assert float(drawn.min()) >= 0
        assert float(drawn.max()) <= n


def test_the_inverse_of_an_inverse_is_the_transform() -> None:
    d = ut.distributions
    both = d.ComposeTransform([d.AffineTransform(1.0, 2.0), d.ExpTransform()])
    assert both.inv.inv is both
    kept = both.with_cache(1)
    assert kept.inv.inv is kept
    assert [part._cache_size for part in kept.parts] == [1, 1]
    x = ut.tensor(0.5)
    ut.testing.assert_close(both.inv(both(x)), x)


def test_what_is_kept_has_a_history_even_if_first_asked_for_without() -> None:
    logits = ut.randn(3, requires_grad=True)
    d = ut.distributions.OneHotCategoricalStraightThrough(logits=logits)
    d.sample()  # looks at the probabilities, in no_grad
    assert d.rsample().requires_grad


def test_no_sample_of_a_beta_variable_is_an_end() -> None:
    x = ut.distributions.Beta(0.01, 0.01).sample((2000,))
    assert 0 < float(x.min()) < 1e-6
    assert 1 - 1e-6 < float(x.max()) < 1


def test_divergence_of_binomials() -> None:
    d = ut.distributions
    p, q = (d.Binomial(n, ut.tensor([0.3])) for n in (5, 4))
    assert d.kl_divergence(p, q).tolist() == [math.inf]
    with pytest.raises(NotImplementedError, match="no more trials in q"):
        d.kl_divergence(q, p)


def test_gamma_takes_a_number() -> None:
    d = ut.distributions.Gamma(2.0, 1.0)
    ut.testing.assert_close(d.log_prob(1), d.log_prob(ut.tensor(1.0)))


def test_a_continuous_bernoulli_with_steep_logits() -> None:
    """Probabilities that are rounded to one leave the logits their digits."""
    family = ut.distributions
    for sign, x in ((1.0, 1.0), (-1.0, 0.0)):
        d = family.ContinuousBernoulli(logits=ut.tensor([sign * 50.0]))
        assert d.log_prob(ut.tensor([x])).item() == pytest.approx(math.log(50.0))
        assert d.mean.item() == pytest.approx(x - sign / 50)
        assert d.variance.item() == pytest.approx(1 / 2500, rel=1e-4)
        assert d.entropy().item() == pytest.approx(1 - math.log(50.0), rel=1e-4)
        assert d.icdf(ut.tensor([0.5])).item() == pytest.approx(x - sign * math.log(2) / 50)


def test_families_whose_carrier_is_not_known() -> None:
    """The general entropy is not theirs: they have their own, or none."""
    family = ut.distributions
    for d in (family.Beta(ut.tensor(2.0), ut.tensor(3.0)), family.Dirichlet(ut.ones(3))):
        with pytest.raises(NotImplementedError):
            family.ExponentialFamily.entropy(d)
    gamma = family.Gamma(ut.tensor(2.0), ut.tensor(3.0))
    assert ut.allclose(family.ExponentialFamily.entropy(gamma), gamma.entropy())


def test_transforms_are_transforms() -> None:
    with pytest.raises(ValueError, match="transforms are Transforms"):
        ut.distributions.TransformedDistribution(ut.distributions.Normal(0.0, 1.0), lambda x: x)
