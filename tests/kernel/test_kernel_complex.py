"""Generated kernels of complex numbers against NumPy: expressions, layouts, sums, products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends.cpu.forms.complex_products import complex_product
from undertow.backends.cpu.forms.maps import run_maps
from undertow.backends.cpu.forms.reductions import run_map_reduce, run_reduce
from undertow.backends.reference import compile_map
from undertow.kernel.expr import call, trace, where

DTYPES = (np.complex64, np.complex128)
EXPRESSIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "reciprocal": lambda a, b: 1 / a,
    "real beside": lambda a, b: (2 - a) * 3 + (b - 1) / 2 - call("abs", b),
    "complex constants": lambda a, b: a * 2j + (1 - 3j) - b,
    "conj": lambda a, b: call("conj", a) * -b,
    "parts": lambda a, b: call("real", a) * b + call("imag", b),
    "exp": lambda a, b: call("exp", a),
    "log": lambda a, b: call("log", a),
    "sqrt": lambda a, b: call("sqrt", a),
    "abs": lambda a, b: call("abs", a),
    "angle": lambda a, b: call("angle", a),
    "sin": lambda a, b: call("sin", a),
    "cos": lambda a, b: call("cos", a),
    "sinh": lambda a, b: call("sinh", a),
    "cosh": lambda a, b: call("cosh", a),
    "where": lambda a, b: where(call("ne", a, b), a, 0),
    "sign": lambda a, b: a / where(call("eq", a, 0), 1, call("abs", a)),
    "eq": lambda a, b: call("eq", a, b),
    "isnan": lambda a, b: call("isnan", a) | ~call("isfinite", b),
    "truth": lambda a, b: call("logical_and", a, b),
}


def numbers(*shape: int, dtype: type = np.complex128, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return (2 * random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype)


def close(found: np.ndarray, expected: np.ndarray, dtype: type) -> None:
    rtol = 1e-5 if dtype == np.complex64 else 1e-12
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions(name: str, dtype: type) -> None:
    expr = trace(EXPRESSIONS[name], 2)
    for size in (1, 7, 16, 37, 1000):  # whole vectors and the rest
        a, b = numbers(size, dtype=dtype), numbers(size, dtype=dtype, seed=1)
        b[::3] = a[::3]
        expected = np.asarray(compile_map(expr, 2)(a, b))
        found = run_maps((expr,), (a, b), (expected.dtype,))
        assert found is not None
        assert found[0].dtype == expected.dtype
        close(found[0], expected, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_layouts_and_numbers(dtype: type) -> None:
    """Strided, transposed and broadcast operands, numbers, several results, results in place."""
    expr = trace(lambda a, b: a * b, 2)
    a, b = numbers(40, 30, dtype=dtype), numbers(30, dtype=dtype, seed=1)
    for left, right in (
        (a, b),
        (a.T, b[:1]),
        (a[:, ::2], b[::2]),
        (a[::-1], b[::-1]),
        (a, 2.5),
        (a, 3),
        (a, 1 - 2j),
        (a[:1, :1], b),
    ):
        found = run_maps((expr,), (left, right), (np.dtype(dtype),))
        assert found is not None
        close(found[0], left * np.asarray(right, dtype), dtype)
    both = (trace(lambda a: a + 1j, 1), trace(lambda a: call("abs", a), 1))
    first, second = run_maps(both, (a,), (np.dtype(dtype), a.real.dtype))  # type: ignore[misc]
    close(first, a + 1j, dtype)
    close(second, np.abs(a), dtype)
    out = numbers(40, 60, dtype=dtype)
    before = out.copy()
    assert run_maps(both[:1], (a,), (np.dtype(dtype),), (out[:, ::2],)) is not None
    close(out[:, ::2], a + 1j, dtype)
    np.testing.assert_array_equal(out[:, 1::2], before[:, 1::2])


def test_large_results_stream() -> None:
    a, b = numbers(1 << 20, dtype=np.complex64), numbers(1 << 20, dtype=np.complex64, seed=1)
    expr = trace(lambda a, b: a * b, 2)
    for start in (0, 1, 5):
        found = run_maps((expr,), (a[start:], b[start:]), (np.dtype(np.complex64),))
        assert found is not None
        close(found[0], a[start:] * b[start:], np.complex64)


def test_quotients_neither_overflow_nor_vanish() -> None:
    a = np.array([1 + 1j, 1e300 + 1e300j, 1e-300 - 1e-300j, 2.0, 3j], np.complex128)
    b = np.array([1e300 + 1e300j, 1e300 + 1e299j, 1e-300 + 1e-301j, 1j, -2.0], np.complex128)
    (found,) = run_maps((trace(lambda a, b: a / b, 2),), (a, b), (a.dtype,))  # type: ignore[misc]
    np.testing.assert_allclose(found, a / b, rtol=1e-14)


def test_logarithms_near_the_unit_circle() -> None:
    angles = np.linspace(0, 6, 50)
    z = np.exp(1j * angles) * (1 + 1e-9)
    (found,) = run_maps((trace(lambda a: call("log", a), 1),), (z,), (z.dtype,))  # type: ignore[misc]
    np.testing.assert_allclose(found.real, np.log(z).real, rtol=1e-6)


def test_what_has_no_formula_is_left_to_numpy() -> None:
    z = numbers(100)
    for head in ("tanh", "asin", "log1p"):
        assert run_maps((trace(lambda a, head=head: call(head, a), 1),), (z,), (z.dtype,)) is None
    assert run_maps((trace(lambda a: call("exp", a), 1),), (z,), (z.real.dtype,)) is None
    for kind in ("prod", "any", "max"):
        assert run_reduce(kind, z, (0,), False) is None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape, dims",
    [((5,), (0,)), ((70, 130), (1,)), ((301, 70), (0,)), ((20000,), (0,)), ((4, 5, 6), (0, 2))],
)
def test_sums(shape: tuple[int, ...], dims: tuple[int, ...], dtype: type) -> None:
    x = numbers(*shape, dtype=dtype)
    for given in (
        x,
        x.swapaxes(0, -1).copy().swapaxes(0, -1),
        numbers(*shape, 2, dtype=dtype)[..., 1],
    ):
        wide = given.astype(np.complex128)
        for kind, keepdim in (("sum", False), ("mean", True)):
            found = run_reduce(kind, given, dims, keepdim)
            assert found is not None
            assert found.dtype == dtype
            expected = getattr(wide, kind)(axis=dims, keepdims=keepdim)
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
        power = trace(lambda a: call("real", a * call("conj", a)), 1)
        squares = run_map_reduce("sum", power, (given,), dims, False, given.real.dtype)
        np.testing.assert_allclose(squares, (np.abs(wide) ** 2).sum(dims), rtol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "left, right", [((9, 7), (7, 5)), ((3, 20, 30), (30, 17)), ((2, 1, 8, 9), (3, 9, 4))]
)
def test_products(left: tuple[int, ...], right: tuple[int, ...], dtype: type) -> None:
    a, b = numbers(*left, dtype=dtype), numbers(*right, dtype=dtype, seed=1)
    bias = numbers(right[-1], dtype=dtype, seed=2)
    turned = a.swapaxes(-1, -2).copy().swapaxes(-1, -2)
    for x in (a, turned):
        close(complex_product(x, b), x @ b, dtype)
        close(complex_product(x, b, bias), x @ b + bias, dtype)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_exp_near_overflow_and_at_infinities(dtype: Any) -> None:
    """C99's answers, as NumPy's; the angle may be as small as exp is large."""
    sizes = [0.0, -0.0, 80.0, 88.8, 90.0, 150.0, 700.0, 710.0, 720.0, 1000.0, -800.0]
    sizes += [np.inf, -np.inf, np.nan]
    angles = [0.0, -0.0, 0.5, -2.0, 3.0, 1e-30, 1e-300, np.inf, -np.inf, np.nan]
    z = np.array([complex(a, b) for a in sizes for b in angles], dtype)
    with np.errstate(all="ignore"):
        expected = np.exp(z)
    (found,) = run_maps((trace(lambda x: call("exp", x), 1),), (z,), (z.dtype,))
    for part in ("real", "imag"):
        mine, exact = getattr(found, part), getattr(expected, part)
        np.testing.assert_allclose(mine, exact, rtol=8 * np.finfo(dtype).eps)
        number = ~np.isnan(exact)
        zero = number & (exact == 0)
        np.testing.assert_array_equal(np.signbit(mine[zero]), np.signbit(exact[zero]))


@pytest.mark.parametrize("name", ["sin", "cos", "sinh", "cosh"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_waves_of_zero_times_infinity(name: str, dtype: Any) -> None:
    """A part that is zero stays zero where the other is infinite or NaN, as in C99."""
    parts = [0.0, -0.0, 1.0, -2.0, 1e5, -1e5, np.inf, -np.inf, np.nan]
    z = np.array([complex(x, y) for x in parts for y in parts if x == 0 or y == 0], dtype)
    found = getattr(ut, name)(ut.from_numpy(np.tile(z, 300))).numpy()[: len(z)]
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(z)
    for mine, right in ((found.real, exact.real), (found.imag, exact.imag)):
        np.testing.assert_allclose(mine, right, rtol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("copies", [1, 2000])
def test_log1p_near_zero(dtype: Any, copies: int) -> None:
    """Where 1 + z has lost the digits of z, the series of the logarithm has them."""
    small = np.array([1e-20 + 2e-20j, -3e-10 + 1e-12j, 1e-4 - 2e-4j, -2e-3, 1e-30, 3e-3j])
    z = np.tile(small.astype(dtype), copies)
    found = ut.log1p(ut.from_numpy(z)).numpy().astype(np.complex128)
    z = z.astype(np.complex128)
    exact = sum(-((-z) ** k) / k for k in range(1, 9))
    for mine, right in ((found.real, exact.real), (found.imag, exact.imag)):
        np.testing.assert_allclose(mine, right, rtol=16 * np.finfo(dtype).eps, atol=1e-26)
    both = ut.logaddexp(ut.tensor([0j]), ut.tensor([complex(-np.inf, np.nan)]))
    assert both.real.isnan().all()
    assert both.imag.isnan().all()


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__, "-q"]))
