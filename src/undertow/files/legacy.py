"""Checkpoints of torch before 1.6: four pickles, the data, the storages' names, then their bytes.

The data mentions storages whose bytes come behind it, so memory is made when one is mentioned, up
to what the file can fill, and filled when its bytes are found.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import dtypes
from ..core.storage import UntypedStorage
from ..dtypes import DType
from ..errors import FileError, UnsupportedError
from .elements import LITTLE, Storage, only_ones_and_zeros, width
from .locations import MapLocation, placed
from .pickling import Pickle
from .rebuilding import GLOBALS, StorageType, Typed, memory_of
from .storages import Storages
from .unpickling import Missing, Unpickler, brief

# Their positions are checked when they are made, and the bytes come later in such a file.
_SPARSE = ("torch._utils._rebuild_sparse_tensor", "torch._utils._rebuild_sparse_csr_tensor")
_NAMES = GLOBALS | {n: Missing(n, "a sparse tensor in the format before 1.6") for n in _SPARSE}
_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001


def write_legacy(obj: Any) -> Iterator[Any]:
    """The pieces of such a file."""
    storages = Storages()
    sizes = {"short": 2, "int": 4, "long": 4}
    system = {"protocol_version": _PROTOCOL, "little_endian": True, "type_sizes": sizes}
    for thing in (_MAGIC, _PROTOCOL, system):
        yield Pickle(Storages()).write(thing)
    yield Pickle(storages, views=True).write(obj)
    records = list(storages.records())
    yield Pickle(Storages()).write([number for number, _ in records])
    for number, content in records:
        yield storages.counts[int(number)].to_bytes(8, "little")
        yield content


def read_legacy(
    content: memoryview, map_location: MapLocation, allowed: dict[str, Any], encoding: str
) -> tuple[Any, int]:
    """The object in such a file, and where it ends."""
    _refuse_others(content)
    reader = _Legacy(content, map_location)
    unpickler = Unpickler(content, _NAMES, reader.persistent, allowed, encoding)
    try:
        magic = unpickler.load()
    except FileError:
        magic = None
    if magic != _MAGIC:
        raise FileError(
            "[load] this is no checkpoint: it is no zip archive, and does not begin as the files "
            f"of torch before 1.6 do, but with {bytes(content[:16])!r}"
        )
    if unpickler.load() != _PROTOCOL:
        raise FileError("[load] the file is damaged: the number of its protocol is not 1001")
    system = unpickler.load()
    if not isinstance(system, dict):
        raise FileError("[load] the file is damaged: it does not say what system made it")
    reader.swapped = bool(system.get("little_endian", True)) is not LITTLE
    reader.room = len(content) - unpickler.position
    found = unpickler.load()
    keys = unpickler.load()
    if not isinstance(keys, list):
        raise FileError("[load] the file is damaged: its list of storages is no list")
    return found, reader.fill(keys, unpickler.position)


def _refuse_others(content: memoryview) -> None:
    if bytes(content[257:262]) == b"ustar":
        raise UnsupportedError(
            "[load] this is a tar archive, as torch wrote before 0.1.10; load and save it with a "
            "torch between 0.1.10 and 2.5"
        )
    if bytes(content[8:9]) == b"{":
        raise FileError(
            "[load] this looks like a safetensors file; read it with "
            "undertow.files.safetensors.load_file"
        )


def _itemsize(dtype: DType | None) -> int:
    """Bytes of an element; an untyped storage, of a dtype younger than the format, counts bytes."""
    return 1 if dtype is None else dtype.itemsize


class _Legacy:
    """The storages of a file as they are mentioned, and then filled."""

    def __init__(self, content: memoryview, map_location: MapLocation) -> None:
        self.swapped = False
        self.room = 0  # bytes that storages can have
        self._content = content
        self._map_location = map_location
        self._storages: dict[str, Typed] = {}

    def persistent(self, key: Any) -> UntypedStorage:
        if type(key) is not tuple or len(key) != 6 or key[0] != "storage":
            raise FileError(f"[load] the file mentions {brief(key)}, which is no storage")
        _, kind, name, location, count, view = key
        if (
            not isinstance(kind, StorageType)
            or not isinstance(name, str)
            or not isinstance(location, str)
        ):
            raise FileError(f"[load] the file mentions {brief(key)}, which is no storage")
        found = self._storages.get(name)
        if found is None:
            found = self._storages[name] = self._blank(name, kind.dtype, location, count)
        found = found if view is None else self._part(found, view)
        return memory_of(found.storage, found.dtype)

    def _blank(self, name: str, dtype: DType | None, location: str, count: Any) -> Typed:
        if dtype is None and self.swapped:
            raise UnsupportedError(
                "[load] the file has bytes of no dtype in the byte order of another machine"
            )
        size = _itemsize(dtype)
        if type(count) is not int or not 0 <= count * size <= self.room:
            raise FileError(
                f"[load] the file is truncated or damaged: storage {name!r} is said to have "
                f"{brief(count)} elements of {dtype or 'one byte'}, and {self.room:,} bytes are "
                "left for it"
            )
        self.room -= count * size
        blank = Storage.blank(count * size)
        return Typed(placed(blank, location, self._map_location), dtype)

    def _part(self, whole: Typed, view: Any) -> Typed:
        """A part of a storage, which counted as one of its own then."""
        size = _itemsize(whole.dtype)
        if type(view) is not tuple or len(view) != 3:
            raise FileError(f"[load] the file mentions a part {brief(view)} of a storage")
        _, offset, count = view
        ok = type(offset) is int and type(count) is int and offset >= 0 and count >= 0
        if not ok or (offset + count) * size > whole.storage.nbytes:
            raise FileError(f"[load] the file mentions a part {brief(view)} outside its storage")
        return Typed(whole.storage.part(offset * size, count * size), whole.dtype)

    def fill(self, keys: list[Any], position: int) -> int:
        """Read the bytes of all storages, which begin at `position`; where they end."""
        waiting = dict(self._storages)
        for key in keys:
            typed = waiting.pop(key, None) if isinstance(key, str) else None
            if typed is None:
                raise FileError(f"[load] the file is damaged: no tensor has storage {brief(key)}")
            start, nbytes = position + 8, typed.storage.nbytes
            position = start + nbytes
            if position > len(self._content):
                raise FileError(
                    f"[load] the file is truncated: storage {key!r} ends at byte {position:,}, the "
                    f"file at {len(self._content):,}"
                )
            count = int.from_bytes(self._content[start - 8 : start], "little", signed=True)
            if self.swapped:
                count = int.from_bytes(self._content[start - 8 : start], "big", signed=True)
            size = _itemsize(typed.dtype)
            if count * size != nbytes:
                raise FileError(
                    f"[load] the file is damaged: storage {key!r} has {count:,} elements, its "
                    f"tensors expect {nbytes // size:,}"
                )
            raw = self._content[start:position]
            if typed.dtype is dtypes.bool and not only_ones_and_zeros(raw):
                raise FileError(f"[load] the file is damaged: storage {key!r} is not boolean")
            swap = width(typed.dtype) if self.swapped and typed.dtype is not None else 1
            typed.storage.fill(Storage.around(raw, swap=swap))
        if waiting:
            raise FileError(f"[load] the file is damaged: storages {sorted(waiting)} are missing")
        return position
