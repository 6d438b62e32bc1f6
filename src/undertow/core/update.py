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
        for row in rows:
            arrays = [t._array for t in row]
            first = arrays[0]
            kind, dtype, shape = first.__class__, first.dtype, first.shape
            backend = OF_CLASS.get(kind) or first.backend
            for a in arrays:
                if (
                    (a.dtype is not dtype and a.dtype != dtype)
                    or a.shape != shape
                    or (OF_CLASS.get(a.__class__) or a.backend) is not backend
                ):
                    raise self._misfit(row)
            for place in places:
                a, alias = arrays[place], row[place]._alias
                if (
                    not backend.writable(a)
                    or not backend.contiguous(a)
                    or writing
                    or (alias is not None and alias.inference)
                ):
                    check_writable(self.name, row[place])
            launch = launches.get((backend, dtype))
            if launch is None:
                launches[backend, dtype] = [arrays]
            else:
                launch.append(arrays)
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

    def _misfit(self, row: Row) -> Exception:
        """What is wrong with tensors that do not fit together."""
        shown = ", ".join(f"{t.dtype} of shape {t.shape} on {t.device}" for t in row)
        kinds = {DTypeError: "dtype", ShapeError: "shape", DeviceError: "device"}
        error = next(e for e, k in kinds.items() if len({str(getattr(t, k)) for t in row}) > 1)
        return error(
            f"[{self.name}] a parameter, its gradient and what is kept with it have one shape, "
            f"dtype and device, got {shown}; is the state that of another parameter?"
        )
