"""Tell the classes of time series by a model that `undertow train` wrote.

The table has a row per series: the most likely class, the true one if the data has labels, and the
probability of every class.

example: undertow predict --model gunpoint --data new.csv --out answers.csv
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path

from ..core.register import FUNCTIONS
from ..errors import FileError
from ..files.atomic import write_file
from ..models.saved import Description, load_classifier
from ..models.training import scores_of
from ..nn import functional as F
from ..timeseries import TimeSeries, load, read
from ..timeseries.load import SUFFIXES
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
    series = _series(asked, description)
    if series.channels != description.channels:
        raise FileError(
            f"[{series.name}] the series have {series.channels} channels, the model learnt from "
            f"{description.channels}"
        )
    truth = None if series.labels is None else series.encoded(description.classes)
    if description.normalise:
        series = series.normalised()
    if asked.device is not None:
        model.to(asked.device)
    scores = scores_of(model, FUNCTIONS["from_numpy"](series.values), asked.device)
    answers = scores.argmax(dim=1).numpy()
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    probabilities = F.softmax(scores, dim=1).tolist()
    table.writerows(_rows(description, series, answers.tolist(), probabilities))
    if asked.out == "-":
        sys.stdout.write(text.getvalue())
    else:
        write_file(asked.out, [text.getvalue().encode()])
    if not asked.quiet:
        said = f"{len(series)} series"
        if truth is not None:
            hits = int((answers == truth).sum())
            said += f", {hits} right: accuracy {hits / len(series):.1%}"
        print(said + ("" if asked.out == "-" else f"; written to {asked.out}"), file=sys.stderr)
    return 0


def _series(asked: argparse.Namespace, description: Description) -> TimeSeries:
    if Path(asked.data).suffix.lower() in SUFFIXES:
        return read(
            asked.data,
            label_column=asked.label_column,
            labelled=False if asked.no_labels else None,
            length=description.length,
        )
    train, test = load(asked.data)
    found = test or train
    return TimeSeries(found.name, found.values) if asked.no_labels else found


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
        yield [i, classes[answer], *known, *(f"{p:.6g}" for p in row)]
