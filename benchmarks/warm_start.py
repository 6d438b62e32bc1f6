"""How long a process takes that uses 50 kernels: the first one, and those after it.

    python benchmarks/warm_start.py [--repeat N] [--isa avx2]

The kernels are found in the cache on disk, or compiled where it is empty or switched off. The whole
process is timed, with the interpreter's start and all imports, and its processor time, which is
what to look at on a busy machine. Arrays are small, so that computing takes no time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

import llvmlite
from _isa import options
from _race import header

KERNELS = 50
SCRIPT = f"""
import time
start = time.perf_counter()
import undertow as ut
imported = time.perf_counter()
from undertow.backends.cpu.codegen import jit
unary = "neg abs sqrt rsqrt reciprocal square floor ceil trunc round exp log tanh sigmoid relu sign"
made = set()
for dtype in (ut.float32, ut.float64, ut.float16):
    x = ut.full((64, 64), 0.5, dtype=dtype)
    column = x[:, :1]
    for name in unary.split():
        getattr(ut, name)(x)
    for y in (x, column, x.t(), 2.0):
        for name in ("add", "sub", "mul", "div"):
            if len(jit._loaded) < {KERNELS}:
                getattr(ut, name)(x, y)
assert len(jit._loaded) >= {KERNELS}, len(jit._loaded)
print(time.process_time(), imported - start, time.perf_counter() - imported)
"""


def run(folder: str, cache: str = "1") -> list[float]:
    """Seconds of a process: in all, of the processor, for the import, and for the kernels."""
    env = {
        **os.environ,
        "UNDERTOW_KERNELS": "always",
        "UNDERTOW_DEBUG": "",
        "UNDERTOW_CHECK_IR": "",
        "UNDERTOW_CACHE_DIR": f"{folder}/kernels",
        "UNDERTOW_CACHE": cache,
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": f"{folder}/bytecode",
    }
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, check=True
    )
    return [time.perf_counter() - begin, *map(float, done.stdout.split())]


def main() -> None:
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=9)
    repeat = parser.parse_args().repeat
    header(llvmlite)
    with tempfile.TemporaryDirectory() as folder:
        off = min(run(folder, "0") for _ in range(2))  # this writes the bytecode
        rows = {"switched off": off, "empty": run(folder)}
        rows["warm"] = min(run(folder) for _ in range(repeat))
        size = sum(entry.stat().st_size for entry in os.scandir(f"{folder}/kernels"))
    print(f"{KERNELS} kernels, {size / 1e3:.0f} kB on disk; seconds\n")
    print(f"{'cache':14}{'in all':>9}{'processor':>11}{'import undertow':>17}{'kernels':>9}")
    for name, (spent, processor, imported, used) in rows.items():
        print(f"{name:14}{spent:>9.3f}{processor:>11.3f}{imported:>17.3f}{used:>9.3f}")


if __name__ == "__main__":
    main()
