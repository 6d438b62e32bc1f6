"""Copies of one tensor in another order: reversed, rotated, repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...backends.base import Array, Forms
from ...core.dispatch import apply
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError, DimError, DTypeError, ShapeError
from ...shapes import Ints, Shape, as_int, wrap_dim, wrap_dims
from .movement import along, reshaped, sizes, transpose

# Primitives ----------------------------------------------------------------------------------
_flip: Op = Op(
    "flip",
    lambda k, x, dims: k.copy(
        k.slice(x, tuple(slice(None, None, -1 if d in dims else 1) for d in range(len(x.shape))))
    ),
    inputs="x",
    params="dims",
    vjp={"x": lambda g, dims: apply(_flip, (g,), (dims,))},
)


def _roll_forward(k: Forms, x: Array, shift: int, dim: int) -> Any:
    return k.concat(
        [k.slice(x, along(dim, slice(-shift, None))), k.slice(x, along(dim, slice(-shift)))], dim
    )


_roll: Op = Op(
    "roll",
    _roll_forward,
    inputs="x",
    params="shift dim",
    vjp={"x": lambda g, x_shape, shift, dim: apply(_roll, (g,), (x_shape[dim] - shift, dim))},
)


def _between(repeats: Shape, shape: Shape) -> Shape:
    """Repeats and sizes by turns: the shape in which repeating is broadcasting."""
    return tuple([n for pair in zip(repeats, shape, strict=True) for n in pair])


def _repeat_forward(k: Forms, x: Array, repeats: Shape) -> Any:
    shape = (1,) * (len(repeats) - len(x.shape)) + tuple(x.shape)
    single = k.reshape(x, _between((1,) * len(shape), shape))
    copy = k.copy(k.expand(single, _between(repeats, shape)))
    return k.reshape(copy, tuple([r * n for r, n in zip(repeats, shape, strict=True)]))


_repeat = Op("repeat", _repeat_forward, inputs="x", params="repeats")


@_repeat.vjp("x")
def _sum_repeats(g: Tensor, x_shape: Shape, repeats: Shape) -> Tensor:
    shape = (1,) * (len(repeats) - len(x_shape)) + x_shape
    summed = reshaped(g, _between(repeats, shape)).sum(tuple(range(0, 2 * len(repeats), 2)))
    return reshaped(summed, x_shape)


# Reversing and rotating ----------------------------------------------------------------------
@function()
def flip(input: Tensor, *order: Ints, dims: Ints | None = None) -> Tensor:
    """A copy with the elements along `dims` in reverse.

    >>> import undertow as ut
    >>> ut.tensor([1, 2, 3]).flip(0)
    tensor([3, 2, 1])
    """
    if not order and dims is None:
        raise DTypeError("[flip] needs the dims to reverse; flip(()) is a copy")
    given = sizes("flip", order, dims)
    return apply(_flip, (input,), (wrap_dims("flip", given, input.ndim) if given else (),))


@function()
def fliplr(input: Tensor) -> Tensor:
    """A copy with the columns (dimension 1) in reverse.

    >>> import undertow as ut
    >>> ut.tensor([[1, 2], [3, 4]]).fliplr()
    tensor([[2, 1],
            [4, 3]])
    """
    if input.ndim < 2:
        raise DimError(f"[fliplr] expects at least 2 dimensions, got {input.ndim}")
    return apply(_flip, (input,), ((1,),))


@function()
def flipud(input: Tensor) -> Tensor:
    """A copy with the rows (dimension 0) in reverse.

    >>> import undertow as ut
    >>> ut.tensor([[1, 2], [3, 4]]).flipud()
    tensor([[3, 4],
            [1, 2]])
    """
    if not input.ndim:
        raise DimError("[flipud] expects at least 1 dimension, got 0")
    return apply(_flip, (input,), ((0,),))


@function()
def roll(input: Tensor, shifts: Ints, dims: Ints | None = None) -> Tensor:
    """A copy shifted along `dims`; what leaves at the end comes in at the front.

    Without dims the flattened elements are shifted.

    >>> import undertow as ut
    >>> ut.tensor([1, 2, 3, 4]).roll(1)
    tensor([4, 1, 2, 3])
    """
    steps = sizes("roll", (shifts,))
    if dims is None or dims == () or dims == []:
        if len(steps) != 1:
            raise ArgumentError(f"[roll] {len(steps)} shifts {steps} need as many dims, got none")
        return reshaped(_rolled(reshaped(input, (input._array.size,)), steps, (0,)), input.shape)
    axes = tuple([wrap_dim("roll", d, input.ndim) for d in sizes("roll", (dims,))])
    if len(steps) != len(axes):
        raise ArgumentError(f"[roll] {len(steps)} shifts {steps} need as many dims, got {axes}")
    return _rolled(input, steps, axes if input.ndim else ())


def _rolled(x: Tensor, shifts: Shape, dims: Shape) -> Tensor:
    moves = [(s % max(x._array.shape[d], 1), d) for s, d in zip(shifts, dims, strict=False)]
    moves = [move for move in moves if move[0]]
    for shift, dim in moves:
        x = apply(_roll, (x,), (shift, dim))
    return x if moves else x.clone()


@function()
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """A copy rotated `k` times by 90 degrees in the plane of two dims, first to second.

    >>> import undertow as ut
    >>> ut.tensor([[1, 2], [3, 4]]).rot90()
    tensor([[2, 4],
            [1, 3]])
    """
    if len(dims) != 2 or input.ndim < 2:
        raise ArgumentError(
            f"[rot90] expects two dims of a tensor of at least 2 dimensions, got {tuple(dims)} of "
            f"{input.ndim}"
        )
    first, second = (wrap_dim("rot90", d, input.ndim) for d in dims)
    if first == second:
        raise ArgumentError(f"[rot90] the dims must differ, got {tuple(dims)}")
    quarters = as_int("rot90", "k", k) % 4
    if quarters == 0:
        return input.clone()
    if quarters == 2:
        return flip(input, first, second)
    return transpose(flip(input, second if quarters == 1 else first), first, second)


# Repeating -----------------------------------------------------------------------------------
@function(top=False)
def repeat(input: Tensor, *times: Ints, repeats: Ints | None = None) -> Tensor:
    """A copy repeated along every dimension; more repeats than dimensions add some in front.

    >>> import undertow as ut
    >>> ut.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    counts = sizes("repeat", times, repeats)
    if len(counts) < input.ndim:
        raise ShapeError(
            f"[repeat] a tensor of {input.ndim} dimensions needs at least as many repeats, got "
            f"{counts}; tile takes fewer"
        )
    return _repeated("repeat", input, counts)


@function()
def tile(input: Tensor, *times: Ints, dims: Ints | None = None) -> Tensor:
    """A copy repeated along the last dimensions, as `repeat` with missing repeats taken as 1.

    >>> import undertow as ut
    >>> ut.tensor([[1, 2], [3, 4]]).tile(2)
    tensor([[1, 2, 1, 2],
            [3, 4, 3, 4]])
    """
    counts = sizes("tile", times, dims)
    return _repeated("tile", input, (1,) * (input.ndim - len(counts)) + counts)


def _repeated(op: str, x: Tensor, counts: Shape) -> Tensor:
    if any(n < 0 for n in counts):
        raise ArgumentError(f"[{op}] repeats cannot be negative, got {counts}")
    return apply(_repeat, (x,), (counts,))
