"""Forward mode: what an op does to tangents, from the rules that it has.

Note [pushing forward]
An op has no rule for tangents, but for a few that have a quicker one (`jvp`): what it does to them
follows from those for cotangents, and from what these ask for.
  - Elementwise, or `symmetric`: the derivative is its own transpose, so the rule is the same.
  - No rule asks for an input that is differentiated, nor for an output: the op is linear, and the
    tangent is the op itself, of the tangents. (`affine=True` in its definition says that there is a
    constant besides, as the value that `pad` fills in.)
  - No rule asks for its own input, nor for an output: the op is linear in each input. One term for
    each tangent has it in the place of the input; what no rule asks for is an addend.
  - Any other: a rule is a linear function of the cotangent, so its own derivative by that, applied
    to the tangent, is the rule transposed: two vjps, of this op alone.
An op without a rule raises when it meets a tangent, unless its result has no derivative.

What is recorded of a step is the op with its dual inputs, so that a backward pass inside the level
has tangents too (forward over reverse). The tangent is computed by ops, which are recorded
themselves (reverse over forward).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

from ..backends.batch import frames_of, towering
from ..backends.dual import STEPS, DualArray, Level, Series, level_at, living, parts, primal_of
from ..backends.holders import getrefcount
from ..backends.registry import backend_of
from ..backends.strided import overlaps
from ..core import inplace
from ..core.batching import met
from ..core.derived import ordered
from ..core.dispatch import alike, apply, cast, expand
from ..core.fused import traced
from ..core.inplace import replay, zeros_of
from ..core.modes import current, enter, with_grad
from ..core.node import Node, no_rule
from ..core.op import Op, elementwise_op
from ..core.plan import Plan
from ..core.record import record
from ..core.saved import Group, Packed
from ..core.tensor import Tensor, is_dual, node_of, share, wrap, wrap_shared
from ..core.views import viewed
from ..dtypes import of_array
from ..errors import GradientError, UnsupportedError
from ..kernel.expr import arg, substitute


class DualNode(Node):
    """The node of an op of dual inputs: its rule runs as written, on tensors."""

    __slots__ = ()


# Tensors and their parts ----------------------------------------------------------------------
def level_of(t: Any) -> Level | None:
    """The innermost level at which a tensor has a tangent."""
    return level_at(t._array) if isinstance(t, Tensor) else None


def primal(t: Tensor, level: Level) -> Tensor:
    """A tensor without its tangent of a level; its history is the same."""
    array = parts(t._array, level)[0]
    if array is t._array:
        return t
    p = wrap(array, node_of(t), t._index)
    if t._alias is not None and t._alias.version.overwritten:
        p._alias = t._alias
    return p


def unpacked(t: Tensor, level: Level) -> tuple[Tensor, Tensor | None]:
    """The primal of a tensor at a level, for a user, and its tangent or None."""
    array, change = parts(t._array, level)
    if change is None:
        return t, None
    node = node_of(t)
    p = wrap(array) if t._alias is None else wrap_shared(array, t._alias)
    p._node, p._index = node, t._index
    return p, change


def tangent(t: Any, level: Level) -> Any:
    """The tangent of a tensor at a level, or None; a `Series` at a level of Taylor mode."""
    return parts(t._array, level)[1] if isinstance(t, Tensor) else None


def laid_out(t: Tensor, like: Any) -> Tensor:
    """A tangent in the layout of its primal, so that both have the same views."""
    array = t._array
    if array.strides == like.strides or backend_of(like).contiguous(like):
        if array.strides == like.strides or backend_of(array).contiguous(array):
            return t
        return apply(inplace._laid_out, (t,), (None,))
    if overlaps(like.shape, like.strides):
        return t if backend_of(array).contiguous(array) else apply(inplace._laid_out, (t,), (None,))
    return apply(inplace._laid_out, (t,), (inplace._geometry(like, ()),))


def dual(p: Tensor, t: Tensor, level: Level) -> Any:
    """The dual array of a primal and its tangent."""
    return DualArray(p._array, fitted(t, p._array), level)


def fitted(t: Tensor, array: Any) -> Tensor:
    """A tangent in the shape, dtype and layout of its primal."""
    if t._array.shape != array.shape:
        t = expand(t, tuple(array.shape))
    if t._array.dtype != array.dtype:
        t = cast(t, of_array(array.dtype))
    return laid_out(t, array)


# The step of an op ------------------------------------------------------------------------------
def step(op: Op, inputs: Sequence[Any], params: tuple[Any, ...]) -> Any:
    """Run an op of which some input has a tangent; see Note [pushing forward]."""
    level: Level | None = None
    for t in inputs:
        found = level_of(t)
        if found is not None and (level is None or found.number > level.number):
            level = found
    if level is None:  # of levels that have ended
        return apply(op, [_without_dead(t) for t in inputs], params)
    if len({frames_of(t._array) for t in inputs if isinstance(t, Tensor)}) > 1:
        inputs = met(inputs)  # so that the gradient of what a batch has in common is a sum
    primals = [primal(t, level) if isinstance(t, Tensor) else t for t in inputs]
    tangents = [tangent(t, level) for t in inputs]
    state = current()
    if op.view:
        seen = _of_primals(op, primals, params)
        view = DualArray(seen._array, None, level)
        return viewed(op, inputs[0], view, params)
    result = _of_primals(op, primals, params)
    several = op.outputs != 1
    outs = [wrap(t._array) for t in (result if several else (result,))]
    node = None
    if state.grad:
        record(op, inputs, params, outs)
        node = next((o._node for o in outs if o._node is not None), None)
        if node is not None:
            node.__class__ = DualNode
    elif state.inference:
        for out in outs:
            share(out).inference = True
    plain = [wrap(o._array, o._node, o._index) for o in outs]
    if level.order > 1:
        expanded(op, inputs, params, outs, plain, level)
        if node is not None:
            _save_duals(node, outs)
        return tuple(outs) if several else outs[0]
    moved = pushed(op, primals, tangents, params, plain)
    for out, change in zip(outs, moved, strict=True):
        if change is not None:
            if any(c is not None and c._array is change._array for c in tangents):
                change = change.clone()
            out._array = dual(out, change, level)
    if node is not None:
        _save_duals(node, outs)
    return tuple(outs) if several else outs[0]


def _without_dead(t: Any) -> Any:
    if isinstance(t, Tensor) and t._array.__class__ is DualArray:
        kept = wrap(living(t._array), node_of(t), t._index)
        if t._alias is not None:
            kept._alias = t._alias
        return kept
    return t


def _of_primals(op: Op, inputs: Sequence[Any], params: tuple[Any, ...]) -> Any:
    """The op of the primals, unrecorded, since the op of the dual inputs is.

    Where they have tangents of levels below, these are recorded, and nothing else would do so.
    """
    if any(is_dual(t) for t in inputs):
        return apply(op, inputs, params)
    state = current()
    enter(with_grad(state, False) if state.plain else state.but(grad=False))
    try:
        return apply(op, inputs, params)
    finally:
        enter(state)


def _save_duals(node: Node, outs: Sequence[Tensor]) -> None:
    """Let the outputs that a node saved have their tangents."""
    for j in node.plan.outs:
        saved = node.saved[j]
        if isinstance(saved, Packed):
            raise UnsupportedError("[forward mode] saved-tensor hooks do not keep tangents")
        saved._array = outs[node.plan.recipe[j][1]]._array


def seen(op: Op, x: Tensor, view: Any, params: tuple[Any, ...]) -> Any:
    """A view that a form made of the array of `x`, with its tangent."""
    if view.tangent is not None:
        return view
    if living(view) is not view:
        return view.primal
    change = tangent(x, view.level)
    if change is None:  # the view came without its tensor's
        raise GradientError(f"[{op.name}] lost the tangent of a view")
    below = view.primal
    if below.__class__ is DualArray:
        below = seen(op, primal(x, view.level), below, params)
    if isinstance(change, Series):
        series = change.each(lambda c: apply(op, (c,), params))
        return DualArray(below, forced(series, view.level), view.level)
    return DualArray(below, apply(op, (change,), params), view.level)


# What an op does to tangents ---------------------------------------------------------------------
def pushed(
    op: Op,
    ins: Sequence[Any],
    changes: Sequence[Tensor | None],
    params: tuple[Any, ...],
    outs: Sequence[Tensor],
) -> list[Tensor | None]:
    """The tangents of an op's outputs; None for those that do not vary."""
    varying = varies(op, changes, outs)
    none: list[Tensor | None] = [None] * len(outs)
    if not any(varying):
        return none
    real = not any(o._array.dtype.kind == "c" for o in (*outs, *ins) if isinstance(o, Tensor))
    kind = _kind(op)
    if kind == "own":
        found: Any = _by_its_own(op, ins, changes, params, outs)
    elif kind == "same" and (real or (op.conjugate and outs[0]._array.dtype.kind == "c")):
        found = _by_rules(op, ins, changes, params, outs)
    elif kind == "linear":
        found = _linear(op, ins, changes, params)
    elif kind == "multilinear":
        found = _multilinear(op, ins, changes, params)
    else:
        return _by_two_vjps(op, ins, changes, params, outs, varying)
    listed = list(found) if isinstance(found, tuple) else [found]
    listed += none[len(listed) :]
    return [t if i < len(varying) and varying[i] else None for i, t in enumerate(listed)]


