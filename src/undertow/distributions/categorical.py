"""Distributions over categories: an index, a one-hot vector, and counts."""

from __future__ import annotations

import math
from math import nan
from typing import Any

from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..dtypes import finfo, int64
from ..errors import ArgumentError
from ..nn.functional import one_hot
from ..ops.create.creation import arange
from ..ops.elementwise.comparison import where
from ..ops.random.distributions import multinomial
from ..shapes import Size
from . import constraints
from .counts import Binomial
from .distribution import Distribution
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits


class Categories(Distribution):
    """What is given by the `probs` or the `logits` of categories along the last dimension."""

    arg_constraints: Any = {"probs": constraints.simplex, "logits": constraints.real_vector}
    event_dims = {"probs": 1, "logits": 1}

    def _given(self, probs: Any, logits: Any) -> Size:
        """Keep the one that is given, normalised; its shape."""
        name = type(self).__name__
        if (probs is None) == (logits is None):
            raise ArgumentError(f"[{name}] needs either probs or logits, and not both")
        given = logits if probs is None else probs
        if not isinstance(given, Tensor) or given.ndim < 1:
            raise ArgumentError(f"[{name}] needs a tensor with a dimension of categories")
        if probs is None:
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        else:
            self.probs = probs / probs.sum(-1, keepdim=True)
        return Size(given.shape)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities of the categories."""
        return logits_to_probs(self.logits)

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @property
    def _param(self) -> Tensor:
        found: Tensor = self.__dict__["probs" if "probs" in self.__dict__ else "logits"]
        return found

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.shape

    @property
    def _count(self) -> int:
        return int(self._param.shape[-1])

    def _entropy(self) -> Tensor:
        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def _indices(self, sample_shape: Any) -> Tensor:
        """Categories drawn at random."""
        shape = Size(tuple(sample_shape))
        with no_grad():
            rows = self.probs.detach().reshape(-1, self._count)
            drawn = multinomial(rows, max(shape.numel(), 1), True).T
            return drawn[: shape.numel()].reshape(shape + self._batch_shape)


class Categorical(Categories):
    """The index of a category, drawn with the given probabilities.

    >>> import undertow as ut
    >>> ut.distributions.Categorical(ut.tensor([0.25, 0.75])).log_prob(ut.tensor(0))
    tensor(-1.3863)
    """

    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        shape = self._given(probs, logits)
        super().__init__(shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._count - 1)

    @property
    def mean(self) -> Tensor:
        return self.probs[..., 0] * nan

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return self.probs[..., 0] * nan

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._indices(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        index, _ = broadcast_all(self._checked(value).to(int64), self.logits[..., 0])
        logits = self.logits.expand(*index.shape, self._count)
        return logits.gather(-1, index.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        return self._entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(self._count, device=self._param.device)
        values = values.reshape(-1, *(1 for _ in self.batch_shape))
        return values.expand(-1, *self.batch_shape) if expand else values


class OneHotCategorical(Categories):
    """A category drawn with the given probabilities, as a vector with a one.

    >>> import undertow as ut
    >>> ut.distributions.OneHotCategorical(ut.tensor([0.25, 0.75])).mode
    tensor([0., 1.])
    """

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        shape = self._given(probs, logits)
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return one_hot(self.probs.argmax(-1), self._count).to(self.probs.dtype)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return one_hot(self._indices(sample_shape), self._count).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        index = self._checked(value).argmax(-1)
        index, _ = broadcast_all(index, self.logits[..., 0])
        logits = self.logits.expand(*index.shape, self._count)
        return logits.gather(-1, index.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        return self._entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._count
        values = self._param.new_ones((n,)).diag().reshape(n, *(1 for _ in self.batch_shape), n)
        return values.expand(n, *self.batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` whose samples pass gradients to the probabilities as they are.

    >>> import undertow as ut
    >>> d = ut.distributions.OneHotCategoricalStraightThrough(ut.tensor([0.0, 1.0]))
    >>> d.rsample()
    tensor([0., 1.])
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(Categories):
    """How often each category is drawn in `total_count` draws.

    >>> import undertow as ut
    >>> ut.distributions.Multinomial(4, ut.tensor([0.25, 0.75])).mean
    tensor([1., 3.])
    """

    has_enumerate_support = False

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise ArgumentError(
                f"[Multinomial] total_count must be one integer, got {type(total_count).__name__}"
            )
        self.total_count = total_count
        shape = self._given(probs, logits)
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        drawn = self._indices((self.total_count, *sample_shape)).movedim(0, -1)
        counts = self.probs.detach().new_zeros(self._extended_shape(sample_shape))
        return counts.scatter_add(-1, drawn, counts.new_ones(drawn.shape))

    def log_prob(self, value: Tensor) -> Tensor:
        logits, v = broadcast_all(self.logits, self._checked(value))
        logits = where((v == 0) & (logits == -math.inf), 0.0, logits)
        ways = (v.sum(-1) + 1).lgamma() - (v + 1).lgamma().sum(-1)
        return ways + (logits * v).sum(-1)

    def entropy(self) -> Tensor:
        trials = Binomial(self.total_count, probs=self.probs, validate_args=False)
        counts = trials.enumerate_support(False)[1:]
        weights = (counts + 1).lgamma()
        expected = (trials.log_prob(counts).exp() * weights).sum((0, -1))
        return self.total_count * self._entropy() - math.lgamma(self.total_count + 1) + expected
