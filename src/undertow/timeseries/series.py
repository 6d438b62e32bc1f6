"""`TimeSeries`: series of equal length, one or several channels each, and their labels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import FileError


@dataclass(frozen=True)
class TimeSeries:
    """Series as an array of shape (number, channels, length), with a label each or none at all.

    >>> import numpy as np
    >>> from undertow.timeseries import TimeSeries
    >>> sines = TimeSeries("sines", np.sin(np.arange(12.0)).reshape(3, 1, 4), ("a", "b", "a"))
    >>> len(sines), sines.channels, sines.length, sines.classes
    (3, 1, 4, ('a', 'b'))
    """

    name: str
    values: NDArray[np.float32]
    labels: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def channels(self) -> int:
        """How many values there are at each time."""
        return int(self.values.shape[1])

    @property
    def length(self) -> int:
        """How many times each series has."""
        return int(self.values.shape[2])

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels that occur: in the order of numbers if they all are numbers, else of words."""
        found = set(self.labels or ())
        try:
            return tuple(sorted(found, key=_rank))
        except ValueError:
            return tuple(sorted(found))

    def normalised(self) -> TimeSeries:
        """Every channel of every series with mean 0 and deviation 1; a constant one is zero.

        >>> import numpy as np
        >>> from undertow.timeseries import TimeSeries
        >>> TimeSeries("line", np.array([[[1.0, 2.0, 3.0]]])).normalised().values.round(3)
        array([[[-1.225,  0.   ,  1.225]]], dtype=float32)
        """
        wide = self.values.astype(np.float64)
        centred = wide - wide.mean(axis=2, keepdims=True)
        deviation = centred.std(axis=2, keepdims=True)
        # Rounding makes a constant series differ a little from its own mean.
        constant = deviation <= 1e-7 * np.abs(wide).max(axis=2, keepdims=True, initial=0)
        scaled = np.where(constant, 0.0, centred / np.where(constant, 1.0, deviation))
        return replace(self, values=scaled.astype(np.float32))

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

    def split(self, share: float, seed: int) -> tuple[TimeSeries, TimeSeries]:
        """Two parts, the second with about `share` of each class, chosen at random by `seed`.

        Both have at least one series of every class that has two.
        """
        if self.labels is None:
            raise FileError(f"[{self.name}] the series have no labels to split by")
        random = np.random.default_rng(seed)
        labels = np.array(self.labels)
        second = np.zeros(len(self), dtype=np.bool_)
        for label in self.classes:
            members = random.permutation(np.flatnonzero(labels == label))
            count = min(max(round(share * len(members)), 1), len(members) - 1)
            second[members[:count]] = True
        return self._part(~second), self._part(second)

    def _part(self, chosen: NDArray[np.bool_]) -> TimeSeries:
        labels = self.labels and tuple(np.array(self.labels)[chosen].tolist())
        return replace(self, values=self.values[chosen], labels=labels)


def _rank(label: str) -> tuple[float, str]:
    """Where a number stands, always at the same place: equal ones by their text, NaN at the end."""
    number = float(label)
    return (math.inf if math.isnan(number) else number), label
