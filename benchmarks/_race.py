"""What the benchmarks share: interleaved timing, and a header that says on what it ran."""

from __future__ import annotations

import gc
import math
import platform
import time
from collections.abc import Callable
from typing import Any

import undertow as ut  # before NumPy, as in a user's program

import numpy as np  # isort: skip

BLOCK = 4  # consecutive runs of one runner, of which the first is not timed
LEAST = 3  # blocks of each runner, however long they take


def clock_for(threads: int) -> Callable[[], float]:
    """Seconds: with one thread the time that it had a processor, so others disturb it less."""
    return time.thread_time if threads == 1 else time.perf_counter


def race(
    runners: dict[str, Callable[[], Any] | tuple[Callable[[], Any], Callable[[Any], Any]]],
    repeat: int,
    seconds: float = math.inf,
    threads: int = 2,
) -> dict[str, float]:
    """The best time in seconds of each runner, interleaved in blocks.

    There are `repeat` timed runs of each, or fewer if they take longer than `seconds` in all.

    A runner is a function, or a pair (setup, function of what setup returned) of which only the
    function is timed. Threads of one library spin for a while after its kernels and slow down
    whoever comes next, so there is a pause between them, each runs a few times in a row, and its
    first run is dropped.
    """
    clock = clock_for(threads)
    best = dict.fromkeys(runners, float("inf"))
    gc.collect()
    begin = time.perf_counter()
    for turn in range(1 + repeat // (BLOCK - 1)):
        if turn >= LEAST and time.perf_counter() - begin > seconds:
            break
        for name, runner in runners.items():
            setup, run = runner if isinstance(runner, tuple) else (None, runner)
            time.sleep(0.03)  # until the other's threads have gone to sleep
            for number in range(BLOCK):
                made = setup() if setup is not None else None
                start = clock()
                if setup is None:
                    run()  # type: ignore[call-arg]
                else:
                    run(made)
                elapsed = clock() - start
                if number:
                    best[name] = min(best[name], elapsed)
    return best


def cpu_name() -> str:
    """The processor's own name for itself."""
    try:
        with open("/proc/cpuinfo") as info:
            for line in info:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def header(*rivals: Any, threads: int = 2) -> None:
    """Say on what the numbers were taken."""
    versions = ", ".join(f"{r.__name__} {r.__version__}" for r in rivals)
    print(f"# {cpu_name()}, Python {platform.python_version()}, NumPy {np.__version__}")
    what = "processor time of one thread" if threads == 1 else f"{threads} threads"
    print(f"# undertow {ut.__version__}, {versions}, {what}, interleaved, best of several")
