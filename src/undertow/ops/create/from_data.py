"""Tensors from numbers, nested lists, arrays and other libraries' tensors."""

from __future__ import annotations

import array as array_module
import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import dtypes
from ...backends.quiet import restore, silence
from ...backends.registry import backend_of, backend_on
from ...core.dispatch import cast, transfer
from ...core.exchange import Offered, is_capsule
from ...core.modes import current
from ...core.reading import READERS, tell
from ...core.register import function
from ...core.storage import UntypedStorage
from ...core.tensor import Tensor, share, wrap
from ...devices import DeviceLike
from ...dtypes import DType, DTypeLike
from ...errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    GradientError,
    ShapeError,
    UnsupportedError,
)

MOST_DIMS = 64  # as NumPy has them


def made(array: Any, requires_grad: bool = False) -> Tensor:
    """A fresh array as the leaf that a creation function returns."""
    t = wrap(array)
    if current().inference:
        share(t).inference = True
    return t.requires_grad_() if requires_grad else t


def _host(op: str, data: Any, dtype: DType | None) -> Any:
    """The elements of any accepted `data` as a NumPy array in `dtype`, or in the inferred one.

    Arrays and tensors are not copied when they have the dtype; lists are read.
    """
    if isinstance(data, Tensor):
        if READERS:
            tell(data)
        return _converted(op, backend_of(data._array).to_host(data._array), dtype)
    if isinstance(data, (np.ndarray, np.generic)):
        return _converted(op, np.asarray(data), dtype)
    if isinstance(data, UntypedStorage) and dtype is not None:  # bytes, which have no dtype
        return _host(op, data._row(dtype), dtype)
    if isinstance(data, (str, bytes)):
        raise DTypeError(f"[{op}] {data!r} is text, not numbers; pass numbers or nested lists")
    if isinstance(data, (bytearray, memoryview, range, array_module.array)):
        data = list(data)  # numbers, whatever the type that they have in memory
    elif hasattr(data, "__array__"):
        return _converted(op, np.asarray(data), dtype)
    elif hasattr(data, "__dlpack__"):
        return _converted(op, from_dlpack(data)._array, dtype)
    elif dtype is None and type(data) is float:
        dtype = dtypes.get_default_dtype()
    elif isinstance(next(_leaves(data), None), Tensor):
        data = _scalars(data)
    try:
        array = np.array(data)
    except OverflowError:
        raise _too_large(op, data) from None
    except (ValueError, TypeError, GradientError, DeviceError):
        array = np.array(_plain(op, _scalars(data), 0))
    exact = dtype is None or dtype.category == 1  # a floating dtype rounds, as it always does
    if array.dtype.kind not in "biufcV":
        numbers = _plain(op, data, 0)  # raises for what is not a number
        if dtype is None or exact:
            raise _too_large(op, data)
        if dtype is dtypes.bool:
            return array.astype(dtype.numpy)
        array = np.array(numbers, np.complex128 if dtype.is_complex else np.float64)
    unsigned = dtype is dtypes.uint64 and array.dtype.kind == "u"
    if (
        exact
        and not unsigned
        and array.dtype.kind in "uf"
        and type(next(_leaves(data), None)) is int
    ):
        _check_integers(op, data, array)
    if dtype is None:
        if array.dtype.kind not in "fc" or array.dtype.itemsize < 8:
            return _converted(op, array, None)
        dtype = _inferred(data, array)
    return _fitted(op, array, dtype)


def _plain(op: str, data: Any, depth: int) -> Any:
    """Nested lists of numbers, tensors and arrays as lists; an error names the place."""
    if isinstance(data, Tensor):
        return data.tolist()
    if isinstance(data, (np.ndarray, np.generic)):
        return data.tolist()
    if not isinstance(data, (list, tuple)):
        if not isinstance(data, (bool, int, float, complex)):
            raise DTypeError(
                f"[{op}] cannot make a tensor of {type(data).__name__} {data!r} at depth {depth}; "
                "pass numbers or nested lists of them"
            )
        return data
    members = [_plain(op, member, depth + 1) for member in data]
    lengths = [len(m) if isinstance(m, list) else None for m in members]
    for i, length in enumerate(lengths):
        if length != lengths[0]:
            parts = ["a number" if n is None else f"length {n}" for n in (lengths[0], length)]
            raise ShapeError(
                f"[{op}] the data is ragged: at depth {depth + 1}, item 0 has {parts[0]} and item "
                f"{i} has {parts[1]}; pad it to one length"
            )
    return members


def _scalars(data: Any) -> Any:
    """Tensors of one element, in lists, with no dimensions: as in torch they stand for numbers."""
    if isinstance(data, Tensor):
        return data.detach().reshape(()) if data.numel() == 1 else data
    return [_scalars(d) for d in data] if isinstance(data, (list, tuple)) else data


def _leaves(data: Any, depth: int = 0) -> Any:
    if isinstance(data, (list, tuple)):
        if depth > MOST_DIMS:
            raise ShapeError(f"[tensor] lists nested more than {MOST_DIMS} deep are no tensor")
        for member in data:
            yield from _leaves(member, depth + 1)
    else:
        yield data


