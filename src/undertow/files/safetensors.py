"""The safetensors format: a JSON header that says where each tensor lies, then the elements.

    8 bytes      length of the header, least significant byte first
    the header   {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
    the data     elements in row-major order, without gaps

Nothing in such a file is executed, and everything that the header says is checked against the
size of the file before a tensor is made.

Note [mapped files]
`load_file` maps the file into memory, so that loading takes no time and only what is used is read.
The map is private: a change in place copies the page that it touches and never reaches the file.
A file that is replaced (`save_file` does so) or deleted stays as it was for the tensors that look
at it. But no program may shorten the file, or write into it, as long as they do: what they have not
read yet would change, or end the process. Where that can happen, load with `mmap=False`.
"""

from __future__ import annotations

import json
import mmap as _mmap
import os
from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import TracebackType
from typing import Any

from .. import dtypes
from ..core.tensor import Tensor
from ..devices import DeviceLike
from ..errors import DTypeError, FileError, UnsupportedError
from .atomic import PathLike, write_file
from .elements import LITTLE, Storage, elements_of, only_ones_and_zeros, place, read_all, width
from .safetensors_header import DTYPES, LARGEST, METADATA, NAMES, RANK, Entry, read_header

__all__ = ["load", "load_file", "safe_open", "save", "save_file"]


# Saving ------------------------------------------------------------------------------------------
def save_file(
    tensors: Mapping[str, Tensor], filename: PathLike, metadata: Mapping[str, str] | None = None
) -> None:
    """Write tensors to a safetensors file, whole or not at all.

    A tensor that is not contiguous is written in row-major order. Two names that share memory
    would be two copies after loading, so they are an error.

    >>> import os, tempfile
    >>> import undertow as ut
    >>> from undertow.files.safetensors import load_file, save_file
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> save_file({"weight": ut.ones(2, 3), "bias": ut.zeros(3)}, path, {"epoch": "7"})
    >>> sorted(load_file(path))
    ['bias', 'weight']
    """
    _refuse("save_file", tensors)
    write_file(filename, pieces("save_file", tensors, metadata))


