"""Making tensors, with the standard's signatures."""

from __future__ import annotations

from typing import Any

import undertow as ut

from ...core.tensor import Tensor
from ...devices import DeviceLike
from ...dtypes import DTypeLike
from ...errors import ArgumentError
from ...shapes import Ints

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]

_Dtype = DTypeLike | None
_Device = DeviceLike | None


def _sizes(shape: Ints) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def asarray(
    obj: Any, /, *, dtype: _Dtype = None, device: _Device = None, copy: bool | None = None
) -> Tensor:
    """`obj` as a tensor: always copied (`copy=True`), never (`False`), or where it must be.

    A tensor keeps its history, so that gradients flow through libraries that call this first.

    >>> import undertow.array_api as xp
    >>> xp.asarray([[1, 2], [3, 4]], dtype=xp.float32)
    tensor([[1., 2.],
            [3., 4.]])
    """
    if not isinstance(obj, Tensor):
        return ut.asarray(obj, dtype=dtype, device=device, copy=copy)
    found = ut.as_tensor(obj, dtype, device)
    if found is not obj and copy is False:
        raise ArgumentError(
            f"[asarray] {obj.dtype} on {obj.device} becomes {found.dtype} on {found.device} only "
            "by copying; leave out copy=False"
        )
    return found.clone() if copy and found is obj else found


def from_dlpack(x: Any, /, *, device: _Device = None, copy: bool | None = None) -> Tensor:
    """A tensor of another library's memory, shared unless `copy=True`.

    >>> import numpy as np
    >>> import undertow.array_api as xp
    >>> xp.from_dlpack(np.arange(3))
    tensor([0, 1, 2])
    """
    return ut.from_dlpack(x, device=device, copy=copy)


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: _Dtype = None, device: _Device = None
) -> Tensor:
    """Evenly spaced numbers from `start` until before `stop`; from 0 with one argument.

    >>> import undertow.array_api as xp
    >>> xp.arange(3, 0, -1)
    tensor([3, 2, 1])
    """
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        whole = all(isinstance(n, int) for n in (start, stop, step))
        dtype = ut.int64 if whole else ut.get_default_dtype()
    if (stop - start) * step <= 0:  # nothing lies between; torch takes that for a mistake
        stop = start
    return ut.arange(start, stop, step, dtype=dtype, device=device)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: _Dtype = None,
    device: _Device = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, with it or without (`endpoint=False`).

    >>> import undertow.array_api as xp
    >>> xp.linspace(0, 1, 4, endpoint=False)
    tensor([0.0000, 0.2500, 0.5000, 0.7500])
    """
    if not endpoint:
        return ut.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]
    return ut.linspace(start, stop, num, dtype=dtype, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: _Dtype = None,
    device: _Device = None,
) -> Tensor:
    """Ones on the `k`-th diagonal, zeros elsewhere.

    >>> import undertow.array_api as xp
    >>> xp.eye(2, 3, k=1)
    tensor([[0., 1., 0.],
            [0., 0., 1.]])
    """
    out = ut.zeros(n_rows, n_rows if n_cols is None else n_cols, dtype=dtype, device=device)
    if -out.shape[0] < k < out.shape[1]:
        out.diagonal(k).fill_(1)
    return out


def empty(shape: Ints, *, dtype: _Dtype = None, device: _Device = None) -> Tensor:
    """A tensor of this shape with anything in it.

    >>> import undertow.array_api as xp
    >>> xp.empty((2, 3)).shape
    (2, 3)
    """
    return ut.empty(_sizes(shape), dtype=dtype, device=device)


def zeros(shape: Ints, *, dtype: _Dtype = None, device: _Device = None) -> Tensor:
    """A tensor full of zeros.

    >>> import undertow.array_api as xp
    >>> xp.zeros(2, dtype=xp.int8)
    tensor([0, 0], dtype=undertow.int8)
    """
    return ut.zeros(_sizes(shape), dtype=dtype, device=device)


def ones(shape: Ints, *, dtype: _Dtype = None, device: _Device = None) -> Tensor:
    """A tensor full of ones.

    >>> import undertow.array_api as xp
    >>> xp.ones((1, 2))
    tensor([[1., 1.]])
    """
    return ut.ones(_sizes(shape), dtype=dtype, device=device)


def full(shape: Ints, fill_value: Any, *, dtype: _Dtype = None, device: _Device = None) -> Tensor:
    """A tensor full of one number, in its dtype unless another one is asked for.

    >>> import undertow.array_api as xp
    >>> xp.full((2,), True)
    tensor([True, True])
    """
    return ut.full(_sizes(shape), fill_value, dtype=dtype, device=device)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """The coordinates of a grid, one array for each of the vectors.

    >>> import undertow.array_api as xp
    >>> [a.shape for a in xp.meshgrid(xp.arange(2), xp.arange(3))]
    [(3, 2), (3, 2)]
    """
    return list(ut.meshgrid(*arrays, indexing=indexing)) if arrays else []


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The matrices with zeros above the `k`-th diagonal.

    >>> import undertow.array_api as xp
    >>> xp.tril(xp.ones((2, 2)))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return ut.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The matrices with zeros below the `k`-th diagonal.

    >>> import undertow.array_api as xp
    >>> xp.triu(xp.ones((2, 2)))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return ut.triu(x, k)


empty_like = ut.empty_like
full_like = ut.full_like
ones_like = ut.ones_like
zeros_like = ut.zeros_like
