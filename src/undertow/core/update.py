"""Many tensors changed in place by scalar expressions, one kernel for all of them.

What an optimiser does: a parameter and what is kept with it, each overwritten by a formula of all
of them, without being recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..backends.base import Backend
from ..backends.registry import OF_CLASS, backend_of
from ..errors import DeviceError, DTypeError, ShapeError
from ..kernel.expr import Expr, arg
from .inplace import check_writable
from .modes import current
from .tensor import Tensor, share

Row = Sequence[Tensor]


class Update:
    """A formula of `tensors` tensors and `numbers` numbers, as a change of some of the tensors.

    `formula` is called once, with scalar expressions; it gives a new value for each of `places`.

    >>> import undertow as ut
    >>> halve = Update("halve", lambda x, factor: (factor * x,), 1, 1, (0,))
    >>> a, b = ut.ones(2), ut.ones(3)
    >>> halve([(a,), (b,)], (0.5,))
    >>> a, b
    (tensor([0.5000, 0.5000]), tensor([0.5000, 0.5000, 0.5000]))
    """

    __slots__ = ("exprs", "name", "places")

    def __init__(
        self,
        name: str,
        formula: Callable[..., Sequence[Expr]],
        tensors: int,
        numbers: int,
        places: tuple[int, ...],
    ) -> None:
        self.name = name
        self.places = places
        self.exprs = tuple(formula(*[arg(i) for i in range(tensors + numbers)]))

    def __call__(self, rows: Sequence[Row], numbers: Sequence[float]) -> None:
        """Change the tensors of all rows, which have one floating dtype and shape in each row."""
        if self.attempt(rows, numbers):
            return
        writing = current().writing is not None
        launches: dict[tuple[Backend, Any], list[list[Any]]] = {}
        for row in rows:
            arrays = [t._array for t in row]
            backend = backend_of(arrays[0])
            self._check(row)
            for place in self.places:
                if writing or share(row[place]).inference or not backend.all_plain([arrays[place]]):
                    check_writable(self.name, row[place])
            launches.setdefault((backend, arrays[0].dtype), []).append(arrays)
        for (backend, _), arrays_of in launches.items():
            self._launch(backend, arrays_of, numbers)
        for row in rows:
            for place in self.places:
                share(row[place]).version.value += 1

    def attempt(self, rows: Sequence[Row], numbers: Sequence[float]) -> bool:
        """Whether the tensors were changed: all of one dtype and device, and nothing in the way.

        Otherwise nothing has happened, and each row wants to be looked at.
        """
        places = self.places
        arrays = [[t._array for t in row] for row in rows]
        if not arrays:
            return True
        first = arrays[0][0]
        kind, dtype = first.__class__, first.dtype
        backend = OF_CLASS.get(kind)
        if backend is None or current().writing is not None:
            return False
        for row in arrays:
            shape = row[0].shape
            for a in row:
                if a.dtype is not dtype or a.shape != shape or a.__class__ is not kind:
                    return False
        if not backend.all_plain([row[p] for row in arrays for p in places]):
            return False
        aliases = [row[p]._alias or share(row[p]) for row in rows for p in places]
        for alias in aliases:
            if alias.inference:
                return False
        self._launch(backend, arrays, numbers)
        for alias in aliases:
            alias.version.value += 1
        return True

    def _launch(self, backend: Backend, arrays: list[list[Any]], numbers: Sequence[float]) -> None:
        token = backend.begin()
        try:
            backend.update(self.exprs, arrays, numbers, self.places)
        finally:
            backend.end(token)

    def _check(self, row: Row) -> None:
        """Raise unless the tensors of a row fit together."""
        kinds = {"dtype": DTypeError, "shape": ShapeError, "device": DeviceError}
        for kind, error in kinds.items():
            if len({getattr(t, kind) for t in row}) > 1:
                shown = ", ".join(f"{t.dtype} of shape {t.shape} on {t.device}" for t in row)
                raise error(
                    f"[{self.name}] a parameter, its gradient and what is kept with it have one "
                    f"{kind}, got {shown}; is the state that of another parameter?"
                )
