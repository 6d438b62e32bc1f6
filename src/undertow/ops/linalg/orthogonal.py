"""Orthogonal factors: QR, and the products of Householder's reflections."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...core.dispatch import apply
from ...core.op import Op
from ...core.printing import in_lines
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError, GradientError, ShapeError
from ..create.creation import eye
from ..shape.diagonal import tril, triu
from ..shape.joining import cat
from .matrices import matrices, one_dtype
from .triangular import substitute


class QR(NamedTuple):
    """What `qr` returns."""

    Q: Tensor
    R: Tensor

    def __repr__(self) -> str:
        return in_lines(self)


class Reflections(NamedTuple):
    """What `geqrf` returns."""

    a: Tensor
    tau: Tensor

    def __repr__(self) -> str:
        return in_lines(self)


# QR --------------------------------------------------------------------------------------------
def _qr_rule(gs: Any, out: Tensor, out1: Tensor, a_shape: Any, mode: str) -> Tensor:
    m, n = a_shape[-2:]
    if mode == "r":
        raise GradientError("[qr] the gradient needs Q, which mode='r' leaves out; use 'reduced'")
    if mode == "complete" and m > n:
        raise GradientError(
            f"[qr] a complete Q of a matrix with more rows than columns, {m} and {n}, is not "
            "determined by it, so it has no gradient; use mode='reduced'"
        )
    q, r = out, out1
    by_q, by_r = gs
    if m >= n:
        return _square_qr_rule(q, r, by_q, by_r)
    # The columns beyond the square block are Q times theirs of R.
    right = by_r[..., m:]
    by_q = by_q + q @ (r[..., m:] @ right.mH)
    return cat([_square_qr_rule(q, r[..., :m], by_q, by_r[..., :m]), q @ right], -1)


def _square_qr_rule(q: Tensor, r: Tensor, by_q: Tensor, by_r: Tensor) -> Tensor:
    inner = by_r @ r.mH - q.mH @ by_q
    # Hermitian, from its upper triangle; the diagonal of R is real.
    inner = triu(inner, 1)
    inner = inner + inner.mH + _real_diagonal(by_r @ r.mH - q.mH @ by_q)
    return substitute(r, (by_q + q @ inner).mH, True).mH


def _real_diagonal(x: Tensor) -> Tensor:
    line = x.diagonal(0, -2, -1)
    return (line.real.to(x.dtype) if x.is_complex() else line).diag_embed()


_qr = Op(
    "qr",
    lambda k, a, mode: k.linalg("qr", (a,), mode),
    inputs="a",
    params="mode",
    outputs=2,
    vjp={"a": _qr_rule},
    conjugate=False,
)


@function(space="linalg", name="qr")
def linalg_qr(A: Tensor, mode: str = "reduced") -> QR:
    """The factors of A = Q R: orthonormal columns and an upper triangular matrix.

    mode is "reduced", "complete" (Q square) or "r" (Q without elements). The gradient exists where
    the first columns of A are independent, and not of a complete Q that has more columns than A.

    >>> import undertow as ut
    >>> Q, R = ut.linalg.qr(ut.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> (Q @ R - ut.tensor([[3.0, 1.0], [4.0, 2.0]])).abs().max() < 1e-6
    tensor(True)
    """
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"[qr] mode must be 'reduced', 'complete' or 'r', got {mode!r}")
    return QR(*apply(_qr, (matrices("qr", A),), (mode,)))


@function()
def qr(input: Tensor, some: bool = True) -> QR:
    """`linalg.qr`: reduced, or complete with `some=False`.

    >>> import undertow as ut
    >>> ut.qr(ut.ones(3, 2)).Q.shape
    (3, 2)
    """
    mode = "reduced" if some else "complete"
    return QR(*apply(_qr, (matrices("qr", input),), (mode,)))


# Reflections -----------------------------------------------------------------------------------
_geqrf = Op("geqrf", lambda k, a: k.linalg("geqrf", (a,)), inputs="a", outputs=2)


@function()
def geqrf(input: Tensor) -> Reflections:
    """LAPACK's packed QR: R, the reflections' vectors below its diagonal, and their factors.

    It has no gradient; `linalg.qr` has one.

    >>> import undertow as ut
    >>> a, tau = ut.geqrf(ut.tensor([[3.0], [4.0]]))
    >>> a.triu()
    tensor([[-5.],
            [ 0.]])
    """
    return Reflections(*apply(_geqrf, (matrices("geqrf", input, "input"),)))


def _check_reflections(op: str, a: Tensor, tau: Tensor) -> None:
    one_dtype(op, a, tau, ("input", "tau"))
    if tau.shape[:-1] != a.shape[:-2] or tau.ndim != a.ndim - 1:
        raise ShapeError(f"[{op}] input of shape {a.shape} does not fit tau of shape {tau.shape}")
    if tau.shape[-1] > a.shape[-1]:
        raise ShapeError(
            f"[{op}] tau has {tau.shape[-1]} factors for the {a.shape[-1]} columns of input"
        )


def _compact(a: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    """V and T of H₁ H₂ … = I - V T Vᴴ, where column i of V is the vector of Hᵢ."""
    count = tau.shape[-1]
    rows = a.shape[-2]
    identity = eye(rows, count, dtype=a.dtype, device=a.device)
    vectors = tril(a[..., :count], -1) + identity
    factors = tau.diag_embed()
    inner = factors @ triu(vectors.mH @ vectors, 1)
    return vectors, substitute(inner, factors, True, True)


@function(space="linalg")
def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first columns of H₁ H₂ …, whose vectors lie below the diagonal of A, as of `geqrf`.

    >>> import undertow as ut
    >>> ut.linalg.householder_product(*ut.geqrf(ut.tensor([[3.0], [4.0]])))
    tensor([[-0.6000],
            [-0.8000]])
    """
    return _multiplied("householder_product", A, tau)


def _multiplied(op: str, a: Tensor, tau: Tensor) -> Tensor:
    matrices(op, a)
    _check_reflections(op, a, tau)
    m, n = a.shape[-2:]
    if n > m:
        raise ShapeError(f"[{op}] A has at least as many rows as columns, got shape {a.shape}")
    vectors, inner = _compact(a, tau)
    identity = eye(m, n, dtype=a.dtype, device=a.device)
    return identity - vectors @ (inner @ vectors[..., :n, :].mH)


@function()
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """`linalg.householder_product`.

    >>> import undertow as ut
    >>> ut.orgqr(ut.zeros(2, 1), ut.zeros(1))
    tensor([[1.],
            [0.]])
    """
    return _multiplied("orgqr", input, input2)


@function()
def ormqr(
    input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """The whole Q of `geqrf`'s reflections times a matrix: Q C, or C Q with `left=False`.

    With `transpose` it is Qᴴ. Q itself is never made.

    >>> import undertow as ut
    >>> ut.ormqr(*ut.geqrf(ut.tensor([[3.0], [4.0]])), ut.tensor([[5.0], [0.0]]))
    tensor([[-3.],
            [-4.]])
    """
    matrices("ormqr", input, "input")
    matrices("ormqr", other, "other")
    one_dtype("ormqr", input, other, ("input", "other"))
    _check_reflections("ormqr", input, tau)
    size = other.shape[-2 if left else -1]
    if size != input.shape[-2]:
        raise ShapeError(
            f"[ormqr] Q has {input.shape[-2]} rows and columns, which does not fit other of shape "
            f"{other.shape}"
        )
    if other.shape[:-2] != input.shape[:-2]:
        raise ShapeError(f"[ormqr] the batches of {input.shape} and {other.shape} differ")
    vectors, inner = _compact(input, tau)
    if transpose:
        inner = inner.mH
    if left:
        return other - vectors @ (inner @ (vectors.mH @ other))
    return other - ((other @ vectors) @ inner) @ vectors.mH
