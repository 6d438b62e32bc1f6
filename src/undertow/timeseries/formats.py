"""The three formats of files: CSV, `.ts` and `.npz`, each checked from end to end."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FileError
from .long import IDS, LABELS, Columns, places_of, read_long
from .series import TimeSeries

_VALUES, _LABELS = ("X", "x", "values", "data", "series"), ("y", "labels", "label", "Y")
_NUMBER = re.compile(r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_EXACT = 2**53  # up to here every integer is a float
_TRUE = {"true": True, "false": False}
Row = tuple[int, list[list[float]], str | None]  # its line, its channels, its label


class Failure(FileError):
    """What is wrong with one file; it is named first."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"[{path.name}] {reason}")


def text_of(path: Path) -> str:
    """A text file in UTF-8, with or without a byte-order mark."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Failure(
            path,
            f"byte {error.start} ({error.object[error.start]:#04x}) is not UTF-8: the file has "
            "another encoding or is no text; save it as UTF-8",
        ) from None
    if not text.strip():
        raise Failure(path, "the file is empty; it needs at least one series")
    return text


def label_of(cell: object) -> str:
    """A label as text, so that 1, 1.0 and 1.0000000e+00 are the same one.

    What is not written as a number is (007, 1_0), or has more digits than a float, stays as it is:
    labels that differ must not become one.

    >>> label_of("1.0000000e+00"), label_of("cat "), label_of("1.50"), label_of("007")
    ('1', 'cat', '1.5', '007')
    """
    text = str(cell).strip()
    if not _NUMBER.fullmatch(text):
        return text
    number = float(text)
    if not math.isfinite(number) or Decimal(repr(number)) != Decimal(text):
        return text
    if not number.is_integer():
        return repr(number)
    return str(int(number)) if abs(number) <= _EXACT else text


def number_of(path: Path, line: int, cell: str) -> float:
    """A cell's number, where nothing, `?` and `NA` are a missing one."""
    try:
        return float(cell)
    except ValueError:
        if cell.strip() in ("", "?", "NA", "N/A", "null"):
            return math.nan
        point = "; write a point for the decimal comma" if _COMMA.fullmatch(cell.strip()) else ""
        raise Failure(path, f"line {line}: {cell.strip()[:40]!r} is not a number{point}") from None


def assembled(path: Path, name: str, rows: Sequence[Row]) -> TimeSeries:
    """Rows as one array; an error names the first that is wrong."""
    if not rows:
        raise Failure(path, "there are no series in the file")
    channels, made = len(rows[0][1]), []
    for line, series, label in rows:
        if len(series) != channels:
            raise Failure(path, f"line {line} has {len(series)} channels, the first {channels}")
        if label == "":
            raise Failure(path, f"line {line} has no label")
        longest = max(map(len, series))
        padded = [[*channel, *[math.nan] * (longest - len(channel))] for channel in series]
        made.append(np.array(padded, np.float64))
    labels = tuple(label for _, _, label in rows if label is not None)
    found = TimeSeries.gathered(path.name, made, [f"line {line}" for line, _, _ in rows])
    return replace(found, name=name, labels=labels or None)


