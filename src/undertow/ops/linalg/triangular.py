"""Systems with triangular matrices, and what is solved by them: Cholesky factors."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...backends.base import Array, Forms
from ...core.dispatch import apply
from ...core.op import Op
from ...core.printing import in_lines
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ShapeError
from ..create.creation import eye
from ..shape.diagonal import tril, triu
from .matrices import batched, matrices, one_dtype, succeeded


class CholeskyInfo(NamedTuple):
    """What `linalg.cholesky_ex` returns."""

    L: Tensor
    info: Tensor

    def __repr__(self) -> str:
        return in_lines(self)


class TriangularSolution(NamedTuple):
    """What `triangular_solve` returns."""

    solution: Tensor
    cloned_coefficient: Tensor

    def __repr__(self) -> str:
        return in_lines(self)


# Triangular systems ----------------------------------------------------------------------------
def _substitute(k: Forms, a: Array, b: Array, upper: bool, unit: bool) -> Any:
    return k.linalg("triangular", (a, b), upper, unit)[0]


def _substitute_rule(
    g: Tensor, a: Tensor, out: Tensor, upper: bool, unit: bool, needs: tuple[bool, bool]
) -> Any:
    by_b = substitute(a.mH, g, not upper, unit)
    if not needs[0]:
        return None, by_b
    by_a = -(by_b @ out.mH)
    return triu(by_a, int(unit)) if upper else tril(by_a, -int(unit)), by_b


_triangular = Op(
    "solve_triangular",
    _substitute,
    inputs="a b",
    params="upper unit",
    joint=_substitute_rule,
    conjugate=False,
)


def substitute(a: Tensor, b: Tensor, upper: bool, unit: bool = False) -> Tensor:
    """X of A X = B for matrices with the same batch dimensions, A triangular."""
    found: Tensor = apply(_triangular, (a, b), (upper, unit))
    return found


def _system(op: str, a: Tensor, b: Tensor, left: bool = True) -> list[Tensor]:
    """A and B checked and broadcast."""
    matrices(op, a, square=True)
    matrices(op, b, "B")
    one_dtype(op, a, b)
    size = b.shape[-2 if left else -1]
    if a.shape[-1] != size:
        product = "A X" if left else "X A"
        raise ShapeError(
            f"[{op}] {product} = B: A of shape {a.shape} does not fit B of shape {b.shape}"
        )
    return batched(op, a, b)


@function(space="linalg")
def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """X of A X = B, or of X A = B with `left=False`, where A is triangular.

    The other triangle of A is not looked at, nor is the diagonal of a unitriangular one. A zero on
    the diagonal gives infinities, no error.

    >>> import undertow as ut
    >>> A = ut.tensor([[2.0, 0.0], [1.0, 4.0]])
    >>> ut.linalg.solve_triangular(A, ut.tensor([[2.0], [9.0]]), upper=False)
    tensor([[1.],
            [2.]])
    """
    a, b = _system("solve_triangular", A, B, left)
    if left:
        return substitute(a, b, upper, unitriangular)
    return substitute(a.mT, b.mT, not upper, unitriangular).mT


@function()
def triangular_solve(
    input: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> TriangularSolution:
    """X of A X = B, or of Aᵀ X = B, for a triangular A; and a copy of A.

    >>> import undertow as ut
    >>> A = ut.tensor([[2.0, 1.0], [0.0, 4.0]])
    >>> ut.triangular_solve(ut.tensor([[4.0], [8.0]]), A).solution
    tensor([[1.],
            [2.]])
    """
    a, b = _system("triangular_solve", A, input)
    if transpose:
        found = substitute(a.mT, b, not upper, unitriangular)
    else:
        found = substitute(a, b, upper, unitriangular)
    return TriangularSolution(found, a.clone())


# Cholesky factors ------------------------------------------------------------------------------
def _cholesky_rule(g: Tensor, out: Tensor, upper: bool) -> Tensor:
    factor, g = (out.mH, g.mH) if upper else (out, g)
    inner = factor.mH @ g
    inner = tril(inner) + tril(inner, -1).mH
    half = substitute(factor.mH, inner, True)  # L⁻ᴴ inner L⁻¹ / 2
    return substitute(factor.mH, half.mH, True).mH * 0.5


_cholesky = Op(
    "cholesky",
    lambda k, a, upper: k.linalg("cholesky", (a,), upper),
    inputs="a",
    params="upper",
    outputs=2,
    vjp={"a": _cholesky_rule},
    conjugate=False,
)


def _factored(op: str, a: Tensor, upper: bool, check: bool) -> CholeskyInfo:
    found = CholeskyInfo(*apply(_cholesky, (matrices(op, a, square=True),), (upper,)))
    if check:
        succeeded(
            op,
            found.info,
            lambda number: (
                f"the matrix is not positive definite: its leading minor of order {number} "
                "is not positive"
            ),
        )
    return found


@function(space="linalg")
def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The lower triangular L with A = L Lᴴ of a positive definite matrix, or the upper Lᴴ.

    Only the triangle that is asked for is looked at; the gradient is that of a symmetric A.

    >>> import undertow as ut
    >>> ut.linalg.cholesky(ut.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    return _factored("cholesky", A, upper, True).L


@function(space="linalg")
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyInfo:
    """`cholesky`, and for each matrix 0 or which leading minor is not positive, without an error.

    >>> import undertow as ut
    >>> ut.linalg.cholesky_ex(-ut.eye(2)).info
    tensor(1, dtype=undertow.int32)
    """
    return _factored("cholesky_ex", A, upper, check_errors)


@function(name="cholesky")
def old_cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """`linalg.cholesky`.

    >>> import undertow as ut
    >>> ut.cholesky(ut.tensor([[9.0]]))
    tensor([[3.]])
    """
    return _factored("cholesky", input, upper, True).L


@function()
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X of A X = B, given the Cholesky factor of A.

    >>> import undertow as ut
    >>> L = ut.linalg.cholesky(ut.tensor([[4.0, 2.0], [2.0, 5.0]]))
    >>> ut.cholesky_solve(ut.tensor([[6.0], [7.0]]), L)
    tensor([[1.],
            [1.]])
    """
    factor, b = _system("cholesky_solve", L, B)
    if upper:
        return substitute(factor, substitute(factor.mH, b, False), True)
    return substitute(factor.mH, substitute(factor, b, False), True)


@function()
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of a matrix whose Cholesky factor is given.

    >>> import undertow as ut
    >>> ut.cholesky_inverse(ut.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([[0.2500, 0.0000],
            [0.0000, 1.0000]])
    """
    matrices("cholesky_inverse", L, "L", square=True)
    identity = eye(L.shape[-1], dtype=L.dtype, device=L.device)
    return cholesky_solve(identity, L, upper)
