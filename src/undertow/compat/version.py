"""Which version this is, and that it was built for no GPU."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

__all__ = ["__version__", "cuda", "debug", "hip", "xpu"]

try:
    __version__ = version("undertow")
except PackageNotFoundError:  # run from its sources
    __version__ = "unknown"
cuda: str | None = None
hip: str | None = None
xpu: str | None = None
debug = False
