"""How `ut.save` and `ut.load` work unless a call says otherwise: torch's switches.

`load` and `save` are what torch has in `utils.serialization.config`; the functions read and set the
same switches.
"""

from __future__ import annotations

import enum
import mmap
from threading import local
from types import TracebackType
from typing import Any

from ..errors import ArgumentError, DTypeError, UnsupportedError

_PRIVATE = int(getattr(mmap, "MAP_PRIVATE", 2))
_SHARED = int(getattr(mmap, "MAP_SHARED", 1))


class LoadEndianness(enum.Enum):
    """The byte order of files that do not tell theirs, which torch wrote before 2.1."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class load:
    """Switches of `ut.load`."""

    mmap = False
    mmap_flags = _PRIVATE
    endianness: LoadEndianness | None = None
    calculate_storage_offsets = False  # kept; the list of an archive is always read


class save:
    """Switches of `ut.save`."""

    compute_crc32 = True
    use_pinned_memory_for_d2h = False  # kept; there is no device to pin memory for
    storage_alignment = 64


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order of files that do not tell theirs; None is that of most machines, little."""
    return load.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the byte order of files that do not tell theirs.

    >>> import undertow as ut
    >>> ut.serialization.set_default_load_endianness(ut.serialization.LoadEndianness.LITTLE)
    >>> ut.serialization.get_default_load_endianness()
    <LoadEndianness.LITTLE: 2>
    >>> ut.serialization.set_default_load_endianness(None)
    """
    if not isinstance(endianness, LoadEndianness | None):
        raise DTypeError(
            "[set_default_load_endianness] wants a LoadEndianness or None, got "
            f"{type(endianness).__name__}"
        )
    load.endianness = endianness


def get_crc32_options() -> bool:
    """Whether `ut.save` computes checksums."""
    return save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Whether `ut.save` computes checksums; without them it is quicker, and `unzip` complains.

    >>> import undertow as ut
    >>> ut.serialization.set_crc32_options(True)
    >>> ut.serialization.get_crc32_options()
    True
    """
    save.compute_crc32 = bool(compute_crc32)


def get_default_mmap_options() -> int:
    """`mmap.MAP_PRIVATE` or `mmap.MAP_SHARED`; see `set_default_mmap_options`."""
    return load.mmap_flags


class set_default_mmap_options:
    """What `ut.load(..., mmap=True)` maps: `MAP_PRIVATE` memory, or `MAP_SHARED`.

    Changes of shared memory go to the file. Works at once, and ends with a `with` block.

    >>> import mmap
    >>> import undertow as ut
    >>> with ut.serialization.set_default_mmap_options(mmap.MAP_SHARED):
    ...     ut.serialization.get_default_mmap_options() == mmap.MAP_SHARED
    True
    """

    def __init__(self, flags: int) -> None:
        if flags not in (_PRIVATE, _SHARED):
            raise ArgumentError(
                "[set_default_mmap_options] wants mmap.MAP_PRIVATE or mmap.MAP_SHARED, got "
                f"{flags!r}"
            )
        self._before = load.mmap_flags
        load.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        load.mmap_flags = self._before


def maps_shared() -> bool:
    """Whether changes of mapped memory go to the file."""
    return load.mmap_flags == _SHARED


_skipping = local()


class skip_data:
    """Save and load without the bytes of tensors, inside a `with` block.

    A file that is saved has room for the bytes of its tensors, to be filled by others; tensors that
    are loaded have their shapes, and zeros.

    >>> import io
    >>> import undertow as ut
    >>> file = io.BytesIO()
    >>> with ut.serialization.skip_data():
    ...     ut.save(ut.ones(2), file)
    >>> _ = file.seek(0)
    >>> ut.load(file)
    tensor([0., 0.])
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        if materialize_fake_tensors:
            raise UnsupportedError(
                "[skip_data] there are no fake tensors to materialise; leave out "
                "materialize_fake_tensors"
            )
        self._before: Any = False

    def __enter__(self) -> None:
        self._before, _skipping.on = skips_data(), True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _skipping.on = self._before


def skips_data() -> bool:
    """Whether this thread is inside a `skip_data` block."""
    return bool(getattr(_skipping, "on", False))
