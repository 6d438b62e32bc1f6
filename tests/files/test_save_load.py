"""`ut.save` and `ut.load`: nested data comes back as it was, and memory is shared as it was."""

from __future__ import annotations

import io
import math
import pickle
import zipfile
from collections import Counter, OrderedDict, defaultdict, namedtuple
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import undertow as ut
from undertow.errors import DeviceError, FileError
from undertow.files import archive
from undertow.files.pickling import Pickle
from undertow.files.storages import Storages


def through(obj: Any, **how: Any) -> Any:
    file = io.BytesIO()
    ut.save(obj, file)
    file.seek(0)
    return ut.load(file, **how)


# Plain data --------------------------------------------------------------------------------------
numbers = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
)
words = st.text(st.characters(), max_size=10) | st.binary(max_size=10)
keys = numbers | words | st.tuples(st.integers(), st.text(max_size=3))
data = st.recursive(
    numbers | words | st.sampled_from([ut.float32, ut.bool, ut.device("cpu"), ut.device("x:3")]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
        | st.dictionaries(keys, inner, max_size=4).map(OrderedDict)
        | st.sets(keys, max_size=4)
        | st.frozensets(keys, max_size=4)
        | st.binary(max_size=4).map(bytearray)
    ),
    max_leaves=25,
)


