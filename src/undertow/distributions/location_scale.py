"""Distributions of a location and a scale: uniform, Laplace, Cauchy, Gumbel."""

from __future__ import annotations

import math
from math import inf, nan
from typing import Any

from ..core.tensor import Tensor
from ..dtypes import finfo
from ..errors import ArgumentError
from ..ops.elementwise.comparison import where
from ..ops.random.random import rand
from . import constraints
from .distribution import Distribution
from .utils import euler_constant


def open_uniform(shape: Any, like: Tensor) -> Tensor:
    """Uniform numbers between 0 and 1, neither of which occurs."""
    limits = finfo(like.dtype)
    drawn = rand(shape, dtype=like.dtype, device=like.device)
    return drawn.clamp(limits.tiny, 1 - limits.eps)


class Uniform(Distribution):
    """Numbers from `low` to below `high`, all alike.

    >>> import undertow as ut
    >>> ut.distributions.Uniform(0.0, 4.0).log_prob(ut.tensor(1.0))
    tensor(-1.3863)
    """

    arg_constraints = {"low": constraints.dependent, "high": constraints.dependent}
    has_rsample = True
    low: Tensor
    high: Tensor

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        super().__init__(self._parameters(low=low, high=high), validate_args=validate_args)
        if self._validate_args and not bool((self.low < self.high).all()):
            raise ArgumentError("[Uniform] low must be below high")

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def mode(self) -> Tensor:
        return self.high * nan

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / math.sqrt(12)

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).square() / 12

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn = rand(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        v = self._checked(value)
        inside = (self.low <= v) & (v < self.high)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        return ((self._checked(value) - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


class _LocationScale(Distribution):
    """What the others share: samples are quantiles of uniform numbers."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support: Any = constraints.real
    has_rsample = True
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(self._parameters(loc=loc, scale=scale), validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(open_uniform(self._extended_shape(sample_shape), self.loc))

    @property
    def mode(self) -> Tensor:
        return self.loc


class Laplace(_LocationScale):
    """The double exponential distribution around `loc`.

    >>> import undertow as ut
    >>> ut.distributions.Laplace(0.0, 1.0).log_prob(ut.tensor(1.0))
    tensor(-1.6931)
    """

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    @property
    def stddev(self) -> Tensor:
        return math.sqrt(2) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        v = self._checked(value)
        return -(2 * self.scale).log() - (v - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        d = self._checked(value) - self.loc
        return 0.5 - 0.5 * d.sign() * (-d.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        d = value - 0.5
        return self.loc - self.scale * d.sign() * (-2 * d.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()


class Cauchy(_LocationScale):
    """The distribution of the ratio of two normal variables, moved by `loc`; it has no mean.

    >>> import undertow as ut
    >>> ut.distributions.Cauchy(0.0, 1.0).cdf(ut.tensor(1.0))
    tensor(0.7500)
    """

    @property
    def mean(self) -> Tensor:
        return self.loc * nan

    @property
    def variance(self) -> Tensor:
        return self.scale * inf

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - z.square().log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return ((self._checked(value) - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class HalfCauchy(Distribution):
    """The absolute value of a Cauchy variable around zero.

    >>> import undertow as ut
    >>> ut.distributions.HalfCauchy(1.0).cdf(ut.tensor(1.0))
    tensor(0.5000)
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    scale: Tensor

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(self._parameters(scale=scale), validate_args=validate_args)

    @property
    def _whole(self) -> Cauchy:
        return Cauchy(self.scale * 0, self.scale, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.scale * inf

    @property
    def mode(self) -> Tensor:
        return self.scale * 0

    @property
    def variance(self) -> Tensor:
        return self.scale * inf

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._whole.rsample(sample_shape).abs()

    def log_prob(self, value: Tensor) -> Tensor:
        v = self._checked(value)
        return where(v >= 0, self._whole.log_prob(v) + math.log(2), -inf)

    def cdf(self, value: Tensor) -> Tensor:
        return 2 * self._whole.cdf(self._checked(value)) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self._whole.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self._whole.entropy() - math.log(2)


class Gumbel(_LocationScale):
    """The distribution of largest values.

    >>> import undertow as ut
    >>> ut.distributions.Gumbel(0.0, 1.0).mean
    tensor(0.5772)
    """

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.square()

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self.loc - self._checked(value)) / self.scale
        return z - z.exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        return (-((self.loc - self._checked(value)) / self.scale).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
