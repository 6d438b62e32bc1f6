"""Several processes beside torch's gloo in the same run: collectives, steps, faults, checkpoints.

    python benchmarks/distributed.py [collectives tcp steps hashes faults checkpoint] [--turns 5]

The two libraries take turns; each turn starts its processes, and the medians of all turns are
compared. torch's processes are started by torchrun, ours by our launcher, with one thread each.
`tcp` and the cut link need root, for network namespaces.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from _isa import options

sys.path.append(str(Path(__file__).parent.parent / "tests"))
import hosts

HEADER = """
import json, os, statistics, sys, time
ours = sys.argv[1] == "undertow"
if ours:
    import undertow as torch
    import undertow.distributed as dist
    from undertow.distributed.optim import ZeroRedundancyOptimizer
    from undertow.nn.parallel import DistributedDataParallel as DDP
else:
    import torch
    import torch.distributed as dist
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.nn.parallel import DistributedDataParallel as DDP
torch.set_num_threads(1)
dist.init_process_group("gloo")
me, n = dist.get_rank(), dist.get_world_size()


def timed(count, **functions):  # medians; the functions take turns
    found = {name: [] for name in functions}
    for i in range(count + 2):
        for name, function in functions.items():
            dist.barrier()
            begun = time.perf_counter()
            function()
            if i > 1:
                found[name].append(time.perf_counter() - begun)
    return {name: statistics.median(times) for name, times in found.items()}


def done(result):
    if me == 0:
        print("RESULT", json.dumps(result), flush=True)
    dist.barrier()
    dist.destroy_process_group()
"""

COLLECTIVES = """
few, many = torch.ones(1), torch.ones(10_000_000)
result = timed(300, few=lambda: dist.all_reduce(few)) | timed(8, many=lambda: dist.all_reduce(many))
done({f"all_reduce 4 B, {n} ranks": result["few"], f"all_reduce 40 MB, {n} ranks": result["many"]})
"""

STEPS = """
nn, result = torch.nn, {}


class Characters(nn.Module):
    def __init__(self, width=128, symbols=65):
        super().__init__()
        layer = lambda: nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, batch_first=True)
        self.symbols = nn.Embedding(symbols, width)
        self.layers = nn.ModuleList([layer() for _ in range(4)])
        self.head = nn.Linear(width, symbols)

    def forward(self, x):
        x = self.symbols(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x).flatten(0, 1)


def convolution(a, b, size):
    return nn.Conv1d(a, b, size, padding="same"), nn.BatchNorm1d(b), nn.ReLU()


torch.manual_seed(0)
mlp = nn.Sequential(
    nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
)
fcn = nn.Sequential(
    *convolution(1, 128, 8), *convolution(128, 256, 5), *convolution(256, 128, 3),
    nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(128, 10),
)
tasks = {
    "MLP 784": (mlp, torch.randn(64, 784), torch.randint(0, 10, (64,))),
    "characters": (
        Characters(), torch.randint(0, 65, (16, 64)), torch.randint(0, 65, (16 * 64,))
    ),
    "FCN": (fcn, torch.randn(16, 1, 150), torch.randint(0, 10, (16,))),
}
for name, (model, x, y) in tasks.items():
    ddp = DDP(model)
    plain = torch.optim.Adam(ddp.parameters(), lr=1e-4)
    zero = ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.Adam, lr=1e-4)

    def step(optimizer, ddp=ddp, x=x, y=y):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(ddp(x), y).backward()
        optimizer.step()

    found = timed(10, ddp=lambda: step(plain), zero=lambda: step(zero))
    result[f"DDP step, {name}"] = found["ddp"]
    result[f"ZeRO-1 beside DDP, {name}"] = found["zero"] / found["ddp"]
done(result)
"""

HASHES = """
import hashlib

