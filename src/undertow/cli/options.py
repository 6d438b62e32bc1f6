"""Numbers and devices on the command line, checked where they are read."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

from ..backends.registry import backend_on
from ..errors import UndertowError
from ..timeseries.long import FORMATS


def whole(least: int, bits: int = 63) -> Callable[[str], int]:
    """Reads a whole number of at most so many bits that is at least `least`."""

    def read(text: str) -> int:
        try:
            number = int(text) if text.lstrip("-").isdecimal() else least - 1
        except ValueError:  # Python reads no more than some thousand digits, nor two signs
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"expected a whole number from {least} on: {text!r}")
        if number >> bits:
            raise argparse.ArgumentTypeError(f"expected a number below 2**{bits}: {text!r}")
        return number

    return read


def between(low: float, high: float) -> Callable[[str], float]:
    """Reads a number above `low` and below `high`."""

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not low < number < high:
            raise argparse.ArgumentTypeError(f"expected a number in ({low:g}, {high:g}): {text!r}")
        return number

    return read


def share_or_file(text: str) -> float | str:
    """Reads a part of all, from 0 on and below 1, or the name of a file."""
    try:
        number = float(text)
    except ValueError:
        return text
    if not 0 <= number < 1:
        raise argparse.ArgumentTypeError(f"expected a part in [0, 1), or a file: {text!r}")
    return number


def device(text: str) -> str:
    """Reads a device that is there."""
    try:
        return str(backend_on(text).device)
    except UndertowError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_data_options(command: Any) -> None:
    """What reading a file needs."""
    add = command.add_argument
    looks = "one series a row, or one moment a row (default: what the table tells)"
    add("--format", choices=FORMATS, default=argparse.SUPPRESS, help=f"of a table: {looks}")
    add(
        "--label",
        "--label-column",
        dest="label_column",
        metavar="COLUMN",
        help="column of a table that has the labels, by name or number (default: label, class, "
        "target or y; the first one of a wide table without a header)",
    )
    for name, what in (
        ("id", "tells the series apart (default: id, series, unique_id …)"),
        ("time", "has the times of a long table (default: time, timestamp, ds …)"),
        ("value", "has the values of a long table; several: A,B,C (default: value, or all others)"),
        ("dimension", "says which channel a value of a long table is of"),
    ):
        add(f"--{name}", dest=f"{name}_column", metavar="COLUMN", help=f"column that {what}")
    add(
        "--fetch",
        action=argparse.BooleanOptionalAction,
        help="download a UCR set that is not here without asking, or never",
    )
    command.add_argument("--device", type=device, help="where to compute (default: cpu)")
    command.add_argument("--quiet", action="store_true", help="print errors only")
