"""Layouts, in-place arithmetic and files of sparse tensors beside torch's."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.conformance,
    pytest.mark.filterwarnings("ignore:Sparse"),  # that torch's are in beta
]

COMPRESSED = ["sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]
LAYOUTS = ["sparse_coo", *COMPRESSED]
rng = np.random.default_rng(7)
A = rng.standard_normal((4, 6)) * (rng.random((4, 6)) < 0.4)
C = rng.standard_normal((4, 6)) * (rng.random((4, 6)) < 0.4)
BATCH = np.stack([A, A[:, ::-1]])  # equally many elements in each
D = rng.standard_normal((6, 3))


def made(lib: Any, host: Any, layout: str, **options: Any) -> Any:
    if layout.startswith("sparse_bs"):
        options["blocksize"] = (2, 3)
    return lib.tensor(host.copy()).to_sparse(layout=getattr(lib, layout), **options)


def parts(s: Any) -> list[Any]:
    """All that a tensor stores."""
    layout = str(s.layout).rpartition(".")[2]
    if layout == "strided":
        return [s.detach().numpy()]
    if layout == "sparse_coo":
        s = s.coalesce()
        found = [s.indices(), s.values()]
    elif layout in ("sparse_csr", "sparse_bsr"):
        found = [s.crow_indices(), s.col_indices(), s.values()]
    else:
        found = [s.ccol_indices(), s.row_indices(), s.values()]
    return [t.detach().resolve_conj().numpy() for t in found]


def alike(make: Any) -> None:
    """Both libraries store the same, in tensors of one shape and layout."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = make(ut), make(torch)
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert repr(ours.layout).rpartition(".")[2] == repr(theirs.layout).rpartition(".")[2]
    for a, b in zip(parts(ours), parts(theirs), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, atol=1e-12)


@pytest.mark.parametrize("source", LAYOUTS)
@pytest.mark.parametrize("target", LAYOUTS)
def test_conversions(source: str, target: str) -> None:
    """From each layout to each other one."""

    def run(lib: Any) -> Any:
        options = {"blocksize": (4, 2)} if target.startswith("sparse_bs") else {}
        return made(lib, A, source).to_sparse(layout=getattr(lib, target), **options)

    if {source, target} in ({"sparse_bsr", "sparse_bsc"}, {"sparse_bsr"}, {"sparse_bsc"}):
        return  # torch does not change the size of blocks
    if source.startswith("sparse_bs") and target in ("sparse_csr", "sparse_csc"):
        s = made(ut, A, source)  # not there in torch
        np.testing.assert_array_equal(s.to_sparse(layout=getattr(ut, target)).to_dense(), A)
        return
    if (source, target[:9]) == ("sparse_csc", "sparse_bs"):
        s = made(ut, A, source)
        found = s.to_sparse(layout=getattr(ut, target), blocksize=(4, 2))
        np.testing.assert_array_equal(found.to_dense(), A)
        return
    alike(run)


@pytest.mark.parametrize("layout", COMPRESSED)
def test_batches_and_dense_dimensions(layout: str) -> None:
    """A batch of matrices, matrices of vectors, and transposed ones."""
    alike(lambda lib: made(lib, BATCH, layout))
    alike(lambda lib: made(lib, BATCH, layout).to_dense())
    alike(lambda lib: made(lib, BATCH, layout).transpose(-2, -1))
    alike(lambda lib: made(lib, BATCH, layout)[1])
    inner = np.stack([A, 2 * A], -1)
    alike(lambda lib: made(lib, inner, layout, dense_dim=1))
    alike(lambda lib: made(lib, inner, layout, dense_dim=1).to_dense())
    s = made(ut, BATCH, layout)
    for back in (s, s.to_sparse_coo(), s.transpose(1, 2).transpose(1, 2), s.to_sparse_csc()):
        np.testing.assert_array_equal(back.to_dense().numpy(), BATCH)


@pytest.mark.parametrize("layout", COMPRESSED)
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_indices_keep_their_dtype(layout: str, index: str) -> None:
    """Positions given as int32 are int32."""

    def run(lib: Any) -> Any:
        block = [[[1.0, 2.0]], [[3.0, 4.0]]] if layout.startswith("sparse_bs") else [1.0, 2.0]
        kind = getattr(lib, index)
        return lib.sparse_compressed_tensor(
            lib.tensor([0, 1, 2], dtype=kind),
            lib.tensor([1, 0], dtype=kind),
            lib.tensor(block),
            layout=getattr(lib, layout),
        )

    alike(run)


