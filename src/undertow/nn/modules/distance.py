"""How far apart vectors are."""

from __future__ import annotations

from ...core.tensor import Tensor
from .. import functional as F
from .module import Module


class PairwiseDistance(Module):
    """The p-norm of `x1 - x2 + eps` along the last dimension.

    >>> import undertow as ut
    >>> ut.nn.PairwiseDistance(1.0)(ut.ones(1, 3), ut.zeros(1, 3))
    tensor([3.0000])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along `dim`.

    >>> import undertow as ut
    >>> ut.nn.CosineSimilarity(dim=0)(ut.tensor([1.0, 0.0]), ut.tensor([2.0, 0.0]))
    tensor(1.)
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
