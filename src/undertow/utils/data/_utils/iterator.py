"""What all iterators of a loader share, and the one that loads in this process."""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

from ..sampler import drawn_seed
from .fetch import DatasetKind


class BaseIterator:
    """One pass over a loader's batches.

    It does not hold the loader, which may hold it: the last one out ends the workers at once.
    """

    def __init__(self, loader: Any) -> None:
        self._dataset_kind = loader._dataset_kind
        self._dataset = loader.dataset
        self._auto_collation = loader._auto_collation
        self._collate_fn = loader.collate_fn
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._timeout = loader.timeout
        self._base_seed = drawn_seed(loader.generator)
        self._begin(loader)

    def _begin(self, loader: Any) -> None:
        """Begin a pass."""
        self._indices = iter(self._index_sampler)
        self._num_yielded = 0
        self._expected = loader._IterableDataset_len_called

    def __iter__(self) -> Any:
        return self

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __next__(self) -> Any:
        batch = self._next_data()
        self._num_yielded += 1
        if self._expected is not None and self._num_yielded > self._expected:
            self._warn()
        return batch

    def _next_data(self) -> Any:
        raise NotImplementedError

    def _warn(self) -> None:
        """An iterable dataset has given more than its `__len__` said."""
        why = (
            "; each worker has a copy of the dataset, so its __iter__ must ask get_worker_info() "
            "for its own share"
        )
        warnings.warn(
            f"[DataLoader] Length of IterableDataset {self._dataset} was reported to be "
            f"{self._expected} (when accessing len(dataloader)), but {self._num_yielded} samples "
            f"have been fetched{why if self._num_workers else ''}",
            stacklevel=3,
        )

    def __getstate__(self) -> NoReturn:
        raise NotImplementedError(
            f"[DataLoader] {type(self).__name__} cannot be pickled; pickle the loader"
        )


class SingleProcessIterator(BaseIterator):
    """Fetches each batch when it is asked for."""

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        if loader.timeout:
            raise AssertionError(
                f"[DataLoader] timeout={loader.timeout} is how long to wait for workers; give it "
                "with num_workers > 0"
            )
        self._fetcher = DatasetKind.create_fetcher(
            self._dataset_kind,
            self._dataset,
            self._auto_collation,
            self._collate_fn,
            self._drop_last,
        )

    def _next_data(self) -> Any:
        return self._fetcher.fetch(next(self._indices))
