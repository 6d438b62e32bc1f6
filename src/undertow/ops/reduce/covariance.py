"""Covariance and correlation of variables in rows, of observations in columns."""

from __future__ import annotations

from ... import dtypes
from ...core.dispatch import cast
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError, ShapeError
from ..elementwise.comparison import holds


def _check_weights(name: str, weights: Tensor, count: int, kinds: str, wanted: str) -> None:
    kind = "f" if weights.is_floating_point() else weights._array.dtype.kind
    if kind not in kinds or weights.dtype is dtypes.bool:
        raise DTypeError(f"[cov] {name} must be {wanted}, got {weights.dtype}")
    if weights.shape != (count,):
        raise ShapeError(
            f"[cov] {name} must have one number for each of {count} observations, got shape "
            f"{weights.shape}"
        )
    if count and not holds(~(weights.detach() < 0)):
        raise ArgumentError(f"[cov] {name} must not be negative, got {float(weights.min())}")


@function()
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """The covariance matrix of variables in rows; of one variable, its variance.

    `fweights` tells how often each observation was made, `aweights` how much it counts.

    >>> import undertow as ut
    >>> ut.cov(ut.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input.ndim > 2:
        raise ShapeError(f"[cov] needs at most two dimensions, got shape {input.shape}")
    if input.dtype is dtypes.bool:
        raise DTypeError("[cov] needs numbers, got booleans")
    x = input if input.dtype.category > 1 else cast(input, dtypes.get_default_dtype())
    x = x.reshape(1, -1) if x.ndim < 2 else x
    count = x.shape[1]
    if fweights is not None:
        _check_weights("fweights", fweights, count, "iu", "integers")
    if aweights is not None:
        _check_weights("aweights", aweights, count, "f", "floating")
    weights = aweights
    if fweights is not None:
        weights = fweights if aweights is None else aweights * fweights
    if weights is None:
        weighted = centred = x - x.mean(1, keepdim=True)
        norm = (x.real if x.is_complex() else x).new_tensor(count - correction)
    else:
        total = weights.sum()
        centred = x - (x * weights).sum(1, keepdim=True) / total
        weighted = centred * weights
        unequal = 1 if aweights is None else (weights * aweights).sum() / total
        norm = total - correction * unequal
    return (weighted @ centred.T.conj() / norm.clamp(min=0)).squeeze()


@function()
def corrcoef(input: Tensor) -> Tensor:
    """The correlation coefficients of variables in rows: their covariance on a common scale.

    >>> import undertow as ut
    >>> ut.corrcoef(ut.tensor([[0.0, 1.0, 2.0], [3.0, 1.0, -1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input.ndim > 2:
        raise ShapeError(f"[corrcoef] needs at most two dimensions, got shape {input.shape}")
    c = cov(input)
    if not c.ndim:
        return c / c
    spread = (c.diagonal().real if c.is_complex() else c.diagonal()).sqrt()
    c = c / spread.unsqueeze(1) / spread
    return c if c.is_complex() else c.clamp(-1, 1)
