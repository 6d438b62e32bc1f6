"""Norms of vectors and matrices, and what is read off singular values: rank, condition, inverse."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...core.dispatch import apply, cast
from ...core.op import Op
from ...core.printing import in_lines
from ...core.register import function
from ...core.tensor import Tensor
from ...dtypes import DTypeLike, as_dtype, finfo, int64
from ...errors import ArgumentError, DimError, DTypeError, ShapeError
from ...shapes import Ints, wrap_dim, wrap_dims
from ..elementwise.comparison import where
from ..reduce.reduction import floating, vector_norm
from .matrices import batched, matrices, one_dtype
from .solving import inverted
from .spectra import decomposed, eigh, eigvalsh, singular_values


class LeastSquares(NamedTuple):
    """What `linalg.lstsq` returns."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor

    def __repr__(self) -> str:
        return in_lines(self)


# Norms -----------------------------------------------------------------------------------------
def _in_dtype(op: str, x: Tensor, dtype: Any) -> Tensor:
    """`x` in `dtype`, which must be of its kind and hold no less."""
    if dtype is not None:
        wanted = as_dtype(dtype)
        if x.is_complex() and not wanted.is_complex:
            raise DTypeError(f"[{op}] dtype={wanted} would drop the imaginary parts of {x.dtype}")
        x = cast(x, wanted)
    return floating(op, x)


def _vector(op: str, x: Tensor, ord: Any, dim: Any, keepdim: bool) -> Tensor:
    if not isinstance(ord, (int, float)):
        raise ArgumentError(f"[{op}] ord of a vector must be a number, got {ord!r}")
    dims = wrap_dims(op, dim, x.ndim)
    if (ord < 0 or ord == math.inf) and any(x.shape[d] == 0 for d in dims or range(x.ndim)):
        raise ShapeError(
            f"[{op}] the norm {ord} of no elements is not defined, got shape {x.shape}"
        )
    return vector_norm(op, x, ord, dims, keepdim)


