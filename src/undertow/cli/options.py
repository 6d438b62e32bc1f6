"""Numbers and devices on the command line, checked where they are read."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

from ..backends.registry import backend_on
from ..errors import UndertowError


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


def device(text: str) -> str:
    """Reads a device that is there."""
    try:
        return str(backend_on(text).device)
    except UndertowError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_data_options(command: Any) -> None:
    """What reading a file needs."""
    command.add_argument(
        "--label-column",
        metavar="NAME",
        help="column of a CSV file that has the labels, by name or number (default: label, class, "
        "target or y; the first one without a header)",
    )
    command.add_argument("--device", type=device, help="where to compute (default: cpu)")
    command.add_argument("--quiet", action="store_true", help="print errors only")
