"""Losses that torch has at its top, with the reduction as a number: `torch.kl_div` and its kin.

The default is no reduction, as torch's is in Python (its documentation has none of them).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.register import FUNCTIONAL, function
from ...core.tensor import Tensor
from .positional import word_of

_REDUCTIONS = ("none", "mean", "sum")


def _reduction(op: str, number: int) -> str:
    return word_of(op, "reduction", _REDUCTIONS, number)


@function(method=False)
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 0,
) -> Tensor:
    """`nn.functional.binary_cross_entropy_with_logits`.

    >>> import undertow as ut
    >>> ut.binary_cross_entropy_with_logits(ut.zeros(2), ut.ones(2))
    tensor([0.6931, 0.6931])
    """
    found: Tensor = FUNCTIONAL["binary_cross_entropy_with_logits"](
        input,
        target,
        weight,
        pos_weight=pos_weight,
        reduction=_reduction("binary_cross_entropy_with_logits", reduction),
    )
    return found


@function(method=False)
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """`nn.functional.cosine_embedding_loss`.

    >>> import undertow as ut
    >>> x = ut.tensor([[1.0, 0.0]])
    >>> ut.cosine_embedding_loss(x, x.flip(1), ut.tensor([1]))
    tensor([1.])
    """
    found: Tensor = FUNCTIONAL["cosine_embedding_loss"](
        input1, input2, target, margin, reduction=_reduction("cosine_embedding_loss", reduction)
    )
    return found


@function(method=False)
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0
) -> Tensor:
    """`nn.functional.hinge_embedding_loss`.

    >>> import undertow as ut
    >>> ut.hinge_embedding_loss(ut.tensor([0.25]), ut.tensor([-1]))
    tensor([0.7500])
    """
    found: Tensor = FUNCTIONAL["hinge_embedding_loss"](
        input, target, margin, reduction=_reduction("hinge_embedding_loss", reduction)
    )
    return found


@function(method=False)
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """`nn.functional.margin_ranking_loss`.

    >>> import undertow as ut
    >>> ut.margin_ranking_loss(ut.tensor([1.0]), ut.tensor([3.0]), ut.tensor([1.0]))
    tensor([2.])
    """
    found: Tensor = FUNCTIONAL["margin_ranking_loss"](
        input1, input2, target, margin, reduction=_reduction("margin_ranking_loss", reduction)
    )
    return found


@function(method=False)
def kl_div(
    input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False
) -> Tensor:
    """`nn.functional.kl_div`.

    >>> import undertow as ut
    >>> ut.kl_div(ut.zeros(2), ut.ones(2), 2)
    tensor(0.)
    """
    found: Tensor = FUNCTIONAL["kl_div"](
        input, target, log_target=log_target, reduction=_reduction("kl_div", reduction)
    )
    return found


@function(method=False)
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """`nn.functional.poisson_nll_loss`.

    >>> import undertow as ut
    >>> ut.poisson_nll_loss(ut.zeros(2), ut.ones(2), True, False, 1e-8, 1)
    tensor(1.)
    """
    found: Tensor = FUNCTIONAL["poisson_nll_loss"](
        input, target, log_input, full, eps=eps, reduction=_reduction("poisson_nll_loss", reduction)
    )
    return found


@function(method=False)
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-06,
    swap: bool = False,
    reduction: int = 0,
) -> Tensor:
    """`nn.functional.triplet_margin_loss`.

    >>> import undertow as ut
    >>> a = ut.zeros(1, 2)
    >>> ut.triplet_margin_loss(a, a, a)
    tensor([1.])
    """
    found: Tensor = FUNCTIONAL["triplet_margin_loss"](
        anchor,
        positive,
        negative,
        margin,
        p,
        eps,
        swap,
        reduction=_reduction("triplet_margin_loss", reduction),
    )
    return found


@function(method=False)
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: int = 0,
    zero_infinity: bool = False,
) -> Tensor:
    """`nn.functional.ctc_loss`.

    >>> import undertow as ut
    >>> ut.ctc_loss(ut.full((2, 1, 2), 0.5).log(), ut.tensor([[1]]), [2], [1])
    tensor([0.2877])
    """
    found: Tensor = FUNCTIONAL["ctc_loss"](
        log_probs,
        targets,
        input_lengths,
        target_lengths,
        blank,
        _reduction("ctc_loss", reduction),
        zero_infinity,
    )
    return found
