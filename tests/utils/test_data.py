"""Datasets, samplers, collating, and loading in one process."""

from __future__ import annotations

import copy
import importlib
import pickle
from collections import OrderedDict, UserDict, UserList, namedtuple
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import undertow as ut
from undertow.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    DistributedStream,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    random_split,
)

Point = namedtuple("Point", "x y")


class Count(IterableDataset[int]):
    def __init__(self, size: int) -> None:
        self.size = size

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.size))

    def __len__(self) -> int:
        return self.size


def numbers(loader: Any) -> list[Any]:
    return [batch.tolist() for batch in loader]


# Names ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "path",
    [
        "dataloader.DataLoader",
        "dataloader.default_collate",
        "dataset.TensorDataset",
        "sampler.BatchSampler",
        "distributed.DistributedSampler",
        "_utils.collate.default_collate",
        "_utils.worker.get_worker_info",
        "_utils.fetch.DatasetKind",
    ],
)
def test_torchs_module_paths(path: str) -> None:
    module, name = path.rsplit(".", 1)
    found = getattr(importlib.import_module(f"undertow.utils.data.{module}"), name)
    assert found.__name__ == name
    assert eval(f"ut.utils.data.{path}") is found
    from undertow.utils.data import dataloader

    assert isinstance(iter(DataLoader([1])), dataloader._SingleProcessDataLoaderIter)
    assert issubclass(dataloader._MultiProcessingDataLoaderIter, dataloader._BaseDataLoaderIter)


# Datasets ------------------------------------------------------------------------------------
@pytest.mark.parametrize("workers", [0, 2])
def test_streams_are_dealt_out(workers: int) -> None:
    """Each sample to one process and one worker; the rest that not everybody would have to none."""
    shares = [
        [
            int(x)
            for x in DataLoader(DistributedStream(range(23), 2, rank), None, num_workers=workers)
        ]
        for rank in (0, 1)
    ]
    assert [sorted(share) for share in shares] == [[*range(0, 22, 2)], [*range(1, 22, 2)]]
    if not workers:
        rows = [list(DistributedStream(range(9), n, r, shards=4)) for n in (1, 2) for r in range(n)]
        assert rows == [[*range(8)], [0, 1, 4, 5], [2, 3, 6, 7]]
        with pytest.raises(ut.errors.ArgumentError, match="2 replicas cannot share 3 shards"):
            DistributedStream([1], 2, 0, shards=3)
        with pytest.raises(RuntimeError, match="num_replicas and rank"):
            DistributedStream([1])


def test_datasets_without_their_methods_say_so() -> None:
    with pytest.raises(NotImplementedError, match=r"\[Dataset\] .*__getitem__"):
        Dataset()[0]
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(IterableDataset())
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(Sampler())
    with pytest.raises(TypeError):
        len(Dataset())  # type: ignore[arg-type]


def test_tensor_dataset() -> None:
    data = TensorDataset(ut.arange(12).reshape(4, 3), ut.arange(4))
    assert len(data) == 4
    x, y = data[-1]
    assert (x.tolist(), y.item()) == ([9, 10, 11], 3)
    assert data[1:3][1].tolist() == [1, 2]
    with pytest.raises(AssertionError, match=r"Size mismatch between tensors.*\[4, 3\]"):
        TensorDataset(ut.zeros(4), ut.zeros(3))


def test_a_tensor_dataset_that_changes_its_samples_is_asked_for_them() -> None:
    class Doubled(TensorDataset):
        def __getitem__(self, index: Any) -> Any:
            return tuple(2 * t for t in super().__getitem__(index))

    assert numbers(b for (b,) in DataLoader(Doubled(ut.arange(4)), 2)) == [[0, 2], [4, 6]]
    part = Subset(Doubled(ut.arange(4)), [3, 1])
    assert numbers(b for (b,) in DataLoader(part, 2)) == [[6, 2]]


