"""Linear algebra beyond the op table: what fails and how, gauges, singular matrices, kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends import lapack
from undertow.backends.cpu.forms.matrices import MANY, run_linalg
from undertow.core.tensor import wrap
from undertow.errors import DTypeError, GradientError, LinAlgError, ShapeError, UnsupportedError

RANDOM = np.random.default_rng(5)


def drawn(*shape: int, dtype: Any = np.float64) -> Any:
    """Random numbers of a dtype."""
    found = RANDOM.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        found = found + 1j * RANDOM.standard_normal(shape)
    return found.astype(dtype)


DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def loose(dtype: Any) -> float:
    """How far single and double precision may be apart from the truth here."""
    return 2e-4 if np.dtype(dtype).name in ("float32", "complex64") else 1e-10


def close(found: ut.Tensor, expected: Any, dtype: Any) -> None:
    """The elements, in the dtype."""
    assert found.dtype.numpy == np.dtype(dtype)
    np.testing.assert_allclose(found.numpy(), expected, rtol=loose(dtype), atol=loose(dtype))


# Factors multiply to the matrix ----------------------------------------------------------------
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (2, 0, 3, 3), (2, 3, 4, 2), (40, 37)])
def test_factors_multiply_to_the_matrix(shape: Any, dtype: Any) -> None:
    """LU, QR and SVD of every shape and dtype."""
    a = drawn(*shape, dtype=dtype)
    x = wrap(a)
    P, L, U = ut.linalg.lu(x)
    close(P @ L @ U, a, dtype)
    for mode in ("reduced", "complete"):
        Q, R = ut.linalg.qr(x, mode)
        close(Q @ R, a, dtype)
        square = (*Q.shape[:-2], Q.shape[-1], Q.shape[-1])
        close(Q.mH @ Q, np.broadcast_to(np.eye(Q.shape[-1]), square), dtype)
    size = min(shape[-2:])
    for full in (False, True):
        U, S, Vh = ut.linalg.svd(x, full)
        close((U[..., :size] * S.unsqueeze(-2)) @ Vh[..., :size, :], a, dtype)
    packed, tau = ut.geqrf(x)
    close(ut.ormqr(packed, tau, packed.triu()), a, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (0, 3, 3), (2, 3, 5, 5), (36, 36)])
def test_square_matrices(shape: Any, dtype: Any) -> None:
    """Inverses, solutions and eigenvalues."""
    a = drawn(*shape, dtype=dtype) + 6 * np.eye(shape[-1], dtype=dtype)
    b = drawn(*shape[:-1], 2, dtype=dtype)
    x, right = wrap(a), wrap(b)
    identity = np.broadcast_to(np.eye(shape[-1]), shape)
    close(ut.linalg.inv(x) @ x, identity, dtype)
    close(x @ ut.linalg.solve(x, right), b, dtype)
    close(x @ ut.linalg.lu_solve(*ut.linalg.lu_factor(x), right), b, dtype)
    close(x @ ut.linalg.pinv(x), identity, dtype)
    values, vectors = ut.linalg.eig(x)
    wide = np.result_type(dtype, np.complex64)
    close((x.to(vectors.dtype) @ vectors) - vectors * values.unsqueeze(-2), np.zeros(shape), wide)
    hermitian = x + x.mH
    values, vectors = ut.linalg.eigh(hermitian)
    assert not values.is_complex()
    close((vectors * values.unsqueeze(-2)) @ vectors.mH, hermitian.numpy(), dtype)
    definite = x @ x.mH
    factor = ut.linalg.cholesky(definite)
    size = float(definite.abs().max()) if definite.numel() else 1.0
    close(factor @ factor.mH / size, definite.numpy() / size, dtype)
    for hermit in (False, True):
        given = hermitian if hermit else x + x.mT
        LD, pivots = ut.linalg.ldl_factor(given, hermitian=hermit)
        close(given @ ut.linalg.ldl_solve(LD, pivots, right, hermitian=hermit), b, dtype)


def test_matrix_exp_is_the_limit_of_powers() -> None:
    """Norms small, large and mixed in a batch; NaN stays in its own matrix."""
    a = np.stack([np.diag([0.0, 1e-9]), np.diag([1.0, 50.0]), np.full((2, 2), np.nan)])
    found = ut.linalg.matrix_exp(wrap(a)).numpy()
    np.testing.assert_allclose(found[0], np.diag([1.0, np.exp(1e-9)]), rtol=1e-15)
    np.testing.assert_allclose(found[1], np.diag([np.e, np.exp(50.0)]), rtol=1e-13)
    assert np.isnan(found[2]).all()


# What fails ------------------------------------------------------------------------------------
def test_error_is_where_torch_has_it() -> None:
    """`ut.linalg.LinAlgError`, which is a RuntimeError, and NumPy's ValueError."""
    assert ut.linalg.LinAlgError is LinAlgError
    assert issubclass(LinAlgError, RuntimeError)
    assert issubclass(LinAlgError, ValueError)


