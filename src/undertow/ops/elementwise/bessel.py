"""Bessel and Airy functions of `ut.special`, each with a derivative that is one of them again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.fast import unary_function
from ...core.op import elementwise_op
from ...core.register import elementwise_function
from ...core.tensor import Tensor
from ...kernel import airy, bessel, bessel_decay, bessel_waves
from ...kernel.expr import Expr, Operand, call
from ...kernel.expr import where as choose
from .comparison import where
from .rounding import sign
from .special import Family, i1_op, spherical

Function = Callable[..., Tensor]


def special(
    name: str, expr: Callable[[Expr], Operand], rule: Callable[..., Any], doc: str
) -> Function:
    """A function of one floating tensor, published in `ut.special`."""
    op = elementwise_op(name, expr, inputs="x", kind="float", domain="f", vjp={"x": rule})
    return elementwise_function(op, doc, space="special")


# First kind: even_j of order n is J_n(x) / x**n, which has no 0/0 at zero.
_even: Family = Family(
    "even_bessel_j", bessel_waves.even_j, lambda n: {"x": lambda g, x: -g * (x * _even(n + 1, x))}
)
bessel_j1 = special(
    "bessel_j1",
    bessel_waves.j1,
    lambda g, x: g * (_even(1, x) - x * x * _even(2, x)),
    """The Bessel function of the first kind of order 1.

    >>> import undertow as ut
    >>> ut.special.bessel_j1(ut.tensor([0.0, 1.0, 5.0]))
    tensor([ 0.0000,  0.4401, -0.3276])
    """,
)
bessel_j0 = special(
    "bessel_j0",
    bessel_waves.j0,
    lambda g, x: -g * bessel_j1(x),
    """The Bessel function of the first kind of order 0.

    >>> import undertow as ut
    >>> ut.special.bessel_j0(ut.tensor([0.0, 1.0, 5.0]))
    tensor([ 1.0000,  0.7652, -0.1776])
    """,
)
spherical_bessel_j0 = special(
    "spherical_bessel_j0",
    lambda x: choose(call("eq", x, 0.0), 1.0, choose(call("isinf", x), 0.0, call("sin", x) / x)),
    lambda g, x: g * spherical(1, x),
    """The spherical Bessel function of order 0, `sin(input) / input`.

    >>> import undertow as ut
    >>> ut.special.spherical_bessel_j0(ut.tensor([0.0, 1.0, 5.0]))
    tensor([ 1.0000,  0.8415, -0.1918])
    """,
)

# Second kind
bessel_y0: Function = special(
    "bessel_y0",
    bessel_waves.y0,
    lambda g, x: -g * bessel_y1(x),
    """The Bessel function of the second kind of order 0; -inf at zero, NaN below.

    >>> import undertow as ut
    >>> ut.special.bessel_y0(ut.tensor([1.0, 5.0]))
    tensor([ 0.0883, -0.3085])
    """,
)
bessel_y1: Function = special(
    "bessel_y1",
    bessel_waves.y1,
    lambda g, x: g * (bessel_y0(x) - bessel_y1(x) / x),
    """The Bessel function of the second kind of order 1; -inf at zero, NaN below.

    >>> import undertow as ut
    >>> ut.special.bessel_y1(ut.tensor([1.0, 5.0]))
    tensor([-0.7812,  0.1479])
    """,
)

# Modified, first kind
_scaled: Family = Family(
    "even_bessel_ie",
    lambda n, x: bessel.even_i(n, x, scaled=True),
    lambda n: {"x": lambda g, x: g * (x * _scaled(n + 1, x) - sign(x) * _scaled(n, x))},
)
i1 = elementwise_function(
    i1_op,
    """The modified Bessel function of the first kind of order 1, the derivative of `i0`.

    >>> import undertow as ut
    >>> ut.special.i1(ut.tensor([0.0, 1.0]))
    tensor([0.0000, 0.5652])
    """,
    space="special",
)


def _i1e_rule(g: Tensor, x: Tensor) -> Tensor:
    # Far out two large parts would cancel, and squares overflow: there by the asymptotic series.
    size = abs(x)
    far = size > 1e5
    inner, outer = where(far, 0, x), where(far, 1 / where(far, size, 1), 0)
    near = (1 - abs(inner)) * _scaled(1, inner) + inner * inner * _scaled(2, inner)
    return g * where(far, -0.5 * _scaled(1, x) * (1 - 0.75 * outer * (1 + outer)), near)


i1e = special(
    "i1e",
    bessel.i1e,
    _i1e_rule,
    """`i1` scaled by `exp(-abs(input))`, which never overflows.

    >>> import undertow as ut
    >>> ut.special.i1e(ut.tensor([1.0, 1000.0]))
    tensor([0.2079, 0.0126])
    """,
)
i0e: Function = special(
    "i0e",
    bessel.i0e,
    lambda g, x: g * (i1e(x) - sign(x) * i0e(x)),
    """`i0` scaled by `exp(-abs(input))`; the gradient at its kink, zero, is 0.

    >>> import undertow as ut
    >>> ut.special.i0e(ut.tensor([0.0, 1000.0]))
    tensor([1.0000, 0.0126])
    """,
)

# Modified, second kind
modified_bessel_k0: Function = special(
    "modified_bessel_k0",
    bessel_decay.k0,
    lambda g, x: -g * modified_bessel_k1(x),
    """The modified Bessel function of the second kind of order 0; infinite at zero, NaN below.

    >>> import undertow as ut
    >>> ut.special.modified_bessel_k0(ut.tensor([1.0, 5.0]))
    tensor([0.4210, 0.0037])
    """,
)
modified_bessel_k1: Function = special(
    "modified_bessel_k1",
    bessel_decay.k1,
    lambda g, x: -g * (modified_bessel_k0(x) + modified_bessel_k1(x) / x),
    """The modified Bessel function of the second kind of order 1; infinite at zero, NaN below.

    >>> import undertow as ut
    >>> ut.special.modified_bessel_k1(ut.tensor([1.0, 5.0]))
    tensor([0.6019, 0.0040])
    """,
)
scaled_modified_bessel_k0: Function = special(
    "scaled_modified_bessel_k0",
    lambda x: bessel_decay.k0(x, scaled=True),
    lambda g, x: g * (scaled_modified_bessel_k0(x) - scaled_modified_bessel_k1(x)),
    """`modified_bessel_k0` scaled by `exp(input)`.

    >>> import undertow as ut
    >>> ut.special.scaled_modified_bessel_k0(ut.tensor([1.0, 1000.0]))
    tensor([1.1445, 0.0396])
    """,
)
scaled_modified_bessel_k1: Function = special(
    "scaled_modified_bessel_k1",
    lambda x: bessel_decay.k1(x, scaled=True),
    lambda g, x: (
        g
        * (
            scaled_modified_bessel_k1(x)
            - scaled_modified_bessel_k0(x)
            - scaled_modified_bessel_k1(x) / x
        )
    ),
    """`modified_bessel_k1` scaled by `exp(input)`.

    >>> import undertow as ut
    >>> ut.special.scaled_modified_bessel_k1(ut.tensor([1.0, 1000.0]))
    tensor([1.6362, 0.0396])
    """,
)

# Airy
_airy_slope: Function = unary_function(
    elementwise_op(
        "airy_ai_derivative",
        airy.ai_derivative,
        inputs="x",
        kind="float",
        domain="f",
        vjp={"x": lambda g, x: g * (x * airy_ai(x))},
    )
)
airy_ai: Function = special(
    "airy_ai",
    airy.ai,
    lambda g, x: g * _airy_slope(x),
    """Airy's function Ai, the decaying solution of y'' = x y.

    >>> import undertow as ut
    >>> ut.special.airy_ai(ut.tensor([-1.0, 0.0, 1.0]))
    tensor([0.5356, 0.3550, 0.1353])
    """,
)
