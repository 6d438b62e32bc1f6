"""Peak memory of the workloads: what one needs beyond its inputs, in a process of its own.

    python benchmarks/_memory.py undertow|torch NAME...

prints one line of JSON, {name: bytes}. It is started once per library. For each workload it forks
after the imports; the child starts threads and compilers with a small computation, makes the
inputs, and then runs the workload three times. What counts is the highest resident memory during
a run less the resident memory before the first one: outputs, temporaries, and whatever the library
keeps; of the three runs the least, since now and then an allocator takes fresh memory though it
has some. Kernels are compiled beforehand, in a child that is not measured, and come from the cache
on disk.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from workloads import CONVOLUTION, MATHEMATICS, WORKLOADS, Workload

RUNS = 3
SLACK = 1 << 20  # bytes by which peaks may differ: code that is loaded, and other small change
TIMEOUT = 600


def peaks(library: str, names: Sequence[str]) -> dict[str, int]:
    """The peaks in bytes of the named workloads; one that cannot run is missing."""
    command = [sys.executable, os.path.abspath(__file__), library, *names]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=TIMEOUT)
    return json.loads(found.stdout)


def compare(workloads: Sequence[Workload]) -> list[dict[str, Any]]:
    """Measure the peaks of both libraries, print them, and return them as rows."""
    try:
        _reset()
    except OSError:
        print("peak memory can be measured only on Linux")
        return []
    names = [w.name for w in workloads]
    found = [peaks(library, names) for library in ("undertow", "torch")]
    rows = []
    print("peak memory beyond the inputs, each workload in a process of its own")
    width = max(map(len, names), default=0)
    print(f"{'workload':<{width}} {'undertow MB':>11} {'torch MB':>9} {'ratio':>6}")
    for name in names:
        ours, theirs = (f.get(name) for f in found)
        if ours is None or theirs is None:
            print(f"{name:<{width}} not available yet")
            continue
        mark = "ok" if ours <= theirs + SLACK else "MISSED"
        rows.append({"name": name, "undertow": ours, "torch": theirs, "mark": mark})
        ratio = f"{ours / theirs:>6.2f}" if min(ours, theirs) > SLACK else f"{'–':>6}"
        print(f"{name:<{width}} {ours / 2**20:>11.1f} {theirs / 2**20:>9.1f} {ratio}  {mark}")
    lost = [r["name"] for r in rows if r["mark"] != "ok"]
    print(
        f"\n{len(rows) - len(lost)} of {len(names)} at most torch's"
        + (f"; more: {', '.join(lost)}" if lost else "")
    )
    return rows


def _status(field: str) -> int:
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field + ":"))


def _reset() -> None:
    """Let the peak begin anew from the present."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def _start(module: Any) -> None:
    """Bring up threads, compilers and libraries, which stay for all workloads.

    With a cotangent, since torch imports megabytes of Python when it is first given one.
    """
    functional = module.nn.functional
    x = module.ones(512, 512).requires_grad_()
    (x @ x).exp().sum().backward(module.ones(()))
    image, weight = module.ones(1, 16, 8, 8).requires_grad_(), module.ones(16, 16, 3, 3)
    for y in (
        functional.conv2d(image, weight.requires_grad_()),
        functional.batch_norm(image, None, None, training=True),
        functional.max_pool2d(image, 2),
        functional.avg_pool2d(image, 2),
    ):
        y.backward(module.ones(*y.shape))


def _run(module: Any, workload: Workload) -> int:
    return len(workload.whole(module)())


def _measured(module: Any, workload: Workload) -> int:
    _start(module)
    run = workload.whole(module)
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # what making the inputs has left behind
    before = _status("VmRSS")
    found = []
    for _ in range(RUNS):
        _reset()
        run()
        found.append(_status("VmHWM") - before)
    return min(found)


def _forked(function: Any, *arguments: Any) -> int | None:
    """The number that a function returns in a child; None if it fails."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.write(writer, b"%d" % function(*arguments))
            status = 0
        except Exception as error:
            print(f"# {type(error).__name__}: {error}", file=sys.stderr)
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return int(text) if text else None


def main() -> None:
    """Measure in children, one at a time."""
    library, *names = sys.argv[1:]
    module = importlib.import_module(library)
    module.set_num_threads(2)
    by_name = {w.name: w for w in (*WORKLOADS, *CONVOLUTION, *MATHEMATICS)}
    found = {}
    for name in names:
        if library == "undertow" and _forked(_run, module, by_name[name]) is None:
            continue
        peak = _forked(_measured, module, by_name[name])
        if peak is not None:
            found[name] = peak
    print(json.dumps(found))


if __name__ == "__main__":
    main()
