"""`__torch_dispatch__`: classes and modes that answer operators, which they know by aten's names.

Note [dispatching]
In torch this is asked below autograd, for the operators that a function is made of. Here it is
asked where `__torch_function__` is, after that one and in the same way (Note [overriding]): for the
public function, under the name of the operator that it is in torch (`ops.aten.add.Tensor`). So
functions that torch composes of others (`linear`) come whole, and gradients are those of what the
answer was computed with. Indexing comes as the operators that it means: `select`, `slice`, `index`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from typing import Any

from .. import dtypes
from ..backends.wrapped import WrapperArray
from ..devices import Device
from ..dtypes import DType, as_dtype
from ..errors import UnsupportedError
from .modes import current
from .overriding import ABOUT, ASKING, answer, is_covered, overriders, overrides_dispatch
from .register import FUNCTIONAL, FUNCTIONS, SPACES
from .tensor import Tensor, node_of, share

_SIZES = frozenset(("expand", "flip", "permute", "repeat", "reshape", "tile", "view", "new_empty"))
_SIZES |= {"new_zeros", "new_ones", "sum_to_size"}
_TENSOR = frozenset(
    ("add", "sub", "mul", "div", "true_divide", "copysign", "slice", "split", "index")
)
_BESIDE = frozenset(
    "eq ne lt le gt ge remainder fmod rsub bitwise_and bitwise_or bitwise_xor".split()  # noqa: SIM905
)
_OPERATORS = {  # those that are no methods to who is asked; see `core/overriding`
    "__and__": "bitwise_and",
    "__eq__": "eq",
    "__floordiv__": "floor_divide",
    "__invert__": "bitwise_not",
    "__or__": "bitwise_or",
    "__rsub__": "rsub",
    "__xor__": "bitwise_xor",
}
_FIXED = {
    "flatten": "using_ints",
    "select": "int",
    "softmax": "int",
    "log_softmax": "int",
    "std": "correction",
    "transpose": "int",
    "unbind": "int",
    "unflatten": "int",
    "var": "correction",
    "where": "self",
}
_PRODUCTS: dict[tuple[int, ...], str] = {(1, 1): "dot", (2, 1): "mv", (2, 2): "mm"}
_OVER_DIM = {"sum": "dim_IntList", "mean": "dim", "prod": "dim_int", "squeeze": "dim"}
_OVER_DIM |= dict.fromkeys(("all", "any", "max", "min", "median", "mode", "unique"), "dim")


def overload_of(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The name of torch's overload that takes these arguments."""
    base = name.rstrip("_") if not name.endswith("__") else name
    if base in _TENSOR:
        return "Tensor"
    if base in _FIXED:
        return _FIXED[base]
    other = args[1] if len(args) > 1 else kwargs.get("other", kwargs.get("exponent"))
    if base in _BESIDE:
        return "Tensor" if isinstance(other, Tensor) else "Scalar"
    if base == "pow":
        first = "Tensor" if isinstance(args[0], Tensor) else "Scalar"
        second = "Tensor" if isinstance(other, Tensor) else "Scalar"
        return "Scalar" if first == "Scalar" else f"{first}_{second}"
    if base in _OVER_DIM:
        if base in ("max", "min") and isinstance(other, Tensor):
            return "other"
        return _OVER_DIM[base] if other is not None or "dim" in kwargs else "default"
    if base == "sort":
        return "stable" if "stable" in kwargs else "default"
    return "default"


def product_of(args: Iterable[Any]) -> str:
    """The operator for a product of tensors of these ranks."""
    return _PRODUCTS.get(tuple(x.dim() if isinstance(x, Tensor) else 0 for x in args), "matmul")


def operator(name: str, overload: str = "default") -> Any:
    """`ops.aten.<name>.<overload>`; a room above this one has it, loaded when somebody asks."""
    packet = getattr(import_module("undertow.compat._ops").namespace("aten"), name)
    return getattr(packet, overload)


# Functions that become others -----------------------------------------------------------------
_CASTS = {
    "bfloat16": dtypes.bfloat16,
    "bool": dtypes.bool,
    "byte": dtypes.uint8,
    "cdouble": dtypes.complex128,
    "cfloat": dtypes.complex64,
    "char": dtypes.int8,
    "double": dtypes.float64,
    "float": dtypes.float32,
    "half": dtypes.float16,
    "int": dtypes.int32,
    "long": dtypes.int64,
    "short": dtypes.int16,
}


