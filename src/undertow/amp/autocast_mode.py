"""`autocast` and the switches beside it; which functions it touches is in `core/autocast`."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..backends.registry import devices, is_present
from ..core.autocast import Autocast
from ..core.modes import State, Switch, current, enter
from ..core.tensor import Tensor
from ..dtypes import DType
from ..errors import ArgumentError, DTypeError

_LOWER = (dtypes.bfloat16, dtypes.float16)
_KNOWN = ("cpu", "cuda", "mps", "xpu")  # device types that programs name, whether they are here


class autocast(Switch):
    """Run products and convolutions in `dtype`, and what needs the range of float32 in float32.

    A context manager and a decorator; regions nest, and `enabled=False` ends autocast inside. The
    functions are torch's lists for the CPU, see `undertow/core/autocast.py`. Casts are recorded, so
    gradients arrive in the dtype of the parameters. A backward runs in the dtypes of its forward,
    inside a region or outside.

    >>> import undertow as ut
    >>> x, w = ut.ones(2, 3), ut.ones(3, 4, requires_grad=True)
    >>> with ut.autocast("cpu"):
    ...     y = x @ w
    ...     loss = ut.nn.functional.mse_loss(y, ut.zeros(2, 4))
    >>> y.dtype, loss.dtype
    (undertow.bfloat16, undertow.float32)
    >>> loss.backward()
    >>> w.grad.dtype
    undertow.float32
    """

    __slots__ = ("_cache_enabled", "_enabled", "device", "fast_dtype")

    def __init__(
        self,
        device_type: str,
        dtype: DType | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        super().__init__()
        if not is_autocast_available(device_type):
            raise ArgumentError(
                f"[autocast] there is no device type {device_type!r}; use 'cpu', or one of "
                f"{', '.join(sorted({d.type for d in devices()}))}"
            )
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._enabled = bool(enabled)
        self._cache_enabled = (
            is_autocast_cache_enabled() if cache_enabled is None else bool(cache_enabled)
        )
        if enabled and not is_present(device_type):
            warnings.warn(
                f"autocast for {device_type!r}, but there is no such device here. Disabling it.",
                stacklevel=2,
            )
            self._enabled = False
        elif enabled and self.fast_dtype not in _LOWER:
            warnings.warn(
                f"autocast to {self.fast_dtype} is not supported. Disabling autocast. "
                f"It supports {' and '.join(map(str, _LOWER))}.",
                stacklevel=2,
            )
            self._enabled = False

    def _next(self, state: State) -> State:
        before = state.autocast or Autocast()
        return state.but(
            autocast=before.but(self.device, self._enabled, self.fast_dtype, self._cache_enabled)
        )

    def __enter__(self) -> autocast:  # type: ignore[override]
        super().__enter__()
        return self


def is_autocast_available(device_type: str) -> bool:
    """Whether `autocast` may be asked for a device type.

    >>> import undertow as ut
    >>> ut.amp.is_autocast_available("cpu"), ut.amp.is_autocast_available("teapot")
    (True, False)
    """
    if not isinstance(device_type, str):
        raise DTypeError(f"[autocast] device_type is a name, got {type(device_type).__name__}")
    return device_type in _KNOWN or is_present(device_type)


# Switches by themselves -------------------------------------------------------------------------
def _now() -> Autocast:
    return current().autocast or Autocast()


def _set(device_type: str, enabled: bool, dtype: DType, caching: bool) -> None:
    made = _now().but(device_type, enabled, dtype, caching)
    usual = all(lower is _usual(name) for name, lower in made.lower.items())
    nothing = usual and caching and not made.on
    enter(current().but(autocast=None if nothing else made))


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on for a device type in this context (without one: for "cuda").

    >>> import undertow as ut
    >>> with ut.autocast("cpu"):
    ...     ut.is_autocast_enabled("cpu"), ut.is_autocast_enabled()
    (True, False)
    """
    return device_type in _now().on


def set_autocast_enabled(device_type: str | bool, enabled: bool = False) -> None:
    """Switch autocast on or off for a device type in this context, outside of any region.

    >>> import undertow as ut
    >>> ut.set_autocast_enabled("cpu", True)
    >>> (ut.ones(2, 2) @ ut.ones(2, 2)).dtype
    undertow.bfloat16
    >>> ut.set_autocast_enabled("cpu", False)
    """
    if isinstance(device_type, bool):
        set_autocast_enabled("cuda", device_type)
        return
    on = bool(enabled) and is_present(device_type)
    _set(device_type, on, get_autocast_dtype(device_type), _now().caching)


