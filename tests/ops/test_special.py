"""The special functions of `undertow.kernel` against stored values of mpmath.

tests/data/special_values.json holds rows [x, value] or [x, value, scale], the value rounded from
40 digits. Most x are float32 numbers, so that one table serves both precisions. Where a function
has zeros that its method cannot resolve, the scale says what its error is measured against.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import inf, nan, pi
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import undertow as ut
from undertow.backends.cpu.forms.maps import run_maps
from undertow.backends.reference import compile_map
from undertow.kernel import airy, bessel, bessel_decay, bessel_waves, erf, gamma, normal, zeta
from undertow.kernel.expr import Expr, arg, trace

FUNCTIONS: dict[str, Callable[[Expr], Expr]] = {
    "erf": erf.erf,
    "erfc": erf.erfc,
    "erfinv": erf.erfinv,
    "lgamma": gamma.lgamma,
    "digamma": gamma.digamma,
    "polygamma1": lambda x: gamma.polygamma(1, x),
    "polygamma2": lambda x: gamma.polygamma(2, x),
    "polygamma3": lambda x: gamma.polygamma(3, x),
    "polygamma5": lambda x: gamma.polygamma(5, x),
    "polygamma10": lambda x: gamma.polygamma(10, x),
    "i0": bessel.i0,
    "i0e": bessel.i0e,
    "i1": bessel.i1,
    "i1e": bessel.i1e,
}

MOST = 4.0  # ulps, with half an ulp for the rounding of the stored value in float64
NUMPYS = 5.0  # in float32, where NumPy's own exp and log have errors of 2.5 and 3.8 ulps

TABLE: dict[str, list[list[float]]] = json.loads(
    (Path(__file__).parents[1] / "data" / "special_values.json").read_text()
)
EXPRESSIONS = {name: trace(function, 1) for name, function in FUNCTIONS.items()}
DTYPES: list[Any] = [np.float64, np.float32]


def evaluate(name: str, x: Any, dtype: Any = np.float64) -> Any:
    """A function at an array of the dtype."""
    given = np.asarray(x, dtype)
    with np.errstate(all="ignore"):
        result = compile_map(EXPRESSIONS[name], 1)(given)
    assert result.dtype == given.dtype
    return result


def evaluate_by_kernel(name: str, x: Any) -> Any:
    """The same as a generated kernel."""
    (result,) = run_maps((EXPRESSIONS[name],), (x,), (x.dtype,)) or (None,)
    return result


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_in_ulps(name: str, dtype: Any) -> None:
    """At most four, of NumPy's form in float64 and of kernels in float32."""
    rows = [(row[0], row[1], row[2] if len(row) == 3 else abs(row[1])) for row in TABLE[name]]
    x, expected, scale = np.array(rows).T
    with np.errstate(over="ignore", under="ignore"):
        usable = (x == x.astype(dtype)) & np.isfinite(scale.astype(dtype))
        x, expected, scale = x[usable], expected[usable], scale[usable]
        ulp = np.spacing(scale.astype(dtype)).astype(np.float64)
    assert len(x) >= 15

    def check(found: Any, bound: float) -> None:
        errors = np.abs(found.astype(np.float64) - expected) / ulp
        worst = int(np.argmax(errors))
        assert errors[worst] <= bound, f"{errors[worst]:.2f} ulp at x = {x[worst]!r}"

    check(evaluate(name, x, dtype), MOST if dtype is np.float64 else NUMPYS)
    if dtype is np.float32:
        check(evaluate_by_kernel(name, x.astype(dtype)), MOST)


