"""`__torch_function__`: classes and modes of other people's that answer the public functions.

Note [overriding]
In torch every public function first looks through its arguments for a class that overrides it. Here
that question would cost more than many answers, so nobody asks it until there is somebody to ask:
while there is none, functions, methods and properties are as they were written. Then they get other
code (`FunctionType.__code__`), while the function objects, which programs compare and keep in
tables, stay the same:
  1. `_IF_MET`, once an instance of such a subclass of Tensor has been made (`notice`), for good, or
     while a tracer works with stand-ins that are no Tensors (`watching`): it looks at the classes
     of the arguments and asks only if there is one that it does not know.
  2. `_ALWAYS`, while a mode (`TorchFunctionMode`) is on in any thread: it asks at once, since also
     calls without any tensor are the mode's.
  3. `_WATCHED`, while a profiler is on (`watch_calls`): it tells the watcher of each call, but not
     of properties and questions about a tensor.
Whoever is asked sees the function that was called, not what it is made of: while `Tensor`'s own
`__torch_function__` computes, nobody is asked (`State.asks`), and a mode is off while it answers.
A class that is no Tensor, and whose instances nobody has announced, is met when a function fails
with it (`core/other_kinds`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

from ..backends.locks import Lock
from ..devices import Device
from ..dtypes import DType
from ..shapes import Size
from .modes import Switch, _default, current, enter, leave
from .other_kinds import Overrider
from .tensor import PLAIN, Tensor

PLAIN |= {bool, int, float, complex, str, bytes, type(None), type(...), type, DType, Device, Size}

EVERYBODY, MODES, NOBODY = 0, 1, 2  # whom a call asks: `State.asks`
_WATCH = 3  # the level of `_WATCHED`
IN_BACKWARD = 4  # added to them while rules run, which ask nobody; see `of_user`

# What never asks: questions about classes, and what would not end.
_NEVER = frozenset(
    """
    __array_namespace__ __array_ufunc__ __delitem__ __iter__ __hash__ broadcast_shapes
    can_cast finfo get_default_dtype iinfo is_storage is_tensor promote_types set_default_dtype
    to_device typename
    """.split()  # noqa: SIM905
)
# What is about a tensor and not about its elements: no operators.
ABOUT = frozenset(
    """
    size dim ndimension numel nelement element_size stride storage_offset data_ptr const_data_ptr
    dim_order is_contiguous is_floating_point is_complex is_signed is_inference is_conj is_neg
    is_coalesced is_distributed is_pinned is_same_size is_set_to is_shared is_tensor requires_grad_
    register_hook register_post_accumulate_grad_hook retain_grad backward grad as_subclass
    get_device untyped_storage storage share_memory_ __repr__ __format__ __len__ __hash__ __copy__
    __deepcopy__ __reduce_ex__ __setstate__ tolist numpy __array__ __dlpack__ __dlpack_device__
    apply_ map_ map2_ record_stream result_type storage_type sparse_dim dense_dim
    """.split()  # noqa: SIM905
)
# What asks modes only: its arguments are data.
_DATA = frozenset(("as_tensor", "asarray", "from_numpy", "frombuffer", "from_dlpack", "tensor"))
_SILENT = frozenset(("as_subclass",))  # what asks nobody, nor does what it is made of
# What Python asks the other operand about when it is not implemented.
_COMPARISONS = {f"__{name}__": name for name in ("ge", "gt", "le", "lt", "ne")}
_ARITHMETIC = {
    "add": "add",
    "floordiv": "floor_divide",
    "matmul": "matmul",
    "mod": "remainder",
    "mul": "mul",
    "pow": "pow",
    "sub": "sub",
    "truediv": "div",
}
_BITWISE = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}
_OPERATORS = {"__eq__", *_COMPARISONS} | {
    f"__{prefix}{name}__"
    for name in (*_ARITHMETIC, *_BITWISE, "lshift", "rshift")
    for prefix in ("", "r", "i")
}
# The methods that operators are to those who are asked, as in torch; others are themselves.
_CALLED = {
    **_COMPARISONS,
    **{f"__{name}__": method for name, method in _ARITHMETIC.items() if name != "floordiv"},
    **{f"__i{name}__": f"{method}_" for name, method in _ARITHMETIC.items() if name != "matmul"},
    **{f"__r{name}__": method for name, method in _BITWISE.items()},
    "__radd__": "add",
    "__rmul__": "mul",
}

ASKING: list[int] = []  # the level, if it is not 0
_below: list[Callable[..., Any]] = []  # what asks for a `__torch_dispatch__`, once there is one
_lock = Lock()
_levels = [0, 0, 0, 0]  # how many want which level of asking
_watcher: list[Callable[..., Any]] = []  # see `watch_calls`
_tables: list[dict[str, Callable[..., Any]]] = []  # of published functions, see `covers`


class _Codes:
    """A function's codes, by level: its own, `_IF_MET`, `_ALWAYS` and `_WATCHED`."""

    __slots__ = ("by_level", "function", "quiet")

    def __init__(self, name: str, function: FunctionType, public: Any) -> None:
        code = function.__code__
        original = FunctionType(
            code,
            function.__globals__,
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        original.__kwdefaults__ = function.__kwdefaults__
        original.__annotations__ = function.__annotations__
        consts = {"$plain": PLAIN, "$original": original, "$public": public, "$ask": _ask}
        if name in _DATA:
            consts["$ask"] = _ask_modes
        elif name in _OPERATORS:
            consts["$ask"] = _ask_operator
        elif name in _SILENT:
            consts["$ask"] = _ask_nobody
        called = _CALLED.get(name, name).strip("_") if name.startswith("__") else name
        consts |= {"$watch": _watch, "$name": called}
        met, always, watched = (
            _filled(text, code, consts) for text in (_IF_MET, _ALWAYS, _WATCHED)
        )
        self.function = function
        self.by_level = code, met, always, watched
        is_property = isinstance(getattr(public, "__self__", None), property)
        self.quiet = is_property or (name in ABOUT and name != "backward")
        if not hasattr(function, "__wrapped__"):
            function.__wrapped__ = original  # type: ignore[attr-defined]  # for `inspect.signature`

    def set(self, level: int) -> None:
        if level == _WATCH and self.quiet:
            level = _asking()
        self.function.__code__ = self.by_level[level]


_codes: dict[int, _Codes] = {}  # by the id of the function, which they keep


# The codes, as text; `_filled` puts values in the place of the strings.
_IF_MET = """
        plain = "$plain"
        original = "$original"
        for arg in args:
            if arg.__class__ not in plain:
                ask = "$ask"
                return ask("$public", original, args, kwargs)
        if kwargs:
            for arg in kwargs.values():
                if arg.__class__ not in plain:
                    ask = "$ask"
                    return ask("$public", original, args, kwargs)
        return original(*args, **kwargs)
"""
_ALWAYS = """
        ask = "$ask"
        return ask("$public", "$original", args, kwargs)
"""
_WATCHED = """
        watch = "$watch"
        return watch("$name", "$ask", "$public", "$original", args, kwargs)
"""


@functools.cache
def _compiled(text: str, count: int) -> CodeType:
    """The code of a function inside of another, with so many cells.

    It does not look at them, but a debugger that asks a frame for its variables does: so the code
    must begin as Python's own does and bring them into the frame.
    """
    cells = [f"cell_{i:03}" for i in range(count)]
    named = ", ".join(cells)
    inner = f"    def inner(*args, **kwargs):\n        if False: ({named})\n{text}"
    space: dict[str, Any] = {}
    exec(f"def outer({named}):\n{inner}    return inner", space)
    made: CodeType = space["outer"](*cells).__code__
    return made


def _filled(text: str, code: CodeType, values: dict[str, Any]) -> CodeType:
    """A code in the place of another's: its names, its closure, these values."""
    made = _compiled(text, len(code.co_freevars))
    return made.replace(
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_freevars=code.co_freevars,  # a function's cells are as many as its code says
        co_consts=tuple([values.get(c, c) if isinstance(c, str) else c for c in made.co_consts]),
    )


# Who asks -------------------------------------------------------------------------------------
def covers(table: dict[str, Callable[..., Any]]) -> None:
    """Functions that are published in this table ask, too."""
    with _lock:
        _tables.append(table)
        _refresh()


def added(name: str, function: Any) -> None:
    """Let what is published now ask as well, if anybody is asked."""
    if _level() and isinstance(function, FunctionType) and not is_private(name):
        with _lock:
            _prepare(name, function, function)
            _codes[id(function)].set(_level())


def _asking() -> int:
    return 2 if _levels[2] else 1 if _levels[1] else 0


def _level() -> int:
    return _WATCH if _levels[_WATCH] else _asking()


def is_private(name: str) -> bool:
    """Whether what has this name never asks."""
    return name in _NEVER or (name.startswith("_") and not name.endswith("__"))


def _refresh() -> None:
    level, asking = _level(), _asking()
    ASKING[:] = [asking] if asking else []
    if level:
        _find()
    for codes in _codes.values():
        codes.set(level)


def _find() -> None:
    """Look for functions that have no codes yet."""
    for name, found in [*vars(Tensor).items()]:
        if is_private(name):
            continue
        if isinstance(found, FunctionType):
            _prepare(name, found, getattr(Tensor, _CALLED.get(name, name)))
        elif isinstance(found, property):
            for part, public in (
                (found.fget, found.__get__),
                (found.fset, found.__set__),
                (found.fdel, found.__delete__),
            ):
                if part is not None:
                    _prepare(name, part, public)
    for table in _tables:
        for name, function in [*table.items()]:
            if not is_private(name) and isinstance(function, FunctionType):
                _prepare(name, function, function)


def _prepare(name: str, function: Any, public: Any) -> None:
    if id(function) not in _codes:
        _codes[id(function)] = _Codes(name, function, public)


def _want(level: int, change: int) -> None:
    with _lock:
        before = [*_levels]
        _levels[level] += change
        if [*map(bool, before)] != [*map(bool, _levels)]:
            _refresh()


def is_covered(public: Any) -> bool:
    """Whether a function is one that asks: of the library, or a property of Tensor."""
    return id(public) in _codes or isinstance(getattr(public, "__self__", None), property)


@contextmanager
def watching() -> Iterator[None]:
    """While objects that are no Tensors, and have a `__torch_function__`, are about."""
    _want(1, 1)
    try:
        yield
    finally:
        _want(1, -1)


@contextmanager
def watch_calls(watcher: Callable[..., Any]) -> Iterator[None]:
    """While `watcher(name, run, args, kwargs)` runs what is called of the public functions."""
    _watcher.append(watcher)
    _want(_WATCH, 1)
    try:
        yield
    finally:
        _want(_WATCH, -1)
        _watcher.remove(watcher)


def _watch(name: str, ask: Any, public: Any, original: Any, args: Any, kwargs: Any) -> Any:
    """A call of a function that is watched; whoever is to be asked as well is asked inside."""
    if _levels[1] or _levels[2]:
        original = functools.partial(_told, ask, public, original)
    if not _watcher:  # another thread has just stopped watching
        return original(*args, **kwargs)
    return _watcher[-1](name, original, args, kwargs)


def _told(ask: Any, public: Any, original: Any, *args: Any, **kwargs: Any) -> Any:
    return ask(public, original, args, kwargs)


def notice(kind: type) -> None:
    """An instance of a class is made: functions ask from now on, if it overrides them."""
    if overrides_dispatch(kind):
        _ask_below()
    if overrides(kind) or overrides_dispatch(kind):
        if not _levels[1]:
            _want(1, 1)
    elif issubclass(kind, Tensor):
        PLAIN.add(kind)


# Who is asked ---------------------------------------------------------------------------------
class _Disabled:
    """The `__torch_function__` of a class that overrides nothing, as Parameter's does not."""

    def __call__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


disabled = _Disabled()
disabled_dispatch = _Disabled()  # the `__torch_dispatch__` of such a class
Tensor.__torch_dispatch__ = disabled_dispatch


def overrides(kind: type) -> bool:
    """Whether a class has a `__torch_function__` that is to be asked."""
    if kind is Tensor:
        return False
    method = getattr(kind, "__torch_function__", None)
    if method is None or method is disabled:
        return False
    inherited = getattr(method, "__func__", None) is Tensor.__torch_function__.__func__  # type: ignore[attr-defined]
    return not inherited or not overrides_dispatch(kind)


def overrides_dispatch(kind: type) -> bool:
    """Whether a class has a `__torch_dispatch__` of its own; see `core/dispatching`."""
    return getattr(kind, "__torch_dispatch__", disabled_dispatch) is not disabled_dispatch


def _ask_below() -> None:
    """Let functions ask for a `__torch_dispatch__`, too."""
    if not _below:
        _below.append(import_module("undertow.core.dispatching").dispatched)


def overriders(values: Iterable[Any], overrides: Callable[[type], bool] = overrides) -> list[Any]:
    """One of each class that overrides, subclasses first, also from lists of arguments."""
    found: list[Any] = []
    _search(values, overrides, found)
    return found


def _search(values: Iterable[Any], overrides: Callable[[type], bool], found: list[Any]) -> None:
    for value in values:
        kind = type(value)
        if kind in PLAIN:
            continue
        if isinstance(value, (list, tuple)):
            _search(value, overrides, found)
        elif kind is slice:
            _search((value.start, value.stop, value.step), overrides, found)
        elif overrides(kind) and all(kind is not type(f) for f in found):
            place = len(found)
            for i, other in enumerate(found):
                if issubclass(kind, type(other)):
                    place = i
                    break
            found.insert(place, value)


def _ask(public: Any, original: Any, args: Any, kwargs: Any) -> Any:
    state = current()
    asks = state.asks
    if asks < NOBODY:
        found = overriders((*args, *kwargs.values())) if asks == EVERYBODY else []
        if found or state.function_modes:
            return answer(public, found, args, kwargs)
    if _below and asks < IN_BACKWARD:
        return _below[0](public, original, args, kwargs)
    return original(*args, **kwargs)


def _ask_operator(public: Any, original: Any, args: Any, kwargs: Any) -> Any:
    try:
        return _ask(public, original, args, kwargs)
    except Unanswered:
        return NotImplemented


def _ask_modes(public: Any, original: Any, args: Any, kwargs: Any) -> Any:
    state = current()
    if state.asks < NOBODY and state.function_modes:
        return answer(public, [], args, kwargs)
    with DisableTorchFunctionSubclass():
        return original(*args, **kwargs)


def _ask_nobody(public: Any, original: Any, args: Any, kwargs: Any) -> Any:
    token = enter(current().but(asks=NOBODY + IN_BACKWARD))
    try:
        return original(*args, **kwargs)
    finally:
        leave(token)


class Unanswered(TypeError):
    """Everybody who was asked gave NotImplemented."""


def answer(public: Any, found: list[Any], args: Any, kwargs: Any, kind: str = "function") -> Any:
    """The answer of the innermost mode, or else of the first overriding argument that has one."""
    types = tuple(map(type, found))
    method = f"__torch_{kind}__"
    state = current()
    modes = getattr(state, f"{kind}_modes")
    if modes:
        token = enter(state.but(**{f"{kind}_modes": modes[:-1]}))
        try:
            result = _asked(modes[-1], modes[-1], method, public, types, args, kwargs)
        finally:
            leave(token)
        if result is not NotImplemented:
            return result
    for value in found:
        result = _asked(value, type(value), method, public, types, args, kwargs)
        if result is not NotImplemented:
            return result
    asked = [repr(t) for t in types] + ([f"mode {modes[-1]!r}"] if modes else [])
    raise Unanswered(
        f"no implementation found for {name_of(public)!r}: every {method} that was asked "
        f"returned NotImplemented, of {', '.join(asked)}"
    )


def _asked(
    value: Any, whose: Any, method: str, public: Any, types: Any, args: Any, kwargs: Any
) -> Any:
    """What a mode or a class answers, or for it what `register_torch_dispatch` was given."""
    if method == "__torch_dispatch__":
        rule = getattr(public, "__dict__", {}).get("dispatched", {}).get(type(value))
        if rule is not None:
            return rule(whose, public, types, args, kwargs)
    return getattr(value, method)(public, types, args, kwargs)


def of_user(function: Callable[..., Any], *args: Any) -> Any:
    """Call a user's function from a backward pass: in there everybody is asked as outside of it."""
    state = current()
    if state.asks < IN_BACKWARD:
        return function(*args)
    token = enter(state.but(asks=state.asks - IN_BACKWARD))
    try:
        return function(*args)
    finally:
        leave(token)


def name_of(public: Any) -> str:
    """The name of a function, or of a property's getter, for a message."""
    owner = getattr(public, "__self__", None)
    if isinstance(owner, property):
        return f"Tensor.{getattr(owner.fget, '__name__', '?')}.{public.__name__}"
    return f"{getattr(public, '__module__', '')}.{getattr(public, '__name__', public)}"


class DisableTorchFunctionSubclass(Switch):
    """While it is entered no class is asked; modes are.

    >>> import undertow as ut
    >>> from undertow.core.overriding import DisableTorchFunctionSubclass
    >>> class Logged(ut.Tensor):
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return super().__torch_function__(func, types, args, kwargs)
    >>> x = ut.ones(2).as_subclass(Logged)
    >>> y = x.exp()
    exp
    >>> with DisableTorchFunctionSubclass():
    ...     y = x.exp()
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(asks=MODES)

    def _next(self, state: Any) -> Any:
        if state.asks:
            return state
        return _QUIET if state is _USUAL else state.but(asks=MODES)


_USUAL = _default
_QUIET = _USUAL.but(asks=MODES)


class DisableTorchFunction(Switch):
    """While it is entered neither classes nor modes are asked."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(asks=NOBODY)


class EnableTorchFunction(Switch):
    """While it is entered everybody is asked, whatever was said outside."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(asks=EVERYBODY)


class DisableTorchDispatch(Switch):
    """While it is entered nobody is asked for a `__torch_dispatch__`."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(dispatches=False)


class Pushed(Switch):
    """While it is entered a mode answers every public function, or every operator."""

    __slots__ = ("field", "mode")

    def __init__(self, mode: Any, field: str) -> None:
        super().__init__()
        self.mode = mode
        self.field = field

    def _next(self, state: Any) -> Any:
        return state.but(**{self.field: (*getattr(state, self.field), self.mode)})

    def __enter__(self) -> None:
        if self.field == "dispatch_modes":
            _ask_below()
        _want(2, 1)
        try:
            super().__enter__()
        except BaseException:
            _want(2, -1)
            raise

    def __exit__(self, *exc: object) -> None:
        try:
            super().__exit__(*exc)
        finally:
            _want(2, -1)


class Mode:
    """What answers functions, or operators, while it is entered; more than once if need be."""

    _field: str  # of State, where those that are on stand
    _entered: list[Pushed]

    def __enter__(self) -> Any:
        pushed = Pushed(self, self._field)
        pushed.__enter__()
        vars(self).setdefault("_entered", []).append(pushed)
        return self

    def __exit__(self, *exc: object) -> None:
        self._entered.pop().__exit__(*exc)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """A mode to enter: `with Mode.push():` is `with Mode():`."""
        return cls(*args, **kwargs)


# Tensor's own ---------------------------------------------------------------------------------
def of_subclass(
    cls: type[Tensor],
    func: Callable[..., Any],
    types: Iterable[type],
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
) -> Any:
    """What a subclass of Tensor answers unless it overrides this: results of its own class."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
        return result if func in AS_STORED else converted(result, cls)


def converted(result: Any, kind: type[Tensor]) -> Any:
    """The tensors in a result as instances of a subclass."""
    if kind is Tensor:
        return result
    if isinstance(result, Tensor):
        return result if isinstance(result, kind) else result.as_subclass(kind)
    if isinstance(result, (tuple, list)) and any(
        isinstance(r, (Tensor, tuple, list)) for r in result
    ):
        made = [converted(r, kind) for r in result]
        return type(result)(*made) if hasattr(result, "_fields") else type(result)(made)
    return result


# Getters of tensors that are stored: the same one every time, whatever its class.
AS_STORED = frozenset((Tensor.grad.__get__, Tensor._base.__get__))


def _answer_of(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function that failed with an instance of such a class gives, now that it asks."""
    _want(1, 1)
    space, _, last = name.rpartition(".")
    for table in _tables:
        function = table.get(last)
        if function is not None and function.__module__.endswith(space):
            return function(*args, **kwargs)
    method: Any = getattr(Tensor, last)
    return method(*args, **kwargs)


def _met(value: Any) -> bool:
    return not ASKING and current().asks == EVERYBODY and overrides(type(value))


Overrider.met = staticmethod(_met)
Overrider.answer_of = staticmethod(_answer_of)
