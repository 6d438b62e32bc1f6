"""Batch norm by the statistics of all processes, for `nn.SyncBatchNorm`.

The sums travel in a group of their own, since gradients of other layers may be under way. Each sum
has a number, counted in the forward, so that sums of two branches cannot be mixed up.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from ..autograd.function import Function
from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..errors import ShapeError
from ..ops.create.from_data import tensor as tensor_of
from . import functions, groups
from .reductions import ReduceOp

_numbers = count()


class _Sum(Function):
    """A sum over processes; its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any, label: str) -> Tensor:
        """The sum, the same everywhere to the bit."""
        ctx.group, ctx.label, ctx.in_order = group, label, True
        total = x.detach().clone()
        functions.all_reduce(total, ReduceOp.SUM, group, label=label)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Every process has used the sum."""
        summed = _Sum.apply(gradients[0].contiguous(), ctx.group, f"{ctx.label} gradient")
        return summed, None, None


def batch_norm(x: Tensor, layer: Any) -> Tensor:
    """Normalise the channels of an input, part of which each process has.

    Sums of halves are sums of float32: in float16 they end at 65504.
    """
    given = x.dtype
    if given.itemsize < 4:
        x = x.float()
    group = groups.helper(
        groups.resolved("SyncBatchNorm", layer.process_group), "batch norm", groups.HELPERS - 1
    )
    label = f"SyncBatchNorm {next(_numbers)}"
    dims = [d for d in range(x.ndim) if d != 1]
    shape = [1, -1] + [1] * (x.ndim - 2)
    own = x.numel() // max(1, x.shape[1])
    known = tensor_of([own])
    functions.all_reduce(known, ReduceOp.SUM, group, label=label)
    total = int(known.item())
    if total < 2:
        raise ShapeError(
            f"[SyncBatchNorm] training needs more than one element in a channel, got {total} over "
            f"{group.members} processes"
        )
    mean = _Sum.apply(x.sum(dims), group, f"{label} mean") / total
    centred = x - mean.reshape(shape)
    variance = _Sum.apply((centred * centred).sum(dims), group, f"{label} variance") / total
    y = centred * (variance + layer.eps).rsqrt().reshape(shape)
    if layer.weight is not None:
        y = y * layer.weight.reshape(shape)
    if layer.bias is not None:
        y = y + layer.bias.reshape(shape)
    if layer.training and layer.running_mean is not None:
        _move(layer, mean, variance * (total / (total - 1)))
    return y.to(given)


def _move(layer: Any, mean: Tensor, variance: Tensor) -> None:
    """The running statistics go towards those of this batch."""
    with no_grad():
        if layer.num_batches_tracked is not None:
            layer.num_batches_tracked.add_(1)
        share = layer.momentum
        if share is None:
            share = 1.0 / layer.num_batches_tracked.item()
        for running, new in ((layer.running_mean, mean), (layer.running_var, variance)):
            running.mul_(1 - share).add_(new.detach().to(running.dtype) * share)
