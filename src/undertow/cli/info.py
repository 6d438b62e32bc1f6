"""Tell versions, processor, devices and caches.

What to put into a report of a problem.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import undertow

from ..backends import holders
from ..backends.cpu.calls import native
from ..backends.cpu.codegen.cache import from_environment
from ..backends.cpu.codegen.jit import features
from ..backends.nvidia.driver import card_name, device_count, require_card
from ..backends.registry import devices
from ..backends.threads import get_num_threads
from ..errors import DeviceError
from ..timeseries import names
from ..timeseries.ucr import data_folder

PACKAGES = ("numpy", "llvmlite", "tqdm", "matplotlib", "ml-dtypes", "wgpu", "pyopencl")
# Those that decide which kernels are made, of the hundred that a processor has.
FEATURES = (
    *("sse4.2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512vnni"),
    *("avx512bf16", "avx512fp16", "amx-tile", "amx-bf16", "neon", "sve", "sve2", "bf16"),
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What the command understands."""
    command.add_argument("--json", action="store_true", help="as JSON, for programs")


def run(asked: argparse.Namespace) -> int:
    """Print everything."""
    found = gathered()
    if asked.json:
        print(json.dumps(found, indent=1))
        return 0
    width = max(map(len, found))
    for name, value in found.items():
        print(f"{name:{width}}  {_shown(value)}")
    return 0


def gathered() -> dict[str, Any]:
    """What there is to tell, by name."""
    cpu, usable = _processor()
    return {
        "undertow": undertow.__version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": platform.platform(),
        **{name: _version(name) for name in PACKAGES},
        "processor": cpu,
        "features": usable,
        "cores": os.cpu_count() or 1,
        "threads": get_num_threads(),
        "devices": [str(device) for device in devices()],
        "native calls": native.refusal() or "yes",
        "memory used again": holders.refusal() or "yes",
        "cuda": _cards(),
        "opencl": [f"{d.name} ({d.platform})" for d in undertow.opencl.devices()] or "no device",
        "kernel cache": _kernel_cache(),
        "data": _size_of(data_folder()) if data_folder().is_dir() else "nothing fetched yet",
        "UCR sets": names(),
        "environment": {k: v for k, v in sorted(os.environ.items()) if k.startswith("UNDERTOW_")},
    }


def _cards() -> list[str] | str:
    """The cards of NVIDIA's, or why there are none."""
    try:
        require_card()
    except DeviceError as error:
        return str(error).removeprefix("[cuda] ").partition("; use ")[0]
    return [card_name(index) for index in range(device_count())]


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{k}={v}" for k, v in value.items()) or "nothing set"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        extra = {"matplotlib": "plot", "wgpu": "webgpu", "pyopencl": "opencl"}.get(package)
        return "not installed" + (f" (pip install 'undertow[{extra}]')" if extra else "")


def _processor() -> tuple[str, list[str]]:
    """What the processor calls itself, and those of its instructions that kernels may use."""
    from llvmlite.binding import get_host_cpu_name

    usable = features()
    return f"{_model_name()} ({get_host_cpu_name()})", [f for f in FEATURES if f in usable]


def _model_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            named = [line.partition(":")[2].strip() for line in file if "model name" in line]
    except OSError:
        named = []
    return named[0] if named else platform.processor() or platform.machine()


def _kernel_cache() -> str:
    disk, where = from_environment()
    return where if disk is None else _size_of(Path(where), "*.kernel")


def _size_of(folder: Path, pattern: str = "*") -> str:
    sizes = list(_sizes(folder, pattern))
    return f"{folder}, {len(sizes)} files, {sum(sizes) / 1e6:.1f} MB"


def _sizes(folder: Path, pattern: str) -> Iterator[int]:
    for path in folder.glob(pattern):
        try:  # another process may be clearing up
            yield path.stat().st_size
        except OSError:
            continue
