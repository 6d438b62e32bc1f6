"""What the op table cannot say about elementwise ops: edges, ties, dtypes, doors, fused rules."""

from __future__ import annotations

import itertools
import math
import operator
import warnings
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.core.op import OPS

F = ut.nn.functional
nan, inf = math.nan, math.inf


def leaf(*values: float) -> ut.Tensor:
    return ut.tensor(list(values), dtype=ut.float64, requires_grad=True)


def check(found: Any, *expected: Any) -> None:
    np.testing.assert_allclose(found.detach()._array, np.array(expected), rtol=1e-12, atol=1e-15)


def grads(function: Any, *leaves: ut.Tensor) -> Any:
    return ut.autograd.grad(function(*leaves).sum(), leaves)


def seconds(function: Any, *leaves: ut.Tensor) -> Any:
    first = ut.autograd.grad(function(*leaves).sum(), leaves, create_graph=True)
    total = first[0].sum()
    for g in first[1:]:
        total = total + g.sum()
    return ut.autograd.grad(total, leaves, materialize_grads=True)


# Gradients at edges and ties -----------------------------------------------------------------
EDGES = {
    "pow": (
        lambda a, b: a**b,
        [(0, 0, 0, 2, 0), (0, 1, 2, 0, -1)],
        [(0, 1, 0, 0, -inf), (0, 0, 0, math.log(2), -inf)],
    ),
    "pow_nan": (lambda a, b: a**b, [(nan, nan, nan), (0, -0.0, 1)], [(0, 0, 1), (nan,) * 3]),
    "pow_number_zero": (lambda a: a**0, [(0, 2)], [(0, 0)]),
    "rpow": (lambda b: 0**b, [(0, 2)], [(0, 0)]),
    "sqrt": (ut.sqrt, [(0,)], [(inf,)]),
    "abs": (ut.abs, [(0, -0.0, -2)], [(0, 0, -1)]),
    "hypot": (ut.hypot, [(0, 3), (0, 4)], [(0, 0.6), (0, 0.8)]),
    "atan2": (ut.atan2, [(0, 1), (0, 0)], [(0, 0), (0, -1)]),
    "maximum": (ut.maximum, [(1, 2, 0), (1, 1, 1)], [(0.5, 1, 0), (0.5, 0, 1)]),
    "minimum": (ut.minimum, [(1, 2, 0), (1, 1, 1)], [(0.5, 0, 1), (0.5, 1, 0)]),
    "fmax": (ut.fmax, [(1, nan, 2, nan), (1, 1, nan, nan)], [(1, 0, 1, 1), (0, 1, 0, 0)]),
    "fmin": (ut.fmin, [(1, nan, 2, nan), (1, 1, nan, nan)], [(1, 0, 1, 1), (0, 1, 0, 0)]),
    "clamp": (lambda x: x.clamp(-1, 1), [(-2, -1, 0, 1, 2)], [(0, 1, 1, 1, 0)]),
    "clamp_tensor": (
        ut.clamp,
        [(1, 2, 3, 0, 5), (1, 3, 1, 1, 1), (3, 2, 3, 3, 3)],
        [(1, 0, 1, 0, 0), (0, 0, 0, 1, 0), (0, 1, 0, 0, 1)],
    ),
    "logaddexp": (ut.logaddexp, [(inf, 1, -inf), (inf, 1, -inf)], [(0.5,) * 3, (0.5,) * 3]),
    "xlogy": (ut.xlogy, [(0, 1, 0), (0, 1, 2)], [(0, 0, math.log(2)), (0, 1, 0)]),
    "copysign": (ut.copysign, [(0, -2, 3), (-1, 1, -0.0)], [(0, -1, -1), (0, 0, 0)]),
    "remainder": (ut.remainder, [(5, -5, 5), (3, 3, -3)], [(1, 1, 1), (-1, 2, 2)]),
    "fmod": (ut.fmod, [(5, -5, 5), (3, 3, -3)], [(1, 1, 1), (-1, 1, 1)]),
    "div_floor": (lambda a, b: ut.div(a, b, rounding_mode="floor"), [(5,), (3,)], [(0,), (0,)]),
    "nan_to_num": (ut.nan_to_num, [(nan, inf, 1)], [(0, 0, 1)]),
    "where_nan": (lambda x: ut.where(x > 0, x.sqrt(), 0), [(4, 0.25)], [(0.25, 1)]),
    "logit": (ut.logit, [(0, 1, 0.5, 2)], [(inf, inf, 4, nan)]),
    "sinc": (ut.sinc, [(0, 1e-9)], [(0, -(math.pi**2) / 3 * 1e-9)]),
    "relu": (ut.relu, [(0, nan, -1, 2)], [(0, 1, 0, 1)]),
    "relu6": (F.relu6, [(0, 6, 3, nan)], [(0, 0, 1, 1)]),
    "hardtanh": (F.hardtanh, [(-1, 1, 0, nan)], [(0, 0, 1, 1)]),
    "hardswish": (F.hardswish, [(-3, 3, 0)], [(0, 1, 0.5)]),
    "hardsigmoid": (F.hardsigmoid, [(-3, 3, 0)], [(0, 0, 1 / 6)]),
    "softshrink": (F.softshrink, [(0.5, -0.5, 1, 0)], [(0, 0, 1, 0)]),
    "leaky_relu": (F.leaky_relu, [(0, 1, -1)], [(0.01, 1, 0.01)]),
    "elu": (F.elu, [(0, 1000, -1000)], [(1, 1, 0)]),
    "softplus": (F.softplus, [(0, 1000, -1000)], [(0.5, 1, 0)]),
    "logsigmoid": (F.logsigmoid, [(0, 1000, -1000)], [(0.5, 0, 1)]),
    "sigmoid": (ut.sigmoid, [(0, 1000, -1000)], [(0.25, 0, 0)]),
}


