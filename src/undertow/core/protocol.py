"""Python's and NumPy's protocols, as Tensor speaks them: numbers, sequences, copies, arrays."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from importlib import import_module
from typing import Any

import numpy as np

from ..backends.dual import primal_of
from ..backends.registry import backend_of, backend_on
from ..backends.wrapped import WRAPPERS
from ..errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    ExchangeError,
    ExchangeGradientError,
    GradientError,
    UnsupportedError,
)
from .exchange import capsule_of
from .foreign import number_of
from .modes import current
from .node import AccumulateGrad
from .notebook import as_html
from .overriding import DisableTorchFunctionSubclass, overrides, overrides_dispatch
from .printing import describe
from .reading import READERS, tell
from .register import FUNCTIONS, attach
from .tensor import Tensor, beside, node_of, share, wrap, wrap_shared


def plain_number(value: Any) -> Any:
    """A NumPy scalar or one-element tensor as a Python number; anything else as it is."""
    if isinstance(value, np.generic):
        return number_of(value)
    return value.item() if isinstance(value, Tensor) else value


def host_array(op: str, t: Tensor) -> Any:
    """The tensor as a NumPy array that shares its memory, or an error that says what to do."""
    if READERS:
        tell(t)
    if current().grad and node_of(t) is not None:
        raise GradientError(
            f"[{op}] this tensor requires gradients, which NumPy would lose; "
            "use tensor.detach().numpy(), or no_grad()"
        )
    if t.device.type != "cpu":
        raise DeviceError(
            f"[{op}] this tensor is on device {str(t.device)!r}, whose memory NumPy cannot share; "
            "use tensor.cpu().numpy()"
        )
    return primal_of(t._array).view()


# Python: numbers and sequences ---------------------------------------------------------------
def _repr(self: Tensor, **contents: Any) -> str:
    """`tensor_contents` stands for the elements, if it is given: a class may know better."""
    kind = type(self)
    own = overrides(kind) or overrides_dispatch(kind)  # Parameter does not
    return describe(
        self, f"{kind.__name__}(" if own else "tensor(", contents.get("tensor_contents")
    )


def _repr_html(self: Tensor) -> str:
    shape = " × ".join(map(str, self.shape)) or "one element"
    caption = f"{type(self).__name__}, {shape}, {self.dtype.name}, {self.device}"
    return as_html(caption + ", wants a gradient" * self.requires_grad, repr(self))


def _format(self: Tensor, spec: str) -> str:
    if self.ndim or self.device.type == "meta":
        return object.__format__(self, spec)
    return format(self.item(), spec)


def _len(self: Tensor) -> int:
    if not self._array.shape:
        raise DTypeError("[len] a zero-dimensional tensor has no length")
    return int(self._array.shape[0])


def _iter(self: Tensor) -> Iterator[Tensor]:
    if not self._array.shape:
        raise DTypeError("[iter] a zero-dimensional tensor has nothing to iterate over; use item()")
    return iter(self.unbind(0))


def _reversed(self: Tensor) -> Tensor:
    return self.flip(0) if self.ndim else self


def _contains(self: Tensor, element: Any) -> bool:
    if not isinstance(element, (Tensor, bool, int, float, complex, np.number, np.bool_)):
        raise DTypeError(f"[in] looks for a number or a tensor, got {type(element).__name__}")
    return bool(self.eq(element).any())


def _bool(self: Tensor) -> bool:
    if self._array.size != 1:
        raise ArgumentError(
            f"[bool] a tensor of shape {self.shape} with {self.numel()} elements is neither true "
            "nor false; use .any() or .all()"
        )
    return bool(self.item())


def _float(self: Tensor) -> float:
    value = self.item()
    return float(value if not isinstance(value, complex) else _real("float", value))


def _int(self: Tensor) -> int:
    value = self.item()
    return int(value if not isinstance(value, complex) else _real("int", value))


def _real(op: str, value: complex) -> float:
    if value.imag:
        raise DTypeError(f"[{op}] {value} has an imaginary part; use .real or .abs() first")
    return value.real


def _complex(self: Tensor) -> complex:
    return complex(self.item())


def _index(self: Tensor) -> int:
    if self.dtype.category > 1 or self._array.size != 1:
        raise DTypeError(
            f"[index] only an integer tensor of one element is an index, this one is {self.dtype} "
            f"of shape {self.shape}"
        )
    return int(self.item())


# Python: copies and pickles ------------------------------------------------------------------
def _rebuild(host: Any, device: str, requires_grad: bool) -> Tensor:
    """A tensor from what `__reduce_ex__` stored."""
    return wrap(backend_on(device).from_host(host)).requires_grad_(requires_grad)


def _rebuild_meta(
    shape: Any, strides: Any, dtype: Any, requires_grad: bool, wrapper: Any = None
) -> Tensor:
    """A tensor without elements: of the device "meta", or of a class that holds others."""
    if wrapper is not None:
        found: Tensor = Tensor._make_wrapper_subclass(
            wrapper, shape, strides, dtype=dtype, requires_grad=requires_grad
        )
        return found
    more = {"dtype": dtype, "device": "meta"}
    made: Tensor = FUNCTIONS["empty_strided"]([*shape], [*strides], **more)
    return made.requires_grad_(requires_grad)


def _rebuild_as(kind: type[Tensor], rebuild: Any, plain: tuple[Any, ...], state: Any) -> Any:
    """An instance of a subclass, or a tensor with attributes, from what `__reduce_ex__` stored."""
    made: Any = rebuild(*plain)
    if type(made) is not kind:
        with DisableTorchFunctionSubclass():
            made = made.detach().as_subclass(kind).requires_grad_(made.requires_grad)
    if hasattr(kind, "__setstate__"):
        made.__setstate__(state)
    else:
        _set_state(made, state)
    return made


def _state(t: Tensor) -> tuple[dict[str, Any], dict[str, Any]]:
    """The attributes of a user's on a tensor: in its `__dict__`, and in slots of its class."""
    import copyreg

    slots = {
        name: getattr(t, name)
        for name in copyreg._slotnames(type(t))  # type: ignore[attr-defined]
        if name not in Tensor.__slots__ and hasattr(t, name)
    }
    return vars(t), slots


