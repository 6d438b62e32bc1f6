"""Normalisation of each channel of each element of a batch by itself."""

from __future__ import annotations

import warnings
from typing import Any

from ...core.tensor import Tensor
from ...errors import ShapeError
from .. import functional as F
from .batchnorm import _LazyNormBase, _NormBase


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        single = input.ndim == self._ndims[0]
        dim = 0 if single else 1
        if input.shape[dim] != self.num_features:
            self._other_features(dim, input.shape[dim])
        out = F.instance_norm(
            input.unsqueeze(0) if single else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return out.squeeze(0) if single else out

    def _other_features(self, dim: int, got: int) -> None:
        if self.affine:
            raise ShapeError(
                f"[{type(self).__name__}] expected input's size at dim={dim} to match num_features "
                f"({self.num_features}), but got: {got}."
            )
        warnings.warn(
            f"input's size at dim={dim} does not match num_features. You can silence this warning "
            "by not passing in num_features, which is not used because affine=False",
            stacklevel=3,
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        if local_metadata.get("version") is None and not self.track_running_stats:
            keys = [f"{prefix}{name}" for name in ("running_mean", "running_var")]
            old = [key for key in keys if key in state_dict]
            if old:  # torch kept statistics in any case before 0.4
                named = " and ".join([f'"{key}"' for key in old])
                rest[-1].append(
                    f"Unexpected running stats buffer(s) {named} for {type(self).__name__} with "
                    "track_running_stats=False. Remove them from the state_dict, or make the "
                    "layer with track_running_stats=True if they are needed."
                )
            for key in old:
                state_dict.pop(key)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class InstanceNorm1d(_InstanceNorm):
    """Each channel of each element of (N, C, L) or (C, L) with mean 0 and variance 1.

    >>> import undertow as ut
    >>> ut.nn.InstanceNorm1d(1)(ut.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """

    _ndims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Each channel of each element of (N, C, H, W) or (C, H, W) with mean 0 and variance 1.

    >>> import undertow as ut
    >>> ut.nn.InstanceNorm2d(3, affine=True)(ut.rand(2, 3, 4, 4)).shape
    (2, 3, 4, 4)
    """

    _ndims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Each channel of each element of (N, C, D, H, W) or (C, D, H, W) with mean 0 and variance 1.

    >>> import undertow as ut
    >>> ut.nn.InstanceNorm3d(3)(ut.rand(2, 3, 2, 2, 2)).shape
    (2, 3, 2, 2, 2)
    """

    _ndims = (4, 5)


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm1d that takes `num_features` from its first input.

    >>> import undertow as ut
    >>> ut.nn.LazyInstanceNorm1d()(ut.rand(4, 3, 2)).shape
    (4, 3, 2)
    """

    cls_to_become = InstanceNorm1d
    _ndims = (2, 3)


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm2d that takes `num_features` from its first input.

    >>> import undertow as ut
    >>> ut.nn.LazyInstanceNorm2d()(ut.rand(4, 3, 2, 2)).shape
    (4, 3, 2, 2)
    """

    cls_to_become = InstanceNorm2d
    _ndims = (3, 4)


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm3d that takes `num_features` from its first input.

    >>> import undertow as ut
    >>> ut.nn.LazyInstanceNorm3d()(ut.rand(4, 3, 2, 2, 2)).shape
    (4, 3, 2, 2, 2)
    """

    cls_to_become = InstanceNorm3d
    _ndims = (4, 5)
