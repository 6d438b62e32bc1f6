"""Many tensors changed in place by scalar expressions, one kernel for all of them.

What an optimiser does: a parameter and what is kept with it, each overwritten by a formula of all
of them, without being recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..backends.base import Backend
from ..backends.registry import OF_CLASS
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
        writing = current().writing is not None
        places = self.places
        launches: dict[tuple[Backend, Any], list[list[Any]]] = {}
        backend: Any = None
        dtype = launch = None
        for row in rows:
            arrays = [t._array for t in row]
            first = arrays[0]
            kind, shape = first.__class__, first.shape
            here = OF_CLASS.get(kind) or first.backend
            if here is not backend or first.dtype is not dtype:
                backend, dtype = here, first.dtype
                launch = launches.setdefault((backend, dtype), [])
                writable, contiguous = backend.writable, backend.contiguous
            for a in arrays:
                if a.dtype is not dtype or a.shape != shape or a.__class__ is not kind:
                    self._check(row)
            if kind not in OF_CLASS:
                self._check(row)
            for place in places:
                a, alias = arrays[place], row[place]._alias
                if (
                    not writable(a)
                    or not contiguous(a)
                    or writing
                    or (alias is not None and alias.inference)
                ):
                    check_writable(self.name, row[place])
            launch.append(arrays)  # type: ignore[union-attr]
        for (backend, _), arrays_of in launches.items():
            token = backend.begin()
            try:
                backend.update(self.exprs, arrays_of, numbers, places)
            finally:
                backend.end(token)
        for row in rows:
            for place in places:
                t = row[place]
                (t._alias or share(t)).version.value += 1

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
