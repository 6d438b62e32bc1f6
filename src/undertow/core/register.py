"""Public functions and Tensor methods: how an op's definition becomes `ut.add` and `x.add_`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, TypeVar

from ..errors import (
    ArgumentError,
    BoundsError,
    DeviceError,
    DimError,
    DTypeError,
    UndertowError,
    UnsupportedError,
    out_of_memory,
)
from ..layouts import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from .autocast import EVER, POLICIES, autocasting
from .blame import about_argument
from .dispatch import elementwise
from .fast import binary_function, inplace_elementwise, operation, unary_function
from .foreign import BOOLEANS, INTEGERS, NUMBERS
from .generator import Generator
from .inplace import inplace
from .old_orders import in_new_order
from .op import Op
from .other_kinds import other_kind
from .out import into, takes_out, with_out
from .overriding import added, covers
from .tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])

FUNCTIONS: dict[str, Callable[..., Any]] = {}  # undertow.<name>
FUNCTIONAL: dict[str, Callable[..., Any]] = {}  # undertow.nn.functional.<name>
SPACES: dict[str, dict[str, Callable[..., Any]]] = {}  # undertow.<space>.<name>
covers(FUNCTIONS)
covers(FUNCTIONAL)

_ALIASES = {"axis": "dim", "keepdims": "keepdim"}
_OTHER_WORDS = frozenset((*_ALIASES, "out", "layout", "pin_memory"))  # see `guarded`
# The annotations that `guarded` understands, and what they accept: more than they say, for what
# converts by itself.
_INTEGER = (*INTEGERS, Tensor)
_NUMBER = (*NUMBERS, Tensor)
_KINDS: dict[str, Any] = {
    "Tensor": Tensor,
    "int": _INTEGER,
    "float": _NUMBER,
    "str": str,
    "bool": BOOLEANS,
    "None": type(None),
    "Sequence[Tensor]": (Iterable, Tensor),
    "Generator": Generator,
}
_KIND_NAMES = {
    "Tensor": "a Tensor",
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "True or False",
    "Sequence[Tensor]": "a sequence of Tensors",
    "Generator": "a Generator",
}
_OURS: dict[type[Exception], type[UndertowError]] = {
    TypeError: DTypeError,
    AttributeError: DTypeError,
    LookupError: BoundsError,
    ValueError: ArgumentError,
    ArithmeticError: ArgumentError,
}
_ABOUT_ARGUMENTS = (ArgumentError, DTypeError, DimError, BoundsError, DeviceError)
_INSIDE = (__package__.partition(".")[0], "numpy")
_NAMELESS = ("door", "operator", "<lambda>")
_LONG = 60  # of an argument shown in an error


def function(
    *,
    name: str | None = None,
    method: bool | str | None = None,
    inplace: bool = False,
    top: bool | None = None,
    functional: bool = False,
    space: str = "",
    dunder: str = "",
    guard: bool = True,
    out: bool | None = None,
) -> Callable[[F], F]:
    """Publish a function.

    top: as `ut.name`; functional: as `ut.nn.functional.name`; method: as `Tensor.name` (or under
    the name given); inplace: also as `Tensor.name_`; dunder: operators such as "__add__"; space:
    as `ut.space.name`, and then not at the top nor as a method unless that is said.
    `axis` and `keepdims` are accepted for `dim` and `keepdim`. guard=False spares a fast function
    that checks its arguments itself the call of `guarded`. out: whether the function takes `out`;
    as a rule the list in `core/out` knows.
    """

    def publish(fn: F) -> F:
        public = name or fn.__name__
        whole = f"{space}.{public}" if space and not top else public
        given_out = takes_out(public, space) if out is None else out
        policy = POLICIES.get(whole)
        makes = "device" in fn.__annotations__ and public != "to"
        as_it_is = None
        kinds = [k for n, kind in fn.__annotations__.items() if n != "return" for k in kind.split()]
        checked = "dim" in fn.__annotations__ or not _KINDS.keys().isdisjoint(kinds)
        if guard and (checked or policy is not None):
            # What changes a tensor in place computes in the dtype that it has.
            if inplace and policy is not None:
                as_it_is = guarded(fn, whole)
            fn = guarded(fn, whole, policy, makes, given_out)
            given_out = False  # it takes it already
        fn.__name__ = fn.__qualname__ = public
        at_top = not space if top is None else top
        fn.__module__ = "undertow.nn.functional" if functional and not at_top else "undertow"
        called = with_out(fn, whole) if given_out else fn
        if space:
            called.__module__ = fn.__module__ = f"undertow.{space}"
            if space not in SPACES:
                SPACES[space] = {}
                covers(SPACES[space])
            _add(SPACES[space], public, called)
        if at_top:
            _add(FUNCTIONS, public, called)
        if functional:
            _add(FUNCTIONAL, public, fn if at_top else called)
        if not space if method is None else method:
            attach(method if isinstance(method, str) else public, fn)
        if inplace:
            attach_inplace(public, as_it_is or fn)
        for operator in dunder.split():
            attach(operator, operation(fn) if "other" in fn.__annotations__ else fn)
        return fn

    return publish


def alias(of: str, *names: str) -> None:
    """Publish a function, and its methods, under further names: `alias("mul", "multiply")`."""
    for name in names:
        if of in FUNCTIONS:
            _add(FUNCTIONS, name, FUNCTIONS[of])
        for suffix in ("", "_"):
            method = Tensor.__dict__.get(of + suffix)
            if method is not None:
                attach(name + suffix, method)


def attach(name: str, method: Any) -> None:
    """Give Tensor a method; a name that is taken is an error."""
    if name in Tensor.__dict__ and name not in ("__eq__", "__ne__"):
        raise ValueError(f"Tensor.{name} is defined already")
    if isinstance(method, property):
        getter: Any = method.fget
        getter.__name__ = getter.__qualname__ = name
    called = getattr(method, "__name__", "")
    if name.startswith("__") and (called.startswith("_") or called in _NAMELESS):
        method.__name__ = method.__qualname__ = name
    setattr(Tensor, name, method)
    added(name, method)


def attach_inplace(name: str, fn: Callable[..., Any]) -> None:
    """Give Tensor the in-place method `name_`."""
    attach(f"{name}_", inplace(fn, f"{name}_"))


def _add(table: dict[str, Callable[..., Any]], name: str, fn: Callable[..., Any]) -> None:
    if name in table:
        raise ValueError(f"a function {name!r} is published already")
    table[name] = fn
    added(name, fn)


def guarded(
    fn: F, name: str, policy: Any = None, makes: bool = False, given_out: bool = False
) -> F:
    """`fn` with `axis` and `keepdims`, and an error of ours for an argument of the wrong type.

    `policy` is the autocast list that it stands on, if any. One that `makes` tensors also takes
    torch's `layout=ut.strided` and `pin_memory`, which change nothing. `given_out`: see `core/out`.

    Nothing is checked until a call fails. Then the arguments are held against the annotations, so
    that a list where a tensor belongs is named as such, wherever inside it was stumbled over. Other
    errors get the name of the function that the user called, and those that are not ours its
    arguments. A TypeError or AttributeError that is not about an argument is a defect of the op: it
    stays as it is.
    """

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        out: Any = None
        try:
            if not kwargs and policy is None:
                return fn(*args)
            if not _OTHER_WORDS.isdisjoint(kwargs):
                if "out" in kwargs:
                    out = kwargs.pop("out")
                    if out is not None and given_out:
                        return into(name, wrapped, out, args, kwargs)
                    if out is not None:  # np.sum(tensor): tensor.sum(axis=…, out=None)
                        raise DTypeError(f"[{name}] got an unexpected keyword argument 'out'")
                if makes and _sparse_layout(name, args, kwargs):
                    return import_module(_SPARSE_ROOM).nothing(name, *args, **kwargs)
                for alias in ("axis", "keepdims"):
                    if alias in kwargs and alias not in fn.__annotations__:
                        kwargs[_ALIASES[alias]] = kwargs.pop(alias)
            if policy is not None and EVER:
                return autocasting(policy, fn, args, kwargs)
            return fn(*args, **kwargs)
        except Exception as error:
            kind = other_kind((*args, *kwargs.values()))
            if kind is not None and out is not None:
                raise UnsupportedError(
                    f"[{name}] out= is for dense tensors, got a {type(kind).__name__}"
                ) from error
            if kind is not None:
                return kind._answer(name, args, kwargs)
            numbers = in_new_order(name, args, kwargs)
            if numbers is not None:
                return wrapped(*[a for a in args if isinstance(a, Tensor)], **numbers)
            told = _told(fn, name, args, kwargs, error)
            if told is None:
                raise
            raise told from error

    return wrapped  # type: ignore[return-value]


def _sparse_layout(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Drop what says nothing here from a creator's arguments; whether they ask for sparse."""
    kwargs.pop("pin_memory", None)
    if "layout" not in kwargs:
        return False
    if other_kind(args) is not None:
        raise ArgumentError(f"[{name}] a sparse tensor knows of layouts")
    layout = kwargs.pop("layout")
    if layout in _SPARSE and name in ("empty", "zeros"):
        kwargs["layout"] = layout
        return True
    if layout not in (None, strided):
        raise ArgumentError(f"[{name}] every tensor is ut.strided, got layout {layout!r}")
    return False


