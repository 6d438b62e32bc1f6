"""Where the storages of a file go: `map_location`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ..devices import Device, DeviceLike
from ..errors import DeviceError, DTypeError
from .elements import Storage

MapLocation: TypeAlias = (
    DeviceLike | Mapping[str, DeviceLike] | Callable[[Storage, str], Any] | None
)


def placed(storage: Storage, location: str, map_location: MapLocation) -> Storage:
    """A storage, which is on the CPU, on the device that it shall be on.

    `location` is the device that it was saved from, and where it goes unless `map_location` says
    another: a device for all, a dict from one to the other, or a function that is given the
    storage and its location and returns a storage, a device, or None for the location.
    """
    if map_location is None:
        wanted: Any = location
    elif isinstance(map_location, (str, Device)):
        wanted = map_location
    elif isinstance(map_location, Mapping):
        wanted = map_location.get(location, location)
    elif callable(map_location):
        wanted = map_location(storage, location)
        if isinstance(wanted, Storage):
            return wanted
        wanted = location if wanted is None else wanted
    else:
        raise DTypeError(
            "[load] map_location is a device, a dict of devices or a function, got "
            f"{type(map_location).__name__}"
        )
    try:
        return storage.to(wanted)
    except DeviceError as error:
        raise DeviceError(
            f"[load] the file has tensors of device {location!r}, to be loaded to {wanted!r}: "
            f"{error}; pass map_location='cpu'"
        ) from None
