"""Transforms of vectors and matrices, and of their parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from ..dtypes import finfo
from ..errors import ShapeError
from ..nn.functional import logsigmoid, pad, softplus
from ..ops.shape.joining import cat, stack
from ..shapes import Size
from . import constraints
from .elementwise_transforms import SigmoidTransform
from .transform import Transform
from .utils import sum_rightmost, tril_matrix_to_vec, vec_to_tril_matrix


class SoftmaxTransform(Transform):
    """Vectors to the simplex by softmax; not bijective, the inverse gives logarithms.

    >>> import undertow as ut
    >>> t = ut.distributions.SoftmaxTransform()
    >>> t(ut.tensor([0.0, 0.0, 1.0]))
    tensor([0.2119, 0.2119, 0.5761])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


class StickBreakingTransform(Transform):
    """Vectors to the simplex of one more element: each takes a part of what is left of a stick.

    >>> import undertow as ut
    >>> t = ut.distributions.StickBreakingTransform()
    >>> p = t(ut.tensor([0.0, 0.0]))
    >>> p, p.sum()
    (tensor([0.3333, 0.3333, 0.3333]), tensor(1.0000))
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _offset(self, x: Tensor) -> Tensor:
        count = x.shape[-1]
        return x.new_ones((count,)).cumsum(-1).neg() + (count + 1)

    def _call(self, x: Tensor) -> Tensor:
        part = SigmoidTransform()(x - self._offset(x).log())
        left = (1 - part).cumprod(-1)
        return pad(part, (0, 1), value=1) * pad(left, (1, 0), value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        head = y[..., :-1]
        left = (1 - head.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return head.log() - left.log() + self._offset(head).log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        x = x - self._offset(x).log()
        found: Tensor = (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)
        return found

    def forward_shape(self, shape: Any) -> Size:
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Size:
        return Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(Transform):
    """Matrices to lower triangular ones with a positive diagonal, by exp of the diagonal.

    >>> import undertow as ut
    >>> t = ut.distributions.LowerCholeskyTransform()
    >>> t(ut.tensor([[0.0, 5.0], [2.0, 0.0]]))
    tensor([[1., 0.],
            [2., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Matrices to positive definite ones.

    >>> import undertow as ut
    >>> t = ut.distributions.PositiveDefiniteTransform()
    >>> bool((ut.linalg.eigvalsh(t(ut.tensor([[0.0, 5.0], [2.0, 0.0]]))) > 0).all())
    True
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        from ..ops.linalg.triangular import cholesky

        return LowerCholeskyTransform().inv(cholesky(y))


class CorrCholeskyTransform(Transform):
    """Vectors of n (n - 1) / 2 numbers to Cholesky factors of n by n correlation matrices.

    >>> import undertow as ut
    >>> factor = ut.distributions.CorrCholeskyTransform()(ut.tensor([0.5, -0.3, 0.1]))
    >>> (factor @ factor.T).diagonal()
    tensor([1., 1., 1.])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.tanh().clamp(-1 + eps, 1 - eps), -1)
        left = (1 - r.square()).sqrt().cumprod(-1)
        r = r + _eye(r)
        return r * pad(left[..., :-1], (1, 0), value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = (1 - y.square().cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        part = tril_matrix_to_vec(y, -1)
        root = tril_matrix_to_vec(pad(left[..., :-1], (1, 0), value=1), -1).sqrt()
        t = part / root
        return (t.log1p() - (-t).log1p()) / 2

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        left = 1 - y.square().cumsum(-1)
        stick: Any = 0.5 * tril_matrix_to_vec(left, -2).log().sum(-1)
        tanh = -2 * (x + softplus(-2 * x) - math.log(2)).sum(-1)
        found: Tensor = stick + tanh
        return found

    def forward_shape(self, shape: Any) -> Size:
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ShapeError(
                f"[CorrCholeskyTransform] takes n (n - 1) / 2 numbers, got {shape[-1]}"
            )
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Any) -> Size:
        n = shape[-1]
        return Size((*shape[:-2], n * (n - 1) // 2))


def _eye(like: Tensor) -> Tensor:
    return like.new_ones((like.shape[-1],)).diag_embed()


class _Parts(Transform):
    """Transforms of parts along a dimension."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)


class CatTransform(_Parts):
    """Transforms of consecutive parts of the given lengths along a dimension.

    >>> import undertow as ut
    >>> parts = [ut.distributions.ExpTransform(), ut.distributions.AffineTransform(0.0, 10.0)]
    >>> t = ut.distributions.CatTransform(parts, dim=0, lengths=[1, 2])
    >>> t(ut.tensor([0.0, 1.0, 2.0]))
    tensor([ 1., 10., 20.])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)

    @property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)

    def _call(self, x: Tensor) -> Tensor:
        parts = zip(self.transforms, x.split(self.lengths, self.dim), strict=True)
        return cat([t(part) for t, part in parts], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = zip(self.transforms, y.split(self.lengths, self.dim), strict=True)
        return cat([t.inv(part) for t, part in parts], self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        found = []
        halves = (v.split(self.lengths, self.dim) for v in (x, y))
        for t, a, b in zip(self.transforms, *halves, strict=True):
            found.append(sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim))
        dim = self.dim if self.dim < 0 else self.dim - x.ndim
        total: Tensor = cat(found, dim + self.event_dim) if dim + self.event_dim < 0 else sum(found)
        return total


class StackTransform(_Parts):
    """Transforms of the slices along a dimension, one for each.

    >>> import undertow as ut
    >>> parts = [ut.distributions.ExpTransform(), ut.distributions.AffineTransform(0.0, 10.0)]
    >>> t = ut.distributions.StackTransform(parts, dim=1)
    >>> t(ut.tensor([[0.0, 1.0], [0.0, 2.0]]))
    tensor([[ 1., 10.],
            [ 1., 20.]])
    """

    @property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)

    def _call(self, x: Tensor) -> Tensor:
        parts = zip(self.transforms, x.unbind(self.dim), strict=True)
        return stack([t(part) for t, part in parts], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = zip(self.transforms, y.unbind(self.dim), strict=True)
        return stack([t.inv(part) for t, part in parts], self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        parts = zip(self.transforms, x.unbind(self.dim), y.unbind(self.dim), strict=True)
        return stack([t.log_abs_det_jacobian(a, b) for t, a, b in parts], self.dim)
