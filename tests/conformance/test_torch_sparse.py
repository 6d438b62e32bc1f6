"""Sparse tensors beside torch's: text, values and gradients."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance

rng = np.random.default_rng(1)
A = rng.standard_normal((5, 7)) * (rng.random((5, 7)) < 0.4)
B = rng.standard_normal((7, 3))


def both(make: Any) -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that torch's are in beta
        return make(ut), make(torch)


@pytest.mark.parametrize(
    "make",
    [
        lambda lib: lib.tensor(A).to_sparse(),
        lambda lib: lib.tensor(A).float().to_sparse_csr(),
        lambda lib: lib.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3), requires_grad=True),
        lambda lib: lib.sparse_coo_tensor([[1, 1, 0]], [[1, 2], [3, 4], [5, 6]], (2, 2)),
        lambda lib: lib.sparse_coo_tensor([[1, 1, 0]], [1.0, 2.0, 3.0]).coalesce(),
        lambda lib: lib.sparse_coo_tensor(size=(2, 3)),
        lambda lib: lib.sparse_csr_tensor([0, 2, 4], [0, 1, 0, 1], [1, 2, 3, 4]),
        lambda lib: lib.ones(2, 2, 2).to_sparse(1),
        lambda lib: lib.tensor([1j, 0]).to_sparse(),
    ],
)
def test_text(make: Any) -> None:
    """They are printed alike."""
    ours, theirs = both(make)
    assert repr(ours) == repr(theirs).replace("torch.", "undertow.")


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_reduced_products(reduce: str) -> None:
    """Rows of products are added up, averaged, or their extreme is taken; empty ones are zero."""
    matrix = np.where(np.arange(35).reshape(5, 7) % 3 == 0, np.arange(35.0).reshape(5, 7) - 17, 0)
    matrix[2] = 0

    def run(lib: Any) -> list[Any]:
        s = lib.tensor(matrix).to_sparse_csr().requires_grad_()
        d = lib.tensor(np.cos(np.arange(21.0)).reshape(7, 3), requires_grad=True)
        out = lib.sparse.mm(s, d, reduce)
        (out * out).sum().backward()
        return [t.detach().numpy() for t in (out, s.grad.to_dense(), d.grad)]

    for ours, theirs in zip(*both(run), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        lambda lib, s, d: lib.sparse.mm(s, d),
        lambda lib, s, d: lib.sparse.addmm(d[:5], s, d, beta=2, alpha=3),
        lambda lib, s, d: lib.sparse.softmax(s, 1),
        lambda lib, s, d: lib.sparse.log_softmax(s, 0),
        lambda lib, s, d: lib.sparse.sum(s, 0),
        lambda lib, s, d: lib.sparse.sum(s),
        lambda lib, s, d: s.coalesce(),
        lambda lib, s, d: s * 3,
        lambda lib, s, d: s.t(),
    ],
)
def test_values_and_gradients(function: Any) -> None:
    """Of the sparse operand at its positions, and of the dense one."""

    def run(lib: Any) -> list[Any]:
        s = lib.tensor(A).to_sparse().requires_grad_()
        d = lib.tensor(B, requires_grad=True)
        out = function(lib, s, d)
        dense = out.to_dense() if out.layout is not lib.strided else out
        (dense * dense).sum().backward()
        grads = [s.grad.to_dense(), d.grad if d.grad is not None else lib.zeros(1)]
        return [t.detach().numpy() for t in (dense, *grads)]

    for ours, theirs in zip(*both(run), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(
    "function",
    [
        lambda lib, x, d: x.unsqueeze(d),
        lambda lib, x, d: x.select(d, 1),
        lambda lib, x, d: lib.select(x, d, -1),
        lambda lib, x, d: lib.index_select(x, d, lib.tensor([1, 0, 1])),
        lambda lib, x, d: lib.cat([x, x * 2], d),
        lambda lib, x, d: lib.stack([x, x], d),
        lambda lib, x, d: x.permute(d, (d + 1) % 3, (d + 2) % 3),
        lambda lib, x, d: x[d],
        lambda lib, x, d: x ** (d + 1),
        lambda lib, x, d: lib.zeros_like(x),
    ],
)
def test_other_shapes(function: Any, dims: int) -> None:
    """The same elements are stored, in as many sparse dimensions, or it is an error in both."""
    host = rng.standard_normal((3, 4, 2)) * (rng.random((3, 4, 1)) < 0.5)

    def run(lib: Any) -> list[Any]:
        x = lib.tensor(host).to_sparse(dims)
        found: list[Any] = []
        for d in range(3):
            try:
                y = function(lib, x, d)
            except RuntimeError:
                found.append("error")
                continue
            is_sparse = y.layout is lib.sparse_coo
            found.append((y.sparse_dim(), y._nnz()) if is_sparse else None)
            found.append((y.to_dense() if is_sparse else y).numpy())
        return found

    for ours, theirs in zip(*both(run), strict=True):
        np.testing.assert_equal(ours, theirs)


def test_sampled_addmm() -> None:
    """At the positions of the input."""

    def run(lib: Any) -> Any:
        s, d = lib.tensor(A).to_sparse_csr(), lib.tensor(B)
        return lib.sparse.sampled_addmm(s, d[:5], d.t(), beta=0.5, alpha=2.0).values().numpy()

    ours, theirs = both(run)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_sampled_addmm_of_a_batch_into_another() -> None:
    def run(lib: Any) -> Any:
        a, b = lib.tensor(A), lib.tensor(B)
        kept = a != 0
        s = lib.stack([a, kept * 2.0]).to_sparse_csr()
        out = lib.stack([lib.eye(5, 7, dtype=lib.float64)] * 2).to_sparse_csr()
        left, right = lib.stack([b[:5], b[2:]]), lib.stack([b.t(), b.t() * 2])
        found = lib.sparse.sampled_addmm(s, left, right, beta=0.5, alpha=2.0, out=out)
        assert found is out
        return out.to_dense().numpy()

    ours, theirs = both(run)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_a_backward_begins_at_a_sparse_result(layout: str, dense: bool) -> None:
    """With a gradient at the positions of the result, or a dense one."""

    def run(lib: Any) -> Any:
        x = lib.tensor(A, requires_grad=True)
        y = getattr(x * x, layout)()
        seed = lib.tensor(A != 0).double() * 3.0
        given = seed * lib.tensor(A != 0) if dense else getattr(seed, layout)()
        (first,) = lib.autograd.grad(y, x, given, retain_graph=True)
        lib.autograd.backward([y], [given])
        return [first.numpy(), x.grad.numpy()]

    def expected() -> Any:
        return [2 * A * 3.0 * (A != 0)] * 2

    try:
        theirs = run(torch)
    except RuntimeError:  # torch wants the layout of the result, and some it does not differentiate
        theirs = expected()
    for a, b in zip(run(ut), theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize(
    "call",
    [
        lambda lib, a: lib.select_copy(a.to_sparse_csr(), 0, 1),
        lambda lib, a: lib.select_copy(lib.stack([a, a]).to_sparse_csr(), 0, 1),
    ],
)
def test_copies_of_views(call: Any) -> None:
    def run(lib: Any) -> Any:
        found = call(lib, lib.tensor(A))
        return str(found.layout).rpartition(".")[2], found.to_dense().tolist()

    ours, theirs = both(run)
    assert ours == theirs


def test_index_select_from_the_end() -> None:
    def run(lib: Any) -> Any:
        return (
            lib.tensor(A).to_sparse().index_select(1, lib.tensor([-1, 0, -7])).to_dense().tolist()
        )

    ours, theirs = both(run)
    assert ours == theirs
    with pytest.raises(IndexError):
        ut.tensor(A).to_sparse().index_select(1, ut.tensor([-8]))


def test_copies_of_views_by_coordinates() -> None:
    """torch has none."""
    s = ut.tensor(A).to_sparse()
    assert ut.select_copy(s, 1, 2).to_dense().equal(ut.tensor(A)[:, 2])
    assert ut.transpose_copy(s, 0, 1).to_dense().equal(ut.tensor(A).T)


def test_select_of_a_dense_dimension_keeps_the_layout() -> None:
    def run(lib: Any) -> Any:
        x = lib.arange(12.0).reshape(2, 3, 2).to_sparse_csr(dense_dim=1).select(2, 1)
        return str(x.layout).rpartition(".")[2], x.to_dense().tolist()

    ours, theirs = both(run)
    assert ours == theirs


@pytest.mark.parametrize(
    "name, options",
    [
        ("SGD", {"lr": 0.1}),
        ("Adagrad", {"lr": 0.1, "lr_decay": 0.2}),
        ("SparseAdam", {"lr": 0.1}),
        ("SparseAdam", {"lr": 0.1, "betas": (0.5, 0.7), "eps": 1e-3, "maximize": True}),
    ],
)
def test_optimisers(name: str, options: Any) -> None:
    """Tables after three steps with sparse gradients."""

    def run(lib: Any) -> Any:
        table = lib.tensor(A, requires_grad=True)
        optimizer = getattr(lib.optim, name)([table], **options)
        for rows in ([1, 4, 1], [3, 4], [0]):
            optimizer.zero_grad()
            at = lib.tensor(rows)
            lib.nn.functional.embedding(at, table, sparse=True).sin().sum().backward()
            optimizer.step()
        return table.detach().numpy()

    ours, theirs = both(run)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)
