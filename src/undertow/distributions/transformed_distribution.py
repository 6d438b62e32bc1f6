"""Distributions of transformed variables, and batches reinterpreted as events."""

from __future__ import annotations

from typing import Any

from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..errors import ArgumentError
from ..shapes import Size
from . import constraints
from .distribution import Distribution
from .transforms import ComposeTransform, Transform
from .utils import sum_rightmost


class Independent(Distribution):
    """A distribution whose last batch dimensions belong to the event.

    >>> import undertow as ut
    >>> n = ut.distributions.Normal(ut.zeros(3), ut.ones(3))
    >>> ut.distributions.Independent(n, 1).log_prob(ut.zeros(3))
    tensor(-2.7568)
    """

    base_dist: Any

    def __init__(
        self,
        base_distribution: Any,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch):
            raise ArgumentError(
                f"[Independent] cannot take {reinterpreted_batch_ndims} dimensions from the batch "
                f"shape {batch}"
            )
        kept = len(batch) - reinterpreted_batch_ndims
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        event = Size(batch[kept:]) + base_distribution.event_shape
        super().__init__(batch[:kept], event, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        count = self.reinterpreted_batch_ndims
        own = self.base_dist.batch_shape[len(self.base_dist.batch_shape) - count :]
        return type(self)(self.base_dist.expand(Size(batch_shape) + own), count, False)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return bool(self.base_dist.has_rsample)

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return not self.reinterpreted_batch_ndims and bool(self.base_dist.has_enumerate_support)

    @constraints.dependent_property
    def support(self) -> Any:
        found = self.base_dist.support
        count = self.reinterpreted_batch_ndims
        return constraints.independent(found, count) if count else found

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        found: Tensor = sum_rightmost(
            self.base_dist.log_prob(value), self.reinterpreted_batch_ndims
        )
        return found

    def entropy(self) -> Tensor:
        found: Tensor = sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)
        return found

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise self._lacks("a support that can be enumerated, of several independent variables")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """The distribution of what transforms make of a variable.

    >>> import undertow as ut
    >>> d = ut.distributions
    >>> d.TransformedDistribution(d.Normal(0.0, 1.0), [d.ExpTransform()]).log_prob(ut.tensor(1.0))
    tensor(-0.9189)
    """

    base_dist: Any

    def __init__(
        self, base_distribution: Any, transforms: Any, validate_args: bool | None = None
    ) -> None:
        several = isinstance(transforms, (list, tuple))
        self.transforms = list(transforms) if several else [transforms]
        for t in self.transforms:
            if not isinstance(t, Transform):
                raise ArgumentError(f"[{type(self).__name__}] transforms are Transforms, got {t!r}")
        shape = base_distribution.batch_shape + base_distribution.event_shape
        own = len(base_distribution.event_shape)
        whole = ComposeTransform(self.transforms)
        if len(shape) < whole.domain.event_dim:
            raise ArgumentError(
                f"[{type(self).__name__}] the transforms want {whole.domain.event_dim} dimensions, "
                f"the base has shape {shape}"
            )
        after = whole.forward_shape(shape)
        base_shape = whole.inverse_shape(after)
        if base_shape != shape:
            base_distribution = base_distribution.expand(base_shape[: len(base_shape) - own])
        more = whole.domain.event_dim - own
        if more > 0:
            base_distribution = Independent(base_distribution, more)
        self.base_dist = base_distribution
        gained = whole.codomain.event_dim - whole.domain.event_dim
        event = max(whole.codomain.event_dim, own + gained)
        cut = len(after) - event
        super().__init__(after[:cut], after[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new: Any = object.__new__(type(self)) if _instance is None else _instance
        shape = Size(batch_shape)
        whole = ComposeTransform(self.transforms)
        before = whole.inverse_shape(shape + self.event_shape)
        own = len(self.base_dist.event_shape)
        new.transforms = self.transforms
        new.base_dist = self.base_dist.expand(before[: len(before) - own])
        for name in self.arg_constraints:
            if name in self.__dict__:
                setattr(new, name, getattr(self, name).expand(shape))
        Distribution.__init__(new, shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return bool(self.base_dist.has_rsample)

    @constraints.dependent_property
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        more = len(self.event_shape) - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            x: Tensor = self.base_dist.sample(sample_shape)
            for transform in self.transforms:
                x = transform(x)
            return x

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        x: Tensor = self.base_dist.rsample(sample_shape)
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        y = self._checked(value)
        event_dim = len(self.event_shape)
        total: Any = 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            jacobian = transform.log_abs_det_jacobian(x, y)
            total = total - sum_rightmost(jacobian, event_dim - transform.domain.event_dim)
            y = x
        base = self.base_dist.log_prob(y)
        found: Tensor = total + sum_rightmost(base, event_dim - len(self.base_dist.event_shape))
        return found

    def _sign(self) -> Any:
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return sign

    def cdf(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        found = self.base_dist.cdf(value)
        sign = self._sign()
        return found if isinstance(sign, int) and sign == 1 else sign * (found - 0.5) + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        sign = self._sign()
        value = value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5
        value = self.base_dist.icdf(value)
        for transform in self.transforms:
            value = transform(value)
        return value

    def __repr__(self) -> str:
        if type(self) is TransformedDistribution:
            return f"TransformedDistribution({self.base_dist}, {self.transforms})"
        return super().__repr__()
