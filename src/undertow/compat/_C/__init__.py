"""Questions that programs ask torch's internals, answered truthfully: nothing traces or scripts."""

from __future__ import annotations

import enum
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ...core.generator import Generator
from ...core.modes import current, is_grad_enabled
from ...core.overriding import (
    EVERYBODY,
    NOBODY,
    DisableTorchDispatch,
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    EnableTorchFunction,
    disabled,
    disabled_dispatch,
)
from ...core.tensor import Tensor
from ...devices import Device, get_default_device
from ...dtypes import DType as dtype
from ...errors import LinAlgError as _LinAlgError
from ...shapes import Size
from .. import accelerator
from .._ops import below_autograd
from . import _autograd, _functions
from ._autograd import _current_graph_task_id, _WeakTensorRef, _will_engine_execute_node

device = Device
_TensorMeta = type(Tensor)
_has_cuda = _has_mps = _has_xpu = _has_mtia = _has_distributed = False

__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "Generator", "Size"]
__all__ += ["TensorBase", "_LinAlgError", "_WeakTensorRef", "_autograd", "_current_graph_task_id"]
__all__ += ["_functions", "_will_engine_execute_node", "device", "dtype", "is_grad_enabled"]


TensorBase = _TensorBase = Tensor
_disabled_torch_function_impl = disabled
_disabled_torch_dispatch_impl = disabled_dispatch
_DisableTorchDispatch = DisableTorchDispatch
_EnableTorchFunction = EnableTorchFunction


def _len_torch_dispatch_stack() -> int:
    """How many modes are on that answer operators."""
    return len(current().dispatch_modes)


def _is_torch_function_enabled() -> bool:
    """Whether classes are asked for a `__torch_function__`."""
    return current().asks == EVERYBODY


def _is_torch_function_all_disabled() -> bool:
    """Whether neither classes nor modes are asked."""
    return current().asks >= NOBODY


def _is_torch_function_mode_enabled() -> bool:
    """Whether a mode is on that answers functions."""
    state = current()
    return bool(state.function_modes) and state.asks < NOBODY


def _len_torch_function_stack() -> int:
    """How many such modes are on."""
    return len(current().function_modes)


def _get_function_stack_at(level: int) -> Any:
    """One of these modes, from the outermost."""
    return current().function_modes[level]


def _get_tracing_state() -> None:
    """The trace that is being recorded: none."""


def _is_tracing() -> bool:
    """Whether a function is being traced: never."""
    return False


def _log_api_usage_once(event: str) -> None:
    """Nothing is counted."""


_log_api_usage_metadata = _log_api_usage_once


def _get_privateuse1_backend_name() -> str:
    """The name of a device of a user's own, which devices have anyway: torch's default."""
    return "privateuseone"


def _get_default_device() -> str:
    """The device on which tensors are made."""
    return get_default_device().type


def _get_accelerator(check: bool = True) -> Device:
    """The device that a package brings, or the CPU."""
    return accelerator.current_accelerator() or Device("cpu")


def _cuda_getDeviceCount() -> int:
    """How many CUDA devices there are: none."""
    return 0


def _cuda_isInBadFork() -> bool:
    """Whether this process was forked from one with CUDA: no."""
    return False


def _jit_set_profiling_mode(on: bool) -> bool:
    """A switch of TorchScript, which is not here; it was off."""
    return False


_jit_set_profiling_executor = _jit_set_texpr_fuser_enabled = _jit_set_profiling_mode
_jit_override_can_fuse_on_gpu = _jit_override_can_fuse_on_cpu = _jit_set_profiling_mode
_jit_set_nvfuser_enabled = _jit_set_nvfuser_guard_mode = _jit_set_profiling_mode
_jit_set_bailout_depth = _debug_set_autodiff_subgraph_inlining = _jit_set_profiling_mode


def _jit_can_fuse_on_cpu() -> bool:
    """Whether TorchScript fuses: there is none."""
    return False


_jit_can_fuse_on_gpu = _jit_can_fuse_on_cpu


def _are_functorch_transforms_active() -> bool:
    """Whether tensors may be wrapped by `vmap` or `grad`: they never are.

    A transform here works on ordinary tensors, so nobody has to step aside for it.
    """
    return False


_KEYS = """
Undefined CPU CUDA Meta XPU MPS PrivateUse1 Autograd AutogradCPU AutogradCUDA AutogradFunctionality
AutocastCPU AutocastCUDA AutocastXPU AutocastFunctionality ADInplaceOrView BackendSelect Python
PythonTLSSnapshot Functionalize CompositeImplicitAutograd CompositeExplicitAutograd
"""
DispatchKey: Any = enum.Enum("DispatchKey", _KEYS.split())  # type: ignore[misc]  # torch's layers, which libraries name


Tag = enum.IntEnum(
    "Tag",
    """
    core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated
    inplace inplace_view maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides
    needs_fixed_stride_order nondeterministic_bitwise nondeterministic_seeded out out_variant
    pointwise pt2_compliant_tag reduction view_copy
    """,
    module="undertow",
    start=0,
)
Tag.__doc__ = """What an operator of `library` says of itself; kept, and nothing is made of it.

>>> import undertow as ut
>>> ut.Tag.pointwise.name
'pointwise'
"""


class DispatchKeySet:
    """Some of the layers."""

    def __init__(self, *keys: Any) -> None:
        self.keys = frozenset(keys)

    def has(self, key: Any) -> bool:
        """Whether a layer is among them."""
        return key in self.keys

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self.keys, *other.keys)


class _ExcludeDispatchKeyGuard(nullcontext[None]):
    """A block without some of torch's layers of dispatch, which are not here."""

    def __init__(self, keys: Any = None) -> None:
        super().__init__()


_DisableAutocast = _ExcludeDispatchKeyGuard


def _AutoDispatchBelowAutograd() -> AbstractContextManager[None]:
    """A block in which operators of `library` run their kernels, and no rule for autograd."""
    return below_autograd()


def _set_math_sdp_allow_fp16_bf16_reduction(on: bool) -> None:
    """A setting of torch's attention on CUDA: nothing."""
