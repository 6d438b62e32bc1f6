"""The generated matrix product against NumPy in higher precision: shapes, layouts, bits."""

import itertools
import platform
import threading

import numpy as np
import pytest

import undertow as ut
from undertow import dtypes
from undertow.backends.cpu.products.gemm import gemm, make_plan, run_product
from undertow.backends.cpu.products.gemm_micro import RELU
from undertow.backends.cpu.products.gemm_plan import Operands, Setting, _thin, _wide, choose
from undertow.backends.cpu.products.gemm_tiles import (
    Target,
    cache_sizes,
    evenly,
    host,
    largest_tile,
)
from undertow.backends.reference import NumpyBackend
from undertow.devices import Device
from undertow.kernel.expr import call, trace

BFLOAT16 = dtypes.bfloat16.numpy
WIDE = {np.dtype(np.float64): np.longdouble}
SMALL_CACHES = 2 << 10, 16 << 10  # so that small products are cut into many blocks

# Narrower targets than this machine's run on it, if it has what they use.
TARGETS = {"host": host()}
if platform.machine() == "x86_64":
    only = '"target-cpu"="{}" "target-features"=""'
    if host().vector >= 32 and host().fma:
        TARGETS["avx2"] = Target(32, 16, True, True, True, only.format("x86-64-v3"))
    TARGETS["sse2"] = Target(16, 16, False, False, False, only.format("x86-64"))


def setting(target="host", caches=None, threads=1):
    return Setting(TARGETS[target], *(caches or cache_sizes()), threads)


def numbers(*shape, dtype=np.float32, seed=0):
    """Reproducible values of mixed size and sign."""
    generator = np.random.default_rng([seed, *shape])
    return generator.standard_normal(shape).astype(dtype)


def eps(dtype):
    return 2.0**-8 if dtype == BFLOAT16 else float(np.finfo(dtype).eps)


def check(got, a, b, added=0.0, function=None):
    """Compare with a higher precision, by the bound that holds for any order of the sums."""
    wide = WIDE.get(a.dtype, np.float64)
    a, b, added = a.astype(wide), b.astype(wide), np.asarray(added, wide)
    want = a @ b + added
    scale = abs(a) @ abs(b) + abs(added)
    if function is not None:
        want = function(want)
    assert got.shape == want.shape
    half = got.dtype.itemsize == 2  # summed as floats
    unit = eps(np.float32 if half else got.dtype)
    bound = (a.shape[-1] + 4) * unit * scale + (eps(got.dtype) * abs(want) if half else 0)
    bound += 2.0**-25 if got.dtype == np.float16 else 1e-30  # subnormal numbers
    error = abs(got.astype(wide) - want)
    assert (error <= bound).all(), (error / bound).max()


def product(a, b, given, **options):
    """By a plan of its own, into memory full of NaN."""
    plan = make_plan(given, a, b, **options)
    out = options.get("out")
    if out is None:
        out = np.full(plan.results[0].shape, np.nan, a.dtype)
    run_product(plan, a, b, out, options.get("bias"))
    return out


