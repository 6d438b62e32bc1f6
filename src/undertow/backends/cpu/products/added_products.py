"""Products that are added to what is there, without changing a bit of the sum."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...threads import current_limit
from ..calls.launch import Plan, plan_of
from .gemm import make_plan, run_product
from .gemm_plan import Setting
from .gemm_tiles import cache_sizes, host


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
    plan = plan_of(_make, (a, b, out), current_limit())
    if not plan or np.may_share_memory(out, a) or np.may_share_memory(out, b):
        return False
    run_product(plan, a, b, out)
    return True


def _make(operands: tuple[Any, Any, Any], threads: int) -> Plan | None:
    """The plan of `out += a @ b`, if every element is summed in one piece."""
    a, b, out = operands
    plan = make_plan(Setting(host(), *cache_sizes(), threads), a, b, out, None, True)
    return plan if plan.more.depths == 1 else None
