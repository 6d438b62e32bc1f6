"""`ut.save` and `ut.load`: tensors and plain data in torch's own checkpoint format.

    archive/data.pkl     the data as a pickle, which mentions storages by number
    archive/byteorder    "little"
    archive/data/0 …     the bytes of each storage
    archive/version      "3"

torch reads what is written here (`torch.load` with `weights_only=True`), and files of torch are
read here, also those of versions before 1.6. Nothing in a file is executed.
"""

from __future__ import annotations

import mmap as _mmap
import os
import pickle
import sys
from collections.abc import Iterator
from typing import IO, Any

from .. import dtypes
from ..core.storage import UntypedStorage
from ..errors import ArgumentError, DTypeError, FileError, UnsupportedError
from ..shapes import as_int
from . import options
from .archive import Record, archive, read_archive, record_bytes
from .atomic import PathLike, is_path, write_file
from .elements import Storage, only_ones_and_zeros, read_all, width
from .legacy import read_legacy, write_legacy
from .locations import MapLocation, placed
from .pickling import Pickle
from .rebuilding import GLOBALS, StorageType, memory_of
from .safe_globals import allowed_names
from .storages import Storages
from .unpickling import Unpickler, brief, mentioned
from .whole import Trusted

__all__ = ["load", "save"]


