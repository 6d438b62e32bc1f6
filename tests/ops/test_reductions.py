"""Reductions, scans and order: ties, zeros, NaN, half precision, and what the table cannot say."""

from __future__ import annotations

import math

import numpy as np
import pytest

import undertow as ut
from undertow.ops.reduce.scan import recurrence

INF, NAN = math.inf, math.nan


def leaf(values):
    return ut.tensor(values, dtype=ut.float64, requires_grad=True)


def grad(out, x, **how):
    return ut.autograd.grad(out, x, **how)[0]


def same(found, expected, **how):
    np.testing.assert_allclose(found.tolist(), expected, rtol=1e-12, **how)


# Ties -----------------------------------------------------------------------------------------
def test_extremes_share_their_gradient_between_ties():
    x = leaf([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    same(grad(x.amax(1).sum(), x), [[0, 0.5, 0.5], [1 / 3] * 3])
    same(grad(x.amin(0).sum(), x), [[1, 0, 0], [0, 1, 1]])
    same(grad(x.max(), x), [[0, 0.5, 0.5], [0, 0, 0]])
    same(grad(x.min(), x), [[1, 0, 0], [0, 0, 0]])
    same(grad(x.median(), x), [[0, 0, 0], [1 / 3] * 3])
    low, high = x.aminmax(dim=1)
    same(grad((low * 2 + high).sum(), x), [[2, 0.5, 0.5], [1, 1, 1]])


def test_a_selection_gives_its_gradient_to_the_returned_index():
    x = leaf([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    for pick in (x.max(1), x.min(1), x.kthvalue(2, 1), x.median(1), x.mode(1)):
        expected = np.zeros((2, 3))
        expected[[0, 1], pick.indices.tolist()] = 1
        same(grad(pick.values.sum(), x), expected)
        assert not pick.indices.requires_grad


def test_duplicates_picked_twice_accumulate():
    x = leaf([3.0, 1.0, 2.0])
    same(grad(x.cummax(0).values.sum(), x), [3, 0, 0])
    same(grad(x.cummin(0).values.sum(), x), [1, 2, 0])


# NaN and infinity -----------------------------------------------------------------------------
def test_nan_is_the_extreme_and_receives_the_gradient():
    x = leaf([1.0, NAN, 2.0, NAN])
    for out in (x.max(), x.min(), x.amax(), x.amin(), x.median()):
        assert math.isnan(out.item())
        same(grad(out, x), [0, 0.5, 0, 0.5])
    assert x.argmax().item() == x.argmin().item() == x.max(0).indices.item() == 1
    assert x.median(0).indices.item() == 1
    assert x.sort().indices.tolist() == [0, 2, 1, 3]
    assert x.sort(descending=True).indices.tolist() == [1, 3, 2, 0]


def test_nan_is_skipped_where_the_name_says_so():
    x = leaf([1.0, NAN, 3.0])
    same(grad(x.nansum(), x), [1, 0, 1])
    same(grad(x.nanmean(), x), [0.5, 0, 0.5])
    same(grad(x.nanmedian(), x), [1, 0, 0])
    same(grad(x.nanquantile(0.5), x), [0.5, 0, 0.5])
    assert math.isnan(leaf([NAN, NAN]).nanmean().item())


def test_logsumexp_at_infinity():
    x = leaf([[-INF, -INF], [-INF, 1.0]])
    out = x.logsumexp(1)
    assert out.tolist() == [-INF, 1.0]
    same(grad(out.sum(), x), [[0, 0], [0, 1]])
    assert leaf([INF, 1.0]).logsumexp(0).item() == INF
    huge = leaf([1e4, 1e4 - 1])
    assert math.isfinite(huge.logsumexp(0).item())


def test_logcumsumexp_at_infinity():
    x = leaf([-INF, -INF, 1.0, 2.0, -INF])
    out = x.logcumsumexp(0)
    share = 1 / (1 + math.e)
    same(grad(out[2:].sum(), x, retain_graph=True), [0, 0, 1 + 2 * share, 2 * (1 - share), 0])
    first = grad(out[2:].sum(), x, create_graph=True)
    assert np.isfinite(grad((first * first).sum(), x).tolist()).all()


# Zeros ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
def test_products_differentiate_three_times_at_zeros(zeros):
    values = np.array([1.5, -2.0, 0.5, 3.0])
    values[:zeros] = 0
    x = leaf(values)

    def third(out):
        total = out
        for _ in range(3):
            total = (grad(total, x, create_graph=True) * weights).sum()
        return total.item()

    weights = ut.tensor([1.0, 2.0, 3.0, 5.0], dtype=ut.float64)
    # the third derivative of p(x + t w) = prod(x + t w) at t = 0, from the polynomial in t
    w = np.array(weights.tolist())
    polynomial = np.poly1d([1.0])
    for a, b in zip(values, w, strict=True):
        polynomial *= np.poly1d([b, a])
    expected = polynomial.deriv(3)(0.0)
    assert third(x.prod()) == pytest.approx(expected)
    assert third(x.cumprod(0)[3]) == pytest.approx(expected)


@pytest.mark.parametrize("reverse", [False, True])
def test_the_recurrence_is_closed_under_differentiation(reverse):
    random = np.random.default_rng(1)
    a, b = random.standard_normal((2, 3, 4))
    a[0, 2] = a[1] = 0
    expected = np.array(b)
    steps = range(2, -1, -1) if reverse else range(1, 4)
    for i in steps:
        expected[:, i] += a[:, i] * expected[:, i + 1 if reverse else i - 1]
    same(recurrence(leaf(a), leaf(b), 1, reverse), expected)
    assert ut.autograd.gradcheck(lambda *t: recurrence(*t, 1, reverse), (leaf(a), leaf(b)))
    assert ut.autograd.gradgradcheck(lambda *t: recurrence(*t, 1, reverse), (leaf(a), leaf(b)))


def test_norm_and_deviation_have_a_finite_gradient_at_their_corner():
    for p in (1, 1.5, 2, 3, INF):
        x = leaf([0.0, 0.0])
        first = grad(x.norm(p), x, create_graph=True)
        same(first, [0, 0])
    x = leaf([[0.0, 0.0], [3.0, 4.0]])
    first = grad(x.norm(dim=1).sum(), x, create_graph=True)
    same(first, [[0, 0], [0.6, 0.8]])
    same(grad(first[:, 0].sum(), x), [[0, 0], [16 / 125, -12 / 125]])
    y = leaf([[2.0, 2.0], [1.0, 3.0]])
    first = grad(y.std(1).sum(), y, create_graph=True)
    same(first, [[0, 0], [-math.sqrt(0.5), math.sqrt(0.5)]])
    assert np.isfinite(grad((first * first).sum(), y).tolist()).all()


def test_fractional_norm_skips_zero_elements():
    x = leaf([0.0, 4.0])
    same(grad(x.norm(0.5), x), [0, 1])


# Precision ------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [ut.float16, ut.bfloat16])
def test_halves_accumulate_in_single_precision(dtype):
    x = ut.ones(70_000, dtype=dtype)
    near = {"abs": 0.01 if dtype is ut.bfloat16 else 0.001}
    assert x.mean().item() == 1
    assert x.mean().dtype is dtype
    assert x.var().item() == 0
    assert x.norm().item() == pytest.approx(math.sqrt(70_000), rel=0.005)
    assert (x * 3).nanmean().item() == 3
    assert x.cumsum(0)[:4096].tolist()[-1] == pytest.approx(4096, rel=0.005)
    assert (x[:2048] * 0.5).logsumexp(0).item() == pytest.approx(0.5 + math.log(2048), rel=0.01)
    y = ut.tensor([1.0, 2.0, 4.0, 9.0], dtype=dtype)
    assert y.std().item() == pytest.approx(3.559, **{**near, "rel": 0.01})


@pytest.mark.parametrize("dtype", [ut.float16, ut.bfloat16])
def test_halves_are_ordered_with_nan_last(dtype):
    x = ut.tensor([1.0, NAN, 2.0, -1.0], dtype=dtype)
    assert x.argsort().tolist() == [3, 0, 2, 1]
    assert x.argsort(descending=True).tolist() == [1, 2, 0, 3]
    assert x.nanmedian().item() == 1
    assert x.nanquantile(0.5).item() == 1
    assert x.nanquantile(0.5).dtype is dtype
    edges = ut.tensor([-1.0, 1.0, 2.0], dtype=dtype)
    assert ut.searchsorted(edges, x).tolist() == [1, 3, 2, 0]


def test_variance_keeps_its_digits_far_from_zero():
    x = ut.tensor([1e8, 1e8 + 1, 1e8 + 2], dtype=ut.float64)
    assert x.var().item() == 1


@pytest.mark.parametrize("shape, dims", [((100_003, 3), (0,)), ((40, 5000, 2), (0, 1))])
def test_long_sums_keep_their_digits_along_any_dimension(shape, dims):
    values = np.random.default_rng(0).random(shape, np.float32)
    exact = values.astype(np.float64).sum(dims)
    np.testing.assert_allclose(ut.tensor(values).sum(dims).tolist(), exact, rtol=1e-6)
    spread = values.astype(np.float64).var(dims, ddof=1)
    np.testing.assert_allclose(ut.tensor(values).var(dims).tolist(), spread, rtol=1e-6)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("most", [3, 500])
def test_the_first_few_of_many(largest, dim, most):
    """What a stable sort has first, of equal elements too."""
    values = np.random.default_rng(0).integers(0, most, (200, 160)).astype(np.float32)
    values[3, 5] = values[100, 7] = values[100:109, 8] = NAN
    x = ut.tensor(values)
    for count in (1, 4):
        full = [t.narrow(dim, 0, count) for t in x.sort(dim, largest)]
        found, indices = x.topk(count, dim, largest)
        np.testing.assert_array_equal(found.tolist(), full[0].tolist())
        np.testing.assert_array_equal(indices.tolist(), full[1].tolist())
    third = x.sort(dim).values.select(dim, 2)
    np.testing.assert_array_equal(x.kthvalue(3, dim).values.tolist(), third.tolist())


def test_norm_gradient_does_not_overflow_with_the_power():
    x = leaf([1e40, 1e40])
    assert np.isfinite(grad(x.norm(5.0), x).tolist()).all()


def test_infinite_curvature_stays_with_its_element():
    x = leaf([-1.0, 0.0, -1.0])
    first = grad(x.norm(1.5), x, create_graph=True)
    second = grad((first * ut.tensor([1.0, 0.0, -1.0], dtype=ut.float64)).sum(), x).tolist()
    assert second[0] == pytest.approx(-second[2])
    assert math.isfinite(second[0])


def test_trapezoids_of_small_integers_do_not_overflow():
    assert ut.trapezoid(ut.tensor([30, -50, -87, 82], dtype=ut.int8)).item() == -81


def test_complex_reductions():
    values = np.array([1 + 2j, -3j, 2.0])
    x = ut.tensor(values)
    assert x.sum().item() == values.sum()
    assert x.mean().item() == pytest.approx(values.mean())
    assert x.prod().item() == values.prod()
    assert x.var(correction=0).item() == pytest.approx(values.var())
    assert x.std(correction=0).item() == pytest.approx(values.std())
    assert x.norm().item() == pytest.approx(np.linalg.norm(values))
    assert x.norm(1).item() == pytest.approx(np.abs(values).sum())
    np.testing.assert_allclose(x.cumsum(0).tolist(), values.cumsum())


# Types ----------------------------------------------------------------------------------------
def test_dtypes_of_integers_and_booleans():
    for dtype in (ut.bool, ut.uint8, ut.int8, ut.int32, ut.int64):
        x = ut.ones(3, dtype=dtype)
        for out in (x.sum(), x.prod(), x.cumsum(0), x.cumprod(0), x.nansum(), x.count_nonzero()):
            assert out.dtype is ut.int64
        for out in (x.amax(), x.max(), x.max(0).values, x.sort().values, x.median(), x.unique()):
            assert out.dtype is dtype
        assert x.logsumexp(0).dtype is ut.float32
        assert x.any().dtype is (ut.uint8 if dtype is ut.uint8 else ut.bool)
        assert x.sum(dtype=ut.float64).dtype is ut.float64
        assert x.mean(dtype=ut.float64).dtype is ut.float64
    assert ut.tensor([200, 100], dtype=ut.uint8).sum().item() == 300


def test_results_for_a_dimension_have_names():
    x = ut.tensor([[3.0, 1.0, 2.0]])
    for out in (
        x.max(1),
        x.min(1),
        x.median(1),
        x.mode(1),
        x.sort(1),
        x.topk(2),
        x.kthvalue(1),
        x.cummax(1),
        x.cummin(1),
        x.nanmedian(1),
    ):
        values, indices = out
        assert out.values is values
        assert out.indices is indices
        assert indices.dtype is ut.int64
    assert x.aminmax().min.item() == 1
    assert x.aminmax().max.item() == 3


def test_axis_and_keepdims_are_accepted():
    x = ut.ones(2, 3)
    assert x.sum(axis=0, keepdims=True).shape == (1, 3)
    assert x.max(axis=1, keepdims=True).values.shape == (2, 1)
    assert x.cumsum(axis=1).shape == (2, 3)


def test_results_own_their_memory():
    x = leaf([[1.0, 2.0]])
    for out in (x.sum(0), x.amax(0), x.max(0).values, x.sort(0).values, x.cumsum(0), x.norm(dim=0)):
        out.detach().zero_()
        assert x.tolist() == [[1.0, 2.0]]


def test_scans_in_place():
    x = ut.tensor([1, 2, 3], dtype=ut.int8)
    assert x.cumsum_(0) is x
    assert x.tolist() == [1, 3, 6]
    assert x.dtype is ut.int8
    y = leaf([1.0, 2.0, 3.0])
    z = y * 1
    z.cumprod_(0)
    same(grad(z.sum(), y), [9, 4, 2])


# What has no derivative -----------------------------------------------------------------------
def test_counts_are_constants():
    """As in torch: `histc` has no history, so that others' gradients are not in its way."""
    x = leaf([1.0, 2.0])
    counts = x.histc(4)
    assert not counts.requires_grad
    same(grad((counts * x.sum()).sum(), x), [2, 2])


def test_unique_says_that_it_has_no_derivative():
    x = leaf([1.0, 2.0])
    for out in (x.unique(), x.unique_consecutive()):
        with pytest.raises(ut.errors.GradientError, match="no derivative"):
            out.sum().backward()


def test_bincount_is_differentiable_in_its_weights():
    weights = leaf([1.0, 2.0, 4.0])
    out = ut.bincount(ut.tensor([1, 0, 1]), weights)
    assert out.tolist() == [2.0, 5.0]
    same(grad((out * out).sum(), weights), [10, 4, 10])


def test_no_difference_is_a_copy():
    x = ut.tensor([1.0, 2.0])
    x.diff(n=0).zero_()
    assert x.tolist() == [1, 2]


def test_quantile_between_infinities():
    x = ut.tensor([1.0, INF, INF])
    assert x.quantile(0.75).item() == INF
    assert x.quantile(1.0).item() == INF
    assert x.quantile(0.0).item() == 1
    y = ut.tensor([-INF, 1.0, INF])
    found = y.quantile(ut.tensor([0.0, 0.125, 0.25, 0.375, 0.5, 0.75, 1.0]))
    assert found.tolist() == [-INF, -INF, -INF, -INF, 1, INF, INF]
    assert y.quantile(0.25, interpolation="midpoint").item() == -INF


def test_empty_extremes_name_what_to_do():
    with pytest.raises(ut.errors.DimError, match=r"\[max\].*dim 1 of size 0.*\(2, 0\)"):
        ut.zeros(2, 0).max(1)
    assert ut.zeros(2, 0).max(0).values.shape == (0,)
    assert ut.zeros(2, 0).sum().item() == 0
    assert ut.zeros(2, 0).prod().item() == 1
    assert ut.zeros(0).any().item() is False
    assert ut.zeros(0).all().item() is True
    assert math.isnan(ut.zeros(0).mean().item())


@pytest.mark.parametrize("name", ["var_mean", "std_mean"])
def test_a_moment_and_the_mean_are_one_node(name: str) -> None:
    x = ut.tensor([[1.0, 2.0, 4.0], [0.5, 3.0, 9.0]], dtype=ut.float64, requires_grad=True)
    moment, mean = getattr(ut, name)(x, dim=1)
    assert moment.grad_fn is mean.grad_fn
    assert (moment.output_nr, mean.output_nr) == (0, 1)
    # Each alone, and both, against the functions that give one of them.
    alone = getattr(x, name[:3])(dim=1), x.mean(1)
    weights = ut.tensor([[1.0, -2.0], [3.0, 0.5]], dtype=ut.float64)
    for chosen in ((0,), (1,), (0, 1)):
        found = sum(((moment, mean)[i] * weights[i]).sum() for i in chosen)
        expected = sum((alone[i] * weights[i]).sum() for i in chosen)
        a, b = (ut.autograd.grad(y, x, retain_graph=True)[0] for y in (found, expected))
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-14)
    for half in (ut.float16, ut.bfloat16):
        assert [t.dtype for t in getattr(ut, name)(x.to(half))] == [half, half]
    # Where the moment has no finite slope, the mean has one.
    for values in ([3.0], [1.0, np.inf]):
        x = ut.tensor(values, requires_grad=True)
        getattr(ut, name)(x)[1].backward()
        assert x.grad.tolist() == [1 / len(values)] * len(values)


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__, "-q"]))


