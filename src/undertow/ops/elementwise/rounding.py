"""Size, sign and rounding of elements: abs, sign, floor, round, nan_to_num …"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable

from ... import dtypes
from ...core.dispatch import elementwise
from ...core.fast import binary_function, inplace_elementwise, unary_function
from ...core.op import elementwise_op
from ...core.register import alias, attach, elementwise_function, function
from ...core.tensor import Tensor
from ...dtypes import Number
from ...errors import DTypeError, UnsupportedError
from ...kernel.expr import call
from ...kernel.expr import where as choose
from ...shapes import as_int
from .arithmetic import no_slope
from .comparison import isfinite, where
from .complex_numbers import complex_abs_op, complex_sign, view_as_complex, view_as_real

# Size and sign -------------------------------------------------------------------------------
_sign = unary_function(
    elementwise_op(
        "sign",
        lambda x: choose(x != x, 0, call("sign", x)),
        inputs="x",
        domain="if",
        vjp={"x": no_slope},
    )
)


@function(inplace=True, guard=False)
def sign(input: Tensor | Number) -> Tensor:
    """-1, 0 or 1 for negative, zero and positive elements; 0 for NaN.

    >>> import undertow as ut
    >>> ut.sign(ut.tensor([-3.0, 0.0, 5.0]))
    tensor([-1.,  0.,  1.])
    """
    if isinstance(input, Tensor) and input.dtype is dtypes.bool:
        return input.clone()
    return _sign(input)


_abs = elementwise_op(
    "abs",
    lambda x: call("abs", x),
    inputs="x",
    kind="real",
    domain="ifc",
    vjp={"x": lambda g, x: g * sign(x)},
    complex_op=complex_abs_op,
)
abs = elementwise_function(
    _abs,
    """The absolute value of each element; of complex ones, a real tensor.

    >>> import undertow as ut
    >>> ut.abs(ut.tensor([-1.5, 2.0]))
    tensor([1.5000, 2.0000])
    """,
    dunder="__abs__",
)
_abs_in_place = inplace_elementwise(_abs, abs, "abs_")


def abs_(self: Tensor) -> Tensor:
    if self.is_complex():
        raise UnsupportedError(
            "[abs_] In-place abs is not supported for complex tensors, whose sizes are real; use "
            "abs()"
        )
    return _abs_in_place(self)


abs_.__doc__ = _abs_in_place.__doc__
attach("abs_", abs_)


@function(inplace=True)
def sgn(input: Tensor) -> Tensor:
    """`sign`, and for complex elements `input / abs(input)`.

    >>> import undertow as ut
    >>> ut.sgn(ut.tensor([-3.0, 0.0, 5.0]))
    tensor([-1.,  0.,  1.])
    """
    return elementwise(complex_sign, input) if input.is_complex() else sign(input)


copysign: Callable[..., Tensor] = elementwise_function(
    elementwise_op(
        "copysign",
        lambda a, b: call("copysign", a, b),
        inputs="a b",
        kind="float",
        domain="f",
        vjp={"a": lambda g, a, b: g * (sign(a) * copysign(1.0, b)), "b": no_slope},
    ),
    """The size of `input` with the sign of `other`, also that of -0.0.

    >>> import undertow as ut
    >>> ut.copysign(ut.tensor([1.0, -2.0]), ut.tensor([-0.0, 3.0]))
    tensor([-1.,  2.])
    """,
    inplace=True,
)
_step_op = elementwise_op(
    "heaviside",
    lambda x, values: choose(x > 0, 1, choose(call("eq", x, 0), values, 0)),
    inputs="x values",
    domain="bif",
)
_step = binary_function(_step_op)


@function()
def heaviside(input: Tensor | Number, values: Tensor | Number) -> Tensor:
    """0 for negative elements, 1 for positive ones, `values` for zeros; not differentiable.

    >>> import undertow as ut
    >>> ut.heaviside(ut.tensor([-1.0, 0.0, 2.0]), ut.tensor([0.5]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return _step(input, values)


attach("heaviside_", inplace_elementwise(_step_op, heaviside, "heaviside_"))


# Rounding ------------------------------------------------------------------------------------
def _rounding(name: str, doc: str) -> Callable[..., Tensor]:
    op = elementwise_op(name, lambda x: call(name, x), inputs="x", domain="if", vjp={"x": no_slope})
    return elementwise_function(op, doc, inplace=True)


floor = _rounding(
    "floor",
    """The largest integer that is not above the element.

    >>> import undertow as ut
    >>> ut.floor(ut.tensor([1.7, -1.2]))
    tensor([ 1., -2.])
    """,
)
ceil = _rounding(
    "ceil",
    """The smallest integer that is not below the element.

    >>> import undertow as ut
    >>> ut.ceil(ut.tensor([1.2, -1.7]))
    tensor([ 2., -1.])
    """,
)
trunc = _rounding(
    "trunc",
    """The element without its fraction.

    >>> import undertow as ut
    >>> ut.trunc(ut.tensor([1.7, -1.7]))
    tensor([ 1., -1.])
    """,
)
alias("trunc", "fix")
_rint = unary_function(
    elementwise_op("round", lambda x: call("rint", x), inputs="x", domain="f", vjp={"x": no_slope})
)


@function(inplace=True)
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """The nearest integer, or multiple of `10 ** -decimals`; halves go to the even neighbour.

    >>> import undertow as ut
    >>> ut.round(ut.tensor([0.5, 1.5, 2.7]))
    tensor([0., 2., 3.])
    >>> ut.round(ut.tensor([1.2345]), decimals=2)
    tensor([1.2300])
    """
    places = as_int("round", "decimals", decimals)
    if input.dtype.category == 1:
        if places:
            raise DTypeError(
                f"[round] decimals={places} needs a floating tensor, got {input.dtype}; "
                "convert it first"
            )
        return input.clone()
    if places == 0:
        return _rint(input)
    unit = 10.0 ** builtins.abs(places)
    return _rint(input * unit) / unit if places > 0 else _rint(input / unit) * unit


frac = elementwise_function(
    elementwise_op(
        "frac", lambda x: x - call("trunc", x), inputs="x", domain="f", vjp={"x": lambda g: g}
    ),
    """The fraction of each element, with its sign.

    >>> import undertow as ut
    >>> ut.frac(ut.tensor([1.5, -2.25]))
    tensor([ 0.5000, -0.2500])
    """,
    inplace=True,
)

_nan_to_num = elementwise_op(
    "nan_to_num",
    lambda x, nan, posinf, neginf: choose(
        call("isnan", x),
        nan,
        choose(call("eq", x, math.inf), posinf, choose(call("eq", x, -math.inf), neginf, x)),
    ),
    inputs="x nan posinf neginf",
    kind="input",
    domain="f",
    vjp={"x": lambda g, x: where(isfinite(x), g, 0)},
)


@function(inplace=True)
def nan_to_num(
    input: Tensor,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """NaN and infinities replaced, by default by zero and the dtype's largest and smallest number.

    Of complex numbers, in each part.

    >>> import undertow as ut
    >>> ut.nan_to_num(ut.tensor([float("nan"), 1.0, float("inf")]), posinf=9.0)
    tensor([0., 1., 9.])
    """
    if input.dtype.category < 2:
        return input.clone()
    if input.is_complex():
        return view_as_complex(nan_to_num(view_as_real(input), nan, posinf, neginf))
    limits = dtypes.finfo(input.dtype)
    high = float(limits.max) if posinf is None else posinf
    low = float(limits.min) if neginf is None else neginf
    return elementwise(_nan_to_num, input, nan or 0.0, high, low)


alias("abs", "absolute")
