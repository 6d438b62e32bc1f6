"""Losses: layers without parameters that say how wrong an output is."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ...core.tensor import Tensor
from ...errors import ArgumentError
from ...ops.nn.linear_cross_entropy import LinearCrossEntropyOptions
from ...ops.nn.losses import legacy_reduction
from .. import functional as F
from .distance import PairwiseDistance
from .linear import Linear
from .module import Module


class _Loss(Module):
    """What losses share: whether the mean, the sum or all of the losses are wanted."""

    reduction: str

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            reduction = legacy_reduction(size_average, reduce)
        self.reduction = reduction


class _WeightedLoss(_Loss):
    """A loss with a weight for each class or element, which is a buffer."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


# Of numbers --------------------------------------------------------------------------------------
class L1Loss(_Loss):
    """The absolute error.

    >>> import undertow as ut
    >>> ut.nn.L1Loss()(ut.tensor([1.0, 2.0]), ut.tensor([1.0, 4.0]))
    tensor(1.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """The squared error.

    >>> import undertow as ut
    >>> ut.nn.MSELoss()(ut.tensor([1.0, 2.0]), ut.tensor([1.0, 4.0]))
    tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """The absolute error, rounded off to a parabola where it is below `beta`.

    >>> import undertow as ut
    >>> ut.nn.SmoothL1Loss()(ut.tensor([1.0, 2.0]), ut.tensor([1.0, 4.0]))
    tensor(0.7500)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Half the squared error up to `delta`, and beyond it a line of slope `delta`.

    >>> import undertow as ut
    >>> ut.nn.HuberLoss()(ut.tensor([1.0, 2.0]), ut.tensor([1.0, 4.0]))
    tensor(0.7500)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class PoissonNLLLoss(_Loss):
    """The negative log-likelihood of counts whose rate is `exp(input)`, or `input`.

    >>> import undertow as ut
    >>> ut.nn.PoissonNLLLoss()(ut.tensor([0.0]), ut.tensor([3.0]))
    tensor(1.)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class GaussianNLLLoss(_Loss):
    """The negative log-likelihood of the target under normals with mean `input`, variance `var`.

    >>> import undertow as ut
    >>> ut.nn.GaussianNLLLoss()(ut.tensor([0.0]), ut.tensor([2.0]), ut.tensor([1.0]))
    tensor(2.)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(
            input, target, var, full=self.full, eps=self.eps, reduction=self.reduction
        )


# Of probabilities and classes --------------------------------------------------------------------
class NLLLoss(_WeightedLoss):
    """The negative of log-probabilities (N, C, …) at the target classes.

    >>> import undertow as ut
    >>> ut.nn.NLLLoss()(ut.tensor([[-0.5, -1.0]]), ut.tensor([1]))
    tensor(1.)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(
            input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction
        )


class NLLLoss2d(NLLLoss):
    """`NLLLoss`, as it was called for images once.

    >>> import undertow as ut
    >>> scores = ut.zeros(1, 3, 2, 2).log_softmax(1)  # three classes for each pixel
    >>> ut.nn.NLLLoss()(scores, ut.zeros(1, 2, 2, dtype=ut.int64))
    tensor(1.0986)
    >>> issubclass(ut.nn.NLLLoss2d, ut.nn.NLLLoss)
    True
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(*args, **kwargs)


class CrossEntropyLoss(_WeightedLoss):
    """The cross entropy of logits (N, C, …) with class indices (N, …) or probabilities (N, C, …).

    >>> import undertow as ut
    >>> ut.nn.CrossEntropyLoss()(ut.tensor([[0.0, 0.0]]), ut.tensor([1]))
    tensor(0.6931)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(_WeightedLoss):
    """`-(target * log(x) + (1 - target) * log(1 - x))` of probabilities.

    >>> import undertow as ut
    >>> ut.nn.BCELoss()(ut.tensor([0.5]), ut.tensor([1.0]))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """`BCELoss` of `sigmoid(x)`, accurate for logits of any size.

    >>> import undertow as ut
    >>> ut.nn.BCEWithLogitsLoss()(ut.tensor([-100.0]), ut.tensor([1.0]))
    tensor(100.)
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class KLDivLoss(_Loss):
    """`target * (log(target) - x)`, where x holds log-probabilities.

    >>> import undertow as ut
    >>> loss = ut.nn.KLDivLoss(reduction="batchmean")
    >>> loss(ut.tensor([[0.5, 0.5]]).log(), ut.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class CTCLoss(_Loss):
    """The negative log-likelihood of label sequences, summed over all alignments with blanks.

    >>> import undertow as ut
    >>> logs = ut.full((2, 1, 2), 0.5).log()
    >>> ut.nn.CTCLoss()(logs, ut.tensor([[1]]), ut.tensor([2]), ut.tensor([1]))
    tensor(0.2877)
    """

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor | Sequence[int],
        target_lengths: Tensor | Sequence[int],
    ) -> Tensor:
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )


# Of margins --------------------------------------------------------------------------------------
class MultiMarginLoss(_WeightedLoss):
    """How far each other class comes within `margin` of the target's, to the power `p`.

    >>> import undertow as ut
    >>> ut.nn.MultiMarginLoss()(ut.tensor([[0.5, 1.0]]), ut.tensor([1]))
    tensor(0.2500)
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ArgumentError(f"[MultiMarginLoss] only p == 1 and p == 2 supported, got {p}")
        if weight is not None and weight.ndim != 1:
            raise ArgumentError(
                f"[MultiMarginLoss] weight must be one number per class, got shape {weight.shape}"
            )
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input,
            target,
            p=self.p,
            margin=self.margin,
            weight=self.weight,
            reduction=self.reduction,
        )