_PLAIN = {bool, int, float, complex}


def _types(data: Any, depth: int) -> set[type]:
    """The types of the numbers in lists that are nested so deep; there may be many."""
    if not depth:
        return {type(data)}
    for _ in range(depth - 1):
        data = itertools.chain.from_iterable(data)
    return set(map(type, data))


def _inferred(data: Any, array: Any) -> DType:
    """The dtype of floating data: Python's numbers have the default dtype, others their own."""
    if _types(data, array.ndim) <= _PLAIN:
        return dtypes.of_scalar(1j if array.dtype.kind == "c" else 1.0)
    found = dtypes.bool
    for leaf in _leaves(data):
        if isinstance(leaf, Tensor):
            dtype = leaf.dtype
        elif isinstance(leaf, (np.ndarray, np.generic)):
            dtype = dtypes.of_array(leaf.dtype)
        else:
            dtype = dtypes.of_scalar(leaf)
        found = dtypes.promote_types(found, dtype)
    return found


def _check_integers(op: str, data: Any, array: Any) -> None:
    """Refuse integers beyond 64 bits, which NumPy reads as unsigned or as floats."""
    if np.abs(array).max() >= 2.0**63 and all(isinstance(v, int) for v in _leaves(data)):
        raise _too_large(op, data)


def _too_large(op: str, data: Any) -> ArgumentError:
    value = max((v for v in _leaves(data) if isinstance(v, int)), key=abs, default=data)
    return ArgumentError(f"[{op}] {value} is out of range for int64; write it as a float")


def _converted(op: str, array: Any, dtype: DType | None) -> Any:
    """An array in `dtype` (None: in the Undertow dtype of its own) and in native byte order."""
    found = dtypes.of_array(array.dtype)
    if array.dtype != found.numpy:
        array = array.astype(found.numpy)
    if array.__class__ is not np.ndarray:
        array = np.asarray(array)
    if dtype is None or dtype is found:
        return array
    return cast(wrap(array), dtype)._array


def _fitted(op: str, array: Any, dtype: DType) -> Any:
    """Numbers of lists in a dtype that was asked for; those it cannot hold are an error."""
    kind = array.dtype.kind
    if dtype.category == 1 and array.size and kind != "b":
        limits = dtypes.iinfo(dtype)
        low = limits.min if dtype.is_signed else -limits.max  # negatives wrap, as torch's
        host = array.real if kind == "c" else array
        whole = np.trunc(host) if kind in "fc" else host
        good = (whole >= low) & (whole <= limits.max)
        if kind in "fc" and dtype.itemsize == 8:
            good &= whole < 2.0 ** (63 if dtype.is_signed else 64)
        if not good.all():
            dtypes.fit(op, array[~good][0].item(), dtype)
    if kind == "c" and dtype.category < 3 and array.imag.any():
        dtypes.fit(op, array[array.imag != 0][0].item(), dtype)
    if kind == "c" and dtype.category in (1, 2):
        array = array.real
    if dtype in dtypes.FLOAT8 or (dtype.category == 1 and not dtype.is_signed and kind in "fci"):
        return backend_on("cpu").cast(array, dtype.numpy)
    token = silence()
    try:
        return array.astype(dtype.numpy, copy=False)
    finally:
        restore(token)


