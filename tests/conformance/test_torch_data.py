"""`utils.data` beside torch's: lengths, order, grouping, collated results, kinds of errors."""

from __future__ import annotations

import gc
import random
import warnings
from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.conformance,
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.filterwarnings("ignore:.*pin_memory"),
    # torch's iterators that could not be made
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
import torch.utils.data as theirs  # noqa: E402

import undertow.utils.data as ours  # noqa: E402

Point = namedtuple("Point", "x y")


def plain(value: Any) -> Any:
    """A result without the library it came from: dtype, shape and elements of each tensor."""
    if isinstance(value, (ut.Tensor, torch.Tensor)):
        name = str(value.dtype).removeprefix("torch.").removeprefix("undertow.")
        return name, tuple(value.shape), value.tolist()
    if isinstance(value, dict):
        return type(value).__name__, {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(v) for v in value]
    return value


def both(make: Any) -> tuple[Any, Any]:
    """What a function of (library, its utils.data) gives for each: a result, or an error's kind."""
    found = []
    for module, data in ((ut, ours), (torch, theirs)):
        try:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                result = plain(make(module, data))
            found.append((result, sorted({w.category.__name__ for w in warned})))
        except Exception as error:
            found.append(error)
    return found[0], found[1]


def same(make: Any) -> None:
    mine, other = both(make)
    if isinstance(other, Exception):
        kind = next(c for c in type(other).__mro__ if c.__module__ == "builtins")
        assert isinstance(mine, kind), f"{mine!r}, torch raises {other!r}"
    else:
        assert mine == other


# Names ---------------------------------------------------------------------------------------
# torch's pipelines of datasets, which it has stopped to develop.
PIPES = {
    "DFIterDataPipe",
    "DataChunk",
    "IterDataPipe",
    "MapDataPipe",
    "argument_validation",
    "functional_datapipe",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "runtime_validation",
    "runtime_validation_disabled",
}


def test_every_name_is_there() -> None:
    import inspect

    for name in set(theirs.__all__) - PIPES:
        if name.startswith("_"):
            continue
        mine, other = getattr(ours, name), getattr(theirs, name)
        wanted = list(inspect.signature(other).parameters)
        more = ["shards"] if name == "DistributedSampler" else []  # ours; see docs/distributed.md
        assert list(inspect.signature(mine).parameters) == [*wanted, *more], name


def test_defaults_of_the_loader() -> None:
    import inspect

    mine, other = (inspect.signature(d.DataLoader).parameters for d in (ours, theirs))
    for name, parameter in other.items():
        assert mine[name].default == parameter.default, name
        assert mine[name].kind == parameter.kind, name


# Datasets and samplers -----------------------------------------------------------------------
@pytest.mark.parametrize(
    "make",
    [
        lambda m, d: d.TensorDataset(m.arange(3), m.arange(4)),
        lambda m, d: d.TensorDataset(m.arange(3), m.arange(6).reshape(3, 2))[1],
        lambda m, d: d.StackDataset(range(3), "abc")[2],
        lambda m, d: d.StackDataset(a=range(3), b="abc")[2],
        lambda m, d: d.StackDataset(a=range(3), b="abc").__getitems__([0, 2]),
        lambda m, d: d.StackDataset(),
        lambda m, d: d.StackDataset("a", b="b"),
        lambda m, d: d.StackDataset("a", "bc"),
        lambda m, d: d.ConcatDataset(["ab", "", "cd"])[-1],
        lambda m, d: d.ConcatDataset(["ab", "", "cd"])[2],
        lambda m, d: d.ConcatDataset(["ab", "", "cd"])[4],
        lambda m, d: d.ConcatDataset(["ab"])[-3],
        lambda m, d: d.ConcatDataset([]),
        lambda m, d: list(d.ChainDataset(["ab"])),
        lambda m, d: d.Subset("abcdef", [5, 1])[1],
        lambda m, d: d.Subset(d.TensorDataset(m.arange(5)), [4, 2, 0])[[0, 1]],
        lambda m, d: d.Dataset()[0],
        lambda m, d: len(d.Dataset()),
        lambda m, d: list(d.BatchSampler(range(7), 3, False)),
        lambda m, d: list(d.BatchSampler(range(7), 3, True)),
        lambda m, d: list(d.BatchSampler(range(6), 3, True)),
        lambda m, d: list(d.BatchSampler([], 3, False)),
        lambda m, d: len(d.BatchSampler(range(7), 3, False)),
        lambda m, d: len(d.BatchSampler(iter([]), 3, False)),
        lambda m, d: d.BatchSampler(range(7), 0, False),
        lambda m, d: d.BatchSampler(range(7), 2.0, False),
        lambda m, d: d.BatchSampler(range(7), True, False),
        lambda m, d: d.BatchSampler(range(7), 2, 0),
        lambda m, d: d.RandomSampler([]),
        lambda m, d: d.RandomSampler([1], replacement=0),
        lambda m, d: d.RandomSampler([1], num_samples=-1),
        lambda m, d: d.RandomSampler([1], num_samples=1.5),
        lambda m, d: len(list(d.RandomSampler(range(5), num_samples=13))),
        lambda m, d: sorted(d.RandomSampler(range(5), num_samples=10)),
        lambda m, d: len(list(d.RandomSampler(range(5), True, 70))),
        lambda m, d: sorted(d.SubsetRandomSampler([5, 3])),
        lambda m, d: d.WeightedRandomSampler([1, 2], 0),
        lambda m, d: d.WeightedRandomSampler([1, 2], 2, 1),
        lambda m, d: d.WeightedRandomSampler([[1, 2]], 2),
        lambda m, d: d.WeightedRandomSampler([1, 2], 2).weights,
        lambda m, d: list(d.WeightedRandomSampler([0, 2], 3)),
        lambda m, d: list(d.WeightedRandomSampler([1, 2], 3, False)),
        lambda m, d: d.DistributedSampler(range(5), 2, 2),
        lambda m, d: d.DistributedSampler(range(5), 2, -1),
        lambda m, d: d.DistributedSampler(range(5)),
    ],
)
def test_datasets_and_samplers(make: Any) -> None:
    same(make)


