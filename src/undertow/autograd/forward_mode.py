"""Forward mode: what an op does to tangents, from the rules that it has.

Note [pushing forward]
An op has no rule for tangents: what it does to them follows from those for cotangents, and from
what these ask for.
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
from sys import getrefcount
from typing import Any

from ..backends.batch import towering
from ..backends.dual import LEVELS, STEPS, DualArray, Level, level_at, living, parts, primal_of
from ..backends.registry import backend_of
from ..backends.strided import overlaps
from ..core import inplace
from ..core.dispatch import alike, apply, cast, expand
from ..core.fused import traced
from ..core.inplace import replay, zeros_of
from ..core.modes import current, enter, with_grad
from ..core.node import Node, no_rule
from ..core.op import Op, elementwise_op
from ..core.plan import Plan
from ..core.record import record
from ..core.saved import Group, Packed
from ..core.tensor import Tensor, node_of, share, wrap, wrap_shared
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


def tangent(t: Any, level: Level) -> Tensor | None:
    """The tangent of a tensor at a level, or None."""
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
    array = p._array
    if t._array.shape != array.shape:
        t = expand(t, tuple(array.shape))
    if t._array.dtype != array.dtype:
        t = cast(t, of_array(array.dtype))
    return DualArray(array, laid_out(t, array), level)


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
    primals = [primal(t, level) if isinstance(t, Tensor) else t for t in inputs]
    tangents = [tangent(t, level) for t in inputs]
    state = current()
    if op.view:
        seen = _unrecorded(op, primals, params)
        view = DualArray(seen._array, None, level)
        return viewed(op, inputs[0], view, params)
    result = _unrecorded(op, primals, params)
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


def _unrecorded(op: Op, inputs: Sequence[Any], params: tuple[Any, ...]) -> Any:
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
    varying = [o._array.dtype.kind in "fcV" for o in outs[: op.differentiable]]
    none: list[Tensor | None] = [None] * len(outs)
    if not any(varying):
        return none
    for i, change in enumerate(changes):
        name = op.inputs[min(i, op.arity - 1)]
        if change is not None and name not in op.rules:
            raise no_rule(op.name, name)
    real = not any(o._array.dtype.kind == "c" for o in (*outs, *ins) if isinstance(o, Tensor))
    kind = _kind(op)
    if kind == "same" and (real or (op.conjugate and outs[0]._array.dtype.kind == "c")):
        found: Any = _by_rules(op, ins, changes, params, outs)
    elif kind == "linear":
        found = _linear(op, ins, changes, params)
    elif kind == "multilinear":
        found = _multilinear(op, ins, changes, params)
    else:
        return _by_two_vjps(op, ins, changes, params, outs, varying)
    listed = list(found) if op.outputs > 1 else [found]
    return [t if i < len(varying) and varying[i] else None for i, t in enumerate(listed)]


def _kind(op: Op) -> str:
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
    if op.scalar is not None and not LEVELS[1:] and not _recorded(*ins, *changes, out):
        fused = _fused(op, tuple([c is not None for c in changes]))
        operands = [*[c for c in changes if c is not None], *ins, out]
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
        if total is not None and total.head not in ("arg", "const"):
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
    if tangent(t, level) is None:
        _give_tangent(op, t, level, change)
    target = tangent(t, level)
    assert target is not None
    # First the primals, which may be dual at levels below.
    inplace._assign(op, primal(t, level), primal(value, level))
    if change is None:
        change = zeros_of(target)
    inplace.overwrite(op, target, cast(change, t.dtype))
    return True


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
