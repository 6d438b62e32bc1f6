"""Training against torch: whole steps, optimisers, recurrent networks, loading, files, memory.

    python benchmarks/training.py [NAME...] [--quick] [--threads N] [--json FILE] [--isa avx2]

NAME is a pattern or a part of the names; `--list` lists them. The same program runs in both
libraries, with the same weights and data; their losses are compared before they are timed.
"first step" is a new process: making the model, and one step, with an empty cache of kernels and
with a full one. "memory" is the peak of a process that trains the FCN for an epoch, interpreter and
libraries included. Files are raced with the safetensors package and NumPy.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from fnmatch import fnmatch
from typing import Any

from _race import agree, finish, header, mark, parser, problem, race, summary
from workloads import Workload
from workloads.files import FILES
from workloads.optimisers import OPTIMISERS
from workloads.recurrent import RECURRENT
from workloads.steps import STEPS

import undertow as ut

REPEAT, SECONDS = 24, 20.0
WORKLOADS = (*STEPS, *RECURRENT, *OPTIMISERS, *FILES)
PROCESSES = {  # what is measured in processes of its own: bar and aim
    "DataLoader, 2 workers, 32 x 3x224x224": (1.0, 0.7),
    "memory, FCN on OSULeaf, whole process": (0.5, 0.4),
    "first step of the MLP, cold cache": (float("inf"), 1.0),
    "first step of the MLP, warm cache": (float("inf"), 1.0),
}
ONE = """
import json, re, sys, time
begin = time.perf_counter()
import {library} as module
module.set_num_threads({threads})
sys.path.insert(0, {folder!r})
from workloads.steps import STEPS
run = next(w for w in STEPS if w.name.startswith({name!r})).make(module)
run()
seconds = time.perf_counter() - begin
for _ in range({more}):
    run()
peak = 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
print(json.dumps({{"seconds": seconds, "bytes": peak}}))
"""


def matches(name: str, asked: list[str]) -> bool:
    """Whether a name is asked for."""
    return not asked or any(fnmatch(name, a) or a in name for a in asked)


def timed(workload: Workload, torch: Any, quick: bool, threads: int) -> dict[str, Any]:
    """One row of the table."""
    row: dict[str, Any] = {"name": workload.name, "bar": workload.bar, "aim": workload.aim}
    try:
        ours, theirs = (workload.make(module) for module in (ut, torch))
        agree(ours(), theirs())  # type: ignore[operator]
    except Exception as error:
        return row | problem(error)
    share = 0.25 if quick else 1.0
    times = race({"ours": ours, "torch": theirs}, int(REPEAT * share), SECONDS * share, threads)
    return row | compared(workload.bar, workload.aim, times["ours"], times["torch"])


def compared(bar: float, aim: float, ours: float, theirs: float) -> dict[str, Any]:
    """The figures of a row, from seconds or bytes."""
    ratio = ours / theirs
    return {"ours": ours, "torch": theirs, "ratio": ratio, "mark": mark(ratio, bar, aim)}


def alone(library: str, name: str, threads: int, more: int = 0, cache: str = "") -> dict[str, Any]:
    """The figures of a process that runs a step of a workload, and so many more."""
    folder = os.path.dirname(os.path.abspath(__file__))
    script = ONE.format(library=library, name=name, threads=threads, more=more, folder=folder)
    env = os.environ | ({"UNDERTOW_CACHE_DIR": cache} if cache else {})
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=env
    )
    return json.loads(done.stdout)


def in_processes(name: str, torch: Any, quick: bool, threads: int) -> dict[str, Any]:
    """A row that is measured in processes of its own."""
    bar, aim = PROCESSES[name]
    row: dict[str, Any] = {"name": name, "bar": bar, "aim": aim}
    try:
        if name.startswith("DataLoader"):
            from workloads.loading import race as loaded

            found = loaded(torch, repeat=3 if quick else 7)
            return row | compared(bar, aim, found["undertow"], found["torch"])
        if name.startswith("memory"):
            ours, theirs = (alone(lib, "FCN", threads, 1) for lib in ("undertow", "torch"))
            return row | compared(bar, aim, ours["bytes"], theirs["bytes"])
        best = {"undertow": float("inf"), "torch": float("inf")}
        with tempfile.TemporaryDirectory() as warm:
            for turn in range(2 if quick else 4):
                for library in best:
                    with tempfile.TemporaryDirectory() as cold:
                        cache = cold if "cold" in name else warm
                        seconds = alone(library, "MLP", threads, cache=cache)["seconds"]
                    if turn or "cold" in name:  # the first fills the cache
                        best[library] = min(best[library], seconds)
        return row | compared(bar, aim, best["undertow"], best["torch"])
    except Exception as error:
        return row | problem(error)


def show(row: dict[str, Any]) -> None:
    """Print a row."""
    if "problem" in row:
        print(f"{row['name']:<44} {row['problem']}", flush=True)
        return
    scale = 1e6 if row["name"].startswith("memory") else 1e-3
    print(
        f"{row['name']:<44} {row['ours'] / scale:>9.2f} {row['torch'] / scale:>9.2f} "
        f"{row['ratio']:>6.2f} {row['bar']:>5.2f} {row['aim']:>5.2f}  {row['mark']}",
        flush=True,
    )


def main() -> None:
    """Race what the command line asks for."""
    asked = parser(__doc__).parse_args()
    names = [*(w.name for w in WORKLOADS), *PROCESSES]
    if asked.list:
        print(*names, sep="\n")
        return
    import torch

    torch.set_num_threads(asked.threads)
    ut.set_num_threads(asked.threads)
    header(torch, threads=asked.threads)
    columns = f"{'ours':>9} {'torch':>9} {'ratio':>6} {'bar':>5} {'aim':>5}"
    print(f"\n{'workload (ms, or MB)':<44} {columns}")
    rows = []
    for name in PROCESSES:  # first, while this process is small
        if matches(name, asked.names):
            rows.append(in_processes(name, torch, asked.quick, asked.threads))
            show(rows[-1])
    for workload in WORKLOADS:
        if matches(workload.name, asked.names):
            rows.append(timed(workload, torch, asked.quick, asked.threads))
            show(rows[-1])
    summary(rows)
    finish(asked.json, rows)


if __name__ == "__main__":
    main()
