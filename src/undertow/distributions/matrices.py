"""Distributions of matrices: Wishart's, and correlations by their Cholesky factors (LKJ)."""

from __future__ import annotations

import math
from typing import Any

from ..core.tensor import Tensor
from ..dtypes import finfo
from ..errors import ArgumentError, ShapeError
from ..nn.functional import pad
from ..ops.create.creation import arange
from ..ops.elementwise.comparison import where
from ..ops.linalg.triangular import cholesky
from ..ops.random.random import randn
from ..ops.shape.joining import broadcast_shapes
from ..shapes import Size
from . import constraints
from .beta import Beta
from .covariance import OfCovariance, half_log_det
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .gamma import Chi2
from .utils import broadcast_all


def _log_mvgamma(x: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function."""
    steps = arange(p, dtype=x.dtype, device=x.device) / 2
    return (x.unsqueeze(-1) - steps).lgamma().sum(-1) + p * (p - 1) / 4 * math.log(math.pi)


class Wishart(OfCovariance, ExponentialFamily):
    """Sums of `df` outer products of normal vectors, of a covariance given in one of three ways.

    >>> import undertow as ut
    >>> ut.distributions.Wishart(ut.tensor(3.0), covariance_matrix=ut.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    arg_constraints = {"df": constraints.dependent, **OfCovariance.arg_constraints}
    df: Tensor

    def __init__(
        self,
        df: Any,
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
        if matrix.ndim < 2:
            raise ShapeError(f"[Wishart] needs a matrix {name}, got shape {matrix.shape}")
        (df,) = broadcast_all(df)
        df = df.to(matrix.dtype)
        batch = Size(broadcast_shapes(df.shape, matrix.shape[:-2]))
        event = Size(matrix.shape[-2:])
        if bool((df <= event[-1] - 1).any()):
            raise ArgumentError(f"[Wishart] df must be above {event[-1] - 1}, the size less one")
        self.df = df.expand(batch)
        self._keep(name, matrix, batch)
        super().__init__(batch, event, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = where(factor <= 0, math.nan, factor)
        return factor[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        product = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df[..., None, None] * (v.square() + product)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """By Bartlett's decomposition."""
        shape = self._extended_shape(sample_shape)
        p = self._event_shape[-1]
        steps = arange(p, dtype=self.df.dtype, device=self.df.device)
        squares = Chi2(self.df.unsqueeze(-1) - steps, validate_args=False).rsample(sample_shape)
        noise = randn(shape, dtype=self.df.dtype, device=self.df.device).tril(-1)
        factor = self._unbroadcasted_scale_tril @ (noise + squares.sqrt().diag_embed())
        return factor @ factor.mT

    def log_prob(self, value: Tensor) -> Tensor:
        v = self._checked(value)
        nu, p = self.df, self._event_shape[-1]
        norm = nu * (half_log_det(self._unbroadcasted_scale_tril) + p * math.log(2) / 2)
        norm = norm + _log_mvgamma(nu / 2, p)
        size = (nu - p - 1) * half_log_det(cholesky(v))
        trace = (self.precision_matrix * v).sum((-2, -1))
        return size - 0.5 * trace - norm

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[-1]
        steps = arange(p, dtype=nu.dtype, device=nu.device) / 2
        expected = ((nu / 2).unsqueeze(-1) - steps).digamma().sum(-1)
        scale = (p + 1) * (half_log_det(self._unbroadcasted_scale_tril) + p * math.log(2) / 2)
        return scale + _log_mvgamma(nu / 2, p) - 0.5 * (nu - p - 1) * expected + nu * p / 2


class LKJCholesky(Distribution):
    """Cholesky factors of random correlation matrices; `concentration` 1 makes all alike.

    >>> import undertow as ut
    >>> ut.distributions.LKJCholesky(2, 1.0).log_prob(ut.eye(2))
    tensor(-0.6931)
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    concentration: Tensor

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ArgumentError(f"[LKJCholesky] dim must be at least 2, got {dim}")
        self.dim = dim
        batch = self._parameters(concentration=concentration)
        super().__init__(batch, (dim, dim), validate_args=validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """By the onion method of Lewandowski, Kurowicka and Joe."""
        c = self.concentration
        rows = pad(arange(self.dim - 1, dtype=c.dtype, device=c.device), (1, 0))  # 0, 0, 1, 2 …
        marginal = c.unsqueeze(-1) + 0.5 * (self.dim - 2)
        lengths = Beta(rows + 0.5, marginal - 0.5 * rows, validate_args=False)
        y = lengths.sample(sample_shape).unsqueeze(-1)
        own: Any = {"dtype": y.dtype, "device": y.device}
        direction = randn(self._extended_shape(sample_shape), **own).tril(-1)
        tiny = finfo(direction.dtype).tiny
        w = y.sqrt() * direction / direction.norm(dim=-1, keepdim=True).clamp(min=tiny)
        diagonal = (1 - w.square().sum(-1)).clamp(min=tiny).sqrt()
        return w + diagonal.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        diagonal = self._checked(value).diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = arange(2, self.dim + 1, dtype=diagonal.dtype, device=diagonal.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        plain = (order * diagonal.log()).sum(-1)
        d = self.dim - 1
        alpha = self.concentration + 0.5 * d
        norm = 0.5 * d * math.log(math.pi) + _log_mvgamma(alpha - 0.5, d) - alpha.lgamma() * d
        return plain - norm
