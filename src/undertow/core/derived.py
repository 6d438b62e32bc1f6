"""Rules as ops: the rule of an elementwise op that runs, and is recorded, as one op itself.

Note [derived ops]
With create_graph a rule's ops are recorded, so that they can be differentiated again. As written,
`g * (1 - out * out)` is three kernels and three nodes, and its own backward half a dozen more. It
is a scalar expression, and so are its derivatives: so it becomes an op of its own, `tanh_backward`,
made when it is first needed, with rules that come from the expression; and since these rules are
elementwise, too, the same happens to them, to any order.

Only sums, differences, products and quotients are differentiated here. Other primitives may be
somebody's way to compute an op (the series of `digamma`, the branches of `sigmoid`), of which the
op's own rule knows the better derivative: a rule that has any runs as written. So it does on
anything but floating tensors of one dtype and shape.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..kernel.expr import Expr, arg, substitute
from .dispatch import alike, apply
from .fused import traced
from .op import Op, elementwise_op

_MEANING: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
}
_LONGEST = 48  # primitives in an expression, beyond which a rule runs as written


def derived(op: Op, rule: Callable[..., Any], arity: int) -> Callable[..., Any]:
    """A rule of `op`, of so many arguments, as one op where that is possible."""
    expr = traced(rule, arity)
    made = None if expr is None else as_op(f"{op.name}_backward", expr, arity)
    if made is None:
        return rule

    def one(*values: Any) -> Any:
        return apply(made, values) if alike(values) else rule(*values)

    return one


def as_op(name: str, expr: Expr, arity: int) -> Op | None:
    """The op that computes `expr`; None where there is no use or no way, see Note [derived ops]."""
    order = ordered(expr)
    primitives = [node for node in order if node.head not in ("arg", "const")]
    known = all(node.head in _MEANING for node in primitives)
    if not known or not 2 <= len(primitives) <= _LONGEST:
        return None
    slopes = _slopes(order, arity)
    if any(slope is None for slope in slopes):
        return None
    names = [f"x{i}" for i in range(arity)]
    op = elementwise_op(
        name, lambda *xs: substitute(expr, xs), inputs=" ".join(names), derived=True
    )
    for target, slope in zip(names, slopes, strict=True):
        used = sorted({n.args[0] for n in ordered(slope) if n.head == "arg"} - {0})
        op.rules[target] = (_meaning(slope, used), ("g", *(names[i - 1] for i in used)))
    return op


def ordered(expr: Expr) -> list[Expr]:
    """The distinct nodes of an expression, each after its arguments."""
    found: list[Expr] = []
    seen: set[int] = set()
    stack = [(expr, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            found.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            if node.head not in ("arg", "const"):
                stack += [(a, False) for a in reversed(node.args)]
    return found


def _slopes(order: list[Expr], arity: int) -> list[Any]:
    """The gradient of each argument, as an expression of the cotangent and the arguments.

    The cotangent is argument 0, argument i is i + 1; None for an argument that is not used.
    """
    whole = [arg(1 + i) for i in range(arity)]
    value: dict[int, Expr] = {}  # a node, over the new arguments
    varies: set[int] = set()
    for node in order:
        if node.head == "arg":
            value[id(node)] = whole[node.args[0]]
            varies.add(id(node))
        elif node.head == "const":
            value[id(node)] = node
        else:
            value[id(node)] = Expr(node.head, tuple(value[id(a)] for a in node.args))
            if any(id(a) in varies for a in node.args):
                varies.add(id(node))
    arrived: dict[int, Expr] = {id(order[-1]): arg(0)}
    slopes: list[Any] = [None] * arity
    for node in reversed(order):
        g = arrived.get(id(node))
        if g is None:
            continue
        if node.head == "arg":
            before = slopes[node.args[0]]
            slopes[node.args[0]] = g if before is None else before + g
            continue
        if node.head == "const":
            continue
        operands = [value[id(a)] for a in node.args]
        for place, a in enumerate(node.args):
            if id(a) in varies:
                part = _partial(node.head, place, g, operands)
                arrived[id(a)] = part if id(a) not in arrived else arrived[id(a)] + part
    return slopes


def _partial(head: str, place: int, g: Expr, operands: list[Expr]) -> Expr:
    """What arrives at one operand of a primitive."""
    if head == "mul":
        return g * operands[1 - place]
    if head == "div":
        a, b = operands
        return g / b if place == 0 else -g * ((a / b) / b)
    return g if head == "add" or (head == "sub" and place == 0) else -g


def _meaning(expr: Expr, used: list[int]) -> Callable[..., Any]:
    """`expr` as a function of the cotangent and the arguments it uses, tensors or expressions."""
    order = ordered(expr)

    def rule(g: Any, *values: Any) -> Any:
        return evaluated(order, dict(zip((0, *used), (g, *values), strict=True)))

    return rule


def evaluated(order: list[Expr], given: Any) -> Any:
    """The value of an expression of sums and products, as `ordered`, of these arguments."""
    done: dict[int, Any] = {}
    for node in order:
        if node.head == "arg":
            done[id(node)] = given[node.args[0]]
        elif node.head == "const":
            done[id(node)] = node.args[0]
        else:
            done[id(node)] = _MEANING[node.head](*(done[id(a)] for a in node.args))
    return done[id(order[-1])]
