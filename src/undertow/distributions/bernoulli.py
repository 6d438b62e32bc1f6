"""Distributions of a probability: of ones and zeros, and the continuous one that resembles them."""

from __future__ import annotations

import math
from math import nan
from typing import Any

from ..core.tensor import Tensor
from ..errors import ArgumentError
from ..nn.functional import binary_cross_entropy_with_logits, softplus
from ..ops.create.creation import arange
from ..ops.elementwise.comparison import where
from ..ops.random.distributions import bernoulli
from . import constraints
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .location_scale import open_uniform
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs, probs_to_logits


class Binary(Distribution):
    """What is given by `probs` or by `logits`, of which the other is computed when asked for."""

    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}

    def _given(self, probs: Any, logits: Any, **others: Any) -> Any:
        """Keep the one that is given, broadcast with other parameters; the common shape."""
        if (probs is None) == (logits is None):
            raise ArgumentError(
                f"[{type(self).__name__}] needs either probs or logits, and not both"
            )
        own = {"logits": logits} if probs is None else {"probs": probs}
        return self._parameters(**others, **own)

    @lazy_property
    def probs(self) -> Tensor:
        """The probability."""
        return logits_to_probs(self.logits, is_binary=True)

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithm of the odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @property
    def _param(self) -> Tensor:
        found: Tensor = self.__dict__["probs" if "probs" in self.__dict__ else "logits"]
        return found

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.shape

    def _cross_entropy(self, target: Tensor) -> Tensor:
        logits, target = broadcast_all(self.logits, target)
        return binary_cross_entropy_with_logits(logits, target, reduction="none")


class Bernoulli(Binary, ExponentialFamily):
    """One with probability `probs`, else zero.

    >>> import undertow as ut
    >>> ut.distributions.Bernoulli(0.25).log_prob(ut.tensor(1.0))
    tensor(-1.3863)
    """

    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(self._given(probs, logits), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return where(self.probs == 0.5, nan, (self.probs >= 0.5).to(self.probs.dtype))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return bernoulli(self.probs.detach().expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        return -self._cross_entropy(self._checked(value))

    def entropy(self) -> Tensor:
        return self._cross_entropy(self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape(-1, *(1 for _ in self.batch_shape))
        return values.expand(2, *self.batch_shape) if expand else values

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Any) -> Tensor:
        found: Tensor = x.exp().log1p()
        return found


class ContinuousBernoulli(Binary, ExponentialFamily):
    """A number between 0 and 1, of a density proportional to probs**x (1 - probs)**(1 - x).

    Between `lims`, where the formulas are 0 / 0, they are replaced by expansions.

    >>> import undertow as ut
    >>> ut.distributions.ContinuousBernoulli(0.25).mean
    tensor(0.4102)
    """

    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._lims = lims
        shape = self._given(probs, logits)
        if probs is not None:
            if validate_args is not False and not bool(
                constraints.unit_interval.check(self.probs.detach()).all()
            ):
                raise ArgumentError("[ContinuousBernoulli] probs must lie in 0 to 1")
            self.probs = clamp_probs(self.probs)
        super().__init__(shape, validate_args=validate_args)

    @property
    def _outside(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    @property
    def _cut(self) -> Tensor:
        return where(self._outside, self.probs, self._lims[0])

    @property
    def _slope(self) -> Tensor:
        """The logits, which have digits left where `probs` is one."""
        low = self._lims[0]
        return where(self._outside, self.logits, math.log(low) - math.log1p(-low))

    def _log_norm(self) -> Tensor:
        p = self._cut
        below, above = where(p <= 0.5, p, 0.0), where(p >= 0.5, p, 1.0)
        wide = self._slope.abs().log()
        wide = wide - where(p <= 0.5, (-2 * below).log1p(), (2 * above - 1).log())
        x = (self.probs - 0.5).square()
        return where(self._outside, wide, math.log(2) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self) -> Tensor:
        p, x = self._cut, self.probs - 0.5
        wide = p / (2 * p - 1) - 1 / self._slope
        return where(self._outside, wide, 0.5 + (1 / 3 + 16 / 45 * x.square()) * x)

    @property
    def variance(self) -> Tensor:
        p, x = self._cut, (self.probs - 0.5).square()
        wide = p * (p - 1) / (1 - 2 * p).square() + 1 / self._slope.square()
        return where(self._outside, wide, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(open_uniform(self._extended_shape(sample_shape), self.probs))

    def log_prob(self, value: Tensor) -> Tensor:
        return -self._cross_entropy(self._checked(value)) + self._log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        v, p = self._checked(value), self._cut
        wide = (p.pow(v) * (1 - p).pow(1 - v) + p - 1) / (2 * p - 1)
        near = v - 2 * (self.probs - 0.5) * v * (1 - v)
        return where(v <= 0, 0.0, where(v >= 1, 1.0, where(self._outside, wide, near)))

    def icdf(self, value: Tensor) -> Tensor:
        slope = self._slope
        flat = -slope.abs()  # the density exp(slope x), seen from where it is largest
        rest = where(slope < 0, value, 1 - value)
        part = (rest * flat.expm1()).log1p() / flat
        wide = where(slope < 0, part, 1 - part)
        near = value + 2 * (self.probs - 0.5) * value * (1 - value)
        return where(self._outside, wide, near)

    def entropy(self) -> Tensor:
        return softplus(self.logits) - self.mean * self.logits - self._log_norm()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Any) -> Tensor:
        near = x.abs() < 1e-3
        y = where(near, 1.0, x)
        wide = (y.expm1().abs()).log() - y.abs().log()
        found: Tensor = where(near, 0.5 * x + x.square() / 24, wide)
        return found
