"""Compare trainings: what they were asked for, what they reached, and their curves.

    undertow compare runs/GunPoint-fcn runs/GunPoint-resnet

Prints a table of the folders that `undertow train` wrote, and draws their curves into one picture.
A training that has not ended shows the epochs that it has come to.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

from ..errors import ArgumentError, FileError
from ..utils.profiler.events import laid_out
from .run_folder import NO_MATPLOTLIB

# Figures that a table shows, if any run has them.
_FIGURES = (
    *("test_accuracy", "test_mae", "test_rmse", "test_r2", "published_accuracy"),
    *("validation_loss", "training_loss", "best_epoch", "epochs", "seconds"),
)
_PLACES = {"out", "overwrite", "resume"}  # say where, not what


class Run(NamedTuple):
    """One folder of a training."""

    name: str
    results: dict[str, Any]
    history: list[dict[str, float]]


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What the command understands."""
    command.add_argument("runs", nargs="+", metavar="RUN", help="a folder that train wrote")
    command.add_argument(
        "-o", "--output", default="compare.png", metavar="FILE", help="the picture (%(default)s)"
    )
    command.add_argument("--no-plots", action="store_true", help="draw no picture")


def run(asked: argparse.Namespace) -> int:
    """Print the table, and draw the curves."""
    if len(asked.runs) < 2:
        raise ArgumentError("[compare] takes two folders of trainings or more")
    runs = [
        _read(Path(path), name) for path, name in zip(asked.runs, _names(asked.runs), strict=True)
    ]
    print(table(runs))
    if not asked.no_plots:
        _draw(runs, asked.output)
    return 0


def _names(paths: Sequence[str]) -> list[str]:
    """The last part of each path, or the whole path where that would not tell them apart."""
    short = [Path(path).resolve().name for path in paths]
    return short if len(set(short)) == len(short) else list(paths)


def _read(path: Path, name: str) -> Run:
    metrics, results = path / "metrics.jsonl", path / "results.json"
    if not path.is_dir() or not metrics.is_file():
        raise FileError(
            f"[compare] {str(path)!r} is no folder of a training: it has no metrics.jsonl"
        )
    try:
        lines = metrics.read_text(encoding="utf-8").splitlines()
        history = [_numbers(metrics, json.loads(line)) for line in lines]
        found = {}
        if results.is_file():
            found = _results(results, json.loads(results.read_text("utf-8")))
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(f"[compare] {str(path)!r} cannot be read: {error}") from None
    if not found:
        found = {"epochs": len(history), "seconds": sum(r.get("seconds", 0) for r in history)}
        found["training_loss"] = min((r["loss"] for r in history if "loss" in r), default=None)
        name += " (not ended)"
    return Run(name, found, history)


def _numbers(path: Path, row: Any) -> dict[str, float]:
    """A line of metrics, in which everything but a word on the phase is a number."""
    if not isinstance(row, dict) or not isinstance(row.get("epoch"), int):
        raise ValueError(f"a line of {path.name} is no epoch: {row!r:.60}")
    known = {name: value for name, value in row.items() if value is not None}
    wrong = [name for name, value in known.items() if not isinstance(value, (int, float))]
    if wrong:
        raise ValueError(
            f"{path.name} has {wrong[0]} = {known[wrong[0]]!r:.40}, which is no number"
        )
    return known


def _results(path: Path, found: Any) -> dict[str, Any]:
    """What a training reached: figures are numbers, settings have names."""
    if not isinstance(found, dict) or not isinstance(found.get("settings", {}), dict):
        raise ValueError(f"{path.name} is not what train writes: {found!r:.60}")
    for name in _FIGURES:
        if not isinstance(found.get(name), (int, float, NoneType)):
            raise ValueError(f"{path.name} has {name} = {found[name]!r:.40}, which is no number")
    return found


def table(runs: Sequence[Run]) -> str:
    """A column for each run: settings in which they differ, and figures; * is the best of a row."""
    settings = [run.results.get("settings", {}) for run in runs]
    names = sorted({name for each in settings for name in each} - _PLACES)
    differ = [n for n in names if len({str(each.get(n)) for each in settings if each}) > 1]
    rows = [[name, *(str(each.get(name, "--")) for each in settings)] for name in differ]
    for name in _FIGURES:
        values = [run.results.get(name) for run in runs]
        if any(value is not None for value in values):
            rows.append([name.replace("_", " "), *_marked(name, values)])
    return laid_out(["", *(run.name for run in runs)], rows)


def _marked(name: str, values: Sequence[float | None]) -> list[str]:
    known = [value for value in values if value is not None and not math.isnan(value)]
    best = None
    if name.startswith(("test_", "validation_")) and len(set(known)) > 1:
        best = max(known) if name in ("test_accuracy", "test_r2") else min(known)
    return [
        "--" if v is None else f"{v:.4g}{' *' if v == best else '' if best is None else '  '}"
        for v in values
    ]


def _draw(runs: Sequence[Run], output: str) -> None:
    try:
        from .pictures import compared
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        print(NO_MATPLOTLIB, file=sys.stderr)
        return
    curves = [(run.name, run.history, run.results.get("best_epoch")) for run in runs]
    try:
        compared(curves).savefig(output, dpi=120)
    except (OSError, ValueError) as error:
        raise ArgumentError(f"[compare] cannot write {output!r}: {error}") from None
    print(f"wrote {output}")