@function(space="linalg", name="vector_norm")
def linalg_vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: Ints | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The norm of the elements over all or some dimensions, as of one vector.

    ord is a number, `inf` or `-inf`; 0 counts the nonzero elements. Where the norm is zero its
    gradient is zero.

    >>> import undertow as ut
    >>> ut.linalg.vector_norm(ut.tensor([[3.0, 4.0], [6.0, 8.0]]), dim=1)
    tensor([ 5., 10.])
    """
    return _vector("vector_norm", _in_dtype("vector_norm", x, dtype), ord, dim, keepdim)


def _matrix(op: str, a: Tensor, ord: Any, dim: Any, keepdim: bool) -> Tensor:
    if a.ndim < 2:
        raise ShapeError(f"[{op}] A must be a matrix or a batch of them, got shape {a.shape}")
    pair = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    if len(pair) != 2:
        raise ShapeError(f"[{op}] dim must be two dimensions, got {dim!r}")
    row, column = (wrap_dim(op, d, a.ndim) for d in pair)
    if row == column:
        raise ShapeError(f"[{op}] dim must be two different dimensions, got {dim!r}")
    if ord == "fro":
        return vector_norm(op, a, 2, (row, column), keepdim)
    if ord in ("nuc", 2, -2):
        values = singular_values(op, a.movedim((row, column), (-2, -1)))
        if ord == "nuc" or _empty(op, ord, values.shape[-1]):
            found = values.sum(-1)
        else:
            found = values.amax(-1) if ord == 2 else values.amin(-1)
    elif isinstance(ord, (int, float)) and abs(ord) in (1, math.inf):
        inner, outer = (row, column) if abs(ord) == 1 else (column, row)
        sums = a.abs().sum(inner, keepdim=True)
        if _empty(op, ord, a.shape[outer]):
            found = sums.sum((row, column))
        else:
            found = (sums.amax if ord > 0 else sums.amin)((row, column))
    else:
        raise ArgumentError(
            f"[{op}] ord of a matrix must be 'fro', 'nuc', ±1, ±2 or ±inf, got {ord!r}"
        )
    if keepdim:
        for d in sorted((row, column)):
            found = found.unsqueeze(d)
    return found


def _empty(op: str, ord: Any, size: int) -> bool:
    """Whether there is nothing to take the largest of: then that is 0; there is no smallest."""
    if not size and ord < 0:
        raise DimError(f"[{op}] the norm {ord} of a matrix without elements is not defined")
    return not size


@function(space="linalg")
def matrix_norm(
    A: Tensor,
    ord: float | str = "fro",
    dim: Ints = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """A norm of matrices: "fro", "nuc" (the sum of singular values), ±1, ±2 or ±inf.

    >>> import undertow as ut
    >>> ut.linalg.matrix_norm(ut.tensor([[1.0, -2.0], [3.0, 4.0]]), 1)
    tensor(6.)
    """
    return _matrix("matrix_norm", _in_dtype("matrix_norm", A, dtype), ord, dim, keepdim)


@function(space="linalg", name="norm")
def linalg_norm(
    A: Tensor,
    ord: float | str | None = None,
    dim: Ints | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """A norm of vectors or, with two dimensions and an `ord`, of matrices.

    Without `ord` it is the 2-norm of all elements over `dim`; with one and without `dim`, A is a
    vector or a matrix.

    >>> import undertow as ut
    >>> ut.linalg.norm(ut.tensor([[1.0, -2.0], [3.0, 4.0]]), "nuc")
    tensor(7.0711)
    """
    x = _in_dtype("norm", A, dtype)
    if ord is None:
        return _vector("norm", x, 2, dim, keepdim)
    dims: Any = (dim,) if isinstance(dim, int) else dim
    if dims is None:
        if x.ndim not in (1, 2):
            raise ShapeError(
                f"[norm] with ord and without dim A has 1 or 2 dimensions, got {x.shape}"
            )
        dims = tuple(range(x.ndim))
    if len(dims) not in (1, 2):
        raise ShapeError(
            f"[norm] with ord, dim is one dimension or two, got {dim!r}; vector_norm takes any"
        )
    if len(dims) == 2 and not (isinstance(dim, (tuple, list)) and len(dim) == 1):
        return _matrix("norm", x, ord, dims, keepdim)
    return _vector("norm", x, ord, dims, keepdim)


@function(method=False)
def frobenius_norm(input: Tensor, dim: Ints, keepdim: bool = False) -> Tensor:
    """The 2-norm of the elements over `dim`.

    >>> import undertow as ut
    >>> ut.frobenius_norm(ut.tensor([[3.0, 4.0]]), (0, 1))
    tensor(5.)
    """
    return _vector("frobenius_norm", floating("frobenius_norm", input), 2, dim, keepdim)


@function(method=False)
def nuclear_norm(input: Tensor, dim: Ints = (-2, -1), keepdim: bool = False) -> Tensor:
    """The sum of a matrix's singular values.

    >>> import undertow as ut
    >>> ut.nuclear_norm(ut.tensor([[3.0, 0.0], [0.0, -4.0]]))
    tensor(7.)
    """
    return _matrix("nuclear_norm", floating("nuclear_norm", input), "nuc", dim, keepdim)


@function(method=False)
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norm of the elements over all dimensions but one, which are kept; -1: over all of them.

    >>> import undertow as ut
    >>> ut.norm_except_dim(ut.tensor([[3.0, 4.0], [6.0, 8.0]]))
    tensor([[ 5.],
            [10.]])
    """
    v = floating("norm_except_dim", v)
    if dim == -1:
        return _vector("norm_except_dim", v, pow, None, False)
    kept = wrap_dim("norm_except_dim", dim, v.ndim)
    if v.ndim == 1:
        return v.abs()
    others = tuple(d for d in range(v.ndim) if d != kept)
    return _vector("norm_except_dim", v, pow, others, True)


