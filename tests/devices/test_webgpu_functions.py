"""Elementary functions as WGSL against float64: at most 2 ulp, and special values exactly.

`pytest -s` prints the worst of each. WGSL's own functions are 63 ulp and worse; ours are the
generated ones of all devices, see Note [fast math].
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from undertow.backends.reference import UFUNCS
from undertow.kernel.expr import PRIMITIVES, arg, call
from undertow.kernel.lower import lower
from wgsl_kernels import run

pytestmark = [pytest.mark.webgpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

ONE = [
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
]
ONE += ["atanh", "erf", "sqrt"]
TWO = ["pow", "atan2", "hypot", "fmod", "mod"]
SPECIAL = np.array(
    [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 2, -2, 0.5, -0.5, 3e38, -3e38, 1e-37, -1e-37],
    np.float32,
)
TINY = np.finfo(np.float32).tiny


def inputs() -> Any:
    random = np.random.default_rng(0)
    exponents = random.uniform(-37, 38, 20000)
    wide = 10**exponents * random.choice([-1, 1], 20000)
    usual = random.uniform(-100, 100, 20000)
    small = random.uniform(-2, 2, 20000)
    return np.concatenate([wide, usual, small, SPECIAL]).astype(np.float32)


def exact(name: str, *given: Any) -> Any:
    wide = [g.astype(np.float64) for g in given]
    if name == "erf":
        from math import erf

        return np.array([erf(v) for v in wide[0]])
    return UFUNCS[name](*wide)


def ulps(found: Any, expected: Any) -> Any:
    """Errors in units of the last place, where the result is a normal number."""
    rounded = expected.astype(np.float32)
    normal = np.isfinite(rounded) & (np.abs(expected) >= TINY)
    unit = np.spacing(np.abs(rounded[normal])).astype(np.float64)
    return np.abs(found[normal] - expected[normal]) / unit, normal


@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_function(runtime: Any, name: str) -> None:
    x = inputs()
    given = [x]
    if PRIMITIVES[name] == 2:
        a, b = np.repeat(SPECIAL, len(SPECIAL)), np.tile(SPECIAL, len(SPECIAL))
        y = np.roll(x, 12345)
        given = [np.concatenate([x, a]), np.concatenate([y, b])]
    expression = call(name, *[arg(i) for i in range(len(given))])

    def compute(f: Any, *values: Any) -> Any:
        return lower(f, expression, values, "f32")

    found = run(runtime, compute, given, "f32")
    expected = exact(name, *given)
    errors, normal = ulps(found, expected)
    print(f"{name}: {errors.max():.2f} ulp")
    assert errors.max() <= 2
    rest, wanted = found[~normal], expected[~normal].astype(np.float32)
    plain = (wanted == 0) | ~np.isfinite(wanted)  # what is subnormal may be flushed to zero
    np.testing.assert_array_equal(rest[plain], wanted[plain])
    zeros = plain & (wanted == 0) & (expected[~normal] == 0)
    np.testing.assert_array_equal(np.signbit(rest[zeros]), np.signbit(wanted[zeros]))
    assert (np.abs(rest[~plain]) <= TINY).all()