@function(method=False)
def tensor(
    data: Any,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A new tensor with a copy of `data`: numbers, nested lists, arrays or tensors.

    Python floats become the default dtype, integers int64; arrays and tensors keep theirs.
    A number that an integer `dtype` cannot hold (NaN, infinity, out of range) is an error.

    >>> import undertow as ut
    >>> ut.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    array = _host("tensor", data, None if dtype is None else dtypes.as_dtype(dtype))
    if device is None and isinstance(data, Tensor):
        device = data.device
    if isinstance(data, Tensor):
        array = np.array(array, order="C")
    elif not isinstance(data, (bool, int, float, complex, list, tuple)):
        array = array.copy()
    return made(backend_on(device).from_host(array), requires_grad)


@function(method=False)
def as_tensor(
    data: Any, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """`data` as a tensor that shares its memory where it can.

    A tensor of that dtype and device is returned itself, with its history; a NumPy array is shared.

    >>> import numpy as np
    >>> import undertow as ut
    >>> a = np.zeros(2)
    >>> t = ut.as_tensor(a)
    >>> a[0] = 5
    >>> t
    tensor([5., 0.], dtype=undertow.float64)
    """
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(data, Tensor):
        out = data if wanted is None else cast(data, wanted)
        return out if device is None else transfer(out, device)
    return made(backend_on(device).from_host(_host("as_tensor", data, wanted)))


@function(method=False)
def asarray(
    obj: Any,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """`obj` as a tensor: shared (`copy=False`), copied (`copy=True`), or shared where it can be.

    A tensor keeps its history, unless `requires_grad` is False. The bytes of a bytearray, a
    memoryview or the like are elements of `dtype`, as `frombuffer` takes them.

    >>> import undertow as ut
    >>> ut.asarray([1, 2], dtype=ut.float32)
    tensor([1., 2.])
    >>> ut.asarray(bytearray([1, 0, 2, 0]), dtype=ut.int16)
    tensor([1, 2], dtype=undertow.int16)
    """
    shared = isinstance(obj, (Tensor, np.ndarray)) or hasattr(obj, "__dlpack__")
    if is_capsule(obj):
        obj, shared = from_dlpack(obj), True
    elif not shared and _has_buffer(obj):
        wanted = dtypes.get_default_dtype() if dtype is None else dtype
        obj, shared = frombuffer(obj, dtype=wanted), True
    found = as_tensor(obj, dtype, device)
    if isinstance(obj, Tensor):
        shared = found is obj
    elif isinstance(obj, np.ndarray):
        shared = found._array.__class__ is np.ndarray and np.may_share_memory(found._array, obj)
    if copy is False and not shared:
        raise ArgumentError(
            f"[asarray] {type(obj).__name__} becomes a tensor of {found.dtype} on {found.device} "
            "only by copying; leave out copy=False"
        )
    if copy and shared:
        found = found.clone()
    if requires_grad is None or requires_grad == found.requires_grad:
        return found
    return found.detach().requires_grad_(requires_grad)


@function(method=False)
def from_numpy(ndarray: NDArray[Any]) -> Tensor:
    """A tensor that shares the memory of a NumPy array: writing to one changes the other.

    Negative strides are kept, and a read-only array gives a tensor that cannot be written.
    Changes made through the array do not raise the tensor's version counter.

    >>> import numpy as np
    >>> import undertow as ut
    >>> ut.from_numpy(np.arange(3))
    tensor([0, 1, 2])
    """
    if not isinstance(ndarray, np.ndarray):
        raise DTypeError(
            f"[from_numpy] expects a NumPy array, got {type(ndarray).__name__}; use ut.tensor"
        )
    found = dtypes.of_array(ndarray.dtype)
    if ndarray.dtype != found.numpy:
        raise DTypeError(
            f"[from_numpy] an array of {ndarray.dtype} in foreign byte order cannot share its "
            "memory; use ut.tensor(array), which copies"
        )
    return made(ndarray.view(np.ndarray))


@function(method=False)
def frombuffer(
    buffer: Any, *, dtype: DTypeLike, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A one-dimensional tensor over the bytes of an object such as a bytearray, which it shares.

    It has `count` elements, or all that there are, from the byte `offset` on. Of bytes that
    cannot be written it is a tensor that cannot be written.

    >>> import undertow as ut
    >>> raw = bytearray([1, 2, 3])
    >>> t = ut.frombuffer(raw, dtype=ut.uint8, offset=1)
    >>> raw[2] = 9
    >>> t
    tensor([2, 9], dtype=undertow.uint8)
    """
    wanted = dtypes.as_dtype(dtype)
    if not _has_buffer(buffer):
        raise ArgumentError(
            f"[frombuffer] expects an object with a buffer, got {type(buffer).__name__}"
        )
    size = memoryview(buffer).nbytes
    try:
        array = np.frombuffer(buffer, wanted.numpy, count, offset)
        if not array.size:
            raise ValueError("there must be at least one element")
    except ValueError as error:
        raise ArgumentError(
            f"[frombuffer] {size} bytes, count={count} and offset={offset} do not fit {wanted}: "
            f"{error}"
        ) from None
    found = made(array)
    return found.requires_grad_() if requires_grad else found


def _has_buffer(obj: Any) -> bool:
    """Whether an object, if it is no number, shows its bytes to others."""
    try:
        memoryview(obj).release()
    except TypeError:
        return False
    return not isinstance(obj, np.generic)


@function(method=False)
def from_dlpack(
    ext_tensor: Any, *, device: DeviceLike | None = None, copy: bool | None = None
) -> Tensor:
    """A tensor that shares the memory of another library's CPU tensor (DLPack), or of a capsule.

    >>> import numpy as np
    >>> import undertow as ut
    >>> ut.from_dlpack(np.arange(3))
    tensor([0, 1, 2])
    """
    offered = Offered(ext_tensor)
    try:
        array = np.from_dlpack(offered, copy=copy)
    except (AttributeError, TypeError):
        raise DTypeError(
            f"[from_dlpack] {type(ext_tensor).__name__} does not offer __dlpack__"
        ) from None
    except (BufferError, RuntimeError, ValueError) as error:
        if is_capsule(ext_tensor) and "used_" in repr(ext_tensor):
            raise UnsupportedError("[from_dlpack] the capsule was read already") from error
        raise UnsupportedError(
            f"[from_dlpack] cannot share this {type(ext_tensor).__name__}: {error}; "
            "move it to the CPU in a common dtype first"
        ) from error
    if offered.dtype is not None:
        array = array.view(offered.dtype.numpy)
    dtypes.of_array(array.dtype)
    return made(backend_on(device).from_host(array))
