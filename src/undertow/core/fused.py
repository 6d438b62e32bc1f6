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

from ..backends.registry import OF_CLASS, backend_of
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


class Prepared:
    """Some expressions as a function of their operands, made for each backend that meets them.

    `by_class` has it where the class of an array tells the backend (`OF_CLASS`), else ask `of`.
    """

    __slots__ = ("arrays", "by_class", "exprs", "largest", "others")

    def __init__(
        self, exprs: tuple[Expr, ...], arrays: tuple[bool, ...], largest: bool = False
    ) -> None:
        self.exprs = exprs
        self.arrays = arrays
        self.largest = largest
        self.by_class: dict[type, Callable[..., Any]] = {}
        self.others: dict[Any, Callable[..., Any]] = {}

    def of(self, array: Any) -> Callable[..., Any]:
        """The function for the backend of an array."""
        kind = array.__class__
        table, key = (self.by_class, kind) if kind in OF_CLASS else (self.others, array.backend)
        run = table.get(key)
        if run is None:
            run = table[key] = backend_of(array).prepare(self.exprs, self.arrays, self.largest)
        return run


class Fused:
    """The gradients of an op's inputs as expressions over the cotangent and the saved values.

    `exprs` has one per input: None where none is wanted. An expression that is the cotangent
    itself is passed through, a constant is filled in. Where both inputs are one tensor, the sum of
    what they get is one expression, too: the first gets it, the second nothing.
    """

    __slots__ = ("both", "constant", "exprs", "numbers", "places", "plain", "runs", "single")
    adds = False  # whether a gradient may be added to what is there as it is computed

    def __init__(self, exprs: list[Expr | None], arrays: tuple[bool, ...], pair: bool) -> None:
        self.exprs = exprs
        computed = [e for e in exprs if e is not None and e.head not in ("arg", "const")]
        self.runs = Prepared(tuple(computed), (True, *arrays), True) if computed else None
        self.numbers = () if all(arrays) else tuple([not is_array for is_array in arrays])
        # Where each input's gradient is among what is computed, if not simply in order.
        self.places: list[int | float | None] | None = None
        self.single = len(computed) == 1
        in_order = [*computed, *[None] * (len(exprs) - len(computed))]
        if any(e is not c for e, c in zip(exprs, in_order, strict=True)):
            order = iter(range(len(computed)))
            self.places = [None if e is None else _place(e, order) for e in exprs]
        # Arrays that are saved, 1 or 2, where nothing else is to be looked at; else 0.
        easy = self.runs is not None and self.places is None and not self.numbers
        self.plain = len(arrays) if easy and len(arrays) in (1, 2) else 0
        self.constant = any(p.__class__ is float for p in self.places or ())
        self.both: Prepared | None = None
        if pair and len(computed) == 2:
            one = [substitute(e, [arg(0), arg(1), arg(1)]) for e in computed]
            self.both = Prepared((one[0] + one[1],), (True, True), True)

    def gradients(self, g: Any, saved: Sequence[Any], row: Sequence[Any]) -> Sequence[Any]:
        """For each input its gradient, as an array; None where there is none, or none more."""
        runs = self.runs
        found: Any = ()
        if runs is not None:
            run = runs.by_class.get(g.__class__) or runs.of(g)
            count = len(saved)
            if self.numbers:
                pairs = zip(saved, self.numbers, strict=True)
                found = run(g, *[s if number else s._array for s, number in pairs])
            elif count == 2:
                a, b = saved
                a, b = a._array, b._array
                if a is b and self.both is not None and _one_target(row):
                    return self.both.of(g)(g, a), None
                found = run(g, a, b)
            elif count == 1:
                found = run(g, saved[0]._array)
            else:
                found = run(g, *[s._array for s in saved])
            if self.single:
                found = (found,)
        if self.places is None:
            return found
        if self.constant:
            k = backend_of(g)
            filled = [
                k.full(g.shape, p, g.dtype) if p.__class__ is float else p for p in self.places
            ]
            found = [*found, g]  # g is the last one, _THROUGH
            return [found[p] if p.__class__ is int else p for p in filled]
        return [None if p is None else g if p == _THROUGH else found[p] for p in self.places]


def _one_target(row: Sequence[Any]) -> bool:
    """Whether both gradients go to one place: one array may belong to two tensors."""
    first, second = row
    return first is not None and second is not None and first[:2] == second[:2]


class Bare:
    """The gradients of an op's inputs by rules for arrays.

    Note [bare rules]
    Some ops that every training step is made of (products, sums, what broadcasting inserts) say
    their rules a second time, in forms: `bare={"x": lambda k, g, x_shape: …}`, with the arguments
    of the rule itself after the backend, arrays in the place of tensors. A first-order backward
    runs those, at a fraction of the overhead; tests hold both against each other.
    """

    __slots__ = ("adds", "rules", "tensors")
    plain = 0

    def __init__(self, rules: list[Any], tensors: tuple[int, ...], adds: bool) -> None:
        self.adds = adds  # see Note [added products]
        self.rules = rules
        self.tensors = tensors

    def gradients(self, g: Any, saved: Sequence[Any], row: Sequence[Any]) -> Sequence[Any]:
        """For each input its gradient, as an array; None where `row` does not want one."""
        k = backend_of(g)
        values = saved
        if self.tensors:
            values = [s._array if j in self.tensors else s for j, s in enumerate(saved)]
        results: list[Any] = []
        for rule, target in zip(self.rules, row, strict=True):
            if rule is None or target is None:
                results.append(None)
            else:
                results.append(rule[0](k, g, *[values[j] for j in rule[1]]))
        return results


_THROUGH = -1


def _place(expr: Expr, order: Iterator[int]) -> int | float:
    """Where an input's gradient comes from: its number among the computed, or a float constant."""
    if expr.head == "const":
        return float(expr.args[0])
    return _THROUGH if expr.head == "arg" else next(order)
