"""Dual arrays: an array and its tangent, the change of its elements along a direction.

Note [tangents]
In forward mode the array of a tensor is a `DualArray`: the primal, an array of a backend below, and
the tangent, a tensor with a history of its own. So a tangent is wherever the array is: in what a
node saved, in a view, in a gradient. The door asks the array's backend for every op (`steps`, which
`autograd/forward_mode` gives it), so no op can pass a tangent by: one that knows no derivative
raises an error. A form that is asked for anyway, outside of an op, is about the primal if it only
looks (at layouts, at values for a check), and an error if it computes.

Levels nest: the primal of one level may be a dual array of another, and so may the tangent's array.
Batches (Note [batches]) are below all levels. When a level has ended its tangents mean nothing any
more, and an array that still has one is its primal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from ..errors import GradientError
from .base import Array, Backend, NumpyDType, Shape
from .registry import backend_of


class Level:
    """One level of forward mode; it lives from its entry to its exit."""

    __slots__ = ("_made", "alive", "forcing", "number", "order")

    def __init__(self, order: int = 1) -> None:
        self.number: int = 1 + max((level.number for level in LEVELS), default=-1)
        self.order = order  # above 1, tangents are series; see Note [Taylor mode]
        self.forcing = False  # whether coefficients of such a series are being made
        self.alive = True
        self._made: dict[Backend, DualBackend] = {}
        LEVELS.append(self)

    def end(self) -> None:
        """Tangents of this level are forgotten."""
        self.alive = False
        LEVELS.remove(self)

    def over(self, below: Backend) -> DualBackend:
        """The backend whose arrays have primals of another one."""
        found = self._made.get(below)
        if found is None:
            found = self._made[below] = DualBackend(self, below)  # type: ignore[abstract]
        return found


LEVELS: list[Level] = []  # those that live
# Off inside of a custom function's forward, where a tensor is its primal.
unfollowed: ContextVar[frozenset[Any]] = ContextVar("undertow_tangents", default=frozenset())


class Series:
    """The Taylor coefficients of an array from the first on, made when they are asked for.

    Each is a tensor, or None for zeros. It stands in the place of a tangent.
    """

    __slots__ = ("made", "make")

    def __init__(self, make: Callable[[int], Any]) -> None:
        self.make = make
        self.made: list[Any] = []

    def __getitem__(self, k: int) -> Any:
        while len(self.made) < k:
            self.made.append(self.make(len(self.made) + 1))
        return self.made[k - 1]

    def each(self, function: Callable[[Any], Any]) -> Series:
        """The series of a linear function of this one."""
        return Series(lambda k: None if (c := self[k]) is None else function(c))

    def clone(self) -> Series:
        """This series: nobody writes into coefficients."""
        return self


def on_a_line(array: DualArray) -> None:
    """Let an array's tangent become the series of a straight line."""
    first = array.tangent
    array.tangent = Series(lambda k: first if k == 1 else None)


class DualArray:
    """A primal and its tangent, a tensor; see Note [tangents].

    What a form of views gives has none yet (`tangent` is None until the op has made it).
    """

    __slots__ = ("__weakref__", "backend", "dtype", "level", "primal", "shape", "size", "strides",
                 "tangent")  # fmt: skip
    __array_ufunc__ = None  # NumPy must not compute on it by accident

    def __init__(self, primal: Any, tangent: Any, level: Level) -> None:
        self.primal = primal
        self.tangent = tangent
        self.level = level
        self.backend = level.over(backend_of(primal))
        self.shape, self.strides = primal.shape, primal.strides
        self.dtype, self.size = primal.dtype, primal.size


def living(array: Any) -> Any:
    """An array without the tangents of levels that have ended, or that nobody follows."""
    while array.__class__ is DualArray and (
        not array.level.alive or array.level in unfollowed.get()
    ):
        array = array.primal
    return array


def primal_of(array: Any) -> Any:
    """An array without any tangents."""
    while array.__class__ is DualArray:
        array = array.primal
    return array


def level_at(array: Any) -> Level | None:
    """The innermost level at which an array has a tangent."""
    array = living(array)
    return array.level if array.__class__ is DualArray else None


def parts(array: Any, level: Level) -> tuple[Any, Any]:
    """An array without its tangent of a level, and that tangent, or None."""
    array = living(array)
    if array.__class__ is not DualArray or array.level is not level:
        return array, None
    if array.tangent is None:
        raise GradientError("[forward mode] a view was used before its tangent was made")
    return array.primal, array.tangent


