"""`undertow.mps`: says honestly that there is no Metal device; see `undertow.cuda`."""

from __future__ import annotations

from typing import Any

from .backends.registry import is_present
from .errors import AbsentDeviceError
from .shapes import as_int

__all__ = [
    "device_count",
    "empty_cache",
    "is_available",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "synchronize",
]


def is_available() -> bool:
    """Whether there is such a device: only if a package brings one.

    >>> import undertow as ut
    >>> ut.mps.is_available()
    False
    """
    return is_present("mps")


def device_count() -> int:
    """How many such devices there are."""
    return int(is_available())


def empty_cache() -> None:
    """Nothing: there is no memory to give back."""


def manual_seed(seed: int) -> None:
    """Nothing but a check of `seed`: there is no such generator; `ut.manual_seed` seeds ours."""
    as_int("mps.manual_seed", "seed", seed)


def manual_seed_all(seed: int) -> None:
    """Nothing but a check of `seed`: there is no such generator; `ut.manual_seed` seeds ours."""
    as_int("mps.manual_seed_all", "seed", seed)


def seed() -> None:
    """Nothing: there is no such generator."""


def synchronize(device: Any = None) -> None:
    """An error: there is no such device."""
    raise AbsentDeviceError(
        "[mps.synchronize] there is no Metal device here; ask mps.is_available() first"
    )
