"""`undertow compare`: several trainings in one table and one picture."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from undertow.cli import main


def write(folder: Path, accuracy: float | None, lr: float, losses: list[float]) -> str:
    folder.mkdir(parents=True)
    rows: list[dict[str, Any]] = [
        {"epoch": i + 1, "loss": loss, "accuracy": 0.5, "test_accuracy": 0.4, "seconds": 0.5}
        for i, loss in enumerate(losses)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if accuracy is not None:
        results = {"test_accuracy": accuracy, "best_epoch": 2, "epochs": len(losses)}
        settings = {"lr": lr, "data": "Waves", "out": folder.name}
        (folder / "results.json").write_text(json.dumps({**results, "settings": settings}))
    return str(folder)


def test_a_table_and_curves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = write(tmp_path / "one", 0.75, 0.1, [3.0, 2.0, 1.0])
    two = write(tmp_path / "two", 0.875, 0.01, [3.0, 1.5])
    open_ = write(tmp_path / "open", None, 0.01, [2.5])
    picture = tmp_path / "curves.png"
    assert main(["compare", one, two, open_, "-o", str(picture)]) == 0
    text = capsys.readouterr().out
    cells = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    lines = {name: values for name, *values in cells}
    assert "one" in text.splitlines()[1]
    assert "open (not ended)" in text
    assert lines["lr"] == ["0.1", "0.01", "--"]
    assert lines["test accuracy"] == ["0.75", "0.875 *", "--"]
    assert lines["epochs"] == ["3", "2", "1"]
    assert not any(line.startswith(("data", "out")) for line in text.splitlines())
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_names_that_are_alike_are_whole_paths(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [write(tmp_path / name / "run", 0.5, 0.1, [1.0]) for name in "ab"]
    assert main(["compare", *paths, "--no-plots"]) == 0
    head = capsys.readouterr().out.splitlines()[1]
    assert all(path in head for path in paths)


@pytest.mark.parametrize(
    "files, words",
    [
        ({}, "no folder of a training"),
        ({"metrics.jsonl": "{"}, "cannot be read"),
        ({"metrics.jsonl": "", "results.json": "nonsense"}, "cannot be read"),
        ({"metrics.jsonl": "[1, 2]"}, "no epoch"),
        ({"metrics.jsonl": '[["epoch", 1]]'}, "no epoch"),
        ({"metrics.jsonl": '{"loss": 1}'}, "no epoch"),
        ({"metrics.jsonl": '{"epoch": 1, "loss": "low"}'}, "loss = 'low'"),
        ({"metrics.jsonl": '{"epoch": 1, "seconds": [1]}'}, "seconds = [1]"),
        ({"metrics.jsonl": "[" * 100_000}, "cannot be read"),
        ({"metrics.jsonl": "", "results.json": "[]"}, "not what train writes"),
        ({"metrics.jsonl": "", "results.json": '{"settings": 3}'}, "not what train writes"),
        ({"metrics.jsonl": "", "results.json": '{"test_mae": "x"}'}, "test_mae = 'x'"),
        ({"metrics.jsonl": "", "results.json": '{"best_epoch": [1]}'}, "best_epoch = [1]"),
    ],
)
def test_bad_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], words: str
) -> None:
    good = write(tmp_path / "good", 0.5, 0.1, [1.0])
    (tmp_path / "bad").mkdir()
    for name, text in files.items():
        (tmp_path / "bad" / name).write_text(text)
    assert main(["compare", good, str(tmp_path / "bad"), "--no-plots"]) == 1
    assert words in capsys.readouterr().err


def test_runs_without_epochs_or_with_a_loss_that_is_no_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = write(tmp_path / "empty", None, 0.1, [])
    lost = write(tmp_path / "lost", float("nan"), 0.1, [float("nan"), float("inf")])
    good = write(tmp_path / "good", 0.5, 0.2, [2.0, 1.0])
    worse = write(tmp_path / "worse", 0.25, 0.2, [2.0, 1.0])
    picture = tmp_path / "x.png"
    assert main(["compare", empty, lost, good, worse, "-o", str(picture)]) == 0
    assert "0.5 *" in capsys.readouterr().out
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_one_run_and_no_place_for_the_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = write(tmp_path / "one", 0.5, 0.1, [1.0])
    two = write(tmp_path / "two", 0.5, 0.1, [1.0])
    assert main(["compare", one]) == 1
    assert "two folders" in capsys.readouterr().err
    assert main(["compare", one, two, "-o", str(tmp_path / "none" / "x.png")]) == 1
    assert "cannot write" in capsys.readouterr().err