@function(space="linalg")
def cond(A: Tensor, p: float | str | None = None) -> Tensor:
    """The condition number: the norm `p` of A times that of its inverse; infinite if singular.

    Without `p`, or with 2 or -2, it is the ratio of singular values, and A need not be square.

    >>> import undertow as ut
    >>> ut.linalg.cond(ut.tensor([[4.0, 0.0], [0.0, 2.0]]))
    tensor(2.)
    """
    matrices("cond", A)
    if p is None or p in (2, -2):
        values = singular_values("cond", A)
        if not values.shape[-1]:
            return values.new_zeros(values.shape[:-1])
        largest, smallest = values[..., 0], values[..., -1]
        return smallest / largest if p == -2 else largest / smallest
    matrices("cond", A, square=True)
    if p not in ("fro", "nuc", 1, -1, math.inf, -math.inf):
        raise ArgumentError(f"[cond] p must be 'fro', 'nuc', ±1, ±2 or ±inf, got {p!r}")
    if not A.shape[-1]:
        return _matrix("cond", A, "fro", (-2, -1), False) * 0
    inverse, info = inverted("cond", A, check=False)
    none = info != 0
    inverse = where(none.unsqueeze(-1).unsqueeze(-1), 0, inverse)
    sizes = [_matrix("cond", x, p, (-2, -1), False) for x in (A, inverse)]
    return where(none, math.inf, sizes[0] * sizes[1])


# Rank and pseudoinverse ------------------------------------------------------------------------
def _values(op: str, a: Tensor, hermitian: bool) -> Tensor:
    return eigvalsh(a).abs() if hermitian else singular_values(op, a)


def _bound(op: str, a: Tensor, values: Tensor, atol: Any, rtol: Any) -> Tensor:
    """What a singular value must exceed to count, for each matrix."""
    given = atol is not None
    if rtol is None:
        eps = finfo(a.dtype).eps * max(a.shape[-2:])
        rtol = eps
        if given:  # a tolerance that is given is the only one, unless it is zero
            rtol = (
                where(atol > 0, 0.0, eps) if isinstance(atol, Tensor) else 0.0 if atol > 0 else eps
            )
    atol = atol if given else 0.0
    largest = values.amax(-1)
    bound = largest * rtol
    least = atol if isinstance(atol, Tensor) else bound.new_full((), atol)
    return bound.maximum(least.to(bound.dtype)) if bound.shape else bound.maximum(least)


