"""A few forms as launches alone, for forms whose launches are found out; see Note [steps]."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....kernel.expr import Expr, trace
from ....kernel.lower import NotCompiled
from ..calls.launch import fixed
from .copies import run_assign, run_copy
from .maps import run_maps
from .reductions import run_reduce

_SUM = trace(lambda a, b: a + b, 2)


class Launching:
    """Forms that algorithms of several launches ask for; NotCompiled where one has no kernel."""

    def copy(self, x: Any) -> Any:
        return _there(run_copy(x))

    def assign(self, target: Any, source: Any) -> None:
        _there(run_assign(target, source) or None)

    def zero(self, arrays: Sequence[Any]) -> None:
        for a in arrays:
            if a.size:
                self.assign(a, _zero(a.dtype))

    def map(self, expr: Expr, operands: Sequence[Any], dtype: Any, out: Any) -> Any:
        return _there(run_maps((expr,), operands, (dtype,), (out,)))[0]

    def add_into(self, target: Any, value: Any) -> None:
        self.map(_SUM, (target, value), target.dtype, target)

    def reduce(self, kind: str, x: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
        return _there(run_reduce(kind, x, dims, keepdim))


def _there(found: Any) -> Any:
    if found is None:
        raise NotCompiled("no kernel")
    return found


@functools.cache
def _zero(dtype: Any) -> Any:
    return fixed(np.zeros((), dtype))