# At inf, -inf, 0.0 and -0.0.
AT_THE_ENDS: dict[str, tuple[float, ...]] = {
    "erf": (1.0, -1.0, 0.0, -0.0),
    "erfc": (0.0, 2.0, 1.0, 1.0),
    "erfinv": (nan, nan, 0.0, -0.0),
    "lgamma": (inf, inf, inf, inf),
    "digamma": (inf, nan, -inf, inf),
    "polygamma1": (0.0, inf, inf, inf),
    "polygamma2": (-0.0, -inf, -inf, -inf),
    "polygamma3": (0.0, inf, inf, inf),
    "i0": (inf, inf, 1.0, 1.0),
    "i0e": (0.0, 0.0, 1.0, 1.0),
    "i1": (inf, -inf, 0.0, -0.0),
    "i1e": (0.0, -0.0, 0.0, -0.0),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", AT_THE_ENDS)
def test_infinities_and_zeros(name: str, dtype: Any) -> None:
    result = evaluate(name, [inf, -inf, 0.0, -0.0], dtype)
    expected = np.array(AT_THE_ENDS[name], dtype)
    np.testing.assert_array_equal(result, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result[number]), np.signbit(expected[number]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_nan_stays_nan(name: str, dtype: Any) -> None:
    assert np.isnan(evaluate(name, [nan], dtype)).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_number_gives_nan(name: str, dtype: Any) -> None:
    info = np.finfo(dtype)
    size = np.exp2(np.linspace(info.minexp, info.maxexp - 1, 5001))
    size = np.concatenate([[info.smallest_subnormal], size, [info.max]])
    if name == "erfinv":
        size = size[size <= 1]
    x = np.concatenate([size, -size]).astype(dtype)
    if name == "digamma":
        x = x[(x > 0) | (x != np.rint(x))]
    assert not np.isnan(evaluate(name, x, dtype)).any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_poles(dtype: Any) -> None:
    x = [-1.0, -2.0, -3.0, -100.0, -float(2**22), -1e20, -1e38]
    assert (evaluate("lgamma", x, dtype) == inf).all()
    assert np.isnan(evaluate("digamma", x, dtype)).all()
    assert (evaluate("polygamma1", x, dtype) == inf).all()
    assert (evaluate("polygamma2", x, dtype) == -inf).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_erfinv_has_no_value_outside_its_interval(dtype: Any) -> None:
    above = np.nextafter(dtype(1), dtype(2))
    np.testing.assert_array_equal(evaluate("erfinv", [1.0, -1.0], dtype), [inf, -inf])
    assert np.isnan(evaluate("erfinv", [above, -above, 3.0, -1e30], dtype)).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_zeros_of_lgamma_are_positive(dtype: Any) -> None:
    zeros = evaluate("lgamma", [1.0, 2.0], dtype)
    assert (zeros == 0).all()
    assert not np.signbit(zeros).any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "sign"), [("erf", -1), ("erfinv", -1), ("i0", 1), ("i0e", 1), ("i1", -1), ("i1e", -1)]
)
def test_symmetry_is_exact(name: str, sign: int, dtype: Any) -> None:
    x = np.linspace(0, 1 if name == "erfinv" else 20, 4001)
    np.testing.assert_array_equal(evaluate(name, -x, dtype), dtype(sign) * evaluate(name, x, dtype))


# Identities over dense grids see the regions between the stored points.


def test_erf_and_erfc_add_up_to_one() -> None:
    x = np.linspace(-7, 7, 20001)
    np.testing.assert_allclose(evaluate("erf", x) + evaluate("erfc", x), 1, rtol=5e-16)


def test_erfinv_inverts_erf() -> None:
    y = np.linspace(-2.2, 2.2, 20001)
    # The error of erf divided by its slope, beside the error of erfinv itself.
    tolerance = 1e-15 * np.abs(y) + 3e-16 * np.abs(evaluate("erf", y)) * np.exp(y * y)
    assert (np.abs(evaluate("erfinv", evaluate("erf", y)) - y) <= tolerance).all()


def test_recurrences_of_the_gamma_family() -> None:
    x = np.linspace(-6, 20, 20001)
    x = x[np.abs(x - np.rint(x)) > 1e-3]
    log = np.log(np.abs(x))
    np.testing.assert_allclose(
        evaluate("lgamma", x + 1), evaluate("lgamma", x) + log, rtol=1e-12, atol=1e-12
    )
    for name, step in (("digamma", 1 / x), ("polygamma1", -(x**-2.0)), ("polygamma2", 2 * x**-3.0)):
        here, there = evaluate(name, x), evaluate(name, x + 1)
        # x + 1 is rounded, which the poles amplify.
        size = 1 + np.abs(here) + np.abs(there)
        assert (np.abs(there - here - step) <= 1e-11 * size**1.5).all(), name


def test_scaled_bessel_functions_agree_with_the_unscaled() -> None:
    x = np.linspace(-30, 30, 20001)
    for name in ("i0", "i1"):
        scaled = evaluate(name + "e", x) * np.exp(np.abs(x))
        np.testing.assert_allclose(scaled, evaluate(name, x), rtol=3e-15)


