"""The few words of protobuf that an ONNX file needs, written by hand."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

VARINT, FIXED32, BYTES = 0, 5, 2  # how a field is written


def varint(value: int) -> bytes:
    r"""An integer, seven bits at a time; negative ones as 64 bits.

    >>> varint(300)
    b'\xac\x02'
    """
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: Any) -> bytes:
    """One field of a message: an integer, a float, text, or bytes, which may be a message."""
    if isinstance(value, int):
        return varint(number << 3 | VARINT) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | FIXED32) + struct.pack("<f", value)
    raw = value.encode() if isinstance(value, str) else bytes(value)
    return varint(number << 3 | BYTES) + varint(len(raw)) + raw


def message(*fields: tuple[int, Any]) -> bytes:
    r"""A message of (number, value); a list repeats its field, None leaves it out.

    >>> message((1, "a"), (2, [1, 2]), (3, None))
    b'\n\x01a\x10\x01\x10\x02'
    """
    parts: list[bytes] = []
    for number, value in fields:
        if value is None:
            continue
        several: Iterable[Any] = value if isinstance(value, list) else [value]
        parts += [field(number, v) for v in several]
    return b"".join(parts)
