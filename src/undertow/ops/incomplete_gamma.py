"""The incomplete gamma functions with gradients in both arguments, `mvlgamma`, and zeta."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..core.dispatch import compute_dtype
from ..core.fast import binary_function
from ..core.op import elementwise_op
from ..core.register import elementwise_function, function
from ..core.tensor import Tensor
from ..errors import ArgumentError
from ..kernel.expr import Expr
from ..shapes import as_int
from .comparison import where
from .special import Family, digamma, lgamma
from .transcendental import exp, log, xlogy


def _scalar(name: str) -> Callable[..., Any]:
    """An expression of kernel/gamma_integrals, which is imported when somebody needs it."""

    def expr(*args: Any) -> Any:
        from ..kernel import gamma_integrals

        return getattr(gamma_integrals, name)(*args)

    return expr


def _moment_expr(order: tuple[int, int], a: Expr, x: Expr) -> Any:
    return _scalar("moment")(*order, a, x)


def _side(a: Any, x: Any) -> Any:
    """-1 where the integral is that below, 1 above."""
    return where((x < a) | (x < 0.5), -1.0, 1.0)


# M(m, j) of Note [moments] in kernel/gamma_integrals.
_moment: Family = Family(
    "gamma_moment",
    _moment_expr,
    lambda order: {
        "a": lambda g, a, x: g * _side(a, x) * _moment((order[0] + 1, order[1]), a, x),
        "x": lambda g, a, x: -g * _side(a, x) * _moment((order[0], order[1] + 1), a, x),
    },
    inputs="a x",
)
_front: Callable[..., Tensor] = binary_function(
    elementwise_op(
        "gamma_front",
        _scalar("front"),
        inputs="a x",
        kind="float",
        domain="f",
        vjp={
            "a": lambda g, a, x, out: g * out * (log(x) - digamma(a + 1)),
            "x": lambda g, a, x, out: g * out * (a / x - 1),
        },
    )
)


def _density(a: Any, x: Any) -> Any:
    """The derivative of P by x; at x = 0 it is 0, 1 or infinite, as a is above, at or below 1."""
    zero = x == 0
    safe = where(zero, 1, x)
    return where(zero, exp(xlogy(a - 1, x) - lgamma(a)), _front(a, safe) * a / safe)


def _slope(a: Any, x: Any) -> Any:
    """The derivative of P by a; see kernel/gamma_integrals."""
    zero = x == 0
    safe = where(zero, 1, x)
    front, moment, logarithm = _front(a, safe), _moment((1, 0), a, safe), log(safe)
    below = gammainc(a, safe) * (logarithm - digamma(a + 1)) - front * safe * moment
    above = gammaincc(a, safe) * (logarithm - digamma(a)) + front * a * moment
    return where(zero, 0, where((x < a) | (x < 0.5), below, -above))


def _incomplete(name: str, scalar: str, sign: float, doc: str) -> Callable[..., Tensor]:
    op = elementwise_op(
        name,
        _scalar(scalar),
        inputs="a x",
        domain="f",
        vjp={
            "a": lambda g, a, x: sign * g * _slope(a, x),
            "x": lambda g, a, x: sign * g * _density(a, x),
        },
    )
    return elementwise_function(op, doc, inplace=True)


gammainc: Callable[..., Tensor] = _incomplete(
    "igamma",
    "gammainc",
    1.0,
    """The regularized lower incomplete gamma function P of `input` (a) and `other` (x).

    Differentiable in both. NaN where one of them is negative, or both are zero or infinite.

    >>> import undertow as ut
    >>> ut.igamma(ut.tensor([1.0, 4.0]), ut.tensor([2.0, 2.0]))
    tensor([0.8647, 0.1429])
    """,
)
gammaincc: Callable[..., Tensor] = _incomplete(
    "igammac",
    "gammaincc",
    -1.0,
    """The regularized upper incomplete gamma function, 1 - `igamma`, accurate where it is small.

    Differentiable in both.

    >>> import undertow as ut
    >>> ut.igammac(ut.tensor([1.0, 4.0]), ut.tensor([2.0, 2.0]))
    tensor([0.1353, 0.8571])
    """,
)


@function(inplace=True)
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension `p`.

    Its elements must be above (p - 1) / 2.

    >>> import undertow as ut
    >>> ut.mvlgamma(ut.tensor([2.0, 3.0]), 2)
    tensor([0.4516, 1.5502])
    """
    dimension = as_int("mvlgamma", "p", p)
    if dimension < 1:
        raise ArgumentError(f"[mvlgamma] p must be at least 1, got {dimension}")
    compute_dtype("mvlgamma", [input], "float")
    edge = (dimension - 1) / 2
    if input.numel() and not bool((input > edge).all()):
        raise ArgumentError(
            f"[mvlgamma] with p={dimension} all elements must be above {edge}, got "
            f"{input.min().item()}"
        )
    total = lgamma(input)
    for j in range(1, dimension):
        total = total + lgamma(input - j / 2)
    return total + dimension * (dimension - 1) / 4 * math.log(math.pi)


def _zeta_expr(order: int, s: Expr, q: Expr) -> Any:
    from ..kernel.zeta import zeta

    return zeta(order, s, q)


# The derivative of zeta by its first argument of an order; by the second, of s * zeta(s + 1, q).
_zeta: Family = Family(
    "zeta_derivative",
    _zeta_expr,
    lambda n: {
        "s": lambda g, s, q: g * _zeta(n + 1, s, q),
        "q": lambda g, s, q: (
            -g * (s * _zeta(n, s + 1, q) + (n * _zeta(n - 1, s + 1, q) if n else 0.0))
        ),
    },
    inputs="s q",
)
_zeta_op = elementwise_op(
    "zeta",
    lambda s, q: _zeta_expr(0, s, q),
    inputs="s q",
    kind="float",
    domain="f",
    vjp={
        "s": lambda g, s, q: g * _zeta(1, s, q),
        "q": lambda g, s, q: -g * (s * _zeta(0, s + 1, q)),
    },
)
zeta = elementwise_function(
    _zeta_op,
    """Hurwitz' zeta function, the sum of `(other + k)**-input` over k from 0.

    Differentiable in both. Infinite where `input` is 1 or `other` is 0, -1, -2, ...; NaN for
    `input` below 1, and for other negative `other` unless `input` is whole and `other` above -2.

    >>> import undertow as ut
    >>> ut.special.zeta(ut.tensor([2.0, 4.0]), 1.0)
    tensor([1.6449, 1.0823])
    """,
    space="special",
)