def test_known_values() -> None:
    euler = 0.5772156649015329
    assert evaluate("digamma", [1.0])[0] == pytest.approx(-euler, rel=4e-16)
    assert evaluate("lgamma", [0.5])[0] == pytest.approx(np.log(pi) / 2, rel=4e-16)
    assert evaluate("polygamma1", [1.0])[0] == pytest.approx(pi**2 / 6, rel=4e-16)


def test_polygamma_of_order_zero_is_digamma() -> None:
    assert str(gamma.polygamma(0, arg(0))) == str(gamma.digamma(arg(0)))


def test_polygamma_refuses_a_negative_order() -> None:
    with pytest.raises(ValueError, match=r"\[polygamma\].*-1"):
        gamma.polygamma(-1, arg(0))


# Functions of `ut.special`, held against mpmath itself -------------------------------------------
def exact_ndtri(p: Any) -> Any:
    """By Newton's method on the logarithm."""
    q = min(p, 1 - p)
    x = -mp.sqrt(-2 * mp.log(q))
    for _ in range(60):
        x -= (mp.log(mp.ncdf(x)) - mp.log(q)) * mp.ncdf(x) / mp.npdf(x)
    return x if p < 0.5 else -x


Case = tuple[Callable[[Expr], Expr], Callable[[Any], Any], tuple[float, float], float]
# The expression, mpmath's function, an interval, and the scale of errors near zeros.
AGAINST_MPMATH: dict[str, Case] = {
    "j0": (bessel_waves.j0, mp.j0, (0, 30), 0.08),
    "j1": (bessel_waves.j1, mp.j1, (0, 30), 0.08),
    "y0": (bessel_waves.y0, lambda x: mp.bessely(0, x), (0.01, 30), 0.08),
    "y1": (bessel_waves.y1, lambda x: mp.bessely(1, x), (0.01, 30), 0.08),
    "k0": (bessel_decay.k0, lambda x: mp.besselk(0, x), (0.01, 60), 0),
    "k1": (bessel_decay.k1, lambda x: mp.besselk(1, x), (0.01, 60), 0),
    "ai": (airy.ai, mp.airyai, (-2.1, 15), 0),
    "ai below": (airy.ai, mp.airyai, (-20, -2.1), 0.15),
    "ai'": (airy.ai_derivative, lambda x: mp.airyai(x, derivative=1), (-2.1, 15), 0),
    "erfcx": (normal.erfcx, lambda x: mp.exp(x * x) * mp.erfc(x), (-8, 30), 0),
    "ndtr": (normal.ndtr, mp.ncdf, (-12, 5), 0),
    "log_ndtr": (normal.log_ndtr, lambda x: mp.log(mp.ncdf(x)), (-50, 5), 0),
    "ndtri": (normal.ndtri, exact_ndtri, (0.0001, 0.999), 0.1),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", AGAINST_MPMATH)
def test_within_four_ulps(name: str, dtype: Any) -> None:
    """At 40 points; near zeros, ulps of the scale (dense sweeps find no more either)."""
    expr, function, ends, scale = AGAINST_MPMATH[name]
    most = 4.5 if name == "ai" else 4.0  # Ai has a zero near the end of its interval
    x = np.random.default_rng(5).uniform(*ends, 40).astype(dtype)
    with np.errstate(all="ignore"):
        found = compile_map(trace(expr, 1), 1)(x)
    assert found.dtype == dtype
    with mp.workdps(40):
        for at, value in zip(x.tolist(), found.tolist(), strict=True):
            exact = function(mp.mpf(at))
            ulp = float(np.spacing(dtype(max(abs(float(exact)), scale))))
            if ulp > np.finfo(dtype).smallest_normal:
                assert abs(mp.mpf(value) - exact) <= most * ulp, (name, at)


def test_incomplete_gamma_functions() -> None:
    """Both within four ulps, over all methods and their edges, far out as well."""
    a = [0.01, 0.5, 0.5, 3.0, 3.0, 20.0, 25.0, 25.8, 300.0, 300.0, 2000.0, 0.3]
    x = [0.3, 0.499, 0.6, 2.9, 3.1, 10.6, 25.0, 50.2, 280.0, 320.0, 2050.0, 8.0]
    rng = np.random.default_rng(2)
    more = np.exp(rng.uniform(np.log(0.02), np.log(1500), 60))
    a, x = np.array([*a, *more]), np.array([*x, *(more * np.exp(rng.uniform(-0.8, 0.7, 60)))])
    lower = ut.igamma(ut.from_numpy(a), ut.from_numpy(x)).tolist()
    upper = ut.igammac(ut.from_numpy(a), ut.from_numpy(x)).tolist()
    with mp.workdps(250):  # for 1 - P where Q is small
        for i, (p, q) in enumerate(zip(a.tolist(), x.tolist(), strict=True)):
            # the series, in enough digits
            term = total = 1 / mp.mpf(p)
            k = mp.mpf(p)
            while term > total * mp.mpf(10) ** -248:
                k += 1
                term *= q / k
                total += term
            exact = total * mp.exp(p * mp.log(q) - q - mp.loggamma(p))
            for found, value in ((lower[i], exact), (upper[i], 1 - exact)):
                if value > 1e-290:
                    ulp = float(np.spacing(float(value)))
                    assert abs(mp.mpf(float(found)) - value) < 4.0 * ulp, (p, q)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_incomplete_gamma_functions_of_huge_numbers(dtype: Any) -> None:
    """There they are the normal distribution's; they were 0, 1 or NaN beyond a few digits."""
    top = 38 if dtype is np.float32 else 300
    centre = 10.0 ** np.linspace(6, top, 25).astype(dtype)
    centre = np.concatenate([centre] * 5).astype(dtype)
    away = np.repeat([0.0, -1.0, 1.0, -3.0, 3.0], 25) * np.sqrt(centre.astype(np.float64))
    x = (centre + away).astype(dtype)
    z = (x.astype(np.float64) - centre) / np.sqrt(centre.astype(np.float64))
    below = np.array([float(mp.ncdf(v)) for v in z])
    for name, wanted in (("igamma", below), ("igammac", 1 - below)):
        found = getattr(ut, name)(ut.tensor(centre), ut.tensor(x)).numpy()
        assert found.dtype == dtype
        np.testing.assert_allclose(found, wanted, atol=2e-3)  # of order 1 / sqrt(a)
        exact = np.where(away == 0, 0.5, found)[centre > 1e20]
        np.testing.assert_allclose(found[centre > 1e20], exact, rtol=2e-6)
    apart = np.array([0.5, 0.99, 1.01, 2.0], dtype=dtype) * centre[24]
    a = ut.tensor(np.full(4, centre[24]))
    assert ut.igamma(a, ut.tensor(apart)).tolist() == [0.0, 0.0, 1.0, 1.0]


def test_incomplete_gamma_functions_of_nan() -> None:
    """Also where the limit at a = 0 would hide it."""
    a, x = ut.tensor([0.0, 1.0]), ut.tensor([nan, nan])
    assert ut.igamma(a, x).isnan().all()
    assert ut.igammac(a, x).isnan().all()


@pytest.mark.parametrize("dtype", [ut.float32, ut.float64])
def test_the_slope_of_i1e_far_out(dtype: Any) -> None:
    """Where squares overflow, and at infinity; it was NaN, and all rounding before that."""
    last = 1e38 if dtype is ut.float32 else 1e300
    x = ut.tensor([1.1e5, -1e7, 1e12, 1e20, -last, inf, -inf], dtype=dtype, requires_grad=True)
    ut.special.i1e(x).sum().backward()
    at = x.detach().double().numpy()
    with np.errstate(all="ignore"):
        size = np.abs(at)
        wanted = -0.5 / np.sqrt(2 * pi) * size**-1.5 * (1 - 1.125 / size)
    most = 3e-6 if dtype is ut.float32 else 1e-9
    np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=most, atol=1e-44)


def test_derivatives_of_zeta_and_erfcx() -> None:
    """Of order 2, against mpmath's own differentiation."""
    with np.errstate(all="ignore"):
        found = compile_map(trace(lambda s, q: zeta.zeta(2, s, q), 2), 2)(
            np.array([1.5, 3.0, 12.0]), np.array([0.4, 2.0, 1.5])
        )
        slopes = compile_map(trace(lambda x: normal.erfcx_derivative(2, x), 1), 1)(
            np.array([-1.0, 1.0, 3.0, 50.0])
        )
    with mp.workdps(40):
        for value, s, q in zip(found, (1.5, 3.0, 12.0), (0.4, 2.0, 1.5), strict=True):
            assert value == pytest.approx(float(mp.zeta(s, mp.mpf(q), 2)), rel=1e-13)
        for value, x in zip(slopes, (-1.0, 1.0, 3.0, 50.0), strict=True):
            exact = mp.diff(lambda t: mp.exp(t * t) * mp.erfc(t), mp.mpf(x), 2)
            assert value == pytest.approx(float(exact), rel=1e-12)
