"""The command `undertow`: train, stop, resume, predict, info, and everything that can go wrong."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends import holders
from undertow.backends.cpu.calls import native
from undertow.cli import main
from undertow.files.safetensors import load_file

FILES = {
    *("model.safetensors", "metrics.jsonl", "results.json", "confusion.csv", "checkpoint.pt"),
    "report.html",
}
PICTURES = {"learning_curve.png", "confusion_matrix.png", "activation_maps.png"}


@pytest.fixture(autouse=True)
def generator() -> Any:
    """Commands seed the default generator, which other tests may be in the middle of."""
    state = ut.get_rng_state()
    yield
    ut.set_rng_state(state)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A small set whose classes differ by their frequency."""
    random = np.random.default_rng(0)
    x = np.arange(16)
    for part, number in (("TRAIN", 20), ("TEST", 10)):
        with open(tmp_path / f"Waves_{part}.csv", "w") as file:
            for i in range(number):
                label = ("slow", "fast")[i % 2]
                wave = np.sin((0.3, 0.9)[i % 2] * x + random.uniform(0, 6))
                file.write(",".join([label, *(f"{v:.5f}" for v in wave)]) + "\n")
    return tmp_path / "Waves_TRAIN.csv"


def metrics(folder: Path) -> list[dict[str, float]]:
    """The lines, without what a clock told."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]


def same_run(a: Path, b: Path) -> None:
    assert metrics(a) == metrics(b)
    one, other = load_file(a / "model.safetensors"), load_file(b / "model.safetensors")
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert bool((other[name] == value).all()), name
    assert (a / "confusion.csv").read_text() == (b / "confusion.csv").read_text()


def train(*words: object) -> int:
    return main(["train", *map(str, words)])


def test_train_and_predict(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    assert train("--data", data, "--epochs", 3, "--out", out) == 0
    said = capsys.readouterr()
    assert "16 series of length 16, 1 channel, 2 classes; 4 to validate and 10 others" in said.out
    assert "test accuracy" in said.out
    assert "epoch 3/3" in said.err
    assert {p.name for p in out.iterdir()} == FILES | PICTURES
    rows = metrics(out)
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    parts = {"loss", "validation_loss", "test_loss"}
    assert rows[-1].keys() == {
        "epoch",
        "lr",
        *parts,
        *(p.replace("loss", "accuracy") for p in parts),
    }
    results = json.loads((out / "results.json").read_text())
    confusion = list(csv.reader((out / "confusion.csv").read_text().splitlines()))
    assert confusion[0][1:] == ["fast", "slow"]
    numbers = np.array([[int(n) for n in row[1:]] for row in confusion[1:]])
    assert numbers.sum(axis=1).tolist() == [5, 5]
    assert np.trace(numbers) / 10 == results["test_accuracy"]
    for name in PICTURES:
        assert (out / name).read_bytes().startswith(b"\x89PNG")

    table = tmp_path / "answers.csv"
    test = data.with_name("Waves_TEST.csv")
    assert main(["predict", "--model", str(out), "--data", str(test), "--out", str(table)]) == 0
    assert f"accuracy {results['test_accuracy']:.1%}" in capsys.readouterr().err
    answers = list(csv.DictReader(table.read_text().splitlines()))
    assert len(answers) == 10
    for i, row in enumerate(answers):
        p = {label: float(row[f"probability of {label}"]) for label in ("fast", "slow")}
        assert row["predicted"] == max(p, key=lambda label: p[label])
        assert sum(p.values()) == pytest.approx(1, abs=1e-5)
        assert (row["series"], row["true"]) == (str(i), ("slow", "fast")[i % 2])


def test_predict_without_labels(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    train("--data", data, "--epochs", 1, "--out", out, "--no-plots", "--quiet")
    assert capsys.readouterr().out == ""
    new = tmp_path / "new.csv"
    lines = data.read_text().splitlines()
    new.write_text("\n".join(line.partition(",")[2] for line in lines))
    model = str(out / "model.safetensors")
    assert main(["predict", "--model", model, "--data", str(new), "--out", "-"]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[0] == "series,predicted,probability of fast,probability of slow"
    assert len(said.out.splitlines()) == 21
    assert said.err == "20 series\n"
    # labels that the model does not know
    new.write_text("\n".join(line.replace("slow", "still") for line in lines))
    asked = ["predict", "--model", model, "--data", str(new), "--out", str(tmp_path / "t.csv")]
    assert main(asked) == 1
    assert "1 labels are unknown: 'still' (10×)" in capsys.readouterr().err
    assert main([*asked, "--no-labels"]) == 0


def test_several_channels_and_a_split(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    path = tmp_path / "x.npz"
    np.savez(path, X=random.normal(size=(20, 3, 12)), y=np.arange(20) % 2)
    out = tmp_path / "run"
    arguments = ["--data", path, "--epochs", 1, "--out", out, "--no-plots", "--quiet"]
    assert train(*arguments, "--model", "inception", "--test-share", 0.3) == 0
    results = json.loads((out / "results.json").read_text())
    assert (results["test_series"], results["model"]) == (6, "inception")


def test_the_same_numbers_every_time(data: Path, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder, more in zip(folders, ((), ("--workers", 1), ("--seed", 1)), strict=True):
        words = ["--data", data, "--epochs", 2, "--out", folder, "--no-plots", "--quiet"]
        assert train(*words, *more) == 0
    same_run(folders[0], folders[1])
    assert metrics(folders[0]) != metrics(folders[2])


def start(*words: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "undertow", "train", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_resume(data: Path, tmp_path: Path) -> None:
    """Stopped by Ctrl-C, then killed: the same files as of a run that nothing happened to."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    quiet = ["--no-plots", "--quiet"]
    what = ["--data", data, "--epochs", 40, "--batch-size", 5, *quiet]
    assert train(*what, "--out", whole) == 0

    run = start(*what, "--out", parts)
    until_epoch(run, parts, 3)
    run.send_signal(signal.SIGINT)
    said = run.communicate(timeout=300)[1].decode()
    assert run.returncode == 130
    assert f"go on by\n  undertow train --resume --out {parts}" in said
    assert not (parts / "model.safetensors").exists()
    stopped_at = len(metrics(parts))

    run = start("--resume", "--out", parts, "--save-every", 0, "--workers", 1, *quiet)
    until_epoch(run, parts, stopped_at + 3)
    run.kill()  # which leaves it no time to say or to save anything
    run.communicate()

    assert train("--resume", "--out", parts, *quiet) == 0
    same_run(whole, parts)
    # More epochs may be asked for when all are done.
    assert train("--resume", "--out", parts, *quiet, "--epochs", 41) == 0
    assert metrics(parts)[:40] == metrics(whole)
    assert len(metrics(parts)) == 41


