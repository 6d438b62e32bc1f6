"""`import undertow` against `import torch`, each in a fresh interpreter.

    python benchmarks/import_time.py [--repeat N] [--isa avx2]

Wall time of the import statement alone, interleaved, best of several.
"""

from __future__ import annotations

import subprocess
import sys

from _isa import options
from _race import header

SCRIPT = "import time; s = time.perf_counter(); import {}; print(time.perf_counter() - s)"


def seconds(module: str) -> float:
    """How long one import takes in a new process."""
    command = [sys.executable, "-c", SCRIPT.format(module)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    """Race the imports."""
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=9)
    repeat = parser.parse_args().repeat
    import torch

    header(torch)
    best = {"undertow": 9e9, "numpy": 9e9, "torch": 9e9}
    for _ in range(repeat):
        for module in best:
            best[module] = min(best[module], seconds(module))
    for module, value in best.items():
        print(f"import {module:<9} {1e3 * value:>7.1f} ms")
    print(f"ratio {best['undertow'] / best['torch']:.3f}")


if __name__ == "__main__":
    main()