def _told(
    fn: Callable[..., Any],
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    error: Exception,
) -> Exception | None:
    """What to raise in the place of an error, in the words of the call; None for the error itself.

    The error itself may get the name of the function that the user called.
    """
    if str(error).startswith(f"[{name}]"):
        return None
    names = fn.__code__.co_varnames[: fn.__code__.co_argcount]
    given = dict(zip(names, args, strict=False)) | kwargs
    misfit = _misfit(fn, given)
    if misfit:
        return DTypeError(f"[{name}] {misfit}")
    if not _arose_inside(error):
        return None
    if isinstance(error, _ABOUT_ARGUMENTS):  # of the function that this one is made of
        said = str(error)
        error.args = (f"[{name}]{said.partition(']')[2] or f' {said}'}",)
    if isinstance(error, UndertowError):
        return None
    more = args[len(names) :]
    if isinstance(error, (TypeError, AttributeError)):
        loose = [v for n, v in given.items() if not _checked(fn, n)] + [*more]
        if not about_argument(error, loose):
            return None
    if isinstance(error, MemoryError):
        return out_of_memory(name, error)
    for builtin, ours in _OURS.items():
        if isinstance(error, builtin):
            if more:  # as in zeros(2, 3), in the order of the call
                given = {fn.__code__.co_varnames[_star(fn)]: more} | given
            shown = ", ".join(f"{n}={_brief(v)}" for n, v in given.items())
            return ours(f"[{name}] {error}; called with {shown or 'nothing'}")
    return None