def test_a_dataset_that_stands_for_another_is_asked_for_its_samples() -> None:
    class Standing(Dataset[Any]):
        def __init__(self, dataset: Any) -> None:
            self.dataset = dataset

        def __getattr__(self, name: str) -> Any:
            return getattr(self.dataset, name)

        def __len__(self) -> int:
            return len(self.dataset)

        def __getitem__(self, index: Any) -> Any:
            return (-self.dataset[index][0],)

    stand_in = Standing(TensorDataset(ut.arange(4)))
    assert numbers(b for (b,) in DataLoader(stand_in, 2)) == [[0, -1], [-2, -3]]
    assert numbers(b for (b,) in DataLoader(Subset(stand_in, [3, 2]), 2)) == [[-3, -2]]


def test_indices_of_other_kinds() -> None:
    data = TensorDataset(ut.arange(10, 14))
    for batch in ([-1, 0], [np.int64(3), 0], [ut.tensor(3), ut.tensor(0)], (3, -4)):
        assert numbers(b for (b,) in DataLoader(data, batch_sampler=[batch])) == [[13, 10]]
    with pytest.raises(IndexError):
        list(DataLoader(data, batch_sampler=[[4]]))
    with pytest.raises(IndexError):
        list(DataLoader(data, batch_sampler=[[]]))


def test_batches_of_a_tensor_dataset_are_copies() -> None:
    x = ut.zeros(4, 2)
    for (batch,) in DataLoader(TensorDataset(x), 2):
        batch += 1
    assert x.sum().item() == 0


def test_gradients_reach_the_tensors_of_a_dataset() -> None:
    x = ut.ones(4, 2, requires_grad=True)
    for (batch,) in DataLoader(TensorDataset(x), 3):
        (batch * 2).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[2.0, 2.0]] * 4


def test_tensor_dataset_on_another_device() -> None:
    x = ut.arange(6.0, device="reference").reshape(3, 2)
    (first,), (last,) = DataLoader(TensorDataset(x), 2)
    assert (str(first.device), last.tolist()) == ("reference", [[4.0, 5.0]])


def test_stack_dataset() -> None:
    x, y = TensorDataset(ut.arange(3)), range(10, 13)
    assert StackDataset(x, y)[1][1] == 11
    named = StackDataset(x=x, y=y)
    assert len(named) == 3
    assert [s["y"] for s in named.__getitems__([2, 0])] == [12, 10]
    assert numbers(b["y"] for b in DataLoader(named, 2)) == [[10, 11], [12]]
    with pytest.raises(ValueError, match="got 0 and 0"):
        StackDataset()
    with pytest.raises(ValueError, match="got 1 and 1"):
        StackDataset(x, y=y)
    with pytest.raises(ValueError, match=r"Size mismatch.*\[3, 2\]"):
        StackDataset(x, range(2))

    class Short(Dataset[int]):
        def __len__(self) -> int:
            return 3

        def __getitems__(self, indices: Any) -> list[int]:
            return [0]

    with pytest.raises(ValueError, match="Expected 2, got 1"):
        StackDataset(Short()).__getitems__([0, 1])


def test_concat_and_chain() -> None:
    joined = ConcatDataset([range(2), "", range(5, 8)])
    assert [joined[i] for i in range(-5, 5)] == 2 * [0, 1, 5, 6, 7]
    assert joined.cumulative_sizes == [2, 2, 5]
    with pytest.raises(ValueError, match="-6"):
        joined[-6]
    with pytest.raises(IndexError):
        joined[5]
    with pytest.warns(FutureWarning, match="renamed"):
        assert joined.cummulative_sizes == [2, 2, 5]
    with pytest.raises(AssertionError, match="empty iterable"):
        ConcatDataset([])
    with pytest.raises(AssertionError, match="does not support IterableDataset"):
        ConcatDataset([Count(3)])
    chained = Count(2) + Count(3)
    assert isinstance(chained, ChainDataset)
    assert (list(chained), len(chained)) == ([0, 1, 0, 1, 2], 5)
    with pytest.raises(AssertionError, match="only supports IterableDataset, got range"):
        list(ChainDataset([range(3)]))


