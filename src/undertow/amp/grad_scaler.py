"""`GradScaler`: scale a loss so that small gradients survive in float16, and undo it afterwards."""

from __future__ import annotations

import warnings
import weakref
from typing import Any

from ..backends.registry import is_present
from ..core.modes import no_grad
from ..core.recording import RECORDERS, recorder, refuse, told
from ..core.register import FUNCTIONS
from ..core.tensor import Tensor
from ..dtypes import float16
from ..errors import ArgumentError, DTypeError, GradientError


def _with_gradients(optimizer: Any) -> list[Any]:
    """The parameters of an optimiser that have a gradient."""
    return [p for g in optimizer.param_groups for p in g["params"] if p.grad is not None]


def _finite(grads: list[Any]) -> bool:
    """Whether they are, which is looked at once for each device."""
    flags: dict[Any, list[Any]] = {}
    for grad in grads:
        flags.setdefault(grad.device, []).append(grad.isfinite().all())
    return all(bool(FUNCTIONS["stack"](few).all()) for few in flags.values())


class Scaling:
    """What a program that was recorded with a scaler needs it to be; see core/recording."""

    def __init__(self, scaler: GradScaler) -> None:
        self.optimizer = scaler  # what it is of
        self._scale = scaler._scale
        if scaler._seen:
            refuse("gradients are unscaled outside, and stepped inside")

    def holds(self) -> bool:
        """Whether the scaler would do the same again, but for what is asked of the gradients."""
        scaler = self.optimizer
        return scaler._scale == self._scale and not scaler._seen and scaler._used

    def left(self) -> str | None:
        """What the recorded call has left undone."""
        return "a GradScaler is not updated inside" if self.optimizer._seen else None


