"""Kullback and Leibler's divergence of two distributions, for the pairs that have a formula."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import inf
from typing import Any, TypeVar

from ..autograd import grad
from ..core.modes import enable_grad
from ..core.tensor import Tensor
from ..errors import ArgumentError, UnsupportedError
from ..ops.elementwise.comparison import where
from ..ops.linalg.triangular import solve_triangular
from .bernoulli import Bernoulli, ContinuousBernoulli
from .beta import Beta, Dirichlet
from .categorical import Categorical, OneHotCategorical
from .counts import Binomial, Geometric, Poisson
from .covariance import half_log_det, squared_length
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .exponential import Exponential, Pareto
from .gamma import Gamma
from .location_scale import Cauchy, Gumbel, Laplace, Uniform
from .multivariate_normal import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    low_rank_log_det,
    low_rank_squared_length,
)
from .normal import HalfNormal, Normal
from .transformed_distribution import Independent, TransformedDistribution
from .utils import euler_constant, sum_rightmost

Formula = Callable[[Any, Any], Tensor]
F = TypeVar("F", bound=Formula)
_REGISTRY: dict[tuple[type, type], Formula] = {}


def register_kl(type_p: type[Distribution], type_q: type[Distribution]) -> Callable[[F], F]:
    """A decorator: the function is the divergence of distributions of these two classes.

    >>> import undertow as ut
    >>> d = ut.distributions
    >>> @d.register_kl(d.LogNormal, d.LogNormal)
    ... def kl_log_normal(p, q):
    ...     return d.kl_divergence(p.base_dist, q.base_dist)
    """
    for kind in (type_p, type_q):
        if not isinstance(kind, type):  # any class: libraries have distributions of their own
            raise ArgumentError(f"[register_kl] takes classes of distributions, got {kind!r}")

    def register(formula: F) -> F:
        _REGISTRY[type_p, type_q] = formula
        return formula

    return register


def _found(type_p: type, type_q: type) -> Formula | None:
    """The formula of the classes that are closest to these two among their bases."""
    for p in type_p.__mro__:
        for q in type_q.__mro__:
            if (p, q) in _REGISTRY:
                return _REGISTRY[p, q]
    return None


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The expected value, under p, of log p - log q.

    >>> import undertow as ut
    >>> d = ut.distributions
    >>> d.kl_divergence(d.Normal(0.0, 1.0), d.Normal(1.0, 1.0))
    tensor(0.5000)
    """
    formula = _found(type(p), type(q))
    if formula is None:
        raise UnsupportedError(
            f"[kl_divergence] there is no formula for {type(p).__name__} and {type(q).__name__}; "
            "give one by register_kl, or estimate it by samples"
        )
    return formula(p, q)


def _infinite(p: Any, q: Any) -> Tensor:
    """p has values that q cannot have."""
    shape = (p.mean + q.mean).shape if not isinstance(p, Cauchy) else p.loc.shape
    found: Tensor = p.mean.new_full(shape, inf)
    return found


def _xlogx(x: Tensor) -> Tensor:
    return x.xlogy(x)