torch.set_num_threads(int(sys.argv[2]))
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv1d(3, 16, 5, padding=2), torch.nn.BatchNorm1d(16), torch.nn.ReLU(),
    torch.nn.Flatten(), torch.nn.Dropout(0.3), torch.nn.Linear(320, 900), torch.nn.Tanh(),
    torch.nn.Linear(900, 4),
)
ddp = DDP(model, shards=8)
optimizer = torch.optim.Adam(ddp.parameters(), lr=1e-3)
g = torch.Generator().manual_seed(1)
x, y = torch.randn(64, 3, 20, generator=g), torch.randint(0, 4, (64,), generator=g)
rows = [i for i in range(64) if i % 8 // (8 // n) == me]
for _ in range(50):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(ddp(x[rows]), y[rows]).backward()
    optimizer.step()
whole = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
done({"hash": hashlib.sha256(whole).hexdigest()[:16]})
"""

FAULTS = """
import os, signal, sys, time
import undertow as ut
import undertow.distributed as dist

way, folder, limit = sys.argv[1:]
dist.init_process_group()
me, x = dist.get_rank(), ut.ones(100_000)


def note(name):
    with open(f"{folder}/{name}.part", "w") as file:
        file.write(str(time.time()))
    os.rename(f"{folder}/{name}.part", f"{folder}/{name}")


dist.barrier()
dist.group.WORLD.timeout = float(limit)
note(f"ready{me}")
begun = time.monotonic()
try:
    while True:
        if me == 1 and way != "cut" and time.monotonic() - begun > 0.5:
            note("struck")
            if way == "raised":
                raise ValueError
            if way == "exited":
                sys.exit(3)
            os.kill(os.getpid(), signal.SIGKILL if way == "killed" else signal.SIGSTOP)
        dist.all_reduce(x, label="weight")
except dist.DistributedError:
    note(f"told{me}")
    raise
"""

CHECKPOINT = """
import json, os, shutil, sys, time
import undertow as ut
import undertow.distributed as dist
from undertow.distributed import checkpoint

what, place = sys.argv[1:]
dist.init_process_group()
state = {f"w{i}": ut.full((1000, 1000), float(i)) for i in range(100)}
action = checkpoint.save if what == "save" else checkpoint.load
for first in (checkpoint.save, checkpoint.load):  # what is imported when it is first needed
    first({"x": ut.ones(1 << 20)}, checkpoint_id=place + "-first")
    dist.barrier()
begun = time.perf_counter()
action(state, checkpoint_id=place)
dist.barrier()
seconds = time.perf_counter() - begun
assert all((t == i).all() for i, t in enumerate(state.values()))
if dist.get_rank() == 0:
    print("RESULT", json.dumps({"seconds": seconds}), flush=True)
"""

SAFETENSORS = """
import json, os, sys, time
import torch
from safetensors.torch import load_file, save_file

what, place = sys.argv[1:]
torch.set_num_threads(1)
state = {f"w{i}": torch.full((1000, 1000), float(i)) for i in range(100)}
begun = time.perf_counter()
if what != "load":
    save_file(state, place)
    if what == "flush":
        with open(place, "rb+") as file:
            os.fsync(file.fileno())
else:
    for name, value in load_file(place).items():
        state[name].copy_(value)
print("RESULT", json.dumps({"seconds": time.perf_counter() - begun}), flush=True)
"""


class Turns:
    """Programs in a folder, and how they are started."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.count = folder, count

    def script(self, body: str) -> str:
        """The path of a program."""
        place = self.folder / "program.py"
        place.write_text(body)
        return str(place)

    def result(self, command: Sequence[str], more: Mapping[str, str] | None = None) -> dict:
        """What a program has measured."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "UNDERTOW_NUM_THREADS": "1"}
        done = subprocess.run(
            [*command],
            env=environment | dict(more or {}),
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        lines = [line for line in done.stdout.splitlines() if "RESULT" in line]
        if done.returncode or not lines:
            raise SystemExit(f"{command} failed:\n{done.stdout}\n{done.stderr}")
        found: dict = json.loads(lines[0].partition("RESULT ")[2])
        return found

    def processes(self, library: str, body: str, ranks: int, *words: object) -> dict:
        """What several processes of a library have measured."""
        module = "undertow.distributed.run" if library == "undertow" else "torch.distributed.run"
        start = [sys.executable, "-m", module, f"--nproc-per-node={ranks}"]
        return self.result([*start, self.script(body), *map(str, words)])

    def race(self, run: Callable[[str], dict]) -> dict[str, dict[str, float]]:
        """The medians of both libraries, which take turns."""
        times: dict[str, dict[str, list[float]]] = {}
        for turn in range(self.count):
            for library in ("undertow", "torch") if turn % 2 else ("torch", "undertow"):
                for task, value in run(library).items():
                    times.setdefault(task, {}).setdefault(library, []).append(value)
        return {
            task: {library: statistics.median(values) for library, values in both.items()}
            for task, both in times.items()
        }


def show(found: dict[str, dict[str, float]]) -> None:
    """A table of milliseconds and their ratio; ZeRO-1 is a ratio by itself."""
    for task, both in found.items():
        ours, theirs = both["undertow"], both["torch"]
        if task.startswith("ZeRO"):
            print(f"{task:34}{ours:10.2f}{theirs:10.2f}", flush=True)
        else:
            numbers = f"{ours * 1e3:10.3f}{theirs * 1e3:10.3f}{ours / theirs:8.2f}"
            print(f"{task:34}{numbers}", flush=True)


def collectives(turns: Turns) -> None:
    """On one machine, with 2 and 4 processes."""
    body = HEADER + COLLECTIVES
    for ranks in (2, 4):
        show(turns.race(lambda lib, n=ranks: turns.processes(lib, body, n, lib)))


def tcp(turns: Turns) -> None:
    """Between two network namespaces."""
    with hosts.two(turns.folder) as pair:

        def run(library: str) -> dict:
            script = turns.script(HEADER + COLLECTIVES)
            if library == "undertow":
                start = [sys.executable, "-m", "undertow.distributed.run", "-n", "1"]
                start += ["--hosts", ",".join(hosts.ADDRESSES), "--master-addr", hosts.ADDRESSES[0]]
                return turns.result(pair.inside(0, [*start, script, library]), pair.environment)
            about = {
                "MASTER_ADDR": hosts.ADDRESSES[0],
                "MASTER_PORT": "29511",
                "WORLD_SIZE": "2",
                "GLOO_SOCKET_IFNAME": "wire",
            }
            command = [sys.executable, script, library]
            other = subprocess.Popen(
                pair.inside(1, command), env={**os.environ, **about, "RANK": "1"}
            )
            found = turns.result(pair.inside(0, command), {**about, "RANK": "0"})
            other.wait()
            return found

        found = turns.race(run)
    show({task.replace("2 ranks", "TCP"): both for task, both in found.items()})


def steps(turns: Turns) -> None:
    """Training steps of two processes."""
    show(turns.race(lambda library: turns.processes(library, HEADER + STEPS, 2, library)))


def hashes(turns: Turns) -> None:
    """The weights after 50 steps, whatever the number of processes and threads."""
    for ranks in (1, 2, 4, 8):
        for threads in (1, 2):
            found = turns.processes("undertow", HEADER + HASHES, ranks, "undertow", threads)
            print(f"{ranks} ranks of {threads} threads: {found['hash']}", flush=True)


def faults(turns: Turns) -> None:
    """Seconds from a fault of rank 1 to the error of rank 0."""
    for way in ("killed", "raised", "exited", "stopped", "cut"):
        times = []
        for _ in range(turns.count):
            with tempfile.TemporaryDirectory() as folder:
                times.append(_fault(turns, way, Path(folder)))
        after = {"stopped": ", of which the deadline is 3", "cut": ", of which silence is 6"}
        spread = f"{statistics.median(times):.2f} s, at most {max(times):.2f}{after.get(way, '')}"
        print(f"{way:10}{spread}", flush=True)


def _fault(turns: Turns, way: str, folder: Path) -> float:
    command = [sys.executable, "-m", "undertow.distributed.run"]
    words = [turns.script(FAULTS), way, str(folder), "3" if way == "stopped" else "100"]
    environment = {**os.environ, "UNDERTOW_SILENCE": "6"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if way != "cut":
        subprocess.run([*command, "-n", "2", *words], env=environment, check=False, **quiet)
        struck = float((folder / "struck").read_text())
    else:
        with hosts.two(turns.folder) as pair:
            where = ["--hosts", ",".join(hosts.ADDRESSES), "--master-addr", hosts.ADDRESSES[0]]
            started = subprocess.Popen(
                pair.inside(0, [*command, "-n", "1", *where, *words]),
                env=environment | pair.environment,
                **quiet,
            )
            while not all((folder / f"ready{rank}").exists() for rank in (0, 1)):
                time.sleep(0.05)
            struck = time.time()
            pair.cut()
            started.wait()
    return float((folder / "told0").read_text()) - struck


def checkpoint(turns: Turns) -> None:
    """400 MB of 2 processes, read by 1 and by 4, beside one file of safetensors."""
    times: dict[str, list[float]] = {}
    place, file = turns.folder / "checkpoint", turns.folder / "one.safetensors"
    for _ in range(turns.count):
        alone = turns.script(SAFETENSORS)
        for what in ("save", "flush", "load"):
            found = turns.result([sys.executable, alone, what, str(file)])
            times.setdefault(f"safetensors, {what}", []).append(found["seconds"])
        for what, ranks in (("save", 2), ("load", 1), ("load", 4)):
            found = turns.processes("undertow", CHECKPOINT, ranks, what, place)
            times.setdefault(f"{what}, {ranks} ranks", []).append(found["seconds"])
    for task, values in times.items():
        print(f"{task:24}{statistics.median(values):8.3f} s", flush=True)


SECTIONS = (collectives, tcp, steps, hashes, faults, checkpoint)


def main() -> None:
    asked = options(__doc__)
    names = [section.__name__ for section in SECTIONS]
    asked.add_argument("sections", nargs="*", help=f"of {', '.join(names)}; all if none is given")
    asked.add_argument("--turns", type=int, default=5)
    given = asked.parse_args()
    print(f"{'':34}{'undertow':>10}{'torch':>10}{'ratio':>8}   milliseconds", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for section in SECTIONS:
            if not given.sections or section.__name__ in given.sections:
                section(Turns(Path(folder), given.turns))


if __name__ == "__main__":
    main()