def until_epoch(run: subprocess.Popen[bytes], folder: Path, epochs: int) -> None:
    """Wait until so many epochs are complete."""
    deadline = time.monotonic() + 300
    path = folder / "metrics.jsonl"
    while run.poll() is None:
        assert time.monotonic() < deadline
        if path.exists() and path.read_text().count("\n") >= epochs:
            return
        time.sleep(0.01)


def test_another_device(data: Path, tmp_path: Path) -> None:
    """Everything but the model goes through it; a training may change its device as it goes on."""
    a, b = tmp_path / "a", tmp_path / "b"
    base = ["--no-plots", "--quiet", "--device", "reference"]
    assert train("--data", data, "--epochs", 1, "--batch-size", 20, "--out", a, *base) == 0
    assert train("--data", data, "--epochs", 1, "--batch-size", 20, "--out", b, *base[:2]) == 0
    for ours, theirs in zip(metrics(a), metrics(b), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-3)
    assert train("--resume", "--out", a, "--epochs", 2, *base[:2]) == 0
    answers = ["--out", str(tmp_path / "answers.csv"), "--quiet", "--device", "reference"]
    assert main(["predict", "--model", str(a), "--data", str(data), *answers]) == 0


def test_the_command_is_installed() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"undertow": "undertow.cli:main"}


