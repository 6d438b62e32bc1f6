"""Tables in long format, a row per value: how they are recognised, and how they are read.

Note [long or wide]
A wide table has a series a row, a long one a moment a row: which series (id), when (time), and the
values. Reading one as the other gives nonsense without an error, so every table is looked at. Names
of columns tell (`id`, `time`, `value` …), and so does structure: in a long table one column comes
in groups, and another one increases in each of them, or has the same values in each. That a wide
table does so by chance is less likely than one in a million, else it counts as wide. A table that
only its structure tells is refused with a sentence on what to say. Where no labels are wanted, a
table with a column of times that increase, and no ids, is one series: so forecasts are written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import numpy as np

from ..errors import FileError
from .series import TimeSeries

FORMATS = ("auto", "wide", "long")
LABELS = ("label", "class", "target", "y")
IDS = (
    *("id", "series", "series_id", "case", "case_id", "sample", "sample_id", "unit", "item"),
    *("item_id", "unique_id", "uid", "subject", "subject_id", "instance"),
)
TIMES = (
    *("time", "t", "timestamp", "date", "datetime", "ds", "step", "timestep", "time_step"),
    *("timepoint", "tick"),
)
VALUES = ("value", "values", "val", "reading", "measurement")
DIMENSIONS = ("dimension", "dim", "channel", "variable", "sensor")
_MOST = 12  # columns of a table whose structure is looked at
_CHANCE = math.log(1e6)
Table = Sequence[tuple[int, list[str]]]  # lines and their cells


@dataclass(frozen=True)
class Columns:
    r"""Which columns of a table have what, by name or number; None is what the file tells.

    >>> import undertow as ut
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "heart.csv"
    >>> _ = path.write_text("patient,minute,bpm\n7,0,61\n7,1,64\n9,0,80\n9,1,78\n")
    >>> columns = ut.timeseries.Columns(id="patient", time="minute", value="bpm")
    >>> two = ut.timeseries.read(path, columns=columns)
    >>> two.ids, two.values.tolist()
    (('7', '9'), [[[61.0, 64.0]], [[80.0, 78.0]]])
    """

    format: str = "auto"
    label: str | None = None
    id: str | None = None
    time: str | None = None
    value: str | None = None  # or several, with commas between them
    dimension: str | None = None

    @property
    def says_long(self) -> bool:
        """Whether a column was named that only a long table has."""
        return any(name is not None for name in (self.time, self.value, self.dimension))


@dataclass(frozen=True)
class Places:
    """Where the columns of a long table are."""

    time: int
    values: tuple[int, ...]
    id: int | None = None
    label: int | None = None
    dimension: int | None = None
    head: tuple[str, ...] = field(default=())

    def told(self) -> str:
        """A sentence on it."""
        roles = (("id", self.id), ("time", self.time), ("dimension", self.dimension))
        known = [f"{role} {self._name(at)}" for role, at in roles if at is not None]
        known.append("values " + " ".join(self._name(at) for at in self.values))
        if self.label is not None:
            known.append(f"label {self._name(self.label)}")
        return f"read as long format: {', '.join(known)}"

    def _name(self, at: int) -> str:
        return repr(self.head[at]) if self.head else f"column {at}"


def places_of(
    name: str, head: list[str], named: bool, table: Table, asked: Columns, labelled: bool | None
) -> Places | None:
    """Where a long table's columns are; None if this is a wide one."""
    if asked.format == "wide":
        if asked.says_long:
            raise FileError(f"[{name}] --time, --value and --dimension are of --format long")
        return None

    def at(given: str | None, names: Sequence[str]) -> int | None:
        if given is not None:
            return _column(name, head, named, given)
        lower = [cell.lower() for cell in head] if named else []
        return next((lower.index(n) for n in names if n in lower), None)

    told = asked.format == "long" or asked.says_long
    series, time = at(asked.id, IDS), at(asked.time, TIMES)
    dimension = at(asked.dimension, DIMENSIONS)
    label = at(asked.label, LABELS)
    by_name = series is not None and time is not None and _grouped(table, series, time)
    series_alone = labelled is False and series is None and time is not None and named
    if not told and not by_name and not (series_alone and _rises(table, time)):
        if found := _looks_long(table, labelled is False and len(head) < 3):
            raise FileError(_refusal(name, head, named, *found))
        return None
    if time is None:
        raise FileError(f"[{name}] which column has the times? say --time {_shown(head, named)}")
    values: tuple[int, ...] = ()
    if asked.value is not None:
        values = tuple(_column(name, head, named, part) for part in asked.value.split(","))
    else:
        one = at(None, VALUES)
        taken = {series, time, dimension, label}
        values = (one,) if one is not None else tuple(i for i in range(len(head)) if i not in taken)
    if not values and labelled is False and label is not None:  # id, ds, y: nothing else to learn
        values, label = (label,), None
    if not values:
        raise FileError(f"[{name}] which column has the values? say --value {_shown(head, named)}")
    if series is None and labelled is not False:
        raise FileError(
            f"[{name}] which column tells the series apart? say --id {_shown(head, named)}"
        )
    if label is None and labelled:
        raise FileError(f"[{name}] which column has the labels? say --label {_shown(head, named)}")
    if dimension is not None and len(values) > 1:
        raise FileError(f"[{name}] a column of dimensions goes with one of values: say --value")
    kept = label if labelled is not False else None
    return Places(time, values, series, kept, dimension, tuple(head) if named else ())


