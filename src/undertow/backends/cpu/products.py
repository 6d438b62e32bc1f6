"""Products that are added to what is there, without changing a bit of the sum."""

from __future__ import annotations

from typing import Any

from ..threads import current_limit
from .gemm import gemm, make_plan
from .gemm_driver import COMMON
from .gemm_plan import Setting
from .gemm_tiles import cache_sizes, host
from .plans import Plans

_DEPTHS = COMMON.index("depths")
_whole = Plans()


def run_add_product(out: Any, a: Any, b: Any) -> bool:
    """`out += a @ b` for floating matrices, with the bits of a product that is added afterwards.

    So only if every element is summed in one piece: a product in several blocks of k would add
    each of them to `out` in turn. And only if `out` lies as a new product does, since the way to
    compute one depends on that. Otherwise nothing happens, and the answer is False.

    >>> import numpy as np
    >>> out = np.ones((2, 2))
    >>> run_add_product(out, np.ones((2, 3)), np.ones((3, 2)))
    True
    >>> out
    array([[4., 4.],
           [4., 4.]])
    """
    if out.strides != (out.shape[1] * out.itemsize, out.itemsize):
        return False
    key = (a.shape, a.strides, b.shape, b.strides, a.dtype, current_limit())
    whole = _whole.get(key)
    if whole is None:
        whole = _whole.make(key, _in_one_piece, a, b, out)
    if whole:
        gemm(a, b, out, accumulate=True)
    return bool(whole)


def _in_one_piece(a: Any, b: Any, out: Any) -> bool:
    plan = make_plan(Setting(host(), *cache_sizes(), current_limit()), a, b, out, None, True)
    return bool(plan.memory[_DEPTHS] == 1)
