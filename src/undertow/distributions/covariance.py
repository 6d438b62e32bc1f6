"""Covariances: given by themselves, their inverse or their Cholesky factor; what products take."""

from __future__ import annotations

import math
from typing import Any

from ..core.tensor import Tensor
from ..errors import ArgumentError
from ..ops.linalg.triangular import cholesky, solve_triangular
from . import constraints
from .distribution import Distribution
from .utils import lazy_property


def squared_length(scale_tril: Tensor, x: Tensor) -> Tensor:
    """x' (L L')^-1 x, for the vectors along the last dimension."""
    if scale_tril.ndim == 2:  # one system with a column for each vector
        columns = x.reshape(math.prod(x.shape[:-1]), x.shape[-1]).mT
        solved = solve_triangular(scale_tril, columns, upper=False)
        return solved.square().sum(0).reshape(x.shape[:-1])
    solved = solve_triangular(scale_tril, x.unsqueeze(-1), upper=False)
    return solved.squeeze(-1).square().sum(-1)


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse of a matrix."""
    flipped = cholesky(precision.flip((-2, -1))).flip((-2, -1)).mT
    return _inverse_factor(flipped)


def half_log_det(scale_tril: Tensor) -> Tensor:
    """log |L| of Cholesky factors."""
    return scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _inverse_factor(factor: Tensor) -> Tensor:
    """The inverse of Cholesky factors."""
    eye = factor.new_ones((factor.shape[-1],)).diag().expand(factor.shape)
    return solve_triangular(factor, eye, upper=False)


class OfCovariance(Distribution):
    """What has a covariance; the forms that were not given are computed when asked for."""

    arg_constraints: Any = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    event_dims = {
        "covariance_matrix": 2,
        "precision_matrix": 2,
        "scale_tril": 2,
        "_unbroadcasted_scale_tril": 2,
    }
    _unbroadcasted_scale_tril: Tensor

    def _one_of(self, **given: Tensor | None) -> tuple[str, Tensor]:
        """The form that is given, and its name."""
        chosen = {name: value for name, value in given.items() if value is not None}
        if len(chosen) != 1:
            raise ArgumentError(
                f"[{type(self).__name__}] needs exactly one of covariance_matrix, "
                f"precision_matrix and scale_tril, got {[*chosen]}"
            )
        ((name, matrix),) = chosen.items()
        return name, matrix

    def _keep(self, name: str, matrix: Tensor, batch: Any) -> None:
        """Keep the form that is given, for a whole batch, and its factor as it is."""
        setattr(self, name, matrix.expand(batch + matrix.shape[-2:]))
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = precision_to_scale_tril(matrix)

    def _whole(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + matrix.shape[-2:])

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._whole(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance of the vectors."""
        factor = self._unbroadcasted_scale_tril
        return self._whole(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance of the vectors."""
        inverse = _inverse_factor(self._unbroadcasted_scale_tril)
        return self._whole(inverse.mT @ inverse)
