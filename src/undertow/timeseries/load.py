"""What `--data` may name: a file, or a set of the UCR archive; in two parts if there are two."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import FileError
from . import ucr
from .formats import read_csv, read_npz, read_ts
from .long import Columns
from .series import TimeSeries

_TABLES = (".csv", ".tsv", ".txt")
SUFFIXES = (*_TABLES, ".ts", ".npz")


def read(
    path: str | os.PathLike[str],
    *,
    columns: Columns | None = None,
    labelled: bool | None = None,
    length: int | None = None,
) -> TimeSeries:
    r"""Series out of one CSV, `.ts` or `.npz` file.

    `labelled` says whether they must have labels (True), whether to ignore them (False), or that
    the file tells (None): a CSV file without a header has none if its rows are `length` long.
    `columns` names columns of a table that does not tell them itself.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from undertow.timeseries import read
    >>> path = Path(tempfile.mkdtemp()) / "two.csv"
    >>> _ = path.write_text("label,t0,t1,t2\nup,1,2,3\ndown,3,2,1\n")
    >>> two = read(path)
    >>> two.values.shape, two.labels
    ((2, 1, 3), ('up', 'down'))
    """
    path = _existing(Path(path))
    found = _read(path, columns or Columns(), labelled, length, None)
    assert found is not None  # only a part may be missing
    return found


def load(
    data: str | os.PathLike[str],
    test: str | os.PathLike[str] | None = None,
    *,
    columns: Columns | None = None,
    labelled: bool = True,
    fetch: bool | None = None,
) -> tuple[TimeSeries, TimeSeries | None]:
    """Series to learn from, and those to test with if the source has any.

    `data` is a file or a name of the UCR archive (`undertow.timeseries.names()`). The test part of
    `X_TRAIN.ts` is `X_TEST.ts`, that of a `.npz` file its arrays `X_test` and `y_test`; `test`
    names another file. With `labelled=False` their labels are not looked at. A name of the archive
    that is not here is fetched with `fetch=True`, and not with `fetch=False`; else a terminal asks.

    >>> from undertow.timeseries import load
    >>> train, test = load("GunPoint")
    >>> train.values.shape, test.values.shape, train.classes
    ((50, 1, 150), (150, 1, 150), ('1', '2'))
    """
    path = Path(data)
    if path.suffix.lower() in SUFFIXES or len(path.parts) != 1 or path.is_file():
        path = _existing(path)
        twin = path.with_name(path.name.replace("_TRAIN", "_TEST"))
    else:
        path, twin = ucr.files(str(data), fetch)
    columns = columns or Columns()
    train = _read(path, columns, labelled, None, "train") or read(
        path, columns=columns, labelled=labelled
    )
    if test is not None:
        other: TimeSeries | None = read(test, columns=columns, labelled=labelled)
    elif twin != path and twin.is_file():
        other = read(twin, columns=columns, labelled=labelled)
    else:
        other = _read(path, columns, labelled, None, "test")
    if other is not None:
        fits(other, train)
    return train, other


def fits(series: TimeSeries, like: TimeSeries) -> None:
    """An error unless `series` has as many channels as `like`, and as many values if all have."""
    even = series.lengths is None and like.lengths is None
    if series.channels != like.channels or (even and series.length != like.length):
        raise FileError(
            f"[{series.name}] the other series have {series.channels} channels of length "
            f"{series.length}, the training series {like.channels} of length {like.length}"
        )


def _existing(path: Path) -> Path:
    if path.suffix.lower() not in SUFFIXES:
        raise FileError(
            f"[{path.name}] {str(path)!r} is no {', '.join(SUFFIXES)} file; these can be read, or "
            "give the name of a UCR set, such as GunPoint"
        )
    if not path.is_file():
        raise FileError(f"[{path.name}] there is no file {str(path)!r}")
    return path


def _read(
    path: Path, columns: Columns, labelled: bool | None, length: int | None, part: str | None
) -> TimeSeries | None:
    try:
        if path.suffix.lower() == ".npz":
            return read_npz(path, labelled, part)
        if part is not None:
            return None  # in a file of its own
        if path.suffix.lower() == ".ts":
            return read_ts(path, labelled)
        return read_csv(path, columns, labelled, length)
    except OSError as error:
        raise FileError(f"[{path.name}] cannot be read: {error.strerror or error}") from None
