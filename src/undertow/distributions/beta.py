"""Distributions of proportions: beta, Dirichlet, Kumaraswamy."""

from __future__ import annotations

from math import nan
from typing import Any

from ..core.tensor import Tensor
from ..dtypes import finfo
from ..errors import ShapeError
from ..nn.functional import one_hot
from ..ops.elementwise.comparison import where
from ..ops.shape.joining import stack
from . import constraints
from .exp_family import ExponentialFamily
from .gamma_samples import log_standard_gamma
from .location_scale import Uniform
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant


class Dirichlet(ExponentialFamily):
    """Proportions that add up to one, drawn to the corners or the middle by `concentration`.

    Samples are differentiable: they are gamma variables divided by their sum.

    >>> import undertow as ut
    >>> ut.distributions.Dirichlet(ut.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    event_dims = {"concentration": 1}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ShapeError("[Dirichlet] concentration needs one dimension at least")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        beyond = (self.concentration - 1).clamp(min=0)
        inside = beyond / beyond.sum(-1, keepdim=True)
        corner = one_hot(self.concentration.argmax(-1), self.concentration.shape[-1])
        low = (self.concentration < 1).all(-1, keepdim=True)
        return where(low, corner.to(inside.dtype), inside)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = log_standard_gamma(self.concentration.expand(shape)).softmax(-1)
        info = finfo(x.dtype)  # no sample is 0 or 1, where the density may be infinite
        return x.clamp(info.tiny, 1 - info.eps / 2)

    def log_prob(self, value: Tensor) -> Tensor:
        a, v = self.concentration, self._checked(value)
        return (a - 1).xlogy(v).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    def entropy(self) -> Tensor:
        a = self.concentration
        k, total = a.shape[-1], a.sum(-1)
        norm = a.lgamma().sum(-1) - total.lgamma()
        return norm - (k - total) * total.digamma() - ((a - 1) * a.digamma()).sum(-1)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Any) -> Tensor:
        found: Tensor = x.lgamma().sum(-1) - x.sum(-1).lgamma()
        return found


class Beta(ExponentialFamily):
    """A proportion, drawn to one by `concentration1` and to zero by `concentration0`.

    >>> import undertow as ut
    >>> ut.distributions.Beta(2.0, 2.0).log_prob(ut.tensor(0.5))
    tensor(0.4055)
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True
    concentration1: Tensor
    concentration0: Tensor

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        shape = self._parameters(concentration1=concentration1, concentration0=concentration0)
        super().__init__(shape, validate_args=validate_args)

    @property
    def _dirichlet(self) -> Dirichlet:
        both = stack([self.concentration1, self.concentration0], -1)
        return Dirichlet(both, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.square() * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        v = self._checked(value)
        return self._dirichlet.log_prob(stack([v, 1 - v], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Any, y: Any) -> Tensor:
        found: Tensor = x.lgamma() + y.lgamma() - (x + y).lgamma()
        return found


class Kumaraswamy(TransformedDistribution):
    """A proportion whose cdf, 1 - (1 - x**a)**b, is simple; much like the beta distribution.

    >>> import undertow as ut
    >>> ut.distributions.Kumaraswamy(1.0, 1.0).mean
    tensor(0.5000)
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(self.concentration0 * 0, self.concentration0 * 0 + 1, validate_args=False)
        steps = [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(1, -1),
            PowerTransform(self.concentration1.reciprocal()),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        first, second = (
            p.expand(tuple(batch_shape)) for p in (self.concentration1, self.concentration0)
        )
        return type(self)(first, second, validate_args=False)

    def _moment(self, n: int) -> Tensor:
        b, first = self.concentration0, 1 + n / self.concentration1
        return b * (first.lgamma() + b.lgamma() - (first + b).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        inside = (a >= 1) & (b >= 1) & (a * b > 1)
        ratio = where(inside, (a - 1) / (a * b - 1), 0.5)
        return where(inside, ratio.pow(a.reciprocal()), nan)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1).square()

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + euler_constant
        return 1 - b.reciprocal() + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
