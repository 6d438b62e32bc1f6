"""Undertow: tensors with automatic differentiation of any order."""

import math
import os

# Before NumPy is imported, since its OpenBLAS reads this once; see Note [BLAS threads].
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")

from . import ops  # first: it publishes the functions
from . import autograd, dtypes, errors
from .backends.registry import register_backend
from .backends.threads import get_num_threads, set_num_threads
from .core.generator import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from .core.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .core.printing import get_printoptions, printoptions, set_printoptions
from .core.register import FUNCTIONS as _functions
from .core.tensor import Tensor
from .devices import device
from .dtypes import *  # noqa: F403
from .dtypes import DType as dtype

__version__ = "0.1.0"

e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi

globals().update(_functions)

# What is loaded when somebody asks for it, and the room where it stands.
_LAZY = {"nn": "nn", "utils": "utils"}
_LAZY |= {name: name for name in ("amp",)}
_LAZY |= dict.fromkeys(("GradScaler",), "amp")
_LAZY |= dict.fromkeys(
    (
        "autocast",
        "clear_autocast_cache",
        "get_autocast_cpu_dtype",
        "get_autocast_dtype",
        "get_autocast_gpu_dtype",
        "is_autocast_cache_enabled",
        "is_autocast_cpu_enabled",
        "is_autocast_enabled",
        "set_autocast_cache_enabled",
        "set_autocast_cpu_dtype",
        "set_autocast_cpu_enabled",
        "set_autocast_dtype",
        "set_autocast_enabled",
    ),
    "amp.autocast_mode",
)


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'undertow' has no attribute {name!r}")
    from importlib import import_module

    room = import_module(f".{_LAZY[name]}", __name__)
    found = globals()[name] = room if name == _LAZY[name] else getattr(room, name)
    return found


def __dir__() -> list[str]:
    return __all__


_rooms = {"backends", "core", "devices", "kernel", "math", "ops", "os", "shapes"}
__all__ = sorted(name for name in {*globals(), *_LAZY} - _rooms if not name.startswith("_"))