def test_subset() -> None:
    part = Subset(TensorDataset(ut.arange(10)), [7, 3, 5])
    assert len(part) == 3
    assert part[[0, 2]][0].tolist() == [7, 5]
    assert [s[0].item() for s in part.__getitems__([2, 1])] == [5, 3]
    assert numbers(b for (b,) in DataLoader(part, 2)) == [[7, 3], [5]]

    class Half(Subset[Any]):
        def __getitem__(self, idx: Any) -> Any:
            return None

    with pytest.raises(NotImplementedError, match="__getitems__"):
        Half(range(3), [0])


@given(st.integers(0, 200), st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_random_split_by_fractions(size: int, shares: list[int]) -> None:
    """Every sample is in one part, and no part is more than one off its share, or one more."""
    fractions = [s / sum(shares) for s in shares]
    if sum(fractions) > 1:
        fractions[0] -= sum(fractions) - 1
    if not 1 - 1e-9 < sum(fractions) <= 1:
        return
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = random_split(range(size), fractions)
    assert sorted(i for part in parts for i in part) == list(range(size))
    for part, fraction in zip(parts, fractions, strict=True):
        assert abs(len(part) - fraction * size) <= 1 + 1e-9


def test_random_split() -> None:
    first = random_split(range(10), [3, 7], ut.Generator().manual_seed(1))
    again = random_split(range(10), [3, 7], ut.Generator().manual_seed(1))
    assert [p.indices for p in first] == [p.indices for p in again]
    ut.manual_seed(3)
    a = random_split(range(100), [50, 50])[0].indices
    ut.manual_seed(3)
    assert random_split(range(100), [50, 50])[0].indices == a
    with pytest.raises(ValueError, match=r"\[3, 3\] sum to 6, the dataset has 10"):
        random_split(range(10), [3, 3])
    with pytest.raises(ValueError, match=r"Fraction at index 0 .*1.5"):
        random_split(range(10), [1.5, -0.5])
    with pytest.warns(UserWarning, match="index 1 is 0"):
        random_split(range(1), [0.5, 0.5])


# Samplers ------------------------------------------------------------------------------------
def test_samplers() -> None:
    assert list(SequentialSampler(range(4))) == [0, 1, 2, 3]
    assert sorted(RandomSampler(range(50))) == list(range(50))
    assert list(RandomSampler(range(50))) != list(range(50))
    assert sorted(SubsetRandomSampler([4, 2, 9])) == [2, 4, 9]
    assert len(SubsetRandomSampler([4, 2, 9])) == 3
    drawn = list(RandomSampler(range(5), replacement=True, num_samples=3000))
    assert len(drawn) == 3000
    assert set(drawn) == set(range(5))
    more = list(RandomSampler(range(3), num_samples=8))
    assert [sorted(more[:3]), sorted(more[3:6]), len(more)] == [[0, 1, 2], [0, 1, 2], 8]
    weighted = WeightedRandomSampler([1.0, 0.0, 3.0], 4000)
    counts = np.bincount(list(weighted), minlength=3)
    assert counts[1] == 0
    assert abs(counts[2] / counts.sum() - 0.75) < 0.05
    assert sorted(WeightedRandomSampler([1, 2, 3], 3, replacement=False)) == [0, 1, 2]


def test_a_dataset_may_grow() -> None:
    data = [0]
    sampler = RandomSampler(data)
    data += [1, 2]
    assert len(sampler) == 3
    assert sorted(sampler) == [0, 1, 2]


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: RandomSampler([1], replacement=1), TypeError, "replacement=1"),
        (lambda: RandomSampler([1], num_samples=0), ValueError, "num_samples=0"),
        (lambda: RandomSampler([]), ValueError, "num_samples=0"),
        (lambda: WeightedRandomSampler([1.0], True), ValueError, "num_samples=True"),
        (lambda: WeightedRandomSampler([1.0], 1, 1), ValueError, "replacement=1"),
        (lambda: WeightedRandomSampler([[1.0]], 1), ValueError, r"shape \(1, 1\)"),
        (lambda: BatchSampler([1], 0, False), ValueError, "batch_size=0"),
        (lambda: BatchSampler([1], True, False), ValueError, "batch_size=True"),
        (lambda: BatchSampler([1], 1, 1), ValueError, "drop_last=1"),
        (lambda: DistributedSampler([1], 2, 2), ValueError, "rank 2"),
        (lambda: DistributedSampler([1]), RuntimeError, "num_replicas and rank"),
    ],
)
def test_samplers_refuse(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@given(st.integers(0, 30), st.integers(1, 9), st.booleans())
def test_batch_sampler(size: int, batch: int, drop_last: bool) -> None:
    sampler = BatchSampler(iter(range(size)), batch, drop_last)
    found = list(sampler)
    kept = size - size % batch if drop_last else size
    assert [i for b in found for i in b] == list(range(kept))
    assert all(len(b) == batch for b in found[:-1])
    assert len(BatchSampler(range(size), batch, drop_last)) == len(found)


@given(st.integers(1, 30), st.integers(1, 6), st.booleans(), st.booleans())
def test_distributed_sampler(size: int, replicas: int, shuffle: bool, drop_last: bool) -> None:
    samplers = [
        DistributedSampler(range(size), replicas, r, shuffle, drop_last=drop_last)
        for r in range(replicas)
    ]
    shares = [list(s) for s in samplers]
    assert len({len(s) for s in shares}) == 1
    assert len(shares[0]) == len(samplers[0])
    seen = [i for s in shares for i in s]
    if drop_last:
        assert len(set(seen)) == len(seen) == size - size % replicas
    else:
        assert set(seen) == set(range(size))


def test_distributed_sampler_shuffles_by_epoch() -> None:
    sampler = DistributedSampler(range(100), 2, 0)
    first = list(sampler)
    assert list(sampler) == first
    sampler.set_epoch(1)
    assert list(sampler) != first


# Collating -----------------------------------------------------------------------------------
def test_collate_numbers_and_arrays() -> None:
    assert default_collate([1, 2]).dtype is ut.int64
    assert default_collate([True, False]).dtype is ut.bool
    assert default_collate([1.0, 2.0]).dtype is ut.float64
    assert default_collate([np.float32(1), np.float32(2)]).dtype is ut.float32
    assert default_collate([np.bool_(1)]).dtype is ut.bool
    assert default_collate([np.ones(2, np.int16)] * 3).dtype is ut.int16
    stacked = default_collate([ut.ones(2), ut.zeros(2)])
    assert stacked.tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert default_collate([ut.tensor(3), ut.tensor(4)]).tolist() == [3, 4]
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([b"a"]) == [b"a"]


def test_collate_containers() -> None:
    found = default_collate([Point(1, {"a": 2.0}), Point(3, {"a": 4.0})])
    assert isinstance(found, Point)
    assert (found.x.tolist(), found.y["a"].tolist()) == ([1, 3], [2.0, 4.0])
    assert isinstance(default_collate([(1, "a"), (2, "b")]), list)
    assert default_collate([(1, "a"), (2, "b")])[1] == ("a", "b")
    assert [t.tolist() for t in default_collate([[1, 2], [3, 4]])] == [[1, 3], [2, 4]]
    assert isinstance(default_collate([OrderedDict(x=1)] * 2), OrderedDict)
    assert isinstance(default_collate([UserDict({"x": 1})] * 2), UserDict)
    assert isinstance(default_collate([UserList([1])] * 2), UserList)
    assert isinstance(default_collate([MappingProxyType({"x": 1})] * 2), MappingProxyType)
    assert [t.tolist() for t in default_collate([range(2), range(2)])] == [[0, 0], [1, 1]]
    with pytest.raises(RuntimeError, match=r"equal size, got sizes \[1, 2\]"):
        default_collate([[1], [1, 2]])
    with pytest.raises(TypeError, match=r"found <class 'object'>"):
        default_collate([object()])
    with pytest.raises(TypeError, match="found <U1"):
        default_collate([np.array(["a"])])
    with pytest.raises(RuntimeError, match="one shape"):
        default_collate([ut.zeros(2), ut.zeros(3)])


def test_collate_can_be_extended(monkeypatch: pytest.MonkeyPatch) -> None:
    from undertow.utils.data._utils import collate

    monkeypatch.setitem(collate.default_collate_fn_map, set, lambda b, collate_fn_map: len(b))
    assert default_collate([({1}, 2), ({3}, 4)])[0] == 2
    both = {ut.Tensor: lambda b, collate_fn_map: ut.cat(list(b))}
    assert collate.collate([ut.ones(1), ut.ones(2)], collate_fn_map=both).shape == (3,)
    monkeypatch.setitem(collate.default_collate_fn_map, ut.Tensor, lambda b, collate_fn_map: "mine")
    assert list(DataLoader(TensorDataset(ut.ones(2)), 2)) == [["mine"]]


def test_convert() -> None:
    found = default_convert({"a": np.ones(2), "b": (np.int32(1), "s"), "c": [1]})
    assert isinstance(found["a"], ut.Tensor)
    assert found["b"][0].dtype is ut.int32
    assert (found["b"][1], found["c"]) == ("s", [1])
    assert default_convert(Point(np.ones(1), 2)).y == 2
    text = np.array(["a"])
    assert default_convert(text) is text
    assert default_convert(range(2)) == [0, 1]  # a range is not made of items
    x = ut.ones(1)
    assert default_convert(x) is x


# Loading in this process ---------------------------------------------------------------------
def test_batches() -> None:
    assert numbers(DataLoader(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert numbers(DataLoader(range(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(DataLoader(range(3), batch_size=None)) == [0, 1, 2]
    assert numbers(DataLoader(range(5), batch_sampler=[[4, 0], [2]])) == [[4, 0], [2]]
    assert numbers(DataLoader(range(5), 2, sampler=[3, 1, 2])) == [[3, 1], [2]]
    assert list(DataLoader(range(4), 2, collate_fn=sum)) == [1, 5]
    assert numbers(DataLoader(Count(5), 2)) == [[0, 1], [2, 3], [4]]
    assert numbers(DataLoader(Count(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(DataLoader(Count(3), batch_size=None)) == [0, 1, 2]
    assert numbers(DataLoader([], 2)) == []
    assert get_worker_info() is None


def test_lengths() -> None:
    assert len(DataLoader(range(5), 2)) == len(iter(DataLoader(range(5), 2))) == 3
    assert len(DataLoader(range(5), 2, drop_last=True)) == 2
    assert len(DataLoader(range(5), batch_size=None)) == 5
    assert len(DataLoader(Count(5), 2)) == 3
    assert len(DataLoader(Count(5), 2, drop_last=True)) == 2
    assert len(DataLoader(range(9), batch_sampler=[[0], [1]])) == 2
    assert len(DataLoader([])) == 0


def test_a_stream_that_is_longer_than_it_says_is_reported() -> None:
    class Liar(Count):
        def __len__(self) -> int:
            return 2

    loader = DataLoader(Liar(3), batch_size=None)
    assert len(loader) == 2
    batches = iter(loader)
    assert [next(batches), next(batches)] == [0, 1]
    with pytest.warns(UserWarning, match=r"reported to be 2 .* but 3 samples"):
        next(batches)


def test_shuffling_is_seeded() -> None:
    loader = DataLoader(range(50), 10, shuffle=True)
    ut.manual_seed(1)
    first, second = numbers(loader), numbers(loader)
    assert first != second
    ut.manual_seed(1)
    assert [numbers(loader), numbers(loader)] == [first, second]
    own = DataLoader(range(50), 10, shuffle=True, generator=ut.Generator().manual_seed(4))
    state = ut.get_rng_state()
    a = numbers(own)
    assert bool((ut.get_rng_state() == state).all())
    own = DataLoader(range(50), 10, shuffle=True, generator=ut.Generator().manual_seed(4))
    assert numbers(own) == a
    assert sorted(i for b in a for i in b) == list(range(50))


def test_samples_of_a_batch_are_asked_for_at_once() -> None:
    class Batched(Dataset[int]):
        def __len__(self) -> int:
            return 4

        def __getitems__(self, indices: list[int]) -> list[int]:
            return [10 * i for i in indices]

    assert numbers(DataLoader(Batched(), 3)) == [[0, 10, 20], [30]]


def test_errors_of_a_dataset_are_its_own() -> None:
    class Broken(Dataset[int]):
        def __getitem__(self, index: int) -> int:
            raise KeyError("gone")

        def __len__(self) -> int:
            return 1

    with pytest.raises(KeyError, match="gone"):
        next(iter(DataLoader(Broken())))


@pytest.mark.parametrize(
    "how, error, message",
    [
        ({"num_workers": -1}, ValueError, "num_workers option should be non-negative"),
        ({"timeout": -1}, ValueError, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, ValueError, "prefetch_factor option could only"),
        ({"prefetch_factor": -1, "num_workers": 1}, ValueError, "prefetch_factor.*got -1"),
        ({"persistent_workers": True}, ValueError, "needs num_workers > 0"),
        ({"sampler": [0], "shuffle": True}, ValueError, "mutually exclusive with shuffle"),
        ({"batch_sampler": [[0]], "batch_size": 2}, ValueError, "batch_sampler option is mutually"),
        ({"batch_sampler": [[0]], "shuffle": True}, ValueError, "batch_sampler option is mutually"),
        ({"batch_sampler": [[0]], "drop_last": True}, ValueError, "batch_sampler option is"),
        ({"batch_sampler": [[0]], "sampler": [0]}, ValueError, "batch_sampler option is mutually"),
        ({"batch_size": None, "drop_last": True}, ValueError, "disables auto-batching"),
        ({"batch_size": 0}, ValueError, "batch_size=0"),
        ({"batch_size": 1.5}, ValueError, "batch_size=1.5"),
        ({"multiprocessing_context": "fork"}, ValueError, "num_workers=0"),
        (
            {"multiprocessing_context": "telepathy", "num_workers": 1},
            ValueError,
            "valid start method in .*telepathy",
        ),
        ({"multiprocessing_context": 3, "num_workers": 1}, TypeError, "valid context object"),
    ],
)
def test_arguments_that_do_not_fit(how: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        DataLoader(range(3), **how)


@pytest.mark.parametrize(
    "how", [{"shuffle": True}, {"sampler": [0]}, {"batch_sampler": [[0]]}], ids=str
)
def test_a_stream_has_no_order_to_choose(how: Any) -> None:
    with pytest.raises(ValueError, match=f"unspecified {next(iter(how))} option"):
        DataLoader(Count(3), **how)
    DataLoader(Count(3), shuffle=False)


def test_a_loader_is_not_changed() -> None:
    loader = DataLoader(range(3), pin_memory=True, pin_memory_device="cuda")
    assert numbers(loader) == [[0], [1], [2]]
    for name in ("batch_size", "sampler", "batch_sampler", "drop_last", "dataset"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set"):
            setattr(loader, name, None)
    loader.collate_fn = sum
    assert list(loader) == [0, 1, 2]


def test_a_timeout_needs_workers() -> None:
    with pytest.raises(AssertionError, match="num_workers > 0"):
        iter(DataLoader(range(3), timeout=1))


def test_loaders_are_pickled_and_iterators_not() -> None:
    loader = DataLoader(range(5), 2)
    for other in (copy.copy(loader), pickle.loads(pickle.dumps(loader))):
        assert numbers(other) == numbers(loader)
        with pytest.raises(ValueError, match="should not be set"):
            other.batch_size = 3
    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        pickle.dumps(iter(loader))


def test_generic_names() -> None:
    """Subclasses name their samples' type, as in torch."""
    assert all((Dataset[int], DataLoader[int], Sampler[list[int]], IterableDataset[str]))
