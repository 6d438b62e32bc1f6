"""Elementary functions of kernels against more precise values, and exact ones against NumPy.

Errors are in ulp: units in the last place of the exact value. `pytest -s` prints the worst of each.
"""

import ctypes
import functools
import math
import warnings

import numpy as np
import pytest

from undertow.backends.cpu.codegen import jit, llvm
from undertow.backends.cpu.codegen.kernels import machine
from undertow.backends.reference import UFUNCS
from undertow.kernel import ir, ir_check
from undertow.kernel.expr import PRIMITIVES, call, trace
from undertow.kernel.lower import NotCompiled, lower

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

HOST = machine()
MACHINES = [
    m
    for m in (
        llvm.Machine(64, True, True),
        llvm.Machine(32, True, True),
        llvm.Machine(16, True, False),
        llvm.Machine(16, False, False),
    )
    if m.vector <= HOST.vector and m.fma <= HOST.fma
]
TYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "bool": np.bool_,
    **{
        f"{kind[0]}{bits}": np.dtype(f"{kind}{bits}").type
        for kind in ("int", "uint")
        for bits in (8, 16, 32, 64)
    },
}
FLOATS = ("f32", "f64")
INTEGERS = tuple(t for t in TYPES if t[0] in "iu")
PREDICATES = ("isnan", "isinf", "isfinite", "signbit")
WIDE = np.finfo(np.longdouble).nmant >= 63

UNARY = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}
BINARY = {"pow": np.power, "atan2": np.arctan2, "hypot": np.hypot}

# Where a function has a zero, a pole, or passes from one way of computing it to another.
HARD = {
    "exp": (88.72, 89, -87.34, -103.97, -104, 709.78, 710, -708.4, -745.13, -746, 0.3466, 0.34657),
    "exp2": (128, 129, -126, -149.5, -151, 1024, 1025, -1022, -1075, -1076, 0.5, -0.5, 1.5),
    "expm1": (0.34657, -0.34657, 1.03972, 87, 88.72, 708, 709.78, -17.3, -18, -37, -38, 1e-8),
    "log": (1, math.sqrt(0.5), math.sqrt(2), 2, 0.5, math.e, 2.0**-126, 2.0**-1022),
    "log2": (1, math.sqrt(0.5), math.sqrt(2), 2, 0.5, 2.0**-126, 2.0**-1022),
    "log10": (1, math.sqrt(0.5), math.sqrt(2), 10, 1000, 0.1, 1e-5, 2.0**-126, 2.0**-1022),
    "log1p": (0, -1, math.sqrt(2) - 1, math.sqrt(0.5) - 1, 1, 2.0**64, -0.5, 2.0**-53),
    "sin": (2.0**17, 2.0**30, 0.78539816, 1.5707963),
    "cos": (2.0**17, 2.0**30, 0.78539816, 1.5707963, 1e-4, 1e-8),
    "tan": (2.0**17, 2.0**30, 0.78539816, 1.5707963),
    "asin": (0.5, 1, 1e-4),
    "acos": (0.5, -0.5, 1, -1, 0, 1e-8),
    "atan": (1, 1e-4, 1e8),
    "sinh": (0.34657, 1.03972, 87, 88.72, 89.4, 90, 708, 710.47, 711),
    "cosh": (0.34657, 1.03972, 87, 88.72, 89.4, 90, 708, 710.47, 711),
    "tanh": (0.55, 9.01, 9.1, 10, 0.1733, 0.5199, 18.7, 19.06, 20),
    "asinh": (0.35, 0.51, 2.0**28, 1, 1e-4),
    "acosh": (1, 1.0607, 2.0**28, 2, 1.5),
    "atanh": (1, 0.1716, 0.5, 0.172, 1e-4),
    "erf": (0.2247, 0.9, 3.93, 5.93, 1e-4, 0.31),
}


