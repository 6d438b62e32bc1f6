"""What WebGPU costs beside the kernels themselves: Python per op, submissions, what is created.

    python benchmarks/webgpu.py [--device webgpu] [--steps 5] [--json FILE]

The step is that of `make demo`: the FCN of 265 thousand parameters, Adam, batches of five series of
length 150. Without a GPU it runs on a Vulkan driver in software, whose speed says nothing about
that of GPUs, so only costs of ours are measured: times are those of the thread that records.
"""

from __future__ import annotations

import gc
import json
import time
from collections import Counter
from typing import Any

from _isa import options

import undertow as ut
import undertow.nn.functional as F
from undertow.backends.base import Backend
from undertow.backends.registry import backend_on
from undertow.core.fused import Prepared

RECORDED = 400  # adds that are timed at once; fewer than a batch
QUIET = [
    "as_strided",
    "reshape",
    "permute",
    "expand",
    "slice",
    "part",
    "bits",
    "storage_offset",
    "storage_size",
    "contiguous",
    "writable",
    "memory",
    "owned",
    "address",
    "prepare",
    "begin",
    "end",
    "run",
    "table",
    "within",
    "empty",
    "require",
    "from_host",
    "to_host",
    "transposed",
    "direct",
]


def recorded_add(device: str) -> float:
    """Seconds of Python for `x + x`, recorded and not yet sent."""
    x = ut.ones(1000, device=device)
    best = 1.0
    for _ in range(30):
        begun = time.thread_time()
        for _ in range(RECORDED):
            x + x
        best = min(best, (time.thread_time() - begun) / RECORDED)
        ut.webgpu.synchronize(device)
    return best


class Step:
    """A step of the demo's training."""

    def __init__(self, device: str) -> None:
        ut.manual_seed(0)
        self.model = ut.models.FCN(1, 2).to(device)
        self.optimizer = ut.optim.Adam(self.model.parameters(), 1e-3)
        self.x = ut.randn(5, 1, 150).to(device)
        self.y = ut.randint(0, 2, (5,)).to(device)

    def __call__(self) -> ut.Tensor:
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        return loss


def steps(device: str, count: int) -> list[dict[str, int]]:
    """What each of some steps has counted; the loss is read but for the last one's."""
    step = Step(device)
    found = []
    for i in range(count):
        before = ut.webgpu.stats(device)
        if i < count - 1:
            step().item()
        else:
            step()
            ut.webgpu.synchronize(device)
        after = ut.webgpu.stats(device)
        found.append({name: after[name] - before[name] for name in after})
    return found


def kernels_on_cpu() -> int:
    """How many kernels a step runs on the CPU: forms, and expressions that were prepared.

    Called before anything else, since functions keep what the CPU computes without its backend.
    """
    backend = backend_on("cpu")
    vars(backend)["direct"] = lambda *asked: None
    step = Step("cpu")
    step()
    prepared = [p for p in gc.get_objects() if isinstance(p, Prepared) and backend in p.made]
    kept = [(p, p.run, p.made[backend]) for p in prepared]
    counts: Counter[str] = Counter()
    names = [n for n in dir(Backend) if not n.startswith("_") and callable(getattr(Backend, n))]
    inside = [0]

    def counting(name: str, form: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            counts[name] += not inside[0]
            inside[0] += 1
            try:
                return form(*args, **kwargs)
            finally:
                inside[0] -= 1

        return call

    for name in set(names) - set(QUIET):
        setattr(backend, name, counting(name, getattr(backend, name)))
    for p, run, made in kept:
        p.made[backend] = counting("prepared", made)
        p.run = p.made[backend] if run is made else run
    try:
        step()
    finally:
        for p, run, made in kept:
            p.run, p.made[backend] = run, made
        for name in (*names, "direct"):
            vars(backend).pop(name, None)
    return counts.total()


def main() -> None:
    parser = options(__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--device", default="webgpu")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--json", help="write the figures to this file, too")
    asked = parser.parse_args()
    if not ut.webgpu.is_available():
        print("skipped: there is no WebGPU adapter here (see docs/webgpu.md)")
        return
    adapter = ut.webgpu.devices()[ut.device(asked.device).index or 0]
    print(f"{adapter.name}, {adapter.kind}, {adapter.api}, {adapter.driver}")
    kernels = kernels_on_cpu()
    each = recorded_add(asked.device)
    counted = steps(asked.device, asked.steps)
    last = counted[-1]
    created = [s["buffers"] + s["bind_groups"] + s["pipelines"] for s in counted]
    bound = last["launches"] // 64 + 2
    figures = {
        "Python per recorded add, us": (round(1e6 * each, 1), "15", "8"),
        "dispatches of a step": (last["launches"], "", ""),
        "kernels of a step on the CPU": (kernels, "", ""),
        "dispatches beside kernels": (round(last["launches"] / kernels, 2), "", "1.2"),
        "submissions of a step": (last["submissions"], str(bound), "1"),
        "read-backs of a step": (last["readbacks"], "0", "0"),
        "created from the third step on": (sum(created[2:-1]), "0", "0"),
        "forms on the host": (sum(s["host"] for s in counted), "0", "0"),
    }
    print(f"{'':34}{'found':>9}{'bar':>7}{'aim':>6}")
    for name, (found, bar, aim) in figures.items():
        print(f"{name:34}{found:>9}{bar:>7}{aim:>6}")
    print(f"created in each step: {created}")
    if asked.json:
        with open(asked.json, "w") as file:
            json.dump({name: value[0] for name, value in figures.items()}, file, indent=1)


if __name__ == "__main__":
    main()
