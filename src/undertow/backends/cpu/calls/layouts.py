"""Where the elements of operands lie: as few dimensions as they allow, and steps in elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....kernel.complex_lower import PARTS
from ....kernel.ir import STREAM
from ....kernel.layout import Sizes
from ....kernel.lower import NotCompiled
from ....kernel.maps import NUMBER, Operand
from ...memory_types import numpy_name as numpy_name
from ...memory_types import scalar_type as scalar_type
from ..codegen.kernels import type_of

# Bytes of a result from which on streaming stores are faster, also for whoever reads it next: the
# caches of two cores hold less. Measured: chains of additions, 25 % faster at 8 MB, slower at 4.
STREAMED = 8 << 20
_ndarray = np.ndarray
_PAIRS = {np.dtype(np.complex64): "c64", np.dtype(np.complex128): "c128"}


# Layouts ---------------------------------------------------------------------------------------
def lay_out(
    arrays: Sequence[Any], type_of: Callable[[Any], str] = type_of
) -> tuple[Sizes, list[str], list[Sizes]]:
    """The shape to which arrays are broadcast, their types, and their steps there in elements."""
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    types = [type_of(a.dtype) for a in arrays]
    if 0 in shape or "" in types or not all(map(aligned, arrays)):
        raise NotCompiled("no elements, or of unknown types, or not a whole number of them apart")
    return shape, types, [steps_of(a, shape) for a in arrays]


def aligned(a: Any) -> bool:
    """Whether the steps are whole elements."""
    return not any(s % a.itemsize for s in a.strides)


def forwards(a: Any, like: Any = None) -> Any:
    """A view turned round along the dimensions in which `a`, or another one, runs backwards.

    >>> forwards(np.arange(3)[::-1])
    array([0, 1, 2])
    """
    steps = (a if like is None else like).strides
    return a[tuple([slice(None, None, -1 if step < 0 else 1) for step in steps])]


def steps_of(a: Any, shape: Sizes) -> Sizes:
    """The steps of `a`, in elements, when it is broadcast to `shape`."""
    own = [0 if n == 1 else s // a.itemsize for n, s in zip(a.shape, a.strides, strict=True)]
    return (0,) * (len(shape) - a.ndim) + tuple(own)


def like(arrays: Sequence[Any], shape: Sizes) -> int | None:
    """Which array's layout results of elements have; None for row-major."""
    for i, a in enumerate(arrays):
        if a.shape == shape and _dense(a):
            return None if a.flags.c_contiguous else i
    return None


def _dense(a: Any) -> bool:
    """Whether the elements lie together in memory, in some order of the dimensions."""
    if a.flags.forc:
        return True
    size = a.itemsize
    for step, n in sorted(zip(a.strides, a.shape, strict=True)):
        if n != 1:
            if step != size:
                return False
            size *= n
    return True


def streams(shape: Sizes, dtype: Any, steps: Sequence[int]) -> bool:
    """Whether streaming stores pay for a result, and all of its rows, at these steps, allow it."""
    size = np.dtype(dtype).itemsize
    return math.prod(shape) * size >= STREAMED and not any(s * size % STREAM for s in steps)


# Operands of kernels ---------------------------------------------------------------------------
def known(steps: Sequence[int]) -> list[int | None]:
    """Those steps that a kernel knows; None for others, which are its parameters."""
    return [s if s in (0, 1) else None for s in steps]


def listed(steps: Sequence[Sizes], known: Sequence[int | None]) -> list[int]:
    """The steps of all operands, but for innermost ones that the kernel knows."""
    return [n for s, k in zip(steps, known, strict=True) for n in (s if k is None else s[:-1])]


def typed(types: Sequence[str], known: Sequence[int | None]) -> list[Operand]:
    """Operands of these types; only the first so many steps are looked at."""
    return [Operand(t, s) for t, s in zip(types, known, strict=False)]


def with_numbers(operands: Sequence[Any], arrays: list[Operand], compute: str) -> list[Operand]:
    """What a kernel takes for each operand, an array or a number."""
    given = iter(arrays)
    number = Operand(PARTS.get(compute, compute), NUMBER)
    pair = Operand(compute, NUMBER)
    if compute not in PARTS and any(o.__class__ is complex for o in operands):
        raise NotCompiled("a complex number beside real ones")
    return [
        next(given) if o.__class__ is _ndarray else pair if o.__class__ is complex else number
        for o in operands
    ]


def compute_type(operands: Sequence[Any], types: Sequence[str]) -> str:
    """The type in which an expression is computed over operands, whose arrays have these types."""
    pairs = [t for t in types if t in PARTS]
    compute = scalar_type(next((t for t in [*pairs, *types] if t != "bool"), "bool"))
    if compute == "bool" and len(types) < len(operands):
        raise NotCompiled("a number beside nothing that tells its type")
    return compute


def paired_type(dtype: Any) -> str:
    """The type of an operand for the forms that know complex numbers, as pairs of their parts."""
    return _PAIRS.get(dtype) or type_of(dtype)


def result_type(dtype: Any, type_of: Callable[[Any], str] = type_of) -> str:
    """The loop IR's name of a result's dtype."""
    found = type_of(np.dtype(dtype))
    if not found:
        raise NotCompiled(f"kernels do not know {dtype}")
    return found
