"""Time series out of files: every format, and every way in which a file can be wrong."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from undertow.errors import FileError
from undertow.timeseries import Columns, TimeSeries, load, published, read, ucr

TS = "@problemName Toy\n@timeStamps false\n@univariate true\n@classLabel true a b\n@data\n"


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# What can be read --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name, text",
    [
        ("header.csv", "label,t0,t1,t2\na,1,2,3\nb,4,5,6\n"),
        ("last.csv", "t0,t1,t2,class\n1,2,3,a\n4,5,6,b\n"),
        ("pandas.csv", "Label,0,1,2\na,1,2,3\nb,4,5,6\n"),
        ("bare.csv", "a,1,2,3\nb,4,5,6\n"),
        ("tabs.tsv", "a\t1\t2\t3\nb\t4\t5\t6\n"),
        ("semicolons.csv", "y;t0;t1;t2\r\na;1;2;3\r\n\r\nb;4;5;6\r\n"),
        ("spaces.txt", "a  1.0e0  2  3\nb  4  5  6\n"),
        ("mark.csv", "\ufefflabel,t0,t1,t2\na,1,2,3\nb,4,5,6"),
        ("toy.ts", "# told\n" + TS + "1,2,3:a\n4,5,6:b\n"),
    ],
)
def test_the_same_two_series(tmp_path: Path, name: str, text: str) -> None:
    found = read(write(tmp_path, name, text), labelled=True)
    assert found.values.dtype == np.float32
    assert found.values.tolist() == [[[1, 2, 3]], [[4, 5, 6]]]
    assert found.labels == ("a", "b")


def test_label_column_by_name_and_number(tmp_path: Path) -> None:
    named = write(tmp_path, "named.csv", "t0,kind,t1\n1,up,2\n3,down,4\n")
    assert read(named, columns=Columns(label="kind")).labels == ("up", "down")
    bare = write(tmp_path, "bare.csv", "1,2,up\n3,4,down\n")
    assert read(bare, columns=Columns(label="-1")).labels == ("up", "down")
    assert read(bare, columns=Columns(label="2")).values.tolist() == [[[1, 2]], [[3, 4]]]


def test_labels_are_the_same_however_they_are_written(tmp_path: Path) -> None:
    path = write(tmp_path, "x.csv", "1.0000000e+00,0,1\n1,2,3\n2.0,4,5\n10,6,7\n")
    assert read(path).labels == ("1", "1", "2", "10")
    assert read(path).classes == ("1", "2", "10"), "numbers in their own order"


def test_labels_that_differ_stay_apart(tmp_path: Path) -> None:
    large = ("9007199254740992", "9007199254740993", "1e22", "10000000000000000000001")
    other = ("007", "7", "1_0", "10", "1e400", "1e500", "0.1", "0.1000000000000000000001")
    given = (*large, *other, "٣", "3", "nan", "inf", "-", "1e")
    path = write(tmp_path, "x.csv", "".join(f"{label},0,1\n" for label in given))
    assert read(path, labelled=True).labels == given
    same = (
        "1.5",
        "1.50",
        "+1.5",
        "15e-1",
        "-1",
        "-1.0",
        "-1.0000000e+00",
        "0",
        "-0.0",
        ".5",
        "0.50",
    )
    path = write(tmp_path, "y.csv", "".join(f"{label},0,1\n" for label in same))
    assert read(path, labelled=True).classes == ("-1", "0", "0.5", "1.5")


def test_labels_of_bytes(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", X=np.eye(3), y=np.array(["né".encode(), b"a", b"1.0"]))
    assert read(tmp_path / "x.npz").labels == ("né", "a", "1")
    np.savez(tmp_path / "x.npz", X=np.eye(2), y=np.array([b"\xff", b"a"]))
    with pytest.raises(FileError, match="y has bytes that are not UTF-8"):
        read(tmp_path / "x.npz")


def test_the_order_of_classes_is_always_the_same() -> None:
    """Whatever the order in a set, which differs from process to process."""
    ranked = ("-inf", "7", "007", "1e400", "inf", "nan", "NAN")
    code = (
        "import numpy as np; from undertow.timeseries import TimeSeries; "
        f"print(TimeSeries('x', np.zeros(({len(ranked)}, 1, 2)), {ranked!r}).classes)"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in "123"
    }
    assert said == {repr(("-inf", "007", "7", "1e400", "NAN", "inf", "nan"))}


def test_a_folder_is_no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as the one of the last training with that set."""
    (tmp_path / "GunPoint").mkdir()
    monkeypatch.chdir(tmp_path)
    assert len(load("GunPoint")[0]) == 50


