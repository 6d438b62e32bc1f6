"""Linear algebra against torch where the op table does not reach.

dtypes, errors, gauges, tolerances, and the functions whose gradient torch does not have.
"""

from __future__ import annotations

import inspect
import re
import warnings
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.core.tensor import wrap

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance
RANDOM = np.random.default_rng(11)
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def drawn(*shape: int, dtype: Any = np.float64) -> Any:
    """Random numbers of a dtype."""
    found = RANDOM.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        found = found + 1j * RANDOM.standard_normal(shape)
    return found.astype(dtype)


def both(name: str, *arrays: Any, **options: Any) -> tuple[list[Any], list[Any]]:
    """The results of ours and of torch's `linalg` function, as lists of tensors."""
    found = getattr(ut.linalg, name)(*map(wrap, arrays), **options)
    expected = getattr(torch.linalg, name)(*map(torch.from_numpy, arrays), **options)
    listed = [list(r) if isinstance(r, tuple) else [r] for r in (found, expected)]
    assert len(listed[0]) == len(listed[1])
    return listed[0], listed[1]


def same(found: Any, expected: Any, tolerance: float) -> None:
    """Shapes, dtypes and elements."""
    assert found.shape == tuple(expected.shape)
    assert found.dtype.name == str(expected.dtype).removeprefix("torch.")
    values = expected.resolve_conj().numpy()
    np.testing.assert_allclose(found.numpy(), values, rtol=tolerance, atol=tolerance)


# dtypes ------------------------------------------------------------------------------------------
UNIQUE = """
det slogdet inv inv_ex cholesky cholesky_ex eigvalsh svdvals lu lu_factor lu_factor_ex qr pinv
matrix_exp matrix_norm vector_norm norm cond matrix_rank diagonal vander eigh ldl_factor_ex
""".split()  # noqa: SIM905


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNIQUE)
def test_values_in_every_dtype(name: str, dtype: Any) -> None:
    """Single and double precision, real and complex, in batches and without matrices."""
    a = drawn(2, 4, 4, dtype=dtype)
    a = a @ np.swapaxes(a, -2, -1).conj() + 2 * np.eye(4, dtype=dtype)
    for given in (a, a[0], a[:0], np.ascontiguousarray(a[..., :0, :0])):
        if not given.shape[-1] and name in ("vander", "cond", "norm", "ldl_factor_ex"):
            continue
        found, expected = both(name, given)
        tolerance = 1e-3 if a.real.dtype == np.float32 else 1e-9
        for i, (f, e) in enumerate(zip(found, expected, strict=True)):
            if name == "eigh" and i == 1:
                f, e = f.abs(), e.abs()
            same(f, e, tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hermitian", [False, True])
def test_ldl_is_packed_as_by_lapack(dtype: Any, hermitian: bool) -> None:
    """Blocks of one and two rows, exchanges and all; and what is solved with them."""
    tolerance = 1e-2 if np.dtype(dtype).name in ("float32", "complex64") else 1e-8
    for n in (1, 2, 5, 12):
        a = drawn(3, n, n, dtype=dtype)
        other = np.swapaxes(a, -2, -1)
        a = a + (other.conj() if hermitian else other)
        a[0] *= 1 - np.eye(n, dtype=dtype)  # zeros on the diagonal want blocks of two
        if n == 1:
            a[0] = 1
        found, expected = both("ldl_factor", a, hermitian=hermitian)
        np.testing.assert_array_equal(found[1].numpy(), expected[1].numpy())
        same(found[0].tril(), expected[0].tril(), tolerance)
        b = drawn(3, n, 2, dtype=dtype)
        solved = ut.linalg.ldl_solve(*found, wrap(b), hermitian=hermitian)
        theirs = torch.linalg.ldl_solve(*expected, torch.from_numpy(b), hermitian=hermitian)
        same(solved, theirs, 10 * tolerance)


@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 5, 3)])
def test_least_squares(shape: Any, driver: str | None) -> None:
    """All four results of every driver."""
    a, b = drawn(*shape), drawn(*shape[:-1], 2)
    for f, e in zip(*both("lstsq", a, b, driver=driver), strict=True):
        same(f, e, 1e-8)


@pytest.mark.parametrize("p", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_condition_numbers(p: Any) -> None:
    """And their gradient, by torch's own formula where its function has none."""
    a = drawn(2, 3, 3)
    (found,), (expected,) = both("cond", a, p=p)
    same(found, expected, 1e-9)
    x, y = wrap(a).requires_grad_(), torch.from_numpy(a).requires_grad_()
    ut.linalg.cond(x, p).sum().backward()
    if p in (None, 2, -2):
        other = torch.linalg.cond(y, p)
    else:
        other = torch.linalg.matrix_norm(y, p) * torch.linalg.matrix_norm(torch.linalg.inv(y), p)
    other.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-7, atol=1e-8)