def varies(op: Op, changes: Sequence[Any], outs: Sequence[Tensor]) -> list[bool]:
    """Which outputs have a derivative; an error if there is no rule for it."""
    varying = [o._array.dtype.kind in "fcV" for o in outs[: op.differentiable]]
    for i, change in enumerate(changes if any(varying) else ()):
        name = op.inputs[min(i, op.arity - 1)]
        if change is not None and name not in op.rules:
            raise no_rule(op.name, name)
    return varying


def _kind(op: Op) -> str:
    if op.jvp is not None:
        return "own"
    if op.scalar is not None or op.symmetric:
        return "same"
    if op.affine or op.joint:
        return "any"
    asked = {target: set(wants) for target, (_, wants) in op.rules.items()}
    everything = set().union(*asked.values())
    if any(a[:3] == "out" and (a == "out" or a[3:].isdigit()) for a in everything):
        return "any"
    if everything.isdisjoint(op.rules):
        return "linear"
    if op.outputs == 1 and all(target not in wants for target, wants in asked.items()):
        return "multilinear"
    return "any"


def _by_rules(op: Op, ins: Any, changes: Any, params: Any, outs: Any) -> Any:
    """The rules themselves, of tangents in the place of cotangents."""
    (out,) = outs
    shape = tuple(out._array.shape)
    plain = not any(is_dual(t) for t in (*ins, *changes, out))
    if op.scalar is not None and plain and not _recorded(*ins, *changes, out):
        fused = _fused(op, tuple([c is not None for c in changes]))
        operands = [*[c for c in changes if c is not None], *ins, out]
        if len({backend_of(o._array) for o in operands if isinstance(o, Tensor)}) > 1:
            operands = met(operands)  # some are mapped by `vmap`
        if fused is not None and alike(operands, shape):
            return apply(fused, operands)
    total: Any = None
    for i, change in enumerate(changes):
        if change is None:
            continue
        rule, wants = op.rules[op.inputs[min(i, op.arity - 1)]]
        given: list[Any] = []
        for want in wants:
            if want == "g":
                change = expand(change, shape)
                if change._array.dtype != out._array.dtype and op.kind != "real":
                    change = cast(change, out.dtype)
                given.append(change)
            elif want == "out":
                given.append(out)
            elif want in op.inputs:
                given.append(ins[op.inputs.index(want)])
            elif want in op.params:
                given.append(params[op.params.index(want)])
            elif want.endswith("_shape"):
                given.append(tuple(ins[op.inputs.index(want[:-6])]._array.shape))
            else:
                raise UnsupportedError(f"[{op.name}] a rule that asks for {want} has no tangent")
        part = rule(*given)
        if part is None:
            continue
        total = part if total is None else total + part
    return zeros_of(out) if total is None else total


