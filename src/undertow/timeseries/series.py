"""`TimeSeries`: series of one or several channels, of equal or uneven lengths, and their labels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.notebook import as_html
from ..errors import FileError

_STRATA = 5  # groups of equal size by their target, of each of which a split takes its share


@dataclass(frozen=True)
class TimeSeries:
    """Series as an array of shape (number, channels, length), with a label each or none at all.

    Series of uneven lengths have `lengths`, and zeros after their end. `notes` are sentences on
    what reading them had to do.

    >>> import numpy as np
    >>> from undertow.timeseries import TimeSeries
    >>> sines = TimeSeries("sines", np.sin(np.arange(12.0)).reshape(3, 1, 4), ("a", "b", "a"))
    >>> len(sines), sines.channels, sines.length, sines.classes
    (3, 1, 4, ('a', 'b'))
    """

    name: str
    values: NDArray[np.float32]
    labels: tuple[str, ...] | None = None
    lengths: NDArray[np.int64] | None = None  # None: all are as long as the array
    ids: tuple[str, ...] | None = None  # what the source calls each
    target: str = ""  # what the source calls the labels
    numbers: bool = False  # whether the source says that the labels are numbers to estimate
    notes: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        size = f"{len(self)} series, {self.channels} channels, length {self.length}"
        names = f"classes: {', '.join(self.classes)}" if self.labels and not self.numbers else ""
        return as_html(f"{self.name}: {size}", "\n".join(filter(None, [names, *self.notes])))

    @classmethod
    def gathered(
        cls, name: str, rows: Sequence[NDArray[Any]], places: Sequence[str] | None = None
    ) -> TimeSeries:
        """Series of shape (channels, length) each, in which NaN is a missing value.

        Values that are missing at the end of all channels end a series early. Others are filled:
        on the line between their neighbours, or like the nearest value. `places` name the series
        in errors.

        >>> import numpy as np
        >>> from undertow.timeseries import TimeSeries
        >>> gap, nan = np.array([[1.0, np.nan, 3.0]]), np.nan
        >>> found = TimeSeries.gathered("x", [gap, np.array([[4.0, 5.0, nan]])])
        >>> found.values.tolist(), found.lengths.tolist()
        ([[[1.0, 2.0, 3.0]], [[4.0, 5.0, 0.0]]], [3, 2])
        >>> found.notes[0]
        '1 of 5 values was missing: filled on the line between its neighbours'
        """
        kept: list[NDArray[np.float64]] = []
        filled = empty = early = 0
        for i, row in enumerate(rows):
            row = np.asarray(row, np.float64)
            where = places[i] if places else f"series {i}"
            infinite = np.flatnonzero(np.isinf(row))
            if len(infinite):
                raise FileError(
                    f"[{name}] {where}: {len(infinite)} of {row.size} values are infinite, the "
                    f"first is number {infinite[0] + 1}"
                )
            there = ~np.isnan(row)
            ends = int(np.flatnonzero(there.any(axis=0)).max(initial=-1)) + 1
            if ends < 2:
                told = "one value" if ends else "no value at all"
                raise FileError(f"[{name}] {where} has {told}; a time series needs at least two")
            early += ends < row.shape[1]
            row, there = row[:, :ends].copy(), there[:, :ends]
            for channel, known in zip(row, there, strict=True):
                if not known.any():
                    empty, channel[:] = empty + 1, 0
                elif not known.all():
                    filled += int((~known).sum())
                    at = np.flatnonzero(known)
                    channel[~known] = np.interp(np.flatnonzero(~known), at, channel[at])
            kept.append(row)
        lengths = np.array([row.shape[1] for row in kept], np.int64)
        values = np.zeros((len(kept), kept[0].shape[0], int(lengths.max())), np.float32)
        with np.errstate(over="ignore"):
            for into, row in zip(values, kept, strict=True):
                into[:, : row.shape[1]] = row
        if not np.isfinite(values).all():
            raise FileError(f"[{name}] a value is too large for float32; scale the series")
        notes = []
        if filled:
            count = sum(row.size for row in kept)
            was, whose = ("was", "its") if filled == 1 else ("were", "their")
            notes.append(
                f"{filled:,} of {count:,} values {was} missing: filled on the line between "
                f"{whose} neighbours"
            )
        if empty:
            notes.append(f"{empty:,} channels of series have no value at all: taken as 0")
        uneven = bool((lengths != lengths[0]).any())
        if uneven:
            told = f"series have {lengths.min()} to {lengths.max()} values; padding is masked"
            notes.append(told + (f" ({early} end in missing values)" if early else ""))
        elif early:
            notes.append("all series end in missing values, which are left out")
        return cls(name, values, lengths=lengths if uneven else None, notes=tuple(notes))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def channels(self) -> int:
        """How many values there are at each time."""
        return int(self.values.shape[1])

    @property
    def length(self) -> int:
        """How many times the longest series has."""
        return int(self.values.shape[2])

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels that occur: in the order of numbers if they all are numbers, else of words."""
        found = set(self.labels or ())
        try:
            return tuple(sorted(found, key=_rank))
        except ValueError:
            return tuple(sorted(found))

    @property
    def ends(self) -> NDArray[np.int64]:
        """The length of each series."""
        return np.full(len(self), self.length) if self.lengths is None else self.lengths

    def rows(self) -> list[NDArray[np.float32]]:
        """Each series without its padding."""
        return [row[:, :end] for row, end in zip(self.values, self.ends.tolist(), strict=True)]

    def normalised(self) -> TimeSeries:
        """Every channel of every series with mean 0 and deviation 1; a constant one is zero.

        >>> import numpy as np
        >>> from undertow.timeseries import TimeSeries
        >>> TimeSeries("line", np.array([[[1.0, 2.0, 3.0]]])).normalised().values.round(3)
        array([[[-1.225,  0.   ,  1.225]]], dtype=float32)
        """
        there: Any = True
        if self.lengths is not None:
            there = (np.arange(self.length) < self.lengths[:, None])[:, None]
        wide = self.values.astype(np.float64)
        centred = wide - wide.mean(axis=2, keepdims=True, where=there)
        deviation = centred.std(axis=2, keepdims=True, where=there)
        # Rounding makes a constant series differ a little from its own mean.
        constant = deviation <= 1e-7 * np.abs(wide).max(axis=2, keepdims=True, initial=0)
        scaled = np.where(constant, 0.0, centred / np.where(constant, 1.0, deviation))
        return replace(self, values=np.where(there, scaled, 0.0).astype(np.float32))

    def encoded(self, classes: Sequence[str]) -> NDArray[np.int64]:
        """The number of each label among `classes`; an error names labels that are not there."""
        if self.labels is None:
            raise FileError(f"[{self.name}] the series have no labels")
        number = {label: i for i, label in enumerate(classes)}
        unknown = Counter(label for label in self.labels if label not in number)
        if unknown:
            told = ", ".join(f"{label!r} ({count}×)" for label, count in unknown.most_common(5))
            raise FileError(
                f"[{self.name}] {len(unknown)} labels are unknown: {told}; the model learns or "
                f"has learnt {', '.join(map(repr, classes))}"
            )
        return np.array([number[label] for label in self.labels], np.int64)

    def targets(self) -> NDArray[np.float64]:
        """The labels as numbers; an error names the first that is none.

        >>> import numpy as np
        >>> from undertow.timeseries import TimeSeries
        >>> TimeSeries("x", np.zeros((2, 1, 3)), ("1.5", "-2")).targets()
        array([ 1.5, -2. ])
        """
        if self.labels is None:
            raise FileError(f"[{self.name}] the series have no targets")
        found = []
        for i, label in enumerate(self.labels):
            try:
                found.append(float(label))
            except ValueError:
                found.append(math.nan)
            if not math.isfinite(found[-1]):
                raise FileError(
                    f"[{self.name}] the target of series {i} is {label!r}, which is no finite "
                    "number; a regression needs numbers"
                )
        return np.array(found)

    def split(
        self, share: float, seed: int, *, by_number: bool = False
    ) -> tuple[TimeSeries, TimeSeries]:
        """Two parts, the second with about `share` of each class, chosen at random by `seed`.

        Both have at least one series of every class that has two. With `by_number` the labels are
        numbers, and the share is taken of each fifth of them in their order.
        """
        if self.labels is None:
            raise FileError(f"[{self.name}] the series have no labels to split by")
        random = np.random.default_rng(seed)
        if by_number:
            ranks = np.argsort(np.argsort(self.targets(), kind="stable"), kind="stable")
            strata = max(1, min(_STRATA, len(self) // 2))
            groups = [np.flatnonzero(ranks * strata // len(self) == i) for i in range(strata)]
        else:
            labels = np.array(self.labels)
            groups = [np.flatnonzero(labels == label) for label in self.classes]
        second = np.zeros(len(self), dtype=np.bool_)
        for group in groups:
            members = random.permutation(group)
            count = min(max(round(share * len(members)), 1), len(members) - 1)
            second[members[:count]] = True
        return self.part(~second), self.part(second)

    def part(self, chosen: NDArray[Any]) -> TimeSeries:
        """The series that are chosen."""
        return replace(
            self,
            values=self.values[chosen],
            labels=self.labels and tuple(np.array(self.labels, object)[chosen].tolist()),
            lengths=None if self.lengths is None else self.lengths[chosen],
            ids=self.ids and tuple(np.array(self.ids, object)[chosen].tolist()),
        )


def _rank(label: str) -> tuple[float, str]:
    """Where a number stands, always at the same place: equal ones by their text, NaN at the end."""
    number = float(label)
    return (math.inf if math.isnan(number) else number), label
