"""Shapes and order: views, copies, joining and splitting."""

from __future__ import annotations

from typing import Any

from ..core.dispatch import apply, expand
from ..core.op import Op
from ..core.register import function
from ..core.tensor import Tensor
from ..shapes import Shape, as_int, infer_size, wrap_dim

_view = Op(
    "view",
    lambda k, x, shape: k.reshape(x, shape),
    inputs="x",
    params="shape",
    view=True,
    vjp={"x": lambda g, x_shape: reshape(g, x_shape)},
)
_permute = Op(
    "permute",
    lambda k, x, dims: k.permute(x, dims),
    inputs="x",
    params="dims",
    view=True,
    vjp={"x": lambda g, dims: permute(g, inverse_permutation(dims))},
)


def inverse_permutation(dims: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that undoes `dims`.

    >>> inverse_permutation((2, 0, 1))
    (1, 2, 0)
    """
    inverse = [0] * len(dims)
    for i, d in enumerate(dims):
        inverse[d] = i
    return tuple(inverse)


def sizes(op: str, given: Any) -> Shape:
    """A target shape given as `2, 3`, `(2, 3)` or `[2, -1]`, not checked against anything yet."""
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        given = given[0]
    return tuple(as_int(op, "size", s) for s in given)


@function()
def reshape(input: Tensor, *shape: Any) -> Tensor:
    """The same elements in another shape: a view where the strides allow it, else a copy.

    >>> import undertow as ut
    >>> ut.tensor([1, 2, 3, 4]).reshape(2, -1)
    tensor([[1, 2],
            [3, 4]])
    """
    wanted = infer_size("reshape", sizes("reshape", shape), input._array.size)
    if wanted == input._array.shape:
        return input
    from ..backends.registry import backend_of

    if backend_of(input._array).reshape(input._array, wanted) is None:
        input = input.clone()
    return apply(_view, (input,), (wanted,))  # type: ignore[no-any-return]


@function()
def permute(input: Tensor, *dims: Any) -> Tensor:
    """A view with the dimensions in another order.

    >>> import undertow as ut
    >>> ut.zeros(2, 3, 4).permute(2, 0, 1).shape
    (4, 2, 3)
    """
    order = tuple(wrap_dim("permute", d, input.ndim) for d in sizes("permute", dims))
    from ..errors import ArgumentError

    if sorted(order) != list(range(input.ndim)):
        raise ArgumentError(
            f"[permute] dims {order} are not an order of the {input.ndim} dimensions"
        )
    return apply(_permute, (input,), (order,))  # type: ignore[no-any-return]
