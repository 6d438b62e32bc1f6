"""The CPU: generated kernels for large arrays, NumPy for small ones and for what has no kernel.

The modules that generate are imported with the first kernel, so that `import undertow` stays quick.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...kernel.expr import Expr
from ...kernel.row_program import Program
from ..base import Array, NumpyDType
from ..reference import NumpyBackend
from .choice import crossover, threshold


class CpuBackend(NumpyBackend):
    """Every form on `ndarray`s, by whichever of the two is faster."""

    def map(self, expr: Expr, operands: Sequence[Any], dtype: NumpyDType) -> Array:
        size = max([o.size for o in operands if o.__class__ is np.ndarray], default=0)
        if size >= crossover(expr):
            from .maps import run_maps

            found = run_maps((expr,), operands, (dtype,))
            if found is not None:
                return found[0]
        return super().map(expr, operands, dtype)

    def maps(
        self, exprs: tuple[Expr, ...], operands: Sequence[Any], dtype: NumpyDType
    ) -> tuple[Array, ...] | None:
        """Several expressions over large operands in one pass; None if there is no kernel."""
        from .maps import run_maps

        return run_maps(exprs, operands, (dtype,) * len(exprs))

    def rows(
        self, program: Program, operands: Sequence[Any], dims: tuple[int, ...],
        dtypes: Sequence[NumpyDType],
    ) -> tuple[Array, ...]:  # fmt: skip
        if max([o.size for o in operands if o.__class__ is np.ndarray]) >= threshold(2048):
            from .rows import run_rows

            found = run_rows(program, operands, dims, dtypes)
            if found is not None:
                return found
        return super().rows(program, operands, dims, dtypes)