@pytest.mark.parametrize("size", [1, 2, 5, 7, 12])
@pytest.mark.parametrize("replicas", [1, 2, 3, 8])
@pytest.mark.parametrize("drop_last", [False, True])
def test_distributed_sampler(size: int, replicas: int, drop_last: bool) -> None:
    for rank in range(replicas):
        for shuffle in (False, True):

            def make(m: Any, d: Any, rank: int = rank, shuffle: bool = shuffle) -> Any:
                sampler = d.DistributedSampler(range(size), replicas, rank, shuffle, 3, drop_last)
                found = list(sampler)
                size_of_all = sampler.total_size, sampler.num_samples, len(sampler)
                return size_of_all, len(found) if shuffle else found

            same(make)


@pytest.mark.parametrize("size", [0, 1, 7, 10, 99])
@pytest.mark.parametrize(
    "lengths",
    [[1.0], [0.5, 0.5], [0.3, 0.3, 0.4], [0.1] * 10, [0.9, 0.1], [0.7, 0.2, 0.05, 0.05], [3, 7],
     [1.5, -0.5], [0.5, 0.4], [10]],
)  # fmt: skip
def test_random_split_sizes(size: int, lengths: Any) -> None:
    same(lambda m, d: [len(part) for part in d.random_split(range(size), lengths)])


# Collating -----------------------------------------------------------------------------------
SAMPLES: list[Any] = [
    lambda m: [1, 2, 3],
    lambda m: [True, False],
    lambda m: [1.5, 2.5],
    lambda m: ["a", "b"],
    lambda m: [b"a", b"b"],
    lambda m: [np.float32(1), np.float32(2)],
    lambda m: [np.float64(1), np.float64(2)],
    lambda m: [np.int32(1), np.int32(2)],
    lambda m: [np.bool_(True)],
    lambda m: [np.array(1.0), np.array(2.0)],
    lambda m: [np.ones((2, 3), np.float32)] * 2,
    lambda m: [np.ones(2, np.uint8)] * 2,
    lambda m: [np.array(["a"])] * 2,
    lambda m: [np.array([None])] * 2,
    lambda m: [m.ones(2, 3), m.zeros(2, 3)],
    lambda m: [m.ones(2), m.ones(3)],
    lambda m: [m.ones(2), m.ones(2, dtype=m.float64)],
    lambda m: [m.tensor(1), m.tensor(2)],
    lambda m: [m.ones(0), m.ones(0)],
    lambda m: [(1, 2.0, "s"), (3, 4.0, "t")],
    lambda m: [[1, 2.0], [3, 4.0]],
    lambda m: [[1], [2, 3]],
    lambda m: [[], []],
    lambda m: [{"a": 1, "b": [2, 3]}, {"a": 4, "b": [5, 6]}],
    lambda m: [{"a": 1}, {"b": 4}],
    lambda m: [OrderedDict(a=1), OrderedDict(a=2)],
    lambda m: [Point(1, m.ones(2)), Point(2, m.zeros(2))],
    lambda m: [range(2), range(2)],
    lambda m: [((1, 2), (3,)), ((4, 5), (6,))],
    lambda m: [None, None],
    lambda m: [object()],
    lambda m: [],
    lambda m: [1, 2.5],
    lambda m: [2.5, 1],
    lambda m: [1 + 2j],
]


@pytest.mark.parametrize("number", range(len(SAMPLES)))
def test_collate(number: int) -> None:
    same(lambda m, d: d.default_collate(SAMPLES[number](m)))


@pytest.mark.parametrize("number", range(len(SAMPLES)))
def test_convert(number: int) -> None:
    def make(m: Any, d: Any) -> Any:
        found = d.default_convert(SAMPLES[number](m))
        return repr(found) if "object" in repr(found) else found

    if number not in (13, 30):  # objects, whose addresses differ
        same(make)