# Kernels ------------------------------------------------------------------------------------------
@functools.cache
def kernel(head, dtype, machine, loop="vector", exponent=None):
    """The primitive over arrays: a kernel of one loop over all elements."""
    arity = PRIMITIVES[head] if exponent is None else 1
    result = "bool" if head in PREDICATES else dtype
    name = f"test_{head}_{dtype}_{machine.vector}_{int(machine.fma)}_{loop}_{str(exponent)[-6:]}"
    name = name.replace("-", "m").replace(".", "p")
    f = ir.Function(name)
    operands = [f.buffer(f"x{i}", dtype) for i in range(arity)]
    out, n = f.buffer("out", result, written=True), f.param("n")
    numbers = () if exponent is None else (exponent,)
    expr = trace(lambda *a: call(head, *a, *numbers), arity)
    with getattr(f, loop)(n) as i:
        f.store(out, i, lower(f, expr, [f.load(x, i) for x in operands], dtype))
    ir_check.check(f)
    assert str(f).startswith(f"void {name}")
    address = jit.load(name, llvm.emit(f, machine))
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (arity + 2), ctypes.c_int64)(address)

    def run(*arrays):
        given = [np.ascontiguousarray(a, TYPES[dtype]) for a in arrays]
        found = np.empty(given[0].shape, TYPES[result])
        function(None, *[a.ctypes.data for a in given], found.ctypes.data, found.size)
        return found

    return run


def same_bits(a, b):
    """Whether two arrays are equal, signs of zeros too, and NaN at the same places."""
    if a.dtype.kind != "f":
        return a == b
    return ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))


def ulp(got, exact):
    """The error of each element; infinite for a wrong NaN, infinity or sign of zero."""
    most = np.finfo(got.dtype).max
    beyond = np.longdouble(most) * (1 + np.longdouble(np.finfo(got.dtype).eps) / 2)
    with np.errstate(all="ignore"):
        want = np.clip(np.asarray(exact, np.longdouble), -beyond, beyond)
        size = np.spacing(np.minimum(np.abs(want), most).astype(got.dtype))
        error = np.abs(np.clip(got.astype(np.longdouble), -beyond, beyond) - want) / size
    error = np.where(np.isnan(exact), np.where(np.isnan(got), 0, np.inf), error)
    error = np.where(np.isnan(got) & ~np.isnan(exact), np.inf, error)
    error = np.where(np.isinf(exact), np.where(got == exact, 0, np.inf), error)
    wrong = (np.asarray(exact) == 0) & (np.signbit(exact) != np.signbit(got))
    return np.where(wrong, np.inf, error).astype(np.float64)


def check(head, dtype, arrays, exact, bound=2.0):
    """All machines' errors are within the bound; those that fuse multiply-add agree in all bits."""
    first = None
    for m in MACHINES:
        got = kernel(head, dtype, m)(*arrays)
        error = ulp(got, exact)
        at = int(np.argmax(error))
        place = ", ".join(repr(float(a[at])) for a in arrays)
        told = f"{head}({place}) in {dtype}, {m}: {error[at]:.3f} ulp, got {got[at]!r}"
        print(f"{told}, {len(got)} arguments")
        assert error[at] <= bound, f"{told}, want {exact[at]!r}"
        if m.fma:
            first = got if first is None else first
            assert same_bits(got, first).all(), (head, dtype, m)


# Arguments ----------------------------------------------------------------------------------------
def special(dtype):
    info = np.finfo(dtype)
    values = [
        0,
        1,
        2,
        3,
        0.5,
        1.5,
        10,
        np.inf,
        np.nan,
        info.max,
        info.tiny,
        info.eps,
        1e-3,
        info.smallest_subnormal,
        info.tiny * 0.75,
        2.0 / info.eps,
        1 / info.eps,
    ]
    return np.array(values + [-v for v in values], dtype)


def random_bits(dtype, count, seed):
    """Numbers of any size, as likely as any other; NaN and infinities among them."""
    word = np.uint32 if dtype is np.float32 else np.uint64
    bits = np.random.default_rng(seed).integers(0, np.iinfo(word).max, count, word, endpoint=True)
    return bits.view(dtype)


