"""Tell classes, numbers or what comes next by a model that `undertow train` wrote.

The table has a row per series: the most likely class, the true one if the data has labels, and the
probability of every class; or the number that a regression estimates. Of a forecaster it has a row
per value that comes after the end of each series.

example: undertow predict --model gunpoint --data new.csv --out answers.csv
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core.register import FUNCTIONS
from ..errors import FileError
from ..files.atomic import write_file
from ..models.saved import Description, load_classifier
from ..models.training import scores_of
from ..nn import Module
from ..nn import functional as F
from ..timeseries import TimeSeries, load, read
from ..timeseries.load import SUFFIXES
from ..timeseries.windows import Windows
from .jobs import columns_of, errors_of
from .options import add_data_options


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What the command understands."""
    add = command.add_argument
    add("--model", type=Path, required=True, help="model.safetensors, or the folder it is in")
    add("--data", required=True, help="file (see undertow train --help), or UCR set: its test part")
    add("--out", default="predictions.csv", metavar="FILE", help="table; - prints it (%(default)s)")
    add("--no-labels", action="store_true", help="do not look at labels that the data has")
    add_data_options(command)


def run(asked: argparse.Namespace) -> int:
    """Predict, write the table, and say how many answers were right."""
    path = asked.model / "model.safetensors" if asked.model.is_dir() else asked.model
    if not path.is_file():
        raise FileError(f"[predict] there is no model {str(path)!r}")
    model, description = load_classifier(path)
    if asked.device is not None:
        model.to(asked.device)
    series = _series(asked, description)
    if not asked.quiet:
        for note in series.notes:
            print(note, file=sys.stderr)
    tell = {"classification": _classes, "regression": _numbers, "forecast": _next}
    rows, said = tell[description.task](model, description, series, asked.device)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    if asked.out == "-":
        sys.stdout.write(text.getvalue())
    else:
        write_file(asked.out, [text.getvalue().encode()])
    if not asked.quiet:
        said = f"{len(series)} series{said}"
        print(said + ("" if asked.out == "-" else f"; written to {asked.out}"), file=sys.stderr)
    return 0


Told = tuple[Iterable[Sequence[object]], str]  # a table, and how good it is if that can be said


def _classes(model: Module, about: Description, series: TimeSeries, device: Any) -> Told:
    truth = None if series.labels is None else series.encoded(about.classes)
    scores = scores_of(model, *about.inputs(series), device=device)
    answers = scores.argmax(dim=1).numpy()
    said = ""
    if truth is not None:
        hits = int((answers == truth).sum())
        said = f", {hits} right: accuracy {hits / len(series):.1%}"
    return _rows(about, series, answers.tolist(), F.softmax(scores, dim=1).tolist()), said


def _numbers(model: Module, about: Description, series: TimeSeries, device: Any) -> Told:
    told = about.numbers(scores_of(model, *about.inputs(series), device=device))
    unit = f" ({about.unit})" if about.unit else ""
    names = series.ids or range(len(series))
    if series.labels is None:
        rows = [[name, f"{a:.6g}"] for name, a in zip(names, told.tolist(), strict=True)]
        return [["series", f"predicted{unit}"], *rows], ""
    truth = series.targets()
    three = zip(names, told.tolist(), truth.tolist(), strict=True)
    table = [[name, f"{a:.6g}", f"{b:.6g}"] for name, a, b in three]
    errors = errors_of(told, truth)
    said = f": MAE {errors['mae']:.4g}, RMSE {errors['rmse']:.4g} {about.unit}".rstrip()
    return [["series", f"predicted{unit}", f"true{unit}"], *table], said


def _next(model: Module, about: Description, series: TimeSeries, device: Any) -> Told:
    if series.channels != about.channels or int(series.ends.min()) < about.window:
        raise FileError(
            f"[{series.name}] the series have {series.channels} channels and at least "
            f"{series.ends.min()} values, the model needs {about.channels} and {about.window}"
        )
    windows = Windows.of([row[:, -about.window :] for row in series.rows()], 0)
    told = windows.restored(
        scores_of(model, FUNCTIONS["from_numpy"](windows.values), device=device).numpy()
    )
    unit = f" ({about.unit})" if about.unit else ""
    rows: list[list[object]] = [["series", "channel", "step", f"predicted{unit}"]]
    for i, name in enumerate(series.ids or range(len(series))):
        for channel, step in np.ndindex(told[i].shape):
            rows.append([name, channel, step + 1, f"{told[i, channel, step]:.6g}"])
    return rows, ""


def _series(asked: argparse.Namespace, description: Description) -> TimeSeries:
    forecast = description.task == "forecast"
    columns = columns_of({"format": "auto", **vars(asked)})
    if Path(asked.data).suffix.lower() in SUFFIXES:
        return read(
            asked.data,
            columns=columns,
            labelled=False if asked.no_labels or forecast else None,
            length=None if forecast else description.length,
        )
    train, test = load(asked.data, columns=columns, labelled=not forecast, fetch=asked.fetch)
    found = test or train
    return replace(found, labels=None) if asked.no_labels else found


def _rows(
    description: Description,
    series: TimeSeries,
    answers: list[int],
    probabilities: list[list[float]],
) -> Iterator[list[object]]:
    classes, labels = description.classes, series.labels
    true = [] if labels is None else ["true"]
    yield ["series", "predicted", *true, *(f"probability of {label}" for label in classes)]
    for i, (answer, row) in enumerate(zip(answers, probabilities, strict=True)):
        known = [] if labels is None else [labels[i]]
        yield [
            series.ids[i] if series.ids else i,
            classes[answer],
            *known,
            *(f"{p:.6g}" for p in row),
        ]
