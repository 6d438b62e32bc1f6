"""Finding, sorting, sets and taking by index, with the standard's signatures."""

from __future__ import annotations

from typing import Any, NamedTuple

import undertow as ut

from ...core.tensor import Tensor
from ...errors import ArgumentError, DimError
from .data_types import together

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "nonzero",
    "searchsorted",
    "sort",
    "take",
    "take_along_axis",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "where",
]


class UniqueAll(NamedTuple):
    """What `unique_all` gives."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What `unique_counts` gives."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What `unique_inverse` gives."""

    values: Tensor
    inverse_indices: Tensor


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the largest element is, the first if there are several.

    >>> import undertow.array_api as xp
    >>> xp.argmax(xp.asarray([1, 3, 3]))
    tensor(1)
    """
    return ut.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the smallest element is, the first if there are several.

    >>> import undertow.array_api as xp
    >>> xp.argmin(xp.asarray([[1, 3], [2, 0]]), axis=0)
    tensor([0, 1])
    """
    return ut.argmin(x, axis, keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The positions of what is not zero, an array of indices for each axis.

    >>> import undertow.array_api as xp
    >>> xp.nonzero(xp.asarray([0, 3, 2]))
    (tensor([1, 2]),)
    """
    if not x.ndim:
        raise DimError("[nonzero] an array without dimensions has no positions; reshape it first")
    return ut.nonzero(x, as_tuple=True)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """Elements of `x1` where the condition is true, and of `x2` elsewhere.

    >>> import undertow.array_api as xp
    >>> xp.where(xp.asarray([True, False]), xp.asarray([1, 2]), 0)
    tensor([1, 0])
    """
    a, b = together(x1, x2)
    return ut.where(condition, a, b)


def searchsorted(
    x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """Where the elements of `x2` would go in `x1`, which is in order, or is by `sorter`.

    >>> import undertow.array_api as xp
    >>> xp.searchsorted(xp.asarray([1, 2, 4]), xp.asarray([2, 3]))
    tensor([1, 2])
    """
    sequence, values = together(x1, x2)
    if sorter is not None:
        sequence = ut.index_select(sequence, 0, sorter.long())
    return ut.searchsorted(sequence, values, side=side)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order along an axis.

    >>> import undertow.array_api as xp
    >>> xp.sort(xp.asarray([2, 3, 1]))
    tensor([1, 2, 3])
    """
    return ut.sort(x, axis, descending, stable).values


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """The positions of the elements in order along an axis; ties in the order that they have.

    >>> import undertow.array_api as xp
    >>> xp.argsort(xp.asarray([2, 3, 1]))
    tensor([2, 0, 1])
    """
    return ut.argsort(x, axis, descending, stable)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The elements at these positions along an axis; negative ones count from the end.

    >>> import undertow.array_api as xp
    >>> xp.take(xp.asarray([1, 2, 3]), xp.asarray([2, 0, -1]))
    tensor([3, 1, 3])
    """
    if axis is None:
        if x.ndim != 1:
            raise ArgumentError(f"[take] needs an axis for an array of shape {x.shape}")
        axis = 0
    index = indices.long()
    return ut.index_select(x, axis, ut.where(index < 0, index + x.shape[axis], index))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """For each line along an axis, the elements at its own positions.

    >>> import undertow.array_api as xp
    >>> xp.take_along_axis(xp.asarray([[1, 2], [3, 4]]), xp.asarray([[-1], [0]]))
    tensor([[2],
            [3]])
    """
    index = indices.long()
    return ut.take_along_dim(x, ut.where(index < 0, index + x.shape[axis], index), axis)


def _unique(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The different elements, which of them each is, and how often; complex ones as pairs."""
    if not x.dtype.is_complex:
        return ut.unique(x, return_inverse=True, return_counts=True)
    pairs = ut.view_as_real(x.flatten()) + 0.0  # without negative zeros, which equal the others
    values, inverse, counts = ut.unique(pairs, return_inverse=True, return_counts=True, dim=0)
    return ut.view_as_complex(values), inverse.reshape(x.shape), counts


def unique_all(x: Tensor, /) -> UniqueAll:
    """The different elements in order, where each is first, which of them each is, how often.

    >>> import undertow.array_api as xp
    >>> xp.unique_all(xp.asarray([3, 1, 3])).indices
    tensor([1, 0])
    """
    values, inverse, counts = _unique(x)
    order = ut.argsort(inverse.flatten(), stable=True)  # each value's positions, one after another
    first = ut.index_select(order, 0, ut.cumsum(counts, 0) - counts)
    return UniqueAll(values, first, inverse, counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The different elements in order, and how often each occurs.

    >>> import undertow.array_api as xp
    >>> xp.unique_counts(xp.asarray([3, 1, 3])).counts
    tensor([1, 2])
    """
    values, _, counts = _unique(x)
    return UniqueCounts(values, counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The different elements in order, and which of them each element is.

    >>> import undertow.array_api as xp
    >>> xp.unique_inverse(xp.asarray([3, 1, 3])).inverse_indices
    tensor([1, 0, 1])
    """
    values, inverse, _ = _unique(x)
    return UniqueInverse(values, inverse)


def unique_values(x: Tensor, /) -> Tensor:
    """The different elements in order.

    >>> import undertow.array_api as xp
    >>> xp.unique_values(xp.asarray([3, 1, 3]))
    tensor([1, 3])
    """
    return _unique(x)[0]
