"""Copies of a tensor in which a view is replaced: the functional forms of writing to a view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...backends.registry import backend_of
from ...core.dispatch import cast
from ...core.inplace import view_write
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError, ShapeError
from ...shapes import as_int
from .diagonal import _diagonal, diagonal_of
from .movement import _slice, along, own_dim, selection
from .strided import _as_strided, strided_of


def replaced(op: str, input: Tensor, src: Tensor, step: tuple[Op, tuple[Any, ...]]) -> Tensor:
    """A copy of `input` with `src` in place of its view by `step`."""
    region = step[0].forward(backend_of(input._array), input._array, *step[1])
    if region.shape != src._array.shape:
        raise ShapeError(
            f"[{op}] src must have the shape of what it replaces, {tuple(region.shape)}, "
            f"got {src.shape}"
        )
    return view_write(input, cast(src, input.dtype), (step,))


@function()
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy with `src` in place of `select(dim, index)`.

    >>> import undertow as ut
    >>> ut.select_scatter(ut.zeros(2, 2), ut.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    return replaced("select_scatter", input, src, (_slice, (selection(input, dim, index),)))


@function()
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """A copy with `src` in place of the slice `start:end:step` of dimension `dim`.

    >>> import undertow as ut
    >>> ut.slice_scatter(ut.zeros(4), ut.ones(2), start=1, step=2)
    tensor([0., 1., 0., 1.])
    """
    d = own_dim("slice_scatter", dim, input.ndim)
    if as_int("slice_scatter", "step", step) <= 0:
        raise ArgumentError(f"[slice_scatter] step must be positive, got {step}")
    entry = slice(*slice(start, end, step).indices(input._array.shape[d]))
    return replaced("slice_scatter", input, src, (_slice, (along(d, entry),)))


@function()
def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """A copy with `src` in place of `diagonal(offset, dim1, dim2)`.

    >>> import undertow as ut
    >>> ut.diagonal_scatter(ut.zeros(2, 2), ut.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    where = diagonal_of("diagonal_scatter", input.ndim, offset, dim1, dim2)
    return replaced("diagonal_scatter", input, src, (_diagonal, where))


@function()
def as_strided_scatter(
    input: Tensor,
    src: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Tensor:
    """A copy with `src` in place of `as_strided(size, stride, storage_offset)`.

    >>> import undertow as ut
    >>> ut.as_strided_scatter(ut.zeros(4), ut.ones(2), (2,), (3,))
    tensor([1., 0., 0., 1.])
    """
    where = strided_of("as_strided_scatter", input, size, stride, storage_offset)
    return replaced("as_strided_scatter", input, src, (_as_strided, where))
