"""Python's and NumPy's protocols, spoken by Tensor: repr, len, iteration, numbers, pickle, arrays."""

from __future__ import annotations

from .printing import describe
from .tensor import Tensor


def _repr(self: Tensor) -> str:
    return describe(self)


Tensor.__repr__ = _repr  # type: ignore[method-assign]