# Shapes ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("target", TARGETS)
def test_shapes_around_the_sizes_of_tiles(target, dtype):
    given = setting(target)
    lanes = given.target.vector // np.dtype(dtype).itemsize
    rows = largest_tile(given.target, 2).rows
    for m, n in itertools.product(
        (1, rows - 1, rows, rows + 1, 4 * rows + 3),
        (1, 5, 6, lanes - 1, lanes, lanes + 1, 5 * lanes + 1, 8 * lanes),
    ):
        for k in (1, 2, lanes, 3 * lanes + 1):
            a, b = numbers(m, k, dtype=dtype), numbers(k, n, dtype=dtype)
            check(product(a, b, given), a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("target", TARGETS)
def test_blocks(target, dtype):
    """Small caches, so that all loops turn several times, in every layout of the operands."""
    given = setting(target, SMALL_CACHES)
    for m, n, k in ((40, 70, 50), (7, 200, 33), (61, 9, 100), (3, 4, 300), (50, 50, 16)):
        for turn_a, turn_b, turn_c in itertools.product((False, True), repeat=3):
            a = numbers(k, m, dtype=dtype).T if turn_a else numbers(m, k, dtype=dtype)
            b = numbers(n, k, dtype=dtype).T if turn_b else numbers(k, n, dtype=dtype)
            out = np.full((n, m), np.nan, dtype).T if turn_c else np.full((m, n), np.nan, dtype)
            check(product(a, b, given, out=out), a, b)


@pytest.mark.parametrize("shape", [(129, 257, 385), (300, 70, 1100), (1000, 3, 700), (4, 999, 513)])
def test_large(shape):
    m, n, k = shape
    for dtype in (np.float32, np.float64):
        a, b = numbers(m, k, dtype=dtype), numbers(k, n, dtype=dtype)
        check(gemm(a, b), a, b)


@pytest.mark.parametrize("target", TARGETS)
def test_a_part_of_a_product_has_the_same_bits(target):
    """Note [order of sums]: nothing depends on the tile that an element falls into."""
    given = setting(target, (32 << 10, 512 << 10))  # one block of k
    a, b = numbers(40, 60), numbers(60, 200)

    def by(ways, a, b):
        """The product in each of some ways."""
        (m, k), n = a.shape, b.shape[1]
        o = Operands(m, n, k, 1, a.strides, b.strides, (4 * n, 4), 4, 4)
        return [product(a, b, given, choice=way) for way, *_ in ways(o, given, False)]

    whole = by(_wide, a, b)[0]
    for rows in (15, 16, 20, 21, 39, 40):
        for part in by(_wide, a[:rows], b):
            assert np.array_equal(part, whole[:rows])
    for columns in (64, 65, 100, 199):
        for part in by(_wide, a, b[:, :columns]):
            assert np.array_equal(part, whole[:, :columns])
    b = b.T.copy().T  # k contiguous: few columns or rows can be summed along k
    (thin,) = by(_thin, a, b[:, :5])
    for rows, columns in itertools.product(range(1, 12), range(1, 6)):
        (part,) = by(_thin, a[:rows], b[:, :columns])
        assert np.array_equal(part, thin[:rows, :columns])


# Layouts ---------------------------------------------------------------------------------------
def layouts(m, n, dtype, seed):
    """One matrix in every layout that strides can describe."""
    x = numbers(m, n, dtype=dtype, seed=seed)
    large = np.zeros((2 * m + 1, 3 * n + 2), dtype)
    large[1 : 2 * m + 1 : 2, 1 : 3 * n + 1 : 3] = x
    yield "c", x
    yield "f", np.asfortranarray(x)
    yield "steps", large[1 : 2 * m + 1 : 2, 1 : 3 * n + 1 : 3]
    yield "padded rows", np.concatenate([x, x], axis=1)[:, :n]
    yield "reversed rows", x[::-1].copy()[::-1]
    yield "reversed columns", x[:, ::-1].copy()[:, ::-1]
    yield "reversed", np.asfortranarray(x[::-1, ::-1])[::-1, ::-1]
    yield "one row", np.broadcast_to(x[:1], (m, n))
    yield "one column", np.broadcast_to(x[:, :1], (m, n))
    yield "one number", np.broadcast_to(x[:1, :1], (m, n))


@pytest.mark.parametrize("shape", [(33, 40, 50), (9, 7, 70), (70, 1, 20), (1, 70, 40), (20, 90, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_layouts(shape, dtype):
    m, n, k = shape
    for (_, a), (_, b) in itertools.product(layouts(m, k, dtype, 1), layouts(k, n, dtype, 2)):
        check(gemm(a, b), a, b)


def test_results_of_any_layout():
    a, b = numbers(33, 50), numbers(50, 70)
    for name, out in layouts(33, 70, np.float32, 3):
        if name.startswith("one"):
            continue
        before = out.copy()
        assert gemm(a, b, out) is out
        check(out, a, b)
        out[...] = before
        gemm(a, b, out, accumulate=True)
        check(out, a, b, before)


def test_elements_beside_the_result_stay():
    large = np.full((60, 90), 7.0, np.float32)
    a, b = numbers(13, 40), numbers(40, 21)
    gemm(a, b, large[3:16, 5:26])
    check(large[3:16, 5:26], a, b)
    large[3:16, 5:26] = 7.0
    assert (large == 7.0).all()


def test_a_result_that_is_an_operand():
    a, b = numbers(40, 40), numbers(40, 40, seed=1)
    want = gemm(a, b)
    first = a.copy()
    assert np.array_equal(gemm(first, b, first), want)
    second = b.copy()
    gemm(a, second, second, accumulate=True)
    check(second, a, b, b)


# Batches ---------------------------------------------------------------------------------------
BATCHES = [
    ((5, 20, 30), (5, 30, 40)),
    ((3, 2, 9, 8), (2, 8, 7)),
    ((4, 1, 6, 5), (3, 5, 6)),
    ((20, 30), (6, 30, 4)),
    ((6, 20, 30), (30, 4)),
    ((1, 1, 3, 3), (2, 2, 3, 3)),
    ((2, 3, 4, 5, 6), (2, 1, 4, 6, 5)),
    ((6, 20, 30), (1, 30, 40)),
    ((3, 2, 9, 8), (3, 1, 8, 7)),
]


@pytest.mark.parametrize("shapes", BATCHES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_batches(shapes, dtype):
    a, b = (numbers(*shape, dtype=dtype, seed=i) for i, shape in enumerate(shapes))
    check(gemm(a, b), a, b)
    turned = a.swapaxes(-1, -2).copy().swapaxes(-1, -2)
    check(gemm(turned, b), a, b)
    flipped = a[::-1].copy()[::-1]
    check(gemm(flipped, b), a, b)
    out = numbers(*np.matmul(a, b).shape, dtype=dtype)
    check(gemm(a, b, out.copy(), accumulate=True), a, b, out)
    across = np.empty(out.shape[::-1], dtype).T
    check(gemm(a, b, across), a, b)
    column, row = numbers(out.shape[-1], dtype=dtype), numbers(out.shape[-2], 1, dtype=dtype)
    check(gemm(a, b, bias=column), a, b, column)
    check(gemm(a, b, bias=row), a, b, row)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_rows_that_are_no_multiple_of_elements_apart(dtype):
    """Fields of records: elements are neighbours, rows two bytes more apart."""
    for m, n, k in ((40, 70, 90), (70, 33, 257), (5, 100, 40)):
        records = [np.zeros(r, [("x", dtype, (k,)), ("tag", "i2")])["x"] for r in (m, n)]
        for seed, x in enumerate(records):
            x[...] = numbers(*x.shape, seed=seed)
        a, b = records[0], records[1].T
        assert a.strides[0] % a.itemsize or a.itemsize == 2
        check(gemm(a, b), a.copy(), b.copy())
        check(gemm(np.asfortranarray(a), b), a.copy(), b.copy())


# Epilogues -------------------------------------------------------------------------------------
DOUBLE = trace(lambda a: a + a, 1)
ACTIVATIONS = {RELU: lambda x: np.maximum(x, 0), DOUBLE: lambda x: 2 * x, None: None}


@pytest.mark.parametrize("shape", [(20, 70, 40), (70, 10, 100), (3, 100, 90), (60, 1, 64)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, BFLOAT16])
def test_epilogues(shape, dtype):
    m, n, k = shape
    a, b, there = numbers(m, k), numbers(k, n), numbers(m, n)
    a, b, there = (x.astype(dtype) for x in (a, b, there))
    column, row = numbers(n).astype(dtype), numbers(m, 1).astype(dtype)
    for bias, accumulate, activation, turned in (
        (None, False, RELU, True),
        (column, False, None, False),
        (row, True, DOUBLE, True),
        (column, True, RELU, True),
        (None, True, None, False),
        (row, False, RELU, False),
    ):
        out = there.copy(order="F" if turned else "C")
        got = gemm(a, b, out, bias, accumulate, activation)
        added = sum(
            x.astype(np.float64) for x in (bias, there if accumulate else None) if x is not None
        )
        check(got, a, b, added, ACTIVATIONS[activation])


EXPRESSIONS = {
    "sigmoid": lambda x: 1 / (1 + call("exp", -x)),
    "gelu": lambda x: 0.5 * x * (1 + call("erf", x * 0.5**0.5)),
    "scaled": lambda x: call("tanh", x) * 3 - 1,
    "log": lambda x: call("log1p", call("maximum", x, 0)),
    "sine": lambda x: call("sin", x * 1024),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.parametrize("target", TARGETS)
def test_any_expression_is_an_epilogue(name, target):
    """Tiles of vectors and of few columns, parts of vectors, results across, and in many blocks."""
    expr = trace(EXPRESSIONS[name], 1)
    for (m, n), dtype in itertools.product(((30, 50), (30, 4)), (np.float32, np.float64)):
        a, b, bias = (numbers(*s, dtype=dtype) for s in ((m, 100), (100, n), (n,)))
        out = np.empty((n, m), dtype).T
        for how in ({}, {"out": out}):
            given = setting(target, SMALL_CACHES)
            plain = product(a, b, given, bias=bias, **how).copy()
            got = product(a, b, given, bias=bias, activation=expr, **how)
            want = NumpyBackend(Device("reference")).map(expr, (plain,), plain.dtype)
            close = 2e-6 if dtype == np.float32 else 1e-14
            np.testing.assert_allclose(got, want, rtol=close, atol=close)


@pytest.mark.parametrize("target", TARGETS)
def test_epilogues_come_once(target):
    """With k in many blocks, bias and activation are applied to the whole sum."""
    given = setting(target, SMALL_CACHES)
    for m, n in ((30, 50), (30, 4)):
        a, b, bias = numbers(m, 400), numbers(400, n), numbers(n)
        got = product(a, b, given, bias=bias, activation=DOUBLE)
        check(got, a, b, bias, ACTIVATIONS[DOUBLE])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("target", TARGETS)
def test_few_rows_by_a_large_matrix(target, dtype):
    """Note [passing]: any end of the rows, any threads; nothing beside the result is written."""
    for m, n, k in ((1, 640, 50), (1, 203, 90), (2, 131, 77), (3, 7, 999), (5, 300, 64)):
        a, b, there = (numbers(*s, dtype=dtype) for s in ((m, k), (k, n), (m, n)))
        column, row = numbers(n, dtype=dtype), numbers(m, 1, dtype=dtype)
        results = {}
        for threads, strided, (bias, accumulate, activation) in itertools.product(
            (1, 3), (False, True), ((None, False, None), (column, False, RELU), (row, True, DOUBLE))
        ):
            given = setting(target, SMALL_CACHES, threads)
            o = Operands(m, n, k, 1, a.strides, b.strides, there.strides, a.itemsize, a.itemsize)
            (way, *_) = next(w for w in _wide(o, given, False) if w[0].passing)
            if threads > 1:
                way = way._replace(column_parts=way.strips)
            x = np.asfortranarray(a) if strided else a
            y = np.concatenate([b, b], axis=1)[:, :n] if strided else b
            around = np.full((m + 2, n + 9), 5, dtype)
            out = around[1:-1, 4:-5]
            out[...] = there
            how = {"bias": bias, "accumulate": accumulate, "activation": activation}
            got = product(x, y, given, out=out, choice=way, **how)
            added = sum(v for v in (bias, there if accumulate else None) if v is not None)
            check(got, a, b, added, ACTIVATIONS[activation])
            assert np.array_equal(got, results.setdefault(activation, got.copy()))
            out[...] = 5
            assert (around == 5).all()


# Special values --------------------------------------------------------------------------------
def test_nothing_to_sum():
    a, b = np.empty((3, 0), np.float32), np.empty((0, 4), np.float32)
    assert (gemm(a, b) == 0).all()
    bias = numbers(4)
    assert np.array_equal(gemm(a, b, bias=bias), np.broadcast_to(bias, (3, 4)))
    out = numbers(3, 4)
    assert np.array_equal(gemm(a, b, out.copy(), accumulate=True), out)


@pytest.mark.parametrize(
    "shapes",
    [
        ((0, 3), (3, 4)),
        ((3, 4), (4, 0)),
        ((0, 2, 3), (0, 3, 4)),
        ((0, 1, 3), (3, 4)),
        ((0, 0), (0, 0)),
    ],
)
def test_empty(shapes):
    a, b = (np.empty(shape, np.float64) for shape in shapes)
    assert gemm(a, b).shape == np.matmul(a, b).shape


@pytest.mark.parametrize("shape", [(20, 70, 40), (40, 5, 40), (2, 90, 40), (40, 1, 64)])
def test_nan_and_infinity_are_not_skipped(shape):
    m, n, k = shape
    for value, dtype in itertools.product((np.nan, np.inf, -np.inf), (np.float32, np.float64)):
        a, b = np.zeros((m, k), dtype), np.zeros((k, n), dtype)
        b[k - 1, n - 1] = value  # zero times infinity
        want = np.zeros((m, n), bool)
        want[:, n - 1] = True
        assert np.array_equal(np.isnan(gemm(a, b)), want)
        a[m - 1, 0] = value
        want[m - 1] = True
        assert np.array_equal(np.isnan(gemm(a, b)), want)
    a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
    b[0] = np.inf
    assert (gemm(a, b) == np.inf).all()
    assert np.isnan(gemm(a * np.nan, b, activation=RELU)).all()


def test_subnormal_numbers():
    a = np.full((20, 40), 1e-30, np.float32)
    b = np.full((40, 70), 1e-12, np.float32)
    check(gemm(a, b), a, b)
    assert (gemm(a, b) > 0).all()


# Halves ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [np.float16, BFLOAT16])
def test_halves_are_rounded_once(dtype):
    """Sums are floats, whatever k, and the result is rounded to nearest."""
    for m, n, k in ((40, 70, 50), (1, 5, 2000), (9, 33, 17000)):
        a, b = numbers(m, k).astype(dtype), numbers(k, n).astype(dtype)
        check(gemm(a, b), a, b)
        check(gemm(a, b, np.empty((n, m), dtype).T), a, b)
    ones = np.ones((20, 5000), dtype)
    assert (
        gemm(ones, ones.T).astype(np.float64) == np.float64(np.asarray(5000).astype(dtype))
    ).all()
    large = np.full((2, 2), 6e4 if dtype == np.float16 else 3e38, np.float32).astype(dtype)
    assert np.isinf(gemm(large, large).astype(np.float32)).all()
    assert np.isnan(gemm(large * np.float32(np.nan), large).astype(np.float32)).all()


# Threads ---------------------------------------------------------------------------------------
@pytest.fixture
def threads():
    before = ut.get_num_threads()
    yield ut.set_num_threads
    ut.set_num_threads(before)


@pytest.mark.parametrize(
    "shapes",
    [
        ((300, 500), (500, 260)),
        ((2000, 700), (700, 3)),
        ((3, 40, 900), (3, 900, 50)),
        ((5, 900), (900, 800)),
        ((1, 900), (900, 811)),
        ((70, 64, 64), (64, 64)),
    ],
)
def test_bits_do_not_depend_on_threads(threads, shapes):
    a, b = (numbers(*shape, seed=i) for i, shape in enumerate(shapes))
    results = []
    for number in (1, 2, 3, 7):
        threads(number)
        results += [gemm(a, b), gemm(a.swapaxes(-1, -2).copy().swapaxes(-1, -2), b)]
    assert all(np.array_equal(results[0], r) for r in results[::2])
    assert all(np.array_equal(results[1], r) for r in results[1::2])


def test_bits_do_not_depend_on_parts():
    given = setting()
    a, b = numbers(100, 700), numbers(700, 300)
    o = Operands(100, 300, 700, 1, a.strides, b.strides, (1200, 4), 4, 4)
    choice = choose(o, given)
    want = product(a, b, given, choice=choice)
    for rows, columns in ((1, 1), (3, 2), (7, 5), (choice.panels, choice.strips)):
        cut = choice._replace(row_parts=rows, column_parts=columns)
        assert np.array_equal(product(a, b, given, choice=cut), want)


def test_from_several_python_threads():
    pairs = [(numbers(150, 200, seed=i), numbers(200, 90 + i, seed=i)) for i in range(8)]
    want = [gemm(a, b) for a, b in pairs]
    wrong = []

    def work(first):
        for turn in range(20):
            at = (first + turn) % len(pairs)
            if not np.array_equal(gemm(*pairs[at]), want[at]):
                wrong.append(at)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


# Choices ---------------------------------------------------------------------------------------
def chosen(m, n, k, turn_a=False, turn_b=False, threads=1, batch=1, caches=(48 << 10, 1280 << 10)):
    a = (4, 4 * m) if turn_a else (4 * k, 4)
    b = (4, 4 * k) if turn_b else (4 * n, 4)
    given = Setting(Target(64, 32, True, True, True), *caches, threads)
    return choose(Operands(m, n, k, batch, a, b, (4 * n, 4), 4, 4), given)


def test_choices():
    small, large = chosen(32, 32, 32), chosen(1024, 1024, 1024)
    assert not small.pack_a
    assert not small.pack_b
    assert large.pack_b == "rows"
    assert not large.pack_a
    assert not large.transposed
    assert chosen(1024, 1024, 1024, turn_b=True).pack_b == "transposed"
    assert chosen(1024, 1024, 1024, turn_a=True).pack_a == "transposed"
    assert chosen(4096, 10, 256).thin
    assert chosen(4, 512, 784, turn_b=True).thin  # few rows: the transposed product
    one = chosen(8, 512, 784)
    assert one.panels == 1
    assert not one.pack_b
    assert one.passing
    assert chosen(1, 3072, 768).passing
    assert not chosen(1, 64, 64).passing  # it stays in a cache
    assert chosen(4096, 1, 256).thin
    assert not chosen(256, 1, 4096, turn_a=True).thin


def test_the_cut_of_k_does_not_depend_on_threads():
    for shape in ((1024, 1024, 1024), (128, 512, 784), (4096, 10, 256), (64, 64, 64)):
        one = chosen(*shape)
        for threads in (2, 5, 64):
            many = chosen(*shape, threads=threads)
            assert many._replace(row_parts=1, column_parts=1) == one._replace(column_parts=1)
            tasks = many.row_parts * many.column_parts
            assert tasks == 1 or tasks >= min(threads, many.panels * many.strips) // 2


def test_evenly():
    assert [evenly(n, 6) for n in (0, 1, 6, 7, 12, 13)] == [1, 1, 1, 2, 2, 3]


def test_no_call_for_multiply_add_where_there_is_no_instruction():
    from undertow.backends.cpu.products.gemm_micro import Shape, tile_text
    from undertow.backends.cpu.products.gemm_tiles import Tile

    plain = Target(16, 16, False, False, False)
    shape = Shape("float", "float", Tile(6, 2), False, False, False, False)
    assert "llvm.fma" not in tile_text("t", shape, plain)
    assert "llvm.fma" in tile_text("t", shape, plain._replace(fma=True))
