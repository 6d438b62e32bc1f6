"""The sampler that gives each of several training processes its share."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ...core.generator import Generator
from ...distributed import get_rank, get_world_size, is_initialized
from ...errors import ArgumentError
from ...ops.random.random import randperm
from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th sample, beginning with the `rank`-th, of one order for all.

    All replicas get equally many: the order is extended by its own beginning, or cut with
    `drop_last`. `set_epoch` before each epoch gives each a new order. Both numbers are those of the
    process group, if they are not given.

    With `shards`, as `DistributedDataParallel` has them, the order is dealt to so many shards, and
    a process gets the samples of its shards in turn: what a shard gets does not depend on the
    number of processes.

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
        *,
        shards: int | None = None,
    ) -> None:
        if num_replicas is None or rank is None:
            if not is_initialized():
                raise ArgumentError(
                    "[DistributedSampler] there is no process group to ask, so it needs "
                    f"num_replicas and rank, got {num_replicas} and {rank}"
                )
            num_replicas = get_world_size() if num_replicas is None else num_replicas
            rank = get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ArgumentError(
                f"[DistributedSampler] Invalid rank {rank}, rank should be in the interval "
                f"[0, {num_replicas - 1}]"
            )
        if shards is not None and shards % num_replicas:
            raise ArgumentError(
                f"[DistributedSampler] {num_replicas} replicas cannot share {shards} shards"
            )
        self.shards = num_replicas if shards is None else shards
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        rounded = math.floor if drop_last else math.ceil
        self.total_size = rounded(len(dataset) / self.shards) * self.shards
        self.num_samples = self.total_size // num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            order = randperm(count, generator=generator).tolist()
        else:
            order = list(range(count))
        if count:
            order = (order * math.ceil(self.total_size / count))[: self.total_size]
        here = self.shards // self.num_replicas
        mine = range(self.rank * here, (self.rank + 1) * here)
        rows = range(0, self.total_size if count else 0, self.shards)
        return iter([order[row + shard] for row in rows for shard in mine])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Shuffle otherwise from now on: the order is that of `seed + epoch`."""
        self.epoch = epoch
