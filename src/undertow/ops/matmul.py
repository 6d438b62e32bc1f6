"""Products of matrices and vectors: matmul and its kin.

Note [one product]
Every product here is one primitive, `a' @ b'`, where the prime is an optional transposition of the
last two dimensions. Its two derivatives are the same primitive again, so that no transposed view
is ever made: the flags go down to BLAS.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes
from ..core.dispatch import apply, expand, record
from ..core.modes import current
from ..core.op import Op
from ..core.register import attach, function
from ..core.tensor import Tensor, node_of, wrap
from ..errors import DTypeError, ShapeError
from ..shapes import broadcast_shapes
from .movement import reshape

_ndarray = np.ndarray
_BLAS = (np.dtype(np.float32), np.dtype(np.float64))


def _forward(k: Any, a: Any, b: Any, ta: bool, tb: bool) -> Any:
    return k.matmul(_turned(k, a) if ta else a, _turned(k, b) if tb else b)


def _turned(k: Any, x: Any) -> Any:
    n = len(x.shape)
    return k.permute(x, (*range(n - 2), n - 1, n - 2))


_matmul = Op(
    "matmul",
    _forward,
    inputs="a b",
    params="ta tb",
    vjp={
        "a": lambda g, b, ta, tb: product(b, g, tb, True) if ta else product(g, b, False, not tb),
        "b": lambda g, a, ta, tb: product(g, a, True, ta) if tb else product(a, g, not ta, False),
    },
)


def product(a: Tensor, b: Tensor, ta: bool = False, tb: bool = False) -> Tensor:
    """`a' @ b'` of tensors of one dtype with the same batch dimensions; see Note [one product]."""
    state = current()
    x, y = a._array, b._array
    if (
        x.ndim != 2
        or x.__class__ is not _ndarray
        or y.__class__ is not _ndarray
        or x.dtype not in _BLAS
        or not state.plain
    ):
        return apply(_matmul, (a, b), (ta, tb))  # type: ignore[no-any-return]
    t = wrap((x.transpose() if ta else x).dot(y.transpose() if tb else y))
    if state.grad and (node_of(a) is not None or node_of(b) is not None):
        record(_matmul, (a, b), (ta, tb), (t,))
    return t


@function(dunder="__matmul__")
def matmul(input: Any, other: Any) -> Tensor:
    """The matrix product; vectors and batches as in NumPy's `@`, batch dimensions broadcast.

    >>> import undertow as ut
    >>> ut.matmul(ut.tensor([[1.0, 2.0], [3.0, 4.0]]), ut.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    try:
        x, y = input._array, other._array
        if x.ndim == 2 and y.ndim == 2 and x.dtype is y.dtype and x.dtype.kind == "f":
            return product(input, other)
    except (AttributeError, ValueError):
        pass
    a, b = _operands("matmul", input, other)
    if not a.ndim or not b.ndim:
        raise ShapeError(
            f"[matmul] {a.shape} @ {b.shape}: both need at least one dimension; "
            "use * to multiply by a number"
        )
    inner, rows = a.shape[-1], b.shape[-2 if b.ndim > 1 else 0]
    if inner != rows:
        raise ShapeError(
            f"[matmul] {a.shape} @ {b.shape}: the inner sizes {inner} and {rows} differ"
        )
    if a.ndim == 1 and b.ndim == 1:
        return reshape(product(reshape(a, 1, inner), reshape(b, inner, 1)), ())
    if b.ndim == 1:  # rows times a vector
        left = reshape(a, -1 if a._array.size else int(np.prod(a.shape[:-1])), inner)
        return reshape(product(left, reshape(b, inner, 1)), a.shape[:-1])
    if a.ndim == 1:
        if b.ndim == 2:
            return reshape(product(reshape(a, 1, inner), b), b.shape[1:])
        lead = (1,) * (b.ndim - 2)
        full = _batched(reshape(a, (*lead, 1, inner)), b)
        return reshape(full, (*b.shape[:-2], b.shape[-1]))
    if b.ndim == 2 and a.ndim > 2:  # one matrix for the whole batch: a single large product
        left = reshape(a, int(np.prod(a.shape[:-1])), inner)
        return reshape(product(left, b), (*a.shape[:-1], b.shape[1]))
    return _batched(a, b)


attach("__rmatmul__", lambda self, other: matmul(other, self))


def _batched(a: Tensor, b: Tensor) -> Tensor:
    lead_a, lead_b = a.shape[:-2], b.shape[:-2]
    if lead_a != lead_b:
        lead = broadcast_shapes("matmul", lead_a, lead_b)
        a, b = expand(a, lead + a.shape[-2:]), expand(b, lead + b.shape[-2:])
    return product(a, b)


def _operands(op: str, *values: Any) -> list[Tensor]:
    """The operands as tensors of one dtype; products do not promote, as in torch."""
    tensors = [_tensor(op, v) for v in values]
    first = tensors[0].dtype
    for t in tensors:
        if t.dtype is not first:
            raise DTypeError(
                f"[{op}] expects tensors of one dtype, got {first} and {t.dtype}; "
                f"convert one with .to({first})"
            )
    if first is dtypes.bool:
        raise DTypeError(f"[{op}] is not defined for bool tensors; convert them with .to(ut.int64)")
    return tensors


def _tensor(op: str, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.ndarray):
        dtypes.of_array(value.dtype)
        return wrap(value)
    raise DTypeError(f"[{op}] expects tensors, got {type(value).__name__}")
