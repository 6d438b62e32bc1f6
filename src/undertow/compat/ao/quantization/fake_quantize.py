"""Fake quantisation: modules that round to what integers could hold, with gradients."""

from __future__ import annotations

from typing import Any

from .... import dtypes
from ....core.register import FUNCTIONS
from ....core.tensor import Tensor
from ....errors import ArgumentError
from ....layouts import per_channel_symmetric, per_tensor_affine, per_tensor_symmetric
from ....nn import Module
from .observer import (
    PER_CHANNEL,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    _With,
    as_saved,
)


class FakeQuantizeBase(Module):
    """What can be switched on and off: rounding, and looking at what is to be rounded."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", FUNCTIONS["tensor"]([1], dtype=dtypes.uint8))
        self.register_buffer("observer_enabled", FUNCTIONS["tensor"]([1], dtype=dtypes.uint8))

    fake_quant_enabled: Tensor
    observer_enabled: Tensor

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Round, or let through."""
        self.fake_quant_enabled[0] = int(enabled)

    def disable_fake_quant(self) -> None:
        """Let through what comes."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Look at what comes, or keep the scale."""
        self.observer_enabled[0] = int(enabled)

    def disable_observer(self) -> None:
        """Keep the scale."""
        self.enable_observer(False)

    @classmethod
    def with_args(cls, **kwargs: Any) -> _With:
        """The class with some of its arguments, for a QConfig."""
        return _With(cls, **kwargs)


class FakeQuantize(FakeQuantizeBase):
    """Rounds to the numbers that integers of a scale and a zero point stand for.

    >>> import undertow as ut
    >>> round_ = ut.ao.quantization.FakeQuantize(quant_min=0, quant_max=3)
    >>> round_(ut.tensor([0.0, 0.4, 0.6, 3.0]))
    tensor([0., 0., 1., 3.])
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int | None = None,
        quant_max: int | None = None,
        is_dynamic: bool = False,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise ArgumentError(
                    f"[FakeQuantize] quant_min must not be above quant_max, got {quant_min} and "
                    f"{quant_max}"
                )
            observer_kwargs |= {"quant_min": quant_min, "quant_max": quant_max}
        observer_kwargs["is_dynamic"] = is_dynamic
        self.activation_post_process = observer(**observer_kwargs)
        self.quant_min = self.activation_post_process.quant_min
        self.quant_max = self.activation_post_process.quant_max
        self.is_dynamic = is_dynamic
        self.register_buffer("scale", FUNCTIONS["tensor"]([1.0]))
        self.register_buffer("zero_point", FUNCTIONS["tensor"]([0], dtype=dtypes.int32))
        self.dtype = self.activation_post_process.dtype
        self.qscheme = self.activation_post_process.qscheme
        self.ch_axis = getattr(self.activation_post_process, "ch_axis", -1)
        self.is_per_channel = self.qscheme in PER_CHANNEL

    def calculate_qparams(self, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """The scale and the zero point for what was seen so far."""
        found: tuple[Tensor, Tensor] = self.activation_post_process.calculate_qparams()
        return found

    def forward(self, X: Tensor) -> Tensor:
        """The rounded tensor; gradients go through where nothing was cut off."""
        if self.observer_enabled[0].item():
            self.activation_post_process(X.detach())
            scale, zero_point = self.calculate_qparams()
            self.scale = scale.to(self.scale.device)
            self.zero_point = zero_point.to(self.zero_point.device)
        if not self.fake_quant_enabled[0].item():
            return X
        ends = (self.quant_min, self.quant_max)
        if self.is_per_channel:
            per_channel = FUNCTIONS["fake_quantize_per_channel_affine"]
            return per_channel(X, self.scale, self.zero_point, self.ch_axis, *ends)
        per_tensor = FUNCTIONS["fake_quantize_per_tensor_affine"]
        return per_tensor(X, float(self.scale), int(self.zero_point), *ends)

    def extra_repr(self) -> str:
        """The range, the scale and the zero point."""
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, "
            f"observer_enabled={self.observer_enabled}, quant_min={self.quant_min}, "
            f"quant_max={self.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, "
            f"scale={self.scale}, zero_point={self.zero_point}"
        )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        as_saved(self, ("scale", "zero_point"), state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *args)


default_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=0,
    quant_max=255,
    dtype=dtypes.quint8,
    qscheme=per_tensor_affine,
    reduce_range=True,
)
default_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=dtypes.qint8,
    qscheme=per_tensor_symmetric,
    reduce_range=False,
)
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=dtypes.qint8,
    qscheme=per_channel_symmetric,
    reduce_range=False,
    ch_axis=0,
)


def enable_fake_quant(mod: Module) -> None:
    """For `model.apply`: round."""
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_fake_quant()


def disable_fake_quant(mod: Module) -> None:
    """For `model.apply`: do not round."""
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_fake_quant()


def enable_observer(mod: Module) -> None:
    """For `model.apply`: look at what comes."""
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_observer()


def disable_observer(mod: Module) -> None:
    """For `model.apply`: keep the scales."""
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_observer()
