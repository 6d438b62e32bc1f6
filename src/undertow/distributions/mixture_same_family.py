"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..errors import ArgumentError
from . import constraints
from .categorical import Categorical
from .distribution import Distribution


class MixtureSameFamily(Distribution):
    """A component, picked by a `Categorical`, of the last batch dimension of a distribution.

    >>> import undertow as ut
    >>> d = ut.distributions
    >>> parts = d.Normal(ut.tensor([-1.0, 1.0]), ut.tensor([1.0, 1.0]))
    >>> d.MixtureSameFamily(d.Categorical(ut.tensor([0.5, 0.5])), parts).mean
    tensor(0.)
    """

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Any,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ArgumentError(
                "[MixtureSameFamily] the mixture distribution must be a Categorical, got "
                f"{type(mixture_distribution).__name__}"
            )
        parts, picks = component_distribution, mixture_distribution
        count = picks.logits.shape[-1]
        if not parts.batch_shape or parts.batch_shape[-1] != count:
            raise ArgumentError(
                f"[MixtureSameFamily] there are {count} picks and components of batch shape "
                f"{parts.batch_shape}"
            )
        self.mixture_distribution: Any = picks
        self.component_distribution: Any = parts
        super().__init__(parts.batch_shape[:-1], parts.event_shape, validate_args=validate_args)
        if len(picks.batch_shape) not in (0, len(self._batch_shape)):
            raise ArgumentError(
                f"[MixtureSameFamily] picks of batch shape {picks.batch_shape} do not fit "
                f"components of batch shape {parts.batch_shape}"
            )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        count = self.mixture_distribution.logits.shape[-1]
        parts = self.component_distribution.expand((*batch_shape, count))
        picks = self.mixture_distribution.expand(tuple(batch_shape))
        return type(self)(picks, parts, validate_args=False)

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self.component_distribution.support)

    def _weights(self) -> Tensor:
        probs: Tensor = self.mixture_distribution.probs
        return probs.reshape(*probs.shape, *(1 for _ in self._event_shape))

    def _spread(self, value: Tensor) -> Tensor:
        return value.unsqueeze(value.ndim - len(self._event_shape))

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self.component_distribution.mean).sum(-1 - len(self._event_shape))

    @property
    def variance(self) -> Tensor:
        at = -1 - len(self._event_shape)
        within = (self._weights() * self.component_distribution.variance).sum(at)
        away = self.component_distribution.mean - self._spread(self.mean)
        return within + (self._weights() * away.square()).sum(at)

    def cdf(self, value: Tensor) -> Tensor:
        v = self._checked(value)
        found = self.component_distribution.cdf(self._spread(v))
        return (found * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        v = self._checked(value)
        found = self.component_distribution.log_prob(self._spread(v))
        return (found + self.mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            at = len(sample_shape) + len(self._batch_shape)
            drawn = self.component_distribution.sample(sample_shape)
            picks = self.mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            index = picks.reshape(*picks.shape, 1, *(1 for _ in self._event_shape))
            wide = list(drawn.shape)
            wide[at] = 1
            return drawn.gather(at, index.expand(wide)).squeeze(at)

    def __repr__(self) -> str:
        parts = f"{self.mixture_distribution},\n  {self.component_distribution}"
        return f"MixtureSameFamily(\n  {parts})"
