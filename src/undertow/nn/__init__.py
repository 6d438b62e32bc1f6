"""Modules, their functions and their parameters; `undertow.nn.functional` is torch's `F`."""

from . import functional, init, modules, parallel, parameter
from .modules import *  # noqa: F403
from .modules import __all__ as _modules
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    *_modules,
    "Buffer",
    "DataParallel",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "init",
    "modules",
    "parallel",
    "parameter",
]
