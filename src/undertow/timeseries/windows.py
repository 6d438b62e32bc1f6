"""Windows of series, and what follows each: what a forecaster learns from.

Note [windows]
A forecaster sees `window` moments of a series and tells the `horizon` moments after them. Each
window is brought to mean 0 and deviation 1, channel by channel, and so is what follows it, by the
numbers of the window alone: nothing of the future is used. Of every series the last horizon is kept
apart to test with, and the one before it to validate with; what is learnt from ends before both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import FileError
from .series import TimeSeries

_WINDOWS = 4  # horizons that a window has, where nothing else is said


@dataclass(frozen=True)
class Windows:
    """Windows of series, what follows each, and their levels: mean and deviation by channel."""

    values: NDArray[np.float32]  # (number, channels, window), brought to mean 0 and deviation 1
    following: NDArray[np.float32]  # (number, channels, horizon), likewise
    mean: NDArray[np.float64]  # (number, channels, 1)
    deviation: NDArray[np.float64]

    @classmethod
    def of(cls, parts: list[NDArray[np.float32]], horizon: int) -> Windows:
        """From pieces of shape (channels, window + horizon); a horizon of 0 has nothing to follow.

        >>> import numpy as np
        >>> from undertow.timeseries.windows import Windows
        >>> piece = np.array([[1.0, 3.0, 4.0]])
        >>> Windows.of([piece], 1).following
        array([[[2.]]], dtype=float32)
        """
        whole = np.stack(parts).astype(np.float64)
        window = whole[:, :, : whole.shape[2] - horizon]
        mean = window.mean(axis=2, keepdims=True)
        deviation = window.std(axis=2, keepdims=True)
        deviation[deviation <= 1e-7 * np.abs(window).max(axis=2, keepdims=True)] = 1.0
        scaled = ((whole - mean) / deviation).astype(np.float32)
        ends = window.shape[2]
        return cls(scaled[:, :, :ends], scaled[:, :, ends:], mean, deviation)

    def restored(self, told: NDArray[np.float32]) -> NDArray[np.float64]:
        """Forecasts in the unit of the series."""
        return told * self.deviation + self.mean


def window_for(series: TimeSeries, horizon: int, window: int | None, apart: int) -> int:
    """How many moments to see: as asked, or at most four horizons; `apart` are kept for tests."""
    shortest = int(series.ends.min())
    most = shortest - (apart + 1) * horizon
    chosen = window if window is not None else min(_WINDOWS * horizon, most)
    if chosen < 2 or chosen > most:
        raise FileError(
            f"[{series.name}] the shortest series has {shortest} values, too few for a window of "
            f"{max(chosen, 2)} and {apart + 1} horizons of {horizon}, of which {apart} are kept "
            "apart; ask for a smaller --horizon or --window, or leave out short series"
        )
    return chosen


def sliding(series: TimeSeries, window: int, horizon: int, apart: int) -> Windows:
    """All windows to learn from: what follows them ends before the last `apart` horizons."""
    parts = []
    for row in series.rows():
        last = row.shape[1] - apart * horizon - window - horizon
        parts += [row[:, i : i + window + horizon] for i in range(last + 1)]
    return Windows.of(parts, horizon)


def last(series: TimeSeries, window: int, horizon: int, before: int = 0) -> Windows:
    """The window before the last horizon of each series, or `before` horizons earlier."""
    parts = []
    for row in series.rows():
        end = row.shape[1] - before * horizon
        parts.append(row[:, end - window - horizon : end])
    return Windows.of(parts, horizon)