def save(
    obj: Any,
    f: PathLike | IO[bytes],
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write tensors, numbers, strings and containers of them to a file, which torch reads, too.

    `f` is a path, which is written whole or not at all, or a file object. Tensors that share
    memory share it again after loading. The pickle inside is of protocol 2, which all versions of
    Python and torch read, whatever `pickle_protocol` says. Of a module or an optimiser, save the
    `state_dict()`: the thing itself can be saved, too, but who reads it runs its classes
    (`weights_only=False`).

    >>> import io
    >>> import undertow as ut
    >>> file = io.BytesIO()
    >>> ut.save({"epoch": 3, "weight": ut.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> ut.load(file)
    {'epoch': 3, 'weight': tensor([1., 1.])}
    """
    if pickle_module not in (None, pickle):
        raise UnsupportedError("[save] has a pickle of its own; leave out pickle_module")
    if as_int("save", "pickle_protocol", pickle_protocol) > pickle.HIGHEST_PROTOCOL:
        raise ArgumentError(
            f"[save] pickle_protocol is at most {pickle.HIGHEST_PROTOCOL}, got {pickle_protocol}"
        )
    if _use_new_zipfile_serialization:
        checked = options.save.compute_crc32 and not options.skips_data()
        pieces = archive(_records(obj), options.save.storage_alignment, checked)
    else:
        pieces = write_legacy(obj)
    if is_path(f):
        write_file(f, pieces)  # type: ignore[arg-type]
    elif hasattr(f, "write"):
        for piece in pieces:
            f.write(piece)
        if hasattr(f, "flush"):  # who opens the file by its name finds all of it
            f.flush()
    else:
        raise DTypeError(
            f"[save] writes to a path or a file object, got {type(f).__name__}; "
            "the order is ut.save(obj, file)"
        )


def _records(obj: Any) -> Iterator[tuple[str, Any]]:
    storages = Storages()
    yield "archive/data.pkl", Pickle(storages).write(obj)
    yield "archive/.format_version", b"1"
    yield "archive/.storage_alignment", str(options.save.storage_alignment).encode()
    yield "archive/byteorder", b"little"
    skipped = options.skips_data()
    for number, content in storages.records():
        yield f"archive/data/{number}", bytes(len(content)) if skipped else content
    yield "archive/version", b"3\n"


def load(
    f: PathLike | IO[bytes],
    map_location: MapLocation = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = True,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """What `ut.save` or `torch.save` wrote to a path or file object.

    A file can hold nothing but data: a name in it that is neither a tensor nor plain data is an
    error, unless `ut.serialization.add_safe_globals` allows it. Classes that tensors had of
    their own are left out.

    With `weights_only=False` also modules, optimisers and datasets that were saved whole are read,
    those of torch as those of the same name here, and others if `add_safe_globals` allows their
    classes. That runs code with what the file gives it: do it only with files that you trust. The
    variable TORCH_FORCE_WEIGHTS_ONLY_LOAD=1 of the environment forbids it.

    `map_location` is a device for all tensors, a dict from the device of the file to another, or
    a function of a storage and its device. With `mmap=True` the file of that path is mapped and
    read as tensors are used, unchecked; it must not change then (Note [mapped files]).

    >>> import io
    >>> import undertow as ut
    >>> file = io.BytesIO()
    >>> x = ut.arange(4)
    >>> ut.save((x, x[1:3]), file)
    >>> _ = file.seek(0)
    >>> x, part = ut.load(file, map_location="cpu")
    >>> x.mul_(10)
    tensor([ 0, 10, 20, 30])
    >>> part
    tensor([10, 20])
    """
    encoding = pickle_load_args.pop("encoding", "utf-8")
    other = pickle_module not in (None, pickle)
    if other or pickle_load_args:
        given = ["pickle_module"] * other + list(pickle_load_args)
        raise UnsupportedError(f"[load] has a reader of its own; leave out {', '.join(given)}")
    mapped = options.load.mmap if mmap is None else mmap
    if is_path(f):
        content = _mapped(f, mapped and options.maps_shared())  # type: ignore[arg-type]
    elif hasattr(f, "read"):
        if mmap:
            raise DTypeError("[load] maps the file of a path; leave out mmap=True")
        mapped = False
        content = read_all(f)
    else:
        raise DTypeError(f"[load] reads a path or a file object, got {type(f).__name__}")
    if not len(content):
        raise FileError("[load] the file is empty")
    forced = os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0") in ("1", "y", "yes", "true")
    trusted = Trusted() if weights_only is False and not forced else allowed_names()
    if bytes(content[:4]) == b"PK\3\4":
        return _Zip(content, map_location, bool(mapped)).load(encoding, trusted)
    if mapped:
        raise FileError("[load] only zip archives, which torch writes since 1.6, can be mapped")
    found, end = read_legacy(content, map_location, trusted, encoding)
    if hasattr(f, "seek") and hasattr(f, "tell"):  # another may follow
        f.seek(f.tell() - len(content) + end)
    return found


def get_unsafe_globals_in_checkpoint(f: PathLike | IO[bytes]) -> list[str]:
    """The names in a file that `ut.load` would refuse, of classes and functions.

    >>> import io
    >>> import undertow as ut
    >>> file = io.BytesIO()
    >>> ut.save(ut.nn.Linear(2, 3), file)
    >>> _ = file.seek(0)
    >>> ut.serialization.get_unsafe_globals_in_checkpoint(file)
    ['torch.nn.Linear']
    """
    content = _mapped(f) if is_path(f) else read_all(f)  # type: ignore[arg-type]
    if bytes(content[:4]) != b"PK\3\4":
        raise FileError("[get_unsafe_globals_in_checkpoint] reads zip files, of torch since 1.6")
    known = allowed_names()
    names = mentioned(_Zip(content, None, False).pickle())
    return sorted({n for n in names if n not in GLOBALS and n not in known})


def _mapped(path: PathLike, shared: bool = False) -> memoryview:
    """The file as memory: private, or such that changes go to the file."""
    with open(path, "r+b" if shared else "rb") as file:
        if not os.fstat(file.fileno()).st_size:  # which cannot be mapped
            return memoryview(b"")
        access = _mmap.ACCESS_WRITE if shared else _mmap.ACCESS_COPY
        return memoryview(_mmap.mmap(file.fileno(), 0, access=access))


class _Zip:
    """A checkpoint that is a zip archive."""

    def __init__(self, content: memoryview, map_location: MapLocation, shared: bool) -> None:
        self._content = content
        self._map_location = map_location
        self._shared = shared
        self._records = read_archive(content)
        self._folder = self._find_folder()
        untold = options.load.endianness or options.LoadEndianness.LITTLE
        native = untold is options.LoadEndianness.NATIVE
        order = self._read("byteorder", (sys.byteorder if native else untold.name.lower()).encode())
        if order not in (b"little", b"big"):
            raise FileError(f"[load] the file has the unknown byte order {order!r:.100}")
        self._swapped = order.decode() != sys.byteorder
        self._storages: dict[str, Storage] = {}

    def _find_folder(self) -> str:
        """The folder of the archive in which everything is."""
        names = [n for n in self._records if n.rpartition("/")[2] == "data.pkl"]
        folders = {n.removesuffix("data.pkl") for n in names}
        if any(f"{folder}constants.pkl" in self._records for folder in folders):
            raise UnsupportedError(
                "[load] this is a TorchScript program, which has code; save the state_dict() of "
                "the module instead"
            )
        if len(folders) != 1 or min(folders).count("/") > 1:
            raise FileError(
                "[load] this zip archive is no checkpoint: it has "
                f"{len(folders)} records data.pkl, and one is needed"
            )
        return folders.pop()

    def _record(self, name: str) -> Record:
        full = self._folder + name
        if full not in self._records:
            raise FileError(f"[load] the file is damaged: it has no record {full!r:.100}")
        return self._records[full]

    def _bytes(self, name: str, record: Record, check: bool = True) -> memoryview:
        return record_bytes(self._content, name, record, check)

    def _read(self, name: str, default: bytes) -> bytes:
        record = self._records.get(self._folder + name)
        return default if record is None else bytes(self._bytes(name, record)[:100])

    def pickle(self) -> memoryview:
        return self._bytes("data.pkl", self._record("data.pkl"))

    def load(self, encoding: str, allowed: dict[str, Any]) -> Any:
        return Unpickler(self.pickle(), GLOBALS, self._persistent, allowed, encoding).load()

    def _persistent(self, key: Any) -> UntypedStorage:
        if type(key) is not tuple or len(key) != 5 or key[0] != "storage":
            raise FileError(f"[load] the file mentions {brief(key)}, which is no storage")
        _, kind, name, location, count = key
        ok = isinstance(kind, StorageType) and isinstance(name, str) and isinstance(location, str)
        if not ok or type(count) is not int or count < 0:
            raise FileError(f"[load] the file mentions {brief(key)}, which is no storage")
        storage = self._storages.get(name)
        if storage is None:
            storage = self._storages[name] = self._storage(kind, name, location, count)
        return memory_of(storage, kind.dtype)

    def _storage(self, kind: StorageType, name: str, location: str, count: int) -> Storage:
        name = f"data/{name}"
        record = self._record(name)
        wanted = count * (1 if kind.dtype is None else kind.dtype.itemsize)
        if wanted != record.size:
            raise FileError(
                f"[load] the file is damaged: record {name!r} has {record.size:,} bytes, its "
                f"tensors expect {wanted:,}"
            )
        if options.skips_data():
            return placed(Storage.blank(wanted), location, self._map_location)
        raw = self._bytes(name, record, check=not self._shared)
        if kind.dtype is dtypes.bool and not only_ones_and_zeros(raw):
            raise FileError(f"[load] the file is damaged: record {name!r} is not boolean")
        swap = 1
        if self._swapped:
            if kind.dtype is None:
                raise UnsupportedError(
                    "[load] the file has bytes of no dtype in the byte order of another machine"
                )
            swap = width(kind.dtype)
        storage = Storage.around(raw, shared=self._shared, swap=swap)
        return placed(storage, location, self._map_location)
