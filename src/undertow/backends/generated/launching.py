"""Kernels and plans of one device: what is worked out, written and compiled once."""

from __future__ import annotations

import hashlib
import os
import struct
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...kernel.ir import Function
from ...kernel.ir_check import check
from ...kernel.lower import NotCompiled
from .. import debug
from .render import Text, render
from .runtime import Runtime

MOST = 4096  # plans; then all are forgotten
GROUP = 256  # threads, unless a form asks for fewer
_FLOATS = "fd"
CHECKED = os.environ.get("UNDERTOW_CHECK_IR") == "1"  # on in tests


class TooMany(NotCompiled):
    """More distinct buffers than a kernel of the device can see."""


class Plan(NamedTuple):
    """A launch, but for the buffers, where arrays begin in them, and numbers."""

    kernel: Any
    pack: Callable[..., bytes]  # offsets, sizes and steps, numbers
    codes: str  # of what is packed
    distinct: tuple[int, ...]  # the operands whose buffers are given, each buffer once
    ints: tuple[int, ...]
    params: bytes  # where all offsets are 0 and there are no numbers; else b""
    groups: tuple[int, int, int]
    extra: Any  # what the form itself remembers


class Launcher:
    """Plans by key, kernels by what they depend on, and counts of what was done."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.limits = runtime.limits
        self.double = runtime.limits.float64
        self.group = min(GROUP, runtime.limits.max_threads)
        self.plans: dict[Any, Plan | NotCompiled] = {}
        self.kernels: dict[Any, tuple[Any, Text]] = {}
        self.lock = threading.Lock()
        self.stats = dict.fromkeys(("launches", "compiles", "uploads", "downloads", "host"), 0)

    def find(self, key: Any, make: Callable[..., Made], *given: Any) -> Plan:
        """The plan under a key, which is made if there is none: by `make(*given)`.

        A key holds expressions and programs themselves, so that these are not freed before it, and
        tells which operands share a buffer.
        """
        plan = self.plans.get(key)
        if plan is None:
            try:
                plan = self._plan(make(*given))
            except NotCompiled as error:
                plan = type(error)(*error.args)  # without the frames, which hold arrays
            if len(self.plans) >= MOST:
                self.plans.clear()
            self.plans[key] = plan
        if isinstance(plan, NotCompiled):
            raise type(plan)(*plan.args)
        return plan

    def _plan(self, made: Made) -> Plan:
        shared = made.sharing
        distinct = tuple([shared.index(n) for n in range(max(shared, default=-1) + 1)])
        if len(distinct) > self.limits.max_bindings:
            raise TooMany(f"{len(distinct)} buffers at once, of {self.limits.max_bindings}")
        kernel, text = self._kernel(made)
        codes = text.pack.format[1:]
        numbers = len(codes) - len(shared) - len(made.ints)
        tail = self.runtime.dialect.tail
        params = b"" if numbers else text.pack.pack(*(0,) * len(shared), *made.ints) + tail
        wide = self.limits.max_groups
        if made.groups > wide * wide:
            raise NotCompiled(f"{made.groups} groups, of {wide * wide}")
        groups = (made.groups, 1, 1) if made.groups <= wide else (wide, -(-made.groups // wide), 1)
        return Plan(kernel, text.pack.pack, codes, distinct, made.ints, params, groups, made.extra)

    def _kernel(self, made: Made) -> tuple[Any, Text]:
        group = min(made.group or self.group, self.group)
        key = (made.form, repr(made.given), made.sharing, group)
        found = self.kernels.get(key)
        if found is None:
            with self.lock:  # a dialect writes one text at a time, and each of them once
                found = self.kernels.get(key) or self._compiled(made, group, repr(key))
                self.kernels[key] = found
        return found

    def _compiled(self, made: Made, group: int, told: str) -> tuple[Any, Text]:
        begin = time.perf_counter()
        digest = hashlib.blake2b(told.encode(), digest_size=6).hexdigest()
        f = made.build(f"{made.form}_{digest}", self.double, *made.given)
        if CHECKED:
            check(f)
        text = render(f, self.runtime.dialect, made.sharing, group)
        debug.listing("text", f.name, text.text)
        self.stats["compiles"] += 1
        handle = self.runtime.compile(text.text, text.entry, text.bindings, group, text.words)
        took = time.perf_counter() - begin
        debug.kernel(f.name, "compiled", took, len(text.text), "")
        debug.compiled(took)
        return handle, text

    def launch(self, plan: Plan, arrays: Sequence[Any], numbers: Sequence[Any] = ()) -> None:
        """Run a plan's kernel over arrays, in the order of its buffers."""
        buffers = [arrays[i].buffer.memory for i in plan.distinct]
        params = plan.params
        offsets = [a.offset for a in arrays]
        if not params or any(offsets):
            offsets = [o and o // a.dtype.itemsize for o, a in zip(offsets, arrays, strict=True)]
            try:
                params = plan.pack(*offsets, *plan.ints, *numbers)
            except (struct.error, OverflowError):
                given = _wrapped(plan.codes[len(offsets) + len(plan.ints) :], numbers)
                params = plan.pack(*offsets, *plan.ints, *given)
            params += self.runtime.dialect.tail
        self.stats["launches"] += 1
        self.runtime.launch(plan.kernel, buffers, params, plan.groups)


class Made(NamedTuple):
    """What a form's maker tells of a launch."""

    form: str
    build: Callable[..., Function]  # of a name, whether there is f64, and `given`
    given: tuple[Any, ...]  # its `repr` tells everything that the kernel depends on
    sharing: tuple[int, ...]
    ints: tuple[int, ...]
    groups: int
    extra: Any = None
    group: int = 0  # threads of a group, if not as many as usual


def sharing(arrays: Sequence[Any]) -> tuple[int, ...]:
    """The number of each array's buffer, counted as they come."""
    seen: dict[int, int] = {}
    return tuple([seen.setdefault(id(a.buffer), len(seen)) for a in arrays])


def _wrapped(codes: str, numbers: Sequence[Any]) -> list[Any]:
    """Numbers beyond their types: integers wrap around, floats are infinite."""
    found = []
    for code, n in zip(codes, numbers, strict=True):
        if code in _FLOATS:
            with np.errstate(over="ignore"):
                found.append(float((np.float32 if code == "f" else np.float64)(float(n))))
        else:
            bits = 32 if code == "i" else 64
            found.append((int(n) + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1)))
    return found
