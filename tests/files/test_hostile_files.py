"""Checkpoints that are damaged or mean harm: the outcome is data or a clear error, never code."""

from __future__ import annotations

import contextlib
import io
import pickle
import random
import resource
import struct
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import undertow as ut
from undertow.errors import FileError, UndertowError
from undertow.files.archive import archive

RAN: list[Any] = []


def harm(*args: Any) -> None:
    """What no file may reach."""
    RAN.append(args)


class Harm:
    def __reduce__(self) -> Any:
        return harm, (1,)


def checkpoint(pickled: bytes, *others: tuple[str, bytes]) -> io.BytesIO:
    records = [("a/data.pkl", pickled), ("a/version", b"3\n"), *others]
    return io.BytesIO(b"".join(archive(records)))


def refuses(pickled: bytes, message: str = "", *others: tuple[str, bytes]) -> None:
    with pytest.raises(UndertowError, match=rf"^\[load\].*{message}"):
        ut.load(checkpoint(pickled, *others))
    assert RAN == []


# Code --------------------------------------------------------------------------------------------
NAMES = ["os\nsystem", "posix\nsystem", "builtins\neval", "builtins\nexec", "__builtin__\ngetattr"]
NAMES += ["subprocess\nPopen", "torch.storage\n_load_from_bytes", "torch\nload", "undertow\nload"]
NAMES += ["test_hostile_files\nharm", "collections\nnamedtuple", "builtins\n__import__"]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_refused(name: str) -> None:
    module, function = name.replace("__builtin__", "builtins").split("\n")
    refuses(b"\x80\x02c%s\n(X\x01\0\0\0xtR." % name.encode(), f"{module}.{function}.*nothing of it")
    text = b"".join(b"\x8c" + bytes([len(p)]) + p for p in name.encode().split(b"\n"))
    refuses(b"\x80\x04" + text + b"\x93(X\x01\0\0\0xtR.", f"{module}.{function}")


@pytest.mark.parametrize("protocol", range(6))
def test_objects_are_not_made(protocol: int) -> None:
    refuses(pickle.dumps([1, Harm()], protocol))


def test_forbidden_even_if_allowed() -> None:
    import os

    with ut.serialization.safe_globals([os.system, (eval, "builtins.eval")]):
        refuses(b"\x80\x02cposix\nsystem\n(X\x01\0\0\0xtR.")
        refuses(b"\x80\x02cbuiltins\neval\n(X\x01\0\0\0xtR.")


OTHER_WORDS = {
    "INST": b"(ios\nsystem\n.",
    "OBJ": b"(cos\nsystem\no.",
    "EXT1": b"\x82\x01.",
    "EXT4": b"\x84\x01\0\0\0.",
    "PERSID": b"Px\n.",
    "BUFFER": b"\x97.",
    "NEWOBJ_EX": b"))}\x92.",
    "text": b"I1\n.",
}


@pytest.mark.parametrize("pickled", OTHER_WORDS.values(), ids=OTHER_WORDS)
def test_words_for_no_data(pickled: bytes) -> None:
    refuses(pickled)


REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"
ATTACKS = {
    "call of a string": (b"X\x01\0\0\0x)R.", "calls a str"),
    "call without a tuple": (REBUILD + b"NR.", "without arguments"),
    "call of a dtype": (b"ctorch\nfloat32\n)R.", "calls a DType"),
    "too few arguments": (REBUILD + b")R.", "damaged"),
    "change of a function": (REBUILD + b"}b.", "changes a Global"),
    "slots of a function": (REBUILD + b"N}X\x04\0\0\0callNs\x86b.", "changes a Global"),
    "change of a list": (b"]}b.", "changes a list"),
    "new dtype": (b"ctorch\nfloat32\n)\x81.", "calls"),
    "storage of a number": (REBUILD + b"(K\x01K\0K\0K\0\x89NtR.", "without a storage"),
    "no storage": (b"K\x01Q.", "no storage"),
    "wrong storage": (b"(X\x07\0\0\0storageNNNNtQ.", "no storage"),
    "items of a tuple": (b")K\x01a.", "adds items to a tuple"),
    "items of a number": (b"K\x01(K\x02K\x03u.", "adds items to a int"),
    "key without value": (b"}(K\x01u.", "no value"),
    "list as a key": (b"}]K\x01s.", "damaged"),
    "empty stack": (b".", "missing"),
    "no mark": (b"t.", "mark is missing"),
    "unknown memo": (b"h\x05.", "recalls item 5"),
    "memo of nothing": (b"q\0.", "missing"),
    "no end": (b"K\x01", "truncated"),
    "long string": (b"X\xff\xff\xff\xffabc.", "truncated"),
    "long bytes": (b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.", "truncated"),
    "long number": (b"\x8b\xff\xff\xff\x7f.", "truncated"),
    "name without end": (b"c" + b"x" * 5000, "no end"),
    "bad text": (b"X\x02\0\0\0\xff\xff.", "damaged"),
    "protocol": (b"\x80\x09N.", "protocol 9"),
    "a million zeros": (b"c__builtin__\nbytearray\n(J\0\x10\xa5\xd4tR.", "made of a int"),
    "set of text": (b"c__builtin__\nset\n(X\x01\0\0\0xtR.", "made of a str"),
    "codec": (b"c_codecs\nencode\n(X\x01\0\0\0xX\x03\0\0\0hextR.", "encoding"),
    "size": (b"ctorch\nSize\n((J\xff\xff\xff\xffttR.", "shape"),
    "device": (b"ctorch\ndevice\n(K\x01tR.", "device"),
    "parameter": (b"ctorch._utils\n_rebuild_parameter\n(K\x01\x88NtR.", "made of a int"),
    "sparse": (b"ctorch._utils\n_rebuild_sparse_tensor\n(NNtR.", "a sparse tensor"),
    "layout": (b"ctorch.serialization\n_get_layout\n(X\x04\0\0\0nametR.", "layout"),
    "meta": (b"ctorch._utils\n_rebuild_meta_tensor_no_storage\n(NK\x01K\x01\x89tR.", "shape"),
    "sparse parts": (
        b"ctorch._utils\n_rebuild_sparse_tensor\n(ctorch.serialization\n_get_layout\n"
        b"(X\x10\x00\x00\x00torch.sparse_cootR(K\x01K\x01K\x01K\x01ttR.",
        "a sparse tensor",
    ),
    "quantised": (b"ctorch._utils\n_rebuild_qtensor\n.", "a quantised tensor"),
    "complex32": (b"ctorch\ncomplex32\n.", "a dtype"),
}


@pytest.mark.parametrize("pickled, message", ATTACKS.values(), ids=ATTACKS)
def test_attacks(pickled: bytes, message: str) -> None:
    refuses(b"\x80\x02" + pickled, message)


def test_metadata_is_all_that_a_state_dict_has() -> None:
    pickled = (
        b"\x80\x02ccollections\nOrderedDict\n)R}(X\x05\0\0\0itemsK\x01X\x09\0\0\0_metadata}ub."
    )
    found = ut.load(checkpoint(pickled))
    assert vars(found) == {"_metadata": {}}
    assert list(found.items()) == []


# Time and memory ---------------------------------------------------------------------------------
def test_keys_that_hash_for_ever() -> None:
    nested = b"K\x01K\x02\x86" + b"q\0h\0\x86" * 100  # each holds the one before twice
    refuses(b"\x80\x02}" + nested + b"K\x01s.", "key that is too long")
    refuses(b"\x80\x04\x8f(" + nested + b"\x90.", "key that is too long")
    refuses(b"\x80\x04(" + nested + b"\x91.", "key that is too long")
    deep = b"K\x01" + b"\x85" * 200_000
    refuses(b"\x80\x02}" + deep + b"K\x01s.", "key that is too long")


def test_errors_do_not_show_everything() -> None:
    """A structure of a hundred bytes may print as more than there are atoms."""
    nested = b"]q\0" + b"0(h\0h\0lq\0" * 60
    refuses(b"\x80\x02" + nested + b"Q.", "mentions a list of 2")
    refuses(b"\x80\x02ctorch\nSize\n(" + nested + b"tR.", "shape is a tuple of 2")
    refuses(b"\x80\x02ctorch\ndevice\n(" + nested + b"tR.", "device that is none")
    refuses(b"\x80\x02" + REBUILD + b"(NK\0NN\x88N" + nested + b"tR.", "conjugated")
    made = b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\nq\x01("
    refuses(made + b"h\x01NN" + nested + b"tR.", "unknown way")
    huge = b"\x8b\0\0\x01\0" + b"\x7f" * 65536
    refuses(b"\x80\x02ctorch\nSize\n(" + huge + b"\x85tR.", "huge number")


def test_copies_are_limited() -> None:
    text = b"X" + struct.pack("<I", 100_000) + b"x" * 100_000 + b"q\0"
    call = b"c_codecs\nencode\n(h\0X\x06\0\0\0latin1tR0"
    refuses(b"\x80\x02" + text + b"0" + call * 1000 + b"N.", "fill the memory")


def test_large_memo_numbers() -> None:
    assert ut.load(checkpoint(b"\x80\x02K\x05r\xff\xff\xff\xff0j\xff\xff\xff\xff.")) == 5


def test_self_reference_is_data() -> None:
    found = ut.load(checkpoint(b"\x80\x02]q\0h\0a."))
    assert found[0] is found


# Tensors outside their storage -------------------------------------------------------------------
def tensor_pickle(
    offset: Any = 0,
    size: Any = (2, 2),
    stride: Any = (2, 1),
    requires_grad: Any = False,
    kind: str = "FloatStorage",
    count: Any = 4,
    key: Any = "0",
    location: Any = "cpu",
) -> bytes:
    """The pickle of a tensor, with anything in the place of its numbers."""

    def raw(value: Any) -> bytes:
        return pickle.dumps(value, 2)[2:-1]

    storage = b"(" + raw("storage") + f"ctorch\n{kind}\n".encode()
    storage += raw(key) + raw(location) + raw(count) + b"tQ"
    rest = raw(offset) + raw(size) + raw(stride) + raw(requires_grad) + raw(OrderedDict())
    return b"\x80\x02" + REBUILD + b"(" + storage + rest + b"tR."


DATA = ("a/data/0", struct.pack("<4f", 1, 2, 3, 4))


def test_a_sound_tensor() -> None:
    assert ut.load(checkpoint(tensor_pickle(), DATA)).tolist() == [[1, 2], [3, 4]]
    assert ut.load(checkpoint(tensor_pickle(3, (), ()), DATA)).item() == 4
    assert ut.load(checkpoint(tensor_pickle(0, (2, 2), (0, 1)), DATA)).tolist() == [[1, 2]] * 2
    assert ut.load(checkpoint(tensor_pickle(9, (0, 3), (3, 1)), DATA)).shape == (0, 3)


OUTSIDE: dict[str, tuple[dict[str, Any], str]] = {
    "offset": ({"offset": 1}, "outside its storage"),
    "size": ({"size": (2, 3)}, "outside its storage"),
    "stride": ({"stride": (3, 1)}, "outside its storage"),
    "huge": ({"size": (2**59, 2**59), "stride": (1, 1)}, "outside its storage"),
    "huge of nothing": ({"size": (0, 2**59, 2**59), "stride": (1, 1, 1)}, "shape"),
    "huge of one": ({"size": (2**59, 2**59), "stride": (0, 0)}, "shape"),
    "larger than numbers": ({"size": (2**70,), "stride": (0,)}, "shape"),
    "negative offset": ({"offset": -1}, "offset"),
    "negative size": ({"size": (-2, 2)}, "shape"),
    "negative stride": ({"offset": 3, "stride": (-2, -1)}, "stride"),
    "number of dimensions": ({"stride": (1,)}, "with strides"),
    "many dimensions": ({"size": (1,) * 65, "stride": (1,) * 65}, "shape"),
    "float": ({"offset": 0.5}, "offset"),
    "true": ({"offset": True}, "offset"),
    "text": ({"size": "ab"}, "shape"),
    "requires_grad": ({"requires_grad": "yes"}, "requires_grad"),
    "integer gradients": ({"requires_grad": True, "kind": "IntStorage"}, "cannot be"),
    "count": ({"count": 5}, "has 16 bytes.*20"),
    "few": ({"count": 3}, "has 16 bytes.*12"),
    "dtype": ({"kind": "DoubleStorage"}, "has 16 bytes.*32"),
    "negative count": ({"count": -4}, "no storage"),
    "huge count": ({"count": 2**80}, "has 16 bytes"),
    "key": ({"key": "1"}, "no record 'a/data/1'"),
    "path": ({"key": "../version"}, "no record"),
    "number as key": ({"key": 0}, "no storage"),
    "location": ({"location": "cuda:0"}, "map_location='cpu'"),
    "location of nothing": ({"location": ""}, "map_location"),
    "bool": ({"kind": "BoolStorage", "count": 16}, "not boolean"),
    "quantised": ({"kind": "QInt8Storage", "count": 16}, "quantised"),
    "untyped": ({"kind": "UntypedStorage", "count": 16}, "without a dtype"),
}


@pytest.mark.parametrize("wrong, message", OUTSIDE.values(), ids=OUTSIDE)
def test_tensors_outside(wrong: dict[str, Any], message: str) -> None:
    refuses(tensor_pickle(**wrong), message, DATA)


# Archives ----------------------------------------------------------------------------------------
def zipped(method: int, **records: bytes) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as zip:
        for name, content in records.items():
            zip.writestr(f"a/{name.replace('_', '.')}", content)
    file.seek(0)
    return file


def test_archives_of_others() -> None:
    assert ut.load(zipped(zipfile.ZIP_STORED, data_pkl=b"\x80\x02K\x05.")) == 5
    with pytest.raises(FileError, match="compressed"):
        ut.load(zipped(zipfile.ZIP_DEFLATED, data_pkl=b"K\x05." + b"\0" * 10_000_000))
    with pytest.raises(FileError, match="no checkpoint"):
        ut.load(zipped(zipfile.ZIP_STORED, hello=b"world"))
    with pytest.raises(NotImplementedError, match="TorchScript"):
        ut.load(zipped(zipfile.ZIP_STORED, data_pkl=b"N.", constants_pkl=b"N."))
    with pytest.raises(FileError, match="byte order b'middle'"):
        ut.load(zipped(zipfile.ZIP_STORED, data_pkl=b"N.", byteorder=b"middle"))


def test_big_endian() -> None:
    big = ("a/data/0", struct.pack(">4f", 1, 2, 3, 4))
    found = ut.load(checkpoint(tensor_pickle(), big, ("a/byteorder", b"big")))
    assert found.tolist() == [[1, 2], [3, 4]]


def sound() -> bytes:
    file = io.BytesIO()
    state = OrderedDict(weight=ut.arange(6).reshape(2, 3).float(), bias=ut.ones(3))
    ut.save({"model": state, "epoch": 3, "name": "x", "view": state["weight"][1]}, file)
    return file.getvalue()


SOUND = sound()


def with_field(at: bytes, offset: int, format: str, value: int, which: int = -1) -> bytes:
    """The sound file with one field of a zip structure changed."""
    found = [i for i in range(len(SOUND)) if SOUND.startswith(at, i)]
    changed = bytearray(SOUND)
    struct.pack_into(format, changed, found[which] + offset, value)
    return bytes(changed)


ARCHIVES = {
    "count": with_field(b"PK\5\6", 10, "<H", 60_000),
    "list size": with_field(b"PK\5\6", 12, "<I", 2**31),
    "list start": with_field(b"PK\5\6", 16, "<I", 2**32 - 2),
    "64 bits that are not there": with_field(b"PK\5\6", 16, "<I", 2**32 - 1),
    "parts": with_field(b"PK\5\6", 4, "<H", 2),
    "encrypted": with_field(b"PK\1\2", 8, "<H", 1, 0),
    "method": with_field(b"PK\1\2", 10, "<H", 8, 0),
    "false size": with_field(b"PK\1\2", 24, "<I", 2**31, 0),
    "false sizes": bytes(bytearray(with_field(b"PK\1\2", 20, "<I", 2**31, 0))),
    "record outside": with_field(b"PK\1\2", 42, "<I", 2**31, 0),
    "two at one place": with_field(b"PK\1\2", 42, "<I", 0, 1),
    "name length": with_field(b"PK\1\2", 28, "<H", 60_000, 0),
    "local header": with_field(b"PK\3\4", 26, "<H", 60_000, 0),
    "checksum": with_field(b"PK\1\2", 16, "<I", 12345, 0),
}


@pytest.mark.parametrize("content", ARCHIVES.values(), ids=ARCHIVES)
def test_damaged_archives(content: bytes) -> None:
    with pytest.raises(FileError, match=r"^\[load\]"):
        ut.load(io.BytesIO(content))


def test_zip64_fields_that_lie() -> None:
    refused = bytearray(SOUND)
    end = refused.rindex(b"PK\5\6")
    fields = struct.unpack_from("<4s4H2IH", refused, end)
    count, size, start = fields[4:7]
    for where, false in [(end, (2**62, size, start)), (end, (count, 2**62, start)), (2**62, None)]:
        record = struct.pack(
            "<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, *(false or (count, size, start))
        )
        locator = struct.pack("<4sIQI", b"PK\6\7", 0, where, 1)
        tail = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 2**32 - 1, 2**32 - 1, 0)
        with pytest.raises(FileError, match=r"^\[load\]"):
            ut.load(io.BytesIO(bytes(refused[:end]) + record + locator + tail))


def test_every_truncation(tmp_path: Path) -> None:
    for length in range(len(SOUND)):
        with pytest.raises(FileError, match=r"^\[load\]"):
            ut.load(io.BytesIO(SOUND[:length]))
    (tmp_path / "f").write_bytes(SOUND[:-5])
    for mmap in (None, True):
        with pytest.raises(FileError, match="truncated"):
            ut.load(tmp_path / "f", mmap=mmap)


def legacy() -> bytes:
    """A file as torch wrote them before 1.6."""
    head = [0x1950A86A20F9469CFC6C, 1001, {"protocol_version": 1001, "little_endian": True}]
    body = tensor_pickle().replace(b"tQ", b"NtQ")
    data = struct.pack("<q4f", 4, 1, 2, 3, 4)
    return b"".join(pickle.dumps(h, 2) for h in head) + body + pickle.dumps(["0"], 2) + data


LEGACY = legacy()


def test_legacy() -> None:
    assert ut.load(io.BytesIO(LEGACY)).tolist() == [[1, 2], [3, 4]]
    for length in range(len(LEGACY)):
        with pytest.raises(FileError, match=r"^\[load\]"):
            ut.load(io.BytesIO(LEGACY[:length]))


def test_legacy_parts_and_lies() -> None:
    whole = pickle.dumps(("key", 1, 2), 2)[2:-1]
    part = LEGACY.replace(b"NtQ", whole + b"tQ")
    with pytest.raises(FileError, match="outside its storage"):
        ut.load(io.BytesIO(part))  # a tensor of four in a part of two
    for lie in (("key", 1, 9), ("key", -1, 2), ("key", "a", 2), 3):
        raw = pickle.dumps(lie, 2)[2:-1]
        with pytest.raises(FileError, match="part"):
            ut.load(io.BytesIO(LEGACY.replace(b"NtQ", raw + b"tQ")))
    huge = LEGACY.replace(b"K\x04NtQ", pickle.dumps(2**40, 2)[2:-1] + b"NtQ")
    with pytest.raises(FileError, match="bytes are left"):
        ut.load(io.BytesIO(huge))
    for old, new in [(b"]", b")"), (struct.pack("<q", 4), struct.pack("<q", 3))]:
        position = LEGACY.rindex(old)
        with pytest.raises(FileError, match=r"^\[load\]"):
            ut.load(io.BytesIO(LEGACY[:position] + new + LEGACY[position + len(old) :]))


def test_legacy_without_a_dtype() -> None:
    """Bytes of an untyped storage count as such; nobody knows how to swap them."""
    untyped = LEGACY.replace(b"FloatStorage", b"UntypedStorage")
    with pytest.raises(FileError, match="without a dtype"):
        ut.load(io.BytesIO(untyped))
    at = untyped.index(b"\x88", untyped.index(b"little_endian"))
    with pytest.raises(UndertowError, match="byte order of another machine"):
        ut.load(io.BytesIO(untyped[:at] + b"\x89" + untyped[at + 1 :]))


NO_CHECKPOINTS = {
    "empty": (b"", "empty"),
    "text": (b"hello, world", "no checkpoint.*hello"),
    "plain pickle": (pickle.dumps({"a": 1}), "no checkpoint"),
    "harm": (pickle.dumps(Harm()), "no checkpoint"),
    "tar": (b"\0" * 257 + b"ustar" + b"\0" * 500, "tar archive"),
    "zip head": (b"PK\3\4" + b"\0" * 100, "truncated or damaged"),
}


@pytest.mark.parametrize("content, message", NO_CHECKPOINTS.values(), ids=NO_CHECKPOINTS)
def test_no_checkpoint(content: bytes, message: str) -> None:
    with pytest.raises(UndertowError, match=message):
        ut.load(io.BytesIO(content))
    assert RAN == []


def test_safetensors_are_told_apart() -> None:
    content = ut.files.safetensors.save({"x": ut.ones(2)})
    with pytest.raises(FileError, match="load_file"):
        ut.load(io.BytesIO(content))


# Any bytes ---------------------------------------------------------------------------------------
def outcome(content: bytes) -> None:
    """Data or a clear error; and memory in proportion to the file."""
    with contextlib.suppress(UndertowError):
        found = ut.load(io.BytesIO(content))
        repr(found)  # every element can be looked at
    assert RAN == []


@pytest.mark.parametrize("source", [SOUND, LEGACY], ids=["zip", "legacy"])
def test_flipped_bytes(source: bytes) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rng = random.Random(0)
    for _ in range(2000):
        changed = bytearray(source)
        for _ in range(rng.choice((1, 1, 2, 8))):
            changed[rng.randrange(len(changed))] = rng.choice((0, 255, rng.randrange(256)))
        outcome(bytes(changed))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB


class Blind:
    """A checksum that fits everything."""

    @staticmethod
    def crc32(content: Any) -> Any:
        return type("Any", (int,), {"__ne__": lambda *args: False})()


@pytest.mark.parametrize("source", [SOUND, LEGACY], ids=["zip", "legacy"])
def test_flipped_bytes_that_checksums_do_not_see(
    source: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if whoever wrote the file had corrected them."""
    monkeypatch.setattr("undertow.files.archive.zlib", Blind)
    rng = random.Random(1)
    for _ in range(2000):
        changed = bytearray(source)
        for _ in range(rng.choice((1, 1, 2, 4))):
            changed[rng.randrange(len(changed))] = rng.choice((0, 255, rng.randrange(256)))
        outcome(bytes(changed))


WORDS = [
    bytes([c]) for c in b"(0tR)]}NQbqhjr.a.esuX\x80\x81\x85\x86\x87\x88\x89\x8a\x8f\x90\x91\x94"
]
WORDS += [b"K\x01", b"X\x01\0\0\0x", b"ctorch\nfloat32\n", REBUILD, b"ccollections\nOrderedDict\n"]
WORDS += [b"c__builtin__\nset\n", b"ctorch\nFloatStorage\n", b"h\0", b"q\0", b"}(", b"\x8c\x01y"]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=40))
def test_any_pickle(words: list[bytes]) -> None:
    outcome(checkpoint(b"\x80\x02" + b"".join(words) + b".", DATA).getvalue())


# NumPy's arrays ----------------------------------------------------------------------------------
def array_pickle(dtype: Any = "f8", shape: Any = (2,), content: bytes = b"\0" * 16) -> bytes:
    """A pickle of a NumPy array, as NumPy writes it, with parts of our choice."""
    state = pickle.dumps((1, shape, None, False, content), 2)[2:-1]
    made = b"cnumpy\ndtype\n(" + pickle.dumps(dtype, 2)[2:-1] + b"\x89\x88tR"
    made += pickle.dumps((3, "<", None, None, None, -1, -1, 0), 2)[2:-1] + b"b"
    first, _, last = state.partition(b"N")
    start = b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\0tU\x01btR"
    return start + first + made + last + b"b."


@pytest.mark.parametrize(
    "changed",
    [
        {"dtype": "O"},
        {"dtype": "V8"},
        {"dtype": "f16"},
        {"dtype": 3},
        {"dtype": "S99999999"},
        {"shape": (3,)},
        {"shape": (-2,)},
        {"shape": (2**40, 2**40, 0)},
        {"shape": [2]},
        {"shape": (1,) * 40},
        {"shape": ("a",)},
        {"shape": (2**62, 2**62, 0), "content": b""},
        {"shape": (2**47, 2, 0), "content": b""},
        {"dtype": "S0", "shape": (2**40,), "content": b""},
        {"dtype": "U2", "content": b"\xff" * 16},
        {"content": b"\0" * 15},
    ],
    ids=str,
)
def test_arrays_are_checked(changed: dict[str, Any]) -> None:
    """Shape, dtype and bytes have to fit together, and objects are no numbers."""
    assert ut.load(checkpoint(array_pickle())).tolist() == [0.0, 0.0]
    refuses(array_pickle(**changed), "NumPy")


def test_dtypes_of_numpy() -> None:
    """A dtype is one of NumPy's, in the order of its state, and leaves NumPy's own alone."""
    state = pickle.dumps((3, ">", None, None, None, 99, 99, 0), 2)[2:-1]
    found = ut.load(checkpoint(b"\x80\x02cnumpy\ndtype\n(U\x02f8\x89\x88tR" + state + b"b."))
    assert found == np.dtype(">f8")
    assert (found.itemsize, found.alignment) == (8, 8)
    assert np.dtype("f8").isnative
    assert ut.load(checkpoint(array_pickle("U2", content=b"a\0\0\0" * 4))).tolist() == ["aa", "aa"]


def test_arrays_are_made_in_one_way() -> None:
    """No other class, no call of ndarray, and no memory filled with copies of one string."""
    refuses(b"\x80\x02cnumpy\nndarray\n(K\x05tR.", "unknown way")
    other = b"cnumpy.core.multiarray\n_reconstruct\n(ctorch\nSize\n(K\0tU\x01btR."
    refuses(b"\x80\x02" + other, "unknown class")
    many = b"".join(
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\0tU\x01btR"
        b"(K\x01(J\x40\x42\x0f\0tcnumpy\ndtype\n(U\x02i1\x89\x88tR\x89h\x01tb"
        for _ in range(3000)
    )
    text = b"B" + (1_000_000).to_bytes(4, "little") + b"\0" * 1_000_000
    refuses(b"\x80\x02(" + text + b"q\x01" + many + b"t.", "copies")