def _star(fn: Callable[..., Any]) -> int:
    """The place of the name behind `*` among a function's variables."""
    return fn.__code__.co_argcount + fn.__code__.co_kwonlyargcount


_SPARSE = (sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)
_SPARSE_ROOM = f"{__name__.partition('.')[0]}.sparse.creation"


def _arose_inside(error: Exception) -> bool:
    """Whether the library or NumPy raised it: not the call itself, nor a function of the user's."""
    frame = error.__traceback__.tb_next if error.__traceback__ else None
    if frame is None:
        return False
    while frame is not None:
        if frame.tb_frame.f_globals.get("__name__", "").partition(".")[0] not in _INSIDE:
            return False
        frame = frame.tb_next
    return True


def _brief(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype} of shape {value.shape}"
    text = repr(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


def _kinds(fn: Callable[..., Any], name: str) -> list[str]:
    return fn.__annotations__.get(name, "Any").split(" | ")


def _checked(fn: Callable[..., Any], name: str) -> bool:
    """Whether the annotation of an argument is one that `_misfit` understands."""
    return all(kind in _KINDS for kind in _kinds(fn, name))


def _misfit(fn: Callable[..., Any], given: dict[str, Any]) -> str:
    """What is wrong with the first argument that its annotation does not allow; "" if none is."""
    for name, value in given.items():
        kinds = _kinds(fn, name)
        if _checked(fn, name) and not any(isinstance(value, _KINDS[k]) for k in kinds):
            wanted = " or ".join(_KIND_NAMES.get(k, k) for k in kinds)
            shown = f" {value!r}" if isinstance(value, (str, int, float, complex)) else ""
            hint = "; convert it with ut.tensor(...) first" if kinds[0] == "Tensor" else ""
            return f"{name} must be {wanted}, got {type(value).__name__}{shown}{hint}"
    return ""


def elementwise_function(
    op: Op,
    doc: str,
    *,
    name: str | None = None,
    method: bool | str = True,
    inplace: bool = False,
    top: bool = True,
    functional: bool = False,
    space: str = "",
    dunder: str = "",
) -> Callable[..., Tensor]:
    """Publish an elementwise op whose public signature is just its tensors; see `function`."""
    public = name or op.name
    doors = {1: unary_function, 2: binary_function}
    if op.arity in doors:
        door = doors[op.arity](op)
    else:

        def door(*operands: Any) -> Tensor:
            return elementwise(op, *operands)

    door.__doc__ = doc
    more = {"functional": functional, "space": space}
    function(name=public, method=method and not space, top=top and not space, **more)(door)  # type: ignore[arg-type]
    door.__annotations__ = dict.fromkeys(door.__annotations__, "Tensor")
    if op.arity > 1:
        door.__annotations__ |= dict.fromkeys(("input", "other"), "Tensor | Number")
    if inplace:
        attach(f"{public}_", inplace_elementwise(op, door, f"{public}_"))
    operator = door
    if dunder and op.arity == 2:
        operator = functools.update_wrapper(binary_function(op, operator=True), door)
    for name in dunder.split():
        attach(name, operator)
    return door
