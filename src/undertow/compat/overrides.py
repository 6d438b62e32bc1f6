"""`undertow.overrides`: what answers public functions in the library's place, and which they are.

A class with a `__torch_function__` is asked when an argument is of it, a `TorchFunctionMode` while
it is entered; see Note [overriding] in `core/overriding`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType
from typing import Any

from ..core import overriding
from ..core.modes import current, enter, leave
from ..core.overriding import Mode, answer, overriders
from ..core.register import FUNCTIONAL, FUNCTIONS, SPACES
from ..core.tensor import Tensor

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
    "resolve_name",
    "wrap_torch_function",
]


_PACKAGE = __name__.partition(".")[0]
_skipped: ContextVar[bool] = ContextVar("undertow_skipped", default=False)


# Asking ---------------------------------------------------------------------------------------
def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether somebody overrides a function of these arguments: a class of theirs, or a mode.

    >>> import undertow as ut
    >>> ut.overrides.has_torch_function((ut.ones(2),))
    False
    """
    state = current()
    if state.asks >= overriding.NOBODY:
        return False
    if _skipped.get():  # of the function that `redispatch_function` called: once
        _skipped.set(False)
        return False
    if state.function_modes:
        return True
    return state.asks == overriding.EVERYBODY and any(
        overriding.overrides(type(arg)) for arg in relevant_args
    )


def has_torch_function_unary(obj: Any) -> bool:
    """Whether somebody overrides a function of one object."""
    return has_torch_function((obj,))


