"""The von Mises distribution of angles."""

from __future__ import annotations

import math
from typing import Any

from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..dtypes import float64
from ..ops.create.creation import arange
from ..ops.elementwise.comparison import where
from ..ops.elementwise.special import i0
from ..ops.random.random import rand
from . import constraints
from .distribution import Distribution


def _log_i0e(x: Tensor) -> Tensor:
    """log I0(x) - x, where I0 itself would overflow."""
    near = where(x < 50, x, 1.0)
    far = where(x < 50, 50.0, x)
    inverse = 1 / (8 * far)
    terms = 1 + inverse * (1 + inverse * 4.5 * (1 + inverse * 25 / 3 * (1 + inverse * 49 / 4)))
    return where(x < 50, i0(near).log() - near, terms.log() - 0.5 * (2 * math.pi * far).log())


class VonMises(Distribution):
    """Angles around `loc`, the closer the larger the `concentration`.

    >>> import undertow as ut
    >>> ut.distributions.VonMises(0.0, 1.0).log_prob(ut.tensor(0.0))
    tensor(-1.0738)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    loc: Tensor
    concentration: Tensor

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        shape = self._parameters(loc=loc, concentration=concentration)
        super().__init__(shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """One minus the mean resultant length: that of the circle."""
        k = self.concentration
        # I1 / I0 as a ratio of means over the circle, by the trapezoid rule, which is exact here.
        near = where(k < 50, k, 1.0).unsqueeze(-1)
        cos = (arange(128, dtype=k.dtype, device=k.device) * (math.pi / 64)).cos()
        weights = (near * (cos - 1)).exp()
        around = (weights * (1 - cos)).sum(-1) / weights.sum(-1)
        s = 1 / where(k < 50, 50.0, k)
        far = s * (0.5 + s * (0.125 + s * (0.125 + s * (25 / 128 + s * (13 / 32)))))
        return where(k < 50, around, far)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Best and Fisher's rejection from a wrapped Cauchy distribution (1979)."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            k = self.concentration.detach().double()
            tau = 1 + (1 + 4 * k.square()).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            near = 1 / k + k  # the limit for small concentrations
            r = where(k < 1e-5, near, (1 + rho.square()) / (2 * rho)).expand(shape)
            k = k.expand(shape)
            angle = k * 0
            waiting = k == k
            while bool(waiting.any()):
                u = [1 - rand(shape, dtype=float64, device=k.device) for _ in range(3)]
                z = (math.pi * u[0]).cos()
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                accepted = (c * (2 - c) - u[1] > 0) | ((c / u[1]).log() + 1 - c >= 0)
                accepted = accepted & waiting
                angle = where(accepted, (u[2] - 0.5).sign() * f.clamp(-1, 1).acos(), angle)
                waiting = waiting & ~accepted
            turned = angle + math.pi + self.loc.detach().double()
            return (turned.remainder(2 * math.pi) - math.pi).to(self.loc.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        turn = (self._checked(value) - self.loc).cos() - 1
        norm = math.log(2 * math.pi) + _log_i0e(self.concentration)
        return self.concentration * turn - norm
