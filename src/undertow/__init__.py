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
from .on_demand import on_demand as _on_demand

__version__ = "0.1.0"

e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi

globals().update(_functions)

# What is loaded when somebody asks for it, and the room where it stands.
_LAZY = {"nn": "nn", "optim": "optim", "utils": "utils"}
__getattr__ = _on_demand(globals(), _LAZY)
_rooms = {"backends", "core", "devices", "kernel", "math", "on_demand", "ops", "os", "shapes"}
__all__ = sorted(name for name in {*globals(), *_LAZY} - _rooms if not name.startswith("_"))
__dir__ = __all__.copy
