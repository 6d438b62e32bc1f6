"""Kernels of the loop IR as functions that Python can call."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import struct
from collections.abc import Callable, Sequence
from typing import Any

from ....kernel.ir import Function
from ....kernel.ir_check import check
from ....kernel.ir_text import render
from ...memory_types import TYPES as TYPES
from ...memory_types import type_of as type_of
from . import jit
from .jit import address as address
from .llvm import emit
from .llvm_values import Machine

_C_TYPES = {
    "ptr": ctypes.c_void_p,
    "i64": ctypes.c_int64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}
_CODES = {"ptr": "q", "i64": "q", "f32": "f4x", "f64": "d"}
QUICK = 1 << 13  # elements that take less time than other threads of Python to wake up
CHECKED = os.environ.get("UNDERTOW_CHECK_IR") == "1"  # on in tests


@functools.cache
def machine() -> Machine:
    """What code for this machine may use."""
    features = jit.features()
    arm = "neon" in features
    fma, half = "fma" in features or arm, "f16c" in features or arm
    return Machine(jit.vector_bytes(), fma, half, "avx512f" in features)


class Kernel:
    """Generated code, which is called with the pool, its buffers' addresses and its parameters.

    All have one calling convention, that of Note [packed arguments]. Called as a Python function
    it takes them one by one; `launch.Launch` is quicker.
    """

    __slots__ = ("_pack", "_run", "address", "kinds", "name")

    def __init__(self, name: str, address: int, kinds: Sequence[str]) -> None:
        """`kinds` are the types of all arguments."""
        self.name, self.address, self.kinds = name, address, tuple(kinds)
        self._run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
        self._pack = struct.Struct("=" + "".join([_CODES[k] for k in kinds])).pack

    def __call__(self, *args: Any) -> None:
        try:
            packed = self._pack(*args)
        except (struct.error, OverflowError):  # numbers beyond a type: they wrap, or are infinite
            packed = b"".join([_in_eight(k, a) for k, a in zip(self.kinds, args, strict=True)])
        self._run(packed)


_kernels: dict[tuple[str, str], Kernel] = {}


def kernel(form: str, build: Callable[..., Function], *given: Any, tuned: bool = False) -> Kernel:
    """A kernel of the loop IR: `build(name, *given)`, made only if the caches have none.

    What is given tells, by its `repr`, everything that the kernel depends on. `tuned` is that of
    `jit.load`.
    """
    told = repr(given)
    found = _kernels.get((form, told))
    if found is None:
        name = _named(form, told)
        found = _kernels[form, told] = _found(name, told, lambda: build(name, *given), tuned)
    return found


def _named(form: str, told: str) -> str:
    return f"{form}_{hashlib.blake2b(told.encode(), digest_size=6).hexdigest()}"


def _found(name: str, told: str, make: Callable[[], Function], tuned: bool) -> Kernel:
    """The kernel of this name from the caches on disk, or else made."""
    if CHECKED:
        return compiled(make(), tuned)

    def text() -> tuple[str, str]:
        f = make()
        return emit(f, machine(), packed=True), " ".join(_kinds(f))

    address, kinds = jit.lookup(name, told, text, told, lambda: render(make()), tuned)
    return Kernel(name, address, kinds.split())


def compiled(f: Function, tuned: bool = False) -> Kernel:
    """`f` as a kernel."""
    if CHECKED:
        check(f)
    text = emit(f, machine(), packed=True)
    address = jit.load(f.name, text, source=lambda: render(f), tuned=tuned)
    return Kernel(f.name, address, _kinds(f))


def _kinds(f: Function) -> list[str]:
    return ["ptr"] * (1 + len(f.buffers)) + [p.dtype for p in f.params]


def _in_eight(kind: str, value: Any) -> bytes:
    return bytes(_C_TYPES[kind](value)).ljust(8, b"\0")
