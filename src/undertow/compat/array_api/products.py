"""Products of vectors and matrices, with the standard's signatures."""

from __future__ import annotations

from collections.abc import Sequence

import undertow as ut

from ...core.tensor import Tensor
from ...errors import ShapeError
from ...shapes import wrap_dim
from .data_types import together

__all__ = ["matmul", "tensordot", "vecdot"]


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of matrices, in batches.

    >>> import undertow.array_api as xp
    >>> xp.matmul(xp.eye(2), xp.asarray([1.0, 2.0]))
    tensor([1., 2.])
    """
    return ut.matmul(*together(x1, x2))


def tensordot(
    x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Tensor:
    """The sum of products over pairs of axes, or over the last and first `axes` of them.

    >>> import undertow.array_api as xp
    >>> xp.tensordot(xp.ones((2, 3)), xp.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    a, b = together(x1, x2)
    return ut.tensordot(a, b, axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The inner product along an axis, of the conjugate of the first.

    >>> import undertow.array_api as xp
    >>> xp.vecdot(xp.asarray([1j, 2]), xp.asarray([1j, 3]))
    tensor(7.+0.j)
    """
    a, b = together(x1, x2)
    sizes = [t.shape[wrap_dim("vecdot", axis, t.ndim)] for t in (a, b)]
    if sizes[0] != sizes[1]:
        raise ShapeError(f"[vecdot] axis {axis} has size {sizes[0]} in x1 and {sizes[1]} in x2")
    a, b = (t.movedim(axis, -1) for t in (a, b))
    return ut.matmul(a.conj().unsqueeze(-2), b.unsqueeze(-1))[..., 0, 0]
