"""What a training is to learn, from which series, and how good it is in the end: by task."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.register import FUNCTIONS
from ..errors import ArgumentError
from ..models.saved import Description
from ..timeseries import Columns, TimeSeries, load, read
from ..timeseries.load import fits
from ..timeseries.windows import Windows, last, sliding, window_for
from ..utils.data import TensorDataset

_from_numpy = FUNCTIONS["from_numpy"]
_FEW = 20  # whole numbers as labels: so many different ones are classes


@dataclass(frozen=True)
class Job:
    """The series of a training in its parts."""

    description: Description
    series: tuple[TimeSeries, ...]  # all that were read, which tell this training from others
    train: TensorDataset
    validation: TensorDataset | None
    everything: TensorDataset  # both of these, to learn from when the epochs are chosen
    test: TensorDataset
    tested: TimeSeries  # the series of `test`
    notes: tuple[str, ...] = ()
    windows: Windows | None = None  # of a forecast's test

    @property
    def about(self) -> str:
        """A sentence on the parts."""
        description, first = self.description, self.series[0]
        ends = first.ends
        length = f"{ends.min()}" if ends.min() == ends.max() else f"{ends.min()} to {ends.max()}"
        channels = "1 channel" if first.channels == 1 else f"{first.channels} channels"
        what = {
            "classification": f"{len(description.classes)} classes",
            "regression": f"regression of {description.target or 'a number'}",
            "forecast": f"{description.horizon} values after {description.window} to forecast",
        }[description.task]
        apart = "" if self.validation is None else f"{len(self.validation)} to validate and "
        unit = "windows" if description.task == "forecast" else "series"
        return (
            f"{first.name}: {len(self.train)} {unit} of length "
            f"{description.window or length}, {channels}, {what}; {apart}"
            f"{len(self.test)} others to test with"
        )


def columns_of(settings: dict[str, Any]) -> Columns:
    """The columns that were named."""
    named = {name: settings[f"{name}_column"] for name in ("id", "time", "value", "dimension")}
    return Columns(settings["format"], settings["label_column"], **named)


def job_of(settings: dict[str, Any]) -> Job:
    """Read everything, and take it apart."""
    asked_task = settings["task"]
    if asked_task != "forecast":
        for name in ("horizon", "window"):
            if settings[name] is not None:
                raise ArgumentError(f"[train] --{name} is of --task forecast")
    columns = columns_of(settings)
    labelled = asked_task != "forecast"
    train, test = load(
        settings["data"],
        settings["test"],
        columns=columns,
        labelled=labelled,
        fetch=settings["fetch"],
    )
    other: TimeSeries | None = None
    if isinstance(settings["validation"], str):
        other = read(settings["validation"], columns=columns, labelled=labelled)
        fits(other, train)
    if asked_task == "forecast":
        return _forecast(settings, train, other, test)
    task, why = (asked_task, ()) if asked_task else _task_of(train)
    numbers = task == "regression"
    series = tuple(part for part in (train, other, test) if part is not None)
    if numbers:
        for part in series:
            part.targets()
    elif len(train.classes) < 2:
        raise ArgumentError(
            f"[{train.name}] all series have the label {train.classes[0]!r}; a classifier needs two"
        )
    if test is None:
        train, test = train.split(settings["test_share"], settings["seed"], by_number=numbers)
        if not len(test):
            raise ArgumentError(
                f"[{train.name}] every class has one series only, and a classifier is tested with "
                "others: add series, or name a file of them by --test"
            )
    whole, notes = train, [*why, *(note for part in series for note in part.notes)]
    if other is not None:
        whole = train  # a file of its own is never learnt from
    elif settings["validation"]:
        share = settings["validation"]
        train, other = train.split(share, settings["seed"], by_number=numbers)
        if not len(other):
            train, other = whole, None
            notes.append(
                "no class has a series to spare for validation: weights are chosen by training loss"
            )
    description = Description.of(
        whole, settings["model"], task, settings["normalise"], settings["unit"] or ""
    )
    return Job(
        description,
        series,
        description.dataset(train),
        None if other is None else description.dataset(other),
        description.dataset(whole),
        description.dataset(test),
        test,
        tuple(dict.fromkeys(notes)),
    )


def _task_of(series: TimeSeries) -> tuple[str, tuple[str, ...]]:
    """What the labels tell: classes, or numbers to estimate; an error where they may be either."""
    if series.numbers:
        return "regression", ("the file has numbers as targets: regression",)
    try:
        numbers = series.targets()
    except ValueError:
        return "classification", ()
    if len(series.classes) <= max(_FEW, len(series) // 10):
        return "classification", ()
    if any(not number.is_integer() for number in numbers.tolist()):
        return "regression", (
            f"{len(series.classes)} different numbers as labels: regression; "
            "say --task classification if they are classes",
        )
    raise ArgumentError(
        f"[{series.name}] {len(series)} series have {len(series.classes)} different whole numbers "
        "as labels: say --task classification if they are classes, or --task regression if they "
        "are numbers to estimate"
    )


def _forecast(
    settings: dict[str, Any], train: TimeSeries, other: TimeSeries | None, test: TimeSeries | None
) -> Job:
    horizon = settings["horizon"]
    if horizon is None:
        raise ArgumentError("[train] --task forecast needs --horizon: how many values to tell")
    series = tuple(part for part in (train, other, test) if part is not None)
    validate = other is None and settings["validation"] != 0
    apart = (test is None) + validate
    window = window_for(train, horizon, settings["window"], apart)
    for part in series[1:]:
        window_for(part, horizon, window, 0)
    description = replace(
        Description.of(train, settings["model"], "forecast", True, settings["unit"] or ""),
        window=window,
        horizon=horizon,
    )
    validation = None
    if other is not None:
        validation = _dataset(last(other, window, horizon))
    elif validate:
        validation = _dataset(last(train, window, horizon, before=int(test is None)))
    tested = train if test is None else test
    windows = last(tested, window, horizon)
    return Job(
        description,
        series,
        _dataset(sliding(train, window, horizon, apart)),
        validation,
        _dataset(sliding(train, window, horizon, int(test is None))),
        _dataset(windows),
        tested,
        tuple(dict.fromkeys(note for part in series for note in part.notes)),
        windows,
    )


def _dataset(windows: Windows) -> TensorDataset:
    return TensorDataset(_from_numpy(windows.values), _from_numpy(windows.following))


# How good it is ----------------------------------------------------------------------------------
def confusion_of(
    truth: NDArray[np.int64], answers: NDArray[np.int64], number: int
) -> NDArray[np.int64]:
    """The answers (columns) to the series of each class (rows)."""
    confusion = np.zeros((number, number), np.int64)
    np.add.at(confusion, (truth, answers), 1)
    return confusion


def errors_of(told: NDArray[np.float64], truth: NDArray[np.float64]) -> dict[str, float]:
    """Mean absolute error, root of the mean squared error, and the share of the variance told.

    >>> import numpy as np
    >>> from undertow.cli.jobs import errors_of
    >>> errors_of(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 5.0]))["mae"].__round__(3)
    0.667
    """
    wrong = told - truth
    variance = float(((truth - truth.mean()) ** 2).mean())
    squared = float((wrong**2).mean())
    found = {"mae": float(np.abs(wrong).mean()), "rmse": math.sqrt(squared)}
    return found if variance == 0 else {**found, "r2": 1 - squared / variance}