def tangents(array: Any) -> Iterator[Any]:
    """All tangents of an array."""
    while array.__class__ is DualArray:
        if isinstance(array.tangent, Series):
            yield from (c for c in array.tangent.made if c is not None)
        elif array.tangent is not None:
            yield array.tangent
        array = array.primal


class DualBackend(Backend):
    """One level over another backend."""

    def __init__(self, level: Level, below: Backend) -> None:
        self.level = level
        self.below = below
        self.base = below.base
        self.device = below.device
        self.frames = below.frames

    @property
    def steps(self) -> Any:  # type: ignore[override]
        """What runs an op on these arrays in the place of the door."""
        return STEPS[0]

    def of_view(self, op: Any, x: Any, view: Any, params: Any) -> Any:
        """A view that a form made, with its tangent."""
        return STEPS[1](op, x, view, params)

    def prepare(
        self, exprs: Any, arrays: tuple[bool, ...], largest: bool = False
    ) -> Callable[..., Any]:
        return lambda *operands: None  # the door has another way

    def copy(self, x: Array) -> Array:
        x = living(x)
        if x.__class__ is not DualArray:
            return backend_of(x).copy(x)
        return DualArray(backend_of(x.primal).copy(x.primal), x.tangent.clone(), x.level)

    def lift(self, x: Array) -> Array:
        return x

    def owned(self, holder: list[Any], i: int) -> bool:
        return False

    def empty(self, shape: Shape, dtype: NumpyDType) -> Array:
        return self.below.empty(shape, dtype)

    def from_host(self, array: Any) -> Array:
        return self.below.from_host(array)

    def table(self, make: Callable[..., Any], *args: Any) -> Array:
        return self.below.table(make, *args)

    def begin(self) -> Any:
        return self.base.begin()

    def end(self, token: Any) -> None:
        self.base.end(token)


# The step of an op, of a view, and of a change in place; `autograd/forward_mode` fills it.
STEPS: list[Any] = [None, None, None]


def _looks(name: str) -> Any:
    """A form that only looks at an array: at the primal."""

    def run(self: DualBackend, x: Any, *args: Any) -> Any:
        primal = primal_of(x)
        return getattr(backend_of(primal), name)(primal, *args)

    run.__name__ = name
    return run


def _makes(name: str) -> Any:
    def run(self: DualBackend, *args: Any) -> Any:
        return getattr(self.below, name)(*args)

    run.__name__ = name
    return run


def _views(name: str) -> Any:
    """A form of views: a dual array whose tangent is still to be made."""

    def run(self: DualBackend, x: Any, *args: Any) -> Any:
        x = living(x)
        if x.__class__ is not DualArray:
            return getattr(backend_of(x), name)(x, *args)
        view = getattr(x.backend.below, name)(x.primal, *args)
        return None if view is None else DualArray(view, None, x.level)

    run.__name__ = name
    return run


def _computes(name: str) -> Any:
    """Any other form: of arrays whose levels have ended, or an error."""

    def run(self: DualBackend, *args: Any, **kwargs: Any) -> Any:
        if self.level.alive and self.level not in unfollowed.get():
            raise GradientError(
                f"[forward mode] a tensor with a tangent met the form {name!r} outside of an op, "
                "where the tangent would be lost; detach() it if it is a constant there"
            )
        given = [_stripped(a) for a in args]
        arrays = [a for a in _flat(given) if hasattr(a, "dtype") and hasattr(a, "strides")]
        k = max((backend_of(a) for a in arrays), key=_rank, default=self.below)
        return getattr(k, name)(*given, **kwargs)

    run.__name__ = name
    return run


def _rank(k: Backend) -> int:
    return 1 if isinstance(k, DualBackend) else 0


def _stripped(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)([_stripped(v) for v in value])
    return living(value)


def _flat(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for v in values:
        found += _flat(v) if isinstance(v, (tuple, list)) else [v]
    return found


_LOOK = ("to_host", "contiguous", "writable", "memory", "address", "storage_offset",
         "storage_size", "require", "within", "whole")  # fmt: skip
_MAKE = ("full", "arange", "philox")
VIEWS = ("as_strided", "reshape", "permute", "transposed", "expand", "slice", "part", "bits")
for _names, _kind in ((_LOOK, _looks), (_MAKE, _makes), (VIEWS, _views)):
    for _name in _names:
        setattr(DualBackend, _name, _kind(_name))
for _name, _form in vars(Backend).items():
    known = _name in vars(DualBackend) or _name in ("run", "direct")
    if not _name.startswith("_") and callable(_form) and not known:
        setattr(DualBackend, _name, _computes(_name))
DualBackend.__abstractmethods__ = frozenset()