@pytest.mark.parametrize("name", ["eig", "eigvals", "eigh", "eigvalsh", "svd", "svdvals"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_iterations_refuse_what_never_converges(name: str, value: float) -> None:
    """NaN and infinity, also in one matrix of a batch, and nothing crashes."""
    a = np.zeros((3, 4, 4))
    a[1, 2, 2] = value
    with pytest.raises(LinAlgError, match=rf"\[linalg.{name}\].*NaN or infinite"):
        getattr(ut.linalg, name)(wrap(a))


@pytest.mark.parametrize("name", ["inv", "det", "lu_factor", "qr", "matrix_exp", "cholesky_ex"])
def test_nan_goes_through_what_does_not_iterate(name: str) -> None:
    """The result has NaN, as in torch."""
    found = getattr(ut.linalg, name)(wrap(np.full((2, 3, 3), np.nan)))
    first = found if isinstance(found, ut.Tensor) else found[-1 if name == "qr" else 0]
    assert first.isnan().any()


def test_singular_matrices_are_named() -> None:
    """Which matrix of the batch it is, and what to do."""
    a = np.stack([np.eye(2), np.zeros((2, 2)), np.eye(2)])[None]
    with pytest.raises(LinAlgError, match=r"matrix \(0, 1\) of the batch.*pivot 1 is zero.*pinv"):
        ut.linalg.inv(wrap(a))
    result, info = ut.linalg.inv_ex(wrap(a))
    assert info.tolist() == [[0, 1, 0]]
    np.testing.assert_array_equal(result[0, 0].numpy(), np.eye(2))
    assert ut.linalg.solve_ex(wrap(a), wrap(np.ones((2, 1)))).info.tolist() == [[0, 1, 0]]
    L, info = ut.linalg.cholesky_ex(wrap(np.array([[4.0, 0.0], [0.0, -1.0]])))
    assert (info.item(), L[0, 0].item()) == (2, 2.0)
    assert ut.linalg.lu_factor_ex(wrap(np.zeros((3, 2)))).info.item() == 1
    assert ut.linalg.ldl_factor_ex(wrap(np.zeros((3, 3)))).info.item() == 1


def test_factors_of_singular_matrices() -> None:
    """`lu_factor` and `ldl_factor` say which matrix it is; the others factor it, and NaN too."""
    a = np.stack([np.eye(3), np.ones((3, 3))])[:, None]
    with pytest.raises(LinAlgError, match=r"matrix \(1, 0\) of the batch.*pivot 2 is zero.*lu_fac"):
        ut.linalg.lu_factor(wrap(a))
    with pytest.raises(LinAlgError, match=r"matrix \(1, 0\) of the batch.*block 2 of D is zero"):
        ut.linalg.ldl_factor(wrap(a))
    P, L, U = ut.linalg.lu(wrap(a))
    np.testing.assert_array_equal((P @ L @ U).numpy(), a)
    packed, pivots = ut.lu(wrap(a))
    P, L, U = ut.lu_unpack(packed, pivots)
    np.testing.assert_array_equal((P @ L @ U).numpy(), a)
    assert ut.lu(wrap(a), get_infos=True).info.tolist() == [[0], [2]]
    assert ut.linalg.ldl_factor_ex(wrap(a)).info.tolist() == [[0], [2]]
    assert ut.linalg.ldl_factor(wrap(np.full((3, 3), np.nan))).LD.isnan().any()


@pytest.mark.parametrize("shape", [(6, 6), (40, 8, 8), (200, 200)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_is_the_largest_pivot(shape: tuple[int, ...], dtype: Any) -> None:
    """A matrix with NaN is not singular, whatever its other columns are, as in torch."""
    a = np.random.default_rng(6).standard_normal(shape).astype(dtype)
    a[..., -3], a[..., 2, 1] = 0, np.nan
    assert not ut.linalg.lu_factor_ex(wrap(a)).info.any()
    assert ut.linalg.lu_factor(wrap(a)).LU[..., -1, -1].isnan().all()
    assert ut.linalg.inv(wrap(a)).isnan().all()
    assert ut.linalg.solve(wrap(a), ut.ones(shape[-1], 1, dtype=wrap(a).dtype)).isnan().all()
    assert ut.linalg.det(wrap(a)).isnan().all()


def test_dtypes_that_nothing_divides() -> None:
    """Integers, booleans and half precision are refused with a way out."""
    for dtype in (ut.int64, ut.bool, ut.float16, ut.bfloat16):
        with pytest.raises(DTypeError, match=r"\[linalg.inv\].*convert it"):
            ut.linalg.inv(ut.eye(2).to(dtype))


def test_results_have_names() -> None:
    """Fields as torch's named tuples have them."""
    x = ut.eye(3)
    fields = {
        "eigh": "eigenvalues eigenvectors",
        "eig": "eigenvalues eigenvectors",
        "svd": "U S Vh",
        "qr": "Q R",
        "lu": "P L U",
        "lu_factor": "LU pivots",
        "lu_factor_ex": "LU pivots info",
        "ldl_factor": "LD pivots",
        "slogdet": "sign logabsdet",
        "inv_ex": "inverse info",
        "cholesky_ex": "L info",
    }
    for name, expected in fields.items():
        assert " ".join(getattr(ut.linalg, name)(x)._fields) == expected
    assert ut.svd(x)._fields == ("U", "S", "V")
    lstsq = ut.linalg.lstsq(x, x)
    assert lstsq._fields == ("solution", "residuals", "rank", "singular_values")


# Gauges ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["eig", "eigh", "svd"])
def test_a_loss_that_depends_on_phases_has_no_gradient(name: str) -> None:
    """Of complex vectors; one that does not depend on them has."""
    a = drawn(3, 3, dtype=np.complex128)
    x = wrap(a + a.conj().T).requires_grad_()
    vectors = getattr(ut.linalg, name)(x)[0 if name == "svd" else 1]
    with pytest.raises(GradientError, match=rf"\[{name}\].*phase"):
        vectors.real.sum().backward()
    (vectors.abs() ** 3).sum().backward()
    assert x.grad is not None


def test_values_that_coincide_have_gradients() -> None:
    """Of repeated eigenvalues and singular values, as long as no vector is asked for."""
    for function in (ut.linalg.eigvalsh, ut.linalg.svdvals):
        x = ut.eye(3, dtype=ut.float64, requires_grad=True)
        function(x).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), np.eye(3), atol=1e-12)


def test_what_has_no_gradient_says_so() -> None:
    """Q that is not determined, Q that is not there, factors with blocks."""
    x = wrap(drawn(4, 2)).requires_grad_()
    for mode, reason in (("complete", "not determined"), ("r", "mode='reduced'|'reduced'")):
        with pytest.raises(GradientError, match=reason):
            ut.linalg.qr(x, mode).R.sum().backward()
    symmetric = x @ x.mT
    with pytest.raises(GradientError):
        ut.linalg.ldl_factor(symmetric).LD.sum().backward()
    with pytest.raises(GradientError):
        ut.geqrf(x).a.sum().backward()
    with pytest.raises(UnsupportedError, match="no gradient with B"):
        ut.lobpcg(symmetric, B=ut.eye(4, dtype=ut.float64))


# Low rank --------------------------------------------------------------------------------------
def test_low_rank_approximations() -> None:
    """A matrix of rank 3 is found whole, principal components have no mean."""
    a = drawn(30, 3) @ drawn(3, 20)
    U, S, V = ut.svd_lowrank(wrap(a), q=5)
    np.testing.assert_allclose((U * S).numpy() @ V.mT.numpy(), a, atol=1e-8)
    U, S, V = ut.pca_lowrank(wrap(a + 7), q=4)
    centred = a - a.mean(0)
    np.testing.assert_allclose((U * S).numpy() @ V.mT.numpy(), centred, atol=1e-7)
    M = wrap(np.full((1, 20), 7.0))
    np.testing.assert_allclose(ut.svd_lowrank(wrap(a + 7), 5, M=M).S[:3], np.linalg.svd(a)[1][:3])


def test_lobpcg_of_a_large_matrix() -> None:
    """The ends of a spectrum that is known, with and without B."""
    n = 60
    a = np.diag(2.0 * np.ones(n)) - np.diag(np.ones(n - 1), 1) - np.diag(np.ones(n - 1), -1)
    known = np.linalg.eigvalsh(a)
    ut.manual_seed(0)
    for largest, expected in ((True, known[::-1][:4]), (False, known[:4])):
        values, vectors = ut.lobpcg(wrap(a), k=4, largest=largest)
        np.testing.assert_allclose(values.numpy(), expected, atol=1e-5)
        residual = a @ vectors.numpy() - vectors.numpy() * values.numpy()
        assert np.abs(residual).max() < 1e-5
    scaled, _ = ut.lobpcg(wrap(a), k=2, B=wrap(2 * np.eye(n)))
    np.testing.assert_allclose(scaled.numpy(), known[::-1][:2] / 2, atol=1e-5)


def test_lobpcg_has_the_gradients_of_eigh_of_a_symmetric_matrix() -> None:
    """Of first and second order: nothing in the part that a symmetric matrix cannot have."""
    a = np.random.default_rng(3).standard_normal((6, 6))
    start = ut.eye(6, 1, dtype=ut.float64)
    found = []
    for pair in (
        lambda A: ut.lobpcg(A, X=start),
        lambda A: [t[..., -1:] for t in ut.linalg.eigh((A + A.mT) / 2)],
    ):
        A = wrap(a @ a.T).requires_grad_()
        values, vectors = pair(A)
        aim = (values + (vectors**3).sum() * vectors.sum()).sum()  # of no sign
        (first,) = ut.autograd.grad(aim, A, create_graph=True)
        found.append([first.detach(), *ut.autograd.grad((first * wrap(a)).sum(), A)])
    for ours, known in zip(*found, strict=True):
        np.testing.assert_allclose(ours.numpy(), known.numpy(), atol=1e-6)


# Kernels for many small matrices ---------------------------------------------------------------
COUNT = MANY + 7  # no multiple of anything


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n, columns", [(1, 1), (3, 2), (8, 4), (17, 5)])
def test_kernels_agree_with_lapack(n: int, columns: int, dtype: Any) -> None:
    """Every routine that has one, whatever lies beside it in memory."""
    a, b = drawn(COUNT, n, n, dtype=dtype), drawn(COUNT, n, columns, dtype=dtype)
    steep = a @ np.swapaxes(a, -2, -1) + n * np.eye(n, dtype=dtype)
    wide = np.zeros((COUNT, n, 2 * n), dtype)
    wide[..., ::2] = a
    shared = np.broadcast_to(a[0], a.shape)
    crossed = np.swapaxes(drawn(COUNT, columns, n, dtype=dtype), -2, -1)
    calls = [
        ("lu", (a,), (True,)),
        ("lu", (wide[..., ::2],), (True,)),
        ("lu", (drawn(COUNT, n + 2, n, dtype=dtype),), (True,)),
        ("lu", (steep,), (False,)),
        ("solve", (a, b), ()),
        ("solve", (shared, crossed), ()),
        ("inv", (a,), ()),
        ("det", (a,), ()),
        ("slogdet", (a,), ()),
        ("cholesky", (steep,), (False,)),
        ("cholesky", (steep,), (True,)),
        ("triangular", (steep, b), (False, False)),
        ("triangular", (np.swapaxes(steep, -2, -1), b), (True, False)),
        ("triangular", (steep / (2 * n), b), (True, True)),
    ]
    for kind, arrays, options in calls:
        found = run_linalg(kind, arrays, *options)
        assert found is not None, kind
        expected = lapack.ROUTINES[kind](*arrays, *options)
        for f, e in zip(found, expected, strict=True):
            assert (f.shape, f.dtype) == (e.shape, e.dtype)
            scale = 1 + np.abs(e).max()
            np.testing.assert_allclose(f / scale, e / scale, atol=20 * loose(dtype), err_msg=kind)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_are_backward_stable(dtype: Any) -> None:
    """Random matrices, some nearly singular: errors are rounding, held against float64 or more."""
    rng = np.random.default_rng(4)
    a = rng.standard_normal((2000, 8, 8)).astype(dtype)
    b = rng.standard_normal((2000, 8, 3)).astype(dtype)
    eps = np.finfo(dtype).eps
    wide = np.longdouble
    exact, right = a.astype(wide), b.astype(wide)

    def largest(x: Any) -> Any:
        return np.abs(x).sum(-1).max(-1)

    def backward(matrix: Any, x: Any) -> Any:
        return (np.abs(matrix @ x - right) / (np.abs(matrix) @ np.abs(x) + np.abs(right))).max()

    p, lower, upper = (x.numpy().astype(wide) for x in ut.linalg.lu(ut.from_numpy(a)))
    assert np.abs(lower).max() <= 1  # rows are exchanged
    assert (np.abs(upper).max((1, 2)) <= 8 * np.abs(exact).max((1, 2))).all()
    assert (largest(p @ lower @ upper - exact) <= 4 * eps * largest(exact)).all()
    assert backward(exact, ut.linalg.solve(ut.from_numpy(a), ut.from_numpy(b)).numpy()) <= 12 * eps
    found = ut.linalg.solve_triangular(ut.from_numpy(a), ut.from_numpy(b), upper=False).numpy()
    assert backward(np.tril(exact), found) <= 4 * eps
    condition = np.linalg.cond(a.astype(np.float64), np.inf)
    inverse = ut.linalg.inv(ut.from_numpy(a)).numpy().astype(wide)
    identity = largest(exact @ inverse - np.eye(8))
    assert (identity <= 8 * eps * condition).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("shape", [(200, 150), (150, 200), (2, 140, 133)])
def test_qr_of_large_matrices(shape: tuple[int, ...], dtype: Any) -> None:
    """Panels and products: the same factors as LAPACK's, of zero columns as well."""
    rng = np.random.default_rng(5)
    a = rng.standard_normal(shape).astype(dtype)
    if a.dtype.kind == "c":
        a += 1j * rng.standard_normal(shape)
    a[..., 40:50] = 0
    eps = np.finfo(dtype).eps
    for mode in ("reduced", "complete"):
        q, r = (x.numpy() for x in ut.linalg.qr(ut.from_numpy(a), mode))
        shapes = [x.shape for x in np.linalg.qr(a, mode)]
        assert [q.shape, r.shape] == shapes
        assert q.dtype == r.dtype == a.dtype
        assert np.abs(q @ r - a).max() <= 40 * eps * np.abs(a).max()
        square = np.swapaxes(q, -2, -1).conj() @ q
        assert np.abs(square - np.eye(q.shape[-1])).max() <= 40 * eps
        assert np.abs(np.tril(r, -1)).max() == 0


def test_kernels_know_singular_matrices() -> None:
    """A zero pivot in one matrix of many; what is not positive definite goes to LAPACK."""
    a = np.tile(np.eye(3), (COUNT, 1, 1))
    a[5, 2, 2] = 0
    for kind, options in (("lu", (True,)), ("inv", ())):
        info = run_linalg(kind, (a,), *options)[-1]
        assert info[5] == 3
        assert info.sum() == 3
    assert run_linalg("det", (a,))[0][5] == 0
    assert [x[5].item() for x in ut.linalg.slogdet(wrap(a))] == [0, -np.inf]
    assert run_linalg("cholesky", (a,), False) is None
    with pytest.raises(LinAlgError, match=r"matrix \(5,\).*order 3"):
        ut.linalg.cholesky(wrap(a))
    a[5, 1, 1] = np.nan
    assert np.isnan(run_linalg("det", (a,))[0][5])


def test_threads_do_not_show() -> None:
    """One thread or two, the same bits."""
    a = wrap(drawn(1000, 6, 6, dtype=np.float32))
    before = ut.get_num_threads()
    try:
        found = []
        for threads in (1, 2):
            ut.set_num_threads(threads)
            found.append(ut.linalg.inv(a).numpy())
        np.testing.assert_array_equal(*found)
    finally:
        ut.set_num_threads(before)


def test_large_batches_have_gradients() -> None:
    """The rules run on the kernels as well."""
    x = wrap(drawn(COUNT, 4, 4) + 5 * np.eye(4)).requires_grad_()
    b = wrap(drawn(COUNT, 4, 2)).requires_grad_()
    grads = ut.autograd.grad(ut.linalg.solve(x, b).square().sum(), (x, b))
    parts = [
        ut.autograd.grad(ut.linalg.solve(x[i], b[i]).square().sum(), (x, b)) for i in (0, COUNT - 1)
    ]
    for whole, first, last in zip(grads, *parts, strict=True):
        np.testing.assert_allclose(whole[0].numpy(), first[0].numpy(), rtol=1e-10)
        np.testing.assert_allclose(whole[-1].numpy(), last[-1].numpy(), rtol=1e-10)


def test_shapes_that_do_not_fit() -> None:
    """Batches that do not broadcast name both."""
    with pytest.raises(ShapeError, match=r"\[linalg.solve\]"):
        ut.linalg.solve(ut.ones(2, 3, 3), ut.ones(3, 3, 1))


def expanded(a: ut.Tensor) -> ut.Tensor:
    """The determinant by its first row: a polynomial, right to any order at any matrix."""
    n = a.shape[-1]
    if n == 1:
        return a[0, 0]
    minors = [a[1:, [k for k in range(n) if k != j]] for j in range(n)]
    return ut.stack([a[0, j] * expanded(m) * (-1) ** j for j, m in enumerate(minors)]).sum()


def slopes(function: Any, a: Any, orders: int) -> list[Any]:
    """Derivatives of the first orders, each of a fixed combination of those before."""
    x = ut.tensor(a, requires_grad=True)
    found: list[Any] = []
    y = function(x)
    for order in range(orders):
        weight = np.random.default_rng(order).standard_normal(np.shape(y))
        (y,) = ut.autograd.grad((y * ut.tensor(weight)).sum().real, x, create_graph=True)
        found.append(y.detach().numpy())
    return found


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize(("n", "rank"), [(2, 1), (3, 1), (3, 2), (4, 2), (4, 3), (3, 3), (4, 4)])
def test_derivatives_of_determinants_where_rounding_hides_that_they_are_singular(
    n: int, rank: int, dtype: Any
) -> None:
    a = drawn(n, rank, dtype=dtype) @ drawn(rank, n, dtype=dtype)
    orders = 2 if rank < n else 4
    for found, expected in zip(
        slopes(ut.linalg.det, a, orders), slopes(expanded, a, orders), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


def test_third_derivatives_of_determinants() -> None:
    flat = np.ones((3, 3)) + np.diag([0.0, 1e-9, 2e-9])
    with pytest.raises(NotImplementedError, match="nearly singular"):
        slopes(ut.linalg.det, flat, 3)
    assert not np.any(slopes(ut.linalg.det, np.ones((2, 2)), 3)[2])  # quadratic: zeros


# Large matrices: panels and products -------------------------------------------------------------
@pytest.mark.parametrize("dtype", [ut.float32, ut.float64])
@pytest.mark.parametrize(
    "shape", [(200, 200), (65, 65), (257, 130), (130, 257), (3, 200), (200, 1)]
)
def test_lu_of_large_matrices(shape: tuple[int, int], dtype: Any) -> None:
    """The exchanges are LAPACK's, and the factors multiply to the matrix."""
    a = ut.from_numpy(np.random.default_rng(3).standard_normal(shape)).to(dtype)
    factors, pivots, info = ut.linalg.lu_factor_ex(a)
    packed, wanted, _ = lapack.lu(a.numpy(), True)
    assert pivots.tolist() == wanted.tolist()
    assert info.item() == 0
    bound = 1e-10 if dtype is ut.float64 else 1e-2
    assert (factors - ut.from_numpy(packed)).abs().amax().item() < bound
    p, lower, upper = ut.lu_unpack(factors, pivots)
    assert (p @ lower @ upper - a).abs().amax().item() < bound


@pytest.mark.parametrize("upper", [False, True])
def test_large_systems(upper: bool) -> None:
    rng = np.random.default_rng(4)
    a = rng.standard_normal((2, 201, 201))
    b = rng.standard_normal((2, 201, 130))
    definite = a @ a.swapaxes(-2, -1) + 201 * np.eye(201)
    triangle = np.triu(definite) if upper else np.tril(definite)
    given = [ut.from_numpy(x) for x in (a, b, definite)]
    found = {
        "solve": (ut.linalg.solve(given[0], given[1]), np.linalg.solve(a, b)),
        "inv": (ut.linalg.inv(given[0]), np.linalg.inv(a)),
        "slogdet": (ut.linalg.slogdet(given[0])[1], np.linalg.slogdet(a)[1]),
        "sign": (ut.linalg.slogdet(given[0])[0], np.linalg.slogdet(a)[0]),
        "det": (ut.linalg.det(given[2] / 400), np.linalg.det(definite / 400)),
        "cholesky": (
            ut.linalg.cholesky(ut.from_numpy(triangle), upper=upper),
            np.linalg.cholesky(definite).swapaxes(-2, -1)
            if upper
            else np.linalg.cholesky(definite),
        ),
        "triangular": (
            ut.linalg.solve_triangular(given[2], given[1], upper=upper),
            np.linalg.solve(triangle, b),
        ),
        "odd steps": (
            ut.linalg.solve(given[0].mT, given[1][:, :, ::3]),
            np.linalg.solve(a.swapaxes(-2, -1), b[:, :, ::3]),
        ),
    }
    for name, (ours, wanted) in found.items():
        np.testing.assert_allclose(ours.numpy(), wanted, 1e-8, 1e-8, err_msg=name)


def test_large_factors_have_the_same_bits_on_any_number_of_threads() -> None:
    a = ut.from_numpy(np.random.default_rng(5).standard_normal((300, 300)).astype(np.float32))
    threads = ut.get_num_threads()
    found = []
    try:
        for number in (1, 2, 3):
            ut.set_num_threads(number)
            d = a @ a.mT + 300 * ut.eye(300)
            found.append([ut.linalg.lu_factor(a)[0], ut.linalg.inv(a), ut.linalg.cholesky(d)])
    finally:
        ut.set_num_threads(threads)
    for others in found[1:]:
        assert all(ut.equal(x, y) for x, y in zip(found[0], others, strict=True))


def test_large_matrices_that_are_singular() -> None:
    """The pivot that is zero is named, and NaN goes through."""
    a = ut.from_numpy(np.random.default_rng(6).standard_normal((200, 200)))
    a[:, 150] = 0
    assert ut.linalg.lu_factor_ex(a).info.item() == 151
    with pytest.raises(ut.linalg.LinAlgError, match="pivot 151 is zero"):
        ut.linalg.solve(a, ut.ones(200, 1, dtype=ut.float64))
    with pytest.raises(ut.linalg.LinAlgError, match="pivot 151 is zero"):
        ut.linalg.inv(a)
    assert ut.linalg.det(a).item() == 0
    assert ut.linalg.slogdet(a).logabsdet.item() == -math.inf
    not_definite = ut.eye(200, dtype=ut.float64)
    not_definite[120, 120] = -1
    assert ut.linalg.cholesky_ex(not_definite).info.item() == 121
    with pytest.raises(ut.linalg.LinAlgError, match="121"):
        ut.linalg.cholesky(not_definite)
    a[3, 5] = math.nan
    assert ut.linalg.lu_factor(a)[0].isnan().any()


def test_gradients_of_large_matrices() -> None:
    rng = np.random.default_rng(7)
    a = ut.from_numpy(rng.standard_normal((193, 193)) + 20 * np.eye(193)).requires_grad_()
    b = ut.from_numpy(rng.standard_normal((193, 2))).requires_grad_()
    along = ut.from_numpy(rng.standard_normal((193, 193)))

    def loss(a: Any) -> Any:
        spd = a @ a.mT
        factors = ut.linalg.lu_factor(a)[0]
        return (
            ut.linalg.solve(a, b).sum()
            + ut.linalg.cholesky(spd).sum() / 100
            + factors.sin().sum() / 100
            + ut.linalg.slogdet(a)[1]
        )

    (gradient,) = ut.autograd.grad(loss(a), [a])
    step = 1e-5
    with ut.no_grad():
        difference = (loss(a + step * along) - loss(a - step * along)) / (2 * step)
    assert (gradient * along).sum().item() == pytest.approx(difference.item(), rel=1e-5)


@pytest.mark.parametrize("ord", [-1, -2])
def test_a_smallest_of_nothing_is_an_index_error(ord: int) -> None:
    for norm in (ut.linalg.norm, ut.linalg.matrix_norm):
        with pytest.raises(IndexError, match="without elements"):
            norm(ut.zeros(0, 0), ord)
