"""Which moments of a few test series a classifier's answers hang on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.modes import no_grad
from ..models.saved import Description
from ..timeseries import TimeSeries

CLASSES, EACH = 4, 2  # series of so many classes, and so many of each


@dataclass(frozen=True)
class ActivationMaps:
    """Some series, the true class and the answer for each, and the map of the answer."""

    classes: tuple[str, ...]
    values: NDArray[np.float32]  # (number, channels, length)
    maps: NDArray[np.float32]  # (number, length)
    truth: NDArray[np.int64]
    answers: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        model: Any,
        series: TimeSeries,
        answers: NDArray[np.int64],
        description: Description,
        device: Any = None,
    ) -> ActivationMaps:
        """Two series of each of the first classes: one with a wrong answer if there is any."""
        truth = series.encoded(description.classes)
        chosen: list[int] = []
        for number in range(min(len(description.classes), CLASSES)):
            members = np.flatnonzero(truth == number)
            wrong_first = members[np.argsort(answers[members] == number, kind="stable")]
            right = members[answers[members] == number]
            picked = [*wrong_first[: EACH - 1], *right, *wrong_first]
            chosen += list(dict.fromkeys(int(i) for i in picked))[:EACH]
        model.eval()
        some = description.prepared(series.part(np.array(chosen)))
        inputs = [part if device is None else part.to(device) for part in description.inputs(some)]
        with no_grad():
            maps = model.activation_maps(*inputs).to("cpu").numpy()
        mine = maps[np.arange(len(chosen)), answers[chosen]].copy()
        values = some.values.copy()
        for i, end in enumerate(some.ends.tolist()):  # what is not there is not drawn
            mine[i, end:], values[i, :, end:] = np.nan, np.nan
        return cls(description.classes, values, mine, truth[chosen], answers[chosen])
