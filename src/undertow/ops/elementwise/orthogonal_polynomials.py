"""The orthogonal polynomials of `ut.special`: Chebyshev, Hermite, Laguerre, Legendre.

Note [three terms]
All follow p(k+1) = (alpha x + beta) p(k) - gamma p(k-1) from p(0) = 1, with numbers that depend on
k, and differentiating that m times gives their derivatives,

    p(k+1)' = (alpha x + beta) p(k)' + m alpha p(k)'' - gamma p(k-1)'

where '' has one derivative less. One op runs it, up to the highest degree that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ...backends.base import Array, Forms
from ...core.dispatch import align, apply, compute_dtype, operand
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor
from ...dtypes import Number
from ...errors import DTypeError
from ...kernel.expr import Expr, arg, call
from ...kernel.expr import where as choose
from ...shapes import broadcast_shapes
from ..create.creation import full

# The alpha, beta and gamma of a family at k.
Step = Callable[[int], tuple[float, float, float]]


def _chebyshev(first: float, offset: float) -> Step:
    return lambda k: (2.0, 0.0, 1.0) if k else (first, offset, 0.0)


def _shifted(step: Step) -> Step:
    """The same polynomials of 2x - 1."""

    def shifted(k: int) -> tuple[float, float, float]:
        alpha, beta, gamma = step(k)
        return 2 * alpha, beta - alpha, gamma

    return shifted


STEPS: dict[str, Step] = {
    "chebyshev_polynomial_t": _chebyshev(1.0, 0.0),
    "chebyshev_polynomial_u": _chebyshev(2.0, 0.0),
    "chebyshev_polynomial_v": _chebyshev(2.0, -1.0),
    "chebyshev_polynomial_w": _chebyshev(2.0, 1.0),
    "hermite_polynomial_h": lambda k: (2.0, 0.0, 2.0 * k),
    "hermite_polynomial_he": lambda k: (1.0, 0.0, float(k)),
    "laguerre_polynomial_l": lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1)),
    "legendre_polynomial_p": lambda k: ((2 * k + 1) / (k + 1), 0.0, k / (k + 1)),
}
STEPS |= {f"shifted_{name}": _shifted(STEPS[name]) for name in list(STEPS) if "cheb" in name}


@cache
def _step(order: int) -> tuple[Expr, ...]:
    """The next p and its derivatives, then the result so far.

    Of x, n, the result, p(k) and its derivatives, the same of p(k-1), then alpha, beta, gamma and
    k + 1.
    """
    x, n, result = arg(0), arg(1), arg(2)
    here = [arg(3 + i) for i in range(order + 1)]
    before = [arg(4 + order + i) for i in range(order + 1)]
    alpha, beta, gamma, k = (arg(5 + 2 * order + i) for i in range(4))
    factor = alpha * x + beta
    found = []
    for m in range(order + 1):
        value = factor * here[m] - gamma * before[m]
        found.append(value + (m * alpha) * here[m - 1] if m else value)
    return (*found, choose(call("eq", n, k), found[order], result))


def _forward(k: Forms, x: Array, n: Array, family: str, order: int) -> Array:
    shape, dtype = broadcast_shapes(family, x.shape, n.shape), x.dtype
    degrees = k.map(_WHOLE, (n,), dtype)
    highest = 0
    every = k.whole(degrees)
    if every.size:
        top = k.base.reduce("max", every, tuple(range(len(every.shape))), False)
        found = float(k.base.to_host(top))
        highest = int(found) if 0 < found < _LIMIT else 0
    zero = k.full(shape, 0, dtype)
    here = [k.full(shape, float(m == 0), dtype) for m in range(order + 1)]
    before = [zero] * (order + 1)
    result = k.map(_START, (degrees, zero, float(order == 0)), dtype)
    for i in range(highest):
        numbers = (*STEPS[family](i), float(i + 1))
        operands = (x, degrees, result, *here, *before, *numbers)
        *found_now, result = k.maps(_step(order), operands, (dtype,) * (order + 2))
        here, before = found_now, here
    return result


_LIMIT = 2.0**31
_WHOLE = choose(call("lt", arg(0), _LIMIT), call("trunc", arg(0)), -1.0)  # NaN is no degree
_START = choose(call("eq", arg(0), 0.0), arg(2), arg(1))
_polynomial: Op = Op(
    "orthogonal_polynomial",
    _forward,
    inputs="x n",
    params="family order",
    vjp={
        "x": lambda g, x, n, family, order: g * apply(_polynomial, (x, n), (family, order + 1)),
        "n": lambda g: g * 0,  # a step function of n
    },
)


def _publish(name: str, what: str, values: str) -> Callable[..., Tensor]:
    def polynomial(input: Tensor | Number, n: Tensor | Number) -> Tensor:
        operands = [operand(name, input), operand(name, n)]
        dtype = compute_dtype(name, operands, "float")
        if dtype.is_complex:
            raise DTypeError(f"[{name}] takes real tensors, got {dtype}")
        given = [o for o in operands if isinstance(o, Tensor)]
        if not given:
            raise DTypeError(f"[{name}] expects a Tensor for input or n, got two numbers")
        device = given[0].device
        tensors = [
            o if isinstance(o, Tensor) else full((), o, dtype=dtype, device=device)
            for o in operands
        ]
        x, degree = align(name, tensors, dtype)
        found: Tensor = apply(_polynomial, (x, degree), (name, 0))
        return found

    polynomial.__doc__ = f"""{what} of degree `n` at each element of `input`; 0 for n below 0.

    >>> import undertow as ut
    >>> ut.special.{name}(ut.tensor([0.5, 2.0]), 3)
    tensor([{values}])
    """
    return function(name=name, space="special")(polynomial)


# What each is, and its values of degree 3 at 0.5 and 2.
_SHOWN = {
    "chebyshev_polynomial_t": ("Chebyshev's polynomial of the first kind", "-1., 26."),
    "chebyshev_polynomial_u": ("Chebyshev's polynomial of the second kind", "-1., 56."),
    "chebyshev_polynomial_v": ("Chebyshev's polynomial of the third kind", "-1., 41."),
    "chebyshev_polynomial_w": ("Chebyshev's polynomial of the fourth kind", "-1., 71."),
    "shifted_chebyshev_polynomial_t": ("`chebyshev_polynomial_t` of 2x - 1", "-0., 99."),
    "shifted_chebyshev_polynomial_u": ("`chebyshev_polynomial_u` of 2x - 1", " -0., 204."),
    "shifted_chebyshev_polynomial_v": ("`chebyshev_polynomial_v` of 2x - 1", "  1., 169."),
    "shifted_chebyshev_polynomial_w": ("`chebyshev_polynomial_w` of 2x - 1", " -1., 239."),
    "hermite_polynomial_h": ("Hermite's polynomial (leading coefficient 2**n)", "-5., 40."),
    "hermite_polynomial_he": ("Hermite's polynomial (leading coefficient 1)", "-1.3750,  2.0000"),
    "laguerre_polynomial_l": ("Laguerre's polynomial", "-0.1458, -0.3333"),
    "legendre_polynomial_p": ("Legendre's polynomial", "-0.4375, 17.0000"),
}
for _name in _SHOWN:
    _publish(_name, *_SHOWN[_name])