@pytest.mark.parametrize("name", EDGES)
def test_gradient_at_edges(name: str) -> None:
    function, inputs, expected = EDGES[name]
    leaves = [leaf(*values) for values in inputs]
    for found, values in zip(grads(function, *leaves), expected, strict=True):
        check(found, *values)
    # with create_graph the rule runs as written, and must say the same
    again = ut.autograd.grad(function(*leaves).sum(), leaves, create_graph=True)
    for found, values in zip(again, expected, strict=True):
        check(found, *values)


FINITE = {
    "pow": (lambda a, b: a**b, [(0, 2), (0, 0)]),
    "hypot": (ut.hypot, [(0, 3), (0, 4)]),
    "atan2": (ut.atan2, [(0, 3), (0, 4)]),
    "xlogy": (ut.xlogy, [(0, 2), (0, 4)]),
    "logaddexp": (ut.logaddexp, [(inf, -inf, 1), (inf, -inf, 1)]),
    "elu": (F.elu, [(1000, -1000, 0)]),
    "celu": (F.celu, [(1000, -1000, 0)]),
    "selu": (F.selu, [(1000, -1000, 0)]),
    "mish": (F.mish, [(1000, -1000, 0)]),
    "silu": (F.silu, [(700, -700, 0)]),
    "gelu": (F.gelu, [(1000, -1000, 0)]),
    "softplus": (F.softplus, [(1000, -1000, 0)]),
    "logsigmoid": (F.logsigmoid, [(1000, -1000, 0)]),
}


@pytest.mark.parametrize("name", FINITE)
def test_second_gradient_stays_finite(name: str) -> None:
    function, inputs = FINITE[name]
    for found in seconds(function, *(leaf(*values) for values in inputs)):
        assert np.isfinite(found._array).all(), found


def test_lerp_reaches_its_ends_exactly() -> None:
    """`a + (b - a)` would be 0 here, since 1 is lost beside 1e20."""
    a, b = leaf(1e20, 1.0), leaf(1.0, 1e20)
    check(ut.lerp(a, b, 1.0), 1.0, 1e20)
    check(ut.lerp(a, b, 0.0), 1e20, 1.0)


def test_mixed_derivative_of_pow_at_exponent_zero() -> None:
    """d/db d/da a**b is 1/a at b = 0; masking the first derivative there would lose it."""
    a, b = leaf(2.0), leaf(0.0)
    (first,) = ut.autograd.grad((a**b).sum(), a, create_graph=True)
    check(ut.autograd.grad(first.sum(), b)[0], 0.5)


@pytest.mark.parametrize(
    "function, start, values",
    [
        (ut.i0, 0.0, [1, 0, 1 / 2, 0, 3 / 8, 0]),
        (ut.sinc, 0.0, [1, 0, -(math.pi**2) / 3, 0, math.pi**4 / 5, 0]),
        (
            ut.digamma,
            1.0,
            [-np.euler_gamma, math.pi**2 / 6, -2 * 1.2020569031595942, math.pi**4 / 15],
        ),
        (ut.erf, 0.0, [0, 2 / math.sqrt(math.pi), 0, -4 / math.sqrt(math.pi)]),
    ],
)
def test_derivatives_of_any_order(function: Any, start: float, values: list[float]) -> None:
    x = leaf(start)
    y = function(x)
    for expected in values:
        np.testing.assert_allclose(y.detach()._array, [expected], rtol=1e-10, atol=1e-10)
        (y,) = ut.autograd.grad(y.sum(), x, create_graph=True)


