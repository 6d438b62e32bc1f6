"""Neighbouring layers of a `Sequential` in evaluation, computed as one.

Note [fused evaluation]
Where nothing is recorded, a convolution, the batch norm behind it and a ReLU are one convolution:
the statistics of the norm are fixed, so the weight and the bias take them in, and what is negative
becomes 0 as it is stored. That is so of modules of exactly these classes, on which nobody has hung
a hook; everything else is called one after the other. A norm is taken in if that is little work
beside its own pass over the result. This depends on sizes, but not on the batch, so that an element
has the same bits in every batch; rounding differs from the layers' one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ... import dtypes
from ...core.autocast import autocast_on
from ...core.modes import current
from ...core.tensor import Tensor
from .. import functional as F
from .activation import ReLU
from .batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from .calling import GLOBAL_CALLS, with_path
from .conv import Conv1d, Conv2d, Conv3d
from .module import Module

_CONVOLUTIONS: dict[type[Module], Any] = {
    Conv1d: (BatchNorm1d, F.conv1d),
    Conv2d: (BatchNorm2d, F.conv2d),
    Conv3d: (BatchNorm3d, F.conv3d),
}
_OTHERS: list[type[Module]] = [BatchNorm1d, BatchNorm2d, BatchNorm3d, ReLU]
_FORWARDS = {kind: kind.forward for kind in [*_CONVOLUTIONS, *_OTHERS]}
_LITTLE = 2  # passes over the result of one image that taking in a norm may cost


def evaluated(modules: Iterable[Module], x: Any) -> Any:
    """The output of the last module, each called with what the one before it gave."""
    listed = [*modules, None, None]
    state = current()
    fuse = state.around is None and not autocast_on() and not GLOBAL_CALLS
    while (layer := listed.pop(0)) is not None:
        norm, relu = None, False
        if fuse and type(layer) in _CONVOLUTIONS and _fits(layer, x):
            if _takes_in(layer, listed[0], x):
                norm = listed.pop(0)
            if type(listed[0]) is ReLU and _bare(listed[0]):
                relu = listed.pop(0) is not None
        x = _as_one(layer, norm, relu, x) if norm is not None or relu else layer(x)
    return x


def _bare(module: Any) -> bool:
    """Whether a call is the forward that its class was written with, and nothing else."""
    return (
        module._hooks is None
        and "forward" not in module.__dict__
        and type(module).forward is _FORWARDS[type(module)]
    )


def _fits(layer: Any, x: Any) -> bool:
    return (
        _bare(layer)
        and isinstance(x, Tensor)
        and x.dtype in (dtypes.float32, dtypes.float64)
        and x.dtype is layer.weight.dtype
        and x.ndim == layer.weight.ndim
    )


def _takes_in(layer: Any, norm: Any, x: Tensor) -> bool:
    """Whether a convolution should take in what follows it, because that is a norm."""
    if type(norm) is not _CONVOLUTIONS[type(layer)][0] or norm.training or not _bare(norm):
        return False
    given = (norm.running_mean, norm.running_var, norm.weight, norm.bias)
    kept = [t for t in given if t is not None]
    if norm.running_mean is None or norm.running_var is None or not norm.eps > 0:
        return False
    if any(t.dtype is not x.dtype or t.shape != (layer.out_channels,) for t in kept):
        return False
    positions = math.prod(x.shape[2:]) / math.prod(layer.stride)
    return bool(layer.weight.numel() <= _LITTLE * positions * layer.out_channels)


def _as_one(layer: Any, norm: Any, relu: bool, x: Tensor) -> Tensor:
    weight, bias = layer.weight, layer.bias
    if norm is not None:
        from ..utils.fusion import fuse_conv_bn_weights

        fixed = norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
        weight, bias = fuse_conv_bn_weights(weight, bias, *fixed)
    try:
        found: Tensor = _CONVOLUTIONS[type(layer)][1](
            x,
            weight,
            bias,
            layer.stride,
            layer.padding,
            layer.dilation,
            layer.groups,
            padding_mode=layer.padding_mode,
            activation="relu" if relu else None,
        )
    except Exception as error:
        with_path(error, layer)
        raise
    return found