def get_autocast_dtype(device_type: str) -> DType:
    """The lower dtype of a device type: bfloat16, for "cuda" float16, or what was set.

    >>> import undertow as ut
    >>> ut.get_autocast_dtype("cpu")
    undertow.bfloat16
    """
    return _now().lower.get(device_type) or _usual(device_type)


def _usual(device_type: str) -> DType:
    return dtypes.float16 if device_type in ("cuda", "mps") else dtypes.bfloat16


def set_autocast_dtype(device_type: str, dtype: DType) -> None:
    """Set the lower dtype of a device type in this context.

    >>> import undertow as ut
    >>> ut.set_autocast_dtype("cpu", ut.bfloat16)
    """
    _set(device_type, is_autocast_enabled(device_type), dtype, _now().caching)


def is_autocast_cache_enabled() -> bool:
    """Whether a parameter is cast once in an autocast region, and not at each use.

    >>> import undertow as ut
    >>> ut.is_autocast_cache_enabled()
    True
    """
    return _now().caching


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Say whether a parameter is cast once in an autocast region.

    >>> import undertow as ut
    >>> ut.set_autocast_cache_enabled(True)
    """
    _set("cpu", is_autocast_enabled("cpu"), get_autocast_dtype("cpu"), bool(enabled))


def clear_autocast_cache() -> None:
    """Forget the casts of parameters in this context.

    >>> import undertow as ut
    >>> ut.clear_autocast_cache()
    """
    _now().casts.clear()


def is_autocast_cpu_enabled() -> bool:
    """`is_autocast_enabled("cpu")`, its old name.

    >>> import undertow as ut
    >>> ut.is_autocast_cpu_enabled()
    False
    """
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """`set_autocast_enabled("cpu", enabled)`, its old name.

    >>> import undertow as ut
    >>> ut.set_autocast_cpu_enabled(False)
    """
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> DType:
    """`get_autocast_dtype("cpu")`, its old name.

    >>> import undertow as ut
    >>> ut.get_autocast_cpu_dtype()
    undertow.bfloat16
    """
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: DType) -> None:
    """`set_autocast_dtype("cpu", dtype)`, its old name.

    >>> import undertow as ut
    >>> ut.set_autocast_cpu_dtype(ut.bfloat16)
    """
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> DType:
    """`get_autocast_dtype("cuda")`, its old name.

    >>> import undertow as ut
    >>> ut.get_autocast_gpu_dtype()
    undertow.float16
    """
    return get_autocast_dtype("cuda")


# Functions of a user's own ----------------------------------------------------------------------
def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: DType | None = None
) -> Any:
    """Decorate the forward of an `autograd.Function`; `custom_bwd` decorates its backward.

    With `cast_inputs`, and autocast on, the floating tensors arrive in that dtype and the forward
    runs without autocast.

    >>> import undertow as ut
    >>> class Double(ut.autograd.Function):
    ...     @staticmethod
    ...     @ut.amp.custom_fwd(device_type="cpu", cast_inputs=ut.float32)
    ...     def forward(ctx, x):
    ...         return x * 2
    ...
    ...     @staticmethod
    ...     @ut.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, g):
    ...         return g * 2
    >>> with ut.autocast("cpu"):
    ...     Double.apply(ut.ones(2, dtype=ut.bfloat16)).dtype
    undertow.float32
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    is_autocast_available(device_type)

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        on = is_autocast_enabled(device_type)
        ctx._autocast = (get_autocast_dtype(device_type), on and cast_inputs is None)
        if not on or cast_inputs is None:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *_cast(args, cast_inputs), **_cast(kwargs, cast_inputs))

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorate the backward of an `autograd.Function`: it sees the autocast of the forward.

    >>> import undertow as ut
    >>> decorator = ut.amp.custom_bwd(device_type="cpu")  # see custom_fwd
    """
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    is_autocast_available(device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        dtype, enabled = ctx._autocast
        with autocast(device_type, dtype=dtype, enabled=enabled):
            return bwd(ctx, *args, **kwargs)

    return backward


def _cast(value: Any, dtype: DType) -> Any:
    """Floating tensors but float64 in `dtype`, also inside lists, tuples and dicts."""
    if isinstance(value, Tensor):
        ours = value.is_floating_point() and value.dtype is not dtypes.float64
        return value.to(dtype) if ours else value
    if isinstance(value, dict):
        return {k: _cast(v, dtype) for k, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_cast(v, dtype) for v in value)
    return value
