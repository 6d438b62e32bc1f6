"""The folder of one training: what is in it, and how it stays whole whenever it is left."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileError
from ..files.atomic import write_file
from ..files.checkpoint import load as load_state
from ..files.checkpoint import save as save_state
from ..timeseries import TimeSeries
from . import report
from .findings import Findings

PICTURES = (
    *("learning_curve.png", "confusion_matrix.png", "activation_maps.png"),
    "predictions.png",
)
_RESULTS = ("model.safetensors", "metrics.jsonl", "results.json")
_FILES = (*_RESULTS, "confusion.csv", "predictions.csv", "report.html", *PICTURES)


class RunFolder:
    """The files of one training."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.model = path / "model.safetensors"
        self._checkpoint = path / "checkpoint.pt"
        self._metrics = path / "metrics.jsonl"
        self._written: tuple[str, ...] = ()

    # Where a training begins ----------------------------------------------------------------------
    def check_free(self, overwrite: bool) -> None:
        """An error if a new training cannot begin here: another is in the folder."""
        if self.path.exists() and not self.path.is_dir():
            raise FileError(f"[train] --out {self.path} is a file; name a folder")
        there = self._there()
        if there and not overwrite and not self.barely_begun():
            resume = "go on with it by --resume, " if self._checkpoint.name in there else ""
            raise FileError(
                f"[train] {self.path} has a training in it ({', '.join(there[:3])} …); {resume}"
                "replace it by --overwrite, or name another --out"
            )

    def barely_begun(self) -> bool:
        """Whether a training ended here before its first checkpoint, so that nothing is lost."""
        return self._there() == [self._metrics.name]

    def clear(self) -> None:
        """Make the folder for a new training, without the files of another."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"[train] cannot make --out {self.path}: {error.strerror}") from None
        for name in self._there():
            (self.path / name).unlink()

    def _there(self) -> list[str]:
        return [name for name in (*_FILES, self._checkpoint.name) if (self.path / name).exists()]

    def begin(self, history: Sequence[dict[str, float]]) -> None:
        """Write what is known of the epochs so far: lines after the checkpoint go."""
        lines = "".join(json.dumps(row) + "\n" for row in history)
        write_file(self._metrics, [lines.encode()])

    def same_series(self, before: str | None, *series: TimeSeries) -> str:
        """What tells these series from others; an error if it was something else before."""
        digest = hashlib.blake2b(digest_size=16)
        for part in series:
            digest.update(repr((part.values.shape, part.labels, part.ends.tolist())).encode())
            digest.update(np.ascontiguousarray(part.values).data)
        if before not in (None, digest.hexdigest()):
            raise FileError(
                f"[train] the series are not those that {self.path} was begun with; begin "
                "anew with another --out"
            )
        return digest.hexdigest()

    # While it goes on -----------------------------------------------------------------------------
    def add_metrics(self, row: dict[str, float]) -> None:
        """One more line."""
        with open(self._metrics, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def metrics(self, epochs: int) -> list[dict[str, float]]:
        """The lines of the first `epochs` epochs."""
        try:
            lines = self._metrics.read_text(encoding="utf-8").splitlines()[:epochs]
            return [json.loads(line) for line in lines]
        except (OSError, ValueError) as error:
            raise FileError(f"[train] {self._metrics} cannot be read: {error}") from None

    def save(self, settings: dict[str, Any], state: dict[str, Any]) -> None:
        """A checkpoint, whole or not at all."""
        save_state({"settings": settings, "state": state}, self._checkpoint)

    def checkpoint(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The settings and the state of the last checkpoint."""
        if not self._checkpoint.is_file():
            raise FileError(
                f"[train] there is nothing to go on with in {self.path}: no checkpoint.pt; begin "
                "without --resume"
            )
        try:
            found = load_state(self._checkpoint)
        except FileError as error:
            raise FileError(f"[train] {self._checkpoint} cannot be used: {error}") from None
        try:
            return dict(found["settings"]), dict(found["state"])
        except (TypeError, KeyError, ValueError):
            raise FileError(f"[train] {self._checkpoint} is no checkpoint of a training") from None

    # When it is over ------------------------------------------------------------------------------
    def write(
        self,
        results: dict[str, Any],
        found: Findings,
        history: Sequence[dict[str, float]],
        command: str,
        *,
        plots: bool,
    ) -> None:
        """What the model reached, its answers to the test series, pictures, and the report."""
        write_file(self.path / "results.json", [(json.dumps(results, indent=1) + "\n").encode()])
        name, rows = _table(found)
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        write_file(self.path / name, [text.getvalue().encode()])
        images = self._draw(found, history, results["best_epoch"]) if plots else {}
        for picture, image in images.items():
            write_file(self.path / picture, [image])
        page = report.page(results, found, rows, images, command)
        write_file(self.path / "report.html", [page.encode()])
        self._written = (*_RESULTS, name, *images, "report.html")

    def _draw(
        self, found: Findings, history: Sequence[dict[str, float]], best: int
    ) -> dict[str, bytes]:
        """The pictures, or a word on why there are none."""
        try:
            from . import pictures
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "matplotlib":
                raise
            print(NO_MATPLOTLIB, file=sys.stderr)
            return {}
        images = {}
        for name, figure in pictures.of(found, history, best).items():
            image = io.BytesIO()
            figure.savefig(image, format="png", dpi=120)
            images[name] = image.getvalue()
        return images

    def written(self) -> tuple[str, ...]:
        """What is there when all is done; pictures of an earlier part of the training are not."""
        return self._written


def _table(found: Findings) -> tuple[str, list[list[object]]]:
    """The name of the table of answers, and its rows."""
    about = found.description
    if found.confusion is not None:
        rows: list[list[object]] = [["true \\ predicted", *about.classes]]
        numbers = found.confusion.tolist()
        rows += [[label, *row] for label, row in zip(about.classes, numbers, strict=True)]
        return "confusion.csv", rows
    assert found.told is not None
    assert found.truth is not None
    unit = f" ({about.unit})" if about.unit else ""
    told, truth = (
        found.told.reshape(len(found.names), -1),
        found.truth.reshape(len(found.names), -1),
    )
    if about.task == "regression":
        rows = [["series", f"predicted{unit}", f"true{unit}"]]
        both = zip(found.names, told[:, 0].tolist(), truth[:, 0].tolist(), strict=True)
        return "predictions.csv", rows + [[name, f"{a:.6g}", f"{b:.6g}"] for name, a, b in both]
    rows = [["series", "channel", "step", f"predicted{unit}", f"true{unit}"]]
    for i, name in enumerate(found.names):
        for place in np.ndindex(found.told[i].shape):
            a, b = found.told[i][place], found.truth[i][place]
            rows.append([name, place[0], place[1] + 1, f"{a:.6g}", f"{b:.6g}"])
    return "predictions.csv", rows


NO_MATPLOTLIB = (
    "undertow: no pictures, since matplotlib is not installed; install it by "
    "pip install 'undertow[plot]', or say --no-plots"
)
