"""What the text of a case may call; a failure prints this file in front of the case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def numbers(seed: int, *shape: int) -> Any:
    """Normally distributed numbers, the same for the same seed and shape."""
    return np.asarray(np.random.default_rng(seed).standard_normal(shape))


def places(seed: int, size: int, *shape: int) -> Any:
    """Random indices of a dimension of this size."""
    return np.asarray(np.random.default_rng(seed).integers(0, size, shape))


def order(seed: int, size: int, count: int) -> Any:
    """Distinct indices of a dimension of this size."""
    return np.random.default_rng(seed).permutation(size)[:count]


def flags(seed: int, *shape: int) -> Any:
    """Random booleans."""
    return np.asarray(np.random.default_rng(seed).random(shape) > 0.4)


def refused(action: Callable[[], Any]) -> bool:
    """Whether an action raises."""
    try:
        action()
    except (RuntimeError, ValueError, TypeError, IndexError):
        return True
    return False


def shifted(array: Any, shift: float, seed: int) -> Any:
    """An array moved along a random direction."""
    return array + shift * numbers(seed, *array.shape) if shift else array


def derivatives(
    lib: Any, values: dict[str, Any], leaves: list[Any], orders: int, **how: Any
) -> Any:
    """Gradients of a random combination of the values, then of those, and so on, by name."""
    found: dict[str, Any] = {}
    wanted = [v for v in values.values() if hasattr(v, "detach") and v.is_floating_point()]
    for order in range(1, orders + 1):
        total: Any = 0.0
        for j, value in enumerate(wanted):
            if value is not None and value.requires_grad:
                weight = lib.tensor(numbers(100 * order + j, *value.shape), dtype=value.dtype)
                total = total + (value * weight).sum().to(lib.float64)
        if not hasattr(total, "detach"):
            break
        again = order < orders
        wanted = lib.autograd.grad(total, leaves, create_graph=again, allow_unused=True, **how)
        found |= {f"derivative {order} of x{j}": g for j, g in enumerate(wanted)}
    return found


def distance(found: Any, expected: Any, least: float) -> float:
    """The largest difference, as a fraction of the largest number, or of `least` if that is more.

    None stands for zeros.
    """
    b = np.zeros(1) if expected is None else np.asarray(expected, np.float64)
    scale = np.abs(b[np.isfinite(b)]).max(initial=least)
    return _gap(found, expected, lambda b: scale)


def each_distance(found: Any, expected: Any, least: float) -> float:
    """The same, with each number compared with itself."""
    return _gap(found, expected, lambda b: np.clip(np.abs(b), least, 1e300))


def _gap(found: Any, expected: Any, scale: Callable[[Any], Any]) -> float:
    if found is None and expected is None:
        return 0.0
    a = np.zeros(np.shape(expected)) if found is None else np.asarray(found, np.float64)
    b = np.zeros(np.shape(found)) if expected is None else np.asarray(expected, np.float64)
    if a.shape != b.shape or (np.isnan(a) != np.isnan(b)).any():
        return np.inf
    with np.errstate(all="ignore"):
        gaps = np.where((a == b) | np.isnan(a), 0.0, np.abs(a - b) / scale(b))
    return float(np.where(np.isnan(gaps), np.inf, gaps).max(initial=0.0))
