"""Elementwise activation functions of nn.functional."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import dtypes
from ...backends.registry import backend_on
from ...core.conjugate import conjugate
from ...core.dispatch import elementwise
from ...core.fast import binary_function, inplace_elementwise, unary_function
from ...core.inplace import inplace as inplace_form
from ...core.op import Op, elementwise_op
from ...core.register import FUNCTIONAL, FUNCTIONS, elementwise_function, function
from ...core.tensor import Tensor, wrap
from ...errors import ArgumentError, DimError, ShapeError
from ...kernel.erf import erf as erf_expr
from ...kernel.expr import Expr, Operand, call
from ...kernel.expr import where as choose
from ...shapes import wrap_dim
from .arithmetic import square
from .comparison import where
from .extremes import clamp_max
from .rounding import abs, sgn
from .special import erf
from .transcendental import exp, sigmoid, tanh

Function = Callable[..., Tensor]


def _clipped(x: Expr, low: Operand, high: Operand) -> Expr:
    return call("minimum", call("maximum", x, low), high)


def _as_its_numbers(op: str, input: Tensor, *numbers: float, beyond: int = 0) -> tuple[float, ...]:
    """The numbers as an integer tensor can hold them: truncated, as in torch.

    They may be `beyond` the largest and smallest integer by less than so much.
    """
    if input._array.dtype.kind not in "iu":
        return numbers
    range_ = dtypes.iinfo(input.dtype)
    for number in numbers:
        inside = range_.min <= number <= range_.max
        if not inside and not range_.min - beyond < number < range_.max + beyond:
            raise ArgumentError(
                f"[{op}] {number} has no value in {input.dtype}; convert the input first"
            )
    return tuple(int(number) for number in numbers)


def _published_inplace(
    fn: Function,
    name: str,
    example: str,
    *,
    top: bool = False,
    method: bool = False,
    op: Op | None = None,
) -> Function:
    """The in-place form of `fn` (of `op` alone), in nn.functional and where else torch has it."""
    form = inplace_form(fn, f"{name}_") if op is None else inplace_elementwise(op, fn, f"{name}_")
    form.__doc__ = f"""In-place form of `{name}`; returns the tensor itself.

    >>> import undertow as ut
    >>> x = ut.tensor([-1.0, 2.0])
    >>> {example.strip()}
    """
    function(name=f"{name}_", top=top, functional=True, method=method)(form)
    return form


# The straight ones ---------------------------------------------------------------------------
_relu_op = elementwise_op(
    "relu",
    lambda x: call("maximum", x, 0),
    inputs="x",
    domain="if",
    vjp={"x": lambda g, out: where(out <= 0, 0, g)},  # the input may change in place, as in torch
)
_relu = unary_function(_relu_op)
relu_ = _published_inplace(
    _relu, "relu", "ut.relu_(x)\n    tensor([0., 2.])", top=True, method=True, op=_relu_op
)


@function(top=False, functional=True, method=False)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """`max(input, 0)`, elementwise; the gradient at zero is zero.

    >>> import undertow as ut
    >>> ut.nn.functional.relu(ut.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return relu_(input) if inplace else _relu(input)


@function(name="relu")
def _plain_relu(input: Tensor) -> Tensor:
    """`max(input, 0)`, elementwise; the gradient at zero is zero.

    >>> import undertow as ut
    >>> ut.relu(ut.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return _relu(input)


_hardtanh_op = elementwise_op(
    "hardtanh",
    _clipped,
    inputs="x low high",
    kind="input",
    domain="if",
    vjp={"x": lambda g, x, low, high: where((x <= low) | (x >= high), 0, g)},
)


def _hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    if min_val > max_val:
        raise ArgumentError(f"[hardtanh] min_val {min_val} must not exceed max_val {max_val}")
    bounds = _as_its_numbers("hardtanh", input, min_val, max_val, beyond=1)
    return elementwise(_hardtanh_op, input, *bounds)


hardtanh_ = _published_inplace(
    _hardtanh, "hardtanh", "ut.nn.functional.hardtanh_(x)\n    tensor([-1.,  1.])"
)


@function(top=False, functional=True, method=False)
def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """`input` between `min_val` and `max_val`; the gradient at the bounds is zero.

    >>> import undertow as ut
    >>> ut.nn.functional.hardtanh(ut.tensor([-3.0, 0.5, 3.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    return (hardtanh_ if inplace else _hardtanh)(input, min_val, max_val)


@function(top=False, functional=True, method=False)
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """`min(max(input, 0), 6)`, elementwise.

    >>> import undertow as ut
    >>> ut.nn.functional.relu6(ut.tensor([-1.0, 2.0, 8.0]))
    tensor([0., 2., 6.])
    """
    return (hardtanh_ if inplace else _hardtanh)(input, 0, 6)


_leaky_op = elementwise_op(
    "leaky_relu",
    lambda x, slope: choose(x > 0, x, x * slope),
    inputs="x slope",
    kind="input",
    domain="f",
    vjp={
        "x": lambda g, x, slope: where(x > 0, g, g * slope),
        "slope": lambda g, x: where(x > 0, 0, g * x),
    },
)
_leaky_relu = binary_function(_leaky_op)


def _leaky(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    return _leaky_relu(input, negative_slope)


leaky_relu_ = _published_inplace(
    _leaky, "leaky_relu", "ut.nn.functional.leaky_relu_(x, 0.5)\n    tensor([-0.5000,  2.0000])"
)


@function(top=False, functional=True, method=False)
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """The positive elements as they are, the others times `negative_slope`.

    >>> import undertow as ut
    >>> ut.nn.functional.leaky_relu(ut.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    return (leaky_relu_ if inplace else _leaky_relu)(input, negative_slope)


@function(functional=True)
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`leaky_relu` whose slope is a tensor of one element, or of one for each channel (dim 1).

    >>> import undertow as ut
    >>> ut.prelu(ut.tensor([[-1.0, -1.0]]), ut.tensor([0.1, 0.2]))
    tensor([[-0.1000, -0.2000]])
    """
    count = weight.numel()
    if weight.ndim > 1:
        raise ShapeError(f"[prelu] weight must have 0 or 1 dimensions, got shape {weight.shape}")
    if count != 1:
        channels = input.shape[1] if input.ndim > 1 else 1
        if channels != count:
            raise ShapeError(
                f"[prelu] weight has {count} elements for input of shape {input.shape} with "
                f"{channels} channels (dim 1); give it 1 or {channels}"
            )
        weight = weight.reshape((1, count, *(1,) * (input.ndim - 2)))
    elif weight.ndim > input.ndim:
        weight = weight.reshape(())
    return _leaky_relu(input, weight)


_threshold_op = elementwise_op(
    "threshold",
    lambda x, threshold, value: choose(x <= threshold, value, x),
    inputs="x threshold value",
    kind="input",
    domain="if",
    vjp={"x": lambda g, x, threshold: where(x <= threshold, 0, g)},
)


def _threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    return elementwise(_threshold_op, input, *_as_its_numbers("threshold", input, threshold, value))


threshold_ = _published_inplace(
    _threshold, "threshold", "ut.threshold_(x, 0.0, 5.0)\n    tensor([5., 2.])", top=True
)


@function(functional=True, method=False)
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """The elements above `threshold`, and `value` in place of the others.

    >>> import undertow as ut
    >>> ut.nn.functional.threshold(ut.tensor([0.5, 2.0]), 1.0, 9.0)
    tensor([9., 2.])
    """
    return (threshold_ if inplace else _threshold)(input, threshold, value)


def _shrinking(name: str, value: Callable[[Expr, Expr], Operand]) -> Function:
    """`value` of the elements of size above lambd, zero for the others."""
    op = elementwise_op(
        name,
        lambda x, lambd: choose(call("abs", x) <= lambd, 0, value(x, lambd)),
        inputs="x lambd",
        kind="input",
        domain="f",
        vjp={"x": lambda g, x, lambd: where(abs(x) <= lambd, 0, g)},
    )
    return binary_function(op)


_hardshrink = _shrinking("hardshrink", lambda x, lambd: x)
_softshrink = _shrinking("softshrink", lambda x, lambd: x - call("copysign", lambd, x))


@function(functional=True)
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """The elements of size above `lambd`, and zero in place of the others.

    >>> import undertow as ut
    >>> ut.nn.functional.hardshrink(ut.tensor([-2.0, 0.3]))
    tensor([-2.,  0.])
    """
    if input._array.dtype.itemsize == 2:  # an element that is lambd, as the dtype has it, is one
        lambd = wrap(backend_on("cpu").full((), lambd, input._array.dtype)).item()
    return _hardshrink(input, lambd)


@function(top=False, functional=True, method=False)
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """The elements moved towards zero by `lambd`, at most to zero.

    >>> import undertow as ut
    >>> ut.nn.functional.softshrink(ut.tensor([-2.0, 0.3]))
    tensor([-1.5000,  0.0000])
    """
    if lambd < 0:
        raise ArgumentError(f"[softshrink] lambd must not be negative, got {lambd}")
    if input.is_floating_point() and lambd > dtypes.finfo(input.dtype).max:
        raise ArgumentError(
            f"[softshrink] lambd must be a number of {input.dtype}, at most "
            f"{dtypes.finfo(input.dtype).max}, got {lambd}"
        )
    return _softshrink(input, lambd)


_hardsigmoid = unary_function(
    elementwise_op(
        "hardsigmoid",
        lambda x: _clipped(x + 3, 0, 6) / 6,
        inputs="x",
        domain="f",
        vjp={"x": lambda g, x: where((x > -3) & (x < 3), g / 6, 0)},
    )
)
_hardsigmoid_ = inplace_form(_hardsigmoid, "hardsigmoid_")


@function(top=False, functional=True, method=False)
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """0 below -3, 1 above 3, a straight line between.

    >>> import undertow as ut
    >>> ut.nn.functional.hardsigmoid(ut.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return (_hardsigmoid_ if inplace else _hardsigmoid)(input)


_hardswish = unary_function(
    elementwise_op(
        "hardswish",
        lambda x: x * _clipped(x + 3, 0, 6) / 6,
        inputs="x",
        domain="f",
        vjp={"x": lambda g, x: where(x <= -3, 0, where(x < 3, g * (x / 3 + 0.5), g))},
    )
)
_hardswish_ = inplace_form(_hardswish, "hardswish_")


@function(top=False, functional=True, method=False)
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """`input * hardsigmoid(input)`, elementwise.

    >>> import undertow as ut
    >>> ut.nn.functional.hardswish(ut.tensor([-1.0, 3.0]))
    tensor([-0.3333,  3.0000])
    """
    return (_hardswish_ if inplace else _hardswish)(input)


# The exponential ones ------------------------------------------------------------------------
# exp is taken of the negative elements only: where it is not chosen it would overflow, and
# 0 * inf would reach the second derivative.
def _expm1_below(x: Expr) -> Expr:
    return call("expm1", call("minimum", x, 0))


_elu_door = binary_function(
    elementwise_op(
        "elu",
        lambda x, alpha: choose(x > 0, x, alpha * _expm1_below(x)),
        inputs="x alpha",
        kind="input",
        domain="f",
        vjp={"x": lambda g, x, alpha: where(x > 0, g, g * (exp(clamp_max(x, 0)) * alpha))},
    )
)


def _elu(input: Tensor, alpha: float = 1.0) -> Tensor:
    return _elu_door(input, alpha)


elu_ = _published_inplace(_elu, "elu", "ut.nn.functional.elu_(x)\n    tensor([-0.6321,  2.0000])")


@function(top=False, functional=True, method=False)
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The positive elements as they are, `alpha * expm1(input)` for the others.

    >>> import undertow as ut
    >>> ut.nn.functional.elu(ut.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return (elu_ if inplace else _elu_door)(input, alpha)


_celu_door = binary_function(
    elementwise_op(
        "celu",
        lambda x, alpha: choose(x > 0, x, alpha * call("expm1", call("minimum", x, 0) / alpha)),
        inputs="x alpha",
        kind="input",
        domain="f",
        vjp={"x": lambda g, x, alpha: where(x > 0, g, g * exp(clamp_max(x, 0) / alpha))},
    )
)


def _celu(input: Tensor, alpha: float = 1.0) -> Tensor:
    if alpha == 0:
        raise ArgumentError("[celu] alpha must not be 0")
    return _celu_door(input, alpha)


celu_ = _published_inplace(
    _celu, "celu", "ut.celu_(x, 2.0)\n    tensor([-0.7869,  2.0000])", top=True
)


@function(functional=True, method=False)
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The positive elements as they are, `alpha * expm1(input / alpha)` for the others.

    >>> import undertow as ut
    >>> ut.celu(ut.tensor([-1.0, 2.0]), alpha=2.0)
    tensor([-0.7869,  2.0000])
    """
    return (celu_ if inplace else _celu)(input, alpha)


# The constants that keep mean 0 and variance 1 (Klambauer et al. 2017).
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946
_selu = unary_function(
    elementwise_op(
        "selu",
        lambda x: _SELU_SCALE * choose(x > 0, x, _SELU_ALPHA * _expm1_below(x)),
        inputs="x",
        domain="f",
        vjp={
            "x": lambda g, x: g * where(x > 0, 1, exp(clamp_max(x, 0)) * _SELU_ALPHA) * _SELU_SCALE
        },
    )
)
selu_ = _published_inplace(_selu, "selu", "ut.selu_(x)\n    tensor([-1.1113,  2.1014])", top=True)


@function(functional=True, method=False)
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """`elu` with the slope and scale of self-normalising networks.

    >>> import undertow as ut
    >>> ut.selu(ut.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return (selu_ if inplace else _selu)(input)


def _silu_slope(g: Any, x: Any) -> Any:
    s = sigmoid(x)
    return g * (s * (1 + x * (1 - s)))


_silu = unary_function(
    elementwise_op(
        "silu", lambda x: x / (1 + call("exp", -x)), inputs="x", domain="fc", vjp={"x": _silu_slope}
    )
)
_silu_ = inplace_form(_silu, "silu_")


@function(top=False, functional=True, method=False)
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """`input * sigmoid(input)`, elementwise; also known as swish.

    >>> import undertow as ut
    >>> ut.nn.functional.silu(ut.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """
    return (_silu_ if inplace else _silu)(input)


def _softplus_expr(x: Expr, beta: Operand, threshold: Operand) -> Expr:
    scaled = x * beta
    return choose(scaled > threshold, x, call("log1p", call("exp", scaled)) / beta)


_softplus_op = elementwise_op(
    "softplus",
    _softplus_expr,
    inputs="x beta threshold",
    kind="input",
    domain="f",
    vjp={"x": lambda g, x, beta, threshold: where(x * beta > threshold, g, g * sigmoid(x * beta))},
)


@function(top=False, functional=True, method=False)
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """`log(1 + exp(beta * input)) / beta`; the element itself where beyond `threshold`.

    >>> import undertow as ut
    >>> ut.nn.functional.softplus(ut.tensor([-1.0, 0.0, 30.0]))
    tensor([ 0.3133,  0.6931, 30.0000])
    """
    return elementwise(_softplus_op, input, beta, threshold)


logsigmoid = elementwise_function(
    elementwise_op(
        "logsigmoid",
        lambda x: call("minimum", x, 0) - call("log1p", call("exp", -call("abs", x))),
        inputs="x",
        domain="f",
        vjp={"x": lambda g, x: g * sigmoid(-x)},
    ),
    """`log(sigmoid(input))` without overflow.

    >>> import undertow as ut
    >>> ut.nn.functional.logsigmoid(ut.tensor([0.0, -100.0]))
    tensor([  -0.6931, -100.0000])
    """,
    top=False,
    functional=True,
    method=False,
)


def _mish_slope(g: Any, x: Any) -> Any:
    t = tanh(elementwise(_softplus_op, x, 1.0, 20.0))
    return g * (t + x * sigmoid(x) * (1 - t * t))


_mish = unary_function(
    elementwise_op(
        "mish",
        lambda x: x * call("tanh", _softplus_expr(x, 1.0, 20.0)),
        inputs="x",
        domain="f",
        vjp={"x": _mish_slope},
    )
)
_mish_ = inplace_form(_mish, "mish_")


@function(top=False, functional=True, method=False)
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """`input * tanh(softplus(input))`, elementwise.

    >>> import undertow as ut
    >>> ut.nn.functional.mish(ut.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """
    return (_mish_ if inplace else _mish)(input)


def _complex_softsign(g: Tensor, x: Tensor) -> Tensor:
    size = abs(x) + 1
    return g / size - sgn(x) * ((g * conjugate(x)).real / (size * size))


softsign = elementwise_function(
    elementwise_op(
        "softsign",
        lambda x: x / (1 + call("abs", x)),
        inputs="x",
        kind="float",
        domain="f",
        vjp={"x": lambda g, x: g / square(1 + abs(x))},
        complex_op=elementwise_op(
            "complex_softsign",
            lambda x: x / (1 + call("abs", x)),
            inputs="x",
            domain="c",
            vjp={"x": _complex_softsign},
            conjugate=False,
        ),
    ),
    """`input / (1 + abs(input))`, elementwise.

    >>> import undertow as ut
    >>> ut.nn.functional.softsign(ut.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """,
    top=False,
    functional=True,
    method=False,
)


_tanhshrink = unary_function(
    elementwise_op(
        "tanhshrink",
        lambda x: x - call("tanh", x),
        inputs="x",
        kind="float",
        vjp={"x": lambda g, x: g * square(tanh(x))},
    )
)


@function(top=False, functional=True, method=False)
def tanhshrink(input: Tensor) -> Tensor:
    """`input - tanh(input)`, elementwise.

    >>> import undertow as ut
    >>> ut.nn.functional.tanhshrink(ut.tensor([0.0, 2.0]))
    tensor([0.0000, 1.0360])
    """
    return _tanhshrink(input)


# The Gaussian ones ---------------------------------------------------------------------------
def _gelu_slope(g: Any, x: Any) -> Any:
    density = exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
    return g * (0.5 * (1 + erf(x * math.sqrt(0.5))) + x * density)


_gelu = unary_function(
    elementwise_op(
        "gelu",
        lambda x: 0.5 * x * (1 + erf_expr(x * math.sqrt(0.5))),
        inputs="x",
        domain="f",
        vjp={"x": _gelu_slope},
    )
)
_GELU_TANH = (math.sqrt(2 / math.pi), 0.044715 * math.sqrt(2 / math.pi))


def _gelu_tanh_slope(g: Any, x: Any) -> Any:
    linear, cubic = _GELU_TANH
    squared = x * x
    t = tanh(x * (linear + cubic * squared))
    return g * (0.5 * (1 + t) + 0.5 * x * ((1 - t * t) * (linear + 3 * cubic * squared)))


_gelu_tanh = unary_function(
    elementwise_op(
        "gelu_tanh",
        lambda x: 0.5 * x * (1 + call("tanh", x * (_GELU_TANH[0] + _GELU_TANH[1] * (x * x)))),
        inputs="x",
        domain="f",
        vjp={"x": _gelu_tanh_slope},
    )
)


@function(top=False, functional=True, method=False)
def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """`input` times the normal distribution function of it; "tanh" approximates that.

    >>> import undertow as ut
    >>> ut.nn.functional.gelu(ut.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """
    if approximate == "none":
        return _gelu(input)
    if approximate == "tanh":
        return _gelu_tanh(input)
    raise ArgumentError(f"[gelu] approximate is 'none' or 'tanh', got {approximate!r}")


# Gates ---------------------------------------------------------------------------------------
def _gate_slope(g: Any, a: Any, b: Any) -> Any:
    s = sigmoid(b)
    return g * (a * (s * (1 - s)))


_gated = binary_function(
    elementwise_op(
        "gated",
        lambda a, b: a / (1 + call("exp", -b)),
        inputs="a b",
        kind="float",
        vjp={"a": lambda g, b: g * sigmoid(b), "b": _gate_slope},
    )
)


@function(top=False, functional=True, method=False)
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second half.

    >>> import undertow as ut
    >>> ut.nn.functional.glu(ut.tensor([3.0, 4.0, 0.0, 0.0]))
    tensor([1.5000, 2.0000])
    """
    if input.ndim == 0:
        raise DimError("[glu] needs a dimension to halve, got a zero-dimensional tensor")
    d = wrap_dim("glu", dim, input.ndim)
    size = input.shape[d]
    if size % 2:
        raise ShapeError(f"[glu] dim {dim} must have an even size, got {size}")
    half = size // 2
    # The gradients of the halves of a split are joined at once.
    halves = input.split(half, d) if half else (input, input)
    return _gated(*halves)


FUNCTIONAL["sigmoid"] = FUNCTIONS["sigmoid"]
FUNCTIONAL["tanh"] = FUNCTIONS["tanh"]
