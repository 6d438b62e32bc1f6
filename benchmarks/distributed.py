"""Collectives and training steps of several processes, beside torch's gloo in the same run.

    python benchmarks/distributed.py [--ranks 2] [--quick]

The two libraries take turns; each turn starts its processes, and the medians of all turns are
compared. torch's processes are started by torchrun, ours by our launcher; one thread each.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from _isa import options

PROGRAM = """
import json, os, statistics, sys, time
ours = sys.argv[1] == "undertow"
if ours:
    import undertow as torch
    import undertow.distributed as dist
    from undertow.nn.parallel import DistributedDataParallel as DDP
else:
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP
repeats = int(sys.argv[2])
torch.set_num_threads(1)
dist.init_process_group("gloo")
me, n = dist.get_rank(), dist.get_world_size()


def timed(function, count):
    for _ in range(2):
        function()
    found = []
    for _ in range(count):
        dist.barrier()
        begun = time.perf_counter()
        function()
        found.append(time.perf_counter() - begun)
    return statistics.median(found)


result = {}
sizes = (("all_reduce 4 B", 1, 20 * repeats), ("all_reduce 40 MB", 10_000_000, repeats))
for name, size, count in sizes:
    x = torch.ones(size)

    def reduce(x=x):
        dist.all_reduce(x)

    result[name] = timed(reduce, count)

torch.manual_seed(0)
mlp = torch.nn.Sequential(
    torch.nn.Linear(784, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.ReLU(),
    torch.nn.Linear(1024, 10),
)
fcn = torch.nn.Sequential(
    torch.nn.Conv1d(1, 128, 8, padding="same"), torch.nn.BatchNorm1d(128), torch.nn.ReLU(),
    torch.nn.Conv1d(128, 256, 5, padding="same"), torch.nn.BatchNorm1d(256), torch.nn.ReLU(),
    torch.nn.Conv1d(256, 128, 3, padding="same"), torch.nn.BatchNorm1d(128), torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool1d(1), torch.nn.Flatten(), torch.nn.Linear(128, 10),
)
inputs = {"DDP step, MLP 784": (mlp, (64, 784)), "DDP step, FCN": (fcn, (16, 1, 150))}
for name, (model, shape) in inputs.items():
    ddp = DDP(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    x, y = torch.randn(*shape), torch.randint(0, 10, (shape[0],))

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(ddp(x), y).backward()
        optimizer.step()

    result[name] = timed(step, repeats)
if me == 0:
    print("RESULT", json.dumps(result), flush=True)
dist.barrier()
dist.destroy_process_group()
"""


def measured(library: str, script: Path, ranks: int, repeats: int) -> dict[str, float]:
    """Seconds of each task, of one start of the processes."""
    module = "undertow.distributed.run" if library == "undertow" else "torch.distributed.run"
    command = [sys.executable, "-m", module, f"--nproc-per-node={ranks}", str(script)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "UNDERTOW_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, library, str(repeats)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if "RESULT" in line]
    if done.returncode or not lines:
        raise SystemExit(f"{library} failed:\n{done.stdout}\n{done.stderr}")
    found: dict[str, float] = json.loads(lines[0].partition("RESULT ")[2])
    return found


def main() -> None:
    asked = options(__doc__)
    asked.add_argument("--ranks", type=int, default=2)
    asked.add_argument("--turns", type=int, default=5)
    asked.add_argument("--quick", action="store_true")
    given = asked.parse_args()
    turns, repeats = (2, 5) if given.quick else (given.turns, 20)
    times: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "program.py")
        script.write_text(PROGRAM)
        for turn in range(turns):
            for library in ("undertow", "torch") if turn % 2 else ("torch", "undertow"):
                for task, seconds in measured(library, script, given.ranks, repeats).items():
                    times.setdefault(task, {}).setdefault(library, []).append(seconds)
    print(f"{given.ranks} ranks of one thread, medians of {turns} turns, milliseconds")
    print(f"{'task':24}{'undertow':>10}{'torch':>10}{'ratio':>8}")
    for task, both in times.items():
        ours, theirs = (statistics.median(both[name]) * 1e3 for name in ("undertow", "torch"))
        print(f"{task:24}{ours:10.3f}{theirs:10.3f}{ours / theirs:8.2f}")


if __name__ == "__main__":
    main()
