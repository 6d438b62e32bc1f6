"""Models of well-known libraries, unmodified, on undertow and on torch: a step of each.

    python benchmarks/ecosystem.py [NAME …] [--quick] [--threads N] [--json FILE] [--list]
        [--ours PYTHON] [--theirs PYTHON]

It needs `transformers`, `timm`, `torchvision` and `torch_geometric` beside undertow, and torch for
the comparison; a workload whose library is missing says so. By default both run in this Python.
If they live in environments of their own (the libraries without torch and undertow in one, torch
in another), `--ours` and `--theirs` name their interpreters.

Every workload has two processes, one for each library, which take turns in blocks, so that the one
that waits sleeps; best of several. With one thread it is processor time, which others on the
machine disturb less. Both begin with the same weights, and the losses of the first batch are
compared. "import" is that of a model class of transformers in a new process.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from _race import WrongResult, finish, header, mark, parser, problem, summary
from workloads import libraries

SCRIPT = Path(libraries.__file__)
BARS = dict.fromkeys(libraries.WORKLOADS, (1.2, 1.0)) | {"import": (0.5, 0.4)}
BARS |= dict.fromkeys(("generation", "small_cnn"), (1.0, 0.9))
IMPORT = """import sys, time
assert "numpy" not in sys.modules
clock = time.{clock}
start = clock()
from transformers import BertModel
print(clock() - start)
"""
NEAR = 1e-3  # relative; losses of models of many layers
TURNS, QUICK = 8, 3


class Runner:
    """A process that runs a workload with one of the libraries."""

    def __init__(self, command: list[str], name: str, threads: int) -> None:
        self.process = subprocess.Popen(
            [*command, str(SCRIPT), name, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.told = self.answer()

    def answer(self) -> dict[str, Any]:
        """The next line that it writes."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):  # else a library has something to say
                found: dict[str, Any] = json.loads(line)
                return found
        assert self.process.stderr is not None
        said = self.process.stderr.read().strip().splitlines() or ["nothing"]
        raise RuntimeError(f"the process ended, saying {said[-1]}")

    def block(self) -> float:
        """The best of a block of runs, in seconds."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.answer()["seconds"])

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def raced(name: str, commands: dict[str, list[str]], threads: int, turns: int) -> dict[str, float]:
    """The best time of each library."""
    if name == "import":
        return imported(commands, threads, turns)
    runners: dict[str, Runner] = {}
    try:
        for library, command in commands.items():
            runners[library] = Runner(command, name, threads)
        ours, theirs = (runners[library].told["loss"] for library in commands)
        if not math.isclose(ours, theirs, rel_tol=NEAR):
            raise WrongResult(f"a loss of {ours}, torch's is {theirs}")
        best = dict.fromkeys(commands, math.inf)
        for _ in range(turns):
            for library, runner in runners.items():
                best[library] = min(best[library], runner.block())
        return best
    finally:
        for runner in runners.values():
            runner.close()


def imported(commands: dict[str, list[str]], threads: int, turns: int) -> dict[str, float]:
    """The time of the import of a model class in a new process, torch's or ours with it."""
    best = dict.fromkeys(commands, math.inf)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "imports.py")
        script.write_text(IMPORT.format(clock="process_time" if threads == 1 else "perf_counter"))
        for _ in range(turns):
            for library, command in commands.items():
                given = [*command, str(script)]
                said = subprocess.run(given, check=True, capture_output=True, text=True).stdout
                best[library] = min(best[library], float(said.split()[-1]))
    return best


def main() -> None:
    """Race the workloads."""
    options = parser(__doc__)
    options.add_argument("--ours", default=sys.executable, help="Python with the libraries")
    options.add_argument("--theirs", default=sys.executable, help="Python with torch as well")
    asked = options.parse_args()
    names = [
        n for n in BARS if not asked.names or any(fnmatch(n, a) or a in n for a in asked.names)
    ]
    if asked.list:
        for name in names:
            print(f"{name:<14} {(libraries.WORKLOADS[name].__doc__ if name != 'import' else '')}")
        return
    commands = {"ours": [asked.ours, "-m", "undertow", "run"], "torch": [asked.theirs]}
    header(threads=asked.threads)
    print(f"{'a step':<14} {'undertow ms':>12} {'torch ms':>10} {'ratio':>6} {'bar':>5} {'aim':>5}")
    rows: list[dict[str, Any]] = []
    for name in names:
        bar, aim = BARS[name]
        row: dict[str, Any] = {"name": name, "bar": bar, "aim": aim}
        rows.append(row)
        try:
            best = raced(name, commands, asked.threads, QUICK if asked.quick else TURNS)
        except Exception as error:  # the others are still of interest
            row |= problem(error)
            print(f"{name:<14} {row['problem']}", flush=True)
            continue
        ratio = best["ours"] / best["torch"]
        row |= {**best, "ratio": ratio, "mark": mark(ratio, bar, aim)}
        ours, theirs = (1e3 * best[library] for library in ("ours", "torch"))
        print(
            f"{name:<14} {ours:>12.1f} {theirs:>10.1f} {ratio:>6.2f} {bar:>5.2f} {aim:>5.2f}"
            f"  {row['mark']}",
            flush=True,
        )
    summary(rows)
    finish(asked.json, rows, threads=asked.threads)


if __name__ == "__main__":
    main()
