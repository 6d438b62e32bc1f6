"""The zip archive of a checkpoint: records that lie as they are, each on a line of 64 bytes.

Written so that a reader may map the file and use the records in place. Read without trust: every
offset and size is checked against the file, no two records overlap, and nothing is unpacked.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from ..errors import FileError

LINE = 64  # bytes: where records begin, as torch has them
_LARGE = 0xFFFFFFFF  # from here on sizes and offsets need 64 bits
_MANY = 0xFFFF

# signature, version, flags, method, time, date, crc, packed size, size, lengths of name and extra
_LOCAL = struct.Struct("<4s5H3I2H")
# … after two versions; then lengths of a comment, disk, attributes, and the offset of the record
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR = struct.Struct("<4sIQI")
_UTF8, _ENCRYPTED = 0x800, 0x1
_OLD_DATE = 0x21  # 1980-01-01: files of the same content are the same


class Record(NamedTuple):
    """Where the bytes of a record are, and how they were changed, if they were."""

    start: int
    size: int
    crc: int
    how: str = ""


# Writing -----------------------------------------------------------------------------------------
def archive(
    records: Iterable[tuple[str, Any]], line: int = LINE, checked: bool = True
) -> Iterator[Any]:
    """The pieces of an archive of these records (name, bytes), in order.

    Each begins at a multiple of `line` bytes; unless they are `checked` there are no checksums.
    """
    position = 0
    directory: list[bytes] = []
    for name, content in records:
        data = memoryview(content).cast("B")
        size, encoded = data.nbytes, name.encode()
        crc = zlib.crc32(data) if checked else 0
        large = size >= _LARGE
        sizes = struct.pack("<2H2Q", 1, 16, size, size) if large else b""
        # The rest of the line is an extra field, whose contents mean nothing.
        before = position + _LOCAL.size + len(encoded) + len(sizes) + 4
        fill = -before % line
        extra = sizes + struct.pack("<2sH", b"FB", fill) + b"Z" * fill
        shown = _LARGE if large else size
        fields = (_UTF8, 0, 0, _OLD_DATE, crc, shown, shown, len(encoded))
        yield _LOCAL.pack(b"PK\3\4", 45, *fields, len(extra)) + encoded + extra
        yield data
        far = position >= _LARGE
        wide = struct.pack("<2Q", size, size) if large else b""
        wide += struct.pack("<Q", position) if far else b""
        more = struct.pack("<2H", 1, len(wide)) + wide if wide else b""
        where = _LARGE if far else position
        tail = (*fields, len(more), 0, 0, 0, 0, where)
        directory.append(_CENTRAL.pack(b"PK\1\2", 45, 45, *tail) + encoded + more)
        position += _LOCAL.size + len(encoded) + len(extra) + size
    listing = b"".join(directory)
    count = len(directory)
    yield listing
    if count >= _MANY or position >= _LARGE or len(listing) >= _LARGE:
        yield _END64.pack(b"PK\6\6", 44, 45, 45, 0, 0, count, count, len(listing), position)
        yield _LOCATOR.pack(b"PK\6\7", 0, position + len(listing), 1)
    many, length, start = min(count, _MANY), min(len(listing), _LARGE), min(position, _LARGE)
    yield _END.pack(b"PK\5\6", 0, 0, many, many, length, start, 0)


# Reading -----------------------------------------------------------------------------------------
def read_archive(content: memoryview) -> dict[str, Record]:
    """The records of an archive by name; raises FileError for what is no sound one."""
    try:
        return _records(content)
    except (struct.error, UnicodeDecodeError) as error:
        raise FileError(f"[load] the archive is damaged: {error}") from None


def _end(content: memoryview) -> tuple[int, int, int]:
    """The number of records, and where their list begins and ends."""
    tail = bytes(content[-(_END.size + _MANY) :])
    at = tail.rfind(b"PK\5\6")
    if at < 0 or at + _END.size > len(tail):
        raise FileError(
            "[load] the archive is truncated or damaged: the list of its records, which ends a "
            "zip file, is missing"
        )
    _, disk, _, _, count, size, start, _ = _END.unpack_from(tail, at)
    end = len(content) - len(tail) + at
    if disk:
        raise FileError("[load] the archive has several parts; join them first")
    if count == _MANY or size == _LARGE or start == _LARGE:
        locator = end - _LOCATOR.size
        if locator < 0:
            raise FileError("[load] the archive is damaged: it has no room for its own list")
        mark, _, where, _ = _LOCATOR.unpack_from(content, locator)
        if mark == b"PK\6\7":
            if where > locator - _END64.size:
                raise FileError("[load] the archive is damaged: its list lies outside the file")
            mark, _, _, _, _, _, _, count, size, start = _END64.unpack_from(content, where)
            if mark != b"PK\6\6":
                raise FileError("[load] the archive is damaged: its list is not where it should be")
            end = where
    if start + size > end:
        raise FileError("[load] the archive is damaged: its list lies outside the file")
    return count, start, start + size


def _records(content: memoryview) -> dict[str, Record]:
    count, position, end = _end(content)
    first = position
    found: dict[str, Record] = {}
    for _ in range(count):
        if position + _CENTRAL.size > end:
            raise FileError("[load] the archive is damaged: the list of its records ends early")
        mark, _, _, flags, method, _, _, crc, packed, size, n, m, c, _, _, _, where = (
            _CENTRAL.unpack_from(content, position)
        )
        position += _CENTRAL.size
        if mark != b"PK\1\2" or position + n + m + c > end:
            raise FileError("[load] the archive is damaged: the list of its records is no list")
        name = bytes(content[position : position + n]).decode()
        extra = bytes(content[position + n : position + n + m])
        position += n + m + c
        size, packed, where = _wide(extra, size, packed, where)
        how = "encrypted" if flags & _ENCRYPTED else "compressed" if method else ""
        if not how and packed != size:
            raise FileError(f"[load] the archive is damaged: record {name!r} has two sizes")
        if name in found:
            raise FileError(f"[load] the archive is damaged: record {name!r} occurs twice")
        found[name] = Record(_start(content, name, where, packed, first), packed, crc, how)
    spans = sorted((r.start, r.start + r.size) for r in found.values() if r.size)
    if any(end > start for (_, end), (start, _) in pairwise(spans)):
        raise FileError("[load] the archive is damaged: some of its records overlap")
    return found


def _wide(extra: bytes, *fields: int) -> list[int]:
    """Size, packed size and offset, from the extra field where they need 64 bits."""
    found = list(fields)
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        at += 4
        if kind == 1:
            values = iter(struct.unpack_from(f"<{length // 8}Q", extra, at))
            found = [next(values, f) if f == _LARGE else f for f in found]
        at += length
    return found


def _start(content: memoryview, name: str, where: int, size: int, end: int) -> int:
    """Where the bytes of a record begin: behind its own header."""
    if where + _LOCAL.size > end:
        raise FileError(f"[load] the archive is damaged: record {name!r} lies outside the file")
    header = _LOCAL.unpack_from(content, where)
    start = where + _LOCAL.size + header[-2] + header[-1]
    if header[0] != b"PK\3\4" or start + size > end:
        raise FileError(
            f"[load] the archive is damaged: record {name!r} of {size:,} bytes is not at {where:,}"
        )
    return start


def record_bytes(content: memoryview, name: str, record: Record, check: bool = True) -> memoryview:
    """The bytes of a record, compared with their checksum (0 stands for none) if told to."""
    if record.how:
        raise FileError(
            f"[load] record {name!r} is {record.how}, which no checkpoint is; unpack the archive, "
            "and pack it again without compression"
        )
    found = content[record.start : record.start + record.size]
    if check and record.crc and zlib.crc32(found) != record.crc:
        raise FileError(
            f"[load] the file is damaged: the bytes of record {name!r} do not fit their checksum"
        )
    return found
