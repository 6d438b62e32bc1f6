"""Rules on complex numbers, and the conjugate that they need.

Note [complex gradients]
The gradient of a real loss L by z = x + iy is dL/dx + i dL/dy, torch's convention, so that
`z - lr * z.grad` descends. Then the cotangent of a holomorphic op is g * conj(f'(z)), where the
rule of the real op says g * f'(z): on complex numbers every rule runs as conj(rule(conj(g))). That
is right for all that is a power series with real coefficients, element by element or not: products
of matrices, convolutions, scans. What is recorded of an op whose result is complex is therefore
`op.on_complex`, the same op with such rules, made when it is first met; real numbers never ask.

Two kinds of ops are their own `on_complex` (`conjugate=False`): those that are linear with real
coefficients (sums, movement, indexing, all views), where the conjugates would cancel, and those
whose rule is written for complex numbers (`conj`, `sgn`). An op that is not holomorphic has another
op for complex numbers (`complex_op=`): `abs`, whose result is real, and `pow`, whose rule asks for
an order. The door casts real operands beside complex ones, and the rule of a cast drops the
imaginary part, so a real tensor always gets a real gradient.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ..kernel.expr import Expr, call
from .dispatch import apply
from .op import Op, elementwise_op
from .tensor import Tensor

# Primitives through which a conjugate goes to the arguments.
_ARITHMETIC = ("add", "sub", "mul", "div", "neg")


def conjugate(x: Any) -> Any:
    """The conjugate of a tensor, a number or a scalar expression; None stays None.

    A real tensor is its own conjugate, and returned as it is.
    """
    if isinstance(x, Tensor):
        return apply(conj_op, (x,)) if x._array.dtype.kind == "c" else x
    if isinstance(x, Expr):
        return _conjugated_expr(x)
    if isinstance(x, (tuple, list)):
        return tuple([conjugate(part) for part in x])
    return x.conjugate() if isinstance(x, complex) else x


def _conjugated_expr(x: Expr) -> Expr:
    if x.head == "conj":
        inner: Expr = x.args[0]
        return inner
    if x.head == "const":
        return Expr("const", (conjugate(x.args[0]),))
    if x.head in _ARITHMETIC:
        return Expr(x.head, tuple(_conjugated_expr(a) for a in x.args))
    return call("conj", x)


conj_op = elementwise_op(
    "conj",
    lambda x: call("conj", x),
    inputs="x",
    vjp={"x": lambda g: conjugate(g)},
    domain="c",
    conjugate=False,
)


def conjugated(op: Op) -> Op:
    """`op` with rules for complex numbers; see Note [complex gradients]."""
    twin = copy.copy(op)
    twin.plans = {}
    twin.factors = None  # they say nothing of conjugates
    by_input = {} if callable(op.bare) else op.bare
    twin.bare = {name: _conjugated_bare(rule) for name, rule in by_input.items()}
    twin.rules = {name: (_conjugated(*entry), entry[1]) for name, entry in op.rules.items()}
    twin.conjugate = False
    return twin


def _conjugated(rule: Callable[..., Any], wants: tuple[str, ...]) -> Callable[..., Any]:
    """conj(rule(conj(g))), whichever of its arguments are cotangents."""
    arrive = [i for i, want in enumerate(wants) if _is_cotangent(want)]

    def on_complex(*args: Any) -> Any:
        given = list(args)
        for i in arrive:
            given[i] = conjugate(given[i])
        return conjugate(rule(*given))

    return on_complex


def _is_cotangent(want: str) -> bool:
    return want == "gs" or (want[:1] == "g" and (want == "g" or want[1:].isdigit()))


def _conjugated_bare(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The same of a rule for arrays; see Note [bare rules]."""

    def on_complex(k: Any, g: Any, *args: Any) -> Any:
        found = rule(k, k.map(conj_op.expr, (g,), g.dtype), *args)
        return k.map(conj_op.expr, (found,), found.dtype)

    return on_complex
