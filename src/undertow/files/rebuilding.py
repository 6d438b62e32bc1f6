"""What the names in a checkpoint mean: tensors rebuilt from storages, and plain data.

A list of torch's names with Undertow's answers, no import of torch. Arguments come from a file, so
each is checked before memory is looked at.
"""

from __future__ import annotations

import codecs
from collections import Counter, OrderedDict
from importlib import import_module
from typing import Any, NamedTuple

from .. import dtypes, layouts
from ..core.register import FUNCTIONS
from ..core.storage import TypedStorage, UntypedStorage
from ..core.tensor import Tensor
from ..devices import Device
from ..dtypes import DType
from ..errors import DeviceError, FileError, UndertowError, UnsupportedError
from ..nn.parameter import Parameter
from ..shapes import Size
from . import numpy_arrays
from .elements import Storage
from .storages import STORAGE_NAMES
from .unpickling import BUILDS, Global, Missing, brief, checked_key

_MOST_DIMS = 64
_HUGE = 2**60


class StorageType(NamedTuple):
    """A name such as `torch.FloatStorage`; an untyped storage has no dtype."""

    name: str
    dtype: DType | None


class Typed(NamedTuple):
    """A storage of a checkpoint, and of what it is made."""

    storage: Storage
    dtype: DType | None


def memory_of(storage: Storage, dtype: DType | None) -> UntypedStorage:
    """What a program finds where the file mentions a storage: memory as `x.storage()` gives it."""
    size = 1 if dtype is None else dtype.itemsize
    row = storage.tensor(dtype or dtypes.uint8, (storage.nbytes // size,))
    found = UntypedStorage(row) if dtype is None else TypedStorage(row)
    found._read = Typed(storage, dtype)
    return found


# Tensors -----------------------------------------------------------------------------------------
def _sizes(what: str, values: Any) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)) or len(values) > _MOST_DIMS:
        raise FileError(f"[load] the file has a tensor whose {what} is {brief(values)}")
    for value in values:
        if type(value) is not int or not 0 <= value < _HUGE:
            raise FileError(f"[load] the file has a tensor whose {what} is {brief(tuple(values))}")
    return tuple(values)


def _tensor(typed: Any, offset: Any, size: Any, stride: Any, dtype: DType | None = None) -> Tensor:
    """A view of a storage, which lies inside it."""
    if not isinstance(typed, UntypedStorage) or not isinstance(typed._read, Typed):
        raise FileError(
            f"[load] the file has a tensor without a storage, in {type(typed).__name__}"
        )
    typed = typed._read
    dtype = typed.dtype if dtype is None else dtype
    if not isinstance(dtype, DType):
        raise FileError("[load] the file has a tensor without a dtype")
    (start,) = _sizes("offset", (offset,))
    shape, strides = _sizes("shape", size), _sizes("stride", stride)
    if len(shape) != len(strides):
        raise FileError(f"[load] the file has a tensor of shape {shape} with strides {strides}")
    room = typed.storage.nbytes // dtype.itemsize
    last = start + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    if 0 not in shape and last >= room:
        raise FileError(
            f"[load] the file has a tensor that reaches outside its storage: shape {shape}, "
            f"strides {strides}, offset {start}, of {room:,} elements"
        )
    try:
        return typed.storage.tensor(dtype, shape, strides, start)
    except (ValueError, OverflowError) as error:
        raise FileError(f"[load] the file has a tensor of shape {shape}: {error}") from None


def _with_grad(t: Tensor, requires_grad: Any) -> Tensor:
    if requires_grad is not True and requires_grad is not False:
        raise FileError(
            f"[load] the file has a tensor whose requires_grad is {brief(requires_grad)}"
        )
    try:
        return t.requires_grad_(requires_grad)
    except UndertowError as error:
        raise FileError(f"[load] the file has a tensor that cannot be: {error}") from None


def _tensor_v2(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any = False,
    hooks: Any = None,
    metadata: Any = None,
) -> Tensor:
    _check_metadata(metadata)
    return _with_grad(_tensor(storage, offset, size, stride), requires_grad)


