"""What a profiler costs: training steps without it, after it, with it, and with all that it can do.

    python benchmarks/profiler.py [--turns N] [--isa avx2]

Prints the processor time of a step on one thread, interleaved in blocks, best of several: before
a profiler was ever on in the process ("never"), between profiles ("off"), inside of
`ut.profiler.profile()` ("on"), and with shapes, memory, FLOPs and modules besides ("all").
The steps are those of the demo (the FCN classifier of series, batch 16), of a small MLP, and a
chain of ten tiny multiplications, which is nothing but overhead.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from _isa import options
from _race import header

import undertow as ut

BLOCK = 6  # steps in a row, of which the first is not timed


def _steps(model: Any, x: Any, y: Any) -> Callable[[], None]:
    optimizer = ut.optim.Adam(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        ut.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def _fcn() -> Callable[[], None]:
    from undertow.models import FCN

    return _steps(FCN(1, 6), ut.randn(16, 1, 427), ut.randint(0, 6, (16,)))


def _mlp() -> Callable[[], None]:
    nn = ut.nn
    model = nn.Sequential(
        nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 4)
    )
    return _steps(model, ut.randn(32, 64), ut.randint(0, 4, (32,)))


def _chain() -> Callable[[], None]:
    x = ut.ones(4, 4)

    def run() -> None:
        for _ in range(100):
            y = x
            for _ in range(10):
                y = y * x

    return run


WORKLOADS = {
    "FCN, batch 16 (the demo)": _fcn,
    "MLP 64-64-64-4": _mlp,
    "1000 multiplications 4x4": _chain,
}
MODES: dict[str, Callable[[], Any]] = {
    "off": nullcontext,
    "on": ut.profiler.profile,
    "all": lambda: ut.profiler.profile(
        record_shapes=True, profile_memory=True, with_flops=True, with_modules=True
    ),
}


def block(run: Callable[[], None], mode: Callable[[], Any]) -> float:
    """The best time of a step, in seconds."""
    best = float("inf")
    with mode():
        run()
        for _ in range(BLOCK - 1):
            begin = time.thread_time()
            run()
            best = min(best, time.thread_time() - begin)
    return best


def main() -> None:
    """Print a row for each workload."""
    parser = options(__doc__)
    parser.add_argument("--turns", type=int, default=8)
    turns = parser.parse_args().turns
    ut.set_num_threads(1)
    header(threads=1)
    made = {name: make() for name, make in WORKLOADS.items()}
    never = {name: min(block(run, nullcontext) for _ in range(turns)) for name, run in made.items()}
    print(f"{'':28}{'never':>10}{'off':>10}{'on':>10}{'all':>10}   off/never  on/off  all/off")
    for name, run in made.items():
        best = dict.fromkeys(MODES, float("inf"))
        for _ in range(turns):
            for mode, make in MODES.items():
                best[mode] = min(best[mode], block(run, make))
        times = [never[name], *best.values()]
        shown = "".join(f"{1e3 * t:8.3f}ms" for t in times)
        off = best["off"]
        ratios = f"{off / never[name]:12.3f}{best['on'] / off:8.3f}{best['all'] / off:9.3f}"
        print(f"{name:28}{shown}{ratios}", flush=True)


if __name__ == "__main__":
    main()
