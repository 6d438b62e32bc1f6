"""What the benchmarks share: comparing results, interleaved timing, and saying how it went."""

from __future__ import annotations

import argparse
import gc
import json
import math
import platform
import time
from collections.abc import Callable
from typing import Any

from _isa import limit, options

import undertow as ut  # before NumPy, as in a user's program

import numpy as np  # isort: skip

BLOCK = 4  # consecutive runs of one runner, of which the first is not timed
LEAST = 3  # blocks of each runner, however long they take
AMPLIFIED = 8  # units of rounding, times a condition number
TOLERANCE = {"float32": 3e-5, "float64": 1e-12, "complex64": 3e-5, "complex128": 1e-12}


class WrongResult(Exception):
    """The two libraries do not agree."""


def agree(ours: Any, theirs: Any, rival: str = "torch", condition: Any = None) -> None:
    """Raise WrongResult if the results of the libraries differ by more than rounding.

    With a condition number for each matrix of a batch, or one for all, by AMPLIFIED times that.
    """
    if len(ours) != len(theirs):
        raise WrongResult(f"{len(ours)} results, {rival} has {len(theirs)}")
    for i, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        a, b = np.asarray(mine), np.asarray(other)
        if a.shape != b.shape or a.dtype != b.dtype:
            raise WrongResult(f"result {i} is {a.dtype}{a.shape}, {rival}'s {b.dtype}{b.shape}")
        if not np.isfinite(b).all():
            raise WrongResult(f"result {i} of {rival} is not finite, so this is no benchmark")
        tolerance = TOLERANCE.get(b.dtype.name, 0.0)
        scale = np.abs(b).max(initial=0)
        if condition is not None and tolerance:
            each = np.ndim(condition) > 0 and b.ndim > 0
            inner = tuple(range(1, b.ndim)) if each else None
            scale = np.abs(b).max(inner, keepdims=True)
            worst = np.reshape(condition, (-1, *[1] * (b.ndim - 1))) if each else np.max(condition)
            tolerance = AMPLIFIED * np.finfo(b.dtype).eps * worst
        wrong = np.abs(a - b) > tolerance * (np.abs(b) + scale)
        if wrong.any() or not np.isfinite(a).all():
            at = tuple(int(k) for k in np.argwhere(wrong | ~np.isfinite(a))[0])
            raise WrongResult(
                f"{int(wrong.sum())} of {b.size} elements of result {i} differ, the first at "
                f"{at}: {a[at]!r}, {rival} {b[at]!r}"
            )


def problem(error: Exception) -> dict[str, str]:
    """What a row says that has no times, because its workload raised this."""
    if isinstance(error, WrongResult):
        return {"problem": f"WRONG RESULT: {error}"}
    if isinstance(error, AttributeError | NotImplementedError):
        return {"problem": f"not available yet: {error}"}
    return {"problem": f"FAILED: {type(error).__name__}: {error}"}


def clock_for(threads: int) -> Callable[[], float]:
    """Seconds: with one thread the time that it had a processor, so others disturb it less."""
    return time.thread_time if threads == 1 else time.perf_counter


def race(
    runners: dict[str, Callable[[], Any] | tuple[Callable[[], Any], Callable[[Any], Any]]],
    repeat: int,
    seconds: float = math.inf,
    threads: int = 2,
    clock: Callable[[], float] | None = None,
) -> dict[str, float]:
    """The best time in seconds of each runner, interleaved in blocks.

    There are `repeat` timed runs of each, or fewer if they take longer than `seconds` in all.

    A runner is a function, or a pair (setup, function of what setup returned) of which only the
    function is timed. Threads of one library spin for a while after its kernels and slow down
    whoever comes next, so there is a pause between them, each runs a few times in a row, and its
    first run is dropped. `clock` is for a library that does not compute on the thread that asks.
    """
    clock = clock or clock_for(threads)
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
    versions = ", ".join(f"{r.__name__} {r.__version__}" for r in (ut, *rivals))
    print(f"# {cpu_name()}, Python {platform.python_version()}, NumPy {np.__version__}")
    what = "processor time of one thread" if threads == 1 else f"{threads} threads"
    print(f"# {versions}, {what}, interleaved, best of several")
    if limit():
        print(f"# every library limited to {limit()}")


def mark(ratio: float, bar: float, aim: float) -> str:
    """What a ratio of times achieves; without a bar, whether it is slower."""
    if math.isinf(bar) and ratio > aim:
        return "slower"
    return "aim" if ratio <= aim else "ok" if ratio <= bar else "MISSED"


def summary(rows: list[dict[str, Any]]) -> None:
    """Print how many bars and aims were met, and the losses."""
    barred = [r for r in rows if not math.isinf(r["bar"])]
    raced = [r for r in rows if "ratio" in r]
    met = [r for r in raced if r["mark"] != "MISSED"]
    aims = sum(r["mark"] == "aim" for r in raced)
    print(f"\n{sum(r in barred for r in met)} of {len(barred)} bars met, {aims} aims")
    for r in sorted((r for r in raced if r["mark"] == "slower"), key=lambda r: -r["ratio"]):
        print(f"  slower, without a bar: {r['name']}, {r['ratio']:.2f}")
    for r in sorted((r for r in raced if r not in met), key=lambda r: r["bar"] / r["ratio"]):
        print(f"  lost: {r['name']}, {r['ratio']:.2f} where {r['bar']:.2f} was asked")
    for r in rows:
        if "problem" in r:
            print(f"  {r['name']}: {r['problem']}")


def parser(description: str | None) -> argparse.ArgumentParser:
    """What the scripts that race many workloads understand; they add options of their own."""
    made = options(description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("names", nargs="*", metavar="NAME", help="pattern or part of a name")
    made.add_argument("--list", action="store_true", help="list the names and stop")
    made.add_argument("--quick", action="store_true", help="fewer runs, less exact")
    made.add_argument("--memory", action="store_true", help="measure peak memory as well")
    made.add_argument("--threads", type=int, default=2, metavar="N", help="of each library")
    made.add_argument("--json", metavar="FILE", help="write all figures to a file")
    return made


def finish(path: str | None, rows: list[dict[str, Any]], **figures: Any) -> None:
    """Write all figures to a file, if one was asked for; exit with 1 if a workload failed."""
    if path:
        with open(path, "w") as file:
            json.dump({"cpu": cpu_name(), "isa": limit(), "rows": rows, **figures}, file, indent=1)
    if any(r.get("problem", "").startswith(("WRONG", "FAILED")) for r in rows):
        raise SystemExit(1)
