"""Special functions of elements: erf, gamma and Bessel functions, sinc."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...backends.locks import Lock
from ...core.fast import binary_function, unary_function
from ...core.op import Op, elementwise_op
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError
from ...kernel import bessel, gamma
from ...kernel import erf as error_function
from ...kernel.expr import Expr, Operand, call, polynomial
from ...kernel.expr import where as choose
from ...shapes import as_int
from .comparison import where
from .transcendental import cos, exp, unary

erf = unary(
    "erf",
    error_function.erf,
    lambda g, x: g * (exp(-(x * x)) * (2 / math.sqrt(math.pi))),
    """The error function of each element.

    >>> import undertow as ut
    >>> ut.erf(ut.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """,
    domain="f",
)
erfc = unary(
    "erfc",
    error_function.erfc,
    lambda g, x: g * (exp(-(x * x)) * (-2 / math.sqrt(math.pi))),
    """`1 - erf(input)`, accurate also where it is small.

    >>> import undertow as ut
    >>> ut.erfc(ut.tensor([0.0, 1.0]))
    tensor([1.0000, 0.1573])
    """,
    domain="f",
)
erfinv = unary(
    "erfinv",
    error_function.erfinv,
    lambda g, x: _erfinv_rule(g, x),
    """The inverse of `erf`; infinite at -1 and 1, NaN beyond.

    >>> import undertow as ut
    >>> ut.erfinv(ut.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4769])
    """,
    domain="f",
)


def _erfinv_rule(g: Any, x: Any) -> Any:
    """Of the input, as in torch: the result may be changed in place afterwards."""
    y = erfinv(x)
    return g * (exp(y * y) * (math.sqrt(math.pi) / 2))


class Family:
    """Functions of the same tensors that differ by orders; each derivative names other orders.

    Note [families]
    The rule of order n calls order n + 1, so an op is made when its order is first asked for, and
    differentiation never comes to an end of what is defined. An order is a number, or several.
    """

    def __init__(
        self,
        name: str,
        expr: Callable[..., Operand],
        rules: Callable[[Any], dict[str, Callable[..., Any]]],
        inputs: str = "x",
    ) -> None:
        self._name = name
        self._expr = expr
        self._rules = rules
        self._inputs = inputs
        self._doors: dict[Any, Callable[..., Tensor]] = {}
        self._lock = Lock()

    def __call__(self, order: Any, *operands: Any) -> Any:
        door = self._doors.get(order)
        if door is None:
            with self._lock:
                if order not in self._doors:
                    self._doors[order] = self._make(order)
                door = self._doors[order]
        return door(*operands)

    def _make(self, order: Any) -> Callable[..., Tensor]:
        door = unary_function if len(self._inputs.split()) == 1 else binary_function
        return door(
            elementwise_op(
                f"{self._name}_{order}",
                lambda *operands: self._expr(order, *operands),
                inputs=self._inputs,
                kind="float",
                domain="f",
                vjp=self._rules(order),
            )
        )


_polygamma: Family = Family(
    "polygamma", gamma.polygamma, lambda n: {"x": lambda g, x: g * _polygamma(n + 1, x)}
)
lgamma = unary(
    "lgamma",
    gamma.lgamma,
    lambda g, x: g * digamma(x),
    """The logarithm of the absolute value of the gamma function.

    >>> import undertow as ut
    >>> ut.lgamma(ut.tensor([1.0, 5.0]))
    tensor([0.0000, 3.1781])
    """,
    domain="f",
)
digamma: Callable[..., Tensor] = unary(
    "digamma",
    gamma.digamma,
    lambda g, x: g * _polygamma(1, x),
    """The derivative of `lgamma`.

    >>> import undertow as ut
    >>> ut.digamma(ut.tensor([1.0, 2.0]))
    tensor([-0.5772,  0.4228])
    """,
    domain="f",
)


def _order(n: Any) -> int:
    order = as_int("polygamma", "n", n)
    if order < 0:
        raise ArgumentError(f"[polygamma] the order n must not be negative, got {order}")
    return order


@function(method=False)
def polygamma(n: int, input: Tensor) -> Tensor:
    """The derivative of `digamma` of order `n`; of order 0, `digamma` itself.

    >>> import undertow as ut
    >>> ut.polygamma(1, ut.tensor([1.0, 2.0]))
    tensor([1.6449, 0.6449])
    """
    order = _order(n)
    return _polygamma(order, input) if order else digamma(input)


@function(name="polygamma", top=False, inplace=True)
def _polygamma_method(input: Tensor, n: int) -> Tensor:
    """`ut.polygamma(n, input)`.

    >>> import undertow as ut
    >>> ut.tensor([1.0]).polygamma(1)
    tensor([1.6449])
    """
    return polygamma(n, input)


_even: Family = Family(
    "even_bessel_i", bessel.even_i, lambda n: {"x": lambda g, x: g * (x * _even(n + 1, x))}
)
i1_op = elementwise_op(
    "i1",
    bessel.i1,
    inputs="x",
    kind="float",
    domain="f",
    vjp={"x": lambda g, x: g * (_even(1, x) + x * x * _even(2, x))},
)
_i1 = unary_function(i1_op)
i0 = unary(
    "i0",
    bessel.i0,
    lambda g, x: g * _i1(x),
    """The modified Bessel function of the first kind of order 0.

    >>> import undertow as ut
    >>> ut.i0(ut.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """,
    domain="f",
)


def _wave(order: int, u: Expr) -> Expr:
    """The derivative of sin(u)/u: its series near zero, further out the recurrence

    u f_n + n f_(n-1) = the n-th derivative of the sine.
    """
    edge = float(max(1, order))
    near = call("minimum", u * u, edge * edge)
    first = (order + 1) // 2
    terms = [
        (-1.0) ** k
        * math.factorial(2 * k)
        / (math.factorial(2 * k - order) * math.factorial(2 * k + 1))
        for k in range(first + 12 + order, first - 1, -1)
    ]
    series = polynomial(near, tuple(terms))
    if order % 2:
        series = u * series
    far = choose(abs(u) < edge, edge, u)
    waves = [call("sin", far), call("cos", far)]
    value = waves[0] / far
    for n in range(1, order + 1):
        wave = waves[n % 2] if n % 4 < 2 else -waves[n % 2]
        value = (wave - n * value) / far
    return choose(abs(u) < edge, series, value)


spherical: Family = Family(
    "spherical_bessel", _wave, lambda n: {"x": lambda g, x: g * spherical(n + 1, x)}
)
_sinc: Family = Family(
    "sinc",
    lambda n, x: _wave(n, x * math.pi) * math.pi**n,
    lambda n: {"x": lambda g, x: g * _sinc(n + 1, x)},
)
_complex_sinc: Op = elementwise_op(
    "complex_sinc",
    lambda x: choose(call("eq", x, 0), 1, call("sin", x * math.pi) / (x * math.pi)),
    inputs="x",
    domain="c",
    vjp={
        "x": lambda g, x, out: g * where(x == 0, 0, (cos(x * math.pi) - out) / where(x == 0, 1, x))
    },
)
sinc = unary(
    "sinc",
    lambda x: choose(call("eq", x, 0), 1, call("sin", x * math.pi) / (x * math.pi)),
    lambda g, x: g * _sinc(1, x),
    """`sin(pi * input) / (pi * input)`, and 1 at zero.

    >>> import undertow as ut
    >>> ut.sinc(ut.tensor([0.0, 0.5]))
    tensor([1.0000, 0.6366])
    """,
    complex_op=_complex_sinc,
)