def _by_its_own(op: Op, ins: Any, changes: Any, params: Any, outs: Any) -> Any:
    """The rule for tangents that the op has."""
    assert op.jvp is not None
    rule, wants = op.jvp
    known = {"ts": changes, "out": outs[0], **{f"out{i}": o for i, o in enumerate(outs)}}
    known.update(zip(op.inputs, ins, strict=True))
    known.update(zip(op.params, params, strict=True))
    return rule(*[known[want] for want in wants])


def _recorded(*tensors: Any) -> bool:
    """Whether something is recorded of any of these."""
    return current().grad and any(isinstance(t, Tensor) and node_of(t) is not None for t in tensors)


_FUSED: dict[tuple[Op, tuple[bool, ...]], Op | None] = {}


def _fused(op: Op, moved: tuple[bool, ...]) -> Op | None:
    """The rules of an elementwise op as one kernel of tangents, inputs and output, or None."""
    key = (op, moved)
    if key not in _FUSED:
        if len(_FUSED) > _MOST:
            _FUSED.clear()
        count = sum(moved)
        inputs = [arg(count + i) for i in range(op.arity)]
        total: Any = None
        tangents = iter(range(count))
        for name in [n for n, m in zip(op.inputs, moved, strict=True) if m]:
            rule, wants = op.rules[name]
            known = all(w in ("g", "out") or w in op.inputs for w in wants)
            expr = traced(rule, len(wants)) if known else None
            if expr is None:
                total = None
                break
            places = {"g": arg(next(tangents)), "out": arg(count + op.arity)}
            places |= dict(zip(op.inputs, inputs, strict=True))
            part = substitute(expr, [places[w] for w in wants])
            total = part if total is None else total + part
        made = None
        computes = total is not None and total.head != "arg"
        if computes and any(n.head == "arg" for n in ordered(total)):
            names = " ".join(f"x{i}" for i in range(count + op.arity + 1))
            made = elementwise_op(
                f"{op.name}_forward",
                lambda *xs, e=total: substitute(e, xs),
                inputs=names,
                derived=True,
            )
        _FUSED[key] = made
    return _FUSED[key]


