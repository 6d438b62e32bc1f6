"""Sparse tensors: positions and values, products with gradients, sums and softmax."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import undertow as ut

rng = np.random.default_rng(3)


def matrix(rows: int, columns: int, filled: float = 0.4) -> Any:
    """A dense matrix, most of it zero."""
    return rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < filled)


A, B = matrix(5, 7), matrix(7, 4)
DENSE = rng.standard_normal((7, 3))
LAYOUTS = [ut.sparse_coo, ut.sparse_csr, ut.sparse_csc]


def sparse(host: Any, layout: Any = ut.sparse_coo) -> Any:
    return ut.tensor(host).to_sparse(layout=layout)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_there_and_back(layout: Any, device: str) -> None:
    """Dense to sparse to dense, in either layout."""
    x = ut.tensor(A, device=device)
    s = x.to_sparse(layout=layout)
    assert (s.layout, s.shape, s.dtype, s.device) == (layout, x.shape, x.dtype, x.device)
    assert s._nnz() == np.count_nonzero(A)
    others = (s.to_sparse_csr(), s.to_sparse_csc(), s.t().t(), s.transpose(0, 1).transpose(1, 0))
    for back in (s, s.to_sparse_coo(), *others, s.to_sparse().coalesce(), s.clone()):
        assert back.to_dense().tolist() == A.tolist()
    assert (s.is_sparse, s.is_sparse_csr) == (layout is ut.sparse_coo, layout is ut.sparse_csr)
    assert not x.is_sparse
    assert x.to_sparse(layout=ut.strided) is x


def test_coalesce() -> None:
    """Coordinates in any order, several times, with dense blocks."""
    indices = [[1, 0, 1, 1], [0, 2, 0, 1]]
    values = rng.standard_normal((4, 2))
    s = ut.sparse_coo_tensor(indices, values, (2, 3, 2))
    assert (s.sparse_dim(), s.dense_dim(), s.is_coalesced()) == (2, 1, False)
    wanted = np.zeros((2, 3, 2))
    np.add.at(wanted, tuple(indices), values)
    once = s.coalesce()
    assert once.is_coalesced()
    assert once.coalesce() is once
    assert once.indices().tolist() == [[0, 1, 1], [2, 0, 1]]
    np.testing.assert_allclose(once.to_dense().numpy(), wanted)
    np.testing.assert_allclose(s.to_dense().numpy(), wanted)
    np.testing.assert_allclose(s.transpose(0, 1).to_dense().numpy(), wanted.swapaxes(0, 1))
    with pytest.raises(ut.errors.ArgumentError, match=r"\[values\].*coalesce"):
        s.values()
    blocks = ut.tensor(wanted).to_sparse(1)
    assert (blocks.sparse_dim(), blocks.dense_dim(), blocks._nnz()) == (1, 2, 2)


def test_empty() -> None:
    """Nothing stored, no rows, no columns."""
    s = ut.sparse_coo_tensor(size=(2, 3))
    assert (s @ ut.ones(3, 2)).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert s.coalesce().to_sparse_csr().crow_indices().tolist() == [0, 0, 0]
    assert (ut.zeros(0, 3).to_sparse() @ ut.ones(3, 2)).shape == (0, 2)
    assert (ut.zeros(2, 0).to_sparse_csr() @ ut.ones(0, 2)).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert ut.sparse.softmax(s, 1)._nnz() == 0


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_products(layout: Any, device: str) -> None:
    """Sparse and dense on either side, vectors, and both sparse."""
    s = ut.tensor(A, device=device).to_sparse(layout=layout)
    dense, vector = ut.tensor(DENSE, device=device), ut.tensor(DENSE[:, 0], device=device)
    left = ut.tensor(DENSE[:5].T.copy(), device=device)
    other = ut.tensor(B, device=device).to_sparse(layout=layout)
    for got, wanted in [
        (s @ dense, A @ DENSE),
        (ut.mm(s, dense), A @ DENSE),
        (ut.sparse.mm(s, dense), A @ DENSE),
        (s.mm(dense), A @ DENSE),
        (s @ vector, A @ DENSE[:, 0]),
        (ut.mv(s, vector), A @ DENSE[:, 0]),
        (ut.matmul(left, s), DENSE[:5].T @ A),
        (left @ s, DENSE[:5].T @ A),
        (s @ other, A @ B),
        (ut.sparse.addmm(s @ dense, s, dense, beta=2, alpha=3), 5 * (A @ DENSE)),
        (ut.addmm(s @ dense, s, dense, alpha=3), 4 * (A @ DENSE)),
        (-s * 2 / 4, A / -2),
    ]:
        assert got.device == ut.device(device)
        np.testing.assert_allclose(got.to_dense().cpu().numpy(), wanted, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "function",
    [
        lambda s, d: s @ d,
        lambda s, d: s @ d.cos(),
        lambda s, d: ut.sparse.addmm((s @ d).sin(), s, d * d, alpha=2),
        lambda s, d: d[:5].t() @ s,
        lambda s, d: (s @ (s.to_sparse_coo().t().to_sparse(layout=s.layout))).to_dense(),
        lambda s, d: ut.sparse.softmax(s, 1).to_dense(),
        lambda s, d: ut.sparse.log_softmax(s, 0).to_dense(),
        lambda s, d: ut.sparse.sum(s, 0).to_dense() @ d,
        lambda s, d: ut.sparse.sum(s * 2),
        lambda s, d: ut.sparse.sampled_addmm(
            s.to_sparse_csr(), d[:5], d.t(), beta=0.5, alpha=2.0
        ).values(),
    ],
)
def test_gradients(function: Any, layout: Any) -> None:
    """To the values and to what is dense, first and second order."""
    pattern = sparse(A, layout)
    values = pattern._stored.detach().requires_grad_()
    dense = ut.tensor(DENSE, requires_grad=True)

    def f(values: Any, dense: Any) -> Any:
        return function(pattern._with(values), dense)

    assert ut.autograd.gradcheck(f, (values, dense))
    assert ut.autograd.gradgradcheck(f, (values, dense))


def test_gradients_of_leaves_and_of_dense_sources() -> None:
    """A sparse leaf has a sparse gradient; to_sparse passes it on to the dense tensor."""
    s = ut.sparse_coo_tensor([[0, 1, 1], [2, 0, 0]], [3.0, 4.0, 5.0], (2, 3), requires_grad=True)
    assert s.is_leaf
    assert s.grad is None
    (s @ ut.arange(6.0).reshape(3, 2)).sum().backward()
    assert s.grad.layout is ut.sparse_coo
    assert s.grad._stored.tolist() == [9.0, 1.0]
    s.grad = None
    assert s.grad is None
    x = ut.tensor(A, requires_grad=True)
    (x.to_sparse_csr() @ ut.ones(7, 2, dtype=ut.float64)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2.0 * (A != 0))
    values = ut.tensor([1.0, 2.0], requires_grad=True)
    ut.sparse_coo_tensor([[0, 1]], values, (3,)).to_dense().square().sum().backward()
    assert values.grad.tolist() == [2.0, 4.0]


def test_sums_and_softmax() -> None:
    """Over sparse and dense dimensions."""
    s = sparse(A)
    np.testing.assert_allclose(ut.sparse.sum(s).item(), A.sum())
    np.testing.assert_allclose(ut.sparse.sum(s, 1).to_dense().numpy(), A.sum(1))
    np.testing.assert_allclose(ut.sparse.sum(s, (0, 1)).item(), A.sum())
    blocks = ut.tensor(A).to_sparse(1)
    assert isinstance(ut.sparse.sum(blocks, 0), ut.Tensor)
    np.testing.assert_allclose(ut.sparse.sum(blocks, 1).to_dense().numpy(), A.sum(1))
    masked = np.where(A == 0, -np.inf, A)
    for dim in (0, 1):
        e = np.exp(masked - masked.max(dim, keepdims=True))
        wanted = e / e.sum(dim, keepdims=True)
        np.testing.assert_allclose(ut.sparse.softmax(s, dim).to_dense().numpy(), wanted)
        got = ut.sparse.log_softmax(s.to_sparse_csr(), dim)
        assert got.layout is ut.sparse_csr
        np.testing.assert_allclose(got.to_dense().exp().numpy()[A != 0], wanted[A != 0])
    got = ut.sparse.softmax(blocks, 1).to_dense().numpy()
    np.testing.assert_allclose(got.sum(1), np.ones(5))


def test_sums_of_sparse_tensors() -> None:
    """Of one another, and with dense ones."""
    s, other = sparse(A), sparse(matrix(5, 7))
    np.testing.assert_allclose((s + other).to_dense().numpy(), A + other.to_dense().numpy())
    np.testing.assert_allclose((s - s).to_dense().numpy(), 0 * A)
    dense = ut.ones(5, 7, dtype=ut.float64)
    np.testing.assert_allclose((s + dense).numpy(), A + 1)
    np.testing.assert_allclose((s - dense).numpy(), A - 1)
    assert s.float().dtype is ut.float32


@pytest.mark.parametrize("layout", LAYOUTS)
def test_element_by_element(layout: Any) -> None:
    """Functions that keep zeros, products and sums, in the layout that they had."""
    s, other = sparse(A, layout), sparse(matrix(5, 7), ut.sparse_coo)
    host = other.to_dense().numpy()
    row = ut.tensor(DENSE[:, 0])
    for got, wanted in [
        (ut.sin(s), np.sin(A)),
        (s.abs().sqrt(), np.sqrt(abs(A))),
        (s * other, A * host),
        (other * s, A * host),
        (s * row, A * DENSE[:, 0]),
        (row * s, A * DENSE[:, 0]),
        (ut.mul(s, ut.tensor(2.0)), 2 * A),
        (s + other, A + host),
        (s.sub(other, alpha=2), A - 2 * host),
        (ut.relu(s), np.maximum(A, 0)),
    ]:
        assert got.layout is layout or got.layout is ut.sparse_coo
        np.testing.assert_allclose(got.to_dense().numpy(), wanted, atol=1e-15)
    dense = ut.tensor(host)
    for got, wanted in [
        (dense + s, host + A),
        (ut.add(dense, s, alpha=3), host + 3 * A),
        (dense - s, host - A),
        (s - dense, A - host),
        (dense.sparse_mask(s).to_dense(), host * (A != 0)),
        (s.sum(1).to_dense(), A.sum(1)),
    ]:
        assert isinstance(got, ut.Tensor)
        np.testing.assert_allclose(got.numpy(), wanted, atol=1e-15)
    assert (s * sparse(np.zeros_like(A)))._nnz() == 0
    twice = ut.sparse_coo_tensor([[0, 0], [1, 1]], [3.0, -5.0], (2, 2))
    assert ut.abs(twice).to_dense().tolist() == [[0.0, 2.0], [0.0, 0.0]]  # of the sum


def test_old_names_of_products() -> None:
    """smm and its kin: the results are sparse."""
    s, d = sparse(A), ut.tensor(DENSE)
    wanted = A @ DENSE
    for product in (ut.smm, ut.hspmm, ut.hsmm):
        found = product(s, d)
        assert found.layout is ut.sparse_coo
        np.testing.assert_allclose(found.to_dense().numpy(), wanted)
    assert ut.hspmm(s, d).dense_dim() == 1
    assert ut.spmm(ut.eye(2), 2 * ut.eye(2)).tolist() == [[2, 0], [0, 2]]  # both may be dense
    for product in (ut.spmm, ut.dsmm):
        np.testing.assert_allclose(product(s, d).numpy(), wanted)
    start = ut.tensor(wanted).to_sparse()
    for function in (ut.sspaddmm, ut.saddmm):
        found = function(start, s, d, beta=2, alpha=3).to_dense().numpy()
        np.testing.assert_allclose(found, 5 * wanted)


def test_spdiags() -> None:
    """Diagonals above, below and outside, with a gradient."""
    values = ut.tensor(DENSE.T, requires_grad=True)  # (3, 7)
    for shape in ((5, 7), (7, 5), (4, 9)):
        found = ut.sparse.spdiags(values, ut.tensor([-2, 0, 3]), shape, ut.sparse_csr)
        assert found.layout is ut.sparse_csr
        wanted = np.zeros(shape)
        for line, offset in zip(DENSE.T, (-2, 0, 3), strict=True):
            for j in range(7):
                if 0 <= j - offset < shape[0] and j < shape[1]:
                    wanted[j - offset, j] = line[j]
        np.testing.assert_array_equal(found.to_dense().detach().numpy(), wanted)
    found.to_dense().sum().backward()
    assert values.grad.sum().item() == found._nnz()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("fast", [True, False])
def test_gradcheck_varies_what_is_stored(layout: Any, fast: bool) -> None:
    """A sparse input, a leaf or not, alone or among others; and a wrong rule is found."""
    dense = ut.tensor([[1.0, 0.0], [2.0, 3.0]], dtype=ut.float64)
    s = dense.to_sparse(layout=layout, blocksize=None).requires_grad_()
    w = ut.rand(2, 2, dtype=ut.float64, requires_grad=True)
    gradcheck = ut.autograd.gradcheck
    assert gradcheck(lambda s: ut.sum(s), s, fast_mode=fast)
    assert gradcheck(lambda s, w: (s.to_dense() ** 2) @ w, (s, w), fast_mode=fast)
    assert gradcheck(
        lambda s: s.to_dense() ** 2, dense.requires_grad_().to_sparse(layout=layout), fast_mode=fast
    )
    with pytest.raises(RuntimeError, match="by finite differences"):
        gradcheck(lambda s: s.to_dense() * s.to_dense().detach(), s, fast_mode=fast)
    with pytest.raises(RuntimeError, match="blocksize"):
        dense.to_sparse(layout=layout, blocksize=(2, 2))


def test_sparse_gradcheck() -> None:
    """Of the stored values; a wrong rule is found."""
    check = ut.sparse.as_sparse_gradcheck(ut.autograd.gradcheck)
    s = sparse(A, ut.sparse_csc).requires_grad_()
    d = ut.tensor(DENSE, requires_grad=True)
    assert check(lambda s, d: s @ d, (s, d), masked=True)
    assert check(lambda s: s * s, s)
    with pytest.raises(ut.errors.GradientError):
        check(lambda s: s.to_dense() + s.detach().to_dense() ** 2, (s,))


def test_invariants() -> None:
    """The switch is kept, in every form that torch has."""
    switch = ut.sparse.check_sparse_tensor_invariants
    assert not switch.is_enabled()
    with switch():
        assert switch.is_enabled()
        with switch(False):
            assert not switch.is_enabled()
        switch(False)(lambda: None)()
        assert switch.is_enabled()
    switch.enable()
    assert switch.is_enabled()
    switch.disable()
    assert not switch.is_enabled()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_complex_numbers(layout: Any) -> None:
    """Products and gradients of complex values."""
    host = A * (1 - 2j) + 1j * A**2
    s = sparse(host, layout)
    dense = ut.tensor(DENSE + 1j * DENSE[::-1], requires_grad=True)
    other = DENSE + 1j * DENSE[::-1]
    np.testing.assert_allclose((s @ dense).detach().numpy(), host @ other)
    np.testing.assert_allclose(s.conj().to_dense().numpy(), host.conj())
    np.testing.assert_allclose((s * 1j).to_dense().numpy(), host * 1j)
    values = s._stored.detach().requires_grad_()

    def f(values: Any, dense: Any) -> Any:
        return s._with(values) @ dense

    assert ut.autograd.gradcheck(f, (values, dense))
    assert ut.autograd.gradgradcheck(f, (values, dense))


@pytest.mark.parametrize(
    "call, word",
    [
        (lambda: ut.sparse_coo_tensor([[0, 3]], [1.0, 2.0], (3,)), "index 3"),
        (lambda: ut.sparse_coo_tensor([[0, 1]], [1.0], (3,)), "as many values"),
        (lambda: ut.sparse_coo_tensor([[0.5]], [1.0], (3,)), "integers"),
        (lambda: ut.sparse_coo_tensor([0], [1.0], (3,)), "2 dimensions"),
        (lambda: ut.sparse_coo_tensor([[0]], [1.0], (3, 3)), "does not fit"),
        (lambda: ut.sparse_coo_tensor(), "size"),
        (lambda: ut.sparse_csr_tensor([0, 2, 1], [0, 1], [1.0, 2.0]), "rise"),
        (lambda: ut.sparse_csr_tensor([0, 1], [5], [1.0], (1, 3)), "column 5"),
        (lambda: ut.sparse_csr_tensor([0, 1], [0], [1.0], (2, 3)), "3 crow_indices"),
        (lambda: ut.sparse_csr_tensor([0, 1], [0], [1.0, 2.0], (1, 3)), "as many values"),
        (lambda: sparse(A) @ ut.ones(3, 2), "do not fit"),
        (lambda: sparse(A) @ ut.ones(7, 2), "one dtype"),
        (lambda: sparse(A) @ 3, "expects tensors"),
        (lambda: sparse(A) * sparse(B), "broadcast"),
        (lambda: ut.ones(5, 7) / sparse(A), "divides nothing"),
        (lambda: ut.cos(sparse(A)), r"\[cos\].*SparseCOO"),
        (lambda: ut.sparse_csc_tensor([0, 1], [5], [1.0], (3, 1)), "row 5"),
        (lambda: ut.sparse_compressed_tensor([0], [], [], layout=ut.strided), "sparse_csc"),
        (lambda: ut.ones(2, 2).to_sparse_csc(1), "dense dimensions"),
        (lambda: ut.ones(2, 2).sparse_mask(sparse(A)), "sparse_mask"),
        (lambda: ut.sparse.spdiags(ut.ones(2, 3), ut.tensor([0]), (3, 3)), "each offset"),
        (lambda: ut.sparse.spdiags(ut.ones(2, 3), ut.tensor([1, 1]), (3, 3)), "differ"),
        (lambda: ut.sparse.spdiags(ut.ones(3), ut.tensor([1]), (3, 3), ut.strided), "layout"),
        (lambda: sparse(A) / sparse(A), "divided by numbers"),
        (lambda: sparse(A, ut.sparse_csr).exp(), r"\[exp\].*to_dense"),
        (lambda: sparse(A) + 1, "added"),
        (lambda: sparse(A) + sparse(B), "broadcast"),
        (lambda: ut.ones(2, 2).to_sparse(3), "1 to 2"),
        (lambda: ut.ones(2, 2).to_sparse(layout=3), "sparse_csr"),
        (lambda: ut.ones(2, 2).to_sparse_csr(1), "dense dimensions"),
        (lambda: ut.ones(2).to_sparse_csr(), "are sparse"),
        (lambda: ut.ones(2, 2, 2).to_sparse(2) @ ut.ones(2, 2), "sizes"),
        (lambda: ut.sparse.sum(ut.ones(2)), "sparse tensor"),
        (lambda: ut.sparse.softmax(ut.ones(2, 2).long().to_sparse(), 1), "floating"),
        (lambda: ut.sparse.mm(sparse(A), ut.ones(7, 2), "prod"), "prod"),
        (lambda: ut.sparse.mm(ut.ones(5, 7), sparse(A).t(), "mean"), "a sparse matrix and a dense"),
        (lambda: ut.sparse.sampled_addmm(sparse(A), ut.ones(5, 2), ut.ones(2, 7)), "sparse_csr"),
        (
            lambda: ut.sparse.sampled_addmm(sparse(A, ut.sparse_csr), ut.ones(2, 2), ut.ones(2, 2)),
            "shape of input",
        ),
        (lambda: ut.ones(2, 2, 1).to_sparse(2).transpose(0, 2), "sparse dimensions"),
        (lambda: sparse(A).to("reference"), "stays on"),
    ],
)
def test_errors(call: Any, word: str) -> None:
    """What cannot be done is said, and what to do instead."""
    with pytest.raises(ut.errors.UndertowError, match=word):
        call()


def test_unknown_attributes_are_attribute_errors() -> None:
    """So that hasattr answers."""
    assert not hasattr(sparse(A), "no_such_thing")
    assert not hasattr(sparse(A), "_array")


def test_sparse_buffers_of_modules() -> None:
    """A sparse tensor may be a buffer: it is cast, copied, and stands in the state."""

    class Graph(ut.nn.Module):
        def __init__(self, size: float) -> None:
            super().__init__()
            self.register_buffer("edges", (size * ut.eye(2)).to_sparse())
            self.register_buffer("mask", ut.eye(2).to_sparse(), persistent=False)

    net = Graph(2).double()
    assert net.edges.dtype is net.mask.dtype is ut.float64
    assert list(net.state_dict()) == ["edges"]
    other = Graph(3).double()
    net.load_state_dict(other.state_dict())
    assert net.edges.to_dense().tolist() == [[3, 0], [0, 3]]
    assert net.edges.values() is not other.edges.values()
    copied = copy.deepcopy(net)
    copied.edges = ut.zeros(2, 2).to_sparse()
    assert net.edges.to_dense().sum().item() == 6


def test_where_needs_a_dense_condition() -> None:
    with pytest.raises(NotImplementedError, match="where"):
        ut.where(ut.eye(2).to_sparse(), 1.0, 0.0)


MOVED: dict[str, Any] = {
    "permute": (lambda x: x.permute(1, 0), lambda a: a.T),
    "T": (lambda x: x.T, lambda a: a.T),
    "unsqueeze": (lambda x: x.unsqueeze(1), lambda a: a[:, None]),
    "behind": (lambda x: x.unsqueeze(-1), lambda a: a[..., None]),
    "item": (lambda x: x[-2], lambda a: a[-2]),
    "number": (lambda x: x[1, 3], lambda a: a[1, 3]),
    "column": (lambda x: x.select(1, 2), lambda a: a[:, 2]),
    "index_select": (lambda x: ut.index_select(x, 0, ut.tensor([3, 1, 3])), lambda a: a[[3, 1, 3]]),
    "columns": (lambda x: x.index_select(-1, ut.tensor([6, 0])), lambda a: a[:, [6, 0]]),
    "cat": (lambda x: ut.cat([x, x * 2]), lambda a: np.concatenate([a, a * 2])),
    "beside": (lambda x: ut.cat([x, x], 1), lambda a: np.concatenate([a, a], 1)),
    "stack": (lambda x: ut.stack([x, x], -1), lambda a: np.stack([a, a], -1)),
    "pow": (lambda x: x**2, lambda a: a**2),
    "bool": (lambda x: x.bool().to(ut.float64), lambda a: (a != 0).astype(float)),
}


@pytest.mark.parametrize("name", MOVED)
def test_other_shapes(name: str) -> None:
    """Values, and gradients of the elements that are stored."""
    ours, numpys = MOVED[name]
    values = sparse(A).values().clone().requires_grad_()
    s = ut.sparse_coo_tensor(sparse(A).indices(), values, A.shape, is_coalesced=True)
    found = ours(s)
    found = found if isinstance(found, ut.Tensor) else found.to_dense()
    np.testing.assert_array_equal(found.detach().numpy(), numpys(A))
    if name == "bool":
        return
    dense = ut.tensor(A).requires_grad_()
    parts = ours(dense.to_sparse())
    parts = parts if isinstance(parts, ut.Tensor) else parts.to_dense()
    (gradient,) = ut.autograd.grad((found * found).sum(), values)
    (expected,) = ut.autograd.grad((parts * parts).sum(), dense)
    np.testing.assert_allclose(gradient.numpy(), expected.numpy()[A != 0])


def test_blocks_in_other_shapes() -> None:
    """Dense dimensions move among themselves; their positions stay."""
    host = rng.standard_normal((3, 4, 2, 5)) * (rng.random((3, 4, 1, 1)) < 0.5)
    s = ut.tensor(host).to_sparse(2)
    for found, expected in (
        (s.permute(1, 0, 3, 2), host.transpose(1, 0, 3, 2)),
        (s.select(-1, 2), host[..., 2]),
        (s.index_select(2, ut.tensor([1, 1])), host[:, :, [1, 1]]),
        (ut.cat([s, s], 3), np.concatenate([host, host], 3)),
        (s[1, 2], host[1, 2]),
    ):
        np.testing.assert_array_equal(found.to_dense().numpy(), expected)
    with pytest.raises(ut.errors.DimError, match=r"\[permute\].*sparse ones first"):
        s.permute(2, 0, 1, 3)


def test_small_questions() -> None:
    """Those that programs ask of any tensor."""
    s, twice = sparse(A), ut.sparse_coo_tensor([[0, 0]], [3.0, 1.0], (2,))
    assert len(s) == 5
    assert s.is_same_size(ut.tensor(A))
    assert (twice._nnz(), twice._values().tolist(), twice.norm().item()) == (2, [3.0, 1.0], 4.0)
    assert (twice**2).to_dense().tolist() == [16.0, 0.0]
    np.testing.assert_allclose(ut.norm(s, 1).item(), np.abs(A).sum())
    assert s.any().item()
    assert not ut.zeros_like(s).any().item()
    assert [ut.zeros_like(sparse(A, layout)).layout for layout in LAYOUTS] == LAYOUTS
    assert [row.to_dense().tolist() for row in s] == A.tolist()
    for wrong, match in (
        (lambda: s[0:2], "indexed by integers"),
        (lambda: s[7], "index 7 is out of range"),
        (lambda: s.index_select(0, ut.tensor([9])), "out of range for dim 0 of size 5"),
        (lambda: ut.cat([s, ut.tensor(A)]), r"\[cat\].*to_sparse"),
        (lambda: ut.cat([s, sparse(B)]), r"\[cat\] shapes \(5, 7\) and \(7, 4\)"),
        (lambda: s**0, "positive numbers"),
        (lambda: bool(s), "no truth value"),
    ):
        with pytest.raises(ut.errors.UndertowError, match=match):
            wrong()


@pytest.mark.parametrize("dtype", [ut.int32, ut.int8, ut.bool, ut.float32])
def test_one_index_keeps_the_dtype(dtype):
    s = ut.sparse_coo_tensor(ut.tensor([[0, 2, 0]]), ut.ones(3, dtype=dtype), (3,))
    assert s[0].dtype == dtype
    assert s[0].item() == (1 if dtype == ut.bool else 2)


def test_a_dimension_exchanged_with_itself_stays_uncoalesced():
    places = ut.tensor([[1, 0, 1], [0, 1, 0]])
    s = ut.sparse_coo_tensor(places, ut.tensor([1.0, 2.0, -3.0]), (2, 2)).transpose(0, 0)
    assert not s.is_coalesced()
    assert s.relu().to_dense().tolist() == [[0.0, 2.0], [0.0, 0.0]]
