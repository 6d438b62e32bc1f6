"""Approximations of low rank by random projections (Halko, Martinsson and Tropp, 2009)."""

from __future__ import annotations

from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError
from ...shapes import as_int
from ..random.random import randn
from .matrices import shaped
from .orthogonal import linalg_qr
from .spectra import OldSVD, linalg_svd


def _range(a: Tensor, q: int, niter: int) -> Tensor:
    """Orthonormal columns that come close to the range of A."""
    n = a.shape[-1]
    start = randn((n, q), dtype=a.dtype, device=a.device)
    basis = linalg_qr(a @ start).Q
    for _ in range(niter):
        basis = linalg_qr(a.mH @ basis).Q
        basis = linalg_qr(a @ basis).Q
    return basis


def _approximated(op: str, a: Tensor, q: int, niter: int, mean: Tensor | None) -> OldSVD:
    shaped(op, a)
    if mean is not None:
        a = a - mean
    m, n = a.shape[-2:]
    wide = m < n  # the smaller side is projected
    tall = a.mH if wide else a
    basis = _range(tall, q, niter)
    left, values, dual = linalg_svd(basis.mH @ tall, False)
    left, right = basis @ left, dual.mH
    return OldSVD(right, values, left) if wide else OldSVD(left, values, right)


def _rank(op: str, q: int | None, sizes: tuple[int, ...], default: int) -> int:
    count = default if q is None else as_int(op, "q", q)
    if not 0 <= count <= min(sizes):
        raise ArgumentError(
            f"[{op}] q must be between 0 and the smaller size of A {tuple(sizes)}, got {count}"
        )
    return count


@function(method=False)
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int = 2, M: Tensor | None = None) -> OldSVD:
    """U, S and V of an approximation of A, or of A - M, of rank `q`, by random projections.

    >>> import undertow as ut
    >>> A = ut.outer(ut.arange(1.0, 5.0), ut.ones(3))
    >>> U, S, V = ut.svd_lowrank(A, q=2)
    >>> (U @ S.diag() @ V.T - A).abs().max() < 1e-4
    tensor(True)
    """
    count = _rank("svd_lowrank", q, A.shape[-2:], 6)
    return _approximated("svd_lowrank", A, count, as_int("svd_lowrank", "niter", niter), M)


@function(method=False)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> OldSVD:
    """Principal components of the rows of A: `svd_lowrank` of A without its columns' means.

    `q` is by default 6, or as many as A has rows or columns.

    >>> import undertow as ut
    >>> ut.pca_lowrank(ut.arange(12.0).reshape(4, 3), q=2).V.shape
    (3, 2)
    """
    shaped("pca_lowrank", A)
    count = _rank("pca_lowrank", q, A.shape[-2:], min(6, *A.shape[-2:]))
    mean = A.mean(-2, keepdim=True) if center else None
    return _approximated("pca_lowrank", A, count, as_int("pca_lowrank", "niter", niter), mean)
