"""Dtype, device and Python values: to, item, tolist, numpy, copy_."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from ... import dtypes
from ...backends.registry import backend_of
from ...core import protocol
from ...core.dispatch import cast, transfer
from ...core.inplace import overwrite
from ...core.legacy import TYPE_NAMES, typed_dtype
from ...core.other_kinds import OtherKind
from ...core.reading import READERS, tell
from ...core.register import attach, function, guarded
from ...core.tensor import Tensor, wrap
from ...devices import Device, DeviceLike
from ...dtypes import DType, DTypeLike, Number
from ...errors import ArgumentError, DTypeError, ShapeError, UnsupportedError

if TYPE_CHECKING:
    from numpy.typing import NDArray


# To another dtype or device -----------------------------------------------------------------
def _to(input: Tensor, dtype: DType | None, device: Any, copy: bool) -> Tensor:
    out = input if dtype is None else cast(input, dtype)
    if device is not None:
        out = transfer(out, device)
    return out.clone() if copy and out is input else out


@overload
def to(
    input: Tensor,
    dtype: DTypeLike,
    non_blocking: bool = False,
    copy: bool = False,
    *,
    memory_format: Any = None,
) -> Tensor: ...
@overload
def to(
    input: Tensor,
    device: DeviceLike | None = None,
    dtype: DTypeLike | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    *,
    memory_format: Any = None,
) -> Tensor: ...
@overload
def to(
    input: Tensor,
    other: Tensor,
    non_blocking: bool = False,
    copy: bool = False,
    *,
    memory_format: Any = None,
) -> Tensor: ...
@function(top=False)
def to(
    input: Tensor,
    *args: Any,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    other: Tensor | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """The tensor in another dtype or on another device; itself when nothing changes.

    Called as `to(dtype)`, `to(device, dtype)` or `to(other)`; `copy=True` always copies.
    A NaN, an infinity or a number beyond 64 bits (32 for int8, int16, int32 and uint16) has no
    value in an integer dtype; it becomes the least one of 32 or 64 bits, and 0 in shorter or
    unsigned ones. Other numbers that are too large wrap around.

    >>> import undertow as ut
    >>> ut.tensor([1.7, -1.7]).to(ut.int64)
    tensor([ 1, -1])
    """
    if args:
        first, rest = args[0], args[1:]
        if isinstance(first, Tensor):
            other = first
        elif first is None or isinstance(first, (str, Device)):
            device = first
            if rest and not isinstance(rest[0], bool):
                dtype, rest = rest[0], rest[1:]
        else:
            dtype = first
        if len(rest) > 2 or not all(isinstance(r, bool) for r in rest):
            raise DTypeError(
                f"[to] takes at most non_blocking and copy after {first!r}, got {rest}"
            )
        if len(rest) == 2:
            copy = rest[1]
    if other is not None:
        dtype, device = other.dtype, other.device
    return _to(input, None if dtype is None else dtypes.as_dtype(dtype), device, copy)


def _caster(name: str, dtype: DType, given: str, printed: str) -> Callable[..., Tensor]:
    def method(self: Tensor, memory_format: Any = None) -> Tensor:
        return cast(self, dtype)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"""`to(ut.{dtype.name})`.

    >>> import undertow as ut
    >>> ut.tensor({given}).{name}()
    {printed}
    """
    return method


# Each with numbers that show what becomes of them.
for _name, (_dtype, _given, _printed) in {
    "float": (dtypes.float32, "[1, 2]", "tensor([1., 2.])"),
    "double": (dtypes.float64, "[1, 2]", "tensor([1., 2.], dtype=undertow.float64)"),
    "half": (dtypes.float16, "[1.0, 7e4]", "tensor([1., inf], dtype=undertow.float16)"),
    "bfloat16": (
        dtypes.bfloat16,
        "[1.0, 1.005]",
        "tensor([1.0000, 1.0078], dtype=undertow.bfloat16)",
    ),
    "int": (dtypes.int32, "[1.75, -1.75]", "tensor([ 1, -1], dtype=undertow.int32)"),
    "long": (dtypes.int64, "[1.75, -1.75]", "tensor([ 1, -1])"),
    "short": (dtypes.int16, "[1.75, -1.75]", "tensor([ 1, -1], dtype=undertow.int16)"),
    "char": (dtypes.int8, "[127, 128]", "tensor([ 127, -128], dtype=undertow.int8)"),
    "byte": (dtypes.uint8, "[255, 256]", "tensor([255,   0], dtype=undertow.uint8)"),
    "bool": (dtypes.bool, "[0.0, 0.5, 2.0]", "tensor([False,  True,  True])"),
    "cfloat": (dtypes.complex64, "[1.0, 2.0]", "tensor([1.+0.j, 2.+0.j])"),
    "cdouble": (
        dtypes.complex128,
        "[1.0, 2.0]",
        "tensor([1.+0.j, 2.+0.j], dtype=undertow.complex128)",
    ),
    "chalf": (
        dtypes.complex32,
        "[1.0, 2.0]",
        "Traceback (most recent call last):\n    undertow.errors.UnsupportedError: ...",
    ),
}.items():
    attach(_name, guarded(_caster(_name, _dtype, _given, _printed), _name))


@overload
def type_(input: Tensor) -> str: ...
@overload
def type_(input: Tensor, dtype: DTypeLike, non_blocking: bool = False) -> Tensor: ...
@function(top=False, name="type")
def type_(input: Tensor, dtype: DTypeLike | None = None, non_blocking: bool = False) -> Any:
    """The name of the tensor's type in torch's old manner, or the tensor in another dtype.

    >>> import undertow as ut
    >>> ut.tensor([1, 2]).type(), ut.tensor([1, 2]).type(ut.float32)
    ('undertow.LongTensor', tensor([1., 2.]))
    """
    if dtype is None:
        return f"undertow.{TYPE_NAMES[input.dtype]}Tensor"
    if dtype is Tensor:  # torch's name of the type that has the default dtype
        return cast(input, dtypes.get_default_dtype())
    return cast(input, typed_dtype(dtype) or dtypes.as_dtype(dtype))


@function(top=False)
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype and on the device of `other`.

    >>> import undertow as ut
    >>> ut.tensor([1, 2]).type_as(ut.tensor(0.5))
    tensor([1., 2.])
    """
    return _to(input, other.dtype, other.device, False)


