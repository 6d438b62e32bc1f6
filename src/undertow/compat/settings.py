"""Settings that programs make and that change nothing here, kept so that they read back.

Products are always computed in the full precision of their dtype, every result is deterministic,
and there is one pool of threads, so these have nothing to switch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.storage import UntypedStorage
from ..core.tensor import Tensor
from ..errors import ArgumentError, DTypeError
from ..shapes import as_int

_PRECISIONS = ("highest", "high", "medium")
_DEBUG_MODES = ("default", "warn", "error")

_precision = "highest"
_deterministic = 0  # an index into _DEBUG_MODES
_warn_only = False
_interop_threads = 1
_warn_always = False


def set_float32_matmul_precision(precision: str) -> None:
    """Kept without effect: products of float32 are computed in float32, which is "highest".

    >>> import undertow as ut
    >>> ut.set_float32_matmul_precision("high")
    >>> ut.get_float32_matmul_precision()
    'high'
    >>> ut.set_float32_matmul_precision("highest")
    """
    global _precision
    if precision not in _PRECISIONS:
        raise ArgumentError(
            f"[set_float32_matmul_precision] expects one of {_PRECISIONS}, got {precision!r}"
        )
    _precision = precision


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was told.

    >>> import undertow as ut
    >>> ut.get_float32_matmul_precision()
    'highest'
    """
    return _precision


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Kept without effect: the same program gives the same bits every time anyway.

    >>> import undertow as ut
    >>> ut.use_deterministic_algorithms(True)
    >>> ut.are_deterministic_algorithms_enabled()
    True
    >>> ut.use_deterministic_algorithms(False)
    """
    global _deterministic, _warn_only
    for told in (mode, warn_only):
        if not isinstance(told, bool):
            raise DTypeError(f"[use_deterministic_algorithms] expects True or False, got {told!r}")
    _deterministic = (1 if warn_only else 2) if mode else 0
    _warn_only = warn_only


def are_deterministic_algorithms_enabled() -> bool:
    """What `use_deterministic_algorithms` was told.

    >>> import undertow as ut
    >>> ut.are_deterministic_algorithms_enabled()
    False
    """
    return _deterministic > 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether `use_deterministic_algorithms` was told to warn only.

    >>> import undertow as ut
    >>> ut.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return _warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """`use_deterministic_algorithms` as a level: "default", "warn", "error", or 0 to 2.

    >>> import undertow as ut
    >>> ut.set_deterministic_debug_mode("default")
    """
    global _deterministic, _warn_only
    level = _DEBUG_MODES.index(debug_mode) if debug_mode in _DEBUG_MODES else debug_mode
    if level not in (0, 1, 2):
        raise ArgumentError(
            f"[set_deterministic_debug_mode] expects one of {_DEBUG_MODES} or 0 to 2, got "
            f"{debug_mode!r}"
        )
    _deterministic = int(level)
    _warn_only = level == 1


def get_deterministic_debug_mode() -> int:
    """The level of `set_deterministic_debug_mode`.

    >>> import undertow as ut
    >>> ut.get_deterministic_debug_mode()
    0
    """
    return _deterministic


def set_num_interop_threads(number: int) -> None:
    """Kept without effect: `autograd.set_workers` says how many nodes of a backward run at once.

    >>> import undertow as ut
    >>> ut.set_num_interop_threads(1)
    """
    global _interop_threads
    if as_int("set_num_interop_threads", "number", number) < 1:
        raise ArgumentError(f"[set_num_interop_threads] expects a positive number, got {number}")
    _interop_threads = number


def get_num_interop_threads() -> int:
    """What `set_num_interop_threads` was told.

    >>> import undertow as ut
    >>> ut.get_num_interop_threads()
    1
    """
    return _interop_threads


def set_flush_denormal(mode: bool) -> bool:
    """False: denormal numbers are kept, whatever is asked for.

    >>> import undertow as ut
    >>> ut.set_flush_denormal(True)
    False
    """
    return False


def set_warn_always(b: bool) -> None:
    """Kept without effect: warnings are Python's, shown as its filters say.

    >>> import undertow as ut
    >>> ut.set_warn_always(False)
    """
    global _warn_always
    _warn_always = bool(b)


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` was told.

    >>> import undertow as ut
    >>> ut.is_warn_always_enabled()
    False
    """
    return _warn_always


