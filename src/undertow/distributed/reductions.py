"""How arrays of several processes become one, in an order that depends on nothing.

Note [one tree]
Arrays 0 … n-1 are combined in pairs, (0 1) (2 3) …, the results again in pairs, until one is left;
who has no partner waits for the next round. A sum of floats depends on its order, so this order is
the same for every piece of an array, for small arrays and large ones, and for every way in which
the bytes travel. Groups of 2, 4, 8 … arrays that lie side by side are subtrees: it makes no
difference whether one process combines them first.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DTypeError, UnsupportedError


class RedOpType(enum.IntEnum):
    """Numbers of the ways to combine."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


class ReduceOp:
    """How tensors of several processes are combined: `ReduceOp.SUM`, `AVG`, `MIN` …

    >>> import undertow as ut
    >>> ut.distributed.ReduceOp.SUM
    <RedOpType.SUM: 0>
    """

    SUM = RedOpType.SUM
    AVG = RedOpType.AVG
    PRODUCT = RedOpType.PRODUCT
    MIN = RedOpType.MIN
    MAX = RedOpType.MAX
    BAND = RedOpType.BAND
    BOR = RedOpType.BOR
    BXOR = RedOpType.BXOR
    PREMUL_SUM = RedOpType.PREMUL_SUM

    def __new__(cls, op: RedOpType) -> Any:
        return RedOpType(op)


setattr(ReduceOp, "RedOpType", RedOpType)  # torch's path  # noqa: B010


_COMBINE: dict[RedOpType, Any] = {
    RedOpType.SUM: np.add,
    RedOpType.AVG: np.add,
    RedOpType.PRODUCT: np.multiply,
    RedOpType.MIN: np.minimum,
    RedOpType.MAX: np.maximum,
    RedOpType.BAND: np.bitwise_and,
    RedOpType.BOR: np.bitwise_or,
    RedOpType.BXOR: np.bitwise_xor,
}
_BITS = (RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR)


def checked(name: str, op: Any, dtype: np.dtype[Any]) -> RedOpType:
    """The way to combine, if this dtype can be combined so."""
    if not isinstance(op, RedOpType):
        raise DTypeError(f"[{name}] op must be a ReduceOp, got {op!r}")
    if op is RedOpType.PREMUL_SUM:
        raise UnsupportedError(f"[{name}] PREMUL_SUM is NCCL's; multiply first, then sum")
    kind = dtype.kind
    if op in _BITS and kind not in "iub":
        raise ArgumentError(f"[{name}] {op.name} combines bits of integers, got {dtype}")
    if op is RedOpType.AVG and kind in "iub":
        raise ArgumentError(f"[{name}] AVG of {dtype} is no integer; sum, and divide yourself")
    if op in (RedOpType.MIN, RedOpType.MAX) and kind == "c":
        raise ArgumentError(f"[{name}] complex numbers have no order, so no {op.name}")
    return op


def combine(arrays: Sequence[Any], op: RedOpType, out: Any, count: int = 0) -> None:
    """Combine arrays in the order of Note [one tree] into `out`, which may be one of them.

    All but the last round write into the arrays. `count` is what an average divides by.
    """
    function = _COMBINE[op]
    left = list(arrays)
    if len(left) == 1 and left[0] is not out:
        np.copyto(out, left[0])
    while len(left) > 1:
        last = len(left) <= 2
        pairs = [left[i : i + 2] for i in range(0, len(left), 2)]
        left = [
            function(p[0], p[1], out=out if last else p[0]) if len(p) == 2 else p[0] for p in pairs
        ]
    if op is RedOpType.AVG:
        np.divide(out, count or len(arrays), out=out, casting="unsafe")
