"""Exponential variables and what becomes of them: Weibull, Pareto, and the generalised Pareto."""

from __future__ import annotations

from math import inf
from typing import Any

from ..core.tensor import Tensor
from ..ops.elementwise.comparison import where
from . import constraints
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .location_scale import open_uniform
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform, PowerTransform
from .utils import broadcast_all, euler_constant


class Exponential(ExponentialFamily):
    """Waiting times for what happens at a `rate`.

    >>> import undertow as ut
    >>> ut.distributions.Exponential(2.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    rate: Tensor

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        super().__init__(self._parameters(rate=rate), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return self.rate * 0

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.rate.new_empty(shape).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        return self.rate.log() - self.rate * self._checked(value)

    def cdf(self, value: Tensor) -> Tensor:
        return -(-self.rate * self._checked(value)).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, x: Any) -> Tensor:
        found: Tensor = -(-x).log()
        return found


class Weibull(TransformedDistribution):
    """Lifetimes of a `scale`, whose hazard grows with a power of time.

    >>> import undertow as ut
    >>> ut.distributions.Weibull(1.0, 2.0).mean
    tensor(0.8862)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        power = PowerTransform(self.concentration.reciprocal())
        base = Exponential(self.scale * 0 + 1, validate_args=False)
        super().__init__(base, [power, AffineTransform(0, self.scale)], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        first, second = (p.expand(tuple(batch_shape)) for p in (self.scale, self.concentration))
        return type(self)(first, second, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.scale * (1 + self.concentration.reciprocal()).lgamma().exp()

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k).pow(k.reciprocal())

    @property
    def variance(self) -> Tensor:
        inverse = self.concentration.reciprocal()
        first, second = (1 + inverse).lgamma(), (1 + 2 * inverse).lgamma()
        return self.scale.square() * (second.exp() - (2 * first).exp())

    def entropy(self) -> Tensor:
        inverse = self.concentration.reciprocal()
        return euler_constant * (1 - inverse) + (self.scale * inverse).log() + 1


class Pareto(TransformedDistribution):
    """Sizes from `scale` on, whose tail falls with the power `alpha`.

    >>> import undertow as ut
    >>> ut.distributions.Pareto(1.0, 3.0).mean
    tensor(1.5000)
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(0, self.scale)], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        first, second = (p.expand(tuple(batch_shape)) for p in (self.scale, self.alpha))
        return type(self)(first, second, validate_args=False)

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.square() * a / ((a - 1).square() * (a - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + 1 + self.alpha.reciprocal()


class GeneralizedPareto(Distribution):
    """Exceedances over `loc`, whose tail is exponential (concentration 0), shorter, or longer.

    >>> import undertow as ut
    >>> ut.distributions.GeneralizedPareto(0.0, 1.0, 0.5).mean
    tensor(2.)
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    loc: Tensor
    scale: Tensor
    concentration: Tensor

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        shape = self._parameters(loc=loc, scale=scale, concentration=concentration)
        super().__init__(shape, validate_args=validate_args)

    @constraints.dependent_property
    def support(self) -> Any:
        c = self.concentration
        end = where(c < 0, self.loc - self.scale / where(c < 0, c, -1.0), inf)
        return constraints.interval(self.loc, end)

    @property
    def _curved(self) -> tuple[Tensor, Tensor]:
        """Where the concentration is not zero, and one that may be divided by."""
        straight = self.concentration.abs() < 1e-12
        return ~straight, where(straight, 1.0, self.concentration)

    @property
    def mean(self) -> Tensor:
        c = self.concentration
        return where(c < 1, self.loc + self.scale / (1 - where(c < 1, c, 0.0)), inf)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.concentration < 0.5
        c = where(finite, self.concentration, 0.0)
        return where(finite, self.scale.square() / ((1 - c).square() * (1 - 2 * c)), inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(open_uniform(self._extended_shape(sample_shape), self.loc))

    def _minus_log_tail(self, value: Tensor) -> Tensor:
        z = (value - self.loc) / self.scale
        curved, c = self._curved
        return where(curved, (c * z).log1p() / c, z)

    def log_prob(self, value: Tensor) -> Tensor:
        tail = self._minus_log_tail(self._checked(value))
        return -(1 + self.concentration) * tail - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        return -(-self._minus_log_tail(self._checked(value))).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        tail = -(-value).log1p()
        curved, c = self._curved
        return self.loc + self.scale * where(curved, (c * tail).expm1() / c, tail)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
