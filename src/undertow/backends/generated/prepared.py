"""Expressions of one or two operands that are called often: a launch in a few microseconds.

What a call looks like, its layouts and dtypes, is found in one dictionary; all that is left is to
allocate the result and to launch. Anything unusual goes the way of `maps`.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...kernel.expr import Expr
from ...kernel.lower import NotCompiled
from ..base import is_boolean
from ..strided import StridedArray
from .launching import Made, sharing
from .memory import Block, LargeBlock, block

MOST = 256  # layouts that an expression remembers
_BOOL = np.dtype(bool)
_PACK = {"f": struct.Struct("<f").pack, "d": struct.Struct("<d").pack}


class Ready(NamedTuple):
    """A launch, and what its result is like."""

    kernel: Any
    params: bytes  # with a number: those before it
    groups: tuple[int, int, int]
    nbytes: int
    pack: Callable[[float], bytes]  # of a number
    shape: Any
    dtype: Any
    strides: Any


class Prepared:
    """`start` is the function of the operands, of which `arrays` tells the arrays."""

    def __init__(
        self, k: Any, make: Callable[..., Made], exprs: tuple[Expr, ...], arrays: tuple[bool, ...]
    ) -> None:
        self.k = k
        self.make = make  # the plan of a map
        self.exprs = exprs
        self.kind = _BOOL if is_boolean(exprs[0]) else None
        self.ready: dict[Any, Ready] = {}
        self.met: set[Any] = set()  # layouts, also of what is always unusual
        self.tail = k.runtime.dialect.tail
        numbers = arrays.count(False)
        self.first = arrays.index(True)
        forms = {(1, 0): self._unary, (2, 0): self._binary, (2, 1): self._beside}
        self.start = forms[len(arrays), numbers]()

    def _unusual(self, key: Any, *operands: Any) -> StridedArray:
        """A call whose layout is new, or whose operands do not begin where their buffers do."""
        dtypes = (self.kind or operands[self.first].dtype,)
        out: StridedArray = self.k.maps(self.exprs, operands, dtypes)[0]
        arrays = [o for o in operands if o.__class__ is StridedArray]
        usual = out.buffer.__class__ is Block and not any(a.offset for a in arrays)
        if key not in self.met and out.size and usual:
            if len(self.met) >= MOST:
                self.met.clear()
                self.ready.clear()
            self.met.add(key)
            with contextlib.suppress(NotCompiled):
                self._remember(key, operands, arrays, dtypes, out)
        return out

    def _remember(
        self, key: Any, operands: Any, arrays: list[StridedArray], dtypes: Any, out: StridedArray
    ) -> None:
        if any(a.buffer.__class__ is LargeBlock for a in arrays):
            return
        told = (*self.exprs, key, "prepared")
        given = (self.exprs, operands, dtypes, None, sharing(arrays))
        plan = self.k.plan(told, self.make, self.k, *given)
        params, pack = plan.params, _PACK["f"]
        if len(arrays) < len(operands):
            _, _, floating, half, _ = plan.extra
            if not floating or half is not None:
                return
            pack = _PACK[plan.codes[-1]]
            zeros = (0,) * (1 + len(arrays))
            params = plan.pack(*zeros, *plan.ints, 0.0)[: -len(pack(0.0))]
        nbytes = out.size * out.dtype.itemsize
        layout = (out.shape, out.dtype, out.strides)
        self.ready[key] = Ready(plan.kernel, params, plan.groups, nbytes, pack, *layout)

    def _unary(self) -> Callable[..., StridedArray]:
        k, ready, runtime, stats = self.k, self.ready, self.k.runtime, self.k.stats

        def start(a: StridedArray) -> StridedArray:
            key = (a.shape, a.strides, a.dtype)
            known = ready.get(key)
            if known is None or a.offset:
                return self._unusual(key, a)
            kernel, params, groups, nbytes, _, shape, dtype, strides = known
            made = block(runtime, nbytes)
            stats["launches"] += 1
            runtime.launch(kernel, (made.memory, a.buffer.memory), params, groups)
            return StridedArray(k, made, shape, dtype, strides)

        return start

    def _binary(self) -> Callable[..., StridedArray]:
        k, ready, runtime, stats = self.k, self.ready, self.k.runtime, self.k.stats

        def start(a: StridedArray, b: StridedArray) -> StridedArray:
            left, right = a.buffer, b.buffer
            key = (a.shape, a.strides, b.shape, b.strides, a.dtype, b.dtype, left is right)
            known = ready.get(key)
            if known is None or a.offset or b.offset:
                return self._unusual(key, a, b)
            kernel, params, groups, nbytes, _, shape, dtype, strides = known
            made = block(runtime, nbytes)
            given: tuple[Any, ...] = (made.memory, left.memory)
            if left is not right:
                given = (made.memory, left.memory, right.memory)
            stats["launches"] += 1
            runtime.launch(kernel, given, params, groups)
            return StridedArray(k, made, shape, dtype, strides)

        return start

    def _beside(self) -> Callable[..., StridedArray]:
        """An array and a number, in this order or the other one."""
        k, ready, runtime, stats = self.k, self.ready, self.k.runtime, self.k.stats
        first, tail = self.first, self.tail

        def start(*operands: Any) -> StridedArray:
            a, number = operands[first], operands[1 - first]
            key = (a.shape, a.strides, a.dtype)
            known = ready.get(key)
            if known is None or a.offset:
                return self._unusual(key, *operands)
            kernel, params, groups, nbytes, pack, shape, dtype, strides = known
            try:
                params = params + pack(number) + tail
            except (OverflowError, struct.error):  # beyond the type
                return self._unusual(key, *operands)
            made = block(runtime, nbytes)
            stats["launches"] += 1
            runtime.launch(kernel, (made.memory, a.buffer.memory), params, groups)
            return StridedArray(k, made, shape, dtype, strides)

        return start