# CSV ---------------------------------------------------------------------------------------------
def read_csv(path: Path, columns: Columns, labelled: bool | None, length: int | None) -> TimeSeries:
    """One series a row, or one moment a row: Note [long or wide] in long.py.

    A header is not needed: then the label of a series is in the first column.
    """
    column = columns.label
    lines = text_of(path).splitlines()
    first = next(line for line in lines if line.strip())
    separator = max(",;\t", key=first.count)
    cells: Iterator[list[str]] = csv.reader(lines, delimiter=separator)
    if separator not in first:
        cells = (line.split() for line in lines)
    table = [(n, row) for n, row in enumerate(cells, 1) if any(cell.strip() for cell in row)]
    head = [cell.strip() for cell in table[0][1]]
    named = _has_header(head, table[1][1] if len(table) > 1 else [], columns)
    if labelled is False and len(head) == 1 and len(table) > 3 and columns.format != "wide":
        # One column is one series, to forecast; its times are the numbers of its rows.
        table = [(line, [str(n), *row]) for n, (line, row) in enumerate(table)]
        named, head = not _numeric(head[0]), ["row", *head]
        columns = replace(columns, time="0", value="1")
    long = places_of(path.name, head, named, table[named:], columns, labelled)
    if long is not None:
        if not table[named:]:
            raise Failure(path, "there are no series in the file")
        return read_long(path, table[named:], long)
    at = _label_column(path, head, named, column, labelled, length)
    if at == 0 and not named and column is None and not _numeric(head[-1]) and len(head) > 1:
        raise Failure(
            path,
            f"line {table[0][0]}: {head[-1][:40]!r} in the last column is not a number; if the "
            "labels are there and not in the first one, say --label-column -1",
        )
    who = _id_column(path, head, named, columns, at)
    rows: list[Row] = []
    ids = []
    for line, row in table[named:]:
        if named and len(row) > len(head):
            raise Failure(path, f"line {line} has {len(row)} cells, the header {len(head)}")
        if who is not None:
            ids.append(label_of(row[who]) if who < len(row) else "")
        label = label_of(row[at]) if at is not None and at < len(row) else None
        values = [number_of(path, line, c) for i, c in enumerate(row) if i not in (at, who)]
        rows.append((line, [values], label if labelled is not False else None))
    widest = max((len(row) for _, row in table[named:]), default=len(head))
    if named and rows and widest < len(head):
        raise Failure(
            path,
            f"line {rows[0][0]} has {len(table[1][1])} cells, the header {len(head)}: a column is "
            "missing",
        )
    found = assembled(path, path.stem, rows)
    target = head[at] if named and at is not None and labelled is not False else ""
    return replace(found, ids=tuple(ids) or None, target=target)


def _id_column(
    path: Path, head: list[str], named: bool, columns: Columns, label: int | None
) -> int | None:
    """Where a wide table has the names of its series, which are no values."""
    if columns.id is not None:
        if columns.id in head:
            return head.index(columns.id)
        raise Failure(path, f"there is no column {columns.id!r}")
    lower = [cell.lower() for cell in head] if named else []
    return next((i for i, cell in enumerate(lower) if cell in IDS and i != label), None)


def _has_header(head: list[str], second: list[str], columns: Columns) -> bool:
    """Whether the first row names columns: the label's is among them, or several are no numbers."""
    for column in (columns.label, columns.id, columns.time, columns.value, columns.dimension):
        if column is not None and column in head:
            return not _numeric(column)
    if any(cell.lower() in LABELS for cell in head):
        return True
    words = [i for i, cell in enumerate(head) if not _numeric(cell)]
    below = [i for i in words if i < len(second) and not _numeric(second[i].strip())]
    return len(words) > 1 and below != words  # words in both rows are no names


