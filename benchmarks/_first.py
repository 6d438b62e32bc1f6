"""The first run of a workload in a process: compiling its kernels, or finding them on disk.

    python benchmarks/_first.py NAME THREADS

prints one line of JSON: seconds of starting up, of the first run and of a later run, and how many
kernels the first one loaded. Before the clock starts, undertow, its `nn` and llvmlite are imported,
the inputs are made, and one small kernel has started threads and compiler (`start`). What counts is
what the first run takes beyond a later one: making, compiling or loading all its kernels, and the
imports of undertow's own modules that it is the first to need. The computation itself, which may
take longer than that, is shown beside it. With one thread, processor time counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from workloads import CONVOLUTION, WORKLOADS, Workload

COLD, CACHED = 0.5, 0.02  # seconds that a first run may take beyond a later one
LATER = 5  # runs of which the best is the later one
TIMEOUT = 600


def first(name: str, folder: str, threads: int) -> dict[str, float]:
    """A process's figures, with the cache on disk in a folder."""
    env = os.environ | {
        "UNDERTOW_DEBUG": "",
        "UNDERTOW_CHECK_IR": "",
        "UNDERTOW_CACHE": "1",
        "UNDERTOW_CACHE_DIR": folder,
        "PYTHONDONTWRITEBYTECODE": "",
    }
    command = [sys.executable, os.path.abspath(__file__), name, str(threads)]
    found = subprocess.run(
        command, env=env, stdout=subprocess.PIPE, text=True, check=True, timeout=TIMEOUT
    )
    return json.loads(found.stdout)


def compare(
    workloads: Sequence[Workload], threads: int = 2, repeat: int = 3
) -> list[dict[str, Any]]:
    """Time first runs, from an empty cache and from a full one, print and return them as rows."""
    width = max((len(w.name) for w in workloads), default=0)
    what = "processor ms of one thread" if threads == 1 else f"ms, {threads} threads"
    print(
        f"first run of a process in {what}: beyond a later run, and in all\n"
        "not counted: imports of undertow and llvmlite, making the inputs, and `start`, a small "
        "kernel that brings up threads and compiler\n"
        f"bars: {1e3 * COLD:.0f} ms where kernels are compiled, "
        f"{1e3 * CACHED:.0f} ms where they come from the disk"
    )
    print(
        f"{'workload':<{width}} {'kernels':>7} {'compiled':>9} {'in all':>8} {'cached':>8} "
        f"{'in all':>8} {'later':>8} {'start':>8}"
    )
    rows = []
    for w in workloads:
        with tempfile.TemporaryDirectory() as folder:
            runs = [first(w.name, folder, threads) for _ in range(1 + repeat)]
        cold, cached = runs[0], min(runs[1:], key=lambda r: r["first"] - r["later"])
        beyond = [r["first"] - r["later"] for r in (cold, cached)]
        met = beyond[0] <= COLD and beyond[1] <= CACHED
        row = {"name": w.name, "cold": cold, "cached": cached, "mark": "ok" if met else "MISSED"}
        rows.append(row)
        print(
            f"{w.name:<{width}} {cold['kernels']:>7} {1e3 * beyond[0]:>9.1f} "
            f"{1e3 * cold['first']:>8.1f} {1e3 * beyond[1]:>8.1f} {1e3 * cached['first']:>8.1f} "
            f"{1e3 * cached['later']:>8.1f} {1e3 * cached['start']:>8.1f}  {row['mark']}",
            flush=True,
        )
    return rows


def _timed(function: Any, threads: int) -> float:
    clock = time.process_time if threads == 1 else time.perf_counter
    begin = clock()
    function()
    return clock() - begin


def main() -> None:
    """Time one workload in this process."""
    import llvmlite.binding  # noqa: F401

    import undertow as ut
    import undertow.nn  # which `import undertow` puts off
    from undertow.backends.cpu.codegen import jit

    name, threads = sys.argv[1], int(sys.argv[2])
    ut.set_num_threads(threads)
    workload = next(w for w in (*WORKLOADS, *CONVOLUTION) if w.name == name)
    run = workload.whole(ut)
    x = ut.ones(1 << 20)
    start = _timed(lambda: ut.relu(x), threads)
    before = len(jit._loaded)
    took = _timed(run, threads)
    kernels = len(jit._loaded) - before
    later = min(_timed(run, threads) for _ in range(LATER))
    print(json.dumps({"start": start, "first": took, "later": later, "kernels": kernels}))


if __name__ == "__main__":
    main()
