"""What ptxas says of the kernels of `device="cuda"`: registers and spills; no card is needed.

    python tools/spills.py [--arch 75 80 90 120] [--only conv]

The kernels are those of the cases of `undertow check-device`, written for a runtime that only
records. NVRTC makes PTX of them, and ptxas (pip install nvidia-cuda-nvcc) machine code.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import warnings
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import undertow as ut
from recording_runtime import Kernel, Recording
from undertow.backends.generated.backend import GeneratedBackend
from undertow.backends.nvidia.dialect import Cuda
from undertow.backends.nvidia.driver import compiled
from undertow.cli.device_checks import CASES, _results


class Use(NamedTuple):
    """What ptxas says of a kernel."""

    kernel: str
    case: str
    registers: int
    spilled: int  # bytes stored
    stack: int


class Recorded(Recording):
    """A runtime that writes CUDA C."""

    def __init__(self) -> None:
        super().__init__(float64=True, float16=True, pairs=True, max_bindings=32)
        self.limits = self.limits.__class__(
            **{**vars(self.limits), "shared_bytes": 49152, "max_binding": 1 << 30}
        )
        self.dialect = Cuda()


def kernels(only: str) -> dict[str, list[Kernel]]:
    """The kernels of each case, those of earlier cases left out."""
    runtime = Recorded()
    ut.register_backend(
        "recorded", lambda device: GeneratedBackend(ut.device("recorded", 0), runtime)
    )
    found: dict[str, list[Kernel]] = {}
    for name in [n for n in CASES if only in n]:
        before = len(runtime.kernels)
        for dtype in CASES[name].dtypes:
            _results("recorded", name, dtype)
        found[name] = runtime.kernels[before:]
    return found


def ptxas() -> str:
    """The program of the wheel."""
    (found, *_) = [str(f) for p in sys.path for f in Path(p).glob("nvidia/*/bin/ptxas")] or [
        "ptxas"
    ]
    return found


def assembled(ptx: bytes, arch: int) -> str:
    """What `ptxas -v` says."""
    with tempfile.NamedTemporaryFile(suffix=".ptx") as file:
        file.write(ptx.rstrip(b"\0"))
        file.flush()
        command = [ptxas(), "-v", f"-arch=sm_{arch}", "--fmad=false", "-o", "/dev/null", file.name]
        return subprocess.run(command, check=True, capture_output=True, text=True).stderr


def use_of(case: str, kernel: Kernel, arch: int) -> Use:
    """Registers and spills of a kernel on an architecture."""
    told = assembled(compiled(kernel.text, kernel.entry, f"compute_{arch}"), arch)

    def number(pattern: str) -> int:
        found: Any = re.search(pattern, told)
        return int(found[1])

    spilled, stack = number(r"(\d+) bytes spill stores"), number(r"(\d+) bytes stack frame")
    return Use(kernel.entry, case, number(r"Used (\d+) registers"), spilled, stack)


def main() -> None:
    """Print a line for each kernel that spills, then a table of all."""
    read = argparse.ArgumentParser(description=__doc__)
    read.add_argument("--arch", type=int, nargs="*", default=[75, 80, 90, 120])
    read.add_argument("--only", default="", help="cases whose name has this in it")
    asked = read.parse_args()
    warnings.simplefilter("ignore")
    given = [(case, k) for case, found in kernels(asked.only).items() for k in found]
    print(f"{len(given)} kernels")
    with ThreadPoolExecutor(2) as pool:
        for arch in asked.arch:
            uses = list(pool.map(use_of, *zip(*given, strict=True), repeat(arch)))
            forms = defaultdict(list)
            for use in uses:
                forms[use.kernel.rpartition("_")[0]].append(use)
                if use.spilled or use.stack:
                    print(f"sm_{arch} {use}", flush=True)
            most = {form: max(u.registers for u in found) for form, found in forms.items()}
            spills = sum(u.spilled > 0 for u in uses)
            mean = sum(u.registers for u in uses) / len(uses)
            print(
                f"sm_{arch}: {spills} of {len(uses)} spill, {mean:.1f} registers; the most:", most
            )


if __name__ == "__main__":
    main()
