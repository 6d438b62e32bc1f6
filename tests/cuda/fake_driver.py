"""The fake driver, made by the compiler of this machine: what must be in the environment for it."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

from undertow.backends.nvidia.driver import compiler
from undertow.errors import DeviceError

HERE = Path(__file__).parent


def missing() -> str:
    """Why the fake driver cannot be had here; empty if it can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return "the fake CUDA driver is for Linux on x86-64"
    if not shutil.which("gcc"):
        return "there is no gcc for the fake CUDA driver"
    try:
        compiler()
    except DeviceError as error:
        return str(error)
    return ""


def prepare(folder: Path) -> dict[str, str]:
    """Compile the driver into a folder; the environment in which it is used."""
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "libcuda.so.1"
    command = ["gcc", "-O1", "-w", "-shared", "-fPIC", str(HERE / "libcuda.c"), "-o", str(library)]
    subprocess.run([*command, "-ldl", "-lpthread"], check=True, timeout=120)
    return {
        "UNDERTOW_LIBCUDA": str(library),
        "UNDERTOW_CUDA_ALLOCATOR": "direct",
        "UNDERTOW_CACHE_DIR": str(folder / "cache"),
        "FAKE_CUDA_DIR": str(folder),
        "FAKE_CUDA_TRANSLATOR": f"{sys.executable} -I -S {HERE / 'ptx.py'}",
    }
