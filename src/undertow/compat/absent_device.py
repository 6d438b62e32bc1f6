"""What `undertow.mps` and `undertow.xpu` say: honestly, that there is no such device."""

from __future__ import annotations

from typing import Any

from ..backends.registry import is_present
from ..errors import AbsentDeviceError
from ..shapes import as_int


class AbsentDevice:
    """The functions of a device's module, by the name of its type and that of its maker.

    >>> AbsentDevice("xpu", "XPU").is_available()
    False
    """

    def __init__(self, type: str, title: str) -> None:
        self.type, self.title = type, title

    def is_available(self) -> bool:
        """Whether there is such a device: only if a package brings one."""
        return is_present(self.type)

    def is_initialized(self) -> bool:
        """Whether it is in use."""
        return False

    def device_count(self) -> int:
        """How many such devices there are."""
        return int(self.is_available())

    def empty_cache(self) -> None:
        """Nothing: there is no memory to give back."""

    def manual_seed(self, seed: int) -> None:
        """Nothing but a check of `seed`: `ut.manual_seed` seeds the generators that there are."""
        as_int(f"{self.type}.manual_seed", "seed", seed)

    def seed(self) -> None:
        """Nothing: there is no such generator."""

    def synchronize(self, device: Any = None) -> None:
        """An error: there is no such device."""
        raise AbsentDeviceError(
            f"[{self.type}.synchronize] there is no {self.title} device here; ask "
            f"{self.type}.is_available() first"
        )
