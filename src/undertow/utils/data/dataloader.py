"""The DataLoader: a dataset, a sampler and a way to collate, as an iterable over batches."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from ...core.generator import Generator
from ...errors import ArgumentError, DTypeError
from ._utils.collate import default_collate, default_convert
from ._utils.fetch import DatasetKind
from ._utils.iterator import BaseIterator, SingleProcessIterator
from ._utils.processes import MultiProcessIterator
from ._utils.worker import get_worker_info
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

# The names by which programs ask for torch's, to say what they were given.
_DatasetKind = DatasetKind
_BaseDataLoaderIter = BaseIterator
_SingleProcessDataLoaderIter = SingleProcessIterator
_MultiProcessingDataLoaderIter = MultiProcessIterator

T_co = TypeVar("T_co", covariant=True)


class _Endless(Sampler[None]):
    """The sampler of an iterable dataset, which gives its samples unasked."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


def _exclusive(text: str) -> ArgumentError:
    return ArgumentError(f"[DataLoader] {text}")


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    """Options of processes that do not fit together."""
    if num_workers < 0:
        raise ArgumentError(
            "[DataLoader] num_workers option should be non-negative; use num_workers=0 to "
            f"disable multiprocessing, got {num_workers}"
        )
    if timeout < 0:
        raise ArgumentError(f"[DataLoader] timeout option should be non-negative, got {timeout}")
    if num_workers == 0 and prefetch_factor is not None:
        raise _exclusive(
            "prefetch_factor option could only be specified in multiprocessing: let "
            f"num_workers > 0, or leave out prefetch_factor={prefetch_factor}"
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise _exclusive(f"prefetch_factor option should be non-negative, got {prefetch_factor}")
    if persistent_workers and num_workers == 0:
        raise _exclusive("persistent_workers option needs num_workers > 0")


def _check_order(
    iterable: bool,
    batch_size: int | None,
    shuffle: bool | None,
    sampler: Any,
    batch_sampler: Any,
    drop_last: bool,
) -> None:
    """Options of order and of batches that do not fit together."""
    if iterable:
        for name, given in (
            ("shuffle", shuffle or None),
            ("sampler", sampler),
            ("batch_sampler", batch_sampler),
        ):
            if given is not None:
                raise _exclusive(
                    f"with IterableDataset: expected unspecified {name} option, but got "
                    f"{name}={given}; the dataset itself says what comes when"
                )
    if sampler is not None and shuffle:
        raise _exclusive(
            "sampler option is mutually exclusive with shuffle; let the sampler shuffle"
        )
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise _exclusive(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, "
                "sampler, and drop_last, all of which it decides"
            )
    elif batch_size is None and drop_last:
        raise _exclusive(
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
        )


class DataLoader(Generic[T_co]):
    """The batches of a dataset, in order or shuffled, loaded here or in worker processes.

    Arguments are torch's. With `num_workers` processes, each has `prefetch_factor` batches in the
    making; batches come in the same order as without workers (unless `in_order=False`), and their
    tensors lie in memory that the worker wrote them to. An error in a worker is raised here, with
    its traceback. `shuffle=True` draws an order from `generator`, or from the default generator,
    so that `ut.manual_seed` makes it reproducible; worker i is seeded with a base seed, drawn
    likewise, plus i. A worker is started by fork where Python does so; `multiprocessing_context`
    chooses otherwise. `persistent_workers` stay from one pass to the next. `pin_memory` and
    `pin_memory_device` are accepted and do nothing, since there is no device to pin memory for.

    >>> import undertow as ut
    >>> samples = ut.utils.data.TensorDataset(ut.arange(5.0), ut.arange(5))
    >>> for x, y in DataLoader(samples, batch_size=2):
    ...     print(x, y)
    tensor([0., 1.]) tensor([0, 1])
    tensor([2., 3.]) tensor([2, 3])
    tensor([4.]) tensor([4])
    """

    dataset: Dataset[T_co]
    batch_size: int | None
    num_workers: int
    pin_memory: bool
    drop_last: bool
    timeout: float
    sampler: Any
    pin_memory_device: str
    prefetch_factor: int | None
    __initialized = False

    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        iterable = isinstance(dataset, IterableDataset)
        _check_order(iterable, batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size = None
        if sampler is None:
            if iterable:
                sampler = _Endless()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]
            else:
                sampler = SequentialSampler(dataset)  # type: ignore[arg-type]
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)  # type: ignore[arg-type]

        self.dataset = dataset
        self.batch_size = batch_size
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.drop_last = drop_last
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers = persistent_workers
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.in_order = in_order
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        self.collate_fn = collate_fn
        self._dataset_kind = DatasetKind.Iterable if iterable else DatasetKind.Map
        self._IterableDataset_len_called: int | None = None
        self._iterator: Any = None
        self.__initialized = True
        self.check_worker_number_rationality()

    @property
    def multiprocessing_context(self) -> Any:
        """How workers are started; None for Python's default."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            import multiprocessing
            from multiprocessing.context import BaseContext

            if not self.num_workers:
                raise _exclusive(
                    "multiprocessing_context can only be used with multi-process loading "
                    f"(num_workers > 0), but got num_workers={self.num_workers}"
                )
            if isinstance(context, str):
                methods = multiprocessing.get_all_start_methods()
                if context not in methods:
                    raise _exclusive(
                        f"multiprocessing_context option should specify a valid start method in "
                        f"{methods!r}, but got multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, BaseContext):
                raise DTypeError(
                    "[DataLoader] multiprocessing_context option should be a valid context object "
                    "or a string specifying the start method, but got "
                    f"multiprocessing_context={context}"
                )
        self.__multiprocessing_context = context

    def __setattr__(self, attr: str, value: Any) -> None:
        if self.__initialized and attr in (
            "batch_size",
            "batch_sampler",
            "sampler",
            "drop_last",
            "dataset",
            "persistent_workers",
        ):
            raise ArgumentError(
                f"[DataLoader] {attr} attribute should not be set after {type(self).__name__} is "
                "initialized; make another loader"
            )
        super().__setattr__(attr, value)

    def __iter__(self) -> Any:
        if not self.num_workers:
            return SingleProcessIterator(self)
        if not self.persistent_workers:
            return MultiProcessIterator(self)
        if self._iterator is not None and self._iterator.usable:
            self._iterator.resume(self)
        else:
            self._iterator = MultiProcessIterator(self)
        return self._iterator

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_iterator": None}  # a copy starts workers of its own

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        """What gives the numbers of each batch, or of each sample where there are no batches."""
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __len__(self) -> int:
        if self._dataset_kind == DatasetKind.Map:
            return len(self._index_sampler)
        # What the dataset says, which an iterator then holds it to.
        length = self._IterableDataset_len_called = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn of more workers than there are processors to run them."""
        if hasattr(os, "sched_getaffinity"):
            most = len(os.sched_getaffinity(0))
        else:
            most = os.cpu_count() or self.num_workers
        if self.num_workers > most:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our "
                f"suggested max number of worker in current system is {most}, which is smaller "
                "than what this DataLoader is going to create; more are rarely faster.",
                stacklevel=3,
            )
