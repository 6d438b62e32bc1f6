"""The samples of one batch out of a dataset, collated: the same in this process and in workers."""

from __future__ import annotations

from typing import Any

from ..dataset import collated
from .collate import default_collate, plain


class MapFetcher:
    """Batches of a dataset that has samples by number."""

    def __init__(self, dataset: Any, batched: bool, collate_fn: Any, drop_last: bool) -> None:
        self.dataset = dataset
        self.batched = batched
        self.collate_fn = collate_fn

    def fetch(self, index: Any) -> Any:
        """The batch of these numbers, or the sample of this one."""
        if not self.batched:
            return self.collate_fn(self.dataset[index])
        if self.collate_fn is default_collate and plain():
            batch = collated(self.dataset, index)
            if batch is not None:
                return batch
        items = getattr(self.dataset, "__getitems__", None)
        return self.collate_fn(items(index) if items else [self.dataset[i] for i in index])


class IterableFetcher:
    """Batches of what a dataset's iterator gives; StopIteration when it is at its end."""

    def __init__(self, dataset: Any, batched: bool, collate_fn: Any, drop_last: bool) -> None:
        self.samples = iter(dataset)
        self.batched = batched
        self.collate_fn = collate_fn
        self.drop_last = drop_last
        self.ended = False

    def fetch(self, index: Any) -> Any:
        """The next batch, with as many samples as the list `index` is long; or the next sample."""
        if self.ended:
            raise StopIteration
        if not self.batched:
            return self.collate_fn(next(self.samples))
        batch = []
        for _ in index:
            try:
                batch.append(next(self.samples))
            except StopIteration:
                self.ended = True
                break
        if not batch or (self.drop_last and len(batch) < len(index)):
            raise StopIteration
        return self.collate_fn(batch)


class DatasetKind:
    """Which fetcher a dataset needs, by torch's numbers."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> MapFetcher | IterableFetcher:
        """The fetcher of a kind of dataset; an iterable one is asked for its iterator here."""
        made = MapFetcher if kind == DatasetKind.Map else IterableFetcher
        return made(dataset, auto_collation, collate_fn, drop_last)
