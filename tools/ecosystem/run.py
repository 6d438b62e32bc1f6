"""Run parts of packages under whoever answers to `torch`, against recorded numbers.

    python tools/ecosystem/run.py [--quick] [package ...] [-k WORDS]      compare
    python tools/ecosystem/run.py --record [--new] [package ...]          record, with genuine torch

`make ecosystem` runs it with Undertow as torch and the packages of requirements.txt. Every
package has a process to itself.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
EXPECTED = HERE / "expected"
Numbers = dict[str, list[float]]


def differences(found: Numbers, expected: Numbers, tolerance: float) -> Iterator[str]:
    """What differs by more than a tolerance, relative to the norm."""
    for name in sorted({*found, *expected}):
        if name not in found or name not in expected:
            yield f"{name} is only in {'the record' if name in expected else 'this run'}"
            continue
        mine, theirs = found[name], expected[name]
        if not mine or not theirs or mine[0] != theirs[0]:
            if mine != theirs:
                yield f"{name}: expected {theirs[:1] or 'none'} elements, got {mine[:1] or 'none'}"
            continue
        off = max(abs(a - b) for a, b in zip(mine, theirs, strict=True))
        if not off <= tolerance * (theirs[1] + 1e-3):
            yield f"{name}: expected {theirs[1:]}, got {mine[1:]}"


def write(file: Path, numbers: dict[str, Numbers]) -> None:
    """Keep the numbers of a package, a line for each part."""
    lines = [f'"{name}": {json.dumps(found)}' for name, found in numbers.items()]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def run_package(package: str, asked: argparse.Namespace) -> dict[str, str]:
    """What became of each part of a package: "agrees" or what went wrong."""
    from part import PARTS, LeftOut, surroundings

    importlib.import_module(f"parts.{package}")
    file = EXPECTED / f"{package}.json"
    expected: dict[str, Numbers] = json.loads(file.read_text()) if file.exists() else {}
    results = {}
    for part in PARTS.values():
        if (asked.quick and not part.quick) or (asked.k and asked.k not in part.name):
            continue
        if asked.new and part.name in expected:
            continue
        if not asked.record and part.name not in expected:
            continue  # genuine torch does not run it either
        start = time.perf_counter()
        try:
            with warnings.catch_warnings(), surroundings(part.dtype):
                warnings.simplefilter("ignore")
                found = part.run()
            if asked.record:
                expected[part.name] = found
                write(file, {name: expected[name] for name in PARTS if name in expected})
                said = "recorded"
            else:
                off = list(differences(found, expected[part.name], part.tolerance))
                said = "; ".join(off[:3]) + (f"; {len(off) - 3} more" if len(off) > 3 else "")
        except LeftOut as error:
            said = f"left out: {error}"
        except Exception as error:
            if asked.verbose:
                traceback.print_exc()
            said = f"failed: {type(error).__name__}: {error}"
        results[part.name] = said or "agrees"
        print(
            f"{package:16} {part.name:32} {time.perf_counter() - start:6.1f} s  {said or 'agrees'}",
            flush=True,
        )
    return results


def main() -> int:
    """Run the packages, each in a process of its own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    known = sorted(p.stem for p in (HERE / "parts").glob("[a-z]*.py"))
    parser.add_argument("packages", nargs="*", metavar="package", help=f"of {', '.join(known)}")
    parser.add_argument("--record", action="store_true", help="write the numbers of this torch")
    parser.add_argument("--new", action="store_true", help="only parts without a record")
    parser.add_argument("--quick", action="store_true", help="a few parts of each package")
    parser.add_argument("--verbose", action="store_true", help="show tracebacks")
    parser.add_argument("-k", metavar="WORDS", help="parts with these letters in their names")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if unknown := {*asked.packages} - {*known}:
        parser.error(f"no parts of {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    sys.path.insert(0, str(HERE))
    if asked.here:
        results = run_package(asked.packages[0], asked)
        bad = [s for s in results.values() if not s.startswith(("agrees", "recorded", "left out"))]
        return min(len(bad), 100)
    import torch

    real = "undertow" not in torch.__version__
    if asked.record and not real:
        parser.error("numbers are recorded with genuine torch, and this one is Undertow")
    print(f"torch {torch.__version__} from {torch.__file__}", flush=True)
    options = [
        f"--{name}" for name in ("record", "new", "quick", "verbose") if getattr(asked, name)
    ]
    options += ["-k", asked.k] if asked.k else []
    failed = []
    for package in asked.packages or known:
        code = subprocess.call([sys.executable, __file__, "--here", package, *options])
        if code:
            failed.append(f"{package} ({code if code > 0 else f'ended by signal {-code}'})")
    print(f"parts that do not agree: {', '.join(failed)}" if failed else "all parts agree")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