_MOST = 1024


def _linear(op: Op, ins: Any, changes: Any, params: Any) -> Any:
    """The op, of the tangents; zeros where an input does not vary."""
    given = []
    for i, (x, change) in enumerate(zip(ins, changes, strict=True)):
        if change is None and isinstance(x, Tensor):
            name = op.inputs[min(i, op.arity - 1)]
            change = zeros_of(x) if name in op.rules else x
        given.append(x if change is None else change)
    return apply(op, given, params)


def _multilinear(op: Op, ins: Any, changes: Any, params: Any) -> Any:
    """A term for each tangent; the addends' tangents are in the first."""
    asked = set().union(*(wants for _, wants in op.rules.values()))
    factors = [i for i, name in enumerate(op.inputs) if name in op.rules and name in asked]
    addends = [
        i
        for i, name in enumerate(op.inputs)
        if name in op.rules and name not in asked and isinstance(ins[i], Tensor)
    ]
    places = [i for i in factors if changes[i] is not None]
    total: Any = None
    for count, place in enumerate(places or factors[:1]):
        given = list(ins)
        change = changes[place]
        given[place] = zeros_of(ins[place]) if change is None else change
        for i in addends:
            added = None if count else changes[i]
            given[i] = zeros_of(ins[i]) if added is None else added
        part = apply(op, given, params)
        total = part if total is None else total + part
    return total


def _by_two_vjps(
    op: Op, ins: Any, changes: Any, params: Any, outs: Any, varying: list[bool]
) -> list[Tensor | None]:
    """The rules, transposed: their derivatives by the cotangents, applied to the tangents."""
    from .api import grad as gradients  # which needs the engine, as that needs the core

    recorded = _recorded(*ins, *changes, *outs)
    complex_out = any(o._array.dtype.kind == "c" for o in outs[: op.differentiable])
    ruled = op.on_complex if complex_out else op
    needs = numbers = 0
    for i, (x, change) in enumerate(zip(ins, changes, strict=True)):
        needs |= (change is not None) << i
        numbers |= (not isinstance(x, Tensor)) << i
    plan: Plan = ruled.plan(len(ins), needs, numbers)
    state = current()
    enter(state.but(grad=True, inference=False))
    try:
        cotangents: list[Any] = [None] * len(outs)
        for i, varies in enumerate(varying):
            if varies:
                cotangents[i] = wrap(zeros_of(outs[i])._array).requires_grad_()
        saved, _ = plan.save(ins, params, outs)
        values = [tuple(v) if isinstance(v, Group) else v for v in saved]
        if not recorded:
            values = [_constant(v) for v in values]
        elif plan.outs:
            for j in plan.outs:
                values[j] = outs[plan.recipe[j][1]]
        wanted = [None if change is None else True for change in changes]
        rows = plan.run(None, cotangents, values, wanted)  # type: ignore[arg-type]
        pairs = [
            (row, cast(change, row.dtype))
            for row, change in zip(rows, changes, strict=True)
            if row is not None and change is not None and node_of(row) is not None
        ]
        none: list[Tensor | None] = [None] * len(outs)
        if not pairs:
            return [zeros_of(o) if v else None for o, v in zip(outs, varying, strict=False)] + (
                none[len(varying) :]
            )
        leaves = [c for c in cotangents if c is not None]
        found = iter(
            gradients(
                [row for row, _ in pairs],
                leaves,
                [change for _, change in pairs],
                create_graph=bool(recorded),
                materialize_grads=True,
            )
        )
        return [None if c is None else next(found) for c in cotangents]
    finally:
        enter(state)


