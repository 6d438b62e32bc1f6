"""Rules as scalar expressions: what a first-order backward runs on bare arrays.

Note [fused rules]
The rule of an elementwise op is usually elementwise itself. Called with scalar expressions in
place of tensors it then yields one expression, and those of all inputs together are one kernel,
`maps`, on any device. A first-order backward takes that way; with create_graph the rule runs as
written, or as an op of its own (Note [derived ops]).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..backends.registry import OF_CLASS, backend_of
from ..errors import UndertowError
from ..kernel.expr import Expr, arg, substitute, trace
from .tensor import Alias

if TYPE_CHECKING:
    from .node import Node

# What a rule raises when it meets an expression where it needs a tensor. Nothing else may be caught
# here: a signal handler's exception can come out of any line.
_NOT_SCALAR = (UndertowError, AttributeError, TypeError, ValueError)


# The class of arrays that tells its backend; None while a call is recorded, when every form has to
# be asked of the backend itself.
KIND: type | None = next(iter(OF_CLASS))


def traced(rule: Callable[..., Any], arity: int) -> Expr | None:
    """A rule as an expression of its arguments; None if it uses something not elementwise."""
    try:
        return trace(rule, arity)
    except _NOT_SCALAR:
        return None


class Prepared:
    """Some expressions as a function of their operands, made for each backend that meets them.

    For arrays of the class KIND it is `run`, else ask `of`.
    """

    __slots__ = ("arrays", "exprs", "kind", "largest", "made", "run")

    def __init__(
        self, exprs: tuple[Expr, ...], arrays: tuple[bool, ...], largest: bool = False
    ) -> None:
        self.exprs = exprs
        self.arrays = arrays
        self.largest = largest
        self.made: dict[Any, Callable[..., Any]] = {}
        self.kind: type | None = None  # KIND, once `run` is the function for it
        self.run: Callable[..., Any] = self._first

    def of(self, array: Any) -> Callable[..., Any]:
        """The function for the backend of an array."""
        backend = backend_of(array)
        if KIND is None:
            return backend.prepare(self.exprs, self.arrays, self.largest)
        run = self.made.get(backend)
        if run is None:
            run = backend.prepare(self.exprs, self.arrays, self.largest)
            if backend.frames or backend.steps is not None:  # one for each call of a transform
                return run
            self.made[backend] = run
            if array.__class__ is KIND:
                self.run = run
                self.kind = KIND
        return run

    def _first(self, *operands: Any) -> Any:
        return self.of(operands[0])(*operands)


class Fused:
    """The gradients of an op's inputs as expressions over the cotangent and the saved values.

    `exprs` has one per input: None where none is wanted. An expression that is the cotangent
    itself is passed through, a constant is filled in. Where both inputs are one tensor, the sum of
    what they get is one expression, too: the first gets it, the second nothing.
    """

    __slots__ = ("both", "constant", "exprs", "gradients", "places", "runs", "single")
    adds = False  # whether a gradient may be added to what is there as it is computed

    def __init__(self, exprs: list[Expr | None], arrays: tuple[bool, ...], pair: bool) -> None:
        self.exprs = exprs
        computed = [e for e in exprs if e is not None and e.head not in ("arg", "const")]
        self.runs = Prepared(tuple(computed), (True, *arrays), True)
        self.single = len(computed) == 1
        self.both: Prepared | None = None
        if pair and len(computed) == 2:
            one = [substitute(e, [arg(0), arg(1), arg(1)]) for e in computed]
            self.both = Prepared((one[0] + one[1],), (True, True), True)
        # For each input its gradient, as an array; None where there is none, or none more: a
        # function of the cotangent, the node and the row of targets.
        self.gradients: Callable[[Any, Node, Sequence[Any]], Sequence[Any]]
        in_order = [*computed, *[None] * (len(exprs) - len(computed))]
        if not computed or any(e is not c for e, c in zip(exprs, in_order, strict=True)):
            order = iter(range(len(computed)))
            # Where each input's gradient is among what is computed.
            self.places: list[Any] = [None if e is None else _place(e, order) for e in exprs]
            self.constant = any(p.__class__ is float for p in self.places)
            self.gradients = self._placed
        elif arrays == (True,) and self.single:
            self.gradients = self._of_one
        elif arrays == (True, True):
            self.gradients = self._of_two
        else:
            self.gradients = self._in_order

    def _of_one(self, g: Any, node: Node, row: Sequence[Any]) -> Sequence[Any]:
        """Those of one input, by one saved tensor."""
        (a,) = node.saved
        (x,) = (a._array,) if a._alias is None else saved_arrays(node)
        runs = self.runs
        run = runs.run if g.__class__ is KIND else runs.of(g)
        return (run(g, x),)

    def _of_two(self, g: Any, node: Node, row: Sequence[Any]) -> Sequence[Any]:
        """Those that two saved tensors give."""
        a, b = node.saved
        if a._alias is None and b._alias is None:
            x, y = a._array, b._array
        else:
            x, y = saved_arrays(node)
        if x is y and self.both is not None and _one_target(row):
            return self.both.of(g)(g, x), None
        runs = self.runs
        run = runs.run if g.__class__ is KIND else runs.of(g)
        found = run(g, x, y)
        return (found,) if self.single else found

    def _in_order(self, g: Any, node: Node, row: Sequence[Any]) -> Sequence[Any]:
        """Those of the first inputs, by whatever is saved."""
        found = self.runs.of(g)(g, *saved_arrays(node))
        return (found,) if self.single else found

    def _placed(self, g: Any, node: Node, row: Sequence[Any]) -> Sequence[Any]:
        """Those of any inputs, some of which are not computed."""
        found = self._in_order(g, node, row) if self.runs.exprs else ()
        if self.constant:
            k = backend_of(g)
            filled = [
                k.full(g.shape, p, g.dtype) if p.__class__ is float else p for p in self.places
            ]
            found = [*found, g]  # g is the last one, _THROUGH
            return [found[p] if p.__class__ is int else p for p in filled]
        return [None if p is None else g if p == _THROUGH else found[p] for p in self.places]


def saved_arrays(node: Node) -> list[Any]:
    """What a node saved, arrays in the place of tensors; an error if one was changed since."""
    saved, versions = node.saved, node.versions
    values = list(saved)
    for count, j in enumerate(node.plan.tensors):
        alias = saved[j]._alias
        if alias is not None:
            expected = 0 if versions is None else versions[count]
            if alias.__class__ is not Alias or alias.version.value != expected:
                break  # in the keeping of hooks, or an error
        values[j] = saved[j]._array
    else:
        return values
    values = node.plan.unpack(node, saved)
    for j in node.plan.tensors:
        values[j] = values[j]._array
    return values


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
    runs those, at a fraction of the overhead; tests hold both against each other. Where the rule is
    joint, so is the one for arrays (`Joint`).
    """

    __slots__ = ("adds", "rules")

    def __init__(self, rules: list[Any], adds: bool) -> None:
        """A rule and the saved values that it takes, for each input; None where none is wanted."""
        self.adds = adds  # see Note [added products]
        self.rules = [(i, *rule) for i, rule in enumerate(rules) if rule is not None]

    def gradients(self, g: Any, node: Node, row: Sequence[Any]) -> Sequence[Any]:
        """For each input its gradient, as an array; None where `row` does not want one."""
        k = OF_CLASS.get(g.__class__) or g.backend
        values = saved_arrays(node)
        results: list[Any] = [None] * len(row)
        for i, rule, picks in self.rules:
            if row[i] is None:
                continue
            if len(picks) == 1:
                results[i] = rule(k, g, values[picks[0]])
            else:
                results[i] = rule(k, g, *map(values.__getitem__, picks))
        return results


class Joint:
    """The gradients of all of an op's inputs by one rule for arrays; see Note [bare rules]."""

    __slots__ = ("picks", "rule")
    adds = False

    def __init__(self, rule: Callable[..., Any], picks: Sequence[int]) -> None:
        """After the cotangent the rule takes the saved values that `picks` tells; -1: `needs`."""
        self.rule = rule
        self.picks = picks

    def gradients(self, g: Any, node: Node, row: Sequence[Any]) -> Sequence[Any]:
        """For each input its gradient, as an array; None where `row` does not want one."""
        values = saved_arrays(node)
        values.append(tuple([target is not None for target in row]))
        found: Sequence[Any] = self.rule(
            OF_CLASS.get(g.__class__) or g.backend, g, *map(values.__getitem__, self.picks)
        )
        return found


_THROUGH = -1


def _place(expr: Expr, order: Iterator[int]) -> int | float:
    """Where an input's gradient comes from: its number among the computed, or a float constant."""
    if expr.head == "const":
        return float(expr.args[0])
    return _THROUGH if expr.head == "arg" else next(order)