def _column(name: str, head: list[str], named: bool, given: str) -> int:
    given = given.strip()
    if named and given in head:
        return head.index(given)
    if given.lstrip("-").isdecimal() and -len(head) <= int(given) < len(head):
        return int(given) % len(head)
    what = f"the columns are {_shown(head, named)}" if named else "and no header"
    raise FileError(f"[{name}] there is no column {given!r}; {len(head)} columns, {what}")


def _shown(head: list[str], named: bool) -> str:
    shown = head if named else [str(i) for i in range(len(head))]
    return ", ".join(shown[:8]) + (" …" if len(shown) > 8 else "")


def _refusal(name: str, head: list[str], named: bool, series: int | None, time: int) -> str:
    """What to say instead, with the columns that were found out."""
    word = [cell if named else str(i) for i, cell in enumerate(head)]
    others = [w for i, w in enumerate(word) if i not in (series, time)]
    value = others[0] if others else "VALUE"
    label = f" --label {others[-1]}" if len(others) > 1 else " --label LABEL"
    which = f"--id {word[series]}" if series is not None else "--id ID"
    return (
        f"[{name}] the table looks like long format, a moment a row, not a series a row: column "
        f"{word[time]!r} {'increases' if series is None else 'is a time'} for each "
        f"{'row' if series is None else repr(word[series])}. Say --format long {which} "
        f"--time {word[time]} --value {value}{label}; or --format wide if each row is a series"
    )


def _cells(table: Table, at: int) -> list[str]:
    return [row[at].strip() if at < len(row) else "" for _, row in table]


def _grouped(table: Table, series: int, time: int) -> bool:
    """Whether some series has several moments."""
    return len(set(_cells(table, series))) < len(table) and bool(_cells(table, time))


def _rises(table: Table, time: int | None) -> bool:
    """Whether a narrow table's times increase from row to row: it is one series, to forecast."""
    if time is None or len(table) < 3 or len(table[0][1]) > _MOST:
        return False
    try:
        return bool((np.diff(_moments(_cells(table, time))) > 0).all())
    except ValueError:
        return False


def _looks_long(table: Table, alone: bool) -> tuple[int | None, int] | None:
    """The columns of groups and of times, if the structure tells: Note [long or wide]."""
    width = len(table[0][1]) if table else 0
    if not 2 <= width <= _MOST or len(table) < 3:
        return None
    times = {}
    for at in range(width):
        try:
            times[at] = _moments(_cells(table, at))
        except ValueError:
            continue
    for series in range(width):
        groups: dict[str, list[int]] = {}
        for i, cell in enumerate(_cells(table, series)):
            groups.setdefault(cell, []).append(i)
        if len(groups) * 3 > len(table):
            continue
        chance = sum(math.lgamma(len(rows) + 1) for rows in groups.values())
        for time, when in times.items():
            if time == series:
                continue
            parts = [when[rows] for rows in groups.values()]
            rising = all((np.diff(part) > 0).all() for part in parts)
            sets = {tuple(sorted(part)) for part in parts}
            panel = len(sets) == 1 < len(parts) and len(set(parts[0])) == len(parts[0]) > 2
            if (rising and chance > _CHANCE) or panel:
                return series, time
    if alone:
        for time, when in times.items():
            if (np.diff(when) > 0).all() and math.lgamma(len(when) + 1) > _CHANCE:
                return None, time
    return None


