"""Differentiation: the backward pass and everything built on it, in torch's names."""

from ..core.modes import (
    enable_grad,
    inference_mode,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from ..core.saved import SavedTensor
from . import anomaly, forward_ad, function, functional, grad_mode, graph
from . import forward_mode as _forward_mode  # noqa: F401  # what an op does to tangents
from . import gradcheck as _module  # noqa: F401  # before the function of that name
from .anomaly import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from .api import backward, get_workers, grad, set_workers
from .check import GradcheckError, gradcheck, gradgradcheck
from .checkpoint import CheckpointError, checkpoint, checkpoint_sequential
from .function import Function
from .grad_mode import _unsafe_preserve_version_counter as _unsafe_preserve_version_counter
from .variable import Variable

__all__ = [
    "CheckpointError",
    "Function",
    "GradcheckError",
    "SavedTensor",
    "Variable",
    "anomaly",
    "backward",
    "checkpoint",
    "checkpoint_sequential",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "get_workers",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_multithreading_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "set_workers",
]
