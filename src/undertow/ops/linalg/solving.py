"""Linear systems: LU factors, solutions, inverses, determinants."""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import dtypes
from ...core.dispatch import apply, cast, expand
from ...core.op import Op
from ...core.printing import in_lines
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError, ShapeError
from ...shapes import broadcast_shapes
from ..create.creation import zeros_like
from .matrices import matrices, one_dtype, singular, succeeded


class SolveInfo(NamedTuple):
    """What `linalg.solve_ex` returns."""

    result: Tensor
    info: Tensor

    def __repr__(self) -> str:
        return in_lines(self)


class InverseInfo(NamedTuple):
    """What `linalg.inv_ex` returns."""

    inverse: Tensor
    info: Tensor

    def __repr__(self) -> str:
        return in_lines(self)


class SignLogDet(NamedTuple):
    """What `slogdet` returns."""

    sign: Tensor
    logabsdet: Tensor

    def __repr__(self) -> str:
        return in_lines(self)


# Solutions -------------------------------------------------------------------------------------
def _solve_rule(g: Tensor, a: Tensor, out: Tensor, needs: tuple[bool, bool]) -> Any:
    by_b = apply(_solve, (a.mH, g))[0]
    return (-(by_b @ out.mH) if needs[0] else None), by_b


_solve = Op(
    "solve",
    lambda k, a, b: k.linalg("solve", (a, b)),
    inputs="a b",
    outputs=2,
    joint=_solve_rule,
    conjugate=False,
)


def _solved(op: str, a: Tensor, b: Tensor, left: bool, check: bool) -> SolveInfo:
    matrices(op, a, square=True)
    one_dtype(op, a, b)
    vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])
    if vector and not left:
        raise ArgumentError(f"[{op}] left=False takes matrices, got B of shape {b.shape}")
    if vector:
        b = b.unsqueeze(-1)
    if not left:
        a, b = a.mT, b.mT
    if b.ndim < 2 or b.shape[-2] != a.shape[-1]:
        raise ShapeError(
            f"[{op}] A of shape {a.shape} does not fit B of shape "
            f"{b.shape[:-1] if vector else b.shape}"
        )
    own = a.shape[:-2]
    lead = broadcast_shapes(op, own, b.shape[:-2])
    a, b = expand(a, lead + a.shape[-2:]), expand(b, lead + b.shape[-2:])
    x, info = apply(_solve, (a, b))
    if check:
        succeeded(op, info, singular)
    x = x if left else x.mT
    if own != lead:  # one number for each matrix that was given
        first = [slice(0, 1) if size == 1 else slice(None) for size in own]
        index = (*(0,) * (len(lead) - len(own)), *first)
        info = info[index] if info.numel() else info.new_zeros(own)
    return SolveInfo(x.squeeze(-1) if vector else x, info)