def _set_state(t: Tensor, state: Any) -> None:
    attributes, slots = state if isinstance(state, tuple) else (state, {})
    vars(t).update(attributes or {})
    for name, value in (slots or {}).items():
        setattr(t, name, value)


def _reduce_ex(self: Tensor, protocol: Any) -> tuple[Any, ...]:
    """Elements, device and `requires_grad`; a pickle has no history, so it makes a leaf."""
    k = backend_of(self._array)
    plain: tuple[Any, ...]
    if k.device.type == "meta":
        rebuild: Any = _rebuild_meta
        plain = tuple(self.shape), self.stride(), self.dtype, self.requires_grad
        if k is WRAPPERS:
            plain += (type(self),)
    else:
        rebuild = _rebuild
        plain = k.to_host(self._array), str(self.device), self.requires_grad
    if type(self) is Tensor and not vars(self):
        return rebuild, plain
    own: Any = getattr(type(self), "__getstate__", None)
    default = getattr(object, "__getstate__", None)  # from Python 3.11 on
    state = _state(self) if own is default else own(self)
    return _rebuild_as, (type(self), rebuild, plain, state)


def _copy(self: Tensor) -> Tensor:
    """The same memory: a leaf of its own, or the same output of the same node."""
    node = node_of(self)
    if node is None or isinstance(node, AccumulateGrad):
        made = wrap_shared(self._array, share(self), type(self))
        if node is not None:
            Tensor.requires_grad.fset(made, True)  # type: ignore[attr-defined]
    else:
        made = beside(self._attached(node, self._index), self)
        if type(self) is not Tensor:
            made = made.as_subclass(type(self))
    _set_state(made, _state(self))
    return made


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise GradientError(
            "[deepcopy] only leaves can be copied deeply, this tensor was made by "
            f"{self.grad_fn.name()}; use detach() or clone()"  # type: ignore[union-attr]
        )
    out = wrap(backend_of(self._array).copy(self._array))
    if type(self) is not Tensor:
        out = wrap_shared(out._array, share(out), type(self))
    if self.requires_grad:
        Tensor.requires_grad.fset(out, True)  # type: ignore[attr-defined]
    memo[id(self)] = out
    if self._grad is not None:
        out._grad = _deepcopy(self._grad, memo)
    if type(self) is not Tensor or vars(self):
        _set_state(out, deepcopy(_state(self), memo))
    return out


# NumPy ---------------------------------------------------------------------------------------
def _array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """`np.asarray(tensor)` shares memory, `np.array(tensor)` copies."""
    host = host_array("__array__", self)
    if dtype is not None and np.dtype(dtype) != host.dtype:
        if copy is False:
            raise ArgumentError(f"[__array__] {self.dtype} becomes {dtype} only by copying")
        return host.astype(dtype)
    return host.copy() if copy else host