@pytest.mark.parametrize("function", [ut.i0, ut.sinc], ids=["i0", "sinc"])
def test_orders_agree_where_the_formulas_meet(function: Any) -> None:
    """Each derivative is continuous: finite differences across the change of formula."""
    x = leaf(*np.linspace(-25, 25, 401))
    y = function(x)
    h = 1e-6
    for _ in range(3):
        (slope,) = ut.autograd.grad(y.sum(), x, create_graph=True)

        def at(shift: float, order: int = _) -> Any:
            z = (x.detach() + shift).requires_grad_()
            value = function(z)
            for _ in range(order):
                (value,) = ut.autograd.grad(value.sum(), z, create_graph=True)
            return value.detach()._array

        numeric = (at(h) - at(-h)) / (2 * h)
        scale = np.maximum(np.abs(numeric), 1e-2)
        assert (np.abs(slope.detach()._array - numeric) / scale).max() < 1e-5
        y = slope


def test_heaviside_has_no_gradient() -> None:
    x = leaf(1.0)
    with pytest.raises(ut.errors.GradientError, match="heaviside"):
        ut.heaviside(x, leaf(0.5)).sum().backward()


# Operators -----------------------------------------------------------------------------------
@pytest.mark.parametrize("other", [3, 2.5, np.float64(1.5), np.array([1.0, 2.0])])
@pytest.mark.parametrize(
    "name",
    ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "eq", "ne"],
)
def test_operators_and_their_reflections(name: str, other: Any) -> None:
    apply = getattr(operator, name)
    array = np.array([1.25, 2.0])
    x = ut.tensor(array)
    np.testing.assert_allclose(apply(x, other)._array, apply(array, other))
    if not isinstance(other, (np.ndarray, np.generic)):
        np.testing.assert_allclose(apply(other, x)._array, apply(other, array))


@pytest.mark.parametrize("name", ["and_", "or_", "xor", "lshift", "rshift"])
def test_bit_operators_and_their_reflections(name: str) -> None:
    apply = getattr(operator, name)
    array = np.array([1, 2, 5])
    x = ut.tensor(array)
    assert apply(x, 3)._array.tolist() == apply(array, 3).tolist()
    assert apply(3, x)._array.tolist() == apply(3, array).tolist()
    assert (~x)._array.tolist() == (~array).tolist()


@pytest.mark.parametrize(
    "name, start",
    [
        ("iadd", 7.0),
        ("isub", 7.0),
        ("imul", 7.0),
        ("itruediv", 7.0),
        ("ifloordiv", 7.0),
        ("imod", 7.0),
        ("ipow", 7.0),
        ("iand", 7),
        ("ior", 7),
        ("ixor", 7),
        ("ilshift", 7),
        ("irshift", 7),
    ],
)
def test_operators_in_place_change_the_tensor_itself(name: str, start: Any) -> None:
    x = ut.tensor([start, start])
    view = x[:1]
    found = getattr(operator, name)(x, 2)
    expected = getattr(operator, name[1:] + ("_" if name in ("iand", "ior") else ""))(start, 2)
    assert found is x
    assert x._array.tolist() == [expected] * 2
    assert view._array.tolist() == [expected]


def test_equality_with_what_is_no_number() -> None:
    x = ut.tensor([1.0])
    assert (x == None) is False  # noqa: E711
    assert (x != "a") is True
    with pytest.raises(TypeError):
        x < None  # noqa: B015


def test_numbers_compare_exactly() -> None:
    """torch wraps the number to the tensor's dtype and says that 255 == -1."""
    x = ut.tensor([255], dtype=ut.uint8)
    for t in (x, ut.tensor([255], dtype=ut.uint8, device="reference")):
        assert (t == -1).tolist() == [False]
        assert (t < 300).tolist() == [True]


def test_where_of_a_condition_alone() -> None:
    rows, columns = ut.where(ut.tensor([[True, False], [False, True]]))
    assert rows.tolist() == [0, 1]
    assert columns.tolist() == [0, 1]


