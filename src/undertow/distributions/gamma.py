"""Gamma variables, and their inverses, sums of squares and ratios."""

from __future__ import annotations

import math
from math import inf, nan
from typing import Any

from ..core.tensor import Tensor
from ..dtypes import finfo
from ..ops.elementwise.comparison import where
from ..ops.elementwise.incomplete_gamma import gammainc
from ..ops.random.random import randn
from . import constraints
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .gamma_samples import standard_gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform


class Gamma(ExponentialFamily):
    """The gamma distribution of a `concentration` (shape) and a `rate` (inverse scale).

    Samples are differentiable in both; see Note [implicit gradients].

    >>> import undertow as ut
    >>> ut.distributions.Gamma(2.0, 1.0).log_prob(ut.tensor(1.0))
    tensor(-1.)
    """

    arg_constraints: Any = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    concentration: Tensor
    rate: Tensor

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        shape = self._parameters(concentration=concentration, rate=rate)
        super().__init__(shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn = standard_gamma(self.concentration.expand(shape)) / self.rate
        return drawn.clamp(min=finfo(drawn.dtype).tiny)

    def log_prob(self, value: Tensor | float) -> Tensor:
        if not isinstance(value, Tensor):
            value = self.rate.new_tensor(value)
        a, v = self.concentration, self._checked(value)
        return a.xlogy(self.rate) + (a - 1).xlogy(v) - self.rate * v - a.lgamma()

    def cdf(self, value: Tensor) -> Tensor:
        return gammainc(self.concentration, self.rate * self._checked(value))

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Any, y: Any) -> Tensor:
        found: Tensor = (x + 1).lgamma() - (x + 1) * (-y).log()
        return found


class Chi2(Gamma):
    """The sum of `df` squared standard normal variables.

    >>> import undertow as ut
    >>> ut.distributions.Chi2(3.0).mean
    tensor(3.)
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return type(self)(self.df.expand(tuple(batch_shape)), validate_args=False)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2


class InverseGamma(TransformedDistribution):
    """The reciprocal of a gamma variable.

    >>> import undertow as ut
    >>> ut.distributions.InverseGamma(3.0, 1.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(base.rate.new_tensor(-1.0)), validate_args)

    @property
    def concentration(self) -> Tensor:
        """The shape of the gamma variable."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The rate of the gamma variable."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return where(a > 1, self.rate / (where(a > 1, a, 2.0) - 1), inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        finite = self.concentration > 2
        a = where(finite, self.concentration, 3.0)
        return where(finite, self.rate.square() / ((a - 1).square() * (a - 2)), inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class FisherSnedecor(Distribution):
    """The ratio of two chi-square variables, each divided by its degrees of freedom.

    >>> import undertow as ut
    >>> ut.distributions.FisherSnedecor(2.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    df1: Tensor
    df2: Tensor

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        super().__init__(self._parameters(df1=df1, df2=df2), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        d = where(self.df2 > 2, self.df2, nan)
        return d / (d - 2)

    @property
    def mode(self) -> Tensor:
        d = where(self.df1 > 2, self.df1, nan)
        return (d - 2) / d * self.df2 / (self.df2 + 2)

    @property
    def variance(self) -> Tensor:
        d = where(self.df2 > 4, self.df2, nan)
        top = 2 * d.square() * (self.df1 + d - 2)
        return top / (self.df1 * (d - 2).square() * (d - 4))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        over, under = (
            Gamma(df / 2, df / 2, validate_args=False).rsample(sample_shape)
            for df in (self.df1, self.df2)
        )
        return (over / under).clamp(min=finfo(over.dtype).tiny).reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        v = self._checked(value)
        a, b, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        beta = (a + b).lgamma() - a.lgamma() - b.lgamma()
        return beta + a * ratio.log() + (a - 1) * v.log() - (a + b) * (ratio * v).log1p()


class StudentT(Distribution):
    """A normal variable divided by the root of a mean square of `df` others; moved and scaled.

    >>> import undertow as ut
    >>> ut.distributions.StudentT(3.0).variance
    tensor(3.)
    """

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    df: Tensor
    loc: Tensor
    scale: Tensor

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        shape = self._parameters(df=df, loc=loc, scale=scale)
        super().__init__(shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return where(self.df > 1, self.loc, nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        d = where(self.df > 2, self.df, 3.0)
        found = self.scale.square() * d / (d - 2)
        return where(self.df > 2, found, where(self.df > 1, inf, nan))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        z = randn(shape, dtype=self.df.dtype, device=self.df.device)
        squares = Chi2(self.df, validate_args=False).rsample(sample_shape)
        return self.loc + self.scale * z * (squares / self.df).rsqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        y = (self._checked(value) - self.loc) / self.scale
        half = 0.5 * (self.df + 1)
        norm = self.scale.log() + 0.5 * (self.df * math.pi).log()
        norm = norm + (0.5 * self.df).lgamma() - half.lgamma()
        return -half * (y.square() / self.df).log1p() - norm

    def entropy(self) -> Tensor:
        low, high = 0.5 * self.df, 0.5 * (self.df + 1)
        beta = low.lgamma() + math.lgamma(0.5) - high.lgamma()
        slopes = high * (high.digamma() - low.digamma())
        return self.scale.log() + slopes + 0.5 * self.df.log() + beta