def test_tolerances_of_rank_and_pseudoinverse() -> None:
    """atol, rtol, both, as numbers and as tensors, and the older words."""
    a = np.diag([1.0, 1e-2, 1e-5, 1e-18])
    for options in (
        {},
        {"atol": 1e-3},
        {"rtol": 1e-3},
        {"atol": 1e-3, "rtol": 0.5},
        {"atol": 0.0},
        {"tol": 1e-4},
        {"hermitian": True},
    ):
        found = ut.linalg.matrix_rank(wrap(a), **options)
        assert found.item() == torch.linalg.matrix_rank(torch.from_numpy(a), **options).item()
        if "tol" not in options:
            (f,), (e,) = both("pinv", a, **options)
            same(f, e, 1e-9)
    batch = np.stack([a, a])
    limits = np.array([1e-3, 1e-6])
    found = ut.linalg.matrix_rank(wrap(batch), atol=wrap(limits))
    expected = torch.linalg.matrix_rank(torch.from_numpy(batch), atol=torch.from_numpy(limits))
    assert found.tolist() == expected.tolist()


def test_vander_and_old_names() -> None:
    """Functions whose torch twin has no gradient, or warns."""
    x = drawn(4)
    for options in ({}, {"N": 2}, {"increasing": True}, {"N": 6, "increasing": True}):
        same(ut.vander(wrap(x), **options), torch.vander(torch.from_numpy(x), **options), 1e-12)
    a = drawn(3, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("qr", "svd", "lu"):
            theirs = getattr(torch, name)(torch.from_numpy(a))
            for f, e in zip(getattr(ut, name)(wrap(a)), theirs, strict=True):
                same(f.abs(), e.abs(), 1e-10)


# Errors ------------------------------------------------------------------------------------------
BAD = [
    ("inv", (np.zeros((2, 2)),), {}),
    ("inv", (np.ones((2, 3)),), {}),
    ("inv", (np.ones(2),), {}),
    ("solve", (np.zeros((2, 2)), np.ones(2)), {}),
    ("solve", (np.eye(3), np.ones((2, 1))), {}),
    ("solve", (np.eye(3), np.eye(3, dtype=np.float32)), {}),
    ("cholesky", (-np.eye(2),), {}),
    ("cholesky", (np.full((2, 2), np.nan),), {}),
    ("cholesky", (np.ones((2, 3)),), {}),
    ("eigh", (np.full((5, 5), np.nan),), {}),
    ("eig", (np.full((2, 2), np.nan),), {}),
    ("eig", (np.full((2, 2), np.inf),), {}),
    ("svd", (np.full((2, 2), np.nan),), {}),
    ("eigh", (np.eye(2), "X"), {}),
    ("qr", (np.eye(2), "raw"), {}),
    ("det", (np.eye(2, dtype=np.int64),), {}),
    ("det", (np.eye(2, dtype=np.float16),), {}),
    ("lu_factor", (np.ones(3),), {}),
    ("lu_factor", (np.ones((3, 2)),), {}),
    ("lu_factor", (np.zeros((2, 2, 2)),), {}),
    ("lu_factor_ex", (np.zeros((2, 2)),), {"check_errors": True}),
    ("ldl_factor", (np.zeros((2, 2)),), {}),
    ("ldl_factor_ex", (np.zeros((2, 2)),), {"check_errors": True}),
    ("solve_triangular", (np.ones((2, 3)), np.ones((2, 3))), {"upper": True}),
    ("solve_triangular", (np.eye(3), np.ones((2, 3))), {"upper": True}),
    ("matrix_norm", (np.eye(2), 3), {}),
    ("matrix_norm", (np.ones(2),), {}),
    ("norm", (np.ones((2, 2, 2)), 1), {}),
    ("vector_norm", (np.ones(2, np.int64),), {}),
    ("matrix_power", (np.ones((2, 3)), 2), {}),
    ("matrix_power", (np.zeros((2, 2)), -1), {}),
    ("multi_dot", ([np.eye(2)],), {}),
    ("tensorinv", (np.ones((2, 3)),), {}),
    ("tensorsolve", (np.ones((2, 3)), np.ones(3)), {}),
    ("vander", (np.ones(()),), {}),
    ("vander", (np.ones(3),), {"N": 1}),
    ("vecdot", (np.ones(2), np.ones(3)), {}),
    ("cross", (np.ones(4), np.ones(4)), {}),
    ("householder_product", (np.ones((2, 3)), np.ones(2)), {}),
    ("lstsq", (np.ones((3, 2)), np.ones((2, 1))), {}),
    ("lstsq", (np.ones((3, 2)), np.ones((3, 1))), {"driver": "qr"}),
    ("cond", (np.ones((2, 3)), 1), {}),
    ("cond", (np.eye(2), 3), {}),
]


@pytest.mark.parametrize(
    "name, arrays, options", BAD, ids=lambda v: v if isinstance(v, str) else ""
)
def test_errors_where_torch_has_them(name: str, arrays: Any, options: Any) -> None:
    """Ours is a RuntimeError too, and LinAlgError is what torch's is."""

    def given(make: Any) -> list[Any]:
        def one(value: Any) -> Any:
            if isinstance(value, list):
                return [one(v) for v in value]
            return make(value) if isinstance(value, np.ndarray) else value

        return [one(a) for a in arrays]

    with pytest.raises((RuntimeError, IndexError, ValueError)) as theirs:
        getattr(torch.linalg, name)(*given(torch.from_numpy), **options)
    with pytest.raises(ut.errors.UndertowError) as ours:
        getattr(ut.linalg, name)(*given(wrap), **options)
    assert isinstance(ours.value, (theirs.type, RuntimeError, ValueError))
    if isinstance(theirs.value, torch.linalg.LinAlgError):
        assert isinstance(ours.value, ut.linalg.LinAlgError)
    assert str(ours.value).startswith(f"[linalg.{name}]")


@pytest.mark.parametrize("name", ["eig", "eigh", "svd"])
def test_phases_are_an_error_in_both(name: str) -> None:
    """A loss of complex vectors that depends on what is not determined."""
    a = drawn(3, 3, dtype=np.complex128)
    a = a + a.conj().T
    index = 0 if name == "svd" else 1
    for module, x in ((torch, torch.from_numpy(a)), (ut, wrap(a))):
        x.requires_grad_()
        with pytest.raises(RuntimeError, match=r"phase|phi"):
            getattr(module.linalg, name)(x)[index].real.sum().backward()


# Orthogonal weights ------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
@pytest.mark.parametrize("name", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [False, True])
def test_orthogonal_weights(shape: Any, name: str, trivial: bool) -> None:
    """The same weight and gradient out of the same state."""
    theirs = torch.nn.Linear(shape[1], shape[0], dtype=torch.float64)
    ours = ut.nn.Linear(shape[1], shape[0], dtype=ut.float64)
    options = {"orthogonal_map": name, "use_trivialization": trivial}
    torch.nn.utils.parametrizations.orthogonal(theirs, **options)
    ut.nn.utils.parametrizations.orthogonal(ours, **options)
    state = theirs.state_dict()
    key = "parametrizations.weight.original"
    if name != "householder":
        state[key] = torch.from_numpy(drawn(*shape))
        theirs.load_state_dict(state)
    assert set(ours.state_dict()) == set(state)
    ours.load_state_dict({n: wrap(t.numpy().copy()) for n, t in state.items()})
    weights = drawn(*shape)
    (ours.weight * wrap(weights)).sum().backward()
    (theirs.weight * torch.from_numpy(weights)).sum().backward()
    np.testing.assert_allclose(ours.weight.detach(), theirs.weight.detach(), atol=1e-12)
    found, expected = (dict(m.named_parameters())[key].grad for m in (ours, theirs))
    np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-10)