def test_integer_powers() -> None:
    found = ut.tensor([2, 1, -1, -1, 3]) ** ut.tensor([-1, -1, -3, -2, 2])
    assert found.tolist() == [0, 1, -1, 1, 9]
    assert (ut.tensor([True, False]) ** 2).dtype is ut.int64
    assert (ut.tensor([3]) ** 2.0).dtype is ut.float32


def test_integer_division_by_zero_changes_nothing() -> None:
    x = ut.tensor([1, 2])
    with pytest.raises(ut.errors.ArgumentError, match="by zero"):
        x //= 0
    with pytest.raises(ut.errors.ArgumentError, match="by zero"):
        x.remainder_(ut.tensor([1, 0]))
    assert x.tolist() == [1, 2]
    assert (ut.tensor([], dtype=ut.int64) // 0).tolist() == []


# Dtypes --------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [ut.float16, ut.bfloat16, ut.float32])
@pytest.mark.parametrize(
    "function",
    [
        ut.exp,
        ut.sigmoid,
        ut.erf,
        ut.lgamma,
        F.gelu,
        F.silu,
        F.elu,
        F.softplus,
        F.leaky_relu,
        F.hardswish,
        lambda x: x**2.5,
        lambda x: 1 - x,
        lambda x: 2 / x,
        lambda x: x.clamp(0, 1),
        lambda x: ut.lerp(x, x * 2, 0.25),
        lambda x: ut.where(x > 1, x, 0.5),
        ut.sign,
        ut.round,
    ],
)
def test_narrow_dtypes_are_kept(function: Any, dtype: Any) -> None:
    values = [0.5, 1.25, 3.0]
    x = ut.tensor(values, dtype=dtype, requires_grad=True)
    y = function(x)
    assert y.dtype is dtype
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.dtype is dtype
    exact = function(ut.tensor(values, dtype=ut.float64)).tolist()
    tolerance = {ut.float16: 2e-3, ut.bfloat16: 2e-2, ut.float32: 1e-6}[dtype]
    np.testing.assert_allclose(y.detach()._array.astype(np.float64), exact, rtol=tolerance)


@pytest.mark.parametrize(
    "name", ["i0", "digamma", "sinc", "exp", "logit", "xlogy", "copysign", "div"]
)
def test_integers_become_floats(name: str) -> None:
    x = ut.tensor([1, 2])
    arguments = (x, x) if name in ("xlogy", "copysign", "div") else (x,)
    assert getattr(ut, name)(*arguments).dtype is ut.float32


def test_no_warning_reaches_the_user() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"undertow\.")
        caught: list[Any] = []
        warnings.showwarning = lambda *args, **kwargs: caught.append(args)  # type: ignore[assignment]
        x = ut.tensor([0.0, -1.0, 1000.0], requires_grad=True)
        for function in (ut.log, ut.sqrt, ut.sigmoid, F.silu, F.gelu, F.softplus, lambda t: 1 / t):
            function(x).sum().backward()
        assert not caught


@pytest.mark.filterwarnings("error")
def test_warnings_as_errors_change_nothing() -> None:
    x = ut.tensor([0.0, -1.0, 1000.0], requires_grad=True)
    for function in (ut.log, ut.sqrt, ut.sigmoid, F.silu, F.gelu, F.softplus, lambda t: 1 / t):
        found = []
        for action in ("error", "ignore"):
            with warnings.catch_warnings():
                warnings.simplefilter(action)  # type: ignore[arg-type]
                y = function(x)
                (slope,) = ut.autograd.grad(y.sum(), x)
            found.append([t.detach().numpy().tobytes() for t in (y, slope)])
        assert found[0] == found[1]


# In-place activations ------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name",
    [
        "relu",
        "relu6",
        "leaky_relu",
        "elu",
        "celu",
        "selu",
        "silu",
        "mish",
        "hardtanh",
        "hardsigmoid",
        "hardswish",
    ],
)
def test_inplace_argument(name: str) -> None:
    x = ut.tensor([-4.0, -0.5, 0.5, 7.0])
    expected = getattr(F, name)(x).tolist()
    assert getattr(F, name)(x, inplace=True) is x
    assert x.tolist() == expected


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "elu", "celu", "selu", "hardtanh"])
def test_inplace_functions(name: str) -> None:
    x = ut.tensor([-4.0, -0.5, 0.5, 7.0])
    expected = getattr(F, name)(x).tolist()
    assert getattr(F, name + "_")(x) is x
    assert x.tolist() == expected


