"""Differentiation: the backward pass and everything built on it, in torch's names."""

from . import function
from .api import backward, get_workers, grad, set_workers
from .check import GradcheckError, gradcheck, gradgradcheck
from .function import Function

__all__ = [
    "Function",
    "GradcheckError",
    "backward",
    "function",
    "get_workers",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "set_workers",
]