# The loader ----------------------------------------------------------------------------------
class Items:
    def __init__(self, sample: Any, size: int = 7) -> None:
        self.sample, self.size = sample, size

    def __getitem__(self, index: int) -> Any:
        return self.sample(index)

    def __len__(self) -> int:
        return self.size


def stream(data: Any, size: int = 7, length: int | None = None) -> Any:
    class Stream(data.IterableDataset):  # type: ignore[misc]
        def __iter__(self) -> Any:
            info = data.get_worker_info()
            return iter(range(size) if info is None else range(info.id, size, info.num_workers))

    class Sized(Stream):
        def __len__(self) -> int:
            assert length is not None
            return length

    return Stream() if length is None else Sized()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"batch_size": 3},
        {"batch_size": 3, "drop_last": True},
        {"batch_size": None},
        {"batch_size": 100},
        {"sampler": [4, 2, 6], "batch_size": 2},
        {"batch_sampler": [[1], [3, 5]]},
        {"batch_size": 2, "collate_fn": list},
        {"batch_size": 3, "pin_memory": True},
    ],
    ids=str,
)
def test_batches(how: Any, workers: int) -> None:
    def make(m: Any, d: Any) -> Any:
        loader = d.DataLoader(Items(lambda i: {"x": i, "y": str(i)}), num_workers=workers, **how)
        return len(loader), list(loader)

    mine, other = both(make)
    assert mine[0] == other[0]  # torch warns of memory that is not pinned


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("how", [{}, {"batch_size": 3}, {"batch_size": 2, "drop_last": True}])
def test_streams(how: Any, workers: int) -> None:
    same(lambda m, d: list(d.DataLoader(stream(d), num_workers=workers, **how)))


@pytest.mark.parametrize(
    "how",
    [
        {"num_workers": -1},
        {"timeout": -1},
        {"prefetch_factor": 2},
        {"prefetch_factor": -2, "num_workers": 1},
        {"persistent_workers": True},
        {"sampler": [0], "shuffle": True},
        {"batch_sampler": [[0]], "batch_size": 2},
        {"batch_sampler": [[0]], "shuffle": True},
        {"batch_sampler": [[0]], "drop_last": True},
        {"batch_sampler": [[0]], "sampler": [0]},
        {"batch_size": None, "drop_last": True},
        {"batch_size": None, "shuffle": True},
        {"batch_size": 0},
        {"batch_size": -1},
        {"batch_size": 1.5},
        {"drop_last": 1},
        {"shuffle": 1},
        {"multiprocessing_context": "fork"},
        {"multiprocessing_context": "no", "num_workers": 1},
        {"multiprocessing_context": 1, "num_workers": 1},
        {"timeout": 1},
        {"prefetch_factor": 0, "num_workers": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["map", "stream"])
def test_arguments(how: Any, kind: str) -> None:
    def make(m: Any, d: Any) -> Any:
        data = Items(int) if kind == "map" else stream(d)
        loader = d.DataLoader(data, **how)
        return len(list(iter(loader)))

    same(make)
    gc.collect()  # torch's iterators that could not be made complain here, not in another test


@pytest.mark.parametrize("length", [0, 1, 5, 6])
@pytest.mark.parametrize("how", [{}, {"batch_size": 2}, {"batch_size": None}])
def test_the_length_that_a_stream_claims(length: int, how: Any) -> None:
    def make(m: Any, d: Any) -> Any:
        loader = d.DataLoader(stream(d, 5, length), **how)
        return len(loader), list(loader)

    same(make)


class Odd(Exception):
    def __init__(self, a: int, b: int) -> None:
        super().__init__(a, b)


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), KeyError("x"), IndexError("x"), FileNotFoundError("x"), Odd(1, 2),
     NotImplementedError("x"), AssertionError("x")],
    ids=repr,
)  # fmt: skip
def test_errors_of_workers(error: Exception) -> None:
    def sample(i: int) -> int:
        raise error

    mine, other = both(lambda m, d: list(d.DataLoader(Items(sample), num_workers=1)))
    assert type(mine) is type(other)
    assert str(mine).splitlines()[0] == str(other).splitlines()[0]


def test_seeds_of_workers() -> None:
    """The same base seed gives the same seeds, in Python's and NumPy's generators too."""
    from torch.utils.data._utils.worker import _generate_state

    from undertow.utils.data._utils.worker import _seed

    for base in (0, 1, 2**40 + 17, 2**63 - 1):
        for number in (0, 1, 5):
            random.seed(base + number)
            np.random.seed(_generate_state(base, number))  # noqa: NPY002
            wanted = random.random(), np.random.rand()  # noqa: NPY002
            _seed(base, number)
            assert (random.random(), np.random.rand()) == wanted  # noqa: NPY002
            assert ut.initial_seed() == base + number


def test_setting_attributes() -> None:
    for name in ("batch_size", "sampler", "batch_sampler", "drop_last", "dataset", "num_workers"):
        same(lambda m, d, name=name: setattr(d.DataLoader(range(3)), name, 0))
