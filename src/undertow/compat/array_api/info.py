"""What the namespace can do, as the standard asks for it."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...backends.registry import devices
from ...devices import Device, DeviceLike, get_default_device
from ...dtypes import DType
from .data_types import KINDS, isdtype

__all__ = ["__array_namespace_info__"]


class NamespaceInfo:
    """Capabilities, devices and dtypes.

    >>> import undertow.array_api as xp
    >>> info = xp.__array_namespace_info__()
    >>> info.default_device(), info.capabilities()["boolean indexing"]
    (device(type='cpu'), True)
    """

    def capabilities(self) -> dict[str, Any]:
        """Shapes may depend on data, and an array has at most 64 dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Where new arrays are made."""
        return get_default_device()

    def devices(self) -> list[Device]:
        """The devices that there are."""
        return devices()

    def default_dtypes(self, *, device: DeviceLike | None = None) -> dict[str, DType]:
        """The dtypes of arrays made of Python's numbers, and of indices."""
        real = dtypes.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": dtypes.complex_of(real),
            "integral": dtypes.int64,
            "indexing": dtypes.int64,
        }

    def dtypes(
        self, *, device: DeviceLike | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """The dtypes of the standard that there are, of one kind or of several."""
        every = (*KINDS["bool"], *KINDS["numeric"])
        return {d.name: d for d in every if kind is None or isdtype(d, kind)}


def __array_namespace_info__() -> NamespaceInfo:
    """What this namespace can do."""
    return NamespaceInfo()
