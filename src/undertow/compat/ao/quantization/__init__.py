"""Rounding as quantisation would, in floating numbers: observers and fake quantisation.

There are no quantised tensors here, so what would make them (`convert`, `quantize_dynamic`)
refuses; what a model is trained with before is real.
"""

from ...on_demand import on_demand
from .fake_quantize import (
    FakeQuantize,
    FakeQuantizeBase,
    default_fake_quant,
    default_per_channel_weight_fake_quant,
    default_weight_fake_quant,
    disable_fake_quant,
    disable_observer,
    enable_fake_quant,
    enable_observer,
)
from .observer import (
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    NoopObserver,
    ObserverBase,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
    default_observer,
    default_per_channel_weight_observer,
    default_weight_observer,
)
from .qconfig import (
    QConfig,
    default_qat_qconfig,
    default_qconfig,
    get_default_qat_qconfig,
    get_default_qconfig,
)
from .stubs import DeQuantStub, QuantStub, QuantWrapper

__all__ = [
    "DeQuantStub",
    "FakeQuantize",
    "FakeQuantizeBase",
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver",
    "NoopObserver",
    "ObserverBase",
    "PerChannelMinMaxObserver",
    "PlaceholderObserver",
    "QConfig",
    "QuantStub",
    "QuantWrapper",
    "default_fake_quant",
    "default_observer",
    "default_per_channel_weight_fake_quant",
    "default_per_channel_weight_observer",
    "default_qat_qconfig",
    "default_qconfig",
    "default_weight_fake_quant",
    "default_weight_observer",
    "disable_fake_quant",
    "disable_observer",
    "enable_fake_quant",
    "enable_observer",
    "get_default_qat_qconfig",
    "get_default_qconfig",
]
__getattr__ = on_demand(globals(), {})  # the names of torch's that refuse
