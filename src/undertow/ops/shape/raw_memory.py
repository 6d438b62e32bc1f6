"""Tensors by their memory: any strides, and the memory of another tensor."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...backends.registry import backend_on
from ...core.modes import is_grad_enabled, no_grad
from ...core.register import attach, function
from ...core.storage import UntypedStorage
from ...core.tensor import Tensor
from ...devices import DeviceLike
from ...dtypes import DTypeLike
from ...errors import ArgumentError, DTypeError, GradientError, UnsupportedError
from ...shapes import Ints, as_shape
from ..create.from_data import made


@function(method=False)
def empty_strided(
    size: Ints,
    stride: Ints,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Memory of the given sizes and strides, in elements, whose elements have any value.

    >>> import undertow as ut
    >>> ut.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    sizes, steps = as_shape("empty_strided", size), as_shape("empty_strided", stride)
    if len(sizes) != len(steps):
        raise ArgumentError(
            f"[empty_strided] takes as many strides as sizes, got {sizes} and {steps}"
        )
    extent = 1 + sum((n - 1) * s for n, s in zip(sizes, steps, strict=True))
    k = backend_on(device)
    memory = k.empty((0 if 0 in sizes else extent,), wanted.numpy)
    return made(k.as_strided(memory, sizes, steps, 0), requires_grad)


@function(method=False)
def empty_permuted(
    size: Ints,
    physical_layout: Ints,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Memory of the given sizes whose dimensions lie in the given order, the last one closest.

    >>> import undertow as ut
    >>> ut.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    sizes, order = as_shape("empty_permuted", size), as_shape("empty_permuted", physical_layout)
    if sorted(order) != list(range(len(sizes))):
        raise ArgumentError(
            f"[empty_permuted] physical_layout names each of {len(sizes)} dims once, got {order}"
        )
    strides, step = [0] * len(sizes), 1
    for d in reversed(order):
        strides[d] = step
        step *= max(sizes[d], 1)
    return empty_strided(sizes, strides, dtype=dtype, device=device, requires_grad=requires_grad)


def new_empty_strided(
    self: Tensor,
    size: Ints,
    stride: Ints,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`empty_strided` in the dtype and on the device of this tensor.

    >>> import undertow as ut
    >>> x = ut.zeros(2, dtype=ut.float64).new_empty_strided((2, 3), (1, 2))
    >>> x.dtype, x.stride()
    (undertow.float64, (1, 2))
    """
    return empty_strided(
        size,
        stride,
        dtype=self.dtype if dtype is None else dtype,
        device=self.device if device is None else device,
        requires_grad=requires_grad,
    )


def set_(
    self: Tensor,
    source: Tensor | UntypedStorage | None = None,
    storage_offset: int = 0,
    size: Ints | None = None,
    stride: Ints | None = None,
) -> Tensor:
    """Look at the memory of another tensor instead, or at a storage or at none; both then share it.

    With a size, and strides if they are not row-major, at a part of it from `storage_offset` on.

    >>> import undertow as ut
    >>> x, y = ut.zeros(2), ut.tensor([1.0, 2.0, 3.0])
    >>> _ = x.set_(y)
    >>> y[0] = 9.0
    >>> x
    tensor([9., 2., 3.])
    """
    if isinstance(source, UntypedStorage):
        source = source._row(self.dtype)
    learns = self.requires_grad or (source is not None and source.requires_grad)
    if learns and is_grad_enabled():
        raise GradientError(
            "[set_] neither tensor may require gradients; detach() it first, or use ut.no_grad()"
        )
    if source is None:
        self.data = self.new_empty((0,))
        return self
    if not isinstance(source, Tensor):
        raise UnsupportedError(f"[set_] takes a Tensor, got {type(source).__name__}")
    if source.dtype is not self.dtype:
        raise DTypeError(f"[set_] the source is {source.dtype} and this tensor {self.dtype}")
    with no_grad():
        seen: Any = source
        if size is not None:
            sizes = as_shape("set_", size)
            row_major = seen.new_empty(sizes).stride()
            strides = row_major if stride is None else as_shape("set_", stride)
            seen = source.as_strided(sizes, strides, storage_offset)
        self.data = seen
    return self


attach("new_empty_strided", new_empty_strided)
attach("set_", set_)
