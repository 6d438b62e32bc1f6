"""`device="meta"`: arrays that have a shape and a dtype and no memory.

A model of any size can be made there, looked at and moved with `to_empty`, and every op tells the
shape and dtype of its result: each of the forms that a device must answer is its rule of shapes,
and the others are compositions of them. What asks for an element is an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ..errors import UnsupportedError
from ..kernel.expr import Expr
from ..shapes import broadcast_shapes
from .base import Array, Backend, NumpyDType, Shape
from .strided import StridedArray

_INT64, _BOOL, _WORD = np.dtype(np.int64), np.dtype(bool), np.dtype(np.uint32)
_TRUTHS = ("any", "all")


class _Nothing:
    """What arrays look at in place of memory: as many bytes as they would take."""

    __slots__ = ("__weakref__", "nbytes")

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


class MetaBackend(Backend):
    """The device without memory; it has one index."""

    # Memory -----------------------------------------------------------------------------------
    def empty(self, shape: Shape, dtype: NumpyDType) -> StridedArray:
        dtype = np.dtype(dtype)
        shape = tuple(shape)
        nbytes = math.prod(shape) * dtype.itemsize
        return StridedArray(self, _Nothing(max(nbytes, dtype.itemsize)), shape, dtype)

    def from_host(self, array: Any) -> StridedArray:
        array = np.asarray(array)
        return self.empty(array.shape, array.dtype)

    def to_host(self, array: Array) -> NoReturn:
        raise UnsupportedError(
            f"[meta] a tensor of shape {array.shape} on the device 'meta' has no elements to copy "
            "or to look at; make it on another device, a module with to_empty(device=...)"
        )

    def assign(self, target: Array, source: Array) -> None:
        pass  # there is nothing to write to

    def address(self, x: Array) -> int:
        return 0

    def require(
        self,
        x: Array,
        low: float,
        high: float,
        error: Callable[[Any], Exception],
        but: int | None = None,
    ) -> None:
        pass  # no element is out of range

    # Making arrays: without what they would hold -------------------------------------------------
    def full(self, shape: Shape, value: Any, dtype: NumpyDType) -> StridedArray:
        return self.empty(shape, dtype)

    def arange(self, start: Any, step: Any, count: int, dtype: NumpyDType) -> StridedArray:
        return self.empty((count,), dtype)

    def philox(self, seed: int, offset: int, count: int) -> StridedArray:
        return self.empty((count,), _WORD)

    # Computation ------------------------------------------------------------------------------
    def maps(
        self,
        exprs: tuple[Expr, ...],
        operands: Sequence[Any],
        dtypes: Sequence[NumpyDType],
        outs: Sequence[Array] | None = None,
    ) -> Sequence[Array]:
        if outs is not None:
            return outs
        shape = broadcast_shapes("map", *[o.shape for o in operands if isinstance(o, StridedArray)])
        return [self.empty(shape, dtype) for dtype in dtypes]

    def reduce(self, kind: str, x: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
        sizes = list(x.shape)
        for d in sorted({d % len(sizes) for d in dims}, reverse=True):
            sizes[d : d + 1] = [1] if keepdim else []
        if kind.startswith("first_"):
            return self.empty(tuple(sizes), x.dtype), self.empty(tuple(sizes), _INT64)
        dtype = _INT64 if kind.startswith("arg") else _BOOL if kind in _TRUTHS else x.dtype
        return self.empty(tuple(sizes), dtype)

    def scan(self, kind: str, x: Array, dim: int) -> Any:
        found = self.empty(x.shape, x.dtype)
        return (found, self.empty(x.shape, _INT64)) if kind in ("max", "min") else found

    def gather(self, x: Array, dim: int, index: Array) -> StridedArray:
        return self.empty(index.shape, x.dtype)

    def scatter(
        self, kind: str, x: Array, dim: int, index: Array, source: Array, inplace: bool = False
    ) -> Array:
        return x if inplace else self.empty(x.shape, x.dtype)

    def matmul(self, a: Array, b: Array, bias: Array | None = None) -> StridedArray:
        batch = broadcast_shapes("matmul", a.shape[:-2], b.shape[:-2])
        return self.empty((*batch, a.shape[-2], b.shape[-1]), a.dtype)

    def sort(
        self, x: Array, dim: int, descending: bool, count: int | None = None
    ) -> tuple[StridedArray, StridedArray]:
        sizes = list(x.shape)
        if count is not None:
            sizes[dim] = count
        return self.empty(tuple(sizes), x.dtype), self.empty(tuple(sizes), _INT64)

    def nonzero(self, x: Array) -> NoReturn:
        self.to_host(x)  # how many there are is a question about elements

    def fft(self, kind: str, x: Array, dims: Shape, size: int, norm: str) -> StridedArray:
        sizes, dtype = list(x.shape), x.dtype
        if kind == "real":
            sizes[dims[-1]] = sizes[dims[-1]] // 2 + 1
            dtype = np.result_type(dtype, np.complex64)
        elif kind == "to_real":
            sizes[dims[-1]] = size
            dtype = np.dtype(f"f{dtype.itemsize // 2}")
        return self.empty(tuple(sizes), dtype)
