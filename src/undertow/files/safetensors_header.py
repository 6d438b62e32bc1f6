"""The header of a safetensors file: what it may say, and how it is read without trust."""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

from .. import dtypes
from ..dtypes import DType
from ..errors import FileError

# In the order of the format's own definition, by which files are laid out (the last come first).
DTYPES: dict[str, DType | None] = {
    "BOOL": dtypes.bool,
    "F4": None,
    "F6_E2M3": None,
    "F6_E3M2": None,
    "U8": dtypes.uint8,
    "I8": dtypes.int8,
    "F8_E5M2": dtypes.float8_e5m2,
    "F8_E4M3": dtypes.float8_e4m3fn,
    "F8_E8M0": dtypes.float8_e8m0fnu,
    "F8_E4M3FNUZ": dtypes.float8_e4m3fnuz,
    "F8_E5M2FNUZ": dtypes.float8_e5m2fnuz,
    "I16": dtypes.int16,
    "U16": dtypes.uint16,
    "F16": dtypes.float16,
    "BF16": dtypes.bfloat16,
    "I32": dtypes.int32,
    "U32": dtypes.uint32,
    "F32": dtypes.float32,
    "C64": dtypes.complex64,
    "F64": dtypes.float64,
    "I64": dtypes.int64,
    "U64": dtypes.uint64,
}
NAMES = {dtype: name for name, dtype in DTYPES.items() if dtype is not None}
RANK = {name: i for i, name in enumerate(DTYPES)}
LARGEST = 100_000_000  # bytes: the limit of the format's own library
METADATA = "__metadata__"


class Entry(NamedTuple):
    """What the header says of a tensor; begin and end are bytes of the file."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def read_header(op: str, content: Any) -> tuple[dict[str, Entry], dict[str, str] | None]:
    """Where each tensor lies, and the metadata; every number checked."""
    size = len(content)
    if size < 8:
        raise FileError(f"[{op}] no safetensors file: it has {size} bytes, and less than 8 is none")
    length = int.from_bytes(content[:8], "little")
    if length > LARGEST:
        raise FileError(
            f"[{op}] no safetensors file: its header would have {length:,} bytes, at most "
            f"{LARGEST:,} are allowed"
        )
    start = 8 + length
    if start > size:
        raise FileError(
            f"[{op}] the file is truncated: its header has {length:,} bytes, the file {size:,}"
        )
    try:
        text = bytes(content[8:start]).decode()
        if not text.startswith("{"):
            raise ValueError("it does not begin with '{'")
        header = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise FileError(f"[{op}] the header is no valid JSON: {error}") from None
    if not isinstance(header, dict):  # pragma: no cover (it begins with a brace)
        raise FileError(f"[{op}] the header is no JSON object")
    metadata = header.pop(METADATA, None)
    if metadata is not None and not (
        isinstance(metadata, dict) and all(isinstance(v, str) for v in metadata.values())
    ):
        raise FileError(f"[{op}] {METADATA} is no object of strings")
    entries = {name: _entry(op, name, fields, start) for name, fields in header.items()}
    _check_cover(op, entries, start, size)
    return entries, metadata


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {name!r:.200} occurs twice")
        found[name] = value
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _entry(op: str, name: str, fields: Any, start: int) -> Entry:
    wanted = {"dtype", "shape", "data_offsets"}
    if not isinstance(fields, dict) or set(fields) != wanted:
        raise FileError(
            f"[{op}] {name!r} needs dtype, shape and data_offsets, the header has {fields!r:.200}"
        )
    dtype, shape, offsets = fields["dtype"], fields["shape"], fields["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise FileError(f"[{op}] {name!r} has the unknown dtype {dtype!r:.200}")
    if not isinstance(shape, list) or not all(map(_is_count, shape)) or len(shape) > 64:
        raise FileError(f"[{op}] {name!r} has a shape that is none: {shape!r:.200}")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
        raise FileError(f"[{op}] {name!r} has data_offsets that are none: {offsets!r:.200}")
    begin, end = offsets
    known = DTYPES[dtype]
    if known is not None and math.prod(shape) * known.itemsize != end - begin:
        raise FileError(
            f"[{op}] {name!r}: {dtype} of shape {tuple(shape)} takes "
            f"{math.prod(shape) * known.itemsize:,} bytes, but data_offsets {offsets} hold "
            f"{end - begin:,}"
        )
    # A size of 0 hides the others in the product, but arrays have strides of all of them.
    extent = math.prod(max(size, 1) for size in shape)
    if extent * (known.itemsize if known is not None else 1) >= 2**63:
        raise FileError(f"[{op}] {name!r} has a shape that is too large: {shape!r:.200}")
    return Entry(dtype, tuple(shape), start + begin, start + end)


def _check_cover(op: str, entries: dict[str, Entry], start: int, size: int) -> None:
    """The tensors lie one behind the other, to the end of the file."""
    reached = start
    for name, e in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if e.begin != reached or e.end < e.begin:
            what = "overlaps another tensor" if e.begin < reached else "leaves a gap before it"
            raise FileError(
                f"[{op}] {name!r} {what}: its data_offsets are "
                f"{[e.begin - start, e.end - start]}, the data before ends at {reached - start}"
            )
        reached = e.end
    if reached != size:
        why = "truncated" if reached > size else "longer than its header says"
        raise FileError(
            f"[{op}] the file is {why}: the tensors end at byte {reached:,}, the file at {size:,}"
        )
