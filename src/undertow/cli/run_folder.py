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
from numpy.typing import NDArray

from ..errors import FileError
from ..files.atomic import write_file
from ..files.checkpoint import load as load_state
from ..files.checkpoint import save as save_state
from ..timeseries import TimeSeries
from .activation_maps import ActivationMaps

PICTURES = ("learning_curve.png", "confusion_matrix.png", "activation_maps.png")
_RESULTS = ("model.safetensors", "metrics.jsonl", "results.json", "confusion.csv")
_FILES = (*_RESULTS, *PICTURES)


class RunFolder:
    """The files of one training."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.model = path / "model.safetensors"
        self._checkpoint = path / "checkpoint.pt"
        self._metrics = path / "metrics.jsonl"
        self._drawn = False

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
        self.path.mkdir(parents=True, exist_ok=True)
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
            digest.update(repr((part.values.shape, part.labels)).encode())
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
    def write_results(
        self, results: dict[str, Any], confusion: NDArray[np.int64], classes: Sequence[str]
    ) -> None:
        """What the best model reached, and its answers to the test series of each class."""
        write_file(self.path / "results.json", [(json.dumps(results, indent=1) + "\n").encode()])
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(["true \\ predicted", *classes])
        table.writerows(
            [label, *row] for label, row in zip(classes, confusion.tolist(), strict=True)
        )
        write_file(self.path / "confusion.csv", [text.getvalue().encode()])

    def draw(
        self,
        history: Sequence[dict[str, float]],
        confusion: NDArray[np.int64],
        maps: ActivationMaps,
    ) -> None:
        """The three pictures, or a word on why there are none."""
        try:
            from . import pictures
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "matplotlib":
                raise
            print(NO_MATPLOTLIB, file=sys.stderr)
            return
        drawn = (
            pictures.learning_curve(history),
            pictures.confusion_matrix(confusion, maps.classes),
            pictures.activation_maps(maps),
        )
        for name, figure in zip(PICTURES, drawn, strict=True):
            image = io.BytesIO()
            figure.savefig(image, format="png", dpi=120)
            write_file(self.path / name, [image.getbuffer()])
        self._drawn = True

    def written(self) -> tuple[str, ...]:
        """What is there when all is done; pictures of an earlier part of the training are not."""
        return _FILES if self._drawn else _RESULTS


NO_MATPLOTLIB = (
    "undertow: no pictures, since matplotlib is not installed; install it by "
    "pip install 'undertow[plot]', or say --no-plots"
)