# Of one class ----------------------------------------------------------------------------------
@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    def part(a: Tensor, b: Tensor, difference: Tensor) -> Tensor:
        found = a * difference
        return where(a == 0, 0.0, where(b == 0, inf, found))

    from ..nn.functional import softplus

    one = part(p.probs, q.probs, softplus(-q.logits) - softplus(-p.logits))
    return one + part(1 - p.probs, 1 - q.probs, softplus(q.logits) - softplus(p.logits))


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Tensor:
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    total, other = a + b, c + d
    norm = c.lgamma() + d.lgamma() + total.lgamma() - a.lgamma() - b.lgamma() - other.lgamma()
    slopes = (a - c) * a.digamma() + (b - d) * b.digamma() + (other - total) * total.digamma()
    return norm + slopes


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise UnsupportedError("[kl_divergence] of Binomials needs no more trials in q than in p")
    ratio = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return where(p.total_count == q.total_count, p.total_count * ratio, inf)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    found = p.probs * (p.logits - q.logits)
    found = where(q.probs.expand(found.shape) == 0, inf, found)
    return where(p.probs.expand(found.shape) == 0, 0.0, found).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Tensor:
    return _categorical(p, q)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:
    top = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return (top / (4 * p.scale * q.scale)).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Tensor:
    norm = p._log_norm() + (-p.probs).log1p() - q._log_norm() - (-q.probs).log1p()
    return p.mean * (p.logits - q.logits) + norm


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    norm = total.lgamma() - b.sum(-1).lgamma() + (b.lgamma() - a.lgamma()).sum(-1)
    slopes = ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)
    return norm + slopes


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Tensor:
    """Bregman's divergence of the natural parameters."""
    if type(p) is not type(q):
        raise UnsupportedError(
            f"[kl_divergence] there is no formula for {type(p).__name__} and {type(q).__name__}"
        )
    ours = [x if x.requires_grad else x.detach().requires_grad_() for x in p._natural_params]
    with enable_grad():
        norm = p._log_normalizer(*ours)
        slopes = grad(norm.sum(), ours, create_graph=True)
    found = q._log_normalizer(*q._natural_params) - norm
    for a, b, slope in zip(ours, q._natural_params, slopes, strict=True):
        found = found - sum_rightmost((b - a) * slope, len(q.event_shape))
    return found


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    norm = b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma()
    return norm + (a - b) * a.digamma() + (q.rate - p.rate) * a / p.rate


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Tensor:
    ratio, between = p.scale / q.scale, q.loc / q.scale
    first = -ratio.log() - between + p.loc / q.scale
    second = ratio * euler_constant
    third = (between + (1 + ratio).lgamma() - p.loc / q.scale).exp()
    return first + second + third - (1 + euler_constant)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    ratio, between = p.scale / q.scale, (p.loc - q.loc).abs()
    near = ratio * (-between / p.scale).exp()
    return near - ratio.log() + between / q.scale - 1


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p: Any, q: Any) -> Tensor:
    inner, other = q._capacitance, p._capacitance
    log_dets = low_rank_log_det(q.cov_factor, q.cov_diag, inner)
    log_dets = log_dets - low_rank_log_det(p.cov_factor, p.cov_diag, other)
    length = low_rank_squared_length(q.cov_factor, q.cov_diag, q.loc - p.loc, inner)
    scaled = q.cov_factor.mT / q.cov_diag.unsqueeze(-2)
    a = solve_triangular(inner, scaled, upper=False)
    trace = (p.cov_diag / q.cov_diag).sum(-1)
    trace = trace + (p.cov_factor * q.cov_diag.rsqrt().unsqueeze(-1)).square().sum((-2, -1))
    trace = trace - (a * p.cov_diag.sqrt().unsqueeze(-2)).square().sum((-2, -1))
    trace = trace - (a @ p.cov_factor).square().sum((-2, -1))
    return 0.5 * (log_dets + trace + length - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _normal_to_low_rank(p: Any, q: Any) -> Tensor:
    inner = q._capacitance
    log_dets = low_rank_log_det(q.cov_factor, q.cov_diag, inner) - 2 * half_log_det(p.scale_tril)
    length = low_rank_squared_length(q.cov_factor, q.cov_diag, q.loc - p.loc, inner)
    a = solve_triangular(inner, q.cov_factor.mT / q.cov_diag.unsqueeze(-2), upper=False)
    trace = (p.scale_tril * q.cov_diag.rsqrt().unsqueeze(-1)).square().sum((-2, -1))
    trace = trace - (a @ p.scale_tril).square().sum((-2, -1))
    return 0.5 * (log_dets + trace + length - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_to_normal(p: Any, q: Any) -> Tensor:
    log_dets = 2 * half_log_det(q.scale_tril)
    log_dets = log_dets - low_rank_log_det(p.cov_factor, p.cov_diag, p._capacitance)
    length = squared_length(q.scale_tril, q.loc - p.loc)
    trace: Any = 0
    for part in (p.cov_factor, p.cov_diag.sqrt().diag_embed()):
        factor, wide = _together(q.scale_tril, part)
        trace = trace + solve_triangular(factor, wide, upper=False).square().sum((-2, -1))
    return 0.5 * (log_dets + trace + length - p.event_shape[0])


def _together(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    from ..ops.shape.joining import broadcast_shapes

    batch = tuple(broadcast_shapes(a.shape[:-2], b.shape[:-2]))
    return a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:])


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Tensor:
    log_dets = half_log_det(q.scale_tril) - half_log_det(p.scale_tril)
    factor, wide = _together(q.scale_tril, p.scale_tril)
    trace = solve_triangular(factor, wide, upper=False).square().sum((-2, -1))
    length = squared_length(q.scale_tril, q.loc - p.loc)
    return log_dets + 0.5 * (trace + length - p.event_shape[0])


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).square()
    between = ((p.loc - q.loc) / q.scale).square()
    return 0.5 * (ratio + between - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Tensor:
    scale, alpha = p.scale / q.scale, q.alpha / p.alpha
    found = q.alpha * scale.log() - alpha.log() + alpha - 1
    return where(p.scale < q.scale, inf, found)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise UnsupportedError("[kl_divergence] of transformed variables needs the same transforms")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise UnsupportedError("[kl_divergence] of Independents needs the same dimensions")
    found = kl_divergence(p.base_dist, q.base_dist)
    total: Tensor = sum_rightmost(found, p.reinterpreted_batch_ndims)
    return total


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return where((q.low > p.low) | (q.high < p.high), inf, found)


# Of two classes --------------------------------------------------------------------------------
for _p, _several in {
    Bernoulli: (),
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}.items():
    for _q in _several:
        register_kl(_p, _q)(_infinite)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    norm = (-q.probs).log1p() + q._log_norm()
    return -p.entropy() - p.mean * q.logits - norm


@register_kl(Beta, Exponential)
def _beta_exponential(p: Any, q: Any) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _beta_gamma(p: Any, q: Any) -> Tensor:
    log_mean = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    return -p.entropy() - _gamma_log_density(q, p.mean, log_mean)


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _to_normal(p: Any, q: Any) -> Tensor:
    """Whatever has a mean, a variance and an entropy."""
    away = p.variance + (p.mean - q.loc).square()
    norm = 0.5 * (2 * math.pi * q.scale.square()).log()
    return -p.entropy() + norm + 0.5 * away / q.scale.square()


@register_kl(Pareto, Normal)
def _pareto_normal(p: Any, q: Any) -> Tensor:
    return where(p.alpha <= 2, inf, _to_normal(p, q))


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _unit_uniform(p: Any, q: Any) -> Tensor:
    found = -p.entropy() + (q.high - q.low).log()
    return where((q.low > 0) | (q.high < 1), inf, found)


@register_kl(ContinuousBernoulli, Exponential)
def _continuous_bernoulli_exponential(p: Any, q: Any) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


def _gamma_log_density(q: Any, mean: Tensor, log_mean: Tensor) -> Tensor:
    """The expected log density of a gamma distribution."""
    norm = q.concentration * q.rate.log() - q.concentration.lgamma()
    return norm + (q.concentration - 1) * log_mean - q.rate * mean


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Tensor:
    log_mean = -(p.rate.log() + euler_constant)
    return -p.entropy() - _gamma_log_density(q, p.mean, log_mean)


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Any, q: Any) -> Tensor:
    scaled = p.rate * q.scale
    between = q.loc / q.scale
    first = scaled.log() - 1
    return first + between.exp() * scaled / (scaled + 1) - between + scaled.reciprocal()


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Any, q: Any) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Any, q: Any) -> Tensor:
    scaled, between = p.rate * q.scale, q.loc / q.scale
    first = (p.concentration - 1) * p.concentration.digamma() - p.concentration.lgamma()
    first = first - p.concentration
    second = scaled.log() + p.concentration / scaled
    third = between.exp() * (1 + scaled.reciprocal()).pow(-p.concentration) - between
    return first + second + third


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> Tensor:
    mean, between = p.loc / q.scale, q.loc / q.scale
    ratio = (p.scale / q.scale).square() * 0.5
    first = mean - between
    second = (-mean + ratio + between).exp()
    third = -(p.scale / q.scale).log() - 0.5 * (1 + math.log(2 * math.pi))
    return first + second + third


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Tensor:
    z = (p.loc - q.loc) / p.scale
    folded = math.sqrt(2 / math.pi) * (-0.5 * z.square()).exp() + z * (z * math.sqrt(0.5)).erf()
    return -p.entropy() + (2 * q.scale).log() + p.scale * folded / q.scale


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Any, q: Any) -> Tensor:
    found = -p.entropy() - q.rate.log() + q.rate * p.mean
    return where(p.alpha <= 1, inf, found)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Any, q: Any) -> Tensor:
    log_mean = p.scale.log() + p.alpha.reciprocal()
    found = -p.entropy() - _gamma_log_density(q, p.mean, log_mean)
    return where(p.alpha <= 1, inf, found)


