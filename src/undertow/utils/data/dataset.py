"""Datasets: what a loader draws samples from, and how to join, cut and stack them."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import accumulate
from typing import Any, Generic, TypeVar, cast

from ...core.generator import Generator, default_generator
from ...core.notebook import as_html
from ...core.tensor import Tensor
from ...errors import ArgumentError, UnsupportedError
from ...ops.create.from_data import tensor
from ...ops.random.random import randperm

__all__ = [
    "Dataset",
    "IterableDataset",
    "TensorDataset",
    "StackDataset",
    "ConcatDataset",
    "ChainDataset",
    "Subset",
    "random_split",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Samples by number: a subclass has `__getitem__`, and `__len__` for most samplers.

    A subclass may also have `__getitems__(indices)`, which returns the list of the samples of one
    batch at once; a loader prefers it.

    >>> class Squares(Dataset[int]):
    ...     def __getitem__(self, index):
    ...         return index**2
    ...
    ...     def __len__(self):
    ...         return 4
    >>> both = Squares() + Squares()
    >>> len(both), both[6]
    (8, 4)
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"[{type(self).__name__}] a Dataset needs __getitem__")

    # No __len__ that raises: list() and len() would meet it where there should be none.

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ConcatDataset([self, other])

    def _repr_html_(self) -> str:
        """Its size. No sample is drawn, which could be slow, random, or change what comes next."""
        size = f", {len(self):,} samples" if isinstance(self, Sized) else ""
        return as_html(type(self).__name__ + size, self._told())

    def _told(self) -> str:
        """What is known of the samples without drawing one."""
        return repr(self)


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Samples in a row, such as a stream: a subclass has `__iter__`.

    Each worker of a loader has a copy, so `__iter__` asks `get_worker_info` for its share.

    >>> class Count(IterableDataset[int]):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> list(Count() + Count())
    [0, 1, 2, 0, 1, 2]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"[{type(self).__name__}] an IterableDataset needs __iter__")

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """A sample is a row of each tensor.

    >>> import undertow as ut
    >>> TensorDataset(ut.arange(3), ut.arange(6).reshape(3, 2))[1]
    (tensor(1), tensor([2, 3]))
    """

    tensors: tuple[Tensor, ...]

    def _told(self) -> str:
        rows = ", ".join(f"{t.dtype.name}{list(t.shape[1:])}" for t in self.tensors)
        return f"each: ({rows})"

    def __init__(self, *tensors: Tensor) -> None:
        sizes = [t.size(0) for t in tensors]
        if len(set(sizes)) > 1:
            raise AssertionError(
                f"[TensorDataset] Size mismatch between tensors: their first dimensions are "
                f"{sizes}; a sample is a row of each, so all need the same number"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)

    def _collated(self, indices: Sequence[Any]) -> list[Tensor] | None:
        """What `default_collate` makes of these samples, in one step; None to go sample by sample.

        A subclass that has ways of its own to get samples is asked for them.
        """
        own = type(self)
        if own.__getitem__ is not TensorDataset.__getitem__ or hasattr(own, "__getitems__"):
            return None
        if not indices or not all(type(i) is int for i in indices):
            return None
        rows = tensor(indices)
        return [t[rows.to(t.device)] for t in self.tensors]


def collated(dataset: Any, indices: Sequence[Any]) -> Any:
    """A batch as `default_collate` makes it, if the dataset has a shorter way; else None.

    The class is asked: one that passes unknown attributes on to another dataset has samples of its
    own.
    """
    way = getattr(type(dataset), "_collated", None)
    return None if way is None else way(dataset, indices)


class StackDataset(Dataset[Any]):
    """A sample has one part from each of several datasets: a tuple, or a dict for keywords.

    >>> StackDataset(x=range(3), y="abc")[1]
    {'x': 1, 'y': 'b'}
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ArgumentError(
                "[StackDataset] expects datasets as arguments, for tuples, or as keywords, for "
                f"dicts; got {len(args)} and {len(kwargs)}"
            )
        self.datasets = args or kwargs
        sizes = [len(d) for d in self._parts()]
        if len(set(sizes)) > 1:
            raise ArgumentError(f"[StackDataset] Size mismatch between datasets: {sizes}")
        self._length = sizes[0]

    def _parts(self) -> Iterable[Any]:
        return self.datasets.values() if isinstance(self.datasets, dict) else self.datasets

    def _sample(self, parts: Iterable[Any]) -> Any:
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, parts, strict=True))
        return tuple(parts)

    def __getitem__(self, index: Any) -> Any:
        return self._sample([d[index] for d in self._parts()])

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        columns = [_items(d, indices) for d in self._parts()]
        for column in columns:
            if len(column) != len(indices):
                raise ArgumentError(
                    "[StackDataset] Nested dataset's output size mismatch. Expected "
                    f"{len(indices)}, got {len(column)} from its __getitems__"
                )
        return [self._sample(parts) for parts in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


def _items(dataset: Any, indices: Sequence[Any]) -> Any:
    """The samples of a batch, all at once where the dataset can."""
    batched = getattr(dataset, "__getitems__", None)
    return batched(indices) if callable(batched) else [dataset[i] for i in indices]


class ConcatDataset(Dataset[T_co]):
    """The samples of several datasets, one dataset after the other.

    >>> joined = ConcatDataset([range(3), range(10, 12)])
    >>> len(joined), joined[3], joined[-1]
    (5, 10, 11)
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Where each dataset ends."""
        return list(accumulate(len(d) for d in sequence))

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError(
                "[ConcatDataset] datasets should not be an empty iterable: give at least one"
            )
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError(
                "[ConcatDataset] ConcatDataset does not support IterableDataset; use ChainDataset"
            )
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> T_co:
        if idx < 0:
            if -idx > len(self):
                raise ArgumentError(
                    f"[ConcatDataset] index {idx} is before the first of {len(self)} samples"
                )
            idx += len(self)
        which = bisect_right(self.cumulative_sizes, idx)
        return self.datasets[which][idx - (self.cumulative_sizes[which - 1] if which else 0)]

    @property
    def cummulative_sizes(self) -> list[int]:
        """The old spelling of `cumulative_sizes`."""
        warnings.warn(
            "`cummulative_sizes` attribute is renamed to `cumulative_sizes`",
            FutureWarning,
            stacklevel=2,
        )
        return self.cumulative_sizes


class ChainDataset(IterableDataset[Any]):
    """The samples of several iterable datasets, one dataset after the other.

    >>> class Count(IterableDataset[int]):
    ...     def __iter__(self):
    ...         return iter(range(2))
    >>> list(ChainDataset([Count(), Count()]))
    [0, 1, 0, 1]
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def _checked(self) -> Iterator[Any]:
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise AssertionError(
                    "[ChainDataset] ChainDataset only supports IterableDataset, got "
                    f"{type(d).__name__}; use ConcatDataset"
                )
            yield d

    def __iter__(self) -> Iterator[Any]:
        for d in self._checked():
            yield from d

    def __len__(self) -> int:
        return sum(len(d) for d in self._checked())


class Subset(Dataset[T_co]):
    """Those samples of a dataset whose numbers are given.

    A subclass that changes `__getitem__` changes `__getitems__` as well.

    >>> list(Subset("abcdef", [5, 0]))
    ['f', 'a']
    """

    dataset: Any
    indices: Sequence[Any]

    def __init__(self, dataset: Any, indices: Sequence[Any]) -> None:
        self.dataset = dataset
        self.indices = indices
        own = type(self)
        if own.__getitem__ is not Subset.__getitem__ and own.__getitems__ is Subset.__getitems__:
            raise UnsupportedError(
                f"[{own.__name__}] overrides __getitem__ but not __getitems__, which a DataLoader "
                "prefers; add\n"
                "def __getitems__(self, indices):\n"
                "    return [self.__getitem__(idx) for idx in indices]"
            )

    def __getitem__(self, idx: Any) -> T_co:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[Any]) -> list[T_co]:
        return _items(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)

    def _collated(self, indices: Sequence[Any]) -> Any:
        """As in TensorDataset, for a subset of one."""
        if type(self).__getitems__ is not Subset.__getitems__:
            return None
        return collated(self.dataset, [self.indices[i] for i in indices])


def random_split(
    dataset: Any, lengths: Sequence[int | float], generator: Generator | None = default_generator
) -> list[Subset[Any]]:
    """Split a dataset at random into parts of these lengths, or fractions that sum to 1.

    What fractions leave over goes one by one to the first parts.

    >>> import undertow as ut
    >>> parts = random_split(range(10), [0.5, 0.25, 0.25], ut.Generator().manual_seed(0))
    >>> [len(part) for part in parts], sorted(i for part in parts for i in part)
    ([6, 2, 2], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    total = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ArgumentError(
                    f"[random_split] Fraction at index {i} is not between 0 and 1: {fraction}"
                )
        counts = [math.floor(total * fraction) for fraction in lengths]
        for i in range(total - sum(counts)):
            counts[i % len(counts)] += 1
        for i, count in enumerate(counts):
            if not count:
                warnings.warn(
                    f"[random_split] Length of split at index {i} is 0. "
                    "This might result in an empty dataset.",
                    stacklevel=2,
                )
    else:
        counts = cast(list[int], list(lengths))
    if sum(counts) != total:
        raise ArgumentError(
            "[random_split] Sum of input lengths does not equal the length of the input dataset: "
            f"{list(lengths)} sum to {sum(counts)}, the dataset has {total}"
        )
    order = randperm(total, generator=generator).tolist()
    ends = accumulate(counts)
    return [Subset(dataset, order[e - n : e]) for e, n in zip(ends, counts, strict=True)]