def all_exponents(dtype):
    """Of every exponent several mantissas, of both signs."""
    word, digits, exponents = (np.uint32, 23, 256) if dtype is np.float32 else (np.uint64, 52, 2048)
    one = 1 << digits
    parts = (0, 1, 2, one // 3, one // 2, int(one * 0.41421356), int(one * 0.5707963), one - 1)
    bits = (np.arange(exponents, dtype=word) << word(digits))[:, None] | np.array(parts, word)
    values = bits.ravel().view(dtype)
    return np.concatenate([values, -values])


def around(values, dtype):
    """The numbers themselves and a few of their neighbours, of both signs."""
    exact = np.array(values, dtype)
    found = [exact]
    for direction in (-np.inf, np.inf):
        x = exact
        for _ in range(4):
            x = np.nextafter(x, dtype(direction))
            found.append(x)
    return np.concatenate([*found, *[-x for x in found]])


def arguments(head, dtype):
    t = TYPES[dtype]
    rng = np.random.default_rng(7)
    usual = np.concatenate(
        [
            rng.normal(size=30000),
            rng.normal(size=30000) * 10,
            rng.uniform(-1, 1, 30000),
            1 + rng.normal(size=20000) * 0.01,
            1 + rng.normal(size=10000) * 1e-4,
            rng.choice([-1, 1], 30000) * np.exp(rng.uniform(-20, 8, 30000)),
            np.arange(-300, 300),
            np.arange(1, 300) / 7,
        ]
    )
    parts = [
        usual.astype(t),
        special(t),
        random_bits(t, 60000, 1),
        all_exponents(t),
        around(HARD[head], t),
    ]
    if head in ("sin", "cos", "tan"):
        parts.append(around((np.arange(1, 3000) * (math.pi / 2)).astype(t), t))
        large = rng.integers(1, 2**40, 2000) * (math.pi / 2)
        parts.append(around(large.astype(t), t))
    return np.concatenate(parts)


# Tests --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("head", UNARY)
def test_of_one_argument(head, dtype):
    if dtype == "f64" and not WIDE:
        pytest.skip("no type more precise than float64 here")
    x = arguments(head, dtype)
    wide = x.astype(np.float64 if dtype == "f32" else np.longdouble)
    with np.errstate(all="ignore"):
        check(head, dtype, (x,), UNARY[head](wide))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("head", BINARY)
def test_of_two_arguments(head, dtype):
    if dtype == "f64" and not WIDE:
        pytest.skip("no type more precise than float64 here")
    t, rng, n = TYPES[dtype], np.random.default_rng(8), 50000
    edges = np.concatenate([special(t), np.array([-1, -2, -3, 7, 2**24 + 1, 2**53 - 1, 0.1], t)])
    grid = np.meshgrid(edges, edges)
    x = [grid[0].ravel(), random_bits(t, n, 2), rng.normal(size=n)]
    y = [grid[1].ravel(), random_bits(t, n, 3), rng.normal(size=n)]
    if head == "pow":  # with results of all sizes, and with bases near 1
        limit = 88 if dtype == "f32" else 709
        close = 1 + rng.normal(size=n) * 10.0 ** rng.uniform(-6 if dtype == "f32" else -12, -2, n)
        for base in (np.exp(rng.uniform(-40, 40, n)), close, np.exp(rng.uniform(-80, 80, n))):
            exact = base.astype(t).astype(np.float64)
            with np.errstate(all="ignore"):
                x.append(base)
                y.append(rng.uniform(-1.1, 1.1, n) * limit / np.log(exact))
        x.append(-np.exp(rng.uniform(-9, 9, n)))
        y.append(rng.integers(-20, 20, n))
    else:  # of similar size, at all sizes
        size = 10.0 ** (rng.uniform(-38, 38, n) if dtype == "f32" else rng.uniform(-300, 300, n))
        x += [x[2], rng.normal(size=n) * size]
        y += [
            x[2] * (1 + rng.normal(size=n) * 1e-3),
            rng.normal(size=n) * size * 10.0 ** rng.uniform(-3, 3, n),
        ]
    wide = np.float64 if dtype == "f32" else np.longdouble
    with np.errstate(all="ignore"):
        a, b = np.concatenate(x).astype(t), np.concatenate(y).astype(t)
        check(head, dtype, (a, b), BINARY[head](a.astype(wide), b.astype(wide)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_erf(dtype):
    t, rng = TYPES[dtype], np.random.default_rng(9)
    n = 40000 if dtype == "f32" else 1500
    x = [
        rng.uniform(-6.5, 6.5, n),
        rng.normal(size=n),
        rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-12, 0, n),
    ]
    x = np.concatenate([np.concatenate(x).astype(t), special(t), around(HARD["erf"], t)])
    if dtype == "f32":
        exact = np.array([math.erf(v) for v in x.astype(float)])
        exact = np.where(x == 0, x, exact)
    else:
        mpmath = pytest.importorskip("mpmath")
        with mpmath.workprec(80):
            exact = precise([mpmath.erf(float(v)) for v in x])
        exact = np.where(x == 0, x, exact)
    check("erf", dtype, (x,), exact)


def precise(values):
    """Numbers of mpmath as long doubles."""
    return np.array([np.longdouble(str(v).replace("+inf", "inf")) for v in values])


@pytest.mark.parametrize("head", ["sin", "cos", "tan"])
def test_huge_arguments(head):
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(10)
    x = np.concatenate(
        [
            # Known as the nearest of all doubles to a multiple of pi/2, and others as notorious.
            [6381956970095103 * 2.0**797, 5.319372648326541e255, 1e22, 2.0**1023, 1.7e308, 1e300],
            rng.choice([-1, 1], 500) * 2.0 ** rng.uniform(28, 1023.9, 500),
            2.0 ** np.arange(25, 1024, 7),
        ]
    )
    with mpmath.workprec(1300):
        found = [getattr(mpmath, head)(mpmath.mpf(float(v))) for v in x]
    check(head, "f64", (x,), precise([mpmath.nstr(v, 25) for v in found]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_sine_stays_within_one(dtype):
    x = around((np.arange(1, 20000) * (math.pi / 2)).astype(TYPES[dtype]), TYPES[dtype])
    for m in MACHINES:
        for head in ("sin", "cos"):
            assert np.abs(kernel(head, dtype, m)(x)).max() == 1


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("head", ["fmod", "mod", "floor_div", "sign", "angle", *PREDICATES])
def test_exact_functions(head, dtype):
    x, y = pairs(dtype)
    arrays = (x, y)[: PRIMITIVES[head]]
    with np.errstate(all="ignore"):
        want = UFUNCS[head](*arrays)
    for m in MACHINES:
        got = kernel(head, dtype, m)(*arrays)
        bad = np.flatnonzero(~same_bits(got, want.astype(got.dtype)))
        assert not bad.size, (m, x[bad[0]], y[bad[0]], got[bad[0]], want[bad[0]])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("head", ["fmax", "fmin"])
def test_extremes_ignore_nan(head, dtype):
    x, y = pairs(dtype)
    for m in MACHINES:
        np.testing.assert_array_equal(kernel(head, dtype, m)(x, y), UFUNCS[head](x, y))


def pairs(dtype):
    t, rng, n = TYPES[dtype], np.random.default_rng(11), 20000
    edges = np.concatenate([special(t), np.array([7, 0.1, 0.3, -0.3, 1e20], t)])
    grid = np.meshgrid(edges, edges)
    small = rng.integers(-50, 50, (2, n))
    usual = rng.normal(size=(2, n)) * [[10], [1]]
    large = rng.normal(size=(2, n)) * 10.0 ** rng.uniform(-30, 30, (2, n))
    x, y = (
        np.concatenate([grid[i].ravel(), random_bits(t, n, 4 + i), small[i], usual[i], large[i]])
        for i in (0, 1)
    )
    return x.astype(t), y.astype(t)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    "head",
    ["floor_div", "mod", "fmod", "shift_left", "shift_right", "sign", "neg", "abs", *PREDICATES],
)
def test_integers(head, dtype):
    arrays = integers(dtype)[: PRIMITIVES[head]]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        want = UFUNCS[head](*arrays)
    for m in MACHINES:
        np.testing.assert_array_equal(kernel(head, dtype, m)(*arrays), want, err_msg=str(m))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_powers(dtype):
    x, y = integers(dtype)
    for m in MACHINES:
        if dtype[0] == "u":
            np.testing.assert_array_equal(kernel("pow", dtype, m)(x, y), np.power(x, y))
        for exponent in (0, 1, 10, 63):
            got = kernel("pow", dtype, m, exponent=exponent)(x)
            np.testing.assert_array_equal(got, np.power(x, np.array(exponent, x.dtype)))


def integers(dtype):
    t, rng = TYPES[dtype], np.random.default_rng(12)
    low, high = np.iinfo(t).min, np.iinfo(t).max
    edges = [
        v
        for v in (
            low,
            low + 1,
            high,
            high - 1,
            0,
            1,
            2,
            3,
            7,
            8,
            9,
            15,
            16,
            17,
            31,
            32,
            33,
            63,
            64,
            65,
            100,
            -1,
            -2,
            -3,
            -7,
            -8,
            -64,
        )
        if low <= v <= high
    ]
    grid = np.meshgrid(np.array(edges, t), np.array(edges, t))
    any_two = rng.integers(low, high, (2, 3000), t, endpoint=True)
    near = np.stack(
        [rng.integers(low, high, 3000, t, endpoint=True), rng.integers(0, 70, 3000).astype(t)]
    )
    return tuple(np.concatenate([grid[i].ravel(), any_two[i], near[i]]) for i in (0, 1))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, 3.0, 4.0, -1.0, -2.0, 0.5, -0.5, 2.5])
def test_constant_exponents(exponent, dtype):
    if dtype == "f64" and not WIDE:
        pytest.skip("no type more precise than float64 here")
    t = TYPES[dtype]
    x = np.concatenate([special(t), random_bits(t, 3000, 6), all_exponents(t)])
    wide = x.astype(np.float64 if dtype == "f32" else np.longdouble)
    with np.errstate(all="ignore"):
        exact = np.power(wide, np.full_like(wide, exponent))
    for m in MACHINES:
        assert ulp(kernel("pow", dtype, m, exponent=exponent)(x), exact).max() <= 2


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("head", ["exp", "log", "sin", "tanh", "erf", "pow", "fmod"])
def test_place_does_not_matter(head, dtype):
    """An element has the same bits in a whole vector, at the end, among others and by itself."""
    t = TYPES[dtype]
    arrays = [
        np.concatenate([random_bits(t, 60, 20 + i), special(t), np.linspace(-5, 5, 70).astype(t)])
        for i in range(PRIMITIVES[head])
    ]
    for m in MACHINES:
        run = kernel(head, dtype, m)
        whole = run(*arrays)
        for n in range(1, 70):
            assert same_bits(run(*[a[-n:] for a in arrays]), whole[-n:]).all(), (m, n)
        assert same_bits(kernel(head, dtype, m, loop="loop")(*arrays), whole).all()


def test_of_uniform_values():
    """A function of what all lanes share, inside a loop over lanes."""
    f = ir.Function("test_uniform")
    x, out, n = f.buffer("x", "f32"), f.buffer("out", "f32", written=True), f.param("n")
    scale = f.param("scale", "f32")
    with f.vector(n) as i:
        value = lower(f, trace(lambda a, b: a * call("log", b), 2), [f.load(x, i), scale], "f32")
        f.store(out, i, value)
    ir_check.check(f)
    arguments = (ctypes.c_void_p,) * 3 + (ctypes.c_int64, ctypes.c_float)
    function = ctypes.CFUNCTYPE(None, *arguments)(jit.load(f.name, llvm.emit(f, HOST)))
    x = np.arange(37, dtype=np.float32)
    found = np.empty_like(x)
    for scale in (3.0, 1e-40, math.inf):
        function(None, x.ctypes.data, found.ctypes.data, x.size, scale)
        np.testing.assert_allclose(found, x * np.log(np.float32(scale)), rtol=1e-6)


@pytest.mark.parametrize(
    "head, dtype",
    [("pow", "i32"), ("ldexp", "f32"), ("exp", "i32"), ("sign", "bool"), ("bit_and", "f64")],
)
def test_what_has_no_kernel(head, dtype):
    f = ir.Function("none")
    values = [f.load(f.buffer(f"x{i}", dtype), 0) for i in range(PRIMITIVES[head])]
    with pytest.raises(NotCompiled):
        lower(f, trace(lambda *a: call(head, *a), len(values)), values, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("head", ["real", "imag", "conj"])
def test_parts_of_real_numbers(head, dtype):
    """A real number is its real part, and its imaginary part is zero."""
    x = np.array([1.5, -0.0, math.inf, -math.inf, math.nan], TYPES[dtype])
    found = kernel(head, dtype, HOST)(x)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, UFUNCS[head](x))
