"""Samplers: in which order a loader takes the samples of a dataset, and in which batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, Generic, TypeVar

from ... import dtypes
from ...core.generator import Generator
from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError
from ...ops.create.creation import empty
from ...ops.create.from_data import as_tensor
from ...ops.random.distributions import multinomial
from ...ops.random.random import randint, randperm

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T_co = TypeVar("T_co", covariant=True)


def drawn_seed(generator: Generator | None = None) -> int:
    """A seed of 63 bits from a generator, or from the default one."""
    return int(empty((), dtype=dtypes.int64).random_(generator=generator).item())


def _positive(owner: str, name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ArgumentError(
            f"[{owner}] {name} should be a positive integer value, but got {name}={value}"
        )


class Sampler(Generic[T_co]):
    """The numbers of samples, or lists of them, in some order: a subclass has `__iter__`.

    It may have `__len__`, which the length of a loader needs.

    >>> class Backwards(Sampler[int]):
    ...     def __iter__(self):
    ...         return iter([2, 1, 0])
    >>> list(Backwards())
    [2, 1, 0]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"[{type(self).__name__}] a Sampler needs __iter__")


class SequentialSampler(Sampler[int]):
    """All samples in their order.

    >>> list(SequentialSampler("abc"))
    [0, 1, 2]
    """

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Samples in random order: each once, or `num_samples` of them with `replacement`.

    Without a `generator`, each pass has a stream of its own, seeded by the default generator.

    >>> sorted(RandomSampler("abcd"))
    [0, 1, 2, 3]
    >>> len(list(RandomSampler("abcd", replacement=True, num_samples=7)))
    7
    """

    data_source: Sized
    replacement: bool

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise DTypeError(
                "[RandomSampler] replacement should be a boolean value, but got "
                f"replacement={replacement}"
            )
        if self.num_samples.__class__ is not int or self.num_samples <= 0:
            raise ArgumentError(
                "[RandomSampler] num_samples should be a positive integer value, but got "
                f"num_samples={self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        """How many samples one pass has; a dataset may grow."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, left = len(self.data_source), self.num_samples
        generator = self.generator
        if generator is None:
            generator = Generator().manual_seed(drawn_seed())
        if self.replacement:
            while left:
                some = min(left, 1024)
                yield from randint(0, n, (some,), generator=generator).tolist()
                left -= some
        else:
            # One order more than whole passes, as torch draws it: the same use of the generator.
            for _ in range(left // n):
                yield from randperm(n, generator=generator).tolist()
            yield from randperm(n, generator=generator).tolist()[: left % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given numbers in random order.

    >>> sorted(SubsetRandomSampler([7, 3, 5]))
    [3, 5, 7]
    """

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """`num_samples` numbers, each as likely as its weight.

    >>> set(WeightedRandomSampler([0.0, 2.0, 1.0], 50)) <= {1, 2}
    True
    """

    weights: Tensor
    num_samples: int
    replacement: bool

    def __init__(
        self,
        weights: Sequence[float] | Tensor,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        _positive("WeightedRandomSampler", "num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ArgumentError(
                "[WeightedRandomSampler] replacement should be a boolean value, but got "
                f"replacement={replacement}"
            )
        self.weights = as_tensor(weights, dtype=dtypes.float64)
        if self.weights.ndim != 1:
            raise ArgumentError(
                "[WeightedRandomSampler] weights should be a 1d sequence but given weights have "
                f"shape {self.weights.shape}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """What another sampler gives, in lists of `batch_size`.

    >>> list(BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    >>> list(BatchSampler(range(5), batch_size=2, drop_last=True))
    [[0, 1], [2, 3]]
    """

    def __init__(
        self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool
    ) -> None:
        _positive("BatchSampler", "batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ArgumentError(
                f"[BatchSampler] drop_last should be a boolean value, but got drop_last={drop_last}"
            )
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.sampler)
        least = self.batch_size if self.drop_last else 1
        while len(batch := list(islice(numbers, self.batch_size))) >= least:
            yield batch

    def __len__(self) -> int:
        count: int = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
