"""JAX as a rival, where it is installed: on the processor, with as many threads as the others."""

from __future__ import annotations

import importlib
import os
from typing import Any


def load(threads: int) -> Any | None:
    """The module, or None if it is not installed. The first import settles the threads."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["NPROC"] = str(threads)  # the size of XLA's thread pool
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # errors only
    try:
        return importlib.import_module("jax")
    except ImportError:
        return None