# Names -------------------------------------------------------------------------------------------
NAMES = [
    n
    for n, f in vars(torch.linalg).items()
    if inspect.isbuiltin(f) and not n.startswith("_") and n.islower()
]


def test_every_name_is_there() -> None:
    """All of `torch.linalg`."""
    assert [n for n in NAMES if not hasattr(ut.linalg, n)] == []


@pytest.mark.parametrize("name", NAMES)
def test_arguments_have_torchs_names(name: str) -> None:
    """As the first line of torch's docstring has them, but for `out`."""
    line = (getattr(torch.linalg, name).__doc__ or "").strip().partition("\n")[0]
    inner = re.sub(r"\([^()]*\)", "", line[line.index("(") + 1 : line.rindex(")")])
    theirs = [
        word.split("=")[0].strip(" *").removeprefix("bool ")
        for word in inner.partition(" ->")[0].split(",")
    ]
    ours = list(inspect.signature(getattr(ut.linalg, name)).parameters)
    assert [w for w in theirs if w and w not in ("out", "input", *ours)] == []


def test_fields_of_results() -> None:
    """Named tuples with torch's names."""
    a = np.eye(3)
    for name in UNIQUE + ["eig", "svd", "ldl_factor"]:
        theirs = getattr(torch.linalg, name)(torch.from_numpy(a))
        if isinstance(theirs, tuple):
            ours = getattr(ut.linalg, name)(wrap(a))
            assert all(getattr(theirs, field) is not None for field in ours._fields)
            assert len(ours) == len(theirs)
