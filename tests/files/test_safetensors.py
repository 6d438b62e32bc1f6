"""Safetensors files: what is written is read, nothing else is taken, and no half file is left."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import undertow as ut
from undertow.errors import FileError
from undertow.files import atomic
from undertow.files.safetensors import load, load_file, safe_open, save, save_file

DTYPES = [
    ut.bool,
    ut.uint8,
    ut.int8,
    ut.int16,
    ut.int32,
    ut.int64,
    ut.float16,
    ut.bfloat16,
    ut.float32,
    ut.float64,
    ut.complex64,
]


def same(a: ut.Tensor, b: ut.Tensor) -> bool:
    return (
        a.dtype is b.dtype
        and a.shape == b.shape
        and a.numpy().tobytes() == b.contiguous().numpy().tobytes()
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (5,), (2, 3, 4)])
def test_round_trip(tmp_path: Path, dtype: Any, shape: Any) -> None:
    t = ut.arange(int(np.prod(shape))).reshape(shape).to(dtype)
    save_file({"t": t, "other": ut.ones(3)}, tmp_path / "f")
    for loaded in (load_file(tmp_path / "f"), load_file(tmp_path / "f", mmap=False)):
        assert same(loaded["t"], t)
        loaded["t"].zero_()  # memory of its own
    assert same(load(save({"t": t}))["t"], t)
    with safe_open(tmp_path / "f") as file:
        assert same(file.get_tensor("t"), t)
    if dtype not in (ut.bfloat16, ut.complex64):
        theirs = safetensors.numpy.load_file(tmp_path / "f")["t"]
        np.testing.assert_array_equal(theirs, t.numpy())


arrays = st.dictionaries(
    st.text(max_size=8).filter(lambda s: s != "__metadata__"),
    st.sampled_from(["?", "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]).flatmap(
        lambda d: hnp.arrays(d, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    ),
    max_size=5,
)
texts = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=1)


@settings(max_examples=60, deadline=None)
@given(arrays, st.none() | texts)
def test_bytes_are_those_of_the_package(arrays: Any, metadata: Any) -> None:
    ours = save({k: ut.from_numpy(v) for k, v in arrays.items()}, metadata)
    if arrays or metadata is None:  # else the package writes JSON that it cannot read
        assert ours == safetensors.numpy.save(arrays, metadata)
    loaded = load(ours)
    assert set(loaded) == set(arrays)
    for name, array in arrays.items():
        assert same(loaded[name], ut.from_numpy(array))


def test_not_contiguous(tmp_path: Path) -> None:
    t = ut.arange(24).reshape(2, 3, 4)
    views = {"t": t.permute(2, 0, 1), "s": ut.arange(20)[::3], "e": ut.ones(1).expand(3)}
    save_file(views, tmp_path / "f")
    for name, found in load_file(tmp_path / "f").items():
        assert same(found, views[name])


def test_parameters_and_devices(tmp_path: Path) -> None:
    weight = ut.nn.Parameter(ut.ones(2))
    save_file({"w": weight, "r": ut.arange(3, device="reference")}, tmp_path / "f")
    found = load_file(tmp_path / "f", device="reference")
    assert {str(t.device) for t in found.values()} == {"reference"}
    assert found["r"].tolist() == [0, 1, 2]
    assert not found["w"].requires_grad


def test_changes_do_not_reach_the_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    save_file({"x": ut.zeros(5000)}, path)
    before = path.read_bytes()
    one, two = load_file(path)["x"], load_file(path)["x"]
    one.add_(1)
    one.requires_grad_()
    (one * one).sum().backward()
    assert path.read_bytes() == before
    assert two.sum().item() == 0


def test_replaced_while_mapped(tmp_path: Path) -> None:
    path = tmp_path / "f"
    save_file({"x": ut.ones(100_000)}, path)
    old = load_file(path)["x"]
    save_file({"x": old * 2}, path)
    save_file({"x": load_file(path)["x"]}, path)  # a file onto itself
    path.rename(tmp_path / "g")
    assert old.sum().item() == 100_000
    assert load_file(tmp_path / "g")["x"].sum().item() == 200_000
    (tmp_path / "g").unlink()
    assert old.sum().item() == 100_000


def test_saved_again_by_ut_save(tmp_path: Path) -> None:
    """A mapped tensor is a memory of its own: its neighbours in the file do not come along."""
    save_file({"x": ut.ones(100_000), "y": ut.ones(2)}, tmp_path / "f")
    ut.save(load_file(tmp_path / "f")["y"], tmp_path / "g")
    assert (tmp_path / "g").stat().st_size < 10_000


def test_unaligned(tmp_path: Path) -> None:
    """Others may write elements to any place."""
    header = json.dumps(
        {
            "a": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]},
            "b": {"dtype": "F64", "shape": [2], "data_offsets": [3, 19]},
        }
    ).encode()
    data = bytes([1, 2, 3]) + np.array([1.5, -2.5]).tobytes()
    (tmp_path / "f").write_bytes(len(header).to_bytes(8, "little") + header + data)
    found = load_file(tmp_path / "f")
    assert found["b"].tolist() == [1.5, -2.5]
    assert found["b"].data_ptr() % 8 == 0


# Opening -----------------------------------------------------------------------------------------
def test_safe_open(tmp_path: Path) -> None:
    x = ut.arange(12).reshape(3, 4)
    save_file({"x": x, "b": ut.ones(2, dtype=ut.float64)}, tmp_path / "f", {"format": "ut"})
    with safe_open(tmp_path / "f", framework="pt", device="cpu") as file:
        assert file.keys() == ["b", "x"] == list(file)
        assert file.metadata() == {"format": "ut"}
        part = file.get_slice("x")
        assert part.get_shape() == [3, 4]
        assert part.get_dtype() == "I64"
        assert same(part[1:, ::2], x[1:, ::2])
        one = file.get_tensor("x")
        one.zero_()
        assert same(file.get_tensor("x"), x)  # each is a copy
        with pytest.raises(KeyError, match="no tensor 'y'"):
            file.get_tensor("y")
    with pytest.raises(FileError, match="closed"):
        file.get_tensor("x")
    assert safe_open(tmp_path / "f").offset_keys() == ["x", "b"]


# What is refused when saving ---------------------------------------------------------------------
def test_shared_memory_is_refused() -> None:
    x = ut.arange(10).float()
    with pytest.raises(FileError, match=r"'a' and 'b' share memory.*a, b"):
        save({"a": x, "b": x})
    with pytest.raises(FileError, match="share memory"):
        save({"a": x[:6], "b": x[4:], "c": ut.ones(1)})
    assert set(load(save({"a": x[:5], "b": x[5:]}))) == {"a", "b"}  # apart in one memory


def test_what_is_no_tensor() -> None:
    with pytest.raises(TypeError, match=r"\[save\] 'x' is a int.*ut.save"):
        save({"x": 3})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="names are strings"):
        save({1: ut.ones(1)})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="expects a dict"):
        save([ut.ones(1)])  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match=r"complex128.*view_as_real"):
        save({"x": ut.ones(1, dtype=ut.complex128)})
    with pytest.raises(TypeError, match="metadata holds strings only"):
        save({}, {"epoch": 3})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="__metadata__"):
        save({"__metadata__": ut.ones(1)})
    with pytest.raises(TypeError, match="Unicode"):
        save({"\ud800": ut.ones(1)})
    with pytest.raises(TypeError, match="load_file takes a path"):
        load("name")  # type: ignore[arg-type]


# Whole or not at all -----------------------------------------------------------------------------
def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    save_file({"x": ut.ones(3)}, path)
    before = path.read_bytes()
    for call in ("fsync", "replace", "writev"):

        def fail(*args: Any) -> Any:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(atomic.os, call, fail)
        with pytest.raises(OSError, match="No space"):
            save_file({"x": ut.zeros(30)}, path)
        monkeypatch.undo()
        assert path.read_bytes() == before
        assert os.listdir(tmp_path) == ["f"]


def test_an_interrupt_leaves_no_other_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(atomic.os, "writev", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_file({"x": ut.zeros(30)}, tmp_path / "f")
    assert os.listdir(tmp_path) == []


KILLED = """
import os, signal, sys
import undertow as ut
from undertow.files import atomic
from undertow.files.safetensors import save_file
at, path = sys.argv[1:]
real = getattr(os, at)
def die(*args):
    if at != "replace":
        real(*args)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(atomic.os, at, die)
