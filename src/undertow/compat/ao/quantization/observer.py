"""Observers: modules that let tensors through and remember how large they were."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .... import dtypes
from ....core.register import FUNCTIONS
from ....core.tensor import Tensor
from ....dtypes import DType
from ....errors import ArgumentError, UnsupportedError
from ....layouts import (
    per_channel_affine,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
)
from ....nn import Module

_RANGES = {
    dtypes.quint8: (0, 255),
    dtypes.uint8: (0, 255),
    dtypes.qint8: (-128, 127),
    dtypes.int8: (-128, 127),
    dtypes.int16: (-(2**15), 2**15 - 1),
    dtypes.uint16: (0, 2**16 - 1),
    dtypes.qint32: (-(2**31), 2**31 - 1),
    dtypes.int32: (-(2**31), 2**31 - 1),
}
_UNSIGNED = (dtypes.quint8, dtypes.uint8, dtypes.uint16)
SYMMETRIC = (per_tensor_symmetric, per_channel_symmetric)
PER_CHANNEL = (per_channel_affine, per_channel_symmetric)


class _With(partial):  # type: ignore[type-arg]
    """A class with some of its arguments, as `with_args` gives it."""

    def with_args(self, **kwargs: Any) -> _With:
        """With more of them."""
        return _With(self.func, *self.args, **{**self.keywords, **kwargs})

    def with_callable_args(self, **kwargs: Any) -> _With:
        """With what these functions give; they are called now."""
        return self.with_args(**{name: make() for name, make in kwargs.items()})


def as_saved(module: Module, names: tuple[str, ...], state: Any, prefix: str) -> None:
    """Give buffers the shapes that they have in a state: of as many channels as were seen."""
    for name in names:
        saved = state.get(prefix + name)
        if isinstance(saved, Tensor) and saved.shape != getattr(module, name).shape:
            setattr(module, name, saved.clone())


class ObserverBase(Module):
    """What all observers have: the dtype that numbers are to be rounded for."""

    def __init__(self, dtype: DType, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype = dtype
        self.is_dynamic = is_dynamic

    def calculate_qparams(self, **kwargs: Any) -> Any:
        """The scale and the zero point."""
        raise NotImplementedError

    @classmethod
    def with_args(cls, **kwargs: Any) -> _With:
        """The class with some of its arguments, for a QConfig."""
        return _With(cls, **kwargs)

    @classmethod
    def with_callable_args(cls, **kwargs: Any) -> _With:
        """The class with what these functions give."""
        return _With(cls).with_callable_args(**kwargs)


class PlaceholderObserver(ObserverBase):
    """Lets tensors through, and tells the dtype that it was made with."""

    def __init__(
        self,
        dtype: DType = dtypes.float32,
        custom_op_name: str = "",
        compute_dtype: Any = None,
        quant_min: int | None = None,
        quant_max: int | None = None,
        qscheme: Any = None,
        eps: float | None = None,
        is_dynamic: bool = False,
    ) -> None:
        super().__init__(dtype, is_dynamic)
        self.qscheme = per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max, self.eps = quant_min, quant_max, eps
        self.custom_op = custom_op_name

    def forward(self, x: Tensor) -> Tensor:
        """The tensor itself."""
        return x


class NoopObserver(ObserverBase):
    """Lets tensors through."""

    def __init__(self, dtype: DType = dtypes.float16, custom_op_name: str = "") -> None:
        super().__init__(dtype)
        self.custom_op = custom_op_name

    def forward(self, x: Tensor) -> Tensor:
        """The tensor itself."""
        return x


class MinMaxObserver(ObserverBase):
    """Remembers the smallest and the largest element of what it has seen.

    >>> import undertow as ut
    >>> observer = ut.ao.quantization.MinMaxObserver()
    >>> _ = observer(ut.tensor([0.0, 2.55]))
    >>> observer.calculate_qparams()
    (tensor([0.0100]), tensor([0], dtype=undertow.int32))
    """

    min_val: Tensor
    max_val: Tensor
    _schemes: tuple[Any, ...] = (per_tensor_affine, per_tensor_symmetric)

    def __init__(
        self,
        dtype: DType = dtypes.quint8,
        qscheme: Any = per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: Any = None,
        eps: float = 2.0**-23,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(dtype, is_dynamic)
        name = type(self).__name__
        if qscheme not in self._schemes:
            raise UnsupportedError(
                f"[{name}] takes the schemes {', '.join(map(repr, self._schemes))}, got {qscheme!r}"
            )
        if dtype not in _RANGES:
            raise ArgumentError(f"[{name}] is for integers of at most 32 bits, got {dtype}")
        self.qscheme, self.reduce_range = qscheme, reduce_range
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        low, high = _RANGES[dtype]
        if self.has_customized_qrange:
            low, high = quant_min, quant_max  # type: ignore[assignment]
            if not low <= 0 <= high or low >= high:
                raise ArgumentError(f"[{name}] the range must hold 0, got {low} to {high}")
        if reduce_range:
            low, high = low // 2, high // 2
        self.quant_min, self.quant_max = low, high
        self.register_buffer("eps", FUNCTIONS["tensor"]([eps]))
        inf = float("inf")
        self.register_buffer("min_val", FUNCTIONS["tensor"](inf))
        self.register_buffer("max_val", FUNCTIONS["tensor"](-inf))

    def _extremes(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.amin(), x.amax()

    def _joined(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        return FUNCTIONS["minimum"](low, self.min_val), FUNCTIONS["maximum"](high, self.max_val)

    def forward(self, x_orig: Tensor) -> Tensor:
        """The tensor itself, which has been looked at."""
        if x_orig.numel():
            x = x_orig.detach().to(self.min_val.dtype)
            low, high = self._extremes(x)
            if self.min_val.shape == low.shape:
                low, high = self._joined(low, high)
            self.min_val, self.max_val = low, high
        return x_orig

    def calculate_qparams(self, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """The scale and the zero point for what was seen so far."""
        return self._qparams(self.min_val, self.max_val)

    def _qparams(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        where, least, most = FUNCTIONS["where"], FUNCTIONS["minimum"], FUNCTIONS["maximum"]
        unseen = low > high
        low = where(unseen, 0.0, low)
        high = where(unseen, 0.0, high)
        low, high = (
            least(low, FUNCTIONS["zeros_like"](low)),
            most(high, FUNCTIONS["zeros_like"](high)),
        )
        span = float(self.quant_max - self.quant_min)
        if self.qscheme in SYMMETRIC:
            high = most(-low, high)
            scale = most(high / (span / 2), self.eps)
            middle = 0
            if self.dtype in _UNSIGNED:
                middle = (
                    (self.quant_min + self.quant_max) // 2 if self.has_customized_qrange else 128
                )
            zero = FUNCTIONS["full_like"](scale, middle).long()
        else:
            scale = most((high - low) / span, self.eps)
            zero = (
                (self.quant_min - (low / scale).round()).clamp(self.quant_min, self.quant_max).int()
            )
        scale = where(unseen, 1.0, scale)
        return scale.reshape(-1), where(unseen, 0, zero).to(zero.dtype).reshape(-1)

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        inf = float("inf")
        self.min_val, self.max_val = FUNCTIONS["tensor"](inf), FUNCTIONS["tensor"](-inf)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        as_saved(self, ("min_val", "max_val"), state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        """The extremes."""
        return f"min_val={self.min_val.tolist()}, max_val={self.max_val.tolist()}"


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Remembers a moving average of the smallest and the largest element."""

    def __init__(
        self, averaging_constant: float = 0.01, dtype: DType = dtypes.quint8, **kwargs: Any
    ) -> None:
        super().__init__(dtype, **kwargs)
        self.averaging_constant = averaging_constant

    def _joined(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        if bool((self.min_val > self.max_val).all()):  # the first ones
            return low, high
        c = self.averaging_constant
        return self.min_val + c * (low - self.min_val), self.max_val + c * (high - self.max_val)


class PerChannelMinMaxObserver(MinMaxObserver):
    """Remembers the smallest and the largest element of every channel."""

    _schemes = PER_CHANNEL

    def __init__(
        self,
        ch_axis: int = 0,
        dtype: DType = dtypes.quint8,
        qscheme: Any = per_channel_affine,
        **kwargs: Any,
    ) -> None:
        super().__init__(dtype, qscheme, **kwargs)
        self.ch_axis = ch_axis
        self.reset_min_max_vals()

    def _extremes(self, x: Tensor) -> tuple[Tensor, Tensor]:
        rows = x.movedim(self.ch_axis, 0).reshape(x.shape[self.ch_axis], -1)
        return rows.amin(1), rows.amax(1)

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.min_val, self.max_val = FUNCTIONS["zeros"](0), FUNCTIONS["zeros"](0)


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Remembers a moving average of the extremes of every channel."""

    def __init__(
        self,
        averaging_constant: float = 0.01,
        ch_axis: int = 0,
        dtype: DType = dtypes.quint8,
        qscheme: Any = per_channel_affine,
        **kwargs: Any,
    ) -> None:
        super().__init__(ch_axis, dtype, qscheme, **kwargs)
        self.averaging_constant = averaging_constant

    _joined = MovingAverageMinMaxObserver._joined


default_observer: Callable[..., Any] = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_weight_observer: Callable[..., Any] = MinMaxObserver.with_args(
    dtype=dtypes.qint8, qscheme=per_tensor_symmetric
)
default_per_channel_weight_observer: Callable[..., Any] = PerChannelMinMaxObserver.with_args(
    dtype=dtypes.qint8, qscheme=per_channel_symmetric
)
