"""The backend of a device that runs generated text: every form, over its runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...devices import Device
from ...kernel.expr import Expr
from ...kernel.groups.elements import blocks
from ...kernel.groups.maps import arange_function, fill_function
from ...kernel.groups.random import philox_function, random_map_function
from ...kernel.layout import coalesce
from ...kernel.lower import NotCompiled
from ..memory_types import scalar_type
from ..strided import StridedArray
from . import cut_windows, cutting
from .checks import Checks
from .host import refuse, with_host
from .launching import Made
from .layouts import as_words, countable, padded, steps_in
from .memory import LargeBlock
from .pairs import Paired
from .rows import Rows
from .runtime import Runtime

_WORD = 0xFFFFFFFF
_UINT32, _BOOL = np.dtype(np.uint32), np.dtype(bool)


class GeneratedBackend(Rows):
    """All forms from the loop IR; see runtime.py for what a device brings.

    `allow_host` lets NumPy compute what the device cannot: True, or "warn", once for each form and
    reason. Else that is an error.
    """

    allow_host: bool | str = False
    host_switch = "allow_host = True of its backend"  # how a user allows it

    def __init__(self, device: Device, runtime: Runtime) -> None:
        super().__init__(device, runtime)
        self._known: set[Any] = set()  # dtypes
        self.told: set[tuple[str, str]] = set()  # what was computed on the host, and why
        self.checks = Checks(self)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> StridedArray:
        if dtype not in self._known:
            self._told_of(np.dtype(dtype))
        return super().empty(shape, dtype)

    def bits(self, x: StridedArray, dtype: Any) -> StridedArray:
        self._told_of(np.dtype(dtype))
        return super().bits(x, dtype)

    def to_host(self, array: StridedArray) -> Any:
        self.checks.look()
        return super().to_host(array)

    def synchronize(self) -> None:
        """Wait until everything that was launched is done, and was right."""
        self.checks.look()
        super().synchronize()

    def require(
        self,
        x: StridedArray,
        low: float,
        high: float,
        error: Callable[[Any], Exception],
        but: int | None = None,
    ) -> Any:
        if not x.size:
            return low
        try:
            self.checks.add(x, low, high, error, but)
        except NotCompiled:
            return super().require(x, low, high, error, but)
        return None

    def _told_of(self, dtype: Any) -> None:
        """An error for a dtype that the device does not compute with, unless the host may."""
        if dtype not in self._known and not self.allow_host:
            try:
                self.type_of(dtype)
            except Paired:
                pass
            except NotCompiled as reason:
                refuse(self, "to", reason)
            self._known.add(dtype)

    # Making arrays ----------------------------------------------------------------------------
    def full(self, shape: tuple[int, ...], value: Any, dtype: Any) -> StridedArray:
        dtype = np.dtype(dtype)
        out = self.empty(tuple(shape), dtype)
        words = as_words(out)
        if not out.size:
            return out
        if len(words.shape) != len(out.shape) or out.buffer.__class__ is LargeBlock:
            self.assign(out, self.from_host(np.array(value, dtype)))
            return out
        number = int(np.array(value, dtype).view(f"i{words.dtype.itemsize}"))

        def make() -> Made:
            count = countable(out.shape)
            given = (self.type_of(words.dtype),)
            return Made("fill", fill_function, given, (0,), (count,), blocks(count))

        plan = self.plan(("fill", out.size, words.dtype), make)
        self.launcher.launch(plan, [words], (number,))
        return out

    def arange(self, start: Any, step: Any, count: int, dtype: Any) -> StridedArray:
        dtype = np.dtype(dtype)
        whole = dtype.kind in "iub"
        large = count * dtype.itemsize > self.limits.max_binding
        if count < 1 or not (whole or self.limits.float64) or dtype.kind == "c" or large:
            return super().arange(start, step, count, dtype)  # in float64, by the host
        out = self.empty((count,), dtype)

        def make() -> Made:
            given = (self.type_of(dtype), "i64" if whole else "f64")
            number = countable((count,))
            return Made("arange", arange_function, given, (0,), (number,), blocks(number))

        numbers = [int(start), int(step)] if whole else [float(start), float(step)]
        if whole and numbers != [start, step]:
            return super().arange(start, step, count, dtype)
        self.launcher.launch(self.plan(("arange", count, dtype), make), [out], numbers)
        return out

    def philox(self, seed: int, offset: int, count: int) -> StridedArray:
        first, last = offset // 4, (offset + count + 3) // 4
        out = self.empty((4 * (last - first),), _UINT32)
        if out.buffer.__class__ is LargeBlock:
            half = count // 2
            parts = [(offset, half), (offset + half, count - half)]
            return self.concat([self.philox(seed, *part) for part in parts], 0)
        if out.size:

            def make() -> Made:
                countable(out.shape)
                number = last - first
                return Made("philox", philox_function, (), (0,), (number,), blocks(number))

            plan = self.plan(("philox", last - first), make)
            words = (first & _WORD, first >> 32, seed & _WORD, seed >> 32)
            self.launcher.launch(plan, [out], words)
        skip = offset - 4 * first
        return self.slice(out, (slice(skip, skip + count),)) if out.size != count else out

    def random_map(
        self,
        expr: Expr,
        x: StridedArray,
        numbers: tuple[float, ...],
        limit: int,
        seed: int,
        offset: int,
    ) -> StridedArray:
        large = x.size * x.dtype.itemsize > self.limits.max_binding
        if offset % 4 or limit > _WORD or large or x.buffer.__class__ is LargeBlock:
            return super().random_map(expr, x, numbers, limit, seed, offset)
        out = self.empty(x.shape, x.dtype)

        def make() -> Made:
            count = countable(x.shape)
            dtype = self.type_of(x.dtype)
            sizes, (steps,) = padded(*coalesce(x.shape, [steps_in(x, x.shape)], ordered=True))
            counters = -(-count // 4)
            given = (expr, dtype, scalar_type(dtype), len(numbers), len(sizes))
            ints = (counters, count)
            extra = (*sizes, *steps)
            groups = blocks(counters)
            return Made("random_map", random_map_function, given, (0, 1), ints, groups, extra)

        if x.size:
            plan = self.plan(("random", expr, len(numbers), x.shape, x.strides, x.dtype), make)
            first = offset // 4
            words = (first & _WORD, first >> 32, seed & _WORD, seed >> 32, limit)
            self.launcher.launch(plan, [out, x], (*words, *plan.extra, *map(float, numbers)))
        return out


_CUT = {form: getattr(cut_windows, form) for form in ("conv", "window")}
for _form in ("scan", "recurrence", "sort", "gather", "take", "scatter", "put", "searchsorted"):
    _CUT[_form] = getattr(cutting, _form)
_CUT["nonzero"] = cutting.nonzero
for _form in (
    *("assign", "maps", "reduce", "map_reduce", "scan", "recurrence", "gather", "take"),
    *("scatter", "put", "matmul", "sort", "nonzero", "searchsorted", "conv", "window"),
    *("random_map", "update"),
):
    _own = getattr(GeneratedBackend, _form)
    setattr(GeneratedBackend, _form, with_host(_form, _own, _CUT.get(_form)))
