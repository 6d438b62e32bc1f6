"""Normalisation by the statistics of a batch, which are also gathered for evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ... import dtypes
from ...core.register import FUNCTIONS
from ...core.tensor import Tensor
from ...errors import ShapeError
from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedBuffer, UninitializedParameter
from .lazy import LazyModuleMixin
from .linear import new_parameter
from .module import Module


class _NormBase(Module):
    """What batch and instance norm share: a gain and a bias per channel, running statistics."""

    _version = 2
    _ndims: ClassVar[tuple[int, ...]]  # how many dimensions an input may have
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        how = {"device": device, "dtype": dtype}
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, new_parameter(num_features, **how) if wanted else None)
        zeros = FUNCTIONS["zeros"]
        for name in ("running_mean", "running_var"):
            self.register_buffer(name, zeros(num_features, **how) if track_running_stats else None)
        counted = zeros((), device=device, dtype=dtypes.int64) if track_running_stats else None
        self.register_buffer("num_batches_tracked", counted)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget what has been gathered: mean 0, variance 1, no batches."""
        if self.running_mean is not None:
            assert self.running_var is not None
            assert self.num_batches_tracked is not None
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """A gain of 1, a bias of 0, no statistics."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in self._ndims:
            wanted = " or ".join([f"{n}D" for n in self._ndims])
            raise ShapeError(
                f"[{type(self).__name__}] expected {wanted} input (got {input.ndim}D input)"
            )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        counted = f"{prefix}num_batches_tracked"
        old = local_metadata.get("version") or 1
        if old < 2 and self.track_running_stats and counted not in state_dict:
            mine = self.num_batches_tracked  # it came with version 2
            if mine is None or mine.device.type == "meta":
                mine = FUNCTIONS["zeros"]((), device="cpu", dtype=dtypes.int64)
            state_dict[counted] = mine
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        mean, var = self.running_mean, self.running_var
        if not self.training:
            batch = mean is None and var is None
            return F.batch_norm(
                input, mean, var, self.weight, self.bias, batch, self.momentum or 0.0, self.eps
            )
        if not self.track_running_stats:
            return F.batch_norm(
                input, None, None, self.weight, self.bias, True, self.momentum or 0.0, self.eps
            )
        counted = self.num_batches_tracked
        momentum = 0.0 if self.momentum is None and counted is None else self.momentum
        return F.batch_norm(
            input,
            mean,
            var,
            self.weight,
            self.bias,
            True,
            momentum,
            self.eps,
            num_batches_tracked=counted,
        )


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """A norm that takes `num_features` from its first input."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = FUNCTIONS["zeros"]((), device=device, dtype=dtypes.int64)

    def reset_parameters(self) -> None:
        """Nothing, until there is an input."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Make the parameters and statistics for such an input."""
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            for value in (self.weight, self.bias, self.running_mean, self.running_var):
                if value is not None:
                    value.materialize((self.num_features,))  # type: ignore[attr-defined]
            self.reset_parameters()
        elif self.num_features == 0:  # loaded from a state_dict, or nothing to make
            self.num_features = input.shape[1]


class BatchNorm1d(_BatchNorm):
    """Each channel of (N, C) or (N, C, L) with mean 0 and variance 1, times a gain plus a bias.

    In training by the mean and variance of the batch, which are gathered in `running_mean` and
    `running_var`; in evaluation by those two. A momentum of None gathers the mean over all batches.

    >>> import undertow as ut
    >>> norm = ut.nn.BatchNorm1d(1, affine=False)
    >>> norm(ut.tensor([[1.0], [3.0]])), norm.running_mean
    (tensor([[-1.0000],
             [ 1.0000]]), tensor([0.2000]))
    """

    _ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Each channel of (N, C, H, W) with mean 0 and variance 1; see `BatchNorm1d`.

    >>> import undertow as ut
    >>> ut.nn.BatchNorm2d(3)(ut.rand(2, 3, 4, 4)).mean().abs().item() < 1e-6
    True
    """

    _ndims = (4,)


class BatchNorm3d(_BatchNorm):
    """Each channel of (N, C, D, H, W) with mean 0 and variance 1; see `BatchNorm1d`.

    >>> import undertow as ut
    >>> ut.nn.BatchNorm3d(3)(ut.rand(2, 3, 2, 2, 2)).shape
    (2, 3, 2, 2, 2)
    """

    _ndims = (5,)


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A BatchNorm1d that takes `num_features` from its first input.

    >>> import undertow as ut
    >>> norm = ut.nn.LazyBatchNorm1d()
    >>> _ = norm(ut.rand(4, 3))
    >>> norm.num_features
    3
    """

    cls_to_become = BatchNorm1d
    _ndims = (2, 3)


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A BatchNorm2d that takes `num_features` from its first input.

    >>> import undertow as ut
    >>> ut.nn.LazyBatchNorm2d()(ut.rand(4, 3, 2, 2)).shape
    (4, 3, 2, 2)
    """

    cls_to_become = BatchNorm2d
    _ndims = (4,)


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A BatchNorm3d that takes `num_features` from its first input.

    >>> import undertow as ut
    >>> ut.nn.LazyBatchNorm3d()(ut.rand(4, 3, 2, 2, 2)).shape
    (4, 3, 2, 2, 2)
    """

    cls_to_become = BatchNorm3d
    _ndims = (5,)


class SyncBatchNorm(_BatchNorm):
    """A batch norm of any number of dimensions, by the mean and variance over all processes.

    >>> import undertow as ut
    >>> ut.nn.SyncBatchNorm(3)(ut.rand(4, 3, 2)).shape
    (4, 3, 2)
    """

    # (input, layer) → result over all processes; set when a group of several is made.
    over_processes: ClassVar[Callable[[Tensor, Any], Tensor] | None] = None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ShapeError(
                f"[SyncBatchNorm] expected at least 2D input (got {input.ndim}D input)"
            )

    def forward(self, input: Tensor) -> Tensor:
        """Normalise each channel; in training all processes of the group call it."""
        together = SyncBatchNorm.over_processes
        if together is None or not (self.training or self.running_mean is None):
            return super().forward(input)
        self._check_input_dim(input)
        return together(input, self)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The same tree with a SyncBatchNorm in place of every batch norm.

        >>> import undertow as ut
        >>> model = ut.nn.Sequential(ut.nn.Linear(2, 3), ut.nn.BatchNorm1d(3))
        >>> type(ut.nn.SyncBatchNorm.convert_sync_batchnorm(model)[1]).__name__
        'SyncBatchNorm'
        """
        made = module
        if isinstance(module, _BatchNorm):
            made = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            made._parameters = dict(module._parameters)
            made._buffers = dict(module._buffers)
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made
