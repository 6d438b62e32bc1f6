"""Plain data and tensors as a pickle (protocol 2), in the words of torch's own checkpoints.

Of what a restricted reader takes nothing is looked up or asked how it wants to be saved. Other
objects, modules among them, are written as pickle would: see `whole`.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from ..core.foreign import is_foreign
from ..core.other_kinds import OtherKind
from ..core.protocol import plain_number
from ..core.storage import TypedStorage, UntypedStorage
from ..core.tensor import Tensor
from ..devices import Device
from ..dtypes import DType
from ..errors import DTypeError, FileError
from ..layouts import layout as Layout
from ..nn.modules.state import State
from ..nn.parameter import Parameter
from ..shapes import Size
from . import numpy_arrays, whole
from .storages import STORAGE_NAMES, Storages

_MOST = 255  # bytes of an integer, which torch's restricted reader takes


class Pickle:
    """Writes one object; the storages of its tensors are collected in `storages`."""

    def __init__(self, storages: Storages, views: bool = False) -> None:
        self._storages = storages
        self._views = views  # whether a storage is mentioned with the part of it that is meant
        self._out: list[bytes] = []
        self._memo: dict[Any, int] = {}
        self._kept: list[Any] = []  # what the memo knows by its id must not go away
        self._open: set[int] = set()  # tuples that are being written
        self._path: list[str] = []

    def write(self, obj: Any) -> bytes:
        """The bytes of the pickle."""
        try:
            self._save(obj)
        except RecursionError:
            raise FileError("[save] the data is nested too deeply") from None
        return b"".join((b"\x80\x02", *self._out, b"."))

    # Words ------------------------------------------------------------------------------------
    def _global(self, module: str, name: str) -> None:
        if not self._known((module, name)):
            self._out.append(f"c{module}\n{name}\n".encode())
            self._remember((module, name))

    def _known(self, key: Any) -> bool:
        number = self._memo.get(key)
        if number is None:
            return False
        self._out.append(
            b"h" + bytes([number]) if number < 256 else b"j" + number.to_bytes(4, "little")
        )
        return True

    def _remember(self, key: Any, obj: Any = None) -> None:
        number = self._memo[key] = len(self._memo)
        self._kept.append(obj)
        self._out.append(
            b"q" + bytes([number]) if number < 256 else b"r" + number.to_bytes(4, "little")
        )

    def _items(self, items: Iterable[Any], one_by_one: bytes) -> None:
        self._out.append(b"(")
        for where, item in items:
            self._path.append(where)
            self._save(item)
            self._path.pop()
        self._out.append(one_by_one)

    def _call(self, module: str, name: str, *args: Any) -> None:
        self._global(module, name)
        self._items((("", arg) for arg in args), b"tR")

    # Things -----------------------------------------------------------------------------------
    def _save(self, obj: Any) -> None:
        kind = type(obj)
        write = _WRITERS.get(kind)
        if write is not None:
            write(self, obj)
        elif isinstance(obj, Tensor):
            self._tensor(obj)
        elif isinstance(obj, UntypedStorage):
            self._storage(obj)
        elif isinstance(obj, OtherKind) and hasattr(obj, "_saved"):
            self._sparse(obj)
        elif isinstance(obj, OtherKind) and getattr(obj, "is_nested", False):
            self._nested(obj)
        elif is_foreign(obj):
            number = plain_number(obj) if not obj.shape and hasattr(obj, "item") else obj
            if number is obj:  # also an array without dimensions
                self._array(obj)
            else:
                self._save(number)
        elif whole.is_named(obj):
            self._global(*whole.words(obj))
        else:
            self._object(obj)

    def _object(self, obj: Any) -> None:
        """An object of any class; see `whole`."""
        if self._known(id(obj)):
            return
        try:
            call, *rest = whole.reduced(obj)
        except TypeError as error:
            raise DTypeError(f"[save] {self._where()} cannot be saved: {error}") from error
        if isinstance(call, str):
            self._global(*whole.words(obj))
        else:
            args, state, items, pairs = rest
            made = getattr(call, "__name__", "") == "__newobj__"
            self._save(args[0] if made else call)
            self._save(tuple(args[1:] if made else args))
            self._out.append(b"\x81" if made else b"R")
            self._remember(id(obj), obj)
            self._kept += [args, state]
            if items is not None:
                self._items((("[…]", item) for item in items), b"e")
            if pairs is not None:
                self._items(((f"[{k!r}]", thing) for k, v in pairs for thing in (k, v)), b"u")
            if state is not None:
                self._save(state)
                self._out.append(b"b")

    def _constant(self, obj: Any) -> None:
        self._out.append(b"N" if obj is None else b"\x88" if obj else b"\x89")

    def _int(self, obj: int) -> None:
        if 0 <= obj < 256:
            self._out.append(b"K" + bytes([obj]))
        elif -(2**31) <= obj < 2**31:
            self._out.append(b"J" + struct.pack("<i", obj))
        else:
            raw = obj.to_bytes(obj.bit_length() // 8 + 1, "little", signed=True)
            if len(raw) > _MOST:
                raise FileError(
                    f"[save] {self._where()} is an integer of {obj.bit_length()} bits; checkpoints "
                    f"hold up to {8 * _MOST - 1}: save it as a string"
                )
            self._out.append(b"\x8a" + bytes([len(raw)]) + raw)

    def _float(self, obj: float) -> None:
        self._out.append(b"G" + struct.pack(">d", obj))

    def _complex(self, obj: complex) -> None:
        self._call("__builtin__", "complex", obj.real, obj.imag)

    def _str(self, obj: str) -> None:
        if not self._known(obj):
            raw = obj.encode("utf-8", "surrogatepass")
            self._out.append(b"X" + len(raw).to_bytes(4, "little") + raw)
            self._remember(obj)

    def _bytes(self, obj: bytes) -> None:
        self._call("_codecs", "encode", obj.decode("latin1"), "latin1")

    def _bytearray(self, obj: bytearray) -> None:
        self._call("__builtin__", "bytearray", bytes(obj))

    def _tuple(self, obj: tuple[Any, ...]) -> None:
        if not obj:
            self._out.append(b")")
        elif not self._known(id(obj)):
            if id(obj) in self._open:
                raise FileError(f"[save] {self._where()} is a tuple that contains itself")
            self._open.add(id(obj))
            self._items(((f"[{i}]", item) for i, item in enumerate(obj)), b"t")
            self._open.discard(id(obj))
            self._remember(id(obj), obj)

    def _size(self, obj: Size) -> None:
        self._call("torch", "Size", tuple(obj))

    def _list(self, obj: list[Any]) -> None:
        if not self._known(id(obj)):
            self._out.append(b"]")
            self._remember(id(obj), obj)
            if obj:
                self._items(((f"[{i}]", item) for i, item in enumerate(obj)), b"e")

    def _dict(self, obj: dict[Any, Any]) -> None:
        if not self._known(id(obj)):
            self._out.append(b"}")
            self._remember(id(obj), obj)
            self._pairs(obj)

    def _ordered_dict(self, obj: Any) -> None:
        if not self._known(id(obj)):
            self._global("collections", "Counter" if type(obj) is Counter else "OrderedDict")
            self._out.append(b")R")
            self._remember(id(obj), obj)
            self._pairs(obj)
            metadata = vars(obj).get("_metadata")  # of a state_dict: the versions of its modules
            if metadata is not None:
                self._save({"_metadata": metadata})
                self._out.append(b"b")

    def _pairs(self, obj: dict[Any, Any]) -> None:
        if obj:
            pairs = ((f"[{k!r}]", thing) for k, v in obj.items() for thing in (k, v))
            self._items(pairs, b"u")

    def _set(self, obj: set[Any] | frozenset[Any]) -> None:
        if not self._known(id(obj)):
            self._call("__builtin__", type(obj).__name__, list(obj))
            self._remember(id(obj), obj)

    def _dtype(self, obj: DType) -> None:
        self._global("torch", obj.name)

    def _layout(self, obj: Layout) -> None:
        self._call("torch.serialization", "_get_layout", f"torch.{obj.name}")

    def _sparse(self, obj: Any) -> None:
        if not self._known(id(obj)):
            data = obj._saved()
            self._call("torch._utils", "_rebuild_sparse_tensor", obj.layout, data)
            self._remember(id(obj), obj)
            self._kept.append(data)

    def _nested(self, obj: Any) -> None:
        """A nested tensor, in the manner of its layout."""
        if self._known(id(obj)):
            return
        home, kind, *parts = obj._saved_as()
        self._kept.append(parts)
        if home == "torch._utils":
            self._call(home, kind, *parts)
        else:
            self._global("torch._tensor", "_rebuild_from_type_v2")
            self._out.append(b"(")
            self._global(home, kind)
            self._global(home, "NestedTensor")
            self._items((("", part) for part in parts), b"t")
            self._save({})
            self._out.append(b"tR")
        self._remember(id(obj), obj)

    def _device(self, obj: Device) -> None:
        index = () if obj.index is None else (obj.index,)
        self._call("torch", "device", obj.type, *index)

    def _tensor(self, obj: Tensor) -> None:
        if self._known(id(obj)):
            return
        state = dict(vars(obj))  # the attributes that a program gave it
        self._kept.append(state)
        if isinstance(obj, Parameter):
            data = obj.detach()
            self._kept.append(data)
            kind = "_rebuild_parameter_with_state" if state else "_rebuild_parameter"
            given = (data, obj.requires_grad, OrderedDict(), *([state] if state else ()))
            self._call("torch._utils", kind, *given)
        elif state:
            self._global("torch._tensor", "_rebuild_from_type_v2")
            self._out.append(b"(")
            write = self._maker(obj)
            self._global("torch", "Tensor")
            write()
            self._save(state)
            self._out.append(b"tR")
        else:
            self._maker(obj)()
            self._out.append(b"R")
        self._remember(id(obj), obj)

    def _maker(self, obj: Tensor) -> Callable[[], None]:
        """Name what makes a plain tensor; what is returned writes the arguments of that."""
        if type(obj) is Tensor and obj.is_meta:
            self._global("torch._utils", "_rebuild_meta_tensor_no_storage")
            facts = (obj.dtype, tuple(obj.shape), tuple(obj.stride()), obj.requires_grad)
            return lambda: self._items((("", fact) for fact in facts), b"t")
        found = self._storages.find(obj, self._where())
        t = found[2]
        named = t.dtype in STORAGE_NAMES  # the others are bytes, and their dtype is told apart
        self._global("torch._utils", f"_rebuild_tensor_v{2 if named else 3}")

        def write() -> None:
            self._out.append(b"(")
            self._mention(found, named)
            for thing in (t.storage_offset(), tuple(t.shape), tuple(t.stride())):
                self._save(thing)
            self._constant(obj.requires_grad)
            self._call("collections", "OrderedDict")
            if not named:
                self._dtype(t.dtype)
            self._out.append(b"t")

        return write

    def _mention(self, found: tuple[int, int, Tensor], typed: bool) -> None:
        """The place of a storage, among others as one of its dtype, or of bytes."""
        number, size, t = found
        self._out.append(b"(")
        self._str("storage")
        if typed:
            self._global("torch", STORAGE_NAMES[t.dtype])
        else:
            self._global("torch.storage", "UntypedStorage")
            size *= t.itemsize
        self._storages.counts.setdefault(number, size)
        for word in (str(number), str(t.device)):
            self._str(word)
        self._int(size)
        self._out.append(b"NtQ" if self._views else b"tQ")

    def _storage(self, obj: UntypedStorage) -> None:
        """Memory as such: a pickle mentions it as it does that of a tensor."""
        found = self._storages.find(obj._tensor, self._where())
        self._mention(found, isinstance(obj, TypedStorage) and found[2].dtype in STORAGE_NAMES)

    def _array(self, obj: Any) -> None:
        if self._known(id(obj)):
            return
        described = numpy_arrays.describe(obj)
        if described is None:
            raise self._refused(obj)
        code, state, shape, content = described
        self._global(numpy_arrays.HOME, "_reconstruct")
        self._out.append(b"(")
        self._global("numpy", "ndarray")
        self._save((0,))
        self._save(b"b")
        self._out.append(b"tR")
        self._remember(id(obj), obj)
        self._out.append(b"(")
        self._save(1)
        self._save(shape)
        self._call("numpy", "dtype", code, False, True)
        self._save(state)
        self._out.append(b"b")
        self._save(False)
        self._save(content)
        self._out.append(b"tb")

    # Errors -----------------------------------------------------------------------------------
    def _where(self) -> str:
        return "".join(self._path) or "the object"

    def _refused(self, obj: Any) -> DTypeError:
        kind = f"{type(obj).__module__}.{type(obj).__qualname__}"
        return DTypeError(
            f"[save] {self._where()} is a {kind} of {getattr(obj, 'dtype', 'no dtype')}; a "
            "checkpoint holds arrays of numbers: save an array of numbers"
        )


_WRITERS: dict[type, Any] = {
    Layout: Pickle._layout,
    type(None): Pickle._constant,
    bool: Pickle._constant,
    int: Pickle._int,
    float: Pickle._float,
    complex: Pickle._complex,
    str: Pickle._str,
    bytes: Pickle._bytes,
    bytearray: Pickle._bytearray,
    tuple: Pickle._tuple,
    Size: Pickle._size,
    list: Pickle._list,
    dict: Pickle._dict,
    OrderedDict: Pickle._ordered_dict,
    State: Pickle._ordered_dict,
    Counter: Pickle._ordered_dict,
    set: Pickle._set,
    frozenset: Pickle._set,
    DType: Pickle._dtype,
    Device: Pickle._device,
}
