"""Every example runs, in reduced form, and learns what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
# What is enough to see that it learns; and what must not be in the list.
REDUCED = {
    "beam": "--steps 100",
    "characters": "--steps 40 --width 32 --layers 1 --length 30",
    "digits": "--epochs 2",
    "forecast": "--steps 40",
    "from_torch": "--epochs 1",
    "gan": "--steps 12",
    "images": "--epochs 2",
    "soliton": "--steps 40 --points 128",
}
PICTURES = {"digits", "forecast", "gan", "images", "soliton"}


def run(name: str, folder: Path) -> str:
    """What a reduced run prints, without its progress bar."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *REDUCED[name].split()]
    env = os.environ | {"PYTHONWARNINGS": "error"}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, env=env, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(text: str, pattern: str) -> list[float]:
    """The groups of a pattern in what was printed."""
    found = re.search(pattern, text)
    assert found, text
    return [float(g) for g in found.groups()]


def test_all_are_here() -> None:
    """A new example is run as well."""
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(REDUCED)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(REDUCED))
def test_it_learns(name: str, tmp_path: Path) -> None:
    """It ends well, draws its picture, and what it reports is better than at first."""
    said = run(name, tmp_path)
    if name in PICTURES:
        (picture,) = tmp_path.glob("*.png")
        assert picture.read_bytes().startswith(b"\x89PNG")
    match name:
        case "characters":
            now, first = numbers(said, r"([\d.]+) bits per character .* of ([\d.]+) at first")
            assert now < first - 0.5
        case "beam":
            assert numbers(said, r"largest error ([\d.]+) of 1")[0] < 0.6  # 1 where it is flat
        case "forecast":
            network, nothing = re.findall(r"error ([\d.]+) over 20", said)
            assert float(network) < float(nothing)
        case "from_torch":
            there, here = numbers(said, r"torch read ([\d.]+)%, here it is ([\d.]+)%")
            assert abs(there - here) < 0.3  # one digit may round the other way
            (after,) = numbers(said, r"after 3 epochs: ([\d.]+)%")
            assert after > there - 2
        case "images":
            for name in ("perceptron", "convolutional"):
                assert numbers(said, rf"{name}: \d+ parameters, ([\d.]+)%")[0] > 50
        case "soliton":
            first, now = numbers(said, r"t = [\d.]+: ([\d.]+) at first, ([\d.]+) now")
            assert now < first + 0.2  # 40 steps only begin; the equation's gradients are there