def same_types(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return all(same_types(a[k], b[k]) for k in a) and list(map(type, a)) == list(map(type, b))
    if isinstance(a, (list, tuple)):
        return all(map(same_types, a, b))
    return True


@settings(max_examples=200, deadline=None)
@given(data)
def test_plain_data(obj: Any) -> None:
    found = through(obj)
    assert found == obj
    assert same_types(found, obj)


def test_awkward_numbers() -> None:
    values = [2**31, -(2**31), 2**63, -(2**200), 255, 256, 65535, -1, -0.0, math.inf, 5e-324]
    found = through([*values, math.nan])
    assert found[:-1] == values
    assert math.copysign(1, found[8]) == -1
    assert math.isnan(found[-1])
    assert through(2 ** (8 * 255 - 1) - 1) == 2 ** (8 * 255 - 1) - 1
    with pytest.raises(FileError, match="save it as a string"):
        through({"n": 2**4000})


def test_numpy_numbers_become_pythons() -> None:
    found = through({"a": np.float64(0.5), "b": np.int32(3), "c": np.bool_(True)})
    assert found == {"a": 0.5, "b": 3, "c": True}
    assert list(map(type, found.values())) == [float, int, bool]


ARRAYS = [
    np.arange(6.0).reshape(2, 3),
    np.arange(6, dtype=np.int16).reshape(2, 3).T,
    np.arange(3, dtype=">f4"),
    np.array([True, False]),
    np.array([1 + 2j], np.complex64),
    np.zeros((0, 3), np.uint8),
    np.array(["ab", "c"]),
    np.array([b"abc"]),
    np.arange(10, dtype=np.uint64)[::-2],
]


def read_pickle(data: bytes) -> Any:
    """What is read of a checkpoint whose pickle somebody else wrote."""
    records = [("a/data.pkl", data), ("a/version", b"3")]
    return ut.load(io.BytesIO(b"".join(archive.archive(records))))


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_numpy_arrays(array: Any) -> None:
    """They come back as they were, and as pickle itself would read and write them."""
    import pickle

    obj = {"rng": [array, {"again": array}], "x": ut.ones(2)}
    found = through(obj)["rng"]
    assert found[0] is found[1]["again"]
    written = Pickle(Storages()).write(array)
    theirs = [read_pickle(pickle.dumps(array, protocol)) for protocol in (2, 3, 4)]
    for one in (found[0], pickle.loads(written), *theirs):
        np.testing.assert_array_equal(one, array)
        assert type(one) is np.ndarray
        assert one.dtype == array.dtype.newbyteorder("=") or one.dtype == array.dtype


def test_numpy_numbers_of_others() -> None:
    """A number that pickle wrote stays NumPy's."""
    import pickle

    found = read_pickle(pickle.dumps({"a": np.float32(0.5)}, 2))
    assert type(found["a"]) is np.float32
    assert found["a"] == 0.5


def test_identity_and_cycles() -> None:
    shared = [1, 2]
    obj: dict[str, Any] = {"a": shared, "b": shared, "t": (shared, shared)}
    obj["self"] = obj
    found = through(obj)
    assert found["a"] is found["b"] is found["t"][0] is found["t"][1]
    assert found["self"] is found
    inside: list[Any] = []
    loop = (inside,)
    inside.append(loop)
    with pytest.raises(FileError, match="a tuple that contains itself"):
        through(loop)


def test_many_items() -> None:
    """More than a byte can number."""
    obj = {f"key{i}": [i, f"text{i}", (i, i + 1)] for i in range(3000)}
    assert through(obj) == obj


def test_state_dicts_keep_their_metadata() -> None:
    model = ut.nn.Sequential(ut.nn.Linear(2, 3), ut.nn.Linear(3, 1))
    state = model.state_dict()
    found = through({"model": state, "count": Counter("aab")})
    assert type(found["model"]) is OrderedDict
    assert found["model"]._metadata == state._metadata
    assert found["count"] == Counter("aab")
    model.load_state_dict(found["model"])


# Tensors -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [*ut.dtypes.ALL, *ut.dtypes.RARE], ids=lambda d: d.name)
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_dtypes_and_devices(dtype: Any, device: str) -> None:
    for shape in [(), (0,), (2, 0), (3,), (2, 3)]:
        t = (ut.arange(math.prod(shape)).reshape(shape) % 2).to(dtype).to(device)
        found = through([t])[0]
        assert found.dtype is dtype
        assert found.shape == shape
        assert found.device == t.device
        assert found.tolist() == t.tolist()
        if not found.numel():
            continue
        found.fill_(1)  # memory that may be changed
        assert found.bool().all()


def test_views_share_memory_again() -> None:
    x = ut.arange(12).reshape(3, 4).float()
    obj = {"x": x, "t": x.t(), "row": x[1], "last": x[2, 3], "step": x[:, ::2], "other": x + 0}
    found = through(obj)
    for name, t in obj.items():
        assert found[name].tolist() == t.tolist()
        assert found[name].stride() == t.stride()
        assert found[name].storage_offset() == t.storage_offset()
    found["x"].mul_(10)
    assert found["row"].tolist() == [40, 50, 60, 70]
    assert found["last"].item() == 110
    assert found["other"].tolist() == x.tolist()
    assert found["t"]._version == found["x"]._version == 1  # one memory, one version


def test_shared_memory_is_written_once(tmp_path: Path) -> None:
    x = ut.ones(100_000)
    ut.save([x, x[5:], x.reshape(100, 1000), x], tmp_path / "f")
    assert (tmp_path / "f").stat().st_size < 410_000
    found = ut.load(tmp_path / "f")
    assert found[0] is found[3]


def test_expanded_and_flipped() -> None:
    x = ut.ones(1).expand(1000, 1000)
    assert through(x).stride() == (0, 0)
    flipped = ut.from_numpy(np.arange(5)[::-1])
    assert through([flipped])[0].tolist() == [4, 3, 2, 1, 0]


def test_parts_of_complex_numbers() -> None:
    z = ut.tensor([1 + 2j, 3 + 4j])
    assert through(z.imag).tolist() == [2, 4]
    with pytest.raises(FileError, match="clone"):
        through([z, z.real])


def test_requires_grad_and_parameters() -> None:
    x = ut.ones(2, requires_grad=True)
    p = ut.nn.Parameter(ut.ones(3), requires_grad=False)
    found = through([x, p, x * 2, p])
    assert [t.requires_grad for t in found] == [True, False, True, False]
    assert [type(t) for t in found] == [ut.Tensor, ut.nn.Parameter, ut.Tensor, ut.nn.Parameter]
    assert all(t.is_leaf for t in found)
    assert found[1] is found[3]


def test_map_location() -> None:
    obj = {"a": ut.ones(2), "b": ut.zeros(2, device="reference")}
    assert {str(t.device) for t in through(obj, map_location="cpu").values()} == {"cpu"}
    device = ut.device("reference")
    assert {t.device for t in through(obj, map_location=device).values()} == {device}
    swapped = through(obj, map_location={"cpu": "reference", "reference": "cpu"})
    assert [str(t.device) for t in swapped.values()] == ["reference", "cpu"]
    assert swapped["b"].tolist() == [0, 0]
    seen = []

    def choose(storage: Any, location: str) -> Any:
        seen.append((str(storage.device), location, storage.nbytes))
        return storage if location == "reference" else None

    found = through(obj, map_location=choose)
    assert seen == [("cpu", "cpu", 8), ("cpu", "reference", 8)]
    assert {str(t.device) for t in found.values()} == {"cpu"}
    with pytest.raises(DeviceError, match="map_location='cpu'"):
        through(obj, map_location="cuda:0")
    with pytest.raises(TypeError, match="map_location"):
        through(obj, map_location=3)


# Files -------------------------------------------------------------------------------------------
def test_paths_are_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    ut.save({"x": ut.ones(3)}, path)
    before = path.read_bytes()
    with pytest.raises(TypeError):
        ut.save({"x": ut.zeros(3), "bad": np.array([None])}, path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.pt"]
    ut.save({"x": ut.ones(3)}, str(path))
    assert path.read_bytes() == before  # the same content, the same bytes


def test_mapped(tmp_path: Path) -> None:
    path = tmp_path / "f"
    ut.save({"x": ut.arange(1000), "b": ut.tensor([True, False])}, path)
    before = path.read_bytes()
    found = ut.load(path, mmap=True)
    ut.save({"x": ut.zeros(1)}, path)  # takes its place, and not its bytes
    assert found["x"].sum().item() == 499500
    found["x"].zero_()
    path.write_bytes(before)
    assert ut.load(path)["x"].sum().item() == 499500
    with pytest.raises(TypeError, match="mmap"):
        ut.load(io.BytesIO(before), mmap=True)


def test_records_lie_on_lines(tmp_path: Path) -> None:
    ut.save([ut.ones(3), ut.ones(50), ut.ones(1, dtype=ut.int8)], tmp_path / "f")
    with open(tmp_path / "f", "rb") as file:
        content = file.read()
    for name, record in archive.read_archive(memoryview(content)).items():
        assert record.start % 64 == 0, name
    with zipfile.ZipFile(tmp_path / "f") as zip:  # a zip file like any other
        assert zip.testzip() is None
        assert "archive/data/2" in zip.namelist()


def test_large_archives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sizes need 64 bits: here, as if that was so from 100 bytes on."""
    monkeypatch.setattr(archive, "_LARGE", 100)
    monkeypatch.setattr(archive, "_MANY", 3)
    records = [(f"name{i}", bytes([i]) * (i * 40)) for i in range(8)]
    content = memoryview(b"".join(archive.archive(records)))
    found = archive.read_archive(content)
    for name, expected in records:
        assert archive.record_bytes(content, name, found[name]) == expected


def test_streams(tmp_path: Path) -> None:
    with open(tmp_path / "f", "wb") as file:
        ut.save(ut.arange(3), file)
    with open(tmp_path / "f", "rb") as file:
        assert ut.load(file).tolist() == [0, 1, 2]
    with open(tmp_path / "f", "rb", buffering=0) as file:
        assert ut.load(file).tolist() == [0, 1, 2]


# Names that a file may mention -------------------------------------------------------------------
class Point:
    def __init__(self, x: int) -> None:
        self.x = x


def pickled(obj: Any) -> io.BytesIO:
    """A checkpoint of a plain pickle, such as others write."""
    import pickle

    records = [("archive/data.pkl", pickle.dumps(obj, 2)), ("archive/version", b"3\n")]
    return io.BytesIO(b"".join(archive.archive(records)))


def test_safe_globals() -> None:
    point = Point(3)
    with pytest.raises(FileError, match=r"asks for .*Point.*add_safe_globals"):
        ut.load(pickled(point))
    with pytest.raises(FileError, match=r"asks for .*Point"):
        ut.load(pickled(point), weights_only=False)
    with ut.serialization.safe_globals([Point]):
        assert ut.load(pickled({"p": point}))["p"].x == 3
        with pytest.raises(FileError, match="Fraction"):
            ut.load(pickled(Fraction(1, 3)))
    with pytest.raises(FileError, match="Point"):
        ut.load(pickled(point))
    ut.serialization.add_safe_globals([(Fraction, "fractions.Fraction")])
    try:
        assert ut.load(pickled(Fraction(1, 3))) == Fraction(1, 3)
        assert len(ut.serialization.get_safe_globals()) == 1
    finally:
        ut.serialization.clear_safe_globals()
    assert ut.serialization.get_safe_globals() == []
    with pytest.raises(TypeError, match="add_safe_globals"):
        ut.serialization.add_safe_globals(["os.system"])  # type: ignore[list-item]


@pytest.mark.parametrize("factory", [list, int, str, set, OrderedDict, None])
def test_a_dict_that_was_allowed(factory: Any) -> None:
    """The advice of each error works."""
    before = defaultdict(factory, {"a": 1, "b": [2]})
    with pytest.raises(FileError, match=r"add_safe_globals\(\[collections.defaultdict\]\)"):
        ut.load(pickled(before))
    with ut.serialization.safe_globals([defaultdict]):
        if factory in (list, int, str):
            advice = rf"add_safe_globals\(\[{factory.__name__}\]\)"
            with pytest.raises(FileError, match=advice):
                ut.load(pickled(before))
        with ut.serialization.safe_globals([factory] if factory else []):
            after = ut.load(pickled(before))
    assert type(after) is defaultdict
    assert after == before
    assert after.default_factory is factory


class Names(dict[str, int]):
    pass


class Numbers(list[int]):
    pass


def test_subclasses_of_containers() -> None:
    before = [Names(a=1, b=2), Numbers([1, 2, 3])]
    with ut.serialization.safe_globals([Names, Numbers]):
        after = ut.load(pickled(before))
    assert after == before
    assert [type(thing) for thing in after] == [Names, Numbers]


def test_other_protocols() -> None:
    import pickle

    obj = {"a": [1, 2**70, "x" * 300, b"y" * 300, bytearray(b"z"), {1, 2}, frozenset({3})]}
    for protocol in (2, 3, 4, 5):
        records = [("a/data.pkl", pickle.dumps(obj, protocol)), ("a/version", b"3")]
        assert ut.load(io.BytesIO(b"".join(archive.archive(records)))) == obj


# What is refused when saving ---------------------------------------------------------------------
REFUSED = [
    (np.array([None]), "an array of numbers"),
    (np.zeros(2, "i4,f8"), "an array of numbers"),
    (np.ma.array([1.0]), "an array of numbers"),
]


@pytest.mark.parametrize("obj, message", REFUSED, ids=lambda v: type(v).__name__)
def test_refused(obj: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ut.save(obj, io.BytesIO())


# What libraries save beside tensors, as in torch; see tests/files/test_whole_files.py for modules.
Pair = namedtuple("Pair", "a b")
OBJECTS = [
    ({"f": print}, [print]),
    ({"f": Fraction}, [Fraction]),
    ([Pair(1, ut.ones(2))], [Pair]),
    (defaultdict(list, a=[1]), [defaultdict, list]),
    (1 / Fraction(3), [Fraction]),
]


@pytest.mark.parametrize("obj, allowed", OBJECTS, ids=lambda v: type(v).__name__)
def test_other_objects_are_written_and_read_where_they_are_allowed(obj: Any, allowed: Any) -> None:
    file = io.BytesIO()
    ut.save(obj, file)
    file.seek(0)
    with pytest.raises(FileError, match="asks for"):
        ut.load(file)
    file.seek(0)
    with ut.serialization.safe_globals(allowed):
        found = ut.load(file)
    assert type(found) is type(obj)
    assert str(found) == str(obj)


def test_what_has_no_name_is_refused() -> None:
    with pytest.raises(FileError, match="cannot be found by its name"):
        ut.save({"f": lambda: 1}, io.BytesIO())


def test_deep_data_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(FileError, match="nested too deeply"):
        ut.save(deep, io.BytesIO())


def test_bad_arguments(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"the order is ut\.save\(obj, file\)"):
        ut.save(io.BytesIO(), ut.ones(1))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="reads a path"):
        ut.load(3)  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="pickle_module"):
        ut.load(tmp_path / "f", pickle_module=io)
    with pytest.raises(NotImplementedError, match="pickle_module"):
        ut.save(1, tmp_path / "f", pickle_module=io)
    with pytest.raises(ValueError, match="pickle_protocol is at most"):
        ut.save(1, tmp_path / "f", pickle_protocol=99)
    with pytest.raises(FileNotFoundError):
        ut.load(tmp_path / "f")
    ut.save(ut.ones(2), tmp_path / "f")
    assert ut.load(tmp_path / "f", weights_only=None, encoding="ascii").tolist() == [1, 1]


def test_arrays_without_dimensions(tmp_path: Path) -> None:
    path = tmp_path / "zero"
    ut.save({"a": np.array(5), "b": np.float32(2)}, path)
    found = ut.load(path)
    assert found["a"].shape == ()
    assert (int(found["a"]), found["b"]) == (5, 2.0)


def test_a_file_object_is_flushed(tmp_path: Any) -> None:
    """Who opens the file by its name, while it is still open for writing, finds all of it."""
    with open(tmp_path / "x.pt", "wb") as f:
        ut.save(ut.ones(3), f)
        assert ut.load(tmp_path / "x.pt").tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("protocol", [2, 4, pickle.HIGHEST_PROTOCOL, -1])
def test_protocols_of_pickle_are_taken(protocol: int) -> None:
    file = io.BytesIO()
    ut.save({"x": ut.arange(3)}, file, pickle_module=pickle, pickle_protocol=protocol)
    file.seek(0)
    assert ut.load(file, pickle_module=pickle)["x"].tolist() == [0, 1, 2]