def _numeric(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell in ("", "?", "NA", "N/A", "null")
    return True


def _label_column(
    path: Path,
    head: list[str],
    named: bool,
    column: str | None,
    labelled: bool | None,
    length: int | None,
) -> int | None:
    """Where the labels are; None if there are none, which is an error where they are needed."""
    shown = ", ".join(head[:6]) + (" …" if len(head) > 6 else "")
    if column is not None:
        if named and column in head:
            return head.index(column)
        if column.lstrip("-").isdecimal() and -len(head) <= int(column) < len(head):
            return int(column) % len(head)
        if labelled:
            what = f"the columns are {shown}" if named else "and no header"
            raise Failure(path, f"there is no column {column!r}; {len(head)} columns, {what}")
        return None
    if named:
        found = [i for i, cell in enumerate(head) if cell.lower() in LABELS]
        if found:
            return found[0]
        if labelled:
            raise Failure(
                path,
                f"no column is named {', '.join(LABELS)}; the columns are {shown}: name "
                "the one with the labels by --label-column",
            )
        return None
    if labelled is False and length is None:  # all are values, but for names in front
        return None if _numeric(head[0]) else 0
    if labelled is None:  # what a model learnt from tells whether there is a label in front
        return None if len(head) == length else 0
    return 0 if labelled or len(head) != length else None


# .ts ---------------------------------------------------------------------------------------------
def read_ts(path: Path, labelled: bool | None) -> TimeSeries:
    """The format of the time series classification archives: a header of @words, then series."""
    name, has_label, data, known, numbers = path.stem, None, False, None, False
    rows: list[Row] = []
    for number, line in enumerate(text_of(path).splitlines(), 1):
        line = line.strip()
        if not line or line.startswith(("#", "%")):
            continue
        if data:
            rows.append(_ts_row(path, number, line, bool(has_label)))
            continue
        if not line.startswith("@"):
            raise Failure(path, f"line {number}: expected @data before the series")
        word, *given = line[1:].split()
        word = word.lower()
        flag = _TRUE.get(given[0].lower()) if given else None
        if word == "problemname" and given:
            name = given[0]
        elif word == "timestamps" and flag:
            raise Failure(path, "series with time stamps (@timeStamps true) cannot be read")
        elif word == "targetlabel" and flag:
            has_label = numbers = True
        elif word == "classlabel":
            if flag is None:
                raise Failure(path, f"line {number}: @classLabel must be true or false")
            has_label, known = flag, {label_of(label) for label in given[1:]}
        data = word == "data"
    if not data:
        raise Failure(path, "there is no @data line, so this is no .ts file or only a part of one")
    if labelled and not has_label:
        raise Failure(
            path, "the series have no labels (@classLabel true 1 2 …, or @targetLabel true)"
        )
    for number, _, label in rows:
        if known and label is not None and label not in known:
            raise Failure(
                path, f"line {number}: label {label!r} is not one of @classLabel {sorted(known)}"
            )
    if labelled is False:
        rows = [(number, series, None) for number, series, _ in rows]
    return replace(assembled(path, name, rows), numbers=numbers)


def _ts_row(path: Path, number: int, line: str, has_label: bool) -> Row:
    parts = line.split(":")
    if has_label and len(parts) < 2:
        raise Failure(path, f"line {number} has no label after a colon")
    label = label_of(parts.pop()) if has_label else None
    return number, [[number_of(path, number, c) for c in part.split(",")] for part in parts], label


# .npz --------------------------------------------------------------------------------------------
def read_npz(path: Path, labelled: bool | None, part: str | None = None) -> TimeSeries | None:
    """Arrays `X` of shape (number, length) or (number, channels, length), and `y`.

    A `part` ("train", "test") is in `X_train` and `y_train`; None is returned if it is not there.
    """
    import zipfile
    import zlib

    try:
        with open(path, "rb") as opened:
            file = np.load(opened, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise Failure(path, "this is one array; save a .npz file with X and y")
            arrays = {key: file[key] for key in file.files}
    except (EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, Failure):
            raise
        raise Failure(path, f"this is no .npz file of plain arrays: {error}") from None
    split = any(f"{name}_train" in arrays for name in _VALUES)
    if part is not None and not split:
        return None
    tail = f"_{part or 'test'}" if split else ""
    values = _array(arrays, _VALUES, tail)
    if values is None:
        if part == "test":
            return None
        raise Failure(path, f"there is no array X{tail}; there are {', '.join(sorted(arrays))}")
    if values.ndim == 2:
        values = values[:, None]
    if values.ndim != 3 or values.dtype.kind not in "fiu":
        raise Failure(
            path,
            f"X{tail} must be numbers of shape (number, length) or (number, channels, length), "
            f"got {values.dtype} {values.shape}",
        )
    labels = _array(arrays, _LABELS, tail) if labelled is not False else None
    if labels is None and labelled:
        raise Failure(path, f"there is no array y{tail} with labels; there are {sorted(arrays)}")
    if labels is not None and labels.shape != values.shape[:1]:
        raise Failure(path, f"y{tail} has shape {labels.shape}, and X{tail} {len(values)} series")
    if labels is not None and labels.dtype.kind == "S":
        try:
            labels = np.char.decode(labels, "utf-8")
        except UnicodeDecodeError:
            raise Failure(path, f"y{tail} has bytes that are not UTF-8; save it as text") from None
    if not values.size:
        raise Failure(path, f"there is nothing in series of shape {values.shape}")
    given = () if labels is None else [label_of(label) for label in labels.tolist()]
    found = TimeSeries.gathered(path.name, list(values))
    return replace(found, name=path.stem, labels=tuple(given) or None)


def _array(
    arrays: Mapping[str, NDArray[Any]], names: Sequence[str], tail: str
) -> NDArray[Any] | None:
    return next((arrays[n + tail] for n in names if n + tail in arrays), None)