def _constant(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value if node_of(value) is None else value._same()
    if isinstance(value, tuple) and any(isinstance(v, Tensor) for v in value):
        return tuple(_constant(v) for v in value)
    return value


# Taylor mode -------------------------------------------------------------------------------------
# Note [Taylor mode]
# At a level of an order above 1 the tangent is a series: the Taylor coefficients c1, c2 … of the
# array along a curve x(t). Linear ops take each coefficient by itself, products are convolved, and
# for all others there is one way: y(t) = f(x(t)) has the derivative y' = pushed(x, x', y), which
# is a program of ops (Note [pushing forward]). It runs on the series themselves, and since the
# coefficient k of y is that of y' at k - 1, over k, it asks only for those that are known by then.
# So series are made when they are asked for, but only inside of one op: when it ends, all
# coefficients of its results are there, so that nobody can change an input in between.
def forced(series: Series, level: Level) -> Series:
    """A series whose coefficients are there, but inside of an op."""
    if not level.forcing:
        level.forcing = True
        try:
            for k in range(1, level.order + 1):
                series[k]
        finally:
            level.forcing = False
    return series


def coefficient(t: Any, k: int, level: Level) -> Any:
    """A Taylor coefficient of a tensor, or number; None for zeros."""
    if k == 0:
        return primal(t, level) if isinstance(t, Tensor) else t
    series = tangent(t, level)
    return None if series is None else series[k]


def expanded(
    op: Op, ins: Sequence[Any], params: Any, outs: list[Tensor], plain: Any, level: Level
) -> None:
    """Give the outputs of an op their series; see Note [Taylor mode]."""
    varying = varies(op, [tangent(t, level) for t in ins], outs)
    if not any(varying):
        return
    kind = _kind(op)
    makes: list[Any]
    if kind == "linear":
        makes = _each(len(outs), lambda k: _linear_term(op, ins, params, k, level))
    elif kind == "multilinear":
        makes = [lambda k: _leibniz(op, ins, params, k, level)]
    elif op.scalar is not None and arithmetic(op.expr):
        makes = [_Arithmetic(op.expr, ins, level, plain[0]).root]
    elif (rule := _rule_expr(op, ins, level)) is not None:
        makes = [_by_rate(rule, ins, outs[0], level)]
    else:
        rates = _Rates(op, ins, params, outs, level)
        makes = [partial(rates.coefficient, i) for i in range(len(outs))]
    made = []
    for out, make, varies_ in zip(outs, makes, varying, strict=False):
        if varies_:
            array = out._array
            series = Series(make).each(partial(fitted, array=array))
            out._array = DualArray(array, series, level)
            made.append(series)
    if not level.forcing:
        for series in made:
            forced(series, level)
        for series in made:
            series.make = _beyond


def _beyond(k: int) -> Any:
    raise GradientError(f"[jet] a coefficient of order {k} was asked for, which is not computed")


def _each(count: int, make: Any) -> list[Any]:
    """For each of several outputs, which are made together, what gives its coefficients."""
    known: dict[int, Any] = {}

    def one(k: int, i: int) -> Any:
        if k not in known:
            known[k] = make(k)
        found = known[k]
        return found[i] if found is not None and count > 1 else found

    return [partial(one, i=i) for i in range(count)]


def _linear_term(op: Op, ins: Any, params: Any, k: int, level: Level) -> Any:
    changes = [coefficient(t, k, level) if isinstance(t, Tensor) else None for t in ins]
    if all(c is None for c in changes):
        return None
    return _linear(op, [coefficient(t, 0, level) for t in ins], changes, params)


def _leibniz(op: Op, ins: Any, params: Any, k: int, level: Level) -> Any:
    """The sum over all products of coefficients whose orders add up to k."""
    asked = set().union(*(wants for _, wants in op.rules.values()))
    ruled = [
        i for i, name in enumerate(op.inputs) if name in op.rules and isinstance(ins[i], Tensor)
    ]
    factors = [i for i in ruled if op.inputs[i] in asked]
    addends = [i for i in ruled if op.inputs[i] not in asked]
    added = {i: coefficient(ins[i], k, level) for i in addends}
    terms = []
    for orders in product(range(k + 1), repeat=len(factors)):
        if sum(orders) == k:
            values = [coefficient(ins[i], n, level) for i, n in zip(factors, orders, strict=True)]
            if all(v is not None for v in values):
                terms.append(values)
    if not terms:
        if all(c is None for c in added.values()):
            return None
        values = [coefficient(ins[i], 0, level) for i in factors]
        terms.append([zeros_of(values[0]), *values[1:]])
    total: Any = None
    for values in terms:
        given = [coefficient(t, 0, level) for t in ins]
        for i, v in zip(factors, values, strict=True):
            given[i] = v
        for i in addends:
            c = added[i] if total is None else None
            given[i] = zeros_of(given[i]) if c is None else c
        part = apply(op, given, params)
        total = part if total is None else total + part
    return total


class _Rates:
    """The derivatives of an op's outputs along the curve, as series."""

    def __init__(self, op: Op, ins: Any, params: Any, outs: Any, level: Level) -> None:
        self.given = op, ins, params, outs
        self.level = level
        self.found: Any = None

    def coefficient(self, i: int, k: int) -> Any:
        """A coefficient of the output i."""
        if self.found is None:
            op, ins, params, outs = self.given
            changes = [_rate(t, self.level) for t in ins]
            self.found = pushed(op, ins, changes, params, outs)
        rate = self.found[i]
        c = None if rate is None else coefficient(rate, k - 1, self.level)
        return c if c is None or k == 1 else c * (1 / k)


def _rule_expr(op: Op, ins: Any, level: Level) -> Any:
    """The rules of an elementwise op as one arithmetic expression, or None; see `_fused`."""
    if op.scalar is None or not all(isinstance(t, Tensor) for t in ins):
        return None
    if any(t._array.dtype.kind != "f" for t in ins):
        return None
    fused = _fused(op, tuple([tangent(t, level) is not None for t in ins]))
    return fused.expr if fused is not None and arithmetic(fused.expr) else None


def _by_rate(expr: Any, ins: Any, out: Tensor, level: Level) -> Any:
    """What gives the coefficients of an output whose derivative is an arithmetic expression."""
    found: list[_Arithmetic] = []

    def make(k: int) -> Any:
        if not found:  # now the output has its series
            rates = [rate for t in ins if (rate := _rate(t, level)) is not None]
            found.append(_Arithmetic(expr, [*rates, *ins, out], level))
        c = found[0].root(k - 1)
        if isinstance(c, (int, float, complex)):  # the rule is a number
            c = zeros_of(primal(out, level)) + c if c else None
        return c if c is None or k == 1 else c * (1 / k)

    return make


def _rate(t: Any, level: Level) -> Any:
    """The derivative of a tensor along the curve, itself a tensor with a series, or None."""
    series = tangent(t, level)
    if not isinstance(series, Series):
        return None
    first = series[1]
    if first is None:
        first = zeros_of(primal(t, level))
    later = Series(lambda k: None if (c := series[k + 1]) is None else c * float(k + 1))
    return wrap(DualArray(first._array, later, level), node_of(first), first._index)


def arithmetic(expr: Any) -> bool:
    """Whether an expression has only sums, differences, products and quotients."""
    return all(n.head in ("arg", "const", "add", "sub", "neg", "mul", "div") for n in ordered(expr))


class _Arithmetic:
    """The coefficients of an arithmetic expression, each node's once."""

    def __init__(self, expr: Any, ins: Any, level: Level, out: Tensor | None = None) -> None:
        self.expr, self.ins, self.level = expr, ins, level
        self.known: dict[tuple[int, int], Any] = {} if out is None else {(id(expr), 0): out}

    def root(self, k: int) -> Any:
        """A coefficient of the whole."""
        return self.at(self.expr, k)

    def at(self, node: Any, k: int) -> Any:
        """A coefficient of a node; None for zeros."""
        if node.head == "arg":
            return coefficient(self.ins[node.args[0]], k, self.level)
        if node.head == "const":
            return node.args[0] if k == 0 else None
        key = (id(node), k)
        if key not in self.known:
            self.known[key] = self._found(node, k)
        return self.known[key]

    def _found(self, node: Any, k: int) -> Any:
        parts = [self.at(a, k) for a in node.args]
        if node.head == "neg":
            return None if parts[0] is None else -parts[0]
        if node.head == "add":
            return _plus(*parts)
        if node.head == "sub":
            return _plus(parts[0], None if parts[1] is None else -parts[1])
        if node.head == "mul":
            a, b = node.args
            if a is b or (a.head == b.head == "arg" and a.args == b.args):
                half = self._convolved(a, a, range((k + 1) // 2), k)
                middle = self.at(a, k // 2) if k % 2 == 0 else None
                square = None if middle is None else middle * middle
                return _plus(None if half is None else half + half, square)
            return self._convolved(a, b, range(k + 1), k)
        if k == 0:
            return parts[0] / parts[1]
        missing = self._convolved(node, node.args[1], range(k), k)
        total = _plus(parts[0], None if missing is None else -missing)
        return None if total is None else total / self.at(node.args[1], 0)

    def _convolved(self, a: Any, b: Any, orders: range, k: int) -> Any:
        total: Any = None
        for j in orders:
            left, right = self.at(a, j), self.at(b, k - j)
            if left is not None and right is not None:
                total = _plus(total, left * right)
        return total


def _plus(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    return a + b


# Changes in place --------------------------------------------------------------------------------
def assign(op: str, t: Tensor, value: Tensor) -> bool:
    """Write a value into a tensor, where one of them has a tangent; False where neither has."""
    level = level_of(t)
    other = level_of(value)
    if other is not None and (level is None or other.number > level.number):
        level = other
    if level is None:
        return False
    change = tangent(value, level)
    if level.order > 1:
        _write_series(op, t, value, level)
        return True
    if tangent(t, level) is None:
        _give_tangent(op, t, level, change)
    target = tangent(t, level)
    assert target is not None
    # First the primals, which may be dual at levels below, or become so.
    below = primal(t, level)
    before = below._array
    inplace._assign(op, below, primal(value, level))
    if below._array is not before:
        _check_alone(op, t)
        t._array = DualArray(below._array, target, level)
    if change is None:
        change = zeros_of(target)
    inplace.overwrite(op, target, cast(change, t.dtype))
    return True


def _write_series(op: str, t: Tensor, value: Tensor, level: Level) -> None:
    """Put another array in the place of a tensor's, which nobody else looks at."""
    _check_alone(op, t)
    below = primal(t, level)
    inplace._assign(op, below, primal(value, level))
    array = below._array
    series = tangent(value, level)
    if series is not None:
        array = DualArray(array, series.each(lambda c: fitted(c, array)), level)
    t._array = array


def _check_alone(op: str, t: Tensor) -> None:
    """Raise unless a tensor is all of its memory, and nobody else looks at it."""
    alias = t._alias
    if t._base is not None or (alias is not None and getrefcount(alias.version) > 2):
        raise UnsupportedError(
            f"[{op}] writes in place into a part of a tensor, or into memory that other tensors "
            "look at, which jet and nested jvp cannot follow; do it out of place, as by where"
        )


def _give_tangent(op: str, t: Tensor, level: Level, like: Any) -> None:
    """Zeros as the tangent of a tensor, and of what it is a view of."""
    base = t._base
    alias = t._alias
    holders = 0 if alias is None else getrefcount(alias.version) - 1
    if holders > (1 if base is None else 2):
        raise UnsupportedError(
            f"[{op}] writes a value with a tangent into memory that other tensors look at, which "
            "would not know of it; write into a clone(), or give the tensor a tangent first"
        )
    root = t if base is None else base
    array = living(root._array)
    k = backend_of(array) if like is None else towering([primal_of(array), primal_of(like._array)])
    zeros = wrap(k.full(tuple(array.shape), 0, array.dtype))
    root._array = DualArray(array, laid_out(zeros, array), level)
    if base is not None:
        assert alias is not None
        change = tangent(root, level)
        assert change is not None
        part = replay(change, inplace._steps(alias))
        t._array = DualArray(living(t._array), part, level)


STEPS[:] = [step, seen, assign]