def test_nansum_in_integers() -> None:
    """NaN counts as zero before the numbers are cast, so it need not have a value there."""
    x = ut.tensor([1.0, float("nan"), 3.0])
    assert ut.nansum(x, dtype=ut.int32).item() == 4


def test_masked_reductions_of_zero_dimensions() -> None:
    """Dimensions 0 and -1 of a single number are there for all reductions, masked ones, too."""
    x = ut.tensor(2.0)
    for dim in (None, 0, -1, (0,)):
        assert ut.masked.mean(x, dim).item() == 2.0
        assert ut.masked.mean(x, dim, keepdim=True, mask=ut.tensor(True)).item() == 2.0
        assert ut.masked.var(x, dim, unbiased=False).item() == 0.0
        assert ut.masked.prod(x, dim).item() == 2.0
    with pytest.raises(IndexError, match="dim 1"):
        ut.masked.mean(x, 1)


def test_gradient_looks_at_the_neighbours_alone() -> None:
    """On an even grid the middle has no part in the slope there, finite or not."""
    x = ut.tensor([1.0, -3.0, math.inf, math.nan, 2.0, 5.0, 7.0])
    found = ut.gradient(x)[0].tolist()
    assert found[:2] == [-4.0, math.inf]
    assert math.isnan(found[2])
    assert found[3] == -math.inf
    assert found[5:] == [2.5, 2.0]
    slopes = ut.gradient(ut.tensor([1.0, 2.0, 4.0]), spacing=1j)[0]
    assert slopes.tolist() == [-1j, -1.5j, -2j]


def test_powers_of_complex_ends() -> None:
    found = ut.logspace(0, 1j, 2)
    assert found.dtype is ut.complex64
    assert ut.allclose(found, ut.tensor([1, 10**1j]))


def test_cosine_similarity_of_two_dtypes() -> None:
    """The common dtype counts; integers alone have none that will do."""
    a, b = ut.tensor([[3, 4]], dtype=ut.int8), ut.tensor([[6.0, 8.0]], dtype=ut.float64)
    found = ut.cosine_similarity(a, b)
    assert found.dtype is ut.float64
    assert found.tolist() == [pytest.approx(1.0)]
    with pytest.raises(ut.errors.DTypeError, match="floating"):
        ut.cosine_similarity(a, a)
    with pytest.raises(ut.errors.ArgumentError, match="eps"):
        ut.cosine_similarity(b, b, eps=-1.0)
