"""NumPy values among a user's arguments: one of the few files above `backends/` that know NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes

INTEGERS = (int, np.integer)
NUMBERS = (*INTEGERS, float, np.floating)
BOOLEANS = (int, np.bool_)


def is_foreign(value: Any) -> bool:
    """Whether it is a NumPy array or scalar."""
    return isinstance(value, (np.ndarray, np.generic))


def number_of(scalar: Any) -> Any:
    """A NumPy scalar as a Python number."""
    number = scalar.item()
    return float(scalar) if isinstance(number, np.generic) else number


def host_number(value: Any) -> Any:
    """A NumPy array, sharing memory, or a scalar as a Python number; unknown dtypes raise."""
    dtypes.of_array(value.dtype)
    return np.asarray(value) if isinstance(value, np.ndarray) else number_of(value)
