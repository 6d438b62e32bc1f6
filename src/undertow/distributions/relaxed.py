"""Relaxed distributions: continuous ones near to ones and zeros, with gradients of samples."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..core.tensor import Tensor
from . import constraints
from .bernoulli import Binary
from .categorical import Categories
from .location_scale import open_uniform
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform, SigmoidTransform
from .utils import broadcast_all, clamp_probs


class LogitRelaxedBernoulli(Binary):
    """The logit of a `RelaxedBernoulli` variable.

    >>> import undertow as ut
    >>> t = ut.distributions.relaxed_bernoulli
    >>> t.LogitRelaxedBernoulli(ut.tensor(1.0), 0.5).log_prob(ut.tensor(0.0))
    tensor(-1.3863)
    """

    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        super().__init__(self._given(probs, logits), validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        p = clamp_probs(self.probs.expand(self._extended_shape(sample_shape)))
        u = clamp_probs(open_uniform(p.shape, p))
        return (u.log() - (-u).log1p() + p.log() - (-p).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        logits, v = broadcast_all(self.logits, self._checked(value))
        d = logits - v * self.temperature
        (temperature,) = broadcast_all(self.temperature)
        return temperature.log() + d - 2 * d.exp().log1p()


class ExpRelaxedCategorical(Categories):
    """The logarithm of a `RelaxedOneHotCategorical` variable.

    >>> import undertow as ut
    >>> t = ut.distributions.relaxed_categorical
    >>> t.ExpRelaxedCategorical(ut.tensor(1.0), ut.tensor([0.5, 0.5])).event_shape
    (2,)
    """

    has_rsample = True
    support = constraints.real_vector

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        shape = self._given(probs, logits)
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = clamp_probs(open_uniform(self._extended_shape(sample_shape), self.logits))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        n = self._count
        logits, v = broadcast_all(self.logits, self._checked(value))
        (temperature,) = broadcast_all(self.temperature)
        score = logits - v * temperature
        score = (score - score.logsumexp(-1, keepdim=True)).sum(-1)
        return score + math.lgamma(n) + (n - 1) * temperature.log()


class _Relaxed(TransformedDistribution):
    """A distribution whose logarithm or logit is one of a kind with a temperature."""

    has_rsample = True
    _kind: ClassVar[Any]
    _transform: ClassVar[Any]

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = self._kind(temperature, probs, logits, validate_args)
        super().__init__(base, self._transform(), validate_args=validate_args)

    @property
    def temperature(self) -> Any:
        """How far it is from ones and zeros."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The logarithms of the odds, or of the probabilities of categories."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities, at temperature zero."""
        return self.base_dist.probs


class RelaxedBernoulli(_Relaxed):
    """A number between 0 and 1 near to either, the nearer the lower the `temperature`.

    >>> import undertow as ut
    >>> ut.distributions.RelaxedBernoulli(ut.tensor(1.0), 0.5).log_prob(ut.tensor(0.5))
    tensor(0.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _kind = LogitRelaxedBernoulli
    _transform = SigmoidTransform


class RelaxedOneHotCategorical(_Relaxed):
    """Proportions near to a one-hot vector, the nearer the lower the `temperature`.

    >>> import undertow as ut
    >>> d = ut.distributions.RelaxedOneHotCategorical(ut.tensor(1.0), ut.tensor([0.5, 0.5]))
    >>> d.log_prob(ut.tensor([0.5, 0.5]))
    tensor(0.)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    _kind = ExpRelaxedCategorical
    _transform = ExpTransform
