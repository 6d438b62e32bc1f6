"""Factors with exchanged rows: LU of any matrix, LDL of symmetric ones."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...backends.registry import backend_of
from ...core.dispatch import apply, expand
from ...core.op import Op
from ...core.printing import in_lines
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError, ShapeError
from ...shapes import broadcast_shapes
from ..create.creation import arange, eye
from ..shape.diagonal import tril, triu
from ..shape.joining import cat
from .matrices import matrices, one_dtype, shaped, succeeded
from .triangular import substitute


class LU(NamedTuple):
    """What `linalg.lu` and `lu_unpack` return."""

    P: Tensor
    L: Tensor
    U: Tensor

    def __repr__(self) -> str:
        return in_lines(self)


class LUFactor(NamedTuple):
    """What `linalg.lu_factor` returns."""

    LU: Tensor
    pivots: Tensor

    def __repr__(self) -> str:
        return in_lines(self)


class LUFactorInfo(NamedTuple):
    """What `linalg.lu_factor_ex` returns."""

    LU: Tensor
    pivots: Tensor
    info: Tensor

    def __repr__(self) -> str:
        return in_lines(self)


class LDLFactor(NamedTuple):
    """What `linalg.ldl_factor` returns."""

    LD: Tensor
    pivots: Tensor

    def __repr__(self) -> str:
        return in_lines(self)


class LDLFactorInfo(NamedTuple):
    """What `linalg.ldl_factor_ex` returns."""

    LD: Tensor
    pivots: Tensor
    info: Tensor

    def __repr__(self) -> str:
        return in_lines(self)


# LU --------------------------------------------------------------------------------------------
_order = Op(  # which row of A each row of L U is, and the way back
    "row_order",
    lambda k, p, rows: k.linalg("row_order", (p,), rows),
    inputs="p",
    params="rows",
    outputs=2,
)


def _in_order(x: Tensor, order: Tensor) -> Tensor:
    """The rows of matrices by a permutation for each of them."""
    return x.gather(-2, expand(order.unsqueeze(-1), x.shape))


def _parts(packed: Tensor) -> tuple[Tensor, Tensor]:
    """L and U of a packed matrix."""
    m, n = packed.shape[-2:]
    least = min(m, n)
    lower = tril(packed[..., :least], -1) + eye(m, least, dtype=packed.dtype, device=packed.device)
    return lower, triu(packed[..., :least, :])


def _lu_rule(g: Tensor, out: Tensor, out1: Tensor) -> Tensor:
    # Of A in the order of L U: one block of it is square, what lies below or beside it is solved
    # for, and tells on the factor that it was solved with.
    m, n = out.shape[-2:]
    least = min(m, n)
    lower, upper = _parts(out)
    by_lower, by_upper = tril(g[..., :least], -1), triu(g[..., :least, :])
    square_l, square_u = lower[..., :least, :], upper[..., :least]
    by_l, by_u = by_lower[..., :least, :], by_upper[..., :least]
    beside = below = None
    if n > m:
        beside = substitute(square_l.mH, by_upper[..., m:], True, True)
        by_l = by_l - beside @ upper[..., m:].mH
    if m > n:
        below = _over(by_lower[..., n:, :], square_u)
        by_u = by_u - lower[..., n:, :].mH @ below
    inner = tril(square_l.mH @ by_l, -1) + triu(by_u @ square_u.mH)
    by_a = _over(substitute(square_l.mH, inner, True, True), square_u)
    if beside is not None:
        by_a = cat([by_a, beside], -1)
    if below is not None:
        by_a = cat([by_a, below], -2)
    return _in_order(by_a, apply(_order, (out1,), (m,))[1])


def _over(x: Tensor, upper: Tensor) -> Tensor:
    """X U⁻ᴴ."""
    return substitute(upper, x.mH, True).mH


_lu = Op(
    "lu",
    lambda k, a, pivot: k.linalg("lu", (a,), pivot),
    inputs="a",
    params="pivot",
    outputs=3,
    vjp={"a": _lu_rule},
    conjugate=False,
)


def _lu_of(op: str, a: Tensor, pivot: bool, check: bool) -> LUFactorInfo:
    found = LUFactorInfo(*apply(_lu, (matrices(op, a),), (bool(pivot),)))
    if check:
        succeeded(op, found.info, _zero_pivot)
    return found


def _zero_pivot(number: int) -> str:
    return (
        f"the matrix has no full rank, its pivot {number} is zero and lu_solve would divide by it; "
        "ut.linalg.lu and lu_factor_ex factor it all the same"
    )


@function(space="linalg")
def lu_factor(A: Tensor, *, pivot: bool = True) -> LUFactor:
    """L and U of A = P L U in one matrix, and the exchanges of rows, counted from 1.

    A pivot that is zero is an error, since `lu_solve` would divide by it; `linalg.lu` and
    `lu_factor_ex` factor such a matrix as well.

    >>> import undertow as ut
    >>> ut.linalg.lu_factor(ut.tensor([[1.0, 2.0], [4.0, 4.0]]))
    LUFactor(
    LU=tensor([[4.0000, 4.0000],
            [0.2500, 1.0000]]),
    pivots=tensor([2, 2], dtype=undertow.int32))
    """
    found = _lu_of("lu_factor", A, pivot, True)
    return LUFactor(found.LU, found.pivots)


@function(space="linalg")
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> LUFactorInfo:
    """`lu_factor`, and for each matrix 0 or which pivot is zero.

    >>> import undertow as ut
    >>> ut.linalg.lu_factor_ex(ut.zeros(2, 2)).info
    tensor(1, dtype=undertow.int32)
    """
    return _lu_of("lu_factor_ex", A, pivot, check_errors)


@function(space="linalg", name="lu")
def linalg_lu(A: Tensor, *, pivot: bool = True) -> LU:
    """The factors of A = P L U: a permutation, a lower and an upper triangular matrix.

    Without `pivot`, P has no elements.

    >>> import undertow as ut
    >>> P, L, U = ut.linalg.lu(ut.tensor([[1.0, 2.0], [4.0, 4.0]]))
    >>> L
    tensor([[1.0000, 0.0000],
            [0.2500, 1.0000]])
    >>> P @ L @ U
    tensor([[1., 2.],
            [4., 4.]])
    """
    found = _lu_of("lu", A, pivot, False)
    lower, upper = _parts(found.LU)
    return LU(_permutation(found.LU, found.pivots) if pivot else A.new_empty(0), lower, upper)


@function(name="lu", method=True)
def old_lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> LUFactor | LUFactorInfo:
    """`linalg.lu_factor`, or with `get_infos` `linalg.lu_factor_ex`.

    >>> import undertow as ut
    >>> ut.lu(ut.tensor([[2.0]]))[1]
    tensor([1], dtype=undertow.int32)
    """
    found = _lu_of("lu", A, pivot, False)
    return found if get_infos else LUFactor(found.LU, found.pivots)


def _permutation(packed: Tensor, pivots: Tensor) -> Tensor:
    rows = packed.shape[-2]
    order = apply(_order, (pivots,), (rows,))[0].unsqueeze(-2)
    return (order == arange(rows, device=packed.device).unsqueeze(-1)).to(packed.dtype)


def _check_pivots(op: str, packed: Tensor, pivots: Tensor) -> None:
    least = min(packed.shape[-2:])
    if pivots.dtype.name != "int32":
        raise DTypeError(
            f"[{op}] pivots must be int32, as lu_factor gives them, got {pivots.dtype}"
        )
    if pivots.shape != (*packed.shape[:-2], least):
        raise ShapeError(
            f"[{op}] an LU of shape {packed.shape} has pivots of shape "
            f"{(*packed.shape[:-2], least)}, got {pivots.shape}"
        )
    _in_rows(op, pivots, packed.shape[-2], "lu_factor")


def _in_rows(op: str, pivots: Tensor, rows: int, factor: str) -> None:
    """Refuse pivots that are not numbers of rows, which count from 1."""

    def error(host: Any) -> ArgumentError:
        return ArgumentError(
            f"[{op}] pivots count rows from 1 to {rows}, got {int(host.min())} to "
            f"{int(host.max())}; pass those that {factor} gave"
        )

    if pivots.numel():
        backend_of(pivots._array).require(pivots._array, 1, rows + 1, error)


@function(method=False)
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> LU:
    """P, L and U out of what `linalg.lu_factor` packed; those not asked for have no elements.

    >>> import undertow as ut
    >>> ut.lu_unpack(*ut.linalg.lu_factor(ut.tensor([[1.0, 2.0], [4.0, 4.0]]))).U
    tensor([[4., 4.],
            [0., 1.]])
    """
    shaped("lu_unpack", LU_data, "LU_data")
    none = LU_data.new_empty(0)
    if unpack_pivots:
        _check_pivots("lu_unpack", LU_data, LU_pivots)
    permutation = _permutation(LU_data, LU_pivots) if unpack_pivots else none
    lower, upper = _parts(LU_data) if unpack_data else (none, none)
    return LU(permutation, lower, upper)


def _lu_solved(
    op: str, packed: Tensor, pivots: Tensor, b: Tensor, left: bool, adjoint: bool
) -> Tensor:
    matrices(op, packed, "LU", square=True)
    matrices(op, b, "B")
    one_dtype(op, packed, b, ("LU", "B"))
    _check_pivots(op, packed, pivots)
    if not left:
        b, adjoint = b.mH, not adjoint
    n = packed.shape[-1]
    if b.shape[-2] != n:
        raise ShapeError(f"[{op}] an LU of shape {packed.shape} does not fit B of shape {b.shape}")
    lead = broadcast_shapes(op, packed.shape[:-2], b.shape[:-2])
    packed, pivots = expand(packed, (*lead, n, n)), expand(pivots, (*lead, n))
    b = expand(b, lead + b.shape[-2:])
    order, back = apply(_order, (pivots,), (n,))
    if adjoint:
        x = substitute(packed.mH, b, False)
        x = _in_order(substitute(packed.mH, x, True, True), back)
    else:
        x = substitute(packed, _in_order(b, order), False, True)
        x = substitute(packed, x, True)
    return x if left else x.mH


@function(space="linalg", name="lu_solve")
def linalg_lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """X of A X = B (left), X A = B, or with `adjoint` Aᴴ in A's place, given A's `lu_factor`.

    >>> import undertow as ut
    >>> LU, pivots = ut.linalg.lu_factor(ut.tensor([[0.0, 2.0], [1.0, 0.0]]))
    >>> ut.linalg.lu_solve(LU, pivots, ut.tensor([[4.0], [3.0]]))
    tensor([[3.],
            [2.]])
    """
    return _lu_solved("lu_solve", LU, pivots, B, left, adjoint)


@function()
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """`linalg.lu_solve` with its arguments in an older order.

    >>> import undertow as ut
    >>> ut.lu_solve(ut.ones(1, 1), *ut.linalg.lu_factor(ut.tensor([[4.0]])))
    tensor([[0.2500]])
    """
    return _lu_solved("lu_solve", LU_data, LU_pivots, b, True, False)


# LDL -------------------------------------------------------------------------------------------
_ldl = Op(  # without a rule: which blocks it has changes with the values
    "ldl",
    lambda k, a, hermitian: k.linalg("ldl", (a,), hermitian),
    inputs="a",
    params="hermitian",
    outputs=3,
)
_ldl_solve = Op(
    "ldl_solve",
    lambda k, a, p, b, hermitian: k.linalg("ldl_solve", (a, p, b), hermitian)[0],
    inputs="a p b",
    params="hermitian",
    conjugate=False,
)


@_ldl_solve.vjp("b")
def _ldl_solve_rule(g: Tensor, a: Tensor, p: Tensor, hermitian: bool) -> Tensor:
    if hermitian or not a.is_complex():
        found: Tensor = apply(_ldl_solve, (a, p, g), (hermitian,))
        return found
    return apply(_ldl_solve, (a, p, g.conj()), (False,)).conj()


def _ldl_of(op: str, a: Tensor, hermitian: bool, check: bool) -> LDLFactorInfo:
    found = LDLFactorInfo(*apply(_ldl, (matrices(op, a, square=True),), (bool(hermitian),)))
    if check:
        succeeded(op, found.info, _zero_block)
    return found


def _zero_block(number: int) -> str:
    return (
        f"the block {number} of D is zero and ldl_solve would divide by it; "
        "ut.linalg.ldl_factor_ex factors the matrix all the same"
    )


@function(space="linalg")
def ldl_factor(A: Tensor, *, hermitian: bool = False) -> LDLFactor:
    """L and D of A = L D Lᵀ (or L D Lᴴ) for a symmetric A, in one matrix, and the exchanges.

    Only the lower triangle is looked at. It has no gradient; `ldl_solve` has one for B. A block
    of D that is zero is an error, but not to `ldl_factor_ex`.

    >>> import undertow as ut
    >>> ut.linalg.ldl_factor(ut.tensor([[2.0, 1.0], [1.0, 3.0]])).LD
    tensor([[2.0000, 0.0000],
            [0.5000, 2.5000]])
    """
    found = _ldl_of("ldl_factor", A, hermitian, True)
    return LDLFactor(found.LD, found.pivots)


@function(space="linalg")
def ldl_factor_ex(
    A: Tensor, *, hermitian: bool = False, check_errors: bool = False
) -> LDLFactorInfo:
    """`ldl_factor`, and for each matrix 0 or which block of D is zero.

    >>> import undertow as ut
    >>> ut.linalg.ldl_factor_ex(ut.eye(2)).info
    tensor(0, dtype=undertow.int32)
    """
    return _ldl_of("ldl_factor_ex", A, hermitian, check_errors)


@function(space="linalg")
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """X of A X = B for a symmetric A, given its `ldl_factor`.

    >>> import undertow as ut
    >>> LD, pivots = ut.linalg.ldl_factor(ut.tensor([[2.0, 1.0], [1.0, 3.0]]))
    >>> ut.linalg.ldl_solve(LD, pivots, ut.tensor([[3.0], [4.0]]))
    tensor([[1.],
            [1.]])
    """
    matrices("ldl_solve", LD, "LD", square=True)
    matrices("ldl_solve", B, "B")
    one_dtype("ldl_solve", LD, B, ("LD", "B"))
    n = LD.shape[-1]
    if B.shape[-2] != n:
        raise ShapeError(f"[ldl_solve] LD of shape {LD.shape} does not fit B of shape {B.shape}")
    if pivots.shape != LD.shape[:-1]:
        raise ArgumentError(
            f"[ldl_solve] an LD of shape {LD.shape} has pivots of shape {LD.shape[:-1]}, "
            f"got {pivots.shape}"
        )
    _in_rows("ldl_solve", pivots.abs(), n, "ldl_factor")  # a negative one begins a block of two
    lead = broadcast_shapes("ldl_solve", LD.shape[:-2], B.shape[:-2])
    given = expand(LD, (*lead, n, n)), expand(pivots, (*lead, n)), expand(B, lead + B.shape[-2:])
    found: Tensor = apply(_ldl_solve, given, (bool(hermitian),))
    return found
