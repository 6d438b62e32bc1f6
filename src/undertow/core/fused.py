"""Rules as scalar expressions: what a first-order backward runs on bare arrays.

Note [fused rules]
The rule of an elementwise op is usually elementwise itself. Called with scalar expressions in
place of tensors it then yields one expression, and those of all inputs together are one kernel,
`maps`, on any device. A first-order backward takes that way; with create_graph the rule runs as
written, or as an op of its own (Note [derived ops]).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..backends.base import Backend
from ..errors import UndertowError
from ..kernel.expr import Expr, arg, substitute, trace

# What a rule raises when it meets an expression where it needs a tensor. Nothing else may be caught
# here: a signal handler's exception can come out of any line.
_NOT_SCALAR = (UndertowError, AttributeError, TypeError, ValueError)


def traced(rule: Callable[..., Any], arity: int) -> Expr | None:
    """A rule as an expression of its arguments; None if it uses something not elementwise."""
    try:
        return trace(rule, arity)
    except _NOT_SCALAR:
        return None


class Prepared(dict[Backend, Callable[..., Sequence[Any]]]):
    """Some expressions as a function of their operands, made for each backend that meets them."""

    __slots__ = ("arrays", "exprs")

    def __init__(self, exprs: tuple[Expr, ...], arrays: tuple[bool, ...]) -> None:
        self.exprs = exprs
        self.arrays = arrays

    def __missing__(self, backend: Backend) -> Callable[..., Sequence[Any]]:
        run = self[backend] = backend.prepare(self.exprs, self.arrays)
        return run


class Fused:
    """The gradients of an op's inputs as expressions over the cotangent and the saved values.

    `exprs` has one per input: None where none is wanted. An expression that is the cotangent
    itself is passed through, a constant is filled in. Where both inputs are one tensor, the sum of
    what they get is one expression, too: the first gets it, the second nothing.
    """

    __slots__ = ("both", "exprs", "numbers", "places", "runs")

    def __init__(self, exprs: list[Expr | None], arrays: tuple[bool, ...], pair: bool) -> None:
        self.exprs = exprs
        computed = [e for e in exprs if e is not None and e.head not in ("arg", "const")]
        self.runs = Prepared(tuple(computed), (True, *arrays)) if computed else None
        self.numbers = () if all(arrays) else tuple([not is_array for is_array in arrays])
        # Where each input's gradient is among what is computed, if not simply in order.
        self.places: list[int | float | None] | None = None
        if len(computed) < len(exprs):
            order = iter(range(len(computed)))
            self.places = [None if e is None else _place(e, order) for e in exprs]
        self.both: Prepared | None = None
        if pair and len(computed) == 2:
            one = [substitute(e, [arg(0), arg(1), arg(1)]) for e in computed]
            self.both = Prepared((one[0] + one[1],), (True, True))

    def gradients(self, k: Backend, g: Any, saved: Sequence[Any]) -> Sequence[Any]:
        """For each input its gradient, as an array; None where there is none, or none more."""
        if self.runs is None:
            found: Sequence[Any] = ()
        elif self.numbers:
            values = [
                s if number else s._array for s, number in zip(saved, self.numbers, strict=True)
            ]
            found = self.runs[k](g, *values)
        elif len(saved) == 2:
            a, b = saved[0]._array, saved[1]._array
            if a is b and self.both is not None:
                return *self.both[k](g, a), None
            found = self.runs[k](g, a, b)
        else:
            found = self.runs[k](g, *[s._array for s in saved])
        if self.places is None:
            return found
        return [_placed(k, p, g, found) for p in self.places]


_THROUGH = -1


def _place(expr: Expr, order: Iterator[int]) -> int | float:
    """Where an input's gradient comes from: its number among the computed, or a float constant."""
    if expr.head == "const":
        return float(expr.args[0])
    return _THROUGH if expr.head == "arg" else next(order)


def _placed(k: Backend, place: int | float | None, g: Any, found: Sequence[Any]) -> Any:
    if place.__class__ is float:
        return k.full(g.shape, place, g.dtype)
    return None if place is None else g if place == _THROUGH else found[place]  # type: ignore[index]
