"""Let Undertow answer to the name torch in this virtual environment.

Writes a package `torch` of a few lines, with metadata of version 2.13.0+undertow, so that
libraries which need torch find it, and pip, too. `undertow adopt --undo` removes what was written.
For a single program, without writing anything: undertow run.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import sys
import sysconfig
from importlib.machinery import PathFinder
from importlib.metadata import PathDistribution
from pathlib import Path

from ..compat.stand_in import FOLDER, VERSION
from ..errors import ArgumentError

METADATA = f"torch-{VERSION}.dist-info"
UNDO = "`undertow adopt --undo` removes it"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What the command understands."""
    command.add_argument("--undo", action="store_true", help="remove what was written")
    command.add_argument(
        "--system",
        action="store_true",
        help="outside a virtual environment, too: in the Python that runs this",
    )


def run(asked: argparse.Namespace) -> int:
    """Write the package, or remove it."""
    site = Path(sysconfig.get_path("purelib"))
    if asked.undo:
        removed = undo(site)
        print(f"removed torch {VERSION} from {site}" if removed else f"nothing to undo in {site}")
        return 0
    if sys.prefix == sys.base_prefix and not asked.system:
        raise ArgumentError(
            f"[adopt] {sys.executable} is in no virtual environment; make one with "
            "`python -m venv .venv`, or say --system to change this Python for all programs"
        )
    before = adopted(site)
    adopt(site)
    print(f"torch {VERSION} {'is already' if before else 'is now Undertow'} in {site}; {UNDO}")
    return 0


def adopt(site: Path) -> None:
    """Write the package and its metadata into a folder of packages."""
    real = real_torch(site)
    if real is not None:
        raise ArgumentError(
            f"[adopt] a torch is already there: {real}; remove it with `pip uninstall torch`, or "
            "run a program beside it with `undertow run`"
        )
    undo(site)
    rows: list[tuple[object, ...]] = []
    for source in sorted(p for p in FOLDER.rglob("*") if p.is_file() and p.suffix != ".pyc"):
        name = source.relative_to(FOLDER)
        content = source.read_bytes()
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_bytes(content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append((name.as_posix(), f"sha256={digest}", len(content)))
    rows.append((f"{METADATA}/RECORD", "", ""))
    with open(site / METADATA / "RECORD", "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def undo(site: Path) -> bool:
    """Remove what the record of our torch lists, and the folders that it leaves empty."""
    found = adopted(site)
    if found is None:
        return False
    folders = set()
    with open(found / "RECORD", encoding="utf-8", newline="") as file:
        listed = [site / row[0] for row in csv.reader(file) if row]
    for path in listed:
        folders.add(path.parent)
        path.unlink(missing_ok=True)
        cache = path.parent / "__pycache__"
        for compiled in cache.glob(f"{path.stem}.*.pyc") if path.suffix == ".py" else ():
            compiled.unlink()
            folders.add(cache)
    for folder in sorted(folders, key=lambda f: len(f.parts), reverse=True):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    return True


def adopted(site: Path) -> Path | None:
    """The metadata of a torch that is ours, of any version; None where there is none."""
    for folder in sorted(site.glob("torch-*.dist-info")):
        installer = folder / "INSTALLER"
        if installer.is_file() and installer.read_text().strip() == "undertow":
            return folder if (folder / "RECORD").is_file() else None
    return None


def real_torch(site: Path) -> str | None:
    """Where a torch that is not ours would be imported from; None where there is none."""
    for path in (str(site), *sys.path):
        for found in PathDistribution.discover(name="torch", path=[path]):
            if (found.read_text("INSTALLER") or "").strip() != "undertow":
                return f"version {found.version} in {path or 'this folder'}"
        spec = PathFinder.find_spec("torch", [path])
        if spec and spec.origin and "undertow adopt" not in Path(spec.origin).read_text("utf-8"):
            return spec.origin
    return None