def _tensor_v3(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    _check_metadata(metadata)
    return _with_grad(_tensor(storage, offset, size, stride, dtype), requires_grad)


def _meta(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    """A tensor of the device meta."""
    shape, strides = _sizes("shape", size), _sizes("stride", stride)
    if not isinstance(dtype, DType) or len(shape) != len(strides):
        raise FileError(f"[load] the file has a tensor of shape {shape} with strides {strides}")
    made = FUNCTIONS["empty_strided"](shape, strides, dtype=dtype, device="meta")
    return _with_grad(made, requires_grad)


def _layout(name: Any) -> layouts.layout:
    found = getattr(layouts, str(name).removeprefix("torch."), None)
    if not isinstance(name, str) or not isinstance(found, layouts.layout):
        raise FileError(f"[load] the file has a tensor of the unknown layout {brief(name)}")
    return found


_COMPRESSED = (layouts.sparse_csr, layouts.sparse_csc, layouts.sparse_bsr, layouts.sparse_bsc)


def _sparse(layout: Any, data: Any) -> Any:
    """A sparse tensor, whose positions are checked."""
    from ..sparse import creation

    parts = data if isinstance(data, tuple) else ()
    tensors = parts[:2] if layout is layouts.sparse_coo else parts[:3]
    dense = all(type(t) is Tensor for t in tensors)
    if dense and layout is layouts.sparse_coo and len(parts) in (3, 4):
        kind: Any = creation.sparse_coo_tensor
        options = {"is_coalesced": True} if parts[3:] == (True,) else {}
    elif dense and layout in _COMPRESSED and len(parts) == 4:
        kind, options = creation.sparse_compressed_tensor, {"layout": layout}
    else:
        raise FileError(f"[load] the file has a sparse tensor of {layout} made of {brief(data)}")
    size = _sizes("shape", parts[len(tensors)])
    try:
        return kind(*tensors, size, check_invariants=True, **options)
    except UndertowError as error:
        raise FileError(f"[load] the file has a sparse tensor that cannot be: {error}") from None


def _check_metadata(metadata: Any) -> None:
    if metadata is not None and metadata != {}:
        raise UnsupportedError(
            f"[load] the file has a tensor that is to be conjugated or negated when it is read "
            f"({brief(metadata)}); save tensor.resolve_conj().resolve_neg()"
        )


def _parameter(
    data: Any = None, requires_grad: Any = True, hooks: Any = None, state: Any = None
) -> Parameter:
    if not isinstance(data, Tensor):
        raise FileError(f"[load] the file has a parameter made of a {type(data).__name__}")
    made = _with_grad(Parameter(data, False), requires_grad)
    return _with_attributes(made, state)


def _from_type(function: Any, kind: Any, args: Any, state: Any) -> Any:
    """A tensor with attributes, or of a class of its own: that is not read."""
    known = isinstance(function, Global) and function.name.startswith(_MAKERS)
    if not known or type(args) is not tuple:
        raise FileError("[load] the file has a tensor that is made in an unknown way")
    return _with_attributes(function.call(*args), state)


_MAKERS = ("torch._utils._rebuild", "torch.nested._internal.nested_tensor._rebuild_njt")


def _with_attributes(made: Any, state: Any) -> Any:
    """Give a tensor what a program had set on it; nothing that a tensor has anyway."""
    values = state[0] if type(state) is tuple and len(state) == 2 else state
    if values is not None and type(values) is not dict:
        raise FileError(f"[load] the file has a tensor whose attributes are {brief(values)}")
    for name, value in (values or {}).items():
        if type(name) is not str:
            raise FileError(f"[load] the file has a tensor with an attribute {brief(name)}")
        ours = name.startswith(("_dynamo", "__")) or hasattr(type(made), name)
        if not ours and isinstance(made, Tensor):
            vars(made)[name] = value
    return made


# Nested tensors ----------------------------------------------------------------------------------
def _room_of_nested() -> Any:
    """It is above this one."""
    return import_module(f"{__name__.partition('.')[0]}.nested")


def _jagged(facts: Any) -> Any:
    """A nested tensor of torch's layout jagged, whose offsets are checked."""
    facts = facts if type(facts) is dict else {}
    values, offsets, lengths = (facts.get(name) for name in ("values", "offsets", "lengths"))
    ragged = facts.get("_ragged_idx", 1)
    whole = all(
        type(t) is Tensor and not t.is_floating_point() for t in (offsets, lengths or offsets)
    )
    if not isinstance(values, Tensor) or not whole or ragged not in range(1, values.ndim + 1):
        raise FileError(f"[load] the file has a nested tensor made of {brief(facts)}")
    try:
        found = _room_of_nested().nested_tensor_from_jagged(
            values.detach(), offsets, lengths, ragged
        )
    except UndertowError as error:
        raise FileError(f"[load] the file has a nested tensor that cannot be: {error}") from None
    return found.requires_grad_() if facts.get("requires_grad") is True else found


def _nested(buffer: Any, sizes: Any, strides: Any, starts: Any) -> Any:
    """A nested tensor of torch's layout strided: views of a row of elements."""
    tables = [t.tolist() for t in (sizes, strides, starts) if type(t) is Tensor]
    if type(buffer) is not Tensor or len(tables) != 3 or buffer.ndim != 1:
        raise FileError(f"[load] the file has a nested tensor made of a {type(buffer).__name__}")
    try:
        parts = []
        for size, stride, start in zip(*tables, strict=True):
            shape, steps = _sizes("shape", size), _sizes("stride", stride)
            (first,) = _sizes("offset", (start,))
            last = first + sum((n - 1) * s for n, s in zip(shape, steps, strict=True))
            if 0 not in shape and last >= buffer.numel():
                raise FileError("[load] the file has a nested tensor that reaches outside")
            parts.append(buffer.as_strided(shape, steps, first))
        return _room_of_nested().as_nested_tensor(parts)
    except (UndertowError, TypeError, ValueError) as error:
        raise FileError(f"[load] the file has a nested tensor that cannot be: {error}") from None


class _Remark:
    """What torch's compiler noted of a tensor in a file; nobody reads it here."""


BUILDS[_Remark] = lambda remark, state: None


def _from_cpu(data: Any, dtype: Any, device: Any, requires_grad: Any) -> Tensor:
    if not isinstance(data, Tensor) or not isinstance(dtype, DType):
        raise FileError(f"[load] the file has a tensor made of a {type(data).__name__}")
    return _with_grad(data.to(dtype), requires_grad)


# Plain data --------------------------------------------------------------------------------------
def _bytes(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise FileError("[load] the file has bytes in an unknown encoding")
    return codecs.encode(text, "latin1")


def _no_bytes() -> bytes:
    """How protocol 2 writes bytes of which there are none."""
    return b""


def _bytearray(content: Any = b"", encoding: Any = "latin-1") -> bytearray:
    # Never a number, of which bytearray would make so many zeros.
    return bytearray(_bytes(content, encoding) if isinstance(content, str) else _checked(content))


def _checked(content: Any) -> bytes:
    if not isinstance(content, bytes):
        raise FileError(f"[load] the file has bytes made of a {type(content).__name__}")
    return content


def _listed(items: Any) -> list[Any]:
    if not isinstance(items, (list, tuple)):
        raise FileError(f"[load] the file has a set made of a {type(items).__name__}")
    return [checked_key(item) for item in items]


def _dict(kind: Any) -> Any:
    def make(items: Any = ()) -> Any:
        if isinstance(items, dict):
            items = items.items()
        elif not isinstance(items, (list, tuple)):
            raise FileError(f"[load] the file has a dict made of a {type(items).__name__}")
        made = kind()
        for key, value in items:
            made[checked_key(key)] = value
        return made

    return make


def _complex(real: Any = 0.0, imag: Any = 0.0) -> complex:
    if type(real) not in (int, float) or type(imag) not in (int, float):
        raise FileError("[load] the file has a complex number of other things than numbers")
    return complex(real, imag)


def _size(sizes: Any = ()) -> Size:
    return Size(_sizes("shape", sizes))


def _device(type: Any = None, index: Any = None) -> Device:
    try:
        if isinstance(type, str) and isinstance(index, int | None):
            return Device(type, index)
    except DeviceError:
        pass
    raise FileError(f"[load] the file has a device that is none: {brief(type)}, {brief(index)}")


def _oldest(*args: Any) -> Any:
    raise UnsupportedError(
        "[load] the file has tensors in the manner of torch 0.1; load and save it with a later one"
    )


def _table() -> dict[str, Any]:
    calls = {
        "torch._utils._rebuild_tensor": _tensor_v2,
        "torch._utils._rebuild_tensor_v2": _tensor_v2,
        "torch._utils._rebuild_tensor_v3": _tensor_v3,
        "torch._utils._rebuild_meta_tensor_no_storage": _meta,
        "torch._utils._rebuild_sparse_tensor": _sparse,
        "torch._utils._rebuild_sparse_csr_tensor": _sparse,
        "torch.serialization._get_layout": _layout,
        "torch._utils._rebuild_parameter": _parameter,
        "torch._utils._rebuild_parameter_with_state": _parameter,
        "torch._utils._rebuild_nested_tensor": _nested,
        "torch.nested._internal.nested_tensor._rebuild_njt": _jagged,
        "torch.nested._internal.nested_tensor.NestedTensor": _oldest,
        "torch._dynamo.decorators._DimRange": _Remark,
        "torch.nn.parameter.Parameter": _parameter,
        "torch._tensor._rebuild_from_type_v2": _from_type,
        "torch._utils._rebuild_device_tensor_from_cpu_tensor": _from_cpu,
        "torch.Size": _size,
        "torch.device": _device,
        "torch.Tensor": _oldest,
        "collections.OrderedDict": _dict(OrderedDict),
        "collections.Counter": _dict(Counter),
        "_codecs.encode": _bytes,
        "builtins.bytes": _no_bytes,
        "builtins.bytearray": _bytearray,
        "builtins.set": lambda items=(): set(_listed(items)),
        "builtins.frozenset": lambda items=(): frozenset(_listed(items)),
        "builtins.complex": _complex,
        **numpy_arrays.CALLS,
    }
    found: dict[str, Any] = {name: Global(name, call) for name, call in calls.items()}
    for dtype in dtypes.ALL:
        found[f"torch.{dtype.name}"] = dtype
        name = STORAGE_NAMES[dtype]
        found[f"torch.{name}"] = found[f"torch.cuda.{name}"] = StorageType(name, dtype)
    for dtype in dtypes.RARE:
        found[f"torch.{dtype.name}"] = dtype
    for name in ("torch.storage.UntypedStorage", "torch.UntypedStorage"):
        found[name] = StorageType(name, None)
    found.update({name: Missing(name, what) for name, what in _MISSING.items()})
    for name in _OTHER_DTYPES:
        found[f"torch.{name}"] = Missing(f"torch.{name}", "a dtype")
    for name in _OTHER_STORAGES:
        found[f"torch.{name}"] = Missing(f"torch.{name}", "a quantised tensor")
    return found


# What torch has and Undertow has not: it is told by name, where other names are refused.
_MISSING = {
    "torch._utils._rebuild_qtensor": "a quantised tensor",
    "torch._utils._rebuild_wrapper_subclass": "a tensor of another class",
    "torch._utils._rebuild_device_tensor_from_numpy": "a tensor made of a NumPy array",
}
_OTHER_DTYPES = [
    "complex32",
    "quint8",
    "qint8",
    "qint32",
    "quint4x2",
    "quint2x4",
    "float4_e2m1fn_x2",
]
_OTHER_STORAGES = [
    "QInt8Storage",
    "QUInt8Storage",
    "QInt32Storage",
    "QUInt4x2Storage",
    "QUInt2x4Storage",
    "ComplexHalfStorage",
]
GLOBALS = _table()
BUILDS.update(numpy_arrays.BUILDS)
