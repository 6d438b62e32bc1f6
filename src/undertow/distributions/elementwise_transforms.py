"""Transforms of each number by itself."""

from __future__ import annotations

import math
from typing import Any

from ..core.tensor import Tensor
from ..dtypes import finfo
from ..nn.functional import softplus
from ..ops.create.creation import zeros_like
from ..shapes import Size
from . import constraints
from .transform import Transform
from .utils import broadcast_all, sum_rightmost


class ExpTransform(Transform):
    """y = exp(x).

    >>> import undertow as ut
    >>> normal = ut.distributions.Normal(0.0, 1.0)
    >>> d = ut.distributions.TransformedDistribution(normal, [ut.distributions.ExpTransform()])
    >>> d.log_prob(ut.tensor(2.0)), ut.distributions.LogNormal(0.0, 1.0).log_prob(ut.tensor(2.0))
    (tensor(-1.8523), tensor(-1.8523))
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        return x


class PowerTransform(Transform):
    """y = x ** exponent, of positive numbers.

    >>> import undertow as ut
    >>> t = ut.distributions.PowerTransform(ut.tensor(2.0))
    >>> t(ut.tensor(3.0)), t.inv(ut.tensor(9.0))
    (tensor(9.), tensor(3.))
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Size:
        return _broadcast(shape, self.exponent.shape)

    inverse_shape = forward_shape

    def _values(self) -> tuple[Any, ...]:
        return (self.exponent,)


def _broadcast(*shapes: Any) -> Size:
    from ..ops.shape.joining import broadcast_shapes

    return Size(broadcast_shapes(*(tuple(s) for s in shapes)))


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x)).

    >>> import undertow as ut
    >>> t = ut.distributions.SigmoidTransform()
    >>> t(ut.tensor([-2.0, 0.0, 2.0])), t.inv(ut.tensor(0.5))
    (tensor([0.1192, 0.5000, 0.8808]), tensor(0.))
    """

    codomain = constraints.unit_interval
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        eps = finfo(x.dtype)
        return x.sigmoid().clamp(eps.tiny, 1 - eps.eps)

    def _inverse(self, y: Tensor) -> Tensor:
        eps = finfo(y.dtype)
        y = y.clamp(eps.tiny, 1 - eps.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(Transform):
    """y = log(1 + exp(x)).

    >>> import undertow as ut
    >>> t = ut.distributions.SoftplusTransform()
    >>> t(ut.tensor([-5.0, 0.0, 5.0]))  # positive, and nearly x where x is large
    tensor([0.0067, 0.6931, 5.0067])
    """

    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        return -softplus(-x)


class TanhTransform(Transform):
    """y = tanh(x).

    >>> import undertow as ut
    >>> normal = ut.distributions.Normal(0.0, 1.0)
    >>> policy = ut.distributions.TransformedDistribution(
    ...     normal, [ut.distributions.TanhTransform()]
    ... )
    >>> bool((policy.sample((100,)).abs() <= 1).all())
    True
    """

    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        # log(1 - tanh²) where tanh rounds to one
        return 2 * (math.log(2) - x - softplus(-2 * x))


class AbsTransform(Transform):
    """y = |x|, which is not bijective: the inverse gives the positive one.

    >>> import undertow as ut
    >>> t = ut.distributions.AbsTransform()
    >>> t(ut.tensor([-2.0, 3.0])), t.bijective
    (tensor([2., 3.]), False)
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """y = loc + scale * x.

    >>> import undertow as ut
    >>> t = ut.distributions.AffineTransform(loc=1.0, scale=2.0)
    >>> t(ut.tensor(3.0)), t.inv(ut.tensor(7.0)), t.log_abs_det_jacobian(ut.tensor(3.0), None).exp()
    (tensor(7.), tensor(3.), tensor(2.))
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @property
    def domain(self) -> Any:
        n = self._event_dim
        return constraints.independent(constraints.real, n) if n else constraints.real

    @property
    def codomain(self) -> Any:
        return self.domain

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        found: Tensor = self.loc + self.scale * x
        return found

    def _inverse(self, y: Tensor) -> Tensor:
        found: Tensor = (y - self.loc) / self.scale
        return found

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        scale = self.scale
        log = scale.abs().log() if isinstance(scale, Tensor) else math.log(abs(scale))
        found = zeros_like(x) + log
        total: Tensor = sum_rightmost(found, self._event_dim)
        return total

    def forward_shape(self, shape: Any) -> Size:
        return _broadcast(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape

    def _values(self) -> tuple[Any, ...]:
        return self.loc, self.scale


class CumulativeDistributionTransform(Transform):
    """The cdf of a distribution: its variables become uniform ones.

    >>> import undertow as ut
    >>> t = ut.distributions.CumulativeDistributionTransform(ut.distributions.Normal(0.0, 1.0))
    >>> t(ut.tensor([-1.0, 0.0, 1.0]))
    tensor([0.1587, 0.5000, 0.8413])
    >>> t.inv(ut.tensor(0.5))
    tensor(0.)
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        found: Tensor = self.distribution.cdf(x)
        return found

    def _inverse(self, y: Tensor) -> Tensor:
        found: Tensor = self.distribution.icdf(y)
        return found

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        found: Tensor = self.distribution.log_prob(x)
        return found