@function(top=False)
def cpu(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor in the CPU's memory; itself when it is there.

    >>> import undertow as ut
    >>> ut.tensor([1.0]).to("reference").cpu()
    tensor([1.])
    """
    return transfer(input, "cpu")


@function()
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conjugation is never lazy here.

    >>> import undertow as ut
    >>> x = ut.tensor([1.0])
    >>> x.resolve_conj() is x
    True
    """
    return input


@function()
def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: negation is never lazy here.

    >>> import undertow as ut
    >>> x = ut.tensor([1.0])
    >>> x.resolve_neg() is x
    True
    """
    return input


# To Python and NumPy ------------------------------------------------------------------------
@function(top=False)
def item(input: Tensor) -> int | float:
    """The one element as a Python number (a complex one too, which its type leaves out).

    >>> import undertow as ut
    >>> ut.tensor([2.5]).item()
    2.5
    """
    if READERS:
        tell(input)
    array = input._array
    if array.size != 1:
        raise ArgumentError(
            f"[item] a tensor of shape {input.shape} has {array.size} elements, not one; "
            "use tolist() or index it first"
        )
    value = backend_of(array).to_host(array).item()
    return value if array.dtype.kind in "biuc" else float(value)


@function(top=False)
def tolist(input: Tensor) -> Any:
    """The elements as nested lists of Python numbers; a number for a zero-dimensional tensor.

    >>> import undertow as ut
    >>> ut.tensor([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    if READERS:
        tell(input)
    host = backend_of(input._array).to_host(input._array)
    foreign = host.dtype.kind == "V" or input.dtype in dtypes.FLOAT8  # no dtypes of NumPy's own
    return (host.astype(dtypes.float32.numpy) if foreign else host).tolist()


@function(top=False)
def numpy(input: Tensor, *, force: bool = False) -> NDArray[Any]:
    """The elements as a NumPy array that shares the tensor's memory.

    Writing to the array changes the tensor and everything that shares its memory, without raising
    the version counter by which autograd detects changes of saved values: as in torch.
    `force=True` means `detach().cpu().numpy()`, which copies from other devices.

    >>> import undertow as ut
    >>> x = ut.zeros(2)
    >>> x.numpy()[0] = 7
    >>> x
    tensor([7., 0.])
    """
    if not force:
        return protocol.host_array("numpy", input)
    return backend_of(input._array).to_host(input._array).view()


# Changing in place --------------------------------------------------------------------------
def copy_(self: Tensor, src: Tensor | Number, non_blocking: bool = False) -> Tensor:
    """Copy the elements of `src`, broadcast, cast and moved to this device, into this tensor.

    A number is copied to every element.

    >>> import undertow as ut
    >>> ut.zeros(2, dtype=ut.int64).copy_(ut.tensor([1.5, 2.5]))
    tensor([1, 2])
    """
    if not isinstance(src, Tensor):
        if isinstance(src, OtherKind):
            raise UnsupportedError(
                f"[copy_] a dense tensor does not take the elements of a {type(src).__name__}; "
                "use src.to_dense(), or src.to_padded_tensor(padding) of a nested one"
            )
        number = protocol.plain_number(src)
        if not isinstance(number, (bool, int, float, complex)):
            raise DTypeError(
                f"[copy_] src must be a Tensor or a number, got {type(src).__name__}; "
                "use ut.as_tensor(src)"
            )
        return fill_(self, number)
    return overwrite("copy_", self, transfer(src, self.device))


def fill_(self: Tensor, value: Tensor | Number) -> Tensor:
    """Set every element to `value`, a number or a zero-dimensional tensor.

    >>> import undertow as ut
    >>> ut.zeros(3).fill_(2.5)
    tensor([2.5000, 2.5000, 2.5000])
    """
    if not isinstance(value, Tensor):
        number = dtypes.fit("fill_", protocol.plain_number(value), self.dtype)
        value = wrap(backend_of(self._array).full((), number, self._array.dtype))
    elif value.ndim:
        raise ShapeError(
            f"[fill_] expects a number or a zero-dimensional tensor, got shape {value.shape}; "
            "use copy_ for several values"
        )
    return overwrite("fill_", self, transfer(value, self.device))


def zero_(self: Tensor) -> Tensor:
    """Set every element to zero.

    >>> import undertow as ut
    >>> ut.ones(3).zero_()
    tensor([0., 0., 0.])
    """
    return fill_(self, 0)


for _method in (copy_, fill_, zero_):
    attach(_method.__name__, _method)


# Questions about tensors --------------------------------------------------------------------
@function(method=False)
def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a Tensor.

    >>> import undertow as ut
    >>> ut.is_tensor(ut.ones(2)), ut.is_tensor([1.0])
    (True, False)
    """
    return isinstance(obj, Tensor)


@function(method=False)
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype of `input` is a floating one.

    >>> import undertow as ut
    >>> ut.is_floating_point(ut.tensor([1]))
    False
    """
    return input.is_floating_point()


@function(method=False)
def is_complex(input: Tensor) -> bool:
    """Whether the dtype of `input` is a complex one.

    >>> import undertow as ut
    >>> ut.is_complex(ut.tensor([1j]))
    True
    """
    return input.is_complex()


@function(method=False)
def is_inference(input: Tensor) -> bool:
    """Whether `input` was made in `inference_mode`.

    >>> import undertow as ut
    >>> with ut.inference_mode():
    ...     x = ut.ones(2)
    >>> ut.is_inference(x), ut.is_inference(x.clone())
    (True, False)
    """
    return input.is_inference()


@function(method=False)
def is_nonzero(input: Tensor) -> bool:
    """Whether the one element of `input` is not zero.

    >>> import undertow as ut
    >>> ut.is_nonzero(ut.tensor([0.0]))
    False
    """
    return bool(input)


@function(method=False)
def numel(input: Tensor) -> int:
    """The number of elements of `input`.

    >>> import undertow as ut
    >>> ut.numel(ut.ones(2, 3))
    6
    """
    return input.numel()


@function(method=False)
def result_type(*operands: Tensor | Number) -> DType:
    """The dtype that arithmetic between these tensors and numbers gives, by torch's rules.

    >>> import undertow as ut
    >>> ut.result_type(ut.tensor([1, 2]), 1.0), ut.result_type(ut.tensor([1.0]), ut.tensor(1))
    (undertow.float32, undertow.float32)
    """
    return dtypes.result_type(
        *(
            (o.dtype, 2 if o.ndim else 1)
            if isinstance(o, Tensor)
            else (dtypes.of_scalar(protocol.plain_number(o)), 0)
            for o in operands
        )
    )
