"""`undertow train` on real data: validation, numbers, forecasts, long tables, and its report."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.cli import main
from undertow.models import FCN
from undertow.models.saved import load_classifier
from undertow.models.training import Training, evaluated


@pytest.fixture(autouse=True)
def generator() -> Any:
    state = ut.get_rng_state()
    yield
    ut.set_rng_state(state)


def train(*words: object) -> int:
    return main(["train", *map(str, words)])


def rows_of(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def results_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return found


@pytest.fixture
def long_table(tmp_path: Path) -> Path:
    """24 series of uneven lengths with gaps, a row per moment."""
    random = np.random.default_rng(0)
    lines = ["id,time,value,label"]
    for i in range(24):
        label = ("slow", "fast")[i % 2]
        for t in range(12 + i % 5):
            value = np.sin((0.3, 1.2)[i % 2] * t + random.uniform(0, 0.5))
            lines.append(f"case{i},{t},{'' if (i, t) == (3, 5) else f'{value:.4f}'},{label}")
    path = tmp_path / "long.csv"
    path.write_text("\n".join(lines))
    return path


# Validation --------------------------------------------------------------------------------------
def tensors(number: int, seed: int) -> Any:
    random = np.random.default_rng(seed)
    classes = np.arange(number) % 2
    values = np.sin((0.4 + classes[:, None]) * np.arange(12) + random.uniform(0, 6, (number, 1)))
    return ut.utils.data.TensorDataset(
        ut.from_numpy(values[:, None].astype(np.float32)), ut.from_numpy(classes)
    )


def test_weights_are_those_of_the_best_validation() -> None:
    """Labels of the validation series are exchanged: whoever learns gets worse by them."""
    ut.manual_seed(0)
    values, classes = tensors(8, 1).tensors
    other = ut.utils.data.TensorDataset(values, 1 - classes)
    training = Training(
        FCN(1, 2), tensors(16, 0), lr=1e-3, batch_size=4, seed=0, validation=other, patience=3
    )
    while not training.over:
        training.epoch_of_training()
        assert training.epochs < 30
    losses = [row["validation_loss"] for row in training.history]
    best = 1 + int(np.argmin(losses))
    assert training.best_epoch == best == training.epochs - 3
    assert best < 1 + int(np.argmin([row["loss"] for row in training.history]))
    training.take_best()
    # Delivered is what was validated, but for more passes of the batch norms' statistics.
    assert evaluated(training.model, other)[0] == pytest.approx(min(losses), rel=0.3)


def test_stopping_with_validation_and_average_changes_nothing() -> None:
    def new() -> Training:
        ut.manual_seed(1)
        how: Any = {"validation": tensors(4, 1), "patience": 9, "averaged": True}
        return Training(FCN(1, 2), tensors(8, 0), lr=1e-3, batch_size=3, seed=5, **how)

    whole, training = new(), new()
    for _ in range(3):
        whole.epoch_of_training()
    while training.epochs < 3:
        if not training.epoch_of_training(lambda: True):
            state, history = training.state(), training.history
            training = new()
            training.load_state(state)
            training.history = history
    for ours, theirs in zip(training.history, whole.history, strict=True):
        assert {**ours, "seconds": 0} == {**theirs, "seconds": 0}
    for key, value in whole.best.items():
        assert bool((training.best[key] == value).all()), key


def test_validation_file_and_none(long_table: Path, tmp_path: Path) -> None:
    base = ["--epochs", 2, "--no-plots", "--quiet", "--data", long_table]
    assert train(*base, "--out", tmp_path / "a", "--validation", long_table) == 0
    assert results_of(tmp_path / "a")["chosen_by"] == "validation loss"
    assert train(*base, "--out", tmp_path / "b", "--validation", 0) == 0
    found = results_of(tmp_path / "b")
    assert found["chosen_by"] == "training loss"
    losses = [row["loss"] for row in rows_of(tmp_path / "b")]
    assert found["best_epoch"] == 1 + int(np.argmin(losses))
    assert "validation_loss" not in rows_of(tmp_path / "b")[0]
    assert train(*base, "--out", tmp_path / "c", "--validation", tmp_path / "none.csv") == 1


def test_refit(long_table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    base = ["--data", long_table, "--epochs", 4, "--no-plots"]
    assert train(*base, "--out", out, "--refit") == 0
    said = capsys.readouterr().out
    rows, best = rows_of(out), results_of(out)["best_epoch"]
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4, *range(1, best + 1)]
    assert all(("refit" in row) == (i >= 4) for i, row in enumerate(rows))
    assert f"learning {best} epochs anew from all 20 training series" in said
    assert train("--resume", "--out", out, "--no-plots", "--quiet") == 0
    assert len(rows_of(out)) == len(rows)


# Long tables, gaps, uneven lengths ---------------------------------------------------------------
def test_long_table(long_table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    assert train("--data", long_table, "--epochs", 2, "--out", out) == 0
    said = capsys.readouterr().out
    assert "read as long format: id 'id', time 'time', values 'value', label 'label'" in said
    assert "1 of 334 values was missing" in said
    assert "series have 12 to 16 values; padding is masked" in said
    assert (out / "activation_maps.png").is_file()
    model = ["predict", "--model", str(out), "--data", str(long_table), "--out", "-"]
    assert main(model) == 0
    answers = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["series"] for row in answers] == [f"case{i}" for i in range(24)]
    assert {row["true"] for row in answers} == {"slow", "fast"}
    odd = tmp_path / "odd.csv"
    odd.write_text(long_table.read_text().replace("id,time,value,label", "who,when,what,label"))
    assert train("--data", odd, "--epochs", 1, "--out", tmp_path / "odd") == 1
    said = capsys.readouterr().err
    assert "looks like long format" in said
    words = re.search(r"Say (.*?);", said)
    assert words is not None
    asked = ["--data", odd, *words[1].split(), "--epochs", 1, "--no-plots", "--quiet"]
    assert train(*asked, "--out", tmp_path / "odd") == 0


@pytest.mark.parametrize(
    "text, told",
    [
        ("date,temp,wind\n{date},{v},3\n", "time 'date', values 'temp' 'wind'"),
        ("when,temp\n{date},{v}\n", "looks like long format"),
        ("temp\n{v}\n", "time 'row', values 'temp'"),
        ("{v}\n", "time column 0, values column 1"),
    ],
)
def test_a_table_of_one_series_to_forecast(
    text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a column of times, or with values alone; no column tells series apart."""
    *lines, row = text.splitlines()
    for n in range(60):
        date = f"2024-01-{1 + n // 24:02d}T{n % 24:02d}:00"
        lines.append(row.format(date=date, v=np.sin(n / 3)))
    path = tmp_path / "power.csv"
    path.write_text("\n".join(lines))
    asked = ["--data", path, "--task", "forecast", "--horizon", 3, "--epochs", 1, "--no-plots"]
    failed = train(*asked, "--out", tmp_path / "run")
    caught = capsys.readouterr()
    assert told in caught.out + caught.err
    assert failed == ("looks like" in told)