# NumPy's names for ufuncs that Undertow (with torch) calls otherwise.
_UFUNC_NAMES = {
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "power": "pow",
    "negative": "neg",
    "absolute": "abs",
    "fabs": "abs",
    "mod": "remainder",
    "rint": "round",
    "invert": "bitwise_not",
    "left_shift": "bitwise_left_shift",
    "conjugate": "conj",
    "right_shift": "bitwise_right_shift",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "equal": "eq",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "degrees": "rad2deg",
    "radians": "deg2rad",
}


def _array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """`ndarray * tensor` and `np.exp(tensor)` are the tensor's own operations.

    With `out=` an array (`array += tensor`) NumPy computes, on the tensors' elements.
    """
    out = kwargs.get("out")
    if out is not None and not any(isinstance(o, Tensor) for o in out):
        arrays = [host_array(ufunc.__name__, i) if isinstance(i, Tensor) else i for i in inputs]
        return getattr(ufunc, method)(*arrays, **kwargs)
    if method != "__call__" or kwargs:
        way = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
        given = f" with {', '.join(kwargs)}" if kwargs else ""
        raise UnsupportedError(
            f"[{ufunc.__name__}] {way}{given} does not work on tensors; "
            "use Undertow's own functions, or tensor.numpy()"
        )
    own = FUNCTIONS.get(_UFUNC_NAMES.get(ufunc.__name__, ufunc.__name__))
    if own is None:
        raise UnsupportedError(
            f"[{ufunc.__name__}] np.{ufunc.__name__} has no Undertow counterpart; "
            "use np functions on tensor.numpy()"
        )
    return own(*(i if isinstance(i, Tensor) else _as_operand(ufunc.__name__, i) for i in inputs))


def _as_operand(op: str, value: Any) -> Any:
    """An operand that NumPy met beside a tensor: arrays become tensors on the CPU."""
    if isinstance(value, (np.ndarray, np.generic)):
        from .dispatch import operand

        return operand(op, value)
    return value


# DLPack --------------------------------------------------------------------------------------
def _dlpack(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: Any = None,
    dl_device: Any = None,
    copy: bool | None = None,
) -> Any:
    if node_of(self) is not None:  # also under no_grad(), as in torch
        raise ExchangeGradientError(
            "[__dlpack__] this tensor requires gradients, which an exchange would lose; "
            "export tensor.detach()"
        )
    host = host_array("__dlpack__", self)
    if not copy and any(n > 1 and s < 0 for n, s in zip(host.shape, host.strides, strict=True)):
        # Such a view comes from NumPy; torch aborts the process that imports it.
        raise ExchangeError(
            f"[__dlpack__] a tensor of shape {self.shape} with negative strides {self.stride()} "
            "cannot be exchanged; use .contiguous() first"
        )
    if stream is not None:
        kind = ArgumentError if isinstance(stream, int) else DTypeError
        raise kind(f"[__dlpack__] a CPU tensor has no stream, got stream={stream!r}")
    return capsule_of(host, self.dtype, max_version=max_version, dl_device=dl_device, copy=copy)


def _dlpack_device(self: Tensor) -> tuple[int, int]:
    return host_array("__dlpack_device__", self.detach()).__dlpack_device__()


# The array API standard -----------------------------------------------------------------------
def _array_namespace(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """The functions of the standard; a room above this one, loaded when somebody asks for it."""
    namespace = import_module("undertow.array_api")
    if api_version not in (None, *namespace.VERSIONS):
        raise ArgumentError(
            f"[__array_namespace__] {api_version!r} is not among the versions of the standard that "
            f"there are: {', '.join(namespace.VERSIONS)}"
        )
    return namespace


def _to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor on a device, itself if it is there: `to(device)`, in the standard's words.

    >>> import undertow as ut
    >>> ut.ones(2).to_device("reference")
    tensor([1., 1.], device='reference')
    """
    if stream is not None:
        raise ArgumentError(f"[to_device] {self.device} has no streams, got stream={stream!r}")
    return self.to(device)


for _name, _method in {
    "__repr__": _repr,
    "_repr_html_": _repr_html,
    "__format__": _format,
    "__len__": _len,
    "__iter__": _iter,
    "__reversed__": _reversed,
    "__contains__": _contains,
    "__bool__": _bool,
    "__float__": _float,
    "__int__": _int,
    "__complex__": _complex,
    "__index__": _index,
    "__reduce_ex__": _reduce_ex,
    "__copy__": _copy,
    "__deepcopy__": _deepcopy,
    "__array__": _array,
    "__array_ufunc__": _array_ufunc,
    "__dlpack__": _dlpack,
    "__dlpack_device__": _dlpack_device,
    "__array_namespace__": _array_namespace,
    "to_device": _to_device,
}.items():
    attach(_name, _method)
