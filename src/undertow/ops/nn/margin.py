"""Losses that push scores or distances apart by a margin."""

from __future__ import annotations

from collections.abc import Callable

from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError, ShapeError
from ..elementwise.activation import logsigmoid
from ..elementwise.extremes import clamp_min, minimum
from .composite import pairwise_distance
from .losses import reduced


@function(top=False, method=False, functional=True)
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`log(1 + exp(-target * input))` for targets 1 and -1.

    >>> import undertow as ut
    >>> ut.nn.functional.soft_margin_loss(ut.tensor([-1000.0]), ut.tensor([1.0]))
    tensor(1000.)
    """
    if input.shape != target.shape:
        raise ShapeError(
            f"[soft_margin_loss] input and target must have one shape, "
            f"got {input.shape} and {target.shape}"
        )
    return reduced("soft_margin_loss", -logsigmoid(input * target), reduction, size_average, reduce)


@function(top=False, method=False, functional=True)
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Distances of similar pairs (target 1); what dissimilar pairs (-1) lack to `margin`.

    >>> import undertow as ut
    >>> distances, labels = ut.tensor([0.25, 0.25]), ut.tensor([1, -1])
    >>> ut.nn.functional.hinge_embedding_loss(distances, labels, reduction="none")
    tensor([0.2500, 0.7500])
    """
    similar = input.where(target != -1, 0.0)
    apart = clamp_min(margin - input, 0).where(target != 1, 0.0)
    return reduced("hinge_embedding_loss", similar + apart, reduction, size_average, reduce)


@function(top=False, method=False, functional=True)
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """What `input1` lacks to rank above `input2` by `margin` (target 1), or below (-1).

    >>> import undertow as ut
    >>> a, b, first = ut.tensor([1.0, 5.0]), ut.tensor([2.0, 2.0]), ut.tensor([1.0, 1.0])
    >>> ut.nn.functional.margin_ranking_loss(a, b, first, margin=1.0, reduction="none")
    tensor([2., 0.])
    """
    if not input1.ndim == input2.ndim == target.ndim:
        raise ShapeError(
            "[margin_ranking_loss] all three tensors need the same number of dimensions, got "
            f"shapes {input1.shape}, {input2.shape} and {target.shape}"
        )
    loss = clamp_min(target * (input2 - input1) + margin, 0)
    return reduced("margin_ranking_loss", loss, reduction, size_average, reduce)


@function(top=False, method=False, functional=True)
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`1 - cos` of similar vectors (target 1); how far `cos` of others (-1) exceeds `margin`.

    >>> import undertow as ut
    >>> a, b = ut.tensor([[1.0, 0.0], [1.0, 0.0]]), ut.tensor([[0.0, 1.0], [2.0, 0.0]])
    >>> ut.nn.functional.cosine_embedding_loss(a, b, ut.tensor([1, -1]), reduction="none")
    tensor([1., 1.])
    """
    op = "cosine_embedding_loss"
    if target.ndim > 1 or input1.ndim != target.ndim + 1 or input2.ndim != target.ndim + 1:
        raise ShapeError(
            f"[{op}] expects vectors (D) with a target () or rows (N, D) with a target (N), "
            f"got {input1.shape}, {input2.shape} and {target.shape}"
        )
    norms = ((input1 * input1).sum(-1) + 1e-12) * ((input2 * input2).sum(-1) + 1e-12)
    cosine = (input1 * input2).sum(-1) / norms.sqrt()
    similar = (1 - cosine).where(target == 1, 0.0)
    apart = clamp_min(cosine - margin, 0).where(target == -1, 0.0)
    return reduced(op, similar + apart, reduction, size_average, reduce)


@function(top=False, method=False, functional=True)
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far the positive is from being closer to the anchor than the negative, by `margin`.

    `swap` also counts the distance from the positive to the negative.

    >>> import undertow as ut
    >>> a, b, c = ut.zeros(1, 1), ut.ones(1, 1), ut.tensor([[1.5]])
    >>> ut.nn.functional.triplet_margin_loss(a, b, c)
    tensor(0.5000)
    """

    def distance(x: Tensor, y: Tensor) -> Tensor:
        return pairwise_distance(x, y, p, eps)

    loss = _triplet("triplet_margin_loss", anchor, positive, negative, distance, margin, swap)
    return reduced("triplet_margin_loss", loss, reduction, size_average, reduce)


@function(top=False, method=False, functional=True)
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with a distance of your own.

    >>> import undertow as ut
    >>> a, b, c = ut.zeros(1, 1), ut.ones(1, 1), ut.tensor([[1.5]])
    >>> ut.nn.functional.triplet_margin_with_distance_loss(
    ...     a, b, c, distance_function=lambda x, y: (x - y).abs().sum(-1), margin=2.0
    ... )
    tensor(1.5000)
    """
    op = "triplet_margin_with_distance_loss"
    distance = distance_function or pairwise_distance
    loss = _triplet(op, anchor, positive, negative, distance, margin, swap)
    return reduced(op, loss, reduction)


def _triplet(
    op: str,
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance: Callable[[Tensor, Tensor], Tensor],
    margin: float,
    swap: bool,
) -> Tensor:
    if not margin > 0:
        raise ArgumentError(f"[{op}] margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ShapeError(
            f"[{op}] anchor, positive and negative need the same number of dimensions, got "
            f"shapes {anchor.shape}, {positive.shape} and {negative.shape}"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return clamp_min(near - far + margin, 0)