save_file({"x": ut.zeros(1000)}, path)
"""


@pytest.mark.parametrize("at", ["writev", "fsync", "replace"])
def test_a_killed_process_leaves_the_old_file(tmp_path: Path, at: str) -> None:
    path = tmp_path / "f"
    save_file({"x": ut.ones(3)}, path)
    before = path.read_bytes()
    done = subprocess.run([sys.executable, "-c", KILLED, at, str(path)], check=False)
    assert done.returncode == -9
    assert path.read_bytes() == before
    others = [name for name in os.listdir(tmp_path) if name != "f"]
    if hasattr(os, "O_TMPFILE") and at != "replace":
        assert others == []
    assert all(name.startswith(".undertow-") for name in others)


@pytest.mark.parametrize("missing", ["O_TMPFILE", "writev", "fchmod"])
def test_other_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """Some lack this or that."""
    monkeypatch.delattr(atomic.os, missing, raising=False)
    for _ in range(2):
        save_file({"x": ut.ones(3)}, tmp_path / "f")
    assert load_file(tmp_path / "f")["x"].tolist() == [1, 1, 1]
    assert os.listdir(tmp_path) == ["f"]


def test_links_may_be_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, *args: Any, **how: Any) -> None:
        raise PermissionError(1, "Operation not permitted", source)

    monkeypatch.setattr(atomic.os, "link", refuse)
    save_file({"x": ut.ones(3)}, tmp_path / "f")
    assert load_file(tmp_path / "f")["x"].tolist() == [1, 1, 1]
    assert os.listdir(tmp_path) == ["f"]


def test_short_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel may write less than it was given."""
    real = os.writev

    def some(fd: int, views: Any) -> int:
        return real(fd, [views[0][:7]] if len(views) == 1 else [*views[:-1], views[-1][:1]])

    monkeypatch.setattr(atomic.os, "writev", some)
    tensors = {str(i): ut.arange(i) for i in range(30)}
    save_file(tensors, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == save(tensors)


def test_large_files_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic, "_PART", 1000)
    tensors = {str(i): ut.arange(300) + i for i in range(20)}
    save_file(tensors, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == save(tensors)


def test_permissions_and_links(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        save_file({"x": ut.ones(1)}, tmp_path / "f")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640
    (tmp_path / "f").chmod(0o600)
    (tmp_path / "link").symlink_to(tmp_path / "f")
    save_file({"x": ut.zeros(1)}, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o600
    assert load_file(tmp_path / "f")["x"].item() == 0


def test_the_error_names_the_users_path(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing/f"):
        save_file({"x": ut.ones(1)}, tmp_path / "missing" / "f")
    with pytest.raises(FileNotFoundError):
        load_file(tmp_path / "f")
    with pytest.raises(IsADirectoryError):
        save_file({"x": ut.ones(1)}, tmp_path)
    save_file({"x": ut.ones(1)}, os.devnull)  # no regular file is replaced
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


# Damaged and hostile files -----------------------------------------------------------------------
def content(header: Any, data: bytes = b"\0" * 8) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> Any:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


BAD = {
    "empty": (b"", "0 bytes"),
    "short": (b"\1\0\0", "3 bytes"),
    "huge header": (b"\xff" * 8, "at most 100,000,000"),
    "truncated header": ((50).to_bytes(8, "little") + b"{}", "truncated"),
    "no JSON": (content(b"{]"), "no valid JSON"),
    "no object": (content(b"[1]"), "does not begin"),
    "no UTF-8": (content(b'{"\xff": 1}'), "no valid JSON"),
    "NaN": (content(b'{"a": NaN}'), "NaN"),
    "deep": (content(b'{"a":' + b"[" * 50_000), "no valid JSON"),
    "twice": (content(b'{"a": 1, "a": 2}'), "'a' occurs twice"),
    "metadata": (content({"__metadata__": {"a": 1}}, b""), "no object of strings"),
    "fields": (content({"a": {"dtype": "F32"}}), "needs dtype, shape"),
    "more fields": (content({"a": {**entry(), "x": 1}}), "needs dtype, shape"),
    "no fields": (content({"a": 3}), "needs dtype, shape"),
    "dtype": (content({"a": entry("F33")}), "unknown dtype 'F33'"),
    "dtype list": (content({"a": entry(["F32"])}), "unknown dtype"),
    "negative size": (content({"a": entry(shape=[-2])}), "shape that is none"),
    "float size": (content({"a": entry(shape=[2.0])}), "shape that is none"),
    "true size": (content({"a": entry(shape=[True, 2])}), "shape that is none"),
    "dimensions": (content({"a": entry(shape=[1] * 65)}), "shape that is none"),
    "offsets": (content({"a": entry(offsets=[0])}), "data_offsets that are none"),
    "backwards": (content({"a": entry(offsets=[8, 0])}), "takes 8 bytes"),
    "size": (content({"a": entry(shape=[3])}), "takes 12 bytes"),
    "overflow": (content({"a": entry(shape=[2**62, 4])}), "takes"),
    "empty and huge": (
        content({"a": entry(shape=[0, 2**62, 4], offsets=[0, 0])}, b""),
        "too large",
    ),
    "gap": (content({"a": entry(offsets=[4, 12])}, b"\0" * 12), "gap"),
    "overlap": (content({"a": entry(), "b": entry(offsets=[4, 12])}, b"\0" * 12), "overlaps"),
    "truncated": (content({"a": entry()}, b"\0" * 7), "truncated"),
    "longer": (content({"a": entry()}, b"\0" * 9), "longer"),
    "boolean": (content({"a": entry("BOOL", [8])}, b"\0\1\2\0\0\0\0\0"), "neither 0 nor 1"),
}


@pytest.mark.parametrize("bad, message", BAD.values(), ids=BAD)
def test_bad_files(tmp_path: Path, bad: bytes, message: str) -> None:
    (tmp_path / "f").write_bytes(bad)
    for mmap in (True, False):
        with pytest.raises(FileError, match=rf"^\[load_file\] .*{message}"):
            load_file(tmp_path / "f", mmap=mmap)
    with pytest.raises(FileError, match=r"^\[load\]"):
        load(bad)
    with pytest.raises(FileError, match=r"^\[safe_open\]"), safe_open(tmp_path / "f") as file:
        file.get_tensor("a")


def test_nothing_may_be_as_long_as_it_likes(tmp_path: Path) -> None:
    shape = (0, 2**58, 4)
    (tmp_path / "f").write_bytes(content({"a": entry(shape=shape, offsets=[0, 0])}, b""))
    assert load_file(tmp_path / "f")["a"].shape == shape
    with safe_open(tmp_path / "f") as file:
        assert file.get_tensor("a").shape == shape


@pytest.mark.parametrize("dtype", ["F4", "F6_E2M3", "F6_E3M2"])
def test_dtypes_that_are_missing(dtype: str) -> None:
    with pytest.raises(NotImplementedError, match=f"'a' has dtype {dtype}.*F32"):
        load(content({"a": entry(dtype, [8], [0, 8])}))


GOOD = save({"weight": ut.arange(12).reshape(3, 4).float(), "n": ut.tensor(3)}, {"k": "v"})


def test_every_truncation() -> None:
    for length in range(len(GOOD)):
        with pytest.raises(FileError):
            load(GOOD[:length])


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(GOOD) - 1), st.integers(0, 255))
def test_any_byte_may_be_wrong(position: int, value: int) -> None:
    """The outcome is tensors or a clear error; never anything else."""
    changed = bytearray(GOOD)
    changed[position] = value
    try:
        found = load(bytes(changed))
    except (FileError, NotImplementedError):
        return
    assert sum(t.nbytes for t in found.values()) == 12 * 4 + 8
