"""Distributions of counts: binomial, geometric, negative binomial, Poisson."""

from __future__ import annotations

from typing import Any

from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..errors import UnsupportedError
from ..nn.functional import logsigmoid, softplus
from ..ops.create.creation import arange
from ..ops.elementwise.comparison import where
from ..ops.random.binomial import binomial
from ..ops.random.distributions import poisson
from . import constraints
from .bernoulli import Binary
from .exp_family import ExponentialFamily
from .gamma import Gamma
from .location_scale import open_uniform


class Binomial(Binary):
    """How many of `total_count` trials succeed, each with probability `probs`.

    >>> import undertow as ut
    >>> ut.distributions.Binomial(4, 0.5).mean
    tensor(2.)
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    total_count: Tensor

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        shape = self._given(probs, logits, total_count=total_count)
        self.total_count = self.total_count.to(self._param.dtype)
        super().__init__(shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return binomial(self.total_count.expand(shape), self.probs.detach().expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        v, n = self._checked(value), self.total_count
        norm = n * softplus(self.logits)
        ways = (n + 1).lgamma() - (v + 1).lgamma() - (n - v + 1).lgamma()
        return v * self.logits + ways - norm

    def entropy(self) -> Tensor:
        found = self.log_prob(self.enumerate_support(False))
        return -(found.exp() * found).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        most = int(self.total_count.max())
        if int(self.total_count.min()) != most:
            raise UnsupportedError("[Binomial] only equal numbers of trials can be enumerated")
        values = arange(1 + most, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape(-1, *(1 for _ in self.batch_shape))
        return values.expand(-1, *self.batch_shape) if expand else values


class Geometric(Binary):
    """How often it fails before the first success, which has probability `probs`.

    >>> import undertow as ut
    >>> ut.distributions.Geometric(0.25).mean
    tensor(3.)
    """

    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(self._given(probs, logits), validate_args=validate_args)
        if self._validate_args and probs is not None and not bool((self.probs > 0).all()):
            from ..errors import ArgumentError

            raise ArgumentError("[Geometric] probs must be above 0")

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return self.probs * 0

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            u = open_uniform(self._extended_shape(sample_shape), self.probs)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        v = self._checked(value)
        sure = (self.probs == 1) & (v == 0)
        return v * (-where(sure, 0.0, self.probs)).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return self._cross_entropy(self.probs) / self.probs


class NegativeBinomial(Binary):
    """How many succeed, with probability `probs`, until `total_count` have failed.

    >>> import undertow as ut
    >>> ut.distributions.NegativeBinomial(2.0, 0.5).mean
    tensor(2.)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    total_count: Tensor

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        shape = self._given(probs, logits, total_count=total_count)
        self.total_count = self.total_count.to(self._param.dtype)
        super().__init__(shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            rates = Gamma(self.total_count, (-self.logits).exp(), validate_args=False)
            return poisson(rates.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        v, n = self._checked(value), self.total_count
        plain = n * logsigmoid(-self.logits) + v * logsigmoid(self.logits)
        ways = (n + v).lgamma() - (1 + v).lgamma() - n.lgamma()
        return plain + where(n + v == 0, 0.0, ways)


class Poisson(ExponentialFamily):
    """How often something happens that happens at a `rate`.

    >>> import undertow as ut
    >>> ut.distributions.Poisson(2.0).log_prob(ut.tensor(0.0))
    tensor(-2.)
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    rate: Tensor

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        super().__init__(self._parameters(rate=rate), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return poisson(self.rate.detach().expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        v = self._checked(value)
        return v.xlogy(self.rate) - self.rate - (v + 1).lgamma()

    def entropy(self) -> Tensor:
        raise self._lacks("an entropy in closed form")

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.rate.log(),)

    def _log_normalizer(self, x: Any) -> Tensor:
        found: Tensor = x.exp()
        return found
