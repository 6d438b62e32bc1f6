# Written by tools/stubs.py: run `make stubs` instead of editing it.
"""Linear algebra: torch's `linalg`, published by `undertow.ops`."""

from collections.abc import Sequence

from ...core.tensor import Tensor
from ...dtypes import DTypeLike
from ...errors import LinAlgError as LinAlgError
from ...ops.linalg.matrix_norms import LeastSquares
from ...ops.linalg.orthogonal import QR
from ...ops.linalg.pivoted import LU, LDLFactor, LDLFactorInfo, LUFactor, LUFactorInfo
from ...ops.linalg.solving import InverseInfo, SignLogDet, SolveInfo
from ...ops.linalg.spectra import SVD, Eigen
from ...ops.linalg.triangular import CholeskyInfo
from ...shapes import Ints

def solve_triangular(
    A: Tensor,
    B: Tensor,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """X of A X = B, or of X A = B with `left=False`, where A is triangular."""

def cholesky(A: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """The lower triangular L with A = L Lᴴ of a positive definite matrix, or the upper Lᴴ."""

def cholesky_ex(
    A: Tensor,
    *,
    upper: bool = False,
    check_errors: bool = False,
    out: tuple[Tensor, ...] | list[Tensor] | None = None,
) -> CholeskyInfo:
    """`cholesky`, and for each matrix 0 or which leading minor is not positive, without an error."""

def qr(
    A: Tensor, mode: str = "reduced", *, out: tuple[Tensor, ...] | list[Tensor] | None = None
) -> QR:
    """The factors of A = Q R: orthonormal columns and an upper triangular matrix."""

def householder_product(A: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first columns of H₁ H₂ …, whose vectors lie below the diagonal of A, as of `geqrf`."""

def eigh(
    A: Tensor, UPLO: str = "L", *, out: tuple[Tensor, ...] | list[Tensor] | None = None
) -> Eigen:
    """The eigenvalues of a symmetric or Hermitian matrix, ascending, and its eigenvectors."""

def eigvalsh(A: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of a symmetric or Hermitian matrix, ascending."""

def eig(A: Tensor, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> Eigen:
    """The eigenvalues of a square matrix, in no order, and its eigenvectors, as complex numbers."""

def eigvals(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of a square matrix, in no order, as complex numbers."""

def svd(
    A: Tensor,
    full_matrices: bool = True,
    *,
    driver: str | None = None,
    out: tuple[Tensor, ...] | list[Tensor] | None = None,
) -> SVD:
    """The factors of A = U S Vᴴ: singular vectors, and singular values in descending order."""

def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """The singular values of a matrix, in descending order."""

def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """X of A X = B for a square A, or of X A = B with `left=False`; B may be a vector."""

def solve_ex(
    A: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    check_errors: bool = False,
    out: tuple[Tensor, ...] | list[Tensor] | None = None,
) -> SolveInfo:
    """`solve`, and for each matrix 0 or which pivot is zero, without an error."""

def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of a square matrix; one that is singular is an error."""

def inv_ex(
    A: Tensor, *, check_errors: bool = False, out: tuple[Tensor, ...] | list[Tensor] | None = None
) -> InverseInfo:
    """`inv`, and for each matrix 0 or which pivot is zero, without an error."""

def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The determinant of a square matrix."""

def slogdet(A: Tensor, *, out: tuple[Tensor, ...] | list[Tensor] | None = None) -> SignLogDet:
    """The sign (of complex matrices: the phase) of the determinant, and the log of its size."""

def matrix_exp(A: Tensor) -> Tensor:
    """The exponential of a square matrix."""

def matrix_power(A: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """A square matrix to an integer power; a negative one is a power of the inverse."""

def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`ut.matmul`."""

def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The product of two or more matrices, in the order that needs the fewest multiplications."""

def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """The sum of conj(x) * y along `dim`, broadcast."""

def cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """The cross product of vectors of 3 elements along `dim`."""

def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """A view of the diagonals of matrices, those of the last two dimensions by default."""

def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of each element, ascending, in rows; N is by default the last size."""

def tensorinv(A: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """The inverse of a tensor seen as a matrix from its first `ind` dimensions to the others."""

def tensorsolve(
    A: Tensor, B: Tensor, dims: Ints | None = None, *, out: Tensor | None = None
) -> Tensor:
    """X of tensordot(A, X) = B, where A is seen as a square matrix; `dims` of A are moved last."""

def vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: Ints | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The norm of the elements over all or some dimensions, as of one vector."""

def matrix_norm(
    A: Tensor,
    ord: float | str = "fro",
    dim: Ints = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """A norm of matrices: 'fro', 'nuc' (the sum of singular values), ±1, ±2 or ±inf."""

def norm(
    A: Tensor,
    ord: float | str | None = None,
    dim: Ints | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """A norm of vectors or, with two dimensions and an `ord`, of matrices."""

def cond(A: Tensor, p: float | str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The condition number: the norm `p` of A times that of its inverse; infinite if singular."""

def matrix_rank(
    A: Tensor,
    tol: Tensor | float | None = None,
    hermitian: bool = False,
    *,
    atol: Tensor | float | None = None,
    rtol: Tensor | float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """How many singular values exceed max(atol, rtol times the largest)."""

def pinv(
    A: Tensor,
    rcond: Tensor | float | None = None,
    hermitian: bool = False,
    *,
    atol: Tensor | float | None = None,
    rtol: Tensor | float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The Moore-Penrose inverse; singular values up to max(atol, rtol times the largest) are zero."""

def lstsq(
    A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> LeastSquares:
    """X that makes the norm of A X - B least, of several the smallest one."""

def lu_factor(
    A: Tensor, *, pivot: bool = True, out: tuple[Tensor, ...] | list[Tensor] | None = None
) -> LUFactor:
    """L and U of A = P L U in one matrix, and the exchanges of rows, counted from 1."""

def lu_factor_ex(
    A: Tensor,
    *,
    pivot: bool = True,
    check_errors: bool = False,
    out: tuple[Tensor, ...] | list[Tensor] | None = None,
) -> LUFactorInfo:
    """`lu_factor`, and for each matrix 0 or which pivot is zero."""

def lu(
    A: Tensor, *, pivot: bool = True, out: tuple[Tensor, ...] | list[Tensor] | None = None
) -> LU:
    """The factors of A = P L U: a permutation, a lower and an upper triangular matrix."""

def lu_solve(
    LU: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    adjoint: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """X of A X = B (left), X A = B, or with `adjoint` Aᴴ in A's place, given A's `lu_factor`."""

def ldl_factor(
    A: Tensor, *, hermitian: bool = False, out: tuple[Tensor, ...] | list[Tensor] | None = None
) -> LDLFactor:
    """L and D of A = L D Lᵀ (or L D Lᴴ) for a symmetric A, in one matrix, and the exchanges."""

def ldl_factor_ex(
    A: Tensor,
    *,
    hermitian: bool = False,
    check_errors: bool = False,
    out: tuple[Tensor, ...] | list[Tensor] | None = None,
) -> LDLFactorInfo:
    """`ldl_factor`, and for each matrix 0 or which block of D is zero."""

def ldl_solve(
    LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False, out: Tensor | None = None
) -> Tensor:
    """X of A X = B for a symmetric A, given its `ldl_factor`."""

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]
