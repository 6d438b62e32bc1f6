"""Normal vectors: of any covariance, and of one of low rank plus a diagonal."""

from __future__ import annotations

import math
from typing import Any

from ..core.tensor import Tensor
from ..errors import ShapeError
from ..ops.linalg.triangular import cholesky, solve_triangular
from ..ops.random.random import randn
from ..ops.shape.joining import broadcast_shapes
from ..shapes import Size
from . import constraints
from .covariance import OfCovariance, half_log_det, squared_length
from .distribution import Distribution
from .utils import lazy_property


class MultivariateNormal(OfCovariance):
    """A normal vector of a mean and a covariance: given by itself, its inverse, or its factor.

    >>> import undertow as ut
    >>> d = ut.distributions.MultivariateNormal(ut.zeros(2), ut.eye(2))
    >>> d.log_prob(ut.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {"loc": constraints.real_vector, **OfCovariance.arg_constraints}
    event_dims = {"loc": 1, **OfCovariance.event_dims}
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = self._one_of(
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        if loc.ndim < 1 or matrix.ndim < 2:
            raise ShapeError(
                f"[MultivariateNormal] needs a vector loc and a matrix {name}, got shapes "
                f"{loc.shape} and {matrix.shape}"
            )
        batch = Size(broadcast_shapes(loc.shape[:-1], matrix.shape[:-2]))
        self.loc = loc.expand(batch + loc.shape[-1:])
        self._keep(name, matrix, batch)
        super().__init__(batch, loc.shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        rows = self._unbroadcasted_scale_tril.square().sum(-1)
        return rows.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self._unbroadcasted_scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        factor = self._unbroadcasted_scale_tril
        length = squared_length(factor, self._checked(value) - self.loc)
        norm = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (norm + length) - half_log_det(factor)

    def entropy(self) -> Tensor:
        norm = 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi))
        return (norm + half_log_det(self._unbroadcasted_scale_tril)).expand(self._batch_shape)


def capacitance_tril(factor: Tensor, diagonal: Tensor) -> Tensor:
    """The Cholesky factor of I + W' D^-1 W."""
    inner = factor.mT / diagonal.unsqueeze(-2) @ factor
    return cholesky(inner + inner.new_ones((inner.shape[-1],)).diag())


def low_rank_log_det(factor: Tensor, diagonal: Tensor, capacitance: Tensor) -> Tensor:
    """log |W W' + D|, by the determinant lemma."""
    return 2 * half_log_det(capacitance) + diagonal.log().sum(-1)


def low_rank_squared_length(
    factor: Tensor, diagonal: Tensor, x: Tensor, capacitance: Tensor
) -> Tensor:
    """x' (W W' + D)^-1 x, by Woodbury's formula."""
    inner = (factor.mT / diagonal.unsqueeze(-2) @ x.unsqueeze(-1)).squeeze(-1)
    return (x.square() / diagonal).sum(-1) - squared_length(capacitance, inner)


class LowRankMultivariateNormal(Distribution):
    """A normal vector of the covariance W W' + D: few columns W, and a diagonal D.

    >>> import undertow as ut
    >>> d = ut.distributions.LowRankMultivariateNormal(ut.zeros(2), ut.ones(2, 1), ut.ones(2))
    >>> d.covariance_matrix
    tensor([[2., 1.],
            [1., 2.]])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    event_dims = {"loc": 1, "cov_factor": 2, "cov_diag": 1}
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None
    ) -> None:
        if loc.ndim < 1 or cov_factor.ndim < 2 or cov_diag.ndim < 1:
            raise ShapeError(
                "[LowRankMultivariateNormal] needs vectors loc and cov_diag and a matrix "
                f"cov_factor, got shapes {loc.shape}, {cov_diag.shape} and {cov_factor.shape}"
            )
        event = loc.shape[-1:]
        if cov_factor.shape[-2:-1] != event or cov_diag.shape[-1:] != event:
            raise ShapeError(
                f"[LowRankMultivariateNormal] loc has {event[0]} elements, cov_factor is "
                f"{cov_factor.shape} and cov_diag {cov_diag.shape}"
            )
        batch = Size(broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]))
        self.loc = loc.expand(batch + event)
        self.cov_diag = cov_diag.expand(batch + event)
        self.cov_factor = cov_factor.expand(batch + cov_factor.shape[-2:])
        super().__init__(batch, event, validate_args=validate_args)

    @property
    def _capacitance(self) -> Tensor:
        return capacitance_tril(self.cov_factor, self.cov_diag)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        return self.cov_factor.square().sum(-1) + self.cov_diag

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return cholesky(self.covariance_matrix)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance, by Woodbury's formula."""
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        solved = solve_triangular(self._capacitance, scaled, upper=False)
        return self.cov_diag.reciprocal().diag_embed() - solved.mT @ solved

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        own: Any = {"dtype": self.loc.dtype, "device": self.loc.device}
        wide = randn((*shape[:-1], self.cov_factor.shape[-1], 1), **own)
        noise = self.cov_diag.sqrt() * randn(shape, **own)
        return self.loc + (self.cov_factor @ wide).squeeze(-1) + noise

    def log_prob(self, value: Tensor) -> Tensor:
        d = self._checked(value) - self.loc
        inner = self._capacitance
        length = low_rank_squared_length(self.cov_factor, self.cov_diag, d, inner)
        log_det = low_rank_log_det(self.cov_factor, self.cov_diag, inner)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + log_det + length)

    def entropy(self) -> Tensor:
        log_det = low_rank_log_det(self.cov_factor, self.cov_diag, self._capacitance)
        norm = self._event_shape[0] * (1 + math.log(2 * math.pi))
        return (0.5 * (norm + log_det)).expand(self._batch_shape)
