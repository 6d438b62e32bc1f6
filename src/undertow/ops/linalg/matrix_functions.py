"""Functions of matrices: powers, exponentials, products of many; and tensors seen as matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.dispatch import apply, cast
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor
from ...dtypes import float32, int64
from ...errors import ArgumentError, DTypeError, ShapeError
from ...shapes import Ints, as_int, as_ints, broadcast_shapes, wrap_dim
from ..create.creation import arange, eye, ones
from ..reduce.reduction import floating, is_half
from ..shape.diagonal import tril
from ..shape.joining import cat
from ..shape.movement import reshaped
from .matmul import cross as old_cross
from .matmul import matmul, operands
from .matrices import matrices
from .solving import inv, inverted, solve


# Powers and exponentials -----------------------------------------------------------------------
def _expm_rule(g: Tensor, a: Tensor) -> Tensor:
    """The corner of exp of [[Aᴴ, G], [0, Aᴴ]]."""
    n = a.shape[-1]
    adjoint = a.mH
    above = cat([adjoint, g], -1)
    below = cat([adjoint.new_zeros(adjoint.shape), adjoint], -1)
    found: Tensor = apply(_expm, (cat([above, below], -2),))
    return found[..., :n, n:]


_expm = Op(
    "matrix_exp",
    lambda k, a: k.linalg("expm", (a,))[0],
    inputs="a",
    vjp={"a": _expm_rule},
    conjugate=False,
)


def _exponential(a: Tensor) -> Tensor:
    if is_half(a):
        return cast(_exponential(cast(a, float32)), a.dtype)
    found: Tensor = apply(_expm, (matrices("matrix_exp", a, square=True),))
    return found


@function(space="linalg", name="matrix_exp")
def linalg_matrix_exp(A: Tensor) -> Tensor:
    """The exponential of a square matrix.

    >>> import undertow as ut
    >>> ut.linalg.matrix_exp(ut.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return _exponential(A)


@function()
def matrix_exp(input: Tensor) -> Tensor:
    """`linalg.matrix_exp`.

    >>> import undertow as ut
    >>> ut.matrix_exp(ut.zeros(1, 1))
    tensor([[1.]])
    """
    return _exponential(input)


def _power(op: str, a: Tensor, n: Any) -> Tensor:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"[{op}] A must be square matrices, got shape {a.shape}")
    n = as_int(op, "n", n)
    if n == 0:
        identity = eye(a.shape[-1], dtype=a.dtype, device=a.device)
        return tril(a, -a.shape[-1]) + identity  # zeros, whose gradient is zero as well
    if n < 0:
        a, n = inv(a), -n
    if n == 1:
        return a.clone()
    found: Tensor | None = None
    while True:
        if n & 1:
            found = a if found is None else matmul(found, a)
        n >>= 1
        if not n:
            assert found is not None
            return found
        a = matmul(a, a)


@function(space="linalg", name="matrix_power")
def linalg_matrix_power(A: Tensor, n: int) -> Tensor:
    """A square matrix to an integer power; a negative one is a power of the inverse.

    >>> import undertow as ut
    >>> ut.linalg.matrix_power(ut.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    return _power("matrix_power", A, n)


@function()
def matrix_power(input: Tensor, n: int) -> Tensor:
    """`linalg.matrix_power`.

    >>> import undertow as ut
    >>> ut.matrix_power(ut.tensor([[2.0]]), -2)
    tensor([[0.2500]])
    """
    return _power("matrix_power", input, n)


# Products --------------------------------------------------------------------------------------
@function(space="linalg", name="matmul")
def linalg_matmul(input: Tensor, other: Tensor) -> Tensor:
    """`ut.matmul`.

    >>> import undertow as ut
    >>> ut.linalg.matmul(ut.ones(1, 2), ut.ones(2, 1))
    tensor([[2.]])
    """
    return matmul(input, other)


@function(space="linalg")
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of two or more matrices, in the order that needs the fewest multiplications.

    The first and the last may be vectors.

    >>> import undertow as ut
    >>> ut.linalg.multi_dot([ut.ones(2), ut.ones(2, 3), ut.ones(3)])
    tensor(6.)
    """
    given = operands("multi_dot", *tensors)
    if len(given) < 2:
        raise ArgumentError(f"[multi_dot] expects at least 2 tensors, got {len(given)}")
    row, column = given[0].ndim == 1, given[-1].ndim == 1
    parts = list(given)
    if row:
        parts[0] = parts[0].unsqueeze(0)
    if column:
        parts[-1] = parts[-1].unsqueeze(-1)
    for i, t in enumerate(parts):
        if t.ndim != 2:
            raise ShapeError(f"[multi_dot] tensor {i} must be a matrix, got shape {given[i].shape}")
        if i and t.shape[0] != parts[i - 1].shape[1]:
            raise ShapeError(
                f"[multi_dot] tensors {i - 1} and {i} of shapes {given[i - 1].shape} and "
                f"{given[i].shape} cannot be multiplied"
            )
    from .matmul import chain_matmul

    found: Tensor = chain_matmul(*parts)
    if column:
        found = found.squeeze(-1)
    return found.squeeze(0) if row else found