class GradScaler:
    """Multiply the loss by a factor that grows until gradients overflow, and divide them again.

    A step whose gradients hold an infinity or NaN is left out, and the factor shrinks.
    With bfloat16 it is rarely needed. For `device="cuda"`, torch's default, it warns
    and does nothing where there is no such device; say `device="cpu"` to use it here.

    >>> import undertow as ut
    >>> scaler = ut.amp.GradScaler("cpu", init_scale=4.0)
    >>> x = ut.ones(2, requires_grad=True)
    >>> scaler.scale(x.sum()).backward()
    >>> x.grad
    tensor([4., 4.])
    >>> scaler.get_scale()
    4.0
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        present = is_present(device)
        if enabled and not present:
            warnings.warn(
                f"GradScaler for {device!r}, but there is no such device here. Disabling.",
                stacklevel=2,
            )
        self._device = device
        self._enabled = bool(enabled) and present
        if self._enabled and growth_factor <= 1.0:
            raise ArgumentError(f"[GradScaler] growth_factor must be above 1, got {growth_factor}")
        if self._enabled and backoff_factor >= 1.0:
            raise ArgumentError(
                f"[GradScaler] backoff_factor must be below 1, got {backoff_factor}"
            )
        self._scale = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0  # updates in a row without an overflow
        self._used = False  # whether a loss has been scaled
        # What was found in an optimiser's gradients since the last update: (overflow, stepped).
        self._seen: weakref.WeakKeyDictionary[Any, tuple[bool, bool]] = weakref.WeakKeyDictionary()

    def scale(self, outputs: Any) -> Any:
        """A tensor, or each of an iterable of tensors, times the factor."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            self._used = True
            if RECORDERS and recorder() is not None:
                recorder().watch(Scaling(self))
            return outputs * self._scale
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(o) for o in outputs)
        if hasattr(outputs, "__iter__") and not isinstance(outputs, (str, bytes)):
            return map(self.scale, outputs)
        raise DTypeError(
            f"[GradScaler.scale] expects tensors, got {type(outputs).__name__} {outputs!r}"
        )

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimiser's parameters by the factor, once per update."""
        if not self._enabled:
            return
        self._check_used("unscale_")
        if optimizer in self._seen:
            after = "step()" if self._seen[optimizer][1] else "another unscale_()"
            raise GradientError(
                f"[GradScaler.unscale_] comes after {after} of this optimizer; call update() first"
            )
        inverse = 1.0 / self._scale
        with no_grad():
            grads = [param.grad for param in _with_gradients(optimizer)]
            for grad in grads:
                if grad.dtype is float16:
                    raise ArgumentError(
                        f"[GradScaler.unscale_] the gradient of a parameter of shape "
                        f"{tuple(grad.shape)} is float16; keep parameters in float32 and use "
                        "autocast for the forward"
                    )
            overflow = not _finite(grads)
            for grad in grads:
                grad.mul_(inverse)
        self._seen[optimizer] = (overflow, False)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step(…)` with unscaled gradients, unless one of them overflowed.

        An optimiser whose `_step_supports_amp_scaling` is True is always called, and finds the
        factor of its gradients as `grad_scale` (None if they are unscaled) and as `found_inf`
        whether one overflowed.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise ArgumentError("[GradScaler.step] closures are not supported while it is enabled")
        self._check_used("step")
        if self._seen.get(optimizer, (False, False))[1]:
            raise GradientError(
                "[GradScaler.step] was called on this optimizer already; call update() first"
            )
        if not _with_gradients(optimizer):
            raise AssertionError(
                "No inf checks were recorded for this optimizer: none of its parameters has a "
                "gradient; were they made from another model?"
            )
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._step_of_its_own(optimizer, args, kwargs)
        if optimizer not in self._seen:
            self.unscale_(optimizer)
        overflow, _ = self._seen[optimizer]
        result = None if overflow else optimizer.step(*args, **kwargs)
        self._seen[optimizer] = (overflow, True)
        return result

    def _step_of_its_own(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        """The step of an optimiser that divides by the factor itself."""
        scaled = optimizer not in self._seen
        if scaled:
            overflow = not _finite([p.grad for p in _with_gradients(optimizer)])
            self._seen[optimizer] = (overflow, False)
        overflow, _ = self._seen[optimizer]
        make = FUNCTIONS["tensor"]
        before = getattr(optimizer, "grad_scale", 1.0)
        optimizer.grad_scale = make(self._scale) * before if scaled else None
        optimizer.found_inf = make(float(overflow))
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            self._seen[optimizer] = (overflow, True)
            del optimizer.grad_scale, optimizer.found_inf

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Shrink the factor after an overflow, let it grow after enough good steps, or set it."""
        if not self._enabled:
            return
        self._check_used("update")
        if new_scale is not None:
            refuse("the factor of a GradScaler is set")
            self._scale = float(new_scale)
        elif not self._seen:
            raise GradientError(
                "[GradScaler.update] no gradients were looked at since the last update; call "
                "step(optimizer) or unscale_(optimizer) first"
            )
        else:
            overflow = any(overflow for overflow, _ in self._seen.values())
            if not told(self._adapt, overflow):
                self._adapt(overflow)
        self._seen.clear()

    def _adapt(self, overflow: bool) -> None:
        """Shrink the factor, or count, and let it grow at last."""
        if overflow:
            self._scale *= self._backoff_factor
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                grown = self._scale * self._growth_factor
                self._scale = grown if grown <= _LARGEST else self._scale
                self._growth_tracker = 0

    def _check_used(self, name: str) -> None:
        if not self._used:
            raise GradientError(
                f"[GradScaler.{name}] no loss was scaled; use scaler.scale(loss).backward()"
            )

    # What it is set to ----------------------------------------------------------------------
    def get_scale(self) -> float:
        """The factor; 1 when it is not enabled."""
        refuse("the factor of a GradScaler is read")
        return self._scale if self._enabled else 1.0

    def is_enabled(self) -> bool:
        """Whether it does anything."""
        return self._enabled

    def get_growth_factor(self) -> float:
        """By what the factor grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set by what the factor grows."""
        refuse("options of a GradScaler are set")
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """By what the factor shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set by what the factor shrinks."""
        refuse("options of a GradScaler are set")
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many good updates the factor grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many good updates the factor grows."""
        refuse("options of a GradScaler are set")
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` restores; empty when it is not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a `state_dict`."""
        if not self._enabled:
            return
        refuse("the state of a GradScaler is loaded")
        if not state_dict:
            raise ArgumentError(
                "[GradScaler.load_state_dict] the state is empty: it was saved by a scaler that "
                "was not enabled"
            )
        self._scale = float(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]

    def __getstate__(self) -> dict[str, Any]:
        if self._enabled and len(self._seen):
            raise GradientError(
                "[GradScaler] can be pickled at the beginning of an iteration or after update(), "
                "not in between"
            )
        return {n: v for n, v in self.__dict__.items() if n != "_seen"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _seen=weakref.WeakKeyDictionary())


_LARGEST = 3.4028234663852886e38  # of float32, which torch keeps the factor in