def test_gradient_of_repeated_coordinates() -> None:
    """An element that is stored in two parts has one gradient."""

    def run(lib: Any) -> Any:
        s = lib.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [1.0, 2.0, 3.0], (2, 2))
        s.requires_grad_()
        (s.to_dense() * lib.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
        return s.grad

    alike(run)


CHANGES = {
    "add_": lambda s, t, lib: s.add_(t, alpha=3),
    "sub_": lambda s, t, lib: s.sub_(t),
    "mul_": lambda s, t, lib: s.mul_(t),
    "mul_ number": lambda s, t, lib: s.mul_(2.5),
    "div_": lambda s, t, lib: s.div_(2.5),
    "+=": lambda s, t, lib: s.__iadd__(t),
    "*=": lambda s, t, lib: s.__imul__(2),
    "copy_": lambda s, t, lib: s.copy_(t),
    "zero_": lambda s, t, lib: s.zero_(),
    "abs_": lambda s, t, lib: s.coalesce().abs_(),
    "transpose_": lambda s, t, lib: s.transpose_(0, 1),
    "out": lambda s, t, lib: lib.add(s, t, out=s),
    "unary out": lambda s, t, lib: lib.sin(t.coalesce(), out=s),
    "true_divide": lambda s, t, lib: lib.true_divide(s, 2),
    "floor_divide": lambda s, t, lib: lib.div(s, 2, rounding_mode="floor"),
    "narrow_copy": lambda s, t, lib: s.narrow_copy(1, 2, 3),
    "zeros_like": lambda s, t, lib: lib.zeros_like(s, dtype=lib.float32),
    "zeros_like dense": lambda s, t, lib: lib.zeros_like(s, layout=lib.strided),
    "zeros": lambda s, t, lib: lib.zeros(2, 3, layout=lib.sparse_coo),
    "sum keepdim": lambda s, t, lib: lib.sum(s, 0, keepdim=True),
    "sparse mask": lambda s, t, lib: s.coalesce().sparse_mask(t.coalesce()),
    "dense mul_": lambda s, t, lib: lib.ones(4, 6, dtype=lib.float64).mul_(s),
    "dense add_": lambda s, t, lib: lib.ones(4, 6, dtype=lib.float64).add_(s, alpha=2),
}


@pytest.mark.parametrize("name", CHANGES)
def test_arithmetic(name: str) -> None:
    """In place, into `out`, and with dense tensors."""
    change = CHANGES[name]
    alike(lambda lib: change(made(lib, A, "sparse_coo"), made(lib, C, "sparse_coo"), lib))


def test_changes_of_what_is_shared() -> None:
    """A gradient is changed in place; a tensor by coordinates apart from those that it came of."""

    def run(lib: Any) -> Any:
        s = made(lib, A, "sparse_coo").requires_grad_()
        (s.to_dense() * 3).sum().backward()
        s.grad.mul_(2)
        s.detach().mul_(5)
        return s.detach() + s.grad

    alike(run)
    s = made(ut, A, "sparse_coo").requires_grad_()
    s.to_dense().sum().backward()
    s.grad.zero_()
    assert not s.grad.to_dense().any()
    with pytest.raises(ut.errors.UnsupportedError, match="keeps its positions"):
        s.grad.add_(made(ut, C, "sparse_coo"))
    with pytest.raises(ut.errors.ArgumentError, match="positions"):
        s.grad = made(ut, C, "sparse_coo")
    with pytest.raises(RuntimeError, match="leaf"):
        s.mul_(2)


def test_batches_of_products() -> None:
    """bmm by coordinates, with gradients of both."""
    host = np.stack([A, C])
    dense = np.stack([D, D[::-1]])

    def run(lib: Any) -> list[Any]:
        s = lib.tensor(host).to_sparse().requires_grad_()
        d = lib.tensor(dense, requires_grad=True)
        out = lib.bmm(s, d)
        (out * out).sum().backward()
        return [out.detach(), d.grad, s.grad.to_dense() * (lib.tensor(host) != 0)]

    for ours, theirs in zip(run(ut), run(torch), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy())
    s = made(ut, A, "sparse_bsr")
    np.testing.assert_allclose((s @ ut.tensor(D)).numpy(), A @ D)
    other = ut.bmm(ut.tensor(dense).transpose(1, 2), ut.tensor(host).to_sparse().transpose(1, 2))
    np.testing.assert_allclose(other.numpy(), (host @ dense).swapaxes(1, 2))


@pytest.mark.parametrize("at", [0, 1, 2])
def test_softmax_of_blocks(at: int) -> None:
    """Along sparse and dense dimensions of tensors that have both."""
    host = np.stack([A, C], -1)

    def run(lib: Any) -> Any:
        return lib.sparse.softmax(lib.tensor(host).to_sparse(2), at)

    alike(run)


def test_gradients_without_leaves() -> None:
    """autograd.grad with respect to sparse tensors, to second order, and backward of one."""
    s = ut.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2), requires_grad=True)
    (g,) = ut.autograd.grad((s.to_dense() ** 3).sum(), s, create_graph=True)
    assert g.to_dense().tolist() == [[0.0, 12.0], [27.0, 0.0]]
    (h,) = ut.autograd.grad(g.to_dense().sum(), s)
    assert h.to_dense().tolist() == [[0.0, 12.0], [18.0, 0.0]]

    def run(lib: Any) -> Any:
        s = made(lib, A, "sparse_coo").requires_grad_()
        (s * 3).backward(made(lib, C, "sparse_coo"))
        return s.grad.sparse_mask(s.detach())

    alike(run)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files(layout: str) -> None:
    """A file of each library is read by the other."""
    ours, theirs = made(ut, A, layout), made(torch, A, layout)
    file = io.BytesIO()
    ut.save({"s": ours}, file)
    file.seek(0)
    read = torch.load(file, weights_only=True)["s"]
    for a, b in zip(parts(read), parts(theirs), strict=True):
        np.testing.assert_array_equal(a, b)
    file = io.BytesIO()
    torch.save([theirs], file)
    file.seek(0)
    for a, b in zip(parts(ut.load(file)[0]), parts(ours), strict=True):
        np.testing.assert_array_equal(a, b)


