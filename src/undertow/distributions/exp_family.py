"""Exponential families: densities exp(<t(x), θ> - F(θ) + k(x))."""

from __future__ import annotations

from typing import Any

from ..autograd import grad
from ..core.modes import enable_grad
from ..core.tensor import Tensor
from .distribution import Distribution
from .utils import sum_rightmost


class ExponentialFamily(Distribution):
    """A distribution that knows its natural parameters θ and its log normaliser F.

    >>> import undertow as ut
    >>> [
    ...     d.__name__
    ...     for d in (ut.distributions.Gamma, ut.distributions.Laplace)
    ...     if issubclass(d, ut.distributions.ExponentialFamily)
    ... ]
    ['Gamma']
    """

    _mean_carrier_measure: float | None = None  # the mean of k(x), where it is known

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """From the log normaliser and its derivative, the mean of the statistics."""
        if self._mean_carrier_measure is None:
            raise NotImplementedError(f"{type(self).__name__} has no mean carrier measure")
        natural = [
            p if p.requires_grad else p.detach().requires_grad_() for p in self._natural_params
        ]
        with enable_grad():
            total = self._log_normalizer(*natural)
            slopes = grad(total.sum(), natural, create_graph=True)
        result = total - self._mean_carrier_measure
        for p, slope in zip(natural, slopes, strict=True):
            result = result - sum_rightmost(p * slope, len(self._event_shape))
        return result