class MultiLabelMarginLoss(_Loss):
    """How far the classes that are no target come within 1 of those that are.

    >>> import undertow as ut
    >>> ut.nn.MultiLabelMarginLoss()(ut.tensor([[0.5, 1.0]]), ut.tensor([[1, -1]]))
    tensor(0.2500)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The binary cross entropy of each class's logit, averaged over the classes.

    >>> import undertow as ut
    >>> ut.nn.MultiLabelSoftMarginLoss()(ut.tensor([[0.0, 0.0]]), ut.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """`log(1 + exp(-target * x))` for targets 1 and -1.

    >>> import undertow as ut
    >>> ut.nn.SoftMarginLoss()(ut.tensor([0.0]), ut.tensor([1.0]))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class HingeEmbeddingLoss(_Loss):
    """Distances of similar pairs (target 1); what dissimilar pairs (-1) lack to `margin`.

    >>> import undertow as ut
    >>> ut.nn.HingeEmbeddingLoss()(ut.tensor([0.25, 0.25]), ut.tensor([1.0, -1.0]))
    tensor(0.5000)
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """`1 - cos` of similar vectors (target 1); how far `cos` of others (-1) exceeds `margin`.

    >>> import undertow as ut
    >>> a, b = ut.tensor([[1.0, 0.0]]), ut.tensor([[0.0, 1.0]])
    >>> ut.nn.CosineEmbeddingLoss()(a, b, ut.tensor([1]))
    tensor(1.)
    """

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class MarginRankingLoss(_Loss):
    """What `input1` lacks to rank above `input2` by `margin` (target 1), or below (-1).

    >>> import undertow as ut
    >>> ut.nn.MarginRankingLoss()(ut.tensor([1.0]), ut.tensor([3.0]), ut.tensor([1.0]))
    tensor(2.)
    """

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class TripletMarginLoss(_Loss):
    """How far the positive is from being closer to the anchor than the negative, by `margin`.

    >>> import undertow as ut
    >>> a, p, n = ut.tensor([[0.0]]), ut.tensor([[1.0]]), ut.tensor([[1.5]])
    >>> ut.nn.TripletMarginLoss()(a, p, n)
    tensor(0.5000)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ArgumentError(f"[TripletMarginLoss] margin must be positive, got {margin}")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """`TripletMarginLoss` with a distance of your own.

    >>> import undertow as ut
    >>> loss = ut.nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: (x - y).abs())
    >>> loss(ut.tensor([0.0]), ut.tensor([1.0]), ut.tensor([1.5]))
    tensor(0.5000)
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ArgumentError(
                f"[TripletMarginWithDistanceLoss] margin must be positive, got {margin}"
            )
        self.distance_function = distance_function or PairwiseDistance()
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


# With a product of its own -----------------------------------------------------------------------
class LinearCrossEntropyLoss(_WeightedLoss):
    """The cross entropy of a Linear's output, which stays inside.

    `out_features` are the dimensions of a target with several positions. With `options` (see
    `LinearCrossEntropyOptions`) that output is made in chunks and never stored.

    >>> import undertow as ut
    >>> loss = ut.nn.LinearCrossEntropyLoss(4, 3)
    >>> loss(ut.rand(2, 4), ut.tensor([0, 2])).shape
    ()
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and weight.shape != (num_classes,):
            raise ArgumentError(
                f"[LinearCrossEntropyLoss] expected weight shape to be {(num_classes,)}, got "
                f"{weight.shape}"
            )
        if not 0 <= label_smoothing <= 1:
            raise ArgumentError(
                "[LinearCrossEntropyLoss] expected label_smoothing to be in range [0, 1], got "
                f"{label_smoothing}"
            )
        super().__init__(weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        rows = math.prod(out_features, start=num_classes)
        self.linear = Linear(in_features, rows, bias=bias, device=device, dtype=dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, -1),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
