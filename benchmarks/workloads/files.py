"""A safetensors file of 400 MB: saved, and loaded, beside the format's own package with NumPy."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from typing import Any

from ._workload import Workload, normal

NUMBER, SIDE = 100, 1024
_BYTES = 4 * NUMBER * SIDE * SIDE


@cache
def _arrays() -> dict[str, Any]:
    return {f"layers.{i}.weight": normal(SIDE, SIDE, seed=i) for i in range(NUMBER)}


@cache
def _folder() -> Any:
    return tempfile.TemporaryDirectory()


def _path(module: Any) -> str:
    return os.path.join(_folder().name, f"{module.__name__}.safetensors")


def _library(module: Any) -> tuple[Any, dict[str, Any]]:
    """What saves and loads, and tensors for it: the rival of Undertow is NumPy's package."""
    if module.__name__ == "undertow":
        from undertow.files import safetensors

        return safetensors, {n: module.from_numpy(a) for n, a in _arrays().items()}
    import safetensors.numpy

    return safetensors.numpy, _arrays()


def _save(module: Any) -> Any:
    library, tensors = _library(module)

    def run() -> tuple[Any, ...]:
        library.save_file(tensors, _path(module))
        return (os.path.getsize(_path(module)),)

    return run


def _load(module: Any, touched: bool = False) -> Any:
    library, tensors = _library(module)
    library.save_file(tensors, _path(module))

    def run() -> tuple[Any, ...]:
        found = library.load_file(_path(module))
        if touched:  # a number of every page is read, as by a first step
            return tuple(t.reshape(-1)[::1024].sum() for t in found.values())
        return tuple(found[name] for name in sorted(found)[:3])

    return run


FILES = (
    Workload("load safetensors", _load, 1.0, 0.5, read=_BYTES),
    Workload("load safetensors, all pages", lambda m: _load(m, True), 1.0, 0.5, read=_BYTES),
    Workload("save safetensors", _save, 1.0, 0.9, read=_BYTES, written=_BYTES),
)
