"""The incomplete gamma functions with gradients in both arguments, `mvlgamma`, and zeta."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ... import dtypes
from ...backends.base import Array, Forms
from ...core.dispatch import align, apply, cast, compute_dtype, operand
from ...core.fast import binary_function
from ...core.op import Op, elementwise_op
from ...core.register import elementwise_function, function
from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError
from ...kernel.expr import Expr, arg, call
from ...shapes import as_int
from ..create.creation import full
from ..shape.joining import broadcast_tensors
from .comparison import where
from .special import Family, digamma, lgamma
from .transcendental import exp, log, xlogy


# What follows imports kernel/gamma_integrals when it is first needed: it stands at the top level of
# no module, so that `import undertow` stays quick.
@functools.cache
def _expressions(m: int, j: int) -> tuple[tuple[Expr, ...], Expr, Expr]:
    """The three steps towards M(m, j): where it begins and ends, Newton's, and Gauss's."""
    from ...kernel.gamma_integrals import nearer, nodes, start

    a, x = arg(0), arg(1)
    bounded = call("maximum", x, 0.5) if m == j == 0 else x
    args = [arg(i) for i in range(5 + 2 * _TOGETHER)]
    return (bounded, *start(a, bounded)), nearer(*args[:4]), nodes(m, j, _TOGETHER)(*args)


@functools.cache
def _regularizing(complement: bool) -> Expr:
    """P or Q, given a, x and M(0, 0)."""
    from ...kernel import gamma_integrals

    expr = gamma_integrals.gammaincc if complement else gamma_integrals.gammainc
    return expr(arg(0), arg(1), arg(2))


def _front_expr(a: Expr, x: Expr) -> Expr:
    from ...kernel.gamma_integrals import front

    return front(a, x)


def _integrate(k: Forms, a: Array, x: Array, m: int, j: int) -> Array:
    """M(m, j) of Note [moments]; M(0, 0), where a series takes over, at max(x, 1/2).

    A few nodes at a time, since all together would be a kernel that takes minutes to compile.
    """
    from ...kernel.gamma_integrals import NEWTON
    from ...kernel.special_tables import GAUSS, GAUSS_WEIGHT

    first, nearer, nodes = _expressions(m, j)
    dtype = a.dtype
    x, sign, slope, end = k.maps(first, (a, x), (dtype,) * 4)
    for _ in range(NEWTON):
        end = k.map(nearer, (x, sign, slope, end), dtype)
    total = k.full(end.shape, 0, dtype)
    for i in range(len(GAUSS) - _TOGETHER, -1, -_TOGETHER):  # small terms first
        given = (*GAUSS[i : i + _TOGETHER], *GAUSS_WEIGHT[i : i + _TOGETHER])
        total = k.map(nodes, (x, sign, slope, end, total, *given), dtype)
    return k.map(_PRODUCT, (total, end), dtype)


_PRODUCT = arg(0) * arg(1)
_TOGETHER = 4  # nodes


def _side(a: Tensor, x: Tensor) -> Tensor:
    """-1 where the integral is that below, 1 above."""
    return where((x < a) | (x < 0.5), -1.0, 1.0).to(x.dtype)


_moment: Op = Op(
    "gamma_moment",
    _integrate,
    inputs="a x",
    params="m j",
    vjp={
        "a": lambda g, a, x, m, j: g * _side(a, x) * apply(_moment, (a, x), (m + 1, j)),
        "x": lambda g, a, x, m, j: -g * _side(a, x) * apply(_moment, (a, x), (m, j + 1)),
    },
)
_front: Callable[..., Tensor] = binary_function(
    elementwise_op(
        "gamma_front",
        _front_expr,
        inputs="a x",
        kind="float",
        domain="f",
        vjp={
            "a": lambda g, a, x, out: g * out * (log(x) - digamma(a + 1)),
            "x": lambda g, a, x, out: g * out * (a / x - 1),
        },
    )
)


def _density(a: Tensor, x: Tensor) -> Tensor:
    """The derivative of P by x; at x = 0 it is 0, 1 or infinite, as a is above, at or below 1."""
    zero = x == 0
    safe = where(zero, 1, x)
    return where(zero, exp(xlogy(a - 1, x) - lgamma(a)), _front(a, safe) * a / safe)


def _slope(a: Tensor, x: Tensor) -> Tensor:
    """The derivative of P by a; see kernel/gamma_integrals."""
    zero = x == 0
    safe = where(zero, 1, x)
    front, logarithm = _front(a, safe), log(safe)
    moment: Tensor = apply(_moment, (a, safe), (1, 0))
    below = gammainc(a, safe) * (logarithm - digamma(a + 1)) - front * safe * moment
    above = gammaincc(a, safe) * (logarithm - digamma(a)) + front * a * moment
    return where(zero, 0, where((x < a) | (x < 0.5), below, -above))


def _forward(k: Forms, a: Array, x: Array, complement: bool) -> Array:
    m = _integrate(k, a, x, 0, 0)
    return k.map(_regularizing(complement), (a, x, m), a.dtype)


_incomplete = Op(
    "incomplete_gamma",
    _forward,
    inputs="a x",
    params="complement",
    vjp={
        "a": lambda g, a, x, complement: (-g if complement else g) * _slope(a, x),
        "x": lambda g, a, x, complement: (-g if complement else g) * _density(a, x),
    },
)


def _regularized(op: str, a: Any, x: Any, complement: bool) -> Tensor:
    operands = [operand(op, a), operand(op, x)]
    dtype = compute_dtype(op, operands, "promote")
    if not dtype.is_floating_point:
        raise DTypeError(f"[{op}] is defined for floating tensors, not for {dtype}")
    wide = dtype if dtype.itemsize > 2 else dtypes.float32
    device = next((o.device for o in operands if isinstance(o, Tensor)), None)
    tensors = [
        o if isinstance(o, Tensor) else full((), o, dtype=wide, device=device) for o in operands
    ]
    found: Tensor = apply(_incomplete, broadcast_tensors(*align(op, tensors, wide)), (complement,))
    return found if wide is dtype else cast(found, dtype)


@function(name="igamma", inplace=True)
def gammainc(input: Tensor, other: Tensor) -> Tensor:
    """The regularized lower incomplete gamma function P of `input` (a) and `other` (x).

    Differentiable in both. NaN where one of them is negative, or both are zero or infinite.

    >>> import undertow as ut
    >>> ut.igamma(ut.tensor([1.0, 4.0]), ut.tensor([2.0, 2.0]))
    tensor([0.8647, 0.1429])
    """
    return _regularized("igamma", input, other, False)


@function(name="igammac", inplace=True)
def gammaincc(input: Tensor, other: Tensor) -> Tensor:
    """The regularized upper incomplete gamma function, 1 - `igamma`, accurate where it is small.

    Differentiable in both.

    >>> import undertow as ut
    >>> ut.igammac(ut.tensor([1.0, 4.0]), ut.tensor([2.0, 2.0]))
    tensor([0.1353, 0.8571])
    """
    return _regularized("igammac", input, other, True)


@function(inplace=True)
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension `p`.

    It has a meaning above (p - 1) / 2; below, this is the same sum of `lgamma`s, as in torch.

    >>> import undertow as ut
    >>> ut.mvlgamma(ut.tensor([2.0, 3.0]), 2)
    tensor([0.4516, 1.5502])
    """
    dimension = as_int("mvlgamma", "p", p)
    if dimension < 1:
        raise ArgumentError(f"[mvlgamma] p must be at least 1, got {dimension}")
    compute_dtype("mvlgamma", [input], "float")
    total = lgamma(input)
    for j in range(1, dimension):
        total = total + lgamma(input - j / 2)
    return total + dimension * (dimension - 1) / 4 * math.log(math.pi)


def _zeta_expr(order: int, s: Expr, q: Expr) -> Any:
    from ...kernel.zeta import zeta

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
