"""Programs of several real processes, for the tests of `undertow.distributed`."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import undertow as ut

SOURCE = Path(ut.__file__).parent.parent
needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None,
    reason="mpi4py is not installed: pip install undertow[mpi]",
)

HEADER = """
import os, signal, sys, time
import numpy as np
import undertow as ut
import undertow.distributed as dist


def print(*values, flush=True):
    # A whole line at once: with PYTHONUNBUFFERED, Python's own writes word by word, and words of
    # several processes mix.
    sys.stdout.write(" ".join(map(str, values)) + "\\n")
    sys.stdout.flush()


"""


def started(
    folder: Path,
    count: int,
    body: str,
    *args: object,
    options: tuple[str, ...] = (),
    grace: float = 3,
    wrap: Callable[[list[str]], list[str]] = list,
    environment: Mapping[str, str] = {},
) -> subprocess.Popen[str]:
    """A program, started so many times by the launcher; after a failure the rest has `grace`."""
    script = folder / "program.py"
    script.write_text(HEADER + textwrap.dedent(body))
    words = [*options, "-n", str(count), str(script), *map(str, args)]
    known = {k: v for k, v in os.environ.items() if not k.startswith(("UNDERTOW_NUM", "OMP_"))}
    path = os.pathsep.join([str(SOURCE), str(Path(__file__).parent)])
    return subprocess.Popen(
        wrap([sys.executable, "-m", "undertow.distributed.run", *words]),
        env={**known, "PYTHONPATH": path, "UNDERTOW_GRACE": str(grace), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str], expect: int | None = 0, limit: float = 240) -> str:
    """What a program printed; it must end in time, and with the code that was expected."""
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.terminate()
        out, err = process.communicate()
        raise AssertionError(f"hung after {limit} s:\n{out}\n{err}") from None
    if expect is None:
        assert process.returncode != 0, f"{out}\n{err}"
    else:
        assert process.returncode == expect, f"code {process.returncode}\n{out}\n{err}"
    return out + err


def run(
    folder: Path, count: int, body: str, *args: object, expect: int | None = 0, grace: float = 3
) -> str:
    """What a program printed that ran in so many processes."""
    return finished(started(folder, count, body, *args, grace=grace), expect)
