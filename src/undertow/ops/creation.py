"""Making tensors from data and from nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes
from ..backends.registry import backend_of, backend_on
from ..core.dispatch import apply
from ..core.op import Op
from ..core.register import function
from ..core.tensor import Tensor, wrap
from ..errors import DTypeError
from ..shapes import as_shape

_clone = Op("clone", lambda k, x: k.copy(x), inputs="x", vjp={"x": lambda g: g})


@function()
def clone(input: Tensor) -> Tensor:
    """A copy in memory of its own that gradients flow through.

    >>> import undertow as ut
    >>> ut.tensor([1, 2]).clone()
    tensor([1, 2])
    """
    return apply(_clone, (input,))  # type: ignore[no-any-return]


@function(method=False)
def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A new tensor with a copy of `data`: numbers, nested lists, arrays or tensors.

    >>> import undertow as ut
    >>> ut.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    if isinstance(data, Tensor):
        array = np.array(backend_of(data._array).to_host(data._array))
    elif isinstance(data, (np.ndarray, np.generic)):
        array = np.array(data)
    else:
        array = np.array(data)
        if array.dtype == object:
            raise DTypeError("[tensor] data must be numbers or nested lists of one shape")
        if dtype is None and array.dtype == np.float64:
            dtype = dtypes.get_default_dtype()
    wanted = dtypes.of_array(array.dtype) if dtype is None else dtypes.as_dtype(dtype)
    array = array.astype(wanted.numpy, copy=False)
    result = wrap(backend_on(device).from_host(array))
    return result.requires_grad_() if requires_grad else result


def filled(shape: Any, value: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    """A tensor of one value; what `zeros`, `ones` and `full` share."""
    wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    result = wrap(backend_on(device).full(shape, value, wanted.numpy))
    return result.requires_grad_() if requires_grad else result


@function(method=False)
def zeros(
    *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Zeros of the given shape.

    >>> import undertow as ut
    >>> ut.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return filled(as_shape("zeros", size), 0, dtype, device, requires_grad)


@function(method=False)
def ones(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones of the given shape.

    >>> import undertow as ut
    >>> ut.ones(2)
    tensor([1., 1.])
    """
    return filled(as_shape("ones", size), 1, dtype, device, requires_grad)


@function(method=False)
def zeros_like(
    input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Zeros of the shape, dtype and device of `input`.

    >>> import undertow as ut
    >>> ut.zeros_like(ut.tensor([1, 2]))
    tensor([0, 0])
    """
    return filled(input.shape, 0, dtype or input.dtype, device or input.device, requires_grad)


@function(method=False)
def ones_like(
    input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Ones of the shape, dtype and device of `input`.

    >>> import undertow as ut
    >>> ut.ones_like(ut.tensor([5, 6]))
    tensor([1, 1])
    """
    return filled(input.shape, 1, dtype or input.dtype, device or input.device, requires_grad)


@function(top=False)
def new_zeros(
    input: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Zeros of another shape, with the dtype and device of `input`."""
    shape = as_shape("new_zeros", size)
    return filled(shape, 0, dtype or input.dtype, device or input.device, requires_grad)