# Fused rules ---------------------------------------------------------------------------------
FUSED = [
    "mul",
    "div",
    "rdiv",
    "neg",
    "square",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "pow",
    "pow_number",
    "abs",
    "copysign",
    "clamp_min",
    "clamp_max",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "lerp",
    "where",
    "nan_to_num",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "sigmoid",
    "logit",
    "atan2",
    "hypot",
    "logaddexp",
    "logaddexp2",
    "xlogy",
    "deg2rad",
    "rad2deg",
    "erf",
    "erfc",
    "erfinv",
    "lgamma",
    "digamma",
    "i0",
    "sinc",
    "relu",
    "hardtanh",
    "leaky_relu",
    "threshold",
    "hardshrink",
    "softshrink",
    "hardsigmoid",
    "hardswish",
    "elu",
    "celu",
    "selu",
    "silu",
    "softplus",
    "logsigmoid",
    "mish",
    "softsign",
    "gelu",
    "gelu_tanh",
]


@pytest.mark.parametrize("name", FUSED)
def test_rule_is_fused(name: str) -> None:
    """A first-order backward of these runs one kernel on bare arrays; see Note [fused rules]."""
    op = OPS[name]
    ruled = [name in op.rules and op.rules[name][0].__name__ != "no_slope" for name in op.inputs]
    for needs in itertools.product([False, True], repeat=op.arity):
        if any(needs) and all(r or not n for r, n in zip(ruled, needs, strict=True)):
            bits = sum(need << i for i, need in enumerate(needs))
            assert op.plan(op.arity, bits).fused is not None, needs


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__, "-q"]))


def test_ldexp_of_powers_out_of_range() -> None:
    """The product counts, not the power; a half stays one, and zero stays zero."""
    x = ut.tensor([1e-30, 0.0, 1.0, 1e30, 1.0, 3.0])
    powers = [200, 5000, 5000, -200, -149, 2]
    with np.errstate(over="ignore"):
        expected = np.ldexp(x.numpy(), powers)
    assert ut.ldexp(x, ut.tensor(powers)).tolist() == expected.tolist()
    half = ut.ldexp(ut.tensor([1.0, 6e-8], dtype=ut.float16), ut.tensor([3, 30]))
    assert half.dtype is ut.float16
    assert half.tolist() == [8.0, 64.0]
    assert ut.ldexp(ut.tensor([3, 5]), ut.tensor([1, 2])).tolist() == [6.0, 20.0]
    y = ut.tensor([1.5], requires_grad=True)
    ut.ldexp(y, ut.tensor([4])).backward()
    assert y.grad is not None
    assert y.grad.tolist() == [16.0]


def test_hardshrink_compares_in_the_dtype() -> None:
    for dtype in (ut.bfloat16, ut.float16):
        x = ut.tensor([0.3, -0.3, 0.31], dtype=dtype)
        assert ut.nn.functional.hardshrink(x, 0.3)[:2].tolist() == [0.0, 0.0]
        assert ut.nn.functional.hardshrink(x, 0.3)[2] == x[2]


@pytest.mark.parametrize("width", [1, 2, 3, 4, 7, 8])
@pytest.mark.parametrize(
    "shapes", [((90, 1), (80,)), ((3, 70, 1), (3, 1, 40)), ((2, 2, 1), (900,))]
)
def test_small_arrays_with_a_large_product(shapes: Any, width: int) -> None:
    """Boxes beside boxes: short rows are walked along the longer dimension."""
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(*s, width)).astype(np.float32) for s in shapes)
    x, y = ut.tensor(a), ut.tensor(b)
    np.testing.assert_array_equal((x * y).numpy(), a * b)
    np.testing.assert_array_equal(ut.minimum(x, y).numpy(), np.minimum(a, b))
    np.testing.assert_array_equal((x < y).numpy(), a < b)
    wide = np.broadcast_to(a, (a * b).shape)
    np.testing.assert_array_equal((ut.tensor(wide) - y).numpy(), a - b)
    out = ut.ones(*wide.shape[:-1], 2 * width)[..., :width]
    out += x * y
    np.testing.assert_array_equal(out.numpy(), 1 + a * b)


def test_bounds_by_name() -> None:
    """Second operands have torch's names."""
    x = ut.arange(4.0)
    assert x.clamp_min(min=2).tolist() == [2.0, 2.0, 2.0, 3.0]
    assert ut.clamp_max(x, max=2).tolist() == [0.0, 1.0, 2.0, 2.0]
    assert x.clone().clamp_max_(max=1).tolist() == [0.0, 1.0, 1.0, 1.0]
    assert ut.heaviside(x, values=ut.tensor(0.5)).tolist() == [0.5, 1.0, 1.0, 1.0]
