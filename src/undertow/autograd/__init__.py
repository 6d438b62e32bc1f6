"""Differentiation: the backward pass and everything built on it, in torch's names."""

from .api import backward, get_workers, grad, set_workers
from .check import GradcheckError, gradcheck, gradgradcheck

__all__ = [
    "GradcheckError",
    "backward",
    "get_workers",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "set_workers",
]