def _moments(cells: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Times as numbers: they are numbers, or dates as ISO 8601 writes them."""
    try:
        found = np.array([float(cell) for cell in cells])
    except ValueError:
        found = np.array([_seconds(cell) for cell in cells])
    if not np.isfinite(found).all():
        raise ValueError("a time is missing")
    return found


def _seconds(cell: str) -> float:
    moment = datetime.fromisoformat(cell)
    if moment.tzinfo is not None:
        return moment.timestamp()
    return (moment - datetime(1970, 1, 1)).total_seconds()


def read_long(path: Path, table: Table, at: Places) -> TimeSeries:
    """One series for each id, its values in the order of their times."""
    from .formats import Failure, label_of, number_of

    needed = max(i for i in (at.id, at.time, at.label, at.dimension, *at.values) if i is not None)
    for line, row in table:
        if len(row) <= needed:
            raise Failure(path, f"line {line} has {len(row)} cells; column {needed} is missing")
    try:
        times = _moments(_cells(table, at.time))
    except ValueError:
        raise Failure(path, _wrong_time(table, at)) from None
    dimensions: dict[str, int] = {}
    found: dict[str, list[tuple[float, int, float, int]]] = {}
    labels: dict[str, str] = {}
    for (line, row), time in zip(table, times.tolist(), strict=True):
        series = "" if at.id is None else label_of(row[at.id])
        rows = found.setdefault(series, [])
        if at.label is not None:
            label = label_of(row[at.label])
            if label == "":
                raise Failure(path, f"line {line} has no label")
            if labels.setdefault(series, label) != label:
                raise Failure(
                    path,
                    f"line {line}: series {series!r} has the label {label!r}, and "
                    f"{labels[series]!r} before; a series has one label",
                )
        for k, column in enumerate(at.values):
            channel = k
            if at.dimension is not None:
                channel = dimensions.setdefault(label_of(row[at.dimension]), len(dimensions))
            rows.append((time, channel, number_of(path, line, row[column]), line))
    channels = len(dimensions) or len(at.values)
    made, uneven = [], 0
    for series, rows in found.items():
        when = sorted({time for time, *_ in rows})
        place = {time: i for i, time in enumerate(when)}
        values = np.full((channels, len(when)), np.nan)
        seen: dict[tuple[int, int], int] = {}
        for time, channel, value, line in rows:
            cell = channel, place[time]
            if cell in seen:
                raise Failure(
                    path,
                    f"lines {seen[cell]} and {line} are of the same time {time:g} of series "
                    f"{series!r}; if a column has dimensions, name it by --dimension",
                )
            seen[cell] = line
            values[cell] = value
        steps = np.diff(when)
        uneven += len(steps) > 1 and bool(steps.max() > 1.01 * steps.min())
        made.append(values)
    gathered = TimeSeries.gathered(path.name, made, [f"series {series!r}" for series in found])
    notes = [at.told()]
    if uneven:
        notes.append(f"the times of {uneven} series are not evenly spaced: taken in their order")
    return replace(
        gathered,
        name=path.stem,
        labels=tuple(labels[series] for series in found) if labels else None,
        ids=tuple(found) if at.id is not None else None,
        target=at.head[at.label] if at.head and at.label is not None else "",
        notes=(*notes, *gathered.notes),
    )


def _wrong_time(table: Table, at: Places) -> str:
    for line, row in table:
        try:
            _moments([row[at.time].strip()])
        except ValueError:
            told = repr(row[at.time].strip()[:40])
            return f"line {line}: the time {told} is no number and no date such as 2026-11-18"
    return "some times are numbers and others dates"
