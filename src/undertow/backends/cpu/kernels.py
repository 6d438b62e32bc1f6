"""Kernels of the loop IR as functions that Python can call."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import struct
from collections.abc import Callable, Sequence
from typing import Any

from ...kernel.ir import Function
from ...kernel.ir_check import check
from ...kernel.ir_text import render
from ..memory_types import TYPES as TYPES
from ..memory_types import type_of as type_of
from . import jit, native
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


_kernels: dict[tuple[str, str], Callable[..., None]] = {}
_places: dict[Callable[..., None], tuple[int, list[str]]] = {}  # addresses, types of arguments


def kernel(
    form: str, build: Callable[..., Function], *given: Any, tuned: bool = False
) -> Callable[..., None]:
    """A kernel of the loop IR, as a function of the pool, the buffers' addresses and parameters.

    It is `build(name, *given)`, made only if the caches have none; what is given tells, by its
    `repr`, everything that the kernel depends on. `tuned` is that of `jit.load`.
    """
    told = repr(given)
    found = _kernels.get((form, told))
    if found is None:
        name = _named(form, told)
        found = _kernels[form, told] = _found(name, told, lambda: build(name, *given), tuned)
    return found


def _named(form: str, told: str) -> str:
    return f"{form}_{hashlib.blake2b(told.encode(), digest_size=6).hexdigest()}"


def _found(name: str, told: str, make: Callable[[], Function], tuned: bool) -> Callable[..., None]:
    """The kernel of this name from the caches on disk, or else made."""
    if CHECKED:
        return compiled(make(), tuned)

    def text() -> tuple[str, str]:
        f = make()
        kinds = ["ptr"] * (1 + len(f.buffers)) + [p.dtype for p in f.params]
        return emit(f, machine(), packed=True), " ".join(kinds)

    address, kinds = jit.lookup(name, told, text, told, lambda: render(make()), tuned)
    return _callable(address, kinds.split())


def written(
    form: str, write: Callable[..., str], *given: Any, buffers: int, ints: int
) -> Callable[..., None]:
    """A kernel whose LLVM IR is `write(name, *given)`, as a function like those of `kernel`.

    Of the pool, so many addresses and so many integers, as in Note [packed arguments].
    """
    told = repr(given)
    found = _kernels.get((form, told))
    if found is None:
        name = _named(form, told)
        address, _ = jit.lookup(name, told, lambda: (write(name, *given), ""), told, tuned=True)
        found = _callable(address, ["ptr"] * (1 + buffers) + ["i64"] * ints)
        _kernels[form, told] = found
    return found


def compiled(f: Function, tuned: bool = False) -> Callable[..., None]:
    """`f` as a function of the pool, the buffers' addresses and the parameters."""
    if CHECKED:
        check(f)
    text = emit(f, machine(), packed=True)
    address = jit.load(f.name, text, source=lambda: render(f), tuned=tuned)
    return _callable(address, ["ptr"] * (1 + len(f.buffers)) + [p.dtype for p in f.params])


def _callable(address: int, kinds: list[str]) -> Callable[..., None]:
    """The function at an address, by Note [packed arguments]."""
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
    pack = struct.Struct("=" + "".join([_CODES[k] for k in kinds])).pack

    def call(*args: Any) -> None:
        try:
            packed = pack(*args)
        except (struct.error, OverflowError):  # numbers beyond a type: they wrap, or are infinite
            packed = b"".join([_in_eight(k, a) for k, a in zip(kinds, args, strict=True)])
        run(packed)

    _places[call] = address, kinds
    return call


def launching(
    call: Callable[..., None], buffers: int, ints: Sequence[int], release: bool = True
) -> Callable[..., None]:
    """A kernel as a function of the pool, so many arrays, and the numbers behind `ints`.

    It is quicker to call than by addresses; see Note [native calls], there for `release`, too.
    """
    if native.possible():
        place, kinds = _places[call]
        return native.launcher(place, buffers, ints, kinds[1 + buffers + len(ints) :], release)

    def launch(pool: int, *given: Any) -> None:
        call(pool, *map(address, given[:buffers]), *ints, *given[buffers:])

    return launch


def _in_eight(kind: str, value: Any) -> bytes:
    return bytes(_C_TYPES[kind](value)).ljust(8, b"\0")