def compiled_with_cxx11_abi() -> bool:
    """False: nothing of it is compiled C++.

    >>> import undertow as ut
    >>> ut.compiled_with_cxx11_abi()
    False
    """
    return False


def is_storage(obj: Any) -> bool:
    """Whether this is what `x.storage()` or `x.untyped_storage()` gives.

    >>> import undertow as ut
    >>> ut.is_storage(ut.ones(2)), ut.is_storage(ut.ones(2).untyped_storage())
    (False, True)
    """
    return isinstance(obj, UntypedStorage)


def _assert(condition: Any, message: str) -> None:
    """`assert`, as a function, which a trace records."""
    kind = type(condition)
    if not isinstance(condition, (bool, Tensor)) and hasattr(kind, "__torch_function__"):
        kind.__torch_function__(_assert, (kind,), (condition, message))
        return
    assert condition, message


def _check(cond: Any, message: Callable[[], str] | str | None = None) -> None:
    """`assert`, as a RuntimeError; a message may be made by a function, if it is needed."""
    if not _truth(cond):
        raise RuntimeError(_said(message))


def _check_index(cond: Any, message: Callable[[], str] | str | None = None) -> None:
    """`_check`, as an IndexError."""
    if not _truth(cond):
        raise IndexError(_said(message))


def _check_value(cond: Any, message: Callable[[], str] | str | None = None) -> None:
    """`_check`, as a ValueError."""
    if not _truth(cond):
        raise ValueError(_said(message))


def _check_type(cond: Any, message: Callable[[], str] | str | None = None) -> None:
    """`_check`, as a TypeError."""
    if not _truth(cond):
        raise TypeError(_said(message))


def _check_not_implemented(cond: Any, message: Callable[[], str] | str | None = None) -> None:
    """`_check`, as a NotImplementedError."""
    if not _truth(cond):
        raise NotImplementedError(_said(message))


def _check_with(
    error_type: type[Exception], cond: Any, message: Callable[[], str] | str | None = None
) -> None:
    """`_check`, as an error of any type."""
    if not _truth(cond):
        raise error_type(_said(message))


def _check_tensor_all(cond: Tensor, message: Callable[[], str] | str | None = None) -> None:
    """`_check` that every element of a tensor is True."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_tensor_all_with(
    error_type: type[Exception], cond: Tensor, message: Callable[[], str] | str | None = None
) -> None:
    """`_check_tensor_all`, as an error of any type."""
    if not isinstance(cond, Tensor):
        raise DTypeError(f"[_check_tensor_all] expects a tensor, got {type(cond).__name__}")
    if cond.dtype.name != "bool":
        raise DTypeError(f"[_check_tensor_all] expects booleans, got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _truth(cond: Any) -> bool:
    if not isinstance(cond, bool):
        raise DTypeError(f"[_check] expects True or False, got {type(cond).__name__}")
    return cond


def _said(message: Callable[[], str] | str | None) -> str:
    if message is None:
        return "Expected cond to be True"
    return str(message() if callable(message) else message)


def typename(obj: Any) -> str:
    """The name of an object's type, of a tensor in torch's old manner.

    >>> import undertow as ut
    >>> ut.typename(ut.ones(2)), ut.typename([1])
    ('undertow.FloatTensor', 'list')
    """
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if isinstance(obj, type) else type(obj)
    module = getattr(kind, "__module__", "").replace("undertow.compat.", "undertow.")
    name: str = getattr(kind, "__qualname__", kind.__name__)
    return name if module in ("", "builtins") else f"{module}.{name}"