def test_a_file_without_labels(tmp_path: Path) -> None:
    path = write(tmp_path, "x.csv", "1,2,3\n4,5,6\n")
    assert read(path, length=3).labels is None
    assert read(path, length=2).labels == ("1", "4")
    assert read(path, labelled=False, length=3).values.shape == (2, 1, 3)
    ts = write(tmp_path, "x.ts", TS + "1,2:a\n")
    assert read(ts, labelled=False).labels is None


def test_several_channels(tmp_path: Path) -> None:
    path = write(tmp_path, "x.ts", TS + "1,2,3:4,5,6:a\n7,8,9:10,11,12:b\n")
    found = read(path)
    assert (found.channels, found.length) == (2, 3)
    np.savez(tmp_path / "x.npz", X=found.values.astype(np.float64), y=["a", "b"])
    again = read(tmp_path / "x.npz")
    assert again.labels == ("a", "b")
    np.testing.assert_array_equal(again.values, found.values)


def test_npz_in_two_parts(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    x = np.arange(12).reshape(4, 3)
    np.savez(path, X_train=x, y_train=[1, 2, 1, 2], X_test=x[:2], y_test=np.array([2.0, 1.0]))
    train, test = load(path)
    assert test is not None
    assert (len(train), len(test), train.classes, test.labels) == (4, 2, ("1", "2"), ("2", "1"))


def test_the_twin_of_a_training_file(tmp_path: Path) -> None:
    path = write(tmp_path, "Toy_TRAIN.ts", TS + "1,2:a\n3,4:b\n")
    assert load(path)[1] is None
    write(tmp_path, "Toy_TEST.ts", TS + "5,6:b\n")
    test = load(path)[1]
    assert test is not None
    assert test.labels == ("b",)
    other = write(tmp_path, "other.csv", "a,0,0\nb,1,1\n")
    assert len(load(path, other)[1] or ()) == 2


# What cannot -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name, content, message",
    [
        ("x.csv", "", "empty"),
        ("x.csv", " \n\n", "empty"),
        ("x.csv", "label,t0,t1\n", "no series"),
        ("x.csv", "label,t0,t1\na,1,2\nb,3\n", "line 3 has one value; a time series needs"),
        ("x.csv", "label,t0,t1\na,1,2\nb,3,4,5\n", "line 3 has 4 cells, the header 3"),
        ("x.csv", "label,t0,t1\na,1\nb,3\n", "line 2 has 2 cells, the header 3: a column"),
        ("x.csv", "when,where,what\n1,2,a\n", "no column is named label.*when, where, what"),
        ("x.csv", "a,1,2\nb,,\n", "line 2 has no value at all"),
        ("x.csv", "a,1,nan\nb,3,4\n", "line 1 has one value"),
        ("x.csv", "a,1,inf\nb,3,4\n", "line 1: 1 of 2 values"),
        ("x.csv", "a,1,1e300\nb,3,4\n", "too large for float32"),
        ("x.csv", "a,1,2\nb,3,four\n", "line 2: 'four' is not a number"),
        ("x.csv", "a,1,2\n,3,4\n", "line 2 has no label"),
        ("x.csv", "1,2,a\n3,4,b\n", "'a' in the last column .* say --label-column -1"),
        ("x.csv", "a,1\nb,2\n", "line 1 has one value"),
        ("x.csv", "a,1,2\n\xff".encode("latin-1"), "byte 6 .0xff. is not UTF-8"),
        ("x.csv", "a,1,2\n".encode("utf-16"), "not UTF-8"),
        ("x.ts", "1,2,3:a\n", "expected @data"),
        ("x.ts", "@classLabel true a\n", "no @data"),
        ("x.ts", "@classLabel false\n@data\n1,2\n", "no labels"),
        ("x.ts", "@classLabel\n@data\n1,2\n", "@classLabel must be true or false"),
        ("x.ts", "@timeStamps true\n@data\n(1,2),(3,4):a\n", "time stamps"),
        ("x.ts", TS, "no series"),
        ("x.ts", TS + "1,2\n", "line 6 has no label after a colon"),
        ("x.ts", TS + "1,2:a\n1,2:3,4:b\n", "line 7 has 2 channels, the first 1"),
        ("x.ts", TS + "1,?:a\n", "line 6 has one value"),
        ("x.ts", TS + "1,2:c\n", "label 'c' is not one of @classLabel"),
        ("x.npz", "no archive", "no .npz file"),
        ("x.npz", b"PK\x03\x04 half", "no .npz file"),
        ("x.parquet", "what", "no .csv, .tsv"),
    ],
)
def test_wrong_files(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    path = write(tmp_path, name, content)
    with pytest.raises(FileError, match=message) as caught:
        read(path, labelled=True)
    assert str(caught.value).startswith(f"[{name}] ")


@pytest.mark.parametrize(
    "arrays, message",
    [
        ({"y": [1, 2]}, "no array X; there are y"),
        ({"X": [[1.0, 2.0]]}, "no array y"),
        ({"X": [1.0, 2.0], "y": [1, 2]}, r"shape \(number, length\)"),
        ({"X": [["a", "b"]], "y": [1]}, "must be numbers"),
        ({"X": [[1.0, 2.0]], "y": [1, 2]}, r"y has shape \(2,\), and X 1 series"),
        ({"X": [[1.0, np.nan]], "y": [1]}, "series 0 has one value"),
        ({"X": np.zeros((0, 3)), "y": np.zeros(0)}, "nothing in series of shape"),
        ({"X": np.array([[object()]]), "y": [1]}, "plain arrays"),
        ({"X": np.zeros((2, 3, 1)), "y": [1, 2]}, "series 0 has one value"),
    ],
)
def test_wrong_arrays(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(FileError, match=message):
        read(tmp_path / "x.npz", labelled=True)


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    path = write(tmp_path, "x.csv", "t0,kind,t1\n1,up,2\n")
    with pytest.raises(FileError, match="no column 'species'; 3 columns, the columns are t0, kind"):
        load(path, columns=Columns(label="species"))
    bare = write(tmp_path, "bare.csv", "a,1,2\n")
    with pytest.raises(FileError, match="no column 'species'; 3 columns, and no header"):
        load(bare, columns=Columns(label="species"))


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is no file"):
        load(tmp_path / "x.csv")
    with pytest.raises(FileError, match="can be read"):
        load(tmp_path)


def test_test_series_that_do_not_fit(tmp_path: Path) -> None:
    train = write(tmp_path, "train.csv", "a,1,2\nb,3,4\n")
    longer = write(tmp_path, "longer.csv", "a,1,2,3\n")
    with pytest.raises(FileError, match="1 channels of length 3, the training series 1 of"):
        load(train, longer)
    other = write(tmp_path, "other.csv", "c,1,2\nc,1,2\nd,1,2\n")
    with pytest.raises(FileError, match=r"2 labels are unknown: 'c' \(2×\), 'd' \(1×\)"):
        load(train, other)[1].encoded(load(train)[0].classes)  # type: ignore[union-attr]


# What is done with them --------------------------------------------------------------------------
def test_normalised() -> None:
    random = np.random.default_rng(0)
    values = random.normal(5e3, 2.0, (4, 2, 30)).astype(np.float32)
    values[1, 1] = 1234.567
    found = TimeSeries("x", values).normalised().values
    np.testing.assert_allclose(found.mean(axis=2), 0, atol=1e-6)
    deviation = np.ones((4, 2))
    deviation[1, 1] = 0
    np.testing.assert_allclose(found.std(axis=2), deviation, atol=1e-5)


def test_split_keeps_the_classes_apart() -> None:
    labels = ("a",) * 20 + ("b",) * 5 + ("c",) * 2 + ("d",)
    whole = TimeSeries("x", np.arange(28, dtype=np.float32).reshape(28, 1, 1), labels)
    first, second = whole.split(0.2, seed=3)
    assert sorted([*first.values.flat, *second.values.flat]) == list(range(28))
    assert [second.labels.count(c) for c in "abcd"] == [4, 1, 1, 0]  # type: ignore[union-attr]
    assert whole.split(0.2, seed=3)[1].values.tolist() == second.values.tolist()
    assert whole.split(0.2, seed=4)[1].values.tolist() != second.values.tolist()


# The archive -------------------------------------------------------------------------------------
@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No examples, nothing installed, and an empty cache."""
    monkeypatch.setenv("UNDERTOW_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(ucr, "__file__", str(tmp_path / "a" / "b" / "c" / "d" / "ucr.py"))
    monkeypatch.setattr(ucr, "find_spec", lambda name: None)
    return tmp_path


def pip(monkeypatch: pytest.MonkeyPatch, code: int, said: str, **inside: str) -> list[list[str]]:
    """A pip that brings a wheel with these files, or says why not."""
    calls: list[list[str]] = []

    def run(command: list[str], **how: Any) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        if not code:
            folder = Path(command[command.index("--dest") + 1])
            with zipfile.ZipFile(folder / "aeon-1.0-py3-none-any.whl", "w") as wheel:
                for name, text in inside.items():
                    wheel.writestr(f"aeon/datasets/data/Toy/{name}.ts", text)
                wheel.writestr("aeon/__init__.py", "raise SystemExit('never imported')")
        return subprocess.CompletedProcess(command, code, "", said)

    monkeypatch.setattr(subprocess, "run", run)
    return calls


def test_a_set_out_of_a_wheel(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = pip(monkeypatch, 0, "", Toy_TRAIN=TS + "1,2:a\n", Toy_TEST=TS + "3,4:a\n")
    train, test = load("Toy", fetch=True)
    assert train.values.tolist() == [[[1, 2]]]
    assert test is not None
    assert test.values.tolist() == [[[3, 4]]]
    load("Toy")
    assert len(calls) == 1, "the second time it is in the cache"
    assert {"--no-deps", "--only-binary=:all:"} <= set(calls[0])
    with pytest.raises(FileError, match=r"Other. is no set .* these can: .*Toy"):
        load("Other", fetch=True)


def test_a_typo_downloads_nothing(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody can be asked; a terminal is asked first."""
    calls = pip(monkeypatch, 0, "", Toy_TRAIN=TS + "1,2:a\n", Toy_TEST=TS + "3,4:a\n")
    with pytest.raises(FileError, match="nearest names are OSULeaf"):
        load("OSULeef")
    assert not calls

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    for answer, fetched in (("\n", 0), ("n\n", 0), ("y\n", 1)):
        monkeypatch.setattr(sys, "stdin", Terminal(answer))
        with pytest.raises(FileError, match="is no set"):
            load("OSULeef")
        assert len(calls) == fetched
    assert "nearest names are OSULeaf" in shown.getvalue()
    assert "[y/N]" in shown.getvalue()


def test_no_network(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip(monkeypatch, 1, "WARNING: trying\nERROR: none found")
    with pytest.raises(FileError, match=r"is there a network.*none found.*cache") as e:
        load("OSULeaf")
    assert "--data OSULeaf_TRAIN.ts" in str(e.value)


def test_names_that_are_none() -> None:
    for name in ("../secret", "a b", "x;y"):
        with pytest.raises(FileError):
            load(name)


def test_gunpoint_ships_with_the_examples() -> None:
    train, test = load("GunPoint")
    assert test is not None
    assert (train.values.shape, test.values.shape) == ((50, 1, 150), (150, 1, 150))
    assert train.name == "GunPoint"
    assert published("fcn", train.name) == (100.0, 0.0)
    assert published("fcn", "Nothing") is None