@function(space="linalg")
def matrix_rank(
    A: Tensor,
    tol: Tensor | float | None = None,
    hermitian: bool = False,
    *,
    atol: Tensor | float | None = None,
    rtol: Tensor | float | None = None,
) -> Tensor:
    """How many singular values exceed max(atol, rtol times the largest).

    rtol is by default the larger size times the dtype's eps, or 0 if `atol` is given; `tol` is an
    older word for `atol`.

    >>> import undertow as ut
    >>> ut.linalg.matrix_rank(ut.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    matrices("matrix_rank", A, square=hermitian)
    if tol is not None:
        atol, rtol = tol, 0.0
    values = _values("matrix_rank", A.detach(), hermitian)
    if not values.shape[-1]:
        return values.sum(-1).to(int64)
    bound = _bound("matrix_rank", A, values, atol, rtol)
    return (values > bound.unsqueeze(-1)).sum(-1)


def _pinv_rule(g: Tensor, a: Tensor, out: Tensor) -> Tensor:
    # Golub and Pereyra's, where the rank stays as it is; in brackets that make no large squares.
    m, n = a.shape[-2:]
    adjoint, g = out.mH, g.mH
    if m <= n:
        inner = g @ out
        right = inner @ adjoint
        return right - (out @ inner).mH - (a @ out) @ right + (adjoint @ out) @ (g - inner @ a)
    inner = out @ g
    left = adjoint @ inner
    return left - (inner @ out).mH - left @ (out @ a) + (g - a @ inner) @ (out @ adjoint)


def _pinv_forward(k: Any, a: Any, inverse: Any) -> Any:
    return k.copy(inverse)


_pinv = Op("pinv", _pinv_forward, inputs="a inverse", vjp={"a": _pinv_rule}, conjugate=False)


def pseudoinverse(op: str, a: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Tensor:
    """The pseudoinverse of matrices, whose gradient needs no singular vectors."""
    matrices(op, a, square=hermitian)
    plain = a.detach()
    if not a.numel():
        return a.mH @ (a @ a.mH)
    if hermitian:
        values, vectors = eigh(plain)
        sizes = values.abs()
        left, right = vectors, vectors.mH
    else:
        vectors, values, dual = decomposed(op, plain)
        sizes = values
        left, right = dual.mH, vectors.mH
    small = sizes <= _bound(op, plain, sizes, atol, rtol).unsqueeze(-1)
    factors = where(small, 0, 1 / where(small, 1, values))
    found = (left * factors.to(left.dtype).unsqueeze(-2)) @ right
    result: Tensor = apply(_pinv, (a, found))
    return result


@function(space="linalg")
def pinv(
    A: Tensor,
    rcond: Tensor | float | None = None,
    hermitian: bool = False,
    *,
    atol: Tensor | float | None = None,
    rtol: Tensor | float | None = None,
) -> Tensor:
    """The Moore-Penrose inverse; singular values up to max(atol, rtol times the largest) are zero.

    rtol as in `matrix_rank`; `rcond` is an older word for it. The gradient is that of matrices of
    the same rank.

    >>> import undertow as ut
    >>> ut.linalg.pinv(ut.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    return pseudoinverse("pinv", A, atol, rtol if rcond is None else rcond, hermitian)


@function()
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """`linalg.pinv` with a tolerance relative to the largest singular value.

    >>> import undertow as ut
    >>> ut.pinverse(ut.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return pseudoinverse("pinverse", input, None, rcond, False)


_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


@function(space="linalg")
def lstsq(
    A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> LeastSquares:
    """X that makes the norm of A X - B least, of several the smallest one.

    `rcond` says below which part of the largest a singular value counts as zero (eps times the
    larger size by default). All of LAPACK's drivers give the same X here, by singular values; as in
    torch "gels" leaves out the rank, "gels" and "gelsy", the default, the singular values, and
    "gelsy" the residuals: the squared norms of the columns of A X - B, which are there if A has
    more rows than columns and full rank.

    >>> import undertow as ut
    >>> A = ut.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> ut.linalg.lstsq(A, ut.tensor([[1.0], [3.0], [5.0]])).solution
    tensor([[1.0000],
            [2.0000]])
    """
    matrices("lstsq", A)
    one_dtype("lstsq", A, B)
    used = "gelsy" if driver is None else driver
    if used not in _DRIVERS:
        raise ArgumentError(f"[lstsq] driver must be one of {', '.join(_DRIVERS)}, got {driver!r}")
    vector = A.ndim - 1 == B.ndim and A.shape[:-1] == B.shape
    b = B.unsqueeze(-1) if vector else B
    if b.ndim < 2 or b.shape[-2] != A.shape[-2]:
        raise ShapeError(f"[lstsq] A of shape {A.shape} does not fit B of shape {B.shape}")
    a, b = batched("lstsq", A, b)
    m, n = a.shape[-2:]
    solution = pseudoinverse("lstsq", a, None, None if used == "gels" else rcond, False) @ b
    rank = matrix_rank(a, rtol=rcond)
    residuals = solution.flatten()[:0].abs()
    if m > n and used != "gelsy" and bool((rank == n).all()):
        difference = a @ solution - b
        residuals = (difference.abs() ** 2).sum(-2)
    return LeastSquares(
        solution.squeeze(-1) if vector else solution,
        residuals,
        rank if used != "gels" else rank.new_empty(0),
        singular_values("lstsq", a) if used in ("gelsd", "gelss") else a.real.new_empty(0),
    )