# What can go wrong -------------------------------------------------------------------------------
def test_resume_says_what_does_not_fit(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    base = ["--data", data, "--epochs", 1, "--no-plots", "--quiet", "--out", out]
    assert train("--resume", "--out", out) == 1
    assert "nothing to go on with" in capsys.readouterr().err
    assert train(*base) == 0
    assert train(*base) == 1
    assert "has a training in it" in capsys.readouterr().err
    assert train(*base, "--resume", "--lr", 0.1) == 1
    assert "--lr is 0.1, but" in capsys.readouterr().err
    data.write_text(data.read_text().replace("0.1", "0.2"))
    assert train(*base, "--resume") == 1
    assert "not those that" in capsys.readouterr().err
    (out / "checkpoint.pt").write_bytes(b"PK\x03\x04 half a file")
    assert train(*base, "--resume") == 1
    assert "checkpoint.pt" in capsys.readouterr().err
    assert train(*base, "--overwrite") == 0


def test_overwrite_needs_something_to_write(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    base = ["--epochs", 1, "--no-plots", "--quiet", "--out", out]
    assert train("--data", data, *base) == 0
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    typo = tmp_path / "typo.csv"
    assert train("--data", typo, *base, "--overwrite") == 1
    typo.write_text("a,1,2\na,3,4\n")
    assert train("--data", typo, *base, "--overwrite") == 1
    assert train("--data", data, "--test", tmp_path / "none.csv", *base, "--overwrite") == 1
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before
    capsys.readouterr()


def test_a_training_that_ended_before_its_first_checkpoint(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    out.mkdir()
    (out / "metrics.jsonl").write_text('{"epoch": 1}\n')
    base = ["--epochs", 1, "--no-plots", "--out", out]
    assert train("--resume", *base) == 1
    assert "begin without --resume" in capsys.readouterr().err
    assert train("--data", data, *base) == 0
    assert "this one begins anew" in capsys.readouterr().out
    assert [row["epoch"] for row in metrics(out)] == [1]
    (out / "checkpoint.pt").unlink()
    assert train("--data", data, *base) == 1
    said = capsys.readouterr().err
    assert "--overwrite" in said
    assert "--resume" not in said, "there is nothing to go on with"


def test_what_was_written(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    assert train("--data", data, "--epochs", 2, "--out", out) == 0
    assert "activation_maps.png" in capsys.readouterr().out
    assert train("--resume", "--epochs", 3, "--out", out, "--no-plots") == 0
    said = capsys.readouterr().out
    assert "confusion.csv" in said
    assert ".png" not in said, "the pictures are older"
    assert train("--resume", "--epochs", 1, "--out", out) == 1
    assert "--epochs is 1, but" in capsys.readouterr().err


def test_a_loss_that_diverges(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["a,1,2", "b,-3e38,3e38", "a,2,3"] * 4
    data.write_text("\n".join(rows))
    base = ["--epochs", 1, "--test", data, "--no-normalise", "--quiet", "--lr", 900]
    assert train("--data", data, "--out", tmp_path / "run", *base) == 1
    assert "it diverges; try a smaller one" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "empty"),
        ("a,1,2\na,3,4\n", "all series have the label 'a'; a classifier needs two"),
        ("a,1,2\nb,3\n", "line 2 has one value"),
        ("when,where\n1,2\n", "no column is named label"),
        ("label,a,b\nx,1,2\ny,3,4\n", "a classifier is tested"),
        ("1,2,x\n3,4,y\n", "--label-column -1"),
        ("x,1\ny,3\n", "line 1 has one value"),
    ],
)
def test_bad_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, message: str
) -> None:
    path = tmp_path / "x.csv"
    path.write_text(content)
    assert train("--data", path, "--out", tmp_path / "run") == 1
    said = capsys.readouterr().err
    assert said.startswith("undertow: [x]" if "classifier" in message else "undertow: [x.csv]")
    assert message in said
    assert "Traceback" not in said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "words, message",
    [
        (["train", "--epochs", "0"], "expected a whole number from 1 on: '0'"),
        (["train", "--epochs", "many"], "expected a whole number"),
        (["train", "--seed", str(2**64)], "expected a number below 2**64"),
        (["train", "--seed", "9" * 5000], "expected a whole number"),
        (["train", "--lr", "-1"], "expected a number in"),
        (["train", "--lr", "nan"], "expected a number in"),
        (["train", "--model", "oracle"], "invalid choice: 'oracle'"),
        (["train", "--device", "toaster"], "there is no device 'toaster' here"),
        (["predict"], "required: --model, --data"),
        (["fly"], "invalid choice: 'fly'"),
        ([], "required: COMMAND"),
    ],
)
def test_wrong_command_lines(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train"]) == 1
    assert "--data is needed" in capsys.readouterr().err
    assert main(["predict", "--model", str(tmp_path / "m"), "--data", "x.csv"]) == 1
    assert "there is no model" in capsys.readouterr().err
    broken = tmp_path / "model.safetensors"
    broken.write_bytes(b"\x08\0\0\0\0\0\0\0{}")
    assert main(["predict", "--model", str(tmp_path), "--data", "x.csv"]) == 1
    assert "model.safetensors" in capsys.readouterr().err
    assert train("--data", broken.with_name("x.csv"), "--out", broken) == 1
    assert "is a file; name a folder" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    below = tmp_path / "file" / "run"
    assert train("--data", data, "--epochs", 1, "--out", below) == 1
    assert f"cannot make --out {below}" in capsys.readouterr().err


def test_without_matplotlib(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "undertow.cli.pictures", raising=False)
    monkeypatch.delattr("undertow.cli.pictures", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    out = tmp_path / "run"
    assert train("--data", data, "--epochs", 1, "--out", out) == 0
    assert "pip install 'undertow[plot]'" in capsys.readouterr().err
    assert {p.name for p in out.iterdir()} == FILES
    assert main(["info"]) == 0


def test_info(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["undertow"] == ut.__version__
    assert found["numpy"] == np.__version__
    assert found["threads"] == ut.get_num_threads()
    assert {"cpu", "reference"} <= set(found["devices"])
    assert main(["info"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["undertow", "python"]
    assert any(line.startswith("kernel cache") for line in lines)
    assert found["native calls"] == (native.refusal() or "yes")
    assert found["memory used again"] == (holders.refusal() or "yes")


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("train", "predict", "info"):
        with pytest.raises(SystemExit) as caught:
            main([command, "--help"])
        assert not caught.value.code
        assert command in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--version"])
    assert ut.__version__ in capsys.readouterr().out


def test_the_library_does_not_load_the_command() -> None:
    """Nor the models, nor what they need."""
    code = "import sys, undertow; print([m for m in sys.modules if m.startswith('undertow.')])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    for name in ("cli", "models", "timeseries", "optim", "files"):
        assert f"undertow.{name}'" not in loaded
