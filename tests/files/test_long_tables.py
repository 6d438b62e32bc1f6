"""Long tables, missing values and uneven lengths: read as what they are, or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from undertow.errors import FileError
from undertow.timeseries import Columns, TimeSeries, read

LENGTHS = (6, 4, 5)
LABELS = ("up", "down", "up")


def long_rows(channels: int = 1) -> tuple[list[list[object]], list[np.ndarray]]:
    """Rows of id, time, dimension, value, label, and the series that they are of."""
    random = np.random.default_rng(0)
    series = [random.normal(size=(channels, n)).round(3) for n in LENGTHS]
    rows: list[list[object]] = []
    for i, (values, label) in enumerate(zip(series, LABELS, strict=True)):
        for (channel, time), value in np.ndenumerate(values):
            rows.append([f"s{i}", time, f"d{channel}", value, label])
    return rows, series


def written(path: Path, rows: list[list[object]], columns: str, head: bool = True) -> Path:
    names = ["id", "time", "dimension", "value", "label"]
    chosen = [names.index(name) for name in columns.split()]
    lines = [",".join(names[i] for i in chosen)] if head else []
    lines += [",".join(str(row[i]) for i in chosen) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


def same(found: TimeSeries, series: list[np.ndarray]) -> None:
    assert found.labels == LABELS
    assert found.ids == ("s0", "s1", "s2")
    assert found.lengths is not None
    assert found.lengths.tolist() == list(LENGTHS)
    for ours, theirs in zip(found.rows(), series, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("columns", ["id time value label", "label value time id"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_recognised_by_its_header(tmp_path: Path, columns: str, shuffled: bool) -> None:
    rows, series = long_rows()
    order = np.random.default_rng(1).permutation(len(rows)) if shuffled else range(len(rows))
    found = read(written(tmp_path / "x.csv", rows, columns), labelled=True)
    same(found, series)
    again = read(written(tmp_path / "x.csv", [rows[i] for i in order], columns), labelled=True)
    by_id = dict(zip(again.ids or (), again.rows(), strict=True))
    for i, values in enumerate(series):
        np.testing.assert_allclose(by_id[f"s{i}"], values, rtol=1e-6)
    assert found.notes[0].startswith("read as long format: id 'id', time 'time', values 'value'")


def test_dimensions_are_channels(tmp_path: Path) -> None:
    rows, series = long_rows(channels=3)
    found = read(written(tmp_path / "x.csv", rows, "id time dimension value label"), labelled=True)
    same(found, series)
    with pytest.raises(FileError, match="name it by --dimension"):
        read(written(tmp_path / "x.csv", rows, "id time value label"), labelled=True)


def test_several_columns_of_values(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("id,t,ax,ay,label\n1,0,1,5,a\n1,1,2,6,a\n2,0,3,7,b\n2,1,4,8,b\n")
    assert read(path, labelled=True).values.tolist() == [[[1, 2], [5, 6]], [[3, 4], [7, 8]]]
    only = read(path, columns=Columns(value="ay"), labelled=True)
    assert only.values.tolist() == [[[5, 6]], [[7, 8]]]


@pytest.mark.parametrize("head", [True, False])
def test_refused_by_its_structure(tmp_path: Path, head: bool) -> None:
    """Names that tell nothing, or none: a sentence that works when it is followed."""
    rows, series = long_rows()
    path = written(tmp_path / "x.csv", rows, "id time value label", head)
    text = path.read_text().replace("id,time,value,label", "who,when,what,kind")
    path.write_text(text)
    who, when, what, kind = ("who", "when", "what", "kind") if head else "0123"
    asked = (
        f"--format long --id {who} --time {when} --value {what} --label {kind}; or --format wide"
    )
    with pytest.raises(FileError, match="looks like long format") as caught:
        read(path, labelled=True, columns=Columns(label=kind))
    assert asked in str(caught.value)
    same(read(path, columns=Columns("long", kind, who, when, what), labelled=True), series)


def test_wide_tables_are_not_taken_for_long_ones(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    path = tmp_path / "x.csv"
    for number in (6, 40, 300):
        for columns in (2, 3, 5):
            values = random.normal(size=(number, columns)).round(2)
            lines = [f"{i * 2 // number}," + ",".join(map(str, v)) for i, v in enumerate(values)]
            path.write_text("\n".join(lines))
            found = read(path, labelled=True)
            np.testing.assert_allclose(found.values[:, 0], values, rtol=1e-6)


def test_an_id_is_no_value(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("id,a,b,label\n17,1,2,x\n18,3,4,y\n")
    found = read(path, labelled=True)
    assert found.values.tolist() == [[[1, 2]], [[3, 4]]]
    assert found.ids == ("17", "18")


@pytest.mark.parametrize(
    "text, message",
    [
        ("id,time,value,label\n1,0,1,a\n1,1,2,b\n", "label 'b', and 'a' before"),
        ("id,time,value,label\n1,0,1,a\n1,0,2,a\n", "lines 2 and 3 are of the same time 0"),
        ("id,time,value,label\n1,0,1,a\n1,soon,2,a\n", "line 3: the time 'soon' is no number"),
        ("id,time,value,label\n1,0,1,a\n1,1\n", "line 3 has 2 cells"),
        ("id,time,value\n1,0,1\n1,1,2\n", "which column has the labels"),
        ("id,time,label\n1,0,a\n1,1,a\n", "which column has the values"),
        ("id,time,value,label\n1,0,1,a\n2,0,2,b\n1,1,3,a\n", "series '2' has one value"),
    ],
)
def test_wrong_long_tables(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(FileError, match=message):
        read(path, labelled=True)


def test_dates_and_uneven_times(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("id,date,value,label\na,2026-01-03,3,x\na,2026-01-01,1,x\na,2026-01-09,9,x\n")
    found = read(path, labelled=True)
    assert found.values.tolist() == [[[1, 3, 9]]]
    assert "the times of 1 series are not evenly spaced: taken in their order" in found.notes


# Missing values and uneven lengths ---------------------------------------------------------------
def test_filled_on_the_line_between_neighbours(tmp_path: Path) -> None:
    """The values of a line are found again wherever they are missing inside it."""
    random = np.random.default_rng(0)
    slope = random.normal(size=(20, 1))
    lines = slope * np.arange(9) + 1
    gaps = random.random(lines.shape) < 0.4
    gaps[:, [0, -1]] = False
    found = TimeSeries.gathered("x", list(np.where(gaps, np.nan, lines)[:, None]))
    np.testing.assert_allclose(found.values[:, 0], lines, rtol=1e-5, atol=1e-6)
    assert found.notes == (
        f"{gaps.sum()} of 180 values were missing: filled on the line between their neighbours",
    )
    path = tmp_path / "x.csv"
    path.write_text("a,1,?,3\nb,NA,5,6\n")
    assert read(path, labelled=True).values.tolist() == [[[1, 2, 3]], [[5, 5, 6]]]


def test_missing_at_the_end_is_the_end(tmp_path: Path) -> None:
    for name, text in (("x.csv", "a,1,2,,\nb,3,4,5,6\n"), ("y.csv", "a,1,2\nb,3,4,5,6\n")):
        path = tmp_path / name
        path.write_text(text)
        found = read(path, labelled=True)
        assert found.lengths is not None
        assert found.lengths.tolist() == [2, 4]
        assert found.values.tolist() == [[[1, 2, 0, 0]], [[3, 4, 5, 6]]]
        assert "series have 2 to 4 values; padding is masked" in found.notes[-1]


def test_normalised_without_the_padding() -> None:
    random = np.random.default_rng(0)
    rows = [random.normal(5, 3, (2, n)) for n in (4, 9, 6)]
    together = TimeSeries.gathered("x", rows).normalised()
    for ours, row in zip(together.rows(), rows, strict=True):
        alone = TimeSeries("x", row[None].astype(np.float32)).normalised().values[0]
        np.testing.assert_allclose(ours, alone, rtol=1e-4, atol=1e-5)
    assert together.values[0, :, 4:].tolist() == [[0] * 5] * 2


def test_numbers_are_split_by_their_order() -> None:
    numbers = np.random.default_rng(0).permutation(100)
    whole = TimeSeries("x", np.zeros((100, 1, 2), np.float32), tuple(map(str, numbers)))
    first, second = whole.split(0.2, 0, by_number=True)
    assert sorted([*first.targets(), *second.targets()]) == list(range(100))
    assert np.histogram(second.targets(), 5, (0, 100))[0].tolist() == [4] * 5
    assert second.labels == whole.split(0.2, 0, by_number=True)[1].labels
    assert second.labels != whole.split(0.2, 1, by_number=True)[1].labels