def save(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """What `save_file` would write, as bytes.

    >>> import undertow as ut
    >>> from undertow.files.safetensors import load, save
    >>> load(save({"x": ut.arange(3)}))
    {'x': tensor([0, 1, 2])}
    """
    _refuse("save", tensors)
    return b"".join(pieces("save", tensors, metadata))


def pieces(op: str, tensors: Any, metadata: Any = None) -> list[Any]:
    """The file in parts: the header, and the memory of each tensor."""
    order = sorted(tensors, key=lambda name: (-RANK[NAMES[tensors[name].dtype]], name))
    header: dict[str, Any] = {}
    if metadata is not None:
        header[METADATA] = _checked_metadata(op, metadata)
    end = 0
    for name in order:
        t = tensors[name]
        begin, end = end, end + t.nbytes
        header[name] = {
            "dtype": NAMES[t.dtype],
            "shape": list(t.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # so that elements begin where their dtype wants them
    if len(text) > LARGEST:
        raise UnsupportedError(
            f"[{op}] the names and metadata take {len(text):,} bytes, the format allows {LARGEST:,}"
        )
    return [len(text).to_bytes(8, "little"), text, *(elements_of(tensors[n]) for n in order)]


def _check(op: str, name: Any, t: Any) -> None:
    if not isinstance(name, str):
        raise DTypeError(f"[{op}] names are strings, got {type(name).__name__} {name!r}")
    if name == METADATA:
        raise DTypeError(f"[{op}] {METADATA!r} is no name for a tensor; pass metadata=")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise DTypeError(f"[{op}] the name {name!r} is no valid Unicode") from None
    if not isinstance(t, Tensor):
        raise DTypeError(
            f"[{op}] {name!r} is a {type(t).__name__}; the format holds tensors only, and strings "
            "in its metadata: use ut.save for other things"
        )
    if t.dtype not in NAMES:
        raise UnsupportedError(
            f"[{op}] {name!r} is {t.dtype}, which the format does not have; "
            "save ut.view_as_real(tensor)"
        )


def _checked_metadata(op: str, metadata: Any) -> dict[str, str]:
    if not isinstance(metadata, Mapping):
        raise DTypeError(f"[{op}] metadata is a dict of strings, got {type(metadata).__name__}")
    for key, value in metadata.items():
        if not (isinstance(key, str) and isinstance(value, str)):
            raise DTypeError(
                f"[{op}] metadata holds strings only, got {key!r}: {value!r}; use str() or json"
            )
    return dict(metadata)


def _refuse(op: str, tensors: Any) -> None:
    """What is no dict of tensors, or would be two copies after loading."""
    if not isinstance(tensors, Mapping):
        raise DTypeError(
            f"[{op}] expects a dict of names and tensors, got {type(tensors).__name__}"
        )
    for name, t in tensors.items():
        _check(op, name, t)
    places = sorted((*place(t), name) for name, t in tensors.items() if t.numel())
    for (memory, _, end, one), (other_memory, begin, _, other) in pairwise(places):
        if memory == other_memory and begin < end:
            names = sorted(n for m, _, _, n in places if m == memory)
            raise FileError(
                f"[{op}] {one!r} and {other!r} share memory, which would be copied and shared no "
                f"more after loading (tensors in that memory: {', '.join(names)}); save one of "
                "them, clone() them, or use ut.save, which keeps what is shared"
            )


# Loading -----------------------------------------------------------------------------------------
def load_file(
    filename: PathLike, device: DeviceLike = "cpu", mmap: bool = True
) -> dict[str, Tensor]:
    """The tensors of a safetensors file by name; see Note [mapped files].

    >>> import os, tempfile
    >>> import undertow as ut
    >>> from undertow.files.safetensors import load_file, save_file
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> save_file({"weight": ut.ones(2)}, path)
    >>> model = load_file(path)
    >>> model["weight"].mul_(3)  # the file stays as it is
    tensor([3., 3.])
    >>> load_file(path)["weight"]
    tensor([1., 1.])
    """
    with open(filename, "rb") as file:
        content = _mapped(file) if mmap else read_all(file)
    return _tensors("load_file", content, device)


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors in the bytes of a safetensors file; see `save`."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise DTypeError(
            f"[load] expects the bytes of a file, got {type(data).__name__}; load_file takes a path"
        )
    return _tensors("load", bytearray(data), "cpu")


def _mapped(file: Any) -> Any:
    """The file as private memory; see Note [mapped files]."""
    if not os.fstat(file.fileno()).st_size:  # which cannot be mapped
        return b""
    return _mmap.mmap(file.fileno(), 0, access=_mmap.ACCESS_COPY)


def _tensors(op: str, content: Any, device: DeviceLike) -> dict[str, Tensor]:
    entries, _ = read_header(op, content)
    return {name: _tensor(op, content, name, entry, device) for name, entry in entries.items()}


def _tensor(op: str, content: Any, name: str, entry: Entry, device: DeviceLike) -> Tensor:
    dtype = DTYPES[entry.dtype]
    if dtype is None:
        raise UnsupportedError(
            f"[{op}] {name!r} has dtype {entry.dtype}, for which there is no Undertow dtype; "
            f"there are {', '.join(NAMES.values())}"
        )
    part = memoryview(content)[entry.begin : entry.end]
    if dtype is dtypes.bool and not only_ones_and_zeros(part):
        raise FileError(f"[{op}] {name!r} is BOOL, but some bytes are neither 0 nor 1")
    swap = 1 if LITTLE else width(dtype)
    storage = Storage.around(part, device, align=dtype.itemsize, swap=swap)
    return storage.tensor(dtype, entry.shape)


# Part of a file ----------------------------------------------------------------------------------
class safe_open:
    """A safetensors file of which some tensors, or parts of them, are read.

    What is read is copied, so that it outlives the file. `framework` is there for programs that
    were written for another library, and means nothing.

    >>> import os, tempfile
    >>> import undertow as ut
    >>> from undertow.files.safetensors import safe_open, save_file
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> save_file({"weight": ut.arange(6).reshape(2, 3)}, path)
    >>> with safe_open(path) as file:
    ...     print(file.keys(), file.get_slice("weight")[:, 1:])
    ['weight'] tensor([[1, 2],
            [4, 5]])
    """

    def __init__(
        self, filename: PathLike, framework: str | None = None, device: DeviceLike = "cpu"
    ) -> None:
        self._device = device
        with open(filename, "rb") as file:
            self._content = _mapped(file)
        self._entries, self._metadata = read_header("safe_open", self._content)

    def __enter__(self) -> safe_open:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._content = None

    def keys(self) -> list[str]:
        """The names of the tensors, sorted."""
        return sorted(self._entries)

    def offset_keys(self) -> list[str]:
        """The names in the order in which the tensors lie in the file."""
        return sorted(self._entries, key=lambda name: self._entries[name].begin)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def metadata(self) -> dict[str, str] | None:
        """The strings that were saved beside the tensors."""
        return self._metadata

    def get_tensor(self, name: str) -> Tensor:
        """One tensor."""
        return self.get_slice(name)[...]

    def get_slice(self, name: str) -> Slice:
        """One tensor, to be indexed: only what the index asks for is read."""
        if self._content is None:
            raise FileError(f"[safe_open] the file is closed; read {name!r} inside the with block")
        if name not in self._entries:
            raise KeyError(f"[safe_open] there is no tensor {name!r}; there are {self.keys()}")
        entry = self._entries[name]
        return Slice(_tensor("safe_open", self._content, name, entry, "cpu"), entry, self._device)


class Slice:
    """A tensor in a file; what it is indexed with is read."""

    def __init__(self, mapped: Tensor, entry: Entry, device: DeviceLike) -> None:
        self._mapped = mapped
        self._entry = entry
        self._device = device

    def get_shape(self) -> list[int]:
        """The shape in the file."""
        return list(self._entry.shape)

    def get_dtype(self) -> str:
        """The dtype under the format's own name, such as "F32"."""
        return self._entry.dtype

    def __getitem__(self, index: Any) -> Tensor:
        return self._mapped[index].clone().to(self._device)
