"""What gives each of several training processes its share: of a dataset, and of a stream."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

from ...core.generator import Generator
from ...distributed import get_rank, get_world_size, is_initialized
from ...errors import ArgumentError
from ...ops.random.random import randperm
from ._utils.worker import get_worker_info
from .dataset import IterableDataset
from .sampler import Sampler

__all__ = ["DistributedSampler", "DistributedStream"]


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
        num_replicas, rank = _place("DistributedSampler", num_replicas, rank)
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
        length = len(self.dataset)
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            order = randperm(length, generator=generator).tolist()
        else:
            order = list(range(length))
        if length:
            order = (order * math.ceil(self.total_size / length))[: self.total_size]
        here = self.shards // self.num_replicas
        mine = range(self.rank * here, (self.rank + 1) * here)
        rows = range(0, self.total_size if length else 0, self.shards)
        return iter([order[row + shard] for row in rows for shard in mine])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Shuffle otherwise from now on: the order is that of `seed + epoch`."""
        self.epoch = epoch


class DistributedStream(IterableDataset[Any]):
    """Every `num_replicas`-th sample of a stream, beginning with the `rank`-th.

    Every process reads the whole stream and keeps its share. All get equally many: samples at the
    end that are too few for everybody are left out. With `shards`, as `DistributedDataParallel` has
    them, each process gets the samples of its shards in turn, as `DistributedSampler` deals them.
    Workers of a loader share what their process has, round by round.

    >>> [list(DistributedStream(range(7), 3, rank)) for rank in (0, 1, 2)]
    [[0, 3], [1, 4], [2, 5]]
    >>> [list(DistributedStream(range(9), 2, rank, shards=4)) for rank in (0, 1)]
    [[0, 1, 4, 5], [2, 3, 6, 7]]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        *,
        shards: int | None = None,
    ) -> None:
        # Asked for here, since the workers of a loader are in no process group.
        self.num_replicas, self.rank = _place("DistributedStream", num_replicas, rank)
        self.shards = self.num_replicas if shards is None else shards
        if self.shards % self.num_replicas:
            raise ArgumentError(
                f"[DistributedStream] {self.num_replicas} replicas cannot share {shards} shards"
            )
        self.dataset = dataset

    def __iter__(self) -> Iterator[Any]:
        here = self.shards // self.num_replicas
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        samples = iter(self.dataset)
        for number in count():
            row = list(islice(samples, self.shards))
            if len(row) < self.shards:
                return
            if number % workers == worker:
                yield from row[self.rank * here : (self.rank + 1) * here]


def _place(name: str, num_replicas: int | None, rank: int | None) -> tuple[int, int]:
    """The number of processes and that of this one, as they were given or from the group."""
    if num_replicas is None or rank is None:
        if not is_initialized():
            raise ArgumentError(
                f"[{name}] there is no process group to ask, so it needs num_replicas and rank, "
                f"got {num_replicas} and {rank}"
            )
        num_replicas = get_world_size() if num_replicas is None else num_replicas
        rank = get_rank() if rank is None else rank
    if not 0 <= rank < num_replicas:
        raise ArgumentError(
            f"[{name}] Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
        )
    return num_replicas, rank