def _in(p: Any, low: Any, high: Any, found: Tensor) -> Tensor:
    return where((p.low < low) | (p.high > high), inf, found)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Tensor:
    width = p.high - p.low
    a, b = q.concentration1, q.concentration0
    logs = (_xlogx(p.high) - _xlogx(p.low) - width) / width
    others = (_xlogx(1 - p.high) - _xlogx(1 - p.low) + width) / width
    norm = a.lgamma() + b.lgamma() - (a + b).lgamma()
    return _in(p, 0, 1, -p.entropy() - (a - 1) * logs + (b - 1) * others + norm)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    norm = (-q.probs).log1p() + q._log_norm()
    return _in(p, 0, 1, -p.entropy() - p.mean * q.logits - norm)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Tensor:
    return _in(p, 0, inf, -p.entropy() - q.rate.log() + q.rate * p.mean)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Tensor:
    width = p.high - p.low
    logs = (_xlogx(p.high) - _xlogx(p.low) - width) / width
    return _in(p, 0, inf, -p.entropy() - _gamma_log_density(q, p.mean, logs))


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Any, q: Any) -> Tensor:
    width = (p.high - p.low) / q.scale
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return -width.log() + 0.5 * (high + low) - ((-high).exp() - (-low).exp()) / width


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Tensor:
    width = p.high - p.low
    logs = (_xlogx(p.high) - _xlogx(p.low) - width) / width
    found = -p.entropy() - q.alpha.log() - q.alpha * q.scale.log() + (q.alpha + 1) * logs
    return where(p.low < q.scale, inf, found)