def _to(x: Any, *args: Any, **kwargs: Any) -> Any:
    """`x.to(…)`: itself where nothing changes, else `_to_copy`."""
    dtype, device = kwargs.pop("dtype", None), kwargs.pop("device", None)
    copy = kwargs.pop("copy", False)
    for arg in args:
        if isinstance(arg, Tensor):
            dtype, device = arg.dtype, arg.device
        elif isinstance(arg, (DType, type)):
            dtype = arg
        elif arg is not None and not isinstance(arg, bool):
            device = arg
    wanted: dict[str, Any] = {}
    if dtype is not None and as_dtype(dtype) is not x.dtype:
        wanted["dtype"] = as_dtype(dtype)
    if device is not None and Device(device) != x.device:
        wanted["device"] = device
    if not wanted and not copy:
        return x
    return operator("_to_copy")(x, **wanted)


def _index(x: Any, index: Any) -> Any:
    """`x[index]` by `select`, `slice`, `unsqueeze` and `index`."""
    found, tensors = _viewed(x, index)
    return operator("index", "Tensor")(found, tensors) if tensors else found


def _viewed(x: Any, index: Any) -> tuple[Any, list[Any]]:
    """The view that an index begins with, and the tensors that are left of it."""
    parts = [*index] if isinstance(index, tuple) else [index]
    parts = [FUNCTIONS["tensor"](p) if isinstance(p, (list, range)) else p for p in parts]
    taken = sum(
        (p.ndim if isinstance(p, Tensor) and p.dtype.category == 0 else 1)
        for p in parts
        if p is not None and p is not ... and not isinstance(p, bool)
    )
    at = next((i for i, p in enumerate(parts) if p is ...), None)
    whole = [slice(None)] * (x.dim() - taken)
    if at is not None:
        parts[at : at + 1] = whole
    dim = 0
    tensors: list[Any] = []  # None for a dimension that stays; a mask has several
    for part in parts:
        if part is None or isinstance(part, bool):
            x = operator("unsqueeze")(x, dim)
            tensors.append(None if part is None else FUNCTIONS["tensor"]([part]))
            dim += 1
        elif isinstance(part, slice):
            if part != slice(None):
                start, stop, step = part.indices(x.size(dim))
                x = operator("slice", "Tensor")(x, dim, start, stop, step)
            tensors.append(None)
            dim += 1
        elif isinstance(part, Tensor) and (part.dim() or part.dtype.category == 0):
            tensors.append(part)
            dim += part.ndim if part.dtype.category == 0 else 1
        else:
            x = operator("select", "int")(x, dim, int(part))
    while tensors and tensors[-1] is None:
        tensors.pop()
    return x, tensors


def _assign(x: Any, index: Any, value: Any) -> None:
    found, tensors = _viewed(x, index)
    if not isinstance(value, Tensor):
        value = FUNCTIONS["tensor"](value, dtype=x.dtype)
    if tensors:
        operator("index_put_")(found, tensors, value)
    else:
        operator("copy_")(found, value)


def _transposed(x: Any) -> Any:
    return operator("t")(x) if x.dim() <= 2 else operator("permute")(x, [*range(x.dim())][::-1])


_BECOME: dict[str, Callable[..., Any]] = {
    "to": _to,
    "type_as": lambda x, other: _to(x, other.dtype),
    "cpu": lambda x, **kwargs: _to(x, "cpu"),
    "__rfloordiv__": lambda x, other: FUNCTIONS["floor_divide"](other, x),
    "__rmatmul__": lambda x, other: FUNCTIONS["matmul"](other, x),
    "__rmod__": lambda x, other: FUNCTIONS["remainder"](other, x),
    "__rpow__": lambda x, other: FUNCTIONS["pow"](other, x),
    "__rtruediv__": lambda x, other: x.reciprocal() * other,
    "__getitem__": _index,
    "__setitem__": _assign,
    "item": lambda x: operator("_local_scalar_dense")(x),
    "__bool__": lambda x: bool(x.item()),
    "__float__": lambda x: float(x.item()),
    "__int__": lambda x: int(x.item()),
    "__index__": lambda x: int(x.item()),
    "contiguous": lambda x, **kwargs: x if x.is_contiguous() else operator("clone")(x, **kwargs),
    "T": _transposed,
    "mT": lambda x: operator("transpose", "int")(x, -2, -1),
    "data": lambda x: operator("detach")(x),
    "pin_memory": lambda x, device=None: operator("_pin_memory")(x),
    **{n: (lambda x, dtype=d, **kwargs: _to(x, dtype)) for n, d in _CASTS.items()},
}


