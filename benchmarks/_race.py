"""What the benchmarks share: interleaved timing, and a header that says on what it ran."""

from __future__ import annotations

import gc
import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import undertow as ut


def race(
    runners: dict[str, Callable[[], Any] | tuple[Callable[[], Any], Callable[[Any], Any]]],
    repeat: int,
) -> dict[str, float]:
    """The best time in seconds of each runner, all interleaved.

    A runner is a function, or a pair (setup, function of what setup returned) of which only the
    function is timed. The first two rounds are warm-up.
    """
    best = dict.fromkeys(runners, float("inf"))
    gc.collect()
    for round_number in range(repeat + 2):
        for name, runner in runners.items():
            setup, run = runner if isinstance(runner, tuple) else (None, runner)
            made = setup() if setup is not None else None
            start = time.perf_counter()
            if setup is None:
                run()  # type: ignore[call-arg]
            else:
                run(made)
            elapsed = time.perf_counter() - start
            if round_number >= 2:
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


def header(*rivals: Any) -> None:
    """Say on what the numbers were taken."""
    versions = ", ".join(f"{r.__name__} {r.__version__}" for r in rivals)
    print(f"# {cpu_name()}, Python {platform.python_version()}, NumPy {np.__version__}")
    print(f"# undertow {ut.__version__}, {versions}, 2 threads, interleaved, best of several")