def has_torch_function_variadic(*args: Any) -> bool:
    """Whether somebody overrides a function of these arguments."""
    return has_torch_function(args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What those who override `public_api` answer; for functions that asked `has_torch_function`.

    >>> import undertow as ut
    >>> class Named(ut.Tensor):
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         return f"{func.__name__} of mine"
    >>> def double(x):
    ...     if ut.overrides.has_torch_function_unary(x):
    ...         return ut.overrides.handle_torch_function(double, (x,), x)
    ...     return x * 2
    >>> double(ut.ones(2).as_subclass(Named))
    'double of mine'
    """
    asked = current().asks == overriding.EVERYBODY
    return answer(public_api, overriders(relevant_args) if asked else [], args, kwargs)


def wrap_torch_function(
    dispatcher: Callable[..., Iterable[Any]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that lets a function be overridden; `dispatcher` picks the arguments to ask."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def redispatch_function(
    func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None
) -> Any:
    """What `func` gives by itself, for a `__torch_function__` that was asked for it.

    In a function of the library nobody is asked further; in one of a user's, everybody is.
    """
    if overriding.is_covered(func):
        with overriding.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))
    token = _skipped.set(True)
    try:
        return func(*args, **(kwargs or {}))
    finally:
        _skipped.reset(token)


def is_tensor_like(inp: Any) -> bool:
    """Whether an object can stand for a tensor: it is one, or has a `__torch_function__`.

    >>> import undertow as ut
    >>> ut.overrides.is_tensor_like(ut.ones(2)), ut.overrides.is_tensor_like(2)
    (True, False)
    """
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


# Modes ----------------------------------------------------------------------------------------
class TorchFunctionMode(Mode):
    """A mode that answers every public function while it is entered; to be subclassed.

    While it answers it is off, so that it can call what it was asked for.

    >>> import undertow as ut
    >>> class Count(ut.overrides.TorchFunctionMode):
    ...     calls = 0
    ...
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         self.calls += 1
    ...         return func(*args, **(kwargs or {}))
    >>> with Count() as count:
    ...     y = ut.ones(2) + 1
    >>> count.calls
    2
    """

    _field = "function_modes"

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """What it answers; a mode defines it."""
        raise NotImplementedError(f"[{type(self).__name__}] defines no __torch_function__")


class BaseTorchFunctionMode(TorchFunctionMode):
    """The mode that answers with the functions themselves."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """What `func` gives."""
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> Any:
    """The innermost mode, or None."""
    modes = current().function_modes
    return modes[-1] if modes else None


def _get_current_function_mode_stack() -> list[Any]:
    """The modes that are on, outermost first."""
    return [*current().function_modes]


@contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    """Without the innermost mode, until the end of the block."""
    state = current()
    token = enter(state.but(function_modes=state.function_modes[:-1]))
    try:
        yield state.function_modes[-1]
    finally:
        leave(token)


_enable_torch_function = overriding.EnableTorchFunction


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Let a `__torch_dispatch__` compute with gradients: they are as outside anyway."""
    yield


# Which they are -------------------------------------------------------------------------------
_IGNORED_AT_TOP = """
    _assert arange as_tensor asarray bartlett_window blackman_window broadcast_shapes can_cast
    compile empty empty_permuted empty_strided enable_grad eye finfo from_numpy frombuffer full
    get_default_device get_default_dtype get_num_threads get_rng_state hamming_window hann_window
    iinfo inference_mode initial_seed is_grad_enabled is_inference_mode_enabled is_storage is_tensor
    kaiser_window linspace load logspace manual_seed no_grad normal ones promote_types rand
    rand_like randint randint_like randn randn_like randperm range result_type save scalar_tensor
    seed set_default_device set_default_dtype set_grad_enabled set_num_threads set_printoptions
    set_rng_state tensor tril_indices triu_indices typename vander vmap zeros
"""
_IGNORED_OF_TENSOR = """
    __delitem__ __dir__ __getattribute__ __init__ __iter__ __init_subclass__ __delattr__ __setattr__
    __torch_function__ __torch_dispatch__ __new__ __subclasshook__ __hash__ as_subclass new
    new_tensor new_empty new_empty_strided new_zeros new_ones new_full _make_subclass
    _make_wrapper_subclass stride unflatten to_sparse_coo to_sparse_csr to_sparse_csc
"""


def _spaces() -> dict[Any, dict[str, Any]]:
    """The public functions by what they stand in: modules, and Tensor."""
    from importlib import import_module

    library = import_module(_PACKAGE)
    found: dict[Any, dict[str, Any]] = {library: dict(FUNCTIONS)}
    found[library.nn.functional] = dict(FUNCTIONAL)
    for name in ("fft", "linalg", "special"):
        space = getattr(library, name)  # it publishes when it is loaded
        found[space] = dict(SPACES[name])
    return found


def _ignored() -> dict[int, Any]:
    from importlib import import_module

    library = import_module(_PACKAGE)
    found = [getattr(library, name, None) for name in _IGNORED_AT_TOP.split()]
    found += [getattr(Tensor, name, None) for name in _IGNORED_OF_TENSOR.split()]
    found += [has_torch_function, handle_torch_function]
    return {id(f): f for f in found if f is not None}


def get_ignored_functions() -> set[Callable[..., Any]]:
    """The public functions that are not asked about their arguments.

    >>> import undertow as ut
    >>> ut.Tensor.as_subclass in ut.overrides.get_ignored_functions()
    True
    """
    return {*_ignored().values()}


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """The getters whose results a subclass gives as they are stored."""
    return {*overriding.AS_STORED}


def _methods() -> Iterator[tuple[str, Any]]:
    """The methods of Tensor that can be overridden, and the getters of properties."""
    for name, found in vars(Tensor).items():
        if overriding.is_private(name):
            continue
        if isinstance(found, FunctionType):
            yield name, found
        elif isinstance(found, property):
            yield f"{name}.__get__", found.__get__


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions that can be overridden, by what they stand in: modules, and Tensor.

    >>> import undertow as ut
    >>> ut.add in ut.overrides.get_overridable_functions()[ut]
    True
    """
    ignored = _ignored()
    listed: dict[Any, list[Any]] = {
        space: [f for f in table.values() if id(f) not in ignored]
        for space, table in _spaces().items()
    }
    listed[Tensor] = [f for _, f in _methods() if id(f) not in ignored]
    return listed


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For every function that can be overridden one of the same signature that gives -1.

    >>> import undertow as ut
    >>> ut.overrides.get_testing_overrides()[ut.add](1, 2)
    -1
    """
    found: dict[Callable[..., Any], Callable[..., Any]] = {}
    for functions in get_overridable_functions().values():
        for function in functions:
            found[function] = _minus_one(function)
    return found


def _minus_one(function: Callable[..., Any]) -> Callable[..., Any]:
    def override(*args: Any, **kwargs: Any) -> int:
        return -1

    owner = getattr(function, "__self__", None)
    described: Any = function
    if isinstance(owner, property):
        described = owner.fget
    override.__signature__ = inspect.signature(described)  # type: ignore[attr-defined]
    return override


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function is a method or a getter of Tensor, and is no public function besides.

    >>> import undertow as ut
    >>> ut.overrides.is_tensor_method_or_property(ut.Tensor.shape.__get__)
    True
    >>> ut.overrides.is_tensor_method_or_property(ut.softmax)
    False
    """
    if getattr(func, "__name__", "") == "__get__":
        return True
    name = getattr(func, "__name__", "")
    if any(table.get(name) is func for table in (FUNCTIONS, FUNCTIONAL, *SPACES.values())):
        return False
    return isinstance(func, FunctionType) and any(func is f for f in vars(Tensor).values())


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The name by which programs know a function: "torch.add", "torch.Tensor.add_".

    >>> import undertow as ut
    >>> ut.overrides.resolve_name(ut.nn.functional.gelu)
    'torch.nn.functional.gelu'
    """
    name = getattr(f, "__name__", "")
    for space, table in _spaces().items():
        here = space.__name__.replace(__package__, "torch").replace(_PACKAGE, "torch")
        for known in (name, *table):
            if table.get(known) is f:
                return f"{here}.{known}"
    for known, method in _methods():
        if method == f:
            return f"torch.Tensor.{known}"
    return None
