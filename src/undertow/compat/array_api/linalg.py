"""The standard's extension for linear algebra, over `undertow.linalg`."""

from __future__ import annotations

from typing import Any, NamedTuple

import undertow

from ... import dtypes
from ...core.tensor import Tensor
from ...dtypes import DTypeLike
from ...errors import ShapeError
from ...shapes import Ints, wrap_dims
from .data_types import together
from .manipulation import matrix_transpose
from .products import matmul, tensordot, vecdot

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]

_ut: Any = undertow  # its linalg is loaded when it is asked for


class EighResult(NamedTuple):
    """What `eigh` gives."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """What `qr` gives."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """What `slogdet` gives."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """What `svd` gives."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular factor of a positive definite matrix."""
    return _ut.linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of three elements along an axis."""
    a, b = together(x1, x2)
    ndim = max(a.ndim, b.ndim)
    a, b = (t.reshape((1,) * (ndim - t.ndim) + t.shape) for t in (a, b))
    return _ut.linalg.cross(a, b, dim=axis)


def det(x: Tensor, /) -> Tensor:
    """The determinant."""
    return _ut.linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """A diagonal of the matrices."""
    return _ut.diagonal(x, offset, -2, -1)


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues and eigenvectors of a symmetric or Hermitian matrix."""
    return EighResult(*_ut.linalg.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of a symmetric or Hermitian matrix."""
    return _ut.linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverse."""
    return _ut.linalg.inv(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """A norm of the matrices."""
    return _ut.linalg.matrix_norm(x, ord=ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The n-th power of a square matrix."""
    return _ut.linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """How many singular values are larger than `rtol` times the largest."""
    return _ut.linalg.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The outer product of two vectors."""
    a, b = together(x1, x2)
    if a.ndim != 1 or b.ndim != 1:
        raise ShapeError(f"[outer] takes two vectors, got shapes {a.shape} and {b.shape}")
    return a.unsqueeze(1) * b  # not a product of matrices, which starts at +0


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverse; singular values below `rtol` times the largest count as zero."""
    return _ut.linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """An orthonormal and an upper triangular factor."""
    return QRResult(*_ut.linalg.qr(x, mode=mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """The sign of the determinant, and the logarithm of its absolute value."""
    return SlogdetResult(*_ut.linalg.slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solution of `x1 @ x = x2`; only a vector that is one-dimensional is one."""
    a, b = together(x1, x2)
    if b.ndim == 1:
        return _ut.linalg.solve(a, b.unsqueeze(-1)).squeeze(-1)
    lead = _ut.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return _ut.linalg.solve(a, b.expand(*lead, *b.shape[-2:]))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular values, and the vectors on both sides."""
    return SVDResult(*_ut.linalg.svd(x, full_matrices=full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """Singular values."""
    return _ut.linalg.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """The sum along a diagonal."""
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    return diagonal(x, offset=offset).sum(-1, dtype=wanted)


def vector_norm(
    x: Tensor, /, *, axis: Ints | None = None, keepdims: bool = False, ord: Any = 2
) -> Tensor:
    """A norm over axes, of the elements as one vector."""
    if axis == ():
        return _ut.linalg.vector_norm(x.unsqueeze(-1), ord, -1)
    axes = wrap_dims("vector_norm", axis, x.ndim)
    if not axes:
        return _ut.linalg.vector_norm(x.unsqueeze(-1), ord, -1)
    return _ut.linalg.vector_norm(x, ord, axes, keepdims)
