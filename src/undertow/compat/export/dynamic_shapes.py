"""Sizes that may vary: `Dim`, and how a program is told of them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from ...core.tensor import Tensor
from ...errors import ArgumentError
from ...utils import _pytree as pytree

__all__ = ["AdditionalInputs", "Constraint", "Dim", "ShapesCollection", "dims"]

_MOST = 2**63 - 1


class _DimHint(enum.Enum):
    """What may be said of a size without a name."""

    AUTO = enum.auto()
    STATIC = enum.auto()
    DYNAMIC = enum.auto()

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        return self


class Dim:
    """A size that may vary, between `min` and `max`; the same Dim is the same size everywhere.

    `2 * dim + 1` is a size that follows it. `Dim.AUTO` varies if it can, `Dim.DYNAMIC` must.

    >>> import undertow as ut
    >>> ut.export.Dim("batch", max=64)
    Dim('batch', min=0, max=64)
    """

    AUTO: ClassVar[Any] = _DimHint.AUTO
    STATIC: ClassVar[Any] = _DimHint.STATIC
    DYNAMIC: ClassVar[Any] = _DimHint.DYNAMIC

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        self.min, self.max = min or 0, _MOST if max is None else max
        if self.max <= self.min:
            raise AssertionError(f"[export.Dim] max={max} must be more than min={min}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__ = name
        self.root, self.factor, self.added = self, 1, 0

    def _derived(self, factor: int, added: int) -> Dim:
        made = Dim.__new__(Dim)
        made.root, made.factor, made.added = self.root, factor, added
        made.__name__ = f"{factor}*{self.root.__name__}{added:+d}".removesuffix("+0")
        made.min, made.max = 0, _MOST
        return made

    def __add__(self, other: int) -> Dim:
        return self._derived(self.factor, self.added + int(other))

    __radd__ = __add__

    def __sub__(self, other: int) -> Dim:
        return self._derived(self.factor, self.added - int(other))

    def __mul__(self, other: Any) -> Dim:
        if not isinstance(other, int) or other <= 0:
            raise NotImplementedError(f"[export.Dim] cannot be multiplied by {other!r}")
        return self._derived(self.factor * other, self.added * other)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        if self.root is not self:
            return f"Dim({self.__name__!r})"
        most = "" if self.max == _MOST else f", max={self.max}"
        return f"Dim({self.__name__!r}, min={self.min}{most})"


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several sizes that may vary.

    >>> import undertow as ut
    >>> ut.export.dims("batch", "time")
    (Dim('batch', min=0), Dim('time', min=0))
    """
    return tuple(Dim(name, min=min, max=max) for name in names)


Constraint = Dim


class ShapesCollection:
    """Dynamic shapes by the tensors that have them: `shapes[tensor] = {0: dim}`."""

    def __init__(self) -> None:
        self._by_id: dict[int, tuple[Any, Any]] = {}

    def __setitem__(self, tensor: Any, shape: Any) -> None:
        self._by_id[id(tensor)] = tensor, shape

    def __getitem__(self, tensor: Any) -> Any:
        return self._by_id.setdefault(id(tensor), (tensor, {}))[1]

    def __len__(self) -> int:
        return len(self._by_id)

    def of(self, tensor: Any) -> Any:
        """What was said of a tensor."""
        return self._by_id.get(id(tensor), (None, None))[1]


class AdditionalInputs:
    """Further examples, whose sizes tell which may vary."""

    def __init__(self) -> None:
        self._examples: list[tuple[Any, Any]] = []

    def add(self, args: Any, kwargs: Any = None) -> None:
        """Add an example."""
        self._examples.append((tuple(args), dict(kwargs or {})))


class Varying(NamedTuple):
    """A size that varies: which dimension of which leaf, and how it follows a named size."""

    leaf: int
    dim: int
    name: str
    factor: int
    added: int
    least: int
    most: int
    must: bool

    def size(self, root: int) -> int:
        """Its number when the named size is `root`."""
        return self.factor * root + self.added

    def root(self, size: int) -> int:
        """The number of the named size when it is `size`; an error if that is none."""
        found, rest = divmod(size - self.added, self.factor)
        if rest:
            raise ArgumentError(
                f"[export] {size} is not {self.factor}*{self.name}{self.added:+d} of any size"
            )
        return found


def varying(
    args: tuple[Any, ...], kwargs: dict[str, Any], names: list[str], shapes: Any
) -> list[Varying]:
    """The sizes that vary, by the leaves of (args, kwargs); `names` are those of the arguments."""
    if shapes is None:
        return []
    values = [*args, *kwargs.values()]
    if isinstance(shapes, ShapesCollection):
        told: list[Any] = [
            pytree.tree_map(lambda t: shapes.of(t) if isinstance(t, Tensor) else None, v)
            for v in values
        ]
    elif isinstance(shapes, Mapping):
        unknown = [n for n in shapes if n not in names]
        if unknown or len(names) != len(values):
            raise ArgumentError(
                "[export] When `dynamic_shapes` is specified as a dict, its top-level keys must be "
                f"the arg names {names} of `inputs`, but here they are {list(shapes)}"
            )
        told = [shapes.get(n) for n in names]
    else:
        told = list(shapes)
        if len(told) != len(values):
            raise ArgumentError(
                f"[export] dynamic_shapes has {len(told)} entries for {len(values)} arguments"
            )
    found: list[Varying] = []
    leaf = 0
    for value, spec in zip(values, told, strict=True):
        for t, said in _leaves(value, spec):
            if isinstance(t, Tensor) and said is not None:
                found += _of_tensor(leaf, t, said)
            leaf += 1
    return found


def _leaves(value: Any, spec: Any) -> list[tuple[Any, Any]]:
    """The leaves of an argument, with what was said of each."""
    if isinstance(value, dict):
        return [x for k, v in value.items() for x in _leaves(v, spec and spec.get(k))]
    if isinstance(value, (list, tuple)):
        specs = spec if spec else [None] * len(value)
        return [x for v, s in zip(value, specs, strict=True) for x in _leaves(v, s)]
    if isinstance(value, Tensor):
        return [(value, spec)]
    return [(leaf, None) for leaf in pytree.tree_leaves(value)]


def _of_tensor(leaf: int, t: Tensor, said: Any) -> list[Varying]:
    pairs = said.items() if isinstance(said, Mapping) else enumerate(said)
    found = []
    for dim, what in pairs:
        if not -t.ndim <= dim < t.ndim:
            raise ArgumentError(f"[export] a tensor of shape {t.shape} has no dimension {dim}")
        size, dim = t.shape[dim], dim % t.ndim
        if what is None or what is Dim.STATIC:
            continue
        if isinstance(what, int):
            if what != size:
                raise ArgumentError(f"[export] dimension {dim} is {size}, not the {what} given")
        elif isinstance(what, _DimHint):
            must = what is Dim.DYNAMIC
            name = f"s{leaf}_{dim}" if must else f"s_{size}"
            found.append(Varying(leaf, dim, name, 1, 0, 0, _MOST, must))
        elif isinstance(what, Dim):
            root = what.root
            found.append(
                Varying(leaf, dim, root.__name__, what.factor, what.added, root.min, root.max, True)
            )
        else:
            raise ArgumentError(f"[export] a size is a Dim, an int or None, got {what!r}")
    return found
