"""Tensors that change their own shape: the same memory in another order, in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...backends.base import Array, Forms
from ...core.inplace import view_in_place
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import InplaceError
from ...shapes import Ints, Shape
from .movement import (
    _permute,
    _view,
    inverse_permutation,
    matrix_order,
    squeezed,
    swapped,
    unsqueezed,
)
from .strided import _as_strided, strided_of


def _turn_shape(name: str, x: Tensor, shape: Shape) -> Tensor:
    return view_in_place(name, x, (_view, (shape,)), (_view, (x.shape,)))


def _permute_in_place(name: str, x: Tensor, order: tuple[int, ...]) -> Tensor:
    return view_in_place(name, x, (_permute, (order,)), (_permute, (inverse_permutation(order),)))


@function(top=False)
def squeeze_(input: Tensor, dim: Ints | None = None) -> Tensor:
    """`squeeze` of the tensor itself: the same memory, without dimensions of size 1.

    >>> import undertow as ut
    >>> x = ut.zeros(1, 3, 1)
    >>> x.squeeze_().shape, x.shape
    ((3,), (3,))
    """
    return _turn_shape("squeeze_", input, squeezed("squeeze_", input._array.shape, dim))


@function(top=False)
def unsqueeze_(input: Tensor, dim: int) -> Tensor:
    """`unsqueeze` of the tensor itself.

    >>> import undertow as ut
    >>> x = ut.zeros(3)
    >>> x.unsqueeze_(0).shape, x.shape
    ((1, 3), (1, 3))
    """
    return _turn_shape("unsqueeze_", input, unsqueezed("unsqueeze_", input._array.shape, dim))


@function(top=False)
def t_(input: Tensor) -> Tensor:
    """`t` of the tensor itself.

    >>> import undertow as ut
    >>> x = ut.zeros(2, 3)
    >>> x.t_().shape, x.shape
    ((3, 2), (3, 2))
    """
    return _permute_in_place("t_", input, matrix_order("t_", input.ndim))


@function(top=False)
def transpose_(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """`transpose` of the tensor itself.

    >>> import undertow as ut
    >>> x = ut.zeros(2, 3, 4)
    >>> x.transpose_(0, 2).shape, x.shape
    ((4, 3, 2), (4, 3, 2))
    """
    return _permute_in_place("transpose_", input, swapped("transpose_", input.ndim, dim0, dim1))


@function(top=False)
def swapaxes_(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """`swapaxes` of the tensor itself.

    >>> import undertow as ut
    >>> x = ut.zeros(2, 3, 4)
    >>> x.swapaxes_(0, 1).shape, x.shape
    ((3, 2, 4), (3, 2, 4))
    """
    return _permute_in_place("swapaxes_", input, swapped("swapaxes_", input.ndim, axis0, axis1))


@function(top=False)
def swapdims_(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """`swapdims` of the tensor itself.

    >>> import undertow as ut
    >>> x = ut.zeros(2, 3, 4)
    >>> x.swapdims_(0, 1).shape, x.shape
    ((3, 2, 4), (3, 2, 4))
    """
    return _permute_in_place("swapdims_", input, swapped("swapdims_", input.ndim, dim0, dim1))


def _lost_forward(k: Forms, x: Array) -> Any:
    raise InplaceError(
        "[as_strided_] this view was made before its base changed its strides, so its gradient "
        "cannot be followed any more; make the view afterwards, or use as_strided"
    )


_lost = Op("lost", _lost_forward, inputs="x", view=True)


@function(top=False)
def as_strided_(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """`as_strided` of the tensor itself; views that were made before have no gradient any more.

    >>> import undertow as ut
    >>> x = ut.arange(6)
    >>> x.as_strided_((2, 2), (3, 1))
    tensor([[0, 1],
            [3, 4]])
    """
    where = strided_of("as_strided_", input, size, stride, storage_offset)
    return view_in_place("as_strided_", input, (_as_strided, where), (_lost, ()))
