"""Normal distributions, and those of exp, of the absolute value, and on the simplex."""

from __future__ import annotations

import math
from math import inf
from typing import Any

from ..core.tensor import Tensor
from ..ops.elementwise.comparison import where
from ..ops.random.random import randn
from . import constraints
from .exp_family import ExponentialFamily
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform, ExpTransform, StickBreakingTransform

_LOG_ROOT = math.log(math.sqrt(2 * math.pi))


class Normal(ExponentialFamily):
    """The normal distribution of a mean `loc` and a standard deviation `scale`.

    >>> import undertow as ut
    >>> ut.distributions.Normal(0.0, 1.0).log_prob(ut.tensor(0.0))
    tensor(-0.9189)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(self._parameters(loc=loc, scale=scale), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.square()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + noise * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return -0.5 * z * z - self.scale.log() - _LOG_ROOT

    def cdf(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return 0.5 * (1 + (z / math.sqrt(2)).erf())

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + _LOG_ROOT + self.scale.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.loc / self.scale.square(), -0.5 * self.scale.square().reciprocal()

    def _log_normalizer(self, x: Any, y: Any) -> Tensor:
        return -0.25 * x.square() / y + 0.5 * (-math.pi / y).log()


class LogNormal(TransformedDistribution):
    """exp of a normal variable of mean `loc` and standard deviation `scale`.

    >>> import undertow as ut
    >>> ut.distributions.LogNormal(0.0, 1.0).mean
    tensor(1.6487)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale.square()
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class HalfNormal(TransformedDistribution):
    """The absolute value of a normal variable of mean zero.

    >>> import undertow as ut
    >>> ut.distributions.HalfNormal(1.0).mean
    tensor(0.7979)
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args)

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the normal variable."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return self.scale * 0

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)

    def log_prob(self, value: Tensor) -> Tensor:
        found = self.base_dist.log_prob(self._checked(value)) + math.log(2)
        return where(value >= 0, found, -inf)

    def cdf(self, value: Tensor) -> Tensor:
        return 2 * self.base_dist.cdf(self._checked(value)) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class LogisticNormal(TransformedDistribution):
    """A normal vector led to the simplex, of one more element, by breaking a stick.

    >>> import undertow as ut
    >>> ut.distributions.LogisticNormal(ut.zeros(3), ut.ones(3)).event_shape
    (4,)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the normal vector."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviations of the normal vector."""
        return self.base_dist.base_dist.scale