# Wrappers with a history, see Note [history of wrappers] in core/wrapping ---------------------
_UNASKED = frozenset(
    (
        "detach",
        "data",
        "item",
        "_local_scalar_dense",
        "__bool__",
        "__float__",
        "__int__",
        "__index__",
    )
)


def is_wrapper(t: Any) -> bool:
    """Whether a tensor has a wrapper in the place of memory."""
    return isinstance(t, Tensor) and t._array.__class__ is WrapperArray


def is_recorded(name: str, values: Any) -> bool:
    """Whether a call of a function is to be recorded: of a wrapper, and of what has a history."""
    if not current().grad or not _any(is_wrapper, values) or not _any(_has_history, values):
        return False
    if name in _UNASKED or name.startswith("new_") or name.endswith("_like"):
        return False  # without a history, as a whole
    if _is_in_place(name):
        if not is_wrapper(values[0]) and not _any(
            lambda v: is_wrapper(v) and _has_history(v), values
        ):
            return False  # what is changed is plain, and has its own history
        raise UnsupportedError(
            f"[{name}] changes a wrapper in place that has a history, or by one that has; use the "
            "function that gives a new tensor, or no_grad()"
        )
    return True


_IN_PLACE = {"__setitem__"} | {
    f"__i{name}__"
    for name in "add sub mul truediv floordiv mod pow and or xor lshift rshift".split()  # noqa: SIM905
}


def _is_in_place(name: str) -> bool:
    return (name.endswith("_") and not name.endswith("__")) or name in _IN_PLACE


def _changed(name: str, args: tuple[Any, ...]) -> None:
    """Let those who saved a wrapper know that its class changes it in place."""
    if args and is_wrapper(args[0]) and _is_in_place(name):
        share(args[0]).version.value += 1


def _has_history(t: Any) -> bool:
    return isinstance(t, Tensor) and node_of(t) is not None


def _any(told: Callable[[Any], bool], values: Any) -> bool:
    return any(_any(told, v) if isinstance(v, (list, tuple)) else told(v) for v in values)


# Asking ---------------------------------------------------------------------------------------
def dispatchers(values: Iterable[Any]) -> list[Any]:
    """One of each class that has a `__torch_dispatch__`, also from lists of arguments."""
    return overriders(values, _dispatches)


def _dispatches(kind: type) -> bool:
    return issubclass(kind, Tensor) and overrides_dispatch(kind)


def dispatched(public: Any, original: Any, args: Any, kwargs: Any) -> Any:
    """What a function gives where somebody may have a `__torch_dispatch__`."""
    state = current()
    if not state.dispatches:
        return original(*args, **kwargs)
    found = dispatchers((*args, *kwargs.values()))
    if not found and not state.dispatch_modes:
        return original(*args, **kwargs)
    getter: Any = getattr(public, "__self__", None)
    asked: Any = getter.fget if isinstance(getter, property) else public
    name: str = asked.__name__
    called = name
    name = _OPERATORS.get(name, name)
    if getter is not None and found and "_device" in vars(found[0]):
        device = vars(found[0])["_device"]
        if name == "device":
            return device
        if name in ("is_cpu", "is_cuda", "is_meta", "is_mps", "is_xpu"):
            return name == f"is_{device.type}"
    sets = public.__name__ in ("__set__", "__delete__")
    if name in ABOUT or sets or (getter is not None and name not in _BECOME):
        return original(*args, **kwargs)
    if found and is_recorded(called, (*args, *kwargs.values())):
        return original(*args, **kwargs)
    if name in _BECOME:
        becomes = original if name == "__setitem__" and not found else _BECOME[name]
        _changed(called, args)
        return becomes(*args, **kwargs)
    if kwargs.get("out", args) is None:
        del kwargs["out"]
    if name in _SIZES and len(args) > 1:
        first = args[1] if isinstance(args[1], (list, tuple)) else args[1:]
        args = (args[0], [*first])
    if (
        public.__module__.startswith("undertow.")
        and public in SPACES.get(public.__module__.partition(".")[2], {}).values()
    ):
        name = f"{public.__module__.partition('.')[2]}_{name}"
    if name == "matmul" and found:
        name = product_of(args)
    try:
        name, args, kwargs = _as_operator(name, public, args, kwargs)
        func = operator(name, overload_of(name, args, kwargs))
    except AttributeError:  # no operator has that name, or takes these arguments
        return original(*args, **kwargs)
    result = answer(func, found, args, kwargs, "dispatch")
    _changed(called, args)
    return tuple(result) if type(result) is list else result


