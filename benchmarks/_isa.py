"""`--isa avx2`: every library limited to the same instructions, so one machine gives both columns.

Libraries read their limits from the environment when they are imported, so the script starts anew.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

LIMITS = {
    "avx2": {
        "UNDERTOW_CPU_FEATURES": "-avx512f",
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
    }
}
_SAID = "UNDERTOW_BENCHMARK_ISA"


def limit() -> str:
    """What the libraries of this process are limited to; "" for nothing."""
    return os.environ.get(_SAID, "")


def options(description: str | None, **given: Any) -> argparse.ArgumentParser:
    """A parser of what every script understands; they add options of their own."""
    made = argparse.ArgumentParser(description=description, **given)
    made.add_argument(
        "--isa", choices=LIMITS, action=_Limit, help="instructions that every library may use"
    )
    return made


class _Limit(argparse.Action):
    """Starts the script anew in an environment with the limits."""

    def __call__(self, parser: Any, asked: Any, value: Any, option: str | None = None) -> None:
        asked.isa = value
        if limit() != value:
            sys.stdout.flush()
            changed = os.environ | LIMITS[value] | _numpy() | {_SAID: value}
            flags = os.environ.get("XLA_FLAGS", "")
            changed["XLA_FLAGS"] = f"{flags} {changed['XLA_FLAGS']}".strip()
            os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], changed)


def _numpy() -> dict[str, str]:
    """NumPy's limits: it is told what not to use, and warns of what the processor has not."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    wide = [f for f in __cpu_dispatch__ if f.startswith(("AVX512", "X86_V4"))]
    found = " ".join(f for f in wide if __cpu_features__[f])
    # Its BLAS chooses by the processor's model.
    return {"NPY_DISABLE_CPU_FEATURES": found, "OPENBLAS_CORETYPE": "Haswell"} if found else {}
