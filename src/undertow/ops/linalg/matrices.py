"""What the functions of matrices share: checks of arguments, batches, and LAPACK's `info`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...backends.registry import backend_of
from ...core.dispatch import expand
from ...core.tensor import Tensor
from ...errors import DTypeError, LinAlgError, ShapeError
from ...shapes import broadcast_shapes
from ..reduce.reduction import is_half
from ..shape.movement import reshaped


def numbers(op: str, x: Tensor, name: str = "A") -> Tensor:
    """`x`, which must be floating or complex, and of single precision at least."""
    if x._array.dtype.kind not in "fc" or is_half(x):
        raise DTypeError(
            f"[{op}] {name} must be of single or double precision, real or complex, got {x.dtype}; "
            "convert it first, for example with .to(ut.float32)"
        )
    return x


def matrices(op: str, x: Tensor, name: str = "A", square: bool = False) -> Tensor:
    """`x`, which must be a matrix or a batch of them, of numbers that can be divided."""
    return numbers(op, shaped(op, x, name, square), name)


def shaped(op: str, x: Tensor, name: str = "A", square: bool = False) -> Tensor:
    """`x`, which must be a matrix or a batch of them, of whatever."""
    shape = x._array.shape
    if len(shape) < 2:
        raise ShapeError(f"[{op}] {name} must be a matrix or a batch of them, got shape {shape}")
    if square and shape[-1] != shape[-2]:
        raise ShapeError(f"[{op}] {name} must be square, got shape {shape}")
    return x


def one_dtype(op: str, a: Tensor, b: Tensor, names: tuple[str, str] = ("A", "B")) -> None:
    """Two operands must have one dtype: nothing here promotes."""
    if a.dtype is not b.dtype:
        raise DTypeError(
            f"[{op}] {names[0]} and {names[1]} must have one dtype, got {a.dtype} and {b.dtype}; "
            f"convert one with .to({a.dtype})"
        )


def batched(op: str, *tensors: Tensor) -> list[Tensor]:
    """Batches of matrices, broadcast against each other."""
    lead = broadcast_shapes(op, *[t.shape[:-2] for t in tensors])
    return [t if t.shape[:-2] == lead else expand(t, lead + t.shape[-2:]) for t in tensors]


def succeeded(op: str, info: Tensor, reason: Callable[[int], str]) -> None:
    """An error unless `info` is 0 for each matrix: `reason` says what another number means."""

    def error(found: Any) -> LinAlgError:
        which, number = next((i, int(n)) for i, n in enumerate(found.ravel()) if n)
        index = []
        for size in reversed(found.shape):
            index.append(which % size)
            which //= size
        batch = f"matrix {tuple(reversed(index))} of the batch: " if index else ""
        return LinAlgError(f"[{op}] {batch}{reason(number)}")

    array = info._array
    backend_of(array).require(array, 0, 1, error)


def singular(number: int) -> str:
    """What `info` means where a pivot must not be zero."""
    return f"the matrix is singular, its pivot {number} is zero; ut.linalg.pinv or lstsq may do"


def flattened(x: Tensor) -> Tensor:
    """A batch of matrices with one batch dimension."""
    return reshaped(x, (math.prod(x.shape[:-2]), *x.shape[-2:]))
