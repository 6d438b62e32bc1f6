"""The sampler that gives each of several training processes its share."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ...core.generator import Generator
from ...errors import ArgumentError
from ...ops.random import randperm
from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th sample, beginning with the `rank`-th, of one order for all.

    All replicas get equally many: the order is extended by its own beginning, or cut with
    `drop_last`. `set_epoch` before each epoch gives each a new order.

    >>> [list(DistributedSampler(range(5), 2, rank, shuffle=False)) for rank in (0, 1)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            raise ArgumentError(
                "[DistributedSampler] there is no process group to ask, so it needs num_replicas "
                f"and rank, got {num_replicas} and {rank}"
            )
        if not 0 <= rank < num_replicas:
            raise ArgumentError(
                f"[DistributedSampler] Invalid rank {rank}, rank should be in the interval "
                f"[0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        rounded = math.floor if drop_last else math.ceil
        self.num_samples = rounded(len(dataset) / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            order = randperm(count, generator=generator).tolist()
        else:
            order = list(range(count))
        if count:
            order = (order * math.ceil(self.total_size / count))[: self.total_size]
        return iter(order[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Shuffle otherwise from now on: the order is that of `seed + epoch`."""
        self.epoch = epoch