@function(space="linalg")
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X of A X = B for a square A, or of X A = B with `left=False`; B may be a vector.

    >>> import undertow as ut
    >>> ut.linalg.solve(ut.tensor([[0.0, 2.0], [1.0, 0.0]]), ut.tensor([4.0, 3.0]))
    tensor([3., 2.])
    """
    return _solved("solve", A, B, left, True).result


@function(space="linalg")
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> SolveInfo:
    """`solve`, and for each matrix 0 or which pivot is zero, without an error.

    >>> import undertow as ut
    >>> ut.linalg.solve_ex(ut.zeros(2, 2), ut.ones(2)).info
    tensor(1, dtype=undertow.int32)
    """
    return _solved("solve_ex", A, B, left, check_errors)


# Inverses --------------------------------------------------------------------------------------
_inv = Op(
    "inv",
    lambda k, a: k.linalg("inv", (a,)),
    inputs="a",
    outputs=2,
    vjp={"a": lambda g, out: -(out.mH @ g @ out.mH)},
    conjugate=False,
)


def inverted(op: str, a: Tensor, check: bool = True) -> InverseInfo:
    """The inverses of square matrices."""
    found = InverseInfo(*apply(_inv, (matrices(op, a, square=True),)))
    if check:
        succeeded(op, found.info, singular)
    return found


@function(space="linalg")
def inv(A: Tensor) -> Tensor:
    """The inverse of a square matrix; one that is singular is an error.

    >>> import undertow as ut
    >>> ut.linalg.inv(ut.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return inverted("inv", A).inverse


@function(space="linalg")
def inv_ex(A: Tensor, *, check_errors: bool = False) -> InverseInfo:
    """`inv`, and for each matrix 0 or which pivot is zero, without an error.

    >>> import undertow as ut
    >>> ut.linalg.inv_ex(ut.eye(2)).info
    tensor(0, dtype=undertow.int32)
    """
    return inverted("inv_ex", A, check_errors)


@function()
def inverse(input: Tensor) -> Tensor:
    """`linalg.inv`.

    >>> import undertow as ut
    >>> ut.inverse(ut.tensor([[2.0]]))
    tensor([[0.5000]])
    """
    return inverted("inverse", input).inverse


# Determinants ----------------------------------------------------------------------------------
def _each(g: Tensor) -> Tensor:
    """A number for each matrix, as a matrix of one element."""
    return g.unsqueeze(-1).unsqueeze(-1)


# Note [determinants]
# With X = A⁻¹ the derivatives of det along E, then F, are det tr(XE), det (tr(XE) tr(XF) -
# tr(XEXF)) and so on. Near a singular matrix the terms are far larger than what they leave. So the
# first two come from backends, which do not divide by what is small. From the third on they are
# such formulas, in double precision, and an error where that has too few digits.
def _second(a: Tensor, e: Tensor) -> Tensor:
    found: Tensor = apply(_second_cofactors, (a, e))
    return found


def _third_rule(g: Tensor, a: Tensor, e: Tensor) -> Tensor:
    if a.shape[-1] < 3:
        return zeros_like(a)
    wide = dtypes.complex128 if a.is_complex() else dtypes.float64
    e, f, matrix = cast(e, wide), cast(g, wide), cast(a, wide)
    x = inverted("det, third derivative", matrix).inverse
    known = [m.detach().abs().sum(-1) for m in (matrix, x)]
    condition = (known[0].amax(-1) * known[1].amax(-1)).amax().item() if a.numel() else 0.0
    if condition > _THIRD:
        raise NotImplementedError(
            f"[det] the third derivative at a matrix that is nearly singular (its condition is "
            f"{condition:.1e}) would have no right digit"
        )
    xe, xf = x @ e, x @ f
    by_e, by_f, both = (_each(m.diagonal(0, -2, -1).sum(-1)) for m in (xe, xf, xe @ xf))
    inner = (by_e * by_f - both) * x - (by_f * xe + by_e * xf - xe @ xf - xf @ xe) @ x
    return cast((_each(_determinant(matrix)) * inner).mH, a.dtype)


_THIRD = 1e7  # the condition whose square a double's digits still bear
_second_cofactors = Op(
    "second_cofactors",
    lambda k, a, e: k.linalg("second_cofactors", (a, e))[0],
    inputs="a e",
    vjp={"a": _third_rule, "e": lambda g, a: _second(a, g)},
    conjugate=False,
)
_cofactors = Op(
    "cofactors",
    lambda k, a: k.linalg("cofactors", (a,))[0],
    inputs="a",
    vjp={"a": lambda g, a: _second(a, g)},
    conjugate=False,
)
_det = Op(
    "det",
    lambda k, a: k.linalg("det", (a,))[0],
    inputs="a",
    vjp={"a": lambda g, a: _each(g) * apply(_cofactors, (a,))},
    conjugate=False,
)


def _determinant(a: Tensor) -> Tensor:
    found: Tensor = apply(_det, (a,))
    return found


def _slogdet_rule(gs: Any, a: Tensor, out: Tensor) -> Tensor:
    by_sign, by_log = gs
    inverse = apply(_inv, (a,))[0]
    if a.is_complex():  # the sign turns by the imaginary part of what the logarithm grows by
        by_log = by_log - 1j * (by_sign.conj() * out).imag
    return _each(by_log) * inverse.mH


_slogdet = Op(
    "slogdet",
    lambda k, a: k.linalg("slogdet", (a,)),
    inputs="a",
    outputs=2,
    vjp={"a": _slogdet_rule},
    conjugate=False,
)


def _sign_and_log(op: str, a: Tensor) -> SignLogDet:
    return SignLogDet(*apply(_slogdet, (matrices(op, a, square=True),)))


@function(space="linalg", name="det")
def linalg_det(A: Tensor) -> Tensor:
    """The determinant of a square matrix.

    Its first two derivatives exist for singular matrices as well, the third is an error there.

    >>> import undertow as ut
    >>> ut.linalg.det(ut.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(-2.)
    """
    return _determinant(matrices("det", A, square=True))


@function()
def det(input: Tensor) -> Tensor:
    """`linalg.det`.

    >>> import undertow as ut
    >>> ut.det(ut.tensor([[3.0, 0.0], [0.0, 2.0]]))
    tensor(6.)
    """
    return _determinant(matrices("det", input, square=True))


@function(space="linalg", name="slogdet")
def linalg_slogdet(A: Tensor) -> SignLogDet:
    """The sign (of complex matrices: the phase) of the determinant, and the log of its size.

    >>> import undertow as ut
    >>> ut.linalg.slogdet(-ut.eye(3))
    SignLogDet(
    sign=tensor(-1.),
    logabsdet=tensor(0.))
    """
    return _sign_and_log("slogdet", A)


@function()
def slogdet(input: Tensor) -> SignLogDet:
    """`linalg.slogdet`.

    >>> import undertow as ut
    >>> ut.slogdet(ut.eye(2)).logabsdet
    tensor(0.)
    """
    return _sign_and_log("slogdet", input)


@function()
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant: NaN where that is negative, minus infinity at zero.

    >>> import undertow as ut
    >>> ut.logdet(ut.eye(2))
    tensor(0.)
    """
    sign, size = _sign_and_log("logdet", input)
    if input.is_complex():
        return sign.log() + size
    return size.masked_fill(sign == -1, float("nan"))
