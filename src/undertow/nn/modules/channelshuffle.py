"""Channels of several groups in another order."""

from __future__ import annotations

from ...core.tensor import Tensor
from .. import functional as F
from .module import Module


class ChannelShuffle(Module):
    """(N, C, …) with the channels of `groups` groups dealt out by turns.

    >>> import undertow as ut
    >>> ut.nn.ChannelShuffle(2)(ut.arange(4.0).reshape(1, 4, 1, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