def test_unbound_methods_and_likes() -> None:
    """Methods of Tensor take sparse tensors, and what is made like one has its layout."""
    s = made(ut, A, "sparse_csr")
    assert isinstance(ut.Tensor.to_dense(s), ut.Tensor)
    assert ut.Tensor.crow_indices(s).tolist() == s.crow_indices().tolist()
    assert ut.Tensor.sparse_dim(s) == 2
    with pytest.raises(RuntimeError, match="sparse"):
        ut.ones(2).indices()
    assert ut.randn_like(s).layout is ut.sparse_csr
    assert ut.zeros_like(s, dtype=ut.float32).layout is ut.sparse_csr
    with pytest.raises(ut.errors.UnsupportedError):
        ut.randn_like(made(ut, A, "sparse_coo"))


def test_assert_close() -> None:
    """Sparse tensors are compared by what stands in them, and by their layout."""
    s = made(ut, A, "sparse_coo")
    ut.testing.assert_close(s, s.clone())
    ut.testing.assert_close(s, s.to_sparse_csr(), check_layout=False)
    with pytest.raises(AssertionError, match="layouts"):
        ut.testing.assert_close(s, s.to_sparse_csr())
    with pytest.raises(AssertionError, match="close"):
        ut.testing.assert_close(s, s * 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda lib: lib.sparse_csr_tensor(
            [0, 2], [1, 0], [1.0, 2.0], (1, 2), check_invariants=True
        ),
        lambda lib: lib.ones(4, 4).to_sparse_bsr((3, 2)),
        lambda lib: lib.ones(4, 4).to_sparse(layout=lib.sparse_bsr),
        lambda lib: lib.ones(4, 4).to_sparse(layout=lib.sparse_csr, blocksize=(2, 2)),
        lambda lib: lib.tensor([[[1.0]], [[0.0]]]).to_sparse_csr(),
        lambda lib: lib.eye(2).to_sparse() + 1,
        lambda lib: lib.eye(2).to_sparse().long().div_(2),
        lambda lib: lib.eye(2).to_sparse() + lib.eye(2).to_sparse(1),
        lambda lib: lib.zeros(2, 2).copy_(lib.eye(2).to_sparse()),
    ],
)
def test_errors(call: Any) -> None:
    """What torch refuses."""
    for lib in (ut, torch):
        with pytest.raises(RuntimeError):
            call(lib)
