"""What the benchmarks' command lines share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = sorted(f for f in FOLDER.glob("*.py") if not f.name.startswith("_"))
ASKED = """
import os, sys
sys.path.insert(0, sys.argv.pop(1))
import numpy  # whose limits are settled by now, so that only a new process can change them
from _isa import LIMITS, limit, options
asked = options("").parse_args()
print(asked.isa, limit(), os.environ["XLA_FLAGS"])
for name, value in LIMITS["avx2"].items():
    assert value in os.environ[name], name
"""


def test_isa_limits_every_library(tmp_path: Path) -> None:
    """The script starts anew with the limits, and keeps the flags that were there."""
    script = tmp_path / "script.py"
    script.write_text(ASKED)
    command = [sys.executable, str(script), str(FOLDER), "--isa", "avx2"]
    done = subprocess.run(
        command, env={**os.environ, "XLA_FLAGS": "--mine"}, capture_output=True, text=True
    )
    assert done.stdout == "avx2 avx2 --mine --xla_cpu_max_isa=AVX2\n", done.stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda s: s.stem)
def test_every_script_takes_isa(script: Path) -> None:
    done = subprocess.run([sys.executable, script, "--help"], capture_output=True, text=True)
    assert "--isa" in done.stdout, done.stderr


def test_the_kernels_of_a_step_are_counted() -> None:
    """By `benchmarks/webgpu.py`, which takes the CPU's shortcuts away for that."""
    code = "import webgpu; print(webgpu.kernels_on_cpu())"
    done = subprocess.run([sys.executable, "-c", code], cwd=FOLDER, capture_output=True, text=True)
    assert 20 < int(done.stdout or 0) < 100, done.stderr