def test_a_decimal_comma_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "comma.csv"
    path.write_text("label;t0;t1\na;0,5;1\nb;1;2\n")
    assert train("--data", path, "--out", tmp_path / "run") == 1
    assert "'0,5' is not a number; write a point for the decimal comma" in capsys.readouterr().err


# Numbers -----------------------------------------------------------------------------------------
def test_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(0)
    level = random.uniform(50, 90, 60)
    path = tmp_path / "wear.csv"
    lines = ["hours,a,b,c,d,e"]
    for number in level:
        values = number + random.normal(0, 1, 5)
        lines.append(",".join(f"{v:.3f}" for v in [number, *values]))
    path.write_text("\n".join(lines))
    out = tmp_path / "run"
    base = ["--data", path, "--label", "hours", "--unit", "h", "--lr", 0.003]
    assert train(*base, "--epochs", 20, "--out", out) == 0
    said = capsys.readouterr().out
    assert "different numbers as labels: regression" in said
    assert re.search(r"test MAE [\d.]+ h, RMSE [\d.]+ h, R² ", said)
    found = results_of(out)
    table = list(csv.DictReader((out / "predictions.csv").read_text().splitlines()))
    wrong = [abs(float(r["predicted (h)"]) - float(r["true (h)"])) for r in table]
    assert np.mean(wrong) == pytest.approx(found["test_mae"], rel=1e-3)
    assert found["test_mae"] < 0.5 * found["mean_mae"]
    assert (out / "predictions.png").is_file()
    assert main(["predict", "--model", str(out), "--data", str(path), "--out", "-"]) == 0
    assert load_classifier(out / "model.safetensors")[1].target == "hours"


