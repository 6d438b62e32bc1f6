"""A softmax over very many classes, cheap for those that are frequent."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ...core.register import FUNCTIONS
from ...core.tensor import Tensor
from ...errors import ArgumentError, ShapeError
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of the targets, and their negative mean (Grave and others, 2016).

    The classes stand in order of frequency. Those before the first cutoff are in the head,
    together with one entry for each cluster of the others, whose own products are narrower by
    `div_value` from cluster to cluster and run only for the rows that need them.

    >>> import undertow as ut
    >>> layer = ut.nn.AdaptiveLogSoftmaxWithLoss(16, 100, [10, 50])
    >>> out = layer(ut.rand(4, 16), ut.tensor([3, 20, 77, 0]))
    >>> out.output.shape, out.loss.shape, layer.log_prob(ut.rand(4, 16)).shape
    ((4,), (), (4, 100))
    """

    head: Linear
    tail: ModuleList

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        bounds = list(cutoffs)
        rising = all(low < high for low, high in pairwise([0, *bounds, n_classes]))
        if not bounds or not rising or any(int(c) != c for c in bounds):
            raise ArgumentError(
                "[AdaptiveLogSoftmaxWithLoss] cutoffs should be a sequence of unique, positive "
                "integers sorted in an increasing order, where each value is between 1 and "
                f"n_classes-1, got {bounds} for {n_classes} classes"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*bounds, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(bounds)
        self.head_size = self.shortlist_size + self.n_clusters
        how = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **how)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            width = int(in_features // div_value ** (i + 1))
            inner = Linear(in_features, width, bias=False, **how)
            self.tail.append(Sequential(inner, Linear(width, high - low, bias=False, **how)))

    def reset_parameters(self) -> None:
        """The start values of every product."""
        for module in self.modules():
            if isinstance(module, Linear):
                module.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        if target_.ndim > 1 or input_.ndim != target_.ndim + 1:
            raise ShapeError(
                "[AdaptiveLogSoftmaxWithLoss] expects an input (N, in_features) and a target (N), "
                f"or (in_features) and (), got shapes {input_.shape} and {target_.shape}"
            )
        single = target_.ndim == 0
        input = input_.unsqueeze(0) if single else input_
        target = target_.unsqueeze(0) if single else target_
        if input.shape[0] != target.shape[0]:
            raise ShapeError(
                "[AdaptiveLogSoftmaxWithLoss] input and target should have the same size in the "
                f"batch dimension, got {input.shape[0]} and {target.shape[0]}"
            )
        self._check_target(target)
        place = target  # of each row's entry in the head
        below = []  # the log-probabilities within the clusters, with the rows they belong to
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel():
                place = place.index_fill(0, rows, self.shortlist_size + i)
                logs = F.log_softmax(self.tail[i](input.index_select(0, rows)), 1)
                inside = (target.index_select(0, rows) - low).unsqueeze(1)
                below.append((rows, logs.gather(1, inside).squeeze(1)))
        output = F.log_softmax(self.head(input), 1).gather(1, place.unsqueeze(1)).squeeze(1)
        for rows, logs in below:
            output = output.index_add(0, rows, logs)
        return _ASMoutput(output.squeeze(0) if single else output, -output.mean())

    def _check_target(self, target: Tensor) -> None:
        if target.numel() and not (target.min() >= 0 and target.max() < self.n_classes):
            raise ArgumentError(
                f"[AdaptiveLogSoftmaxWithLoss] target values should be in [0, "
                f"{self.n_classes - 1}], but values in range [{target.min().item()}, "
                f"{target.max().item()}] were found"
            )

    def _full(self, input: Tensor, head: Tensor) -> Tensor:
        logs = F.log_softmax(head, 1)
        parts = [logs[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            own = self.shortlist_size + i
            parts.append(F.log_softmax(cluster(input), 1) + logs[:, own : own + 1])
        return FUNCTIONS["cat"](parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes: (N, n_classes)."""
        return self._full(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row; clusters are looked at only where they lead."""
        head = self.head(input)
        found = head.argmax(1)
        rows = (found >= self.shortlist_size).nonzero().squeeze(1)
        if not rows.numel():
            return found
        full = self._full(input.index_select(0, rows), head.index_select(0, rows))
        return found.index_copy(0, rows, full.argmax(1))