@function(space="linalg")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The sum of conj(x) * y along `dim`, broadcast.

    >>> import undertow as ut
    >>> ut.linalg.vecdot(ut.tensor([[1.0, 2.0], [3.0, 4.0]]), ut.tensor([1.0, 10.0]))
    tensor([21., 43.])
    """
    x, y = operands("vecdot", floating("vecdot", x), y)
    shape = broadcast_shapes("vecdot", x.shape, y.shape)
    return (x.conj() * y).sum(wrap_dim("vecdot", dim, len(shape)), dtype=x.dtype)


@function(space="linalg", name="cross")
def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product of vectors of 3 elements along `dim`.

    >>> import undertow as ut
    >>> ut.linalg.cross(ut.tensor([1.0, 0.0, 0.0]), ut.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    if input.ndim != other.ndim:
        raise ShapeError(
            f"[cross] both must have the same number of dimensions, got {input.shape} and "
            f"{other.shape}"
        )
    return old_cross(input, other, dim)


@function(space="linalg", name="diagonal")
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """A view of the diagonals of matrices, those of the last two dimensions by default.

    >>> import undertow as ut
    >>> ut.linalg.diagonal(ut.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return A.diagonal(offset, dim1, dim2)


# Matrices of powers ----------------------------------------------------------------------------
@function(space="linalg", name="vander")
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of each element, ascending, in rows; N is by default the last size.

    >>> import undertow as ut
    >>> ut.linalg.vander(ut.tensor([2, 3]), N=3)
    tensor([[1, 2, 4],
            [1, 3, 9]])
    """
    if not x.ndim:
        x = x.reshape(1)
    if x.dtype.name == "bool":
        raise DTypeError(
            "[vander] is not defined for bool tensors; convert them with .to(ut.int64)"
        )
    count = x.shape[-1] if N is None else as_int("vander", "N", N)
    if count < 2:
        raise ArgumentError(f"[vander] N must be greater than 1, got {count}")
    column = x.unsqueeze(-1)
    if x._array.dtype.kind in "iu":
        column = column.to(int64)
    rest = column.expand((*x.shape, count - 1)).cumprod(-1)
    return cat([column.new_ones((*x.shape, 1)), rest], -1)


@function(method=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of a vector's elements in rows, descending unless `increasing`.

    >>> import undertow as ut
    >>> ut.vander(ut.tensor([2, 3]))
    tensor([[2, 1],
            [3, 1]])
    """
    if x.ndim != 1:
        raise ShapeError(f"[vander] x must be a vector, got shape {x.shape}")
    count = x.shape[0] if N is None else as_int("vander", "N", N)
    if count < 0:
        raise ArgumentError(f"[vander] N must not be negative, got {count}")
    steps = arange(count, device=x.device)
    if not increasing:
        steps = steps.flip(0)
    if x._array.dtype.kind in "iub":
        x = x.to(int64)
    powers = ones((x.shape[0], count), dtype=x.dtype, device=x.device)
    if count > 1:
        powers = linalg_vander(x, N=count)
        return powers if increasing else powers.flip(-1)
    return powers


# Tensors as matrices ---------------------------------------------------------------------------
@function(space="linalg")
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of a tensor seen as a matrix from its first `ind` dimensions to the others.

    >>> import undertow as ut
    >>> ut.linalg.tensorinv(ut.eye(6).reshape(6, 2, 3), ind=1).shape
    (2, 3, 6)
    """
    ind = as_int("tensorinv", "ind", ind)
    if ind <= 0:
        raise ArgumentError(f"[tensorinv] ind must be positive, got {ind}")
    first, rest = A.shape[:ind], A.shape[ind:]
    rows, columns = math.prod(first), math.prod(rest)
    if rows != columns:
        raise ShapeError(
            f"[tensorinv] the sizes before and after dimension {ind} of {A.shape} have different "
            f"products, {rows} and {columns}"
        )
    inverse = inverted("tensorinv", reshaped(A, (rows, columns))).inverse
    return reshaped(inverse, rest + first)


@function(space="linalg")
def tensorsolve(A: Tensor, B: Tensor, dims: Ints | None = None) -> Tensor:
    """X of tensordot(A, X) = B, where A is seen as a square matrix; `dims` of A are moved last.

    >>> import undertow as ut
    >>> ut.linalg.tensorsolve(2 * ut.eye(6).reshape(2, 3, 6), ut.ones(2, 3))
    tensor([0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000])
    """
    if dims is not None:
        moved = as_ints("tensorsolve", "dims", (dims,) if isinstance(dims, int) else dims)
        A = A.movedim(moved, tuple(range(-len(moved), 0)))
    result = A.shape[B.ndim :]
    size = math.prod(result)
    if B.numel() != size or A.numel() != size * size:
        raise ShapeError(
            f"[tensorsolve] A of shape {A.shape} and B of shape {B.shape} make no square system"
        )
    solved = solve(reshaped(A, (size, size)), reshaped(B, (size,)))
    return reshaped(solved, result)
