"""Bounds and extremes of elements: clamp, maximum, fmin …"""

from __future__ import annotations

from ...core.dispatch import cast
from ...core.fast import binary_function, inplace_elementwise
from ...core.op import elementwise_op
from ...core.register import alias, attach, elementwise_function, function
from ...core.tensor import Tensor
from ...dtypes import Number
from ...errors import ArgumentError
from ...kernel.expr import call
from ..create.conversion import result_type
from .comparison import isnan, where

_at_least_op = elementwise_op(
    "clamp_min",
    lambda x, bound: call("maximum", x, bound),
    inputs="x bound",
    domain="bif",
    vjp={
        "x": lambda g, x, bound: where(x >= bound, g, 0),
        "bound": lambda g, x, bound: where(x < bound, g, 0),
    },
)
_at_most_op = elementwise_op(
    "clamp_max",
    lambda x, bound: call("minimum", x, bound),
    inputs="x bound",
    domain="bif",
    vjp={
        "x": lambda g, x, bound: where(x <= bound, g, 0),
        "bound": lambda g, x, bound: where(x > bound, g, 0),
    },
)
_at_least, _at_most = binary_function(_at_least_op), binary_function(_at_most_op)


@function()
def clamp_min(input: Tensor | Number, min: Tensor | Number) -> Tensor:
    """The elements, but at least `min`; at the bound the gradient goes to `input`.

    >>> import undertow as ut
    >>> ut.clamp_min(ut.tensor([-1.0, 2.0]), 0)
    tensor([0., 2.])
    """
    return _at_least(input, min)


@function()
def clamp_max(input: Tensor | Number, max: Tensor | Number) -> Tensor:
    """The elements, but at most `max`; at the bound the gradient goes to `input`.

    >>> import undertow as ut
    >>> ut.clamp_max(ut.tensor([-1.0, 2.0]), 1)
    tensor([-1.,  1.])
    """
    return _at_most(input, max)


attach("clamp_min_", inplace_elementwise(_at_least_op, clamp_min, "clamp_min_"))
attach("clamp_max_", inplace_elementwise(_at_most_op, clamp_max, "clamp_max_"))


@function(inplace=True)
def clamp(
    input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None
) -> Tensor:
    """The elements, but at least `min` and at most `max`, numbers or tensors; `max` wins.

    >>> import undertow as ut
    >>> ut.clamp(ut.tensor([-1.0, 0.5, 2.0]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise ArgumentError("[clamp] needs min, max or both, got neither")
    if isinstance(min, Tensor) and isinstance(max, Tensor):
        # Of all three, since a zero-dimensional bound must not widen what the other one decides.
        input = cast(input, result_type(input, min, max))
    if min is not None:
        input = clamp_min(input, min)
    return input if max is None else clamp_max(input, max)


alias("clamp", "clip")

maximum = elementwise_function(
    elementwise_op(
        "maximum",
        lambda a, b: call("maximum", a, b),
        inputs="a b",
        domain="bif",
        vjp={
            "a": lambda g, a, b: where(a == b, g * 0.5, where(a < b, 0, g)),
            "b": lambda g, a, b: where(a == b, g * 0.5, where(b < a, 0, g)),
        },
    ),
    """The larger element; NaN if either is. Equal elements share the gradient.

    >>> import undertow as ut
    >>> ut.maximum(ut.tensor([1.0, 5.0]), ut.tensor([2.0, 3.0]))
    tensor([2., 5.])
    """,
)
minimum = elementwise_function(
    elementwise_op(
        "minimum",
        lambda a, b: call("minimum", a, b),
        inputs="a b",
        domain="bif",
        vjp={
            "a": lambda g, a, b: where(a == b, g * 0.5, where(a > b, 0, g)),
            "b": lambda g, a, b: where(a == b, g * 0.5, where(b > a, 0, g)),
        },
    ),
    """The smaller element; NaN if either is. Equal elements share the gradient.

    >>> import undertow as ut
    >>> ut.minimum(ut.tensor([1.0, 5.0]), ut.tensor([2.0, 3.0]))
    tensor([1., 3.])
    """,
)
fmax = elementwise_function(
    elementwise_op(
        "fmax",
        lambda a, b: call("fmax", a, b),
        inputs="a b",
        domain="bif",
        vjp={
            "a": lambda g, a, b: where((a >= b) | isnan(b), g, 0),
            "b": lambda g, a, b: where((a >= b) | isnan(b), 0, g),
        },
    ),
    """The larger element, or the only one that is not NaN; of equal ones, the first.

    >>> import undertow as ut
    >>> ut.fmax(ut.tensor([1.0, float("nan")]), ut.tensor([2.0, 3.0]))
    tensor([2., 3.])
    """,
)
fmin = elementwise_function(
    elementwise_op(
        "fmin",
        lambda a, b: call("fmin", a, b),
        inputs="a b",
        domain="bif",
        vjp={
            "a": lambda g, a, b: where((a <= b) | isnan(b), g, 0),
            "b": lambda g, a, b: where((a <= b) | isnan(b), 0, g),
        },
    ),
    """The smaller element, or the only one that is not NaN; of equal ones, the first.

    >>> import undertow as ut
    >>> ut.fmin(ut.tensor([1.0, float("nan")]), ut.tensor([2.0, 3.0]))
    tensor([1., 3.])
    """,
)