def test_which_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.csv"
    values = np.random.default_rng(0).normal(size=(60, 3)).round(3).tolist()
    path.write_text("\n".join(f"{7 * i % 60},{a},{b},{c}" for i, (a, b, c) in enumerate(values)))
    assert train("--data", path, "--out", tmp_path / "run") == 1
    assert "say --task classification if they are classes" in capsys.readouterr().err
    path.write_text("a,1,2\nb,3,4\na,1,2\nb,3,4\n")
    assert train("--data", path, "--task", "regression", "--out", tmp_path / "run") == 1
    assert "which is no finite number; a regression needs numbers" in capsys.readouterr().err
    assert train("--data", path, "--horizon", 2, "--out", tmp_path / "run") == 1
    assert "--horizon is of --task forecast" in capsys.readouterr().err
    assert train("--data", path, "--task", "forecast", "--out", tmp_path / "run") == 1
    assert "needs --horizon" in capsys.readouterr().err
    assert train("--data", path, "--task", "forecast", "--horizon", 2) == 1
    assert "too few for a window" in capsys.readouterr().err


def test_forecast(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "power.csv"
    lines = ["unique_id,ds,y"]
    for i in range(3):
        for t in range(60):
            lines.append(f"house{i},{t},{10**i * (3 + np.sin(0.6 * t + i)):.5f}")
    path.write_text("\n".join(lines))
    out = tmp_path / "run"
    base = ["--data", path, "--task", "forecast", "--horizon", 4, "--unit", "kW"]
    assert train(*base, "--epochs", 12, "--lr", 0.003, "--out", out) == 0
    said = capsys.readouterr().out
    assert "4 values after 16 to forecast" in said
    found = results_of(out)
    assert found["test_mae"] < found["naive_mae"]
    table = list(csv.DictReader((out / "predictions.csv").read_text().splitlines()))
    assert [(r["series"], r["step"]) for r in table[:5]] == [
        *(("house0", str(i)) for i in range(1, 5)),
        ("house1", "1"),
    ]
    truth = 3 + np.sin(0.6 * np.arange(56, 60))
    np.testing.assert_allclose([float(r["true (kW)"]) for r in table[:4]], truth, rtol=1e-4)
    assert main(["predict", "--model", str(out), "--data", str(path), "--out", "-"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + 3 * 4


# The report --------------------------------------------------------------------------------------
class Page(HTMLParser):
    """What a page asks of other files, and its words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.open: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.asked += [v or "" for k, v in attrs if k in ("src", "href")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data + " "


def test_report(long_table: Path, tmp_path: Path) -> None:
    path = tmp_path / "tags.csv"
    path.write_text(long_table.read_text().replace("slow", "<b>slow"))
    out = tmp_path / "run"
    assert train("--data", path, "--epochs", 1, "--out", out, "--quiet", "--seed", 3) == 0
    page = Page((out / "report.html").read_text())
    assert not page.open
    assert len(page.asked) == 3
    assert all(asked.startswith("data:image/png;base64,") for asked in page.asked)
    assert f"undertow train --data {path} --epochs 1 --seed 3" in page.words
    for word in ("<b>slow", "test accuracy", "Settings", "processor"):
        assert word in page.words
