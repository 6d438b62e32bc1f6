"""Reductions: sum, mean, max, var, norms … over some or all dimensions."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..core.dispatch import apply, cast, expand
from ..core.op import Op
from ..core.register import function
from ..core.tensor import Tensor
from ..shapes import Shape, reduced_shape, wrap_dims
from .movement import reshape


def spread(g: Tensor, shape: Shape, dims: tuple[int, ...]) -> Tensor:
    """A reduced value `g`, whatever keepdim was, expanded back over the reduced `dims`."""
    return expand(reshape(g, reduced_shape(shape, dims, True)), shape)


_sum = Op(
    "sum",
    lambda k, x, dims, keepdim: k.reduce("sum", x, dims, keepdim),
    inputs="x",
    params="dims keepdim",
    vjp={"x": lambda g, x_shape, dims: spread(g, x_shape, dims)},
)


@function()
def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum over all or some dimensions; integers are summed as int64.

    >>> import undertow as ut
    >>> ut.tensor([[1.0, 2.0], [3.0, 4.0]]).sum(dim=0)
    tensor([4., 6.])
    """
    if dtype is not None:
        input = cast(input, dtypes.as_dtype(dtype))
    elif input.dtype.category < 2:
        input = cast(input, dtypes.int64)
    dims = wrap_dims("sum", dim, input.ndim)
    return apply(_sum, (input,), (dims, keepdim))  # type: ignore[no-any-return]