_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}  # as operators know them
_OTHER_WORDS = {"train": "training", "x": "input", "indices": "input"}  # of operators


def _as_operator(
    name: str, public: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """A call of a public function as one of its operator, which may have other words for it.

    An AttributeError tells that it has none for an argument.
    """
    call = operator(name)._call
    if call is public:
        return name, args, kwargs
    words, theirs = _words(public), _words(call)
    if FUNCTIONAL.get(name) is public or (words != theirs and {*words} == {*theirs}):
        return _by_words(name, public, call, args, kwargs)
    try:
        _signature(call).bind(*args, **kwargs)
    except TypeError as error:
        raise AttributeError(name) from error
    return name, args, kwargs


@cache
def _signature(function: Any) -> inspect.Signature:
    return inspect.signature(function)


def _words(function: Any) -> list[str]:
    return [*_signature(function).parameters]


def _by_words(
    name: str, public: Any, call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    bound = _signature(public).bind(*args, **kwargs)
    bound.apply_defaults()
    given = dict(bound.arguments)
    if given.pop("inplace", False):
        name = f"{name}_"
        if name not in FUNCTIONS and not hasattr(Tensor, name):
            raise AttributeError(name)
    if isinstance(given.get("reduction"), str):
        if given["reduction"] not in _REDUCTIONS:
            raise AttributeError("reduction")
        given["reduction"] = _REDUCTIONS[given["reduction"]]
    front: list[Any] = []
    named: dict[str, Any] = {}
    kept = 0  # up to the last one that is not the operator's default
    for word, parameter in _signature(call).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        source = word if word in given else _OTHER_WORDS.get(word, word)
        value = given.pop(source, parameter.default)
        if value is parameter.empty:
            raise AttributeError(word)
        if value is None and parameter.default is not parameter.empty:
            value = parameter.default
        if parameter.kind is parameter.KEYWORD_ONLY:
            named[word] = value
        else:
            front.append(value)
            kept = kept if value is parameter.default else len(front)
    for word, value in given.items():
        if value is not _signature(public).parameters[word].default:
            raise AttributeError(word)
    return name, tuple(front[:kept]), named


# Operators that are no public functions -------------------------------------------------------
def run_operator(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of an operator itself: one that is no public function asks here, as they do."""
    if ASKING and not is_covered(func._call):
        state = current()
        found = dispatchers((*args, *kwargs.values())) if state.dispatches else []
        if found and is_recorded(func._opname, (*args, *kwargs.values())):
            return func._call(*args, **kwargs)
        if found or (state.dispatches and state.dispatch_modes):
            _changed(func._opname, args)
            return answer(func, found, args, kwargs, "dispatch")
    return func._call(*args, **kwargs)


def _refused(name: str, instead: str) -> Callable[..., Any]:
    def refused(*args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(f"[aten.{name}] has no kernel here; use {instead}")

    return refused


MORE: dict[str, Callable[..., Any]] = {
    "_sparse_addmm": _refused("_sparse_addmm", "addmm of a sparse tensor"),
    "_sparse_mm_reduce_impl": _refused("_sparse_mm_reduce_impl", "sparse.mm"),
}
