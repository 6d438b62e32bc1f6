"""Which observers a model is to have: for activations, and for weights."""

from __future__ import annotations

from typing import Any, NamedTuple

from ....errors import ArgumentError
from .fake_quantize import (
    FakeQuantize,
    default_fake_quant,
    default_per_channel_weight_fake_quant,
    default_weight_fake_quant,
)
from .observer import (
    MovingAverageMinMaxObserver,
    default_observer,
    default_per_channel_weight_observer,
    default_weight_observer,
)


class QConfig(NamedTuple):
    """Functions that make observers, or fake quantisers, of activations and of weights.

    >>> from undertow.ao.quantization import MinMaxObserver, QConfig
    >>> QConfig(activation=MinMaxObserver, weight=MinMaxObserver).activation()
    MinMaxObserver(min_val=inf, max_val=-inf)
    """

    activation: Any
    weight: Any


default_qconfig = QConfig(default_observer, default_weight_observer)
default_qat_qconfig = QConfig(default_fake_quant, default_weight_fake_quant)
_BACKENDS = ("fbgemm", "onednn", "qnnpack", "x86")


def _check(op: str, backend: str) -> None:
    if backend not in _BACKENDS:
        raise ArgumentError(
            f"[{op}] backend must be one of {', '.join(_BACKENDS)}, got {backend!r}"
        )


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """Observers of activations by tensor, of weights by channel."""
    _check("get_default_qconfig", backend)
    return QConfig(default_observer, default_per_channel_weight_observer)


def get_default_qat_qconfig(backend: str = "x86", version: int = 1) -> QConfig:
    """Fake quantisers of activations by tensor, of weights by channel.

    >>> import undertow as ut
    >>> config = ut.ao.quantization.get_default_qat_qconfig()
    >>> config.weight()(ut.tensor([[1.275, 0.3], [127.5, 0.3]]))
    tensor([[  1.2700,   0.3000],
            [127.0000,   0.0000]])
    """
    _check("get_default_qat_qconfig", backend)
    activation = FakeQuantize.with_args(
        observer=MovingAverageMinMaxObserver,
        quant_min=0,
        quant_max=255,
        reduce_range=backend == "fbgemm",
    )
    return QConfig(activation, default_per_channel_weight_fake_quant)
