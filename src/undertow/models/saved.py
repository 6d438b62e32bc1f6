"""A trained model as one safetensors file that tells what it is, and what it needs of series."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.register import FUNCTIONS
from ..core.tensor import Tensor
from ..errors import FileError
from ..files.safetensors import safe_open, save_file
from ..nn import Module
from ..timeseries import TimeSeries
from ..utils.data import TensorDataset
from . import MODELS
from .forecaster import Forecaster
from .tasks import CLASSIFICATION, TASKS, Task, regression

_from_numpy = FUNCTIONS["from_numpy"]

_KEY = "undertow.classifier"


@dataclass(frozen=True)
class Description:
    """What a model needs to know of series, beside its weights."""

    model: str  # one of MODELS
    channels: int
    length: int  # of the longest series that it learnt from; it takes others
    classes: tuple[str, ...]
    normalise: bool
    data: str = ""
    task: str = "classification"
    target: str = ""  # what is told, in the words of the data
    unit: str = ""  # of what is told
    centre: float = 0.0  # targets were brought to mean 0 and deviation 1 by these
    scale: float = 1.0
    levels: tuple[tuple[float, float], ...] = ()  # mean and deviation of each channel of all series
    window: int = 0  # moments that a forecaster sees, and those that it tells
    horizon: int = 0

    @classmethod
    def of(
        cls, series: TimeSeries, model: str, task: str, normalise: bool, unit: str = ""
    ) -> Description:
        """Of a model that is to learn from these series.

        To tell classes, each series is brought to its own mean and deviation. To tell numbers, all
        are brought to those of all, since a series' level may be what a number hangs on.
        """
        about = cls(
            model=model,
            channels=series.channels,
            length=series.length,
            classes=series.classes if task == "classification" else (),
            normalise=normalise,
            data=series.name,
            task=task,
            target=series.target,
            unit=unit,
        )
        if task != "regression":
            return about
        targets = series.targets()
        levels = []
        for channel in range(series.channels):
            values = np.concatenate([row[channel] for row in series.rows()]).astype(np.float64)
            levels.append((float(values.mean()), float(values.std()) or 1.0))
        scale = float(targets.std())
        if scale == 0:
            raise FileError(f"[{series.name}] all targets are {targets[0]:g}: nothing to learn")
        return replace(about, centre=float(targets.mean()), scale=scale, levels=tuple(levels))

    def new_model(self) -> Module:
        """A model with fresh weights."""
        if self.task == "forecast":
            network = MODELS[self.model](self.channels, self.channels * self.horizon)
            return Forecaster(network, self.window, self.horizon)
        return MODELS[self.model](self.channels, len(self.classes) or 1)

    def learnt(self) -> Task:
        """The loss and the measure."""
        if self.task == "classification":
            return CLASSIFICATION
        return regression(self.scale)

    def prepared(self, series: TimeSeries) -> TimeSeries:
        """The series as the model sees them."""
        if series.channels != self.channels:
            raise FileError(
                f"[{series.name}] the series have {series.channels} channels, the model learnt "
                f"from {self.channels}"
            )
        if not self.normalise:
            return series
        if not self.levels:
            return series.normalised()
        mean, deviation = (np.array(part)[:, None] for part in zip(*self.levels, strict=True))
        there = np.arange(series.length) < series.ends[:, None]
        scaled = np.where(there[:, None], (series.values - mean) / deviation, 0.0)
        return replace(series, values=scaled.astype(np.float32))

    def inputs(self, series: TimeSeries) -> list[Tensor]:
        """What the model is given: values, and lengths where they differ."""
        ready = self.prepared(series)
        lengths = [] if ready.lengths is None else [_from_numpy(ready.lengths)]
        return [_from_numpy(ready.values), *lengths]

    def dataset(self, series: TimeSeries) -> TensorDataset:
        """Series with their targets."""
        if self.task == "classification":
            targets = _from_numpy(series.encoded(self.classes))
        else:
            numbers = (series.targets() - self.centre) / self.scale
            targets = _from_numpy(numbers.astype(np.float32)[:, None])
        return TensorDataset(*self.inputs(series), targets)

    def numbers(self, outputs: Tensor) -> NDArray[np.float64]:
        """What a regression tells, in the unit of its targets."""
        told: NDArray[np.float64] = outputs.numpy()[:, 0].astype(np.float64)
        return told * self.scale + self.centre


def save_classifier(
    model: Module,
    description: Description,
    path: str | os.PathLike[str],
    notes: Mapping[str, Any] | None = None,
) -> None:
    """Write a model to a file, whole or not at all; `notes` are kept with it."""
    about = json.dumps({**asdict(description), "notes": dict(notes or {})})
    save_file(dict(model.state_dict()), path, {"format": "pt", _KEY: about})


def load_classifier(path: str | os.PathLike[str]) -> tuple[Module, Description]:
    """The model of a file, ready to be used."""
    name = os.path.basename(path)
    try:
        with safe_open(path, framework="pt") as file:
            about = (file.metadata() or {}).get(_KEY)
            weights = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except FileError as error:
        raise FileError(f"[{name}] cannot be used: {error}") from None
    if about is None:
        raise FileError(f"[{name}] is a safetensors file, but not one of `undertow train`")
    description = _described(name, about)
    model = description.new_model()
    model.load_state_dict(weights)
    return model.eval(), description


def _described(name: str, about: str) -> Description:
    """What a file says of its model, each field of which may be wrong."""
    wrong = f"[{name}] what the file tells of its model is damaged"
    try:
        given = json.loads(about)
        given.pop("notes", None)
        levels = tuple((float(a), float(b)) for a, b in given.get("levels", ()))
        found = Description(**{**given, "classes": tuple(given["classes"]), "levels": levels})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FileError(f"{wrong}: {type(error).__name__}: {error}") from None
    if found.model not in MODELS:
        known = ", ".join(MODELS)
        raise FileError(f"[{name}] has a model {found.model!r}; known here are {known}")
    sizes = [found.channels, found.length]
    if found.task == "forecast":
        sizes += [found.window, found.horizon]
    numbers = (found.centre, found.scale, *(n for pair in found.levels for n in pair))
    if (
        not all(type(n) is int and 1 <= n < 1 << 31 for n in sizes)
        or found.task not in TASKS
        or bool(found.classes) != (found.task == "classification")
        or len(found.levels) not in (0, found.channels)
        or not all(type(n) in (int, float) for n in numbers)
    ):
        raise FileError(f"{wrong}: {about[:200]}")
    if not all(isinstance(label, str) for label in found.classes):
        raise FileError(f"{wrong}: labels are not text")
    return found
