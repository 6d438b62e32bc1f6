"""Eigenvalues and singular values.

Note [gauges]
Eigenvectors and singular vectors are determined up to a factor: a sign if they are real, else a
phase. A loss may depend on the sign, which stays where it is under small changes. One that depends
on the phase has no gradient, and asking for it is an error, as in torch. Where values coincide the
vectors are not determined at all: their gradient is infinite or NaN, that of the values is not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...core.dispatch import apply
from ...core.op import Op
from ...core.printing import in_lines
from ...core.register import function
from ...core.tensor import Tensor, differentiated
from ...errors import ArgumentError, GradientError
from ..create.creation import eye
from ..elementwise.comparison import holds
from .matrices import matrices


class Eigen(NamedTuple):
    """What `linalg.eig` and `linalg.eigh` return."""

    eigenvalues: Tensor
    eigenvectors: Tensor

    def __repr__(self) -> str:
        return in_lines(self)


class SVD(NamedTuple):
    """What `linalg.svd` returns."""

    U: Tensor
    S: Tensor
    Vh: Tensor

    def __repr__(self) -> str:
        return in_lines(self)


class OldSVD(NamedTuple):
    """What `svd` returns."""

    U: Tensor
    S: Tensor
    V: Tensor

    def __repr__(self) -> str:
        return in_lines(self)


_NOTICEABLE = 1e-2  # how much a loss must change with a phase to be called dependent on it


def _fixed(op: str, turned: Tensor) -> None:
    """An error if a loss changes with the phases of vectors; see Note [gauges]."""
    if turned.numel() and not holds(~(turned.detach().abs() > _NOTICEABLE)):
        raise GradientError(
            f"[{op}] the vectors of a complex matrix are determined up to a phase, and this loss "
            "depends on the phase: it has no gradient; use what does not, such as abs() of them"
        )


def _line(x: Tensor) -> Tensor:
    return x.diagonal(0, -2, -1)


def _identity(like: Tensor) -> Tensor:
    size = like.shape[-1]
    return eye(size, dtype=like.dtype, device=like.device)


def _off(x: Tensor) -> Tensor:
    """Square matrices without their diagonals."""
    return x - _line(x).diag_embed()


def _gaps(values: Tensor) -> Tensor:
    """The values of the columns minus those of the rows, with ones on the diagonal."""
    differences = values.unsqueeze(-2) - values.unsqueeze(-1)
    return differences + _identity(differences)


# Eigenvalues of symmetric matrices -------------------------------------------------------------
def _eigh_rule(gs: Any, out: Tensor, out1: Tensor) -> Tensor:
    values, vectors = out, out1
    by_values, by_vectors = gs
    if by_vectors is None:
        return (vectors * by_values.unsqueeze(-2)) @ vectors.mH
    inner = vectors.mH @ by_vectors
    if vectors.is_complex():
        _fixed("eigh", _line(inner).imag)
    inner = _off(inner) / _gaps(values)
    if by_values is not None:
        inner = inner + by_values.to(inner.dtype).diag_embed()
    return _hermitian(vectors @ inner @ vectors.mH)


def _hermitian(x: Tensor) -> Tensor:
    """The Hermitian part: of a matrix that is read as one, the gradient is one too, as in torch."""
    return (x + x.mH) / 2


_eigh = Op(
    "eigh",
    lambda k, a, upper: k.linalg("eigh", (a,), upper),
    inputs="a",
    params="upper",
    outputs=2,
    partial=True,
    vjp={"a": _eigh_rule},
    conjugate=False,
)
_eigvalsh = Op(
    "eigvalsh", lambda k, a, upper: k.linalg("eigvalsh", (a,), upper)[0], inputs="a", params="upper"
)


def _upper(op: str, side: str) -> bool:
    if side not in ("L", "U", "l", "u"):
        raise ArgumentError(f"[{op}] UPLO must be 'L' or 'U', got {side!r}")
    return side in "Uu"


@function(space="linalg")
def eigh(A: Tensor, UPLO: str = "L") -> Eigen:
    """The eigenvalues of a symmetric or Hermitian matrix, ascending, and its eigenvectors.

    Only the triangle `UPLO` is looked at. See Note [gauges] for what has no gradient.

    >>> import undertow as ut
    >>> ut.linalg.eigh(ut.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    return Eigen(*apply(_eigh, (matrices("eigh", A, square=True),), (_upper("eigh", UPLO),)))


@function(space="linalg")
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of a symmetric or Hermitian matrix, ascending.

    >>> import undertow as ut
    >>> ut.linalg.eigvalsh(ut.tensor([[0.0, 2.0], [2.0, 0.0]]))
    tensor([-2.,  2.])
    """
    matrices("eigvalsh", A, square=True)
    side = _upper("eigvalsh", UPLO)
    if differentiated(A):  # the gradient needs the vectors
        return Eigen(*apply(_eigh, (A,), (side,))).eigenvalues
    found: Tensor = apply(_eigvalsh, (A,), (side,))
    return found


# Eigenvalues of any matrix ---------------------------------------------------------------------
def _eig_rule(gs: Any, a: Tensor, out: Tensor, out1: Tensor) -> Tensor:
    values, vectors = out, out1
    by_values, by_vectors = gs
    dual = vectors.mH
    if by_vectors is None:
        inner = by_values.unsqueeze(-1) * dual
    else:
        turned = dual @ by_vectors
        line = _line(turned)
        _fixed("eig", line.imag)
        # Each vector has length 1, which takes a part of the others' gradients away.
        inner = turned - (dual @ vectors) * line.real.to(turned.dtype).unsqueeze(-2)
        inner = _off(inner) / _gaps(values).conj()
        if by_values is not None:
            inner = inner + by_values.diag_embed()
        inner = inner @ dual
    from .solving import solve

    found: Tensor = solve(dual, inner)
    return found if a.is_complex() else found.real


_eig = Op(
    "eig",
    lambda k, a: k.linalg("eig", (a,)),
    inputs="a",
    outputs=2,
    partial=True,
    vjp={"a": _eig_rule},
    conjugate=False,
)
_eigvals = Op("eigvals", lambda k, a: k.linalg("eigvals", (a,))[0], inputs="a")


@function(space="linalg")
def eig(A: Tensor) -> Eigen:
    """The eigenvalues of a square matrix, in no order, and its eigenvectors, as complex numbers.

    See Note [gauges] for what has no gradient.

    >>> import undertow as ut
    >>> ut.linalg.eig(ut.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.real
    tensor([2., 1.])
    """
    return Eigen(*apply(_eig, (matrices("eig", A, square=True),)))


@function(space="linalg")
def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues of a square matrix, in no order, as complex numbers.

    >>> import undertow as ut
    >>> ut.linalg.eigvals(ut.tensor([[0.0, 1.0], [-1.0, 0.0]])).imag.abs()
    tensor([1., 1.])
    """
    matrices("eigvals", A, square=True)
    if differentiated(A):
        return Eigen(*apply(_eig, (A,))).eigenvalues
    found: Tensor = apply(_eigvals, (A,))
    return found


# Singular values -------------------------------------------------------------------------------
def _skew(x: Tensor) -> Tensor:
    return x - x.mH


def _svd_rule(gs: Any, out: Tensor, out1: Tensor, out2: Tensor) -> Tensor:
    size = out1.shape[-1]
    left, values, right = out[..., :size], out1, out2[..., :size, :]
    by_left, by_values, by_right = gs
    if by_left is None and by_right is None:
        return left @ (by_values.unsqueeze(-1) * right)
    zeros = None
    if by_left is None:
        by_left = zeros = left.new_zeros(left.shape)
    by_right = right.new_zeros(right.shape) if by_right is None else by_right[..., :size, :]
    if zeros is None:
        by_left = by_left[..., :size]
    m, n = left.shape[-2], right.shape[-1]
    of_left = _skew(left.mH @ by_left)
    of_right = _skew(right @ by_right.mH)
    rows, columns = values.unsqueeze(-1), values.unsqueeze(-2)
    gaps = (columns - rows) * (columns + rows)
    inner = (of_left * columns + rows * of_right) / (gaps + _identity(gaps))
    if left.is_complex():
        _fixed("svd", _line(of_left).imag + _line(of_right).imag)
        inner = _off(inner) + (_line(of_left) / (2 * values)).diag_embed()
    if by_values is not None:
        inner = inner + by_values.to(inner.dtype).diag_embed()
    found = left @ (inner @ right)
    if m > n:
        beyond = by_left / columns
        found = found + (beyond - left @ (left.mH @ beyond)) @ right
    elif m < n:
        beyond = by_right / rows
        found = found + left @ (beyond - (beyond @ right.mH) @ right)
    return found


_svd = Op(
    "svd",
    lambda k, a, full: k.linalg("svd", (a,), full),
    inputs="a",
    params="full",
    outputs=3,
    partial=True,
    vjp={"a": _svd_rule},
    conjugate=False,
)
_svdvals = Op("svdvals", lambda k, a: k.linalg("svdvals", (a,))[0], inputs="a")


def decomposed(op: str, a: Tensor, full: bool = False) -> SVD:
    """U, S and Vᴴ of matrices."""
    return SVD(*apply(_svd, (matrices(op, a),), (bool(full),)))


@function(space="linalg", name="svd")
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> SVD:
    """The factors of A = U S Vᴴ: singular vectors, and singular values in descending order.

    See Note [gauges] for what has no gradient; of full matrices only the columns that belong to
    singular values have one. `driver` is for GPUs and must be None here.

    >>> import undertow as ut
    >>> ut.linalg.svd(ut.tensor([[0.0, 2.0], [3.0, 0.0]])).S
    tensor([3., 2.])
    """
    if driver is not None:
        raise ArgumentError(f"[svd] driver= belongs to cuSOLVER, got {driver!r}; leave it out")
    return decomposed("svd", A, full_matrices)


@function(space="linalg")
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values of a matrix, in descending order.

    >>> import undertow as ut
    >>> ut.linalg.svdvals(ut.tensor([[0.0, 2.0], [3.0, 0.0]]))
    tensor([3., 2.])
    """
    if driver is not None:
        raise ArgumentError(f"[svdvals] driver= belongs to cuSOLVER, got {driver!r}; leave it out")
    return singular_values("svdvals", A)


def singular_values(op: str, a: Tensor) -> Tensor:
    """The singular values of matrices, descending."""
    matrices(op, a)
    if differentiated(a):
        return decomposed(op, a).S
    found: Tensor = apply(_svdvals, (a,))
    return found


@function()
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> OldSVD:
    """U, S and V of A = U S Vᴴ, full matrices with `some=False`; U and V zero if not wanted.

    >>> import undertow as ut
    >>> ut.svd(ut.tensor([[0.0, 2.0], [3.0, 0.0]])).S
    tensor([3., 2.])
    """
    if not compute_uv:
        m, n = matrices("svd", input, "input").shape[-2:]
        lead = input.shape[:-2]
        zeros = [input.new_zeros((*lead, size, size)) for size in (m, n)]
        return OldSVD(zeros[0], singular_values("svd", input), zeros[1])
    found = decomposed("svd", input, not some)
    return OldSVD(found.U, found.S, found.Vh.mH)
