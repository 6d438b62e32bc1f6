"""Products with sparse matrices, differentiable in the values and in what is dense."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..core.tensor import Tensor
from ..errors import ArgumentError, DTypeError, ShapeError
from ..ops.create.creation import arange
from ..ops.create.creation import zeros_like as dense_zeros_like
from ..ops.index.scatter import index_select
from ..ops.linalg.matmul import mm as dense_mm
from ..ops.reduce.scan import cumsum
from ..ops.shape.joining import stack
from .compressed import SparseCompressed, SparseCSR
from .coo import SparseCOO
from .movement import zeros_like as sparse_zeros_like
from .pattern import Pattern, product, sampled
from .tensor import SparseTensor


def _stored(op: str, matrix: SparseTensor) -> tuple[Pattern, Tensor]:
    """The positions and values of a sparse matrix, row by row."""
    if isinstance(matrix, SparseCOO):
        found = matrix.coalesce()
        return found._pattern(op), found._stored
    if not isinstance(matrix, SparseCompressed):
        raise DTypeError(f"[{op}] expects a sparse matrix, got a {type(matrix).__name__}")
    return matrix._plain()


def _check(op: str, a: Any, b: Any) -> None:
    if a.ndim != 2 or b.ndim not in (1, 2) or a.shape[1] != b.shape[0]:
        raise ShapeError(f"[{op}] {tuple(a.shape)} @ {tuple(b.shape)}: the sizes do not fit")
    if a.dtype is not b.dtype:
        raise DTypeError(f"[{op}] expects one dtype, got {a.dtype} and {b.dtype}")


def mm(mat1: Any, mat2: Any, reduce: str = "sum") -> Any:
    """The product of two matrices, at least one of them sparse.

    A sparse matrix times a dense one is dense, on a generated kernel; two sparse ones give a sparse
    one. Gradients have the positions of the sparse operand. With `reduce` mean, amax or amin the
    products of a row's stored elements are not added up, but reduced so; of a row without any,
    that is 0.

    >>> import undertow as ut
    >>> a = ut.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3), requires_grad=True)
    >>> ut.sparse.mm(a, ut.ones(3, 1)).sum().backward()
    >>> a.grad.to_dense()
    tensor([[0., 0., 1.],
            [1., 0., 0.]])
    """
    if reduce == "sum":
        return matmul(mat1, mat2, "sparse.mm")
    if reduce not in ("mean", "amax", "amin"):
        raise ArgumentError(f"[sparse.mm] reduce is sum, mean, amax or amin, got {reduce!r}")
    return _reduced(mat1, mat2, reduce)


def _reduced(a: Any, b: Any, reduce: str) -> Tensor:
    """The mean or extreme of each row's products, of those elements that are stored."""
    if not isinstance(a, SparseTensor) or not isinstance(b, Tensor) or b.ndim != 2:
        raise DTypeError(f"[sparse.mm] reduce={reduce!r} takes a sparse matrix and a dense one")
    _check("sparse.mm", a, b)
    pattern, values = _stored("sparse.mm", a)
    if reduce == "mean":
        counts = (pattern.begins[1:] - pattern.begins[:-1]).clamp(min=1).unsqueeze(1)
        return product(values, b, pattern) / counts
    terms = values.unsqueeze(1) * index_select(b, 0, pattern.columns)
    rows = pattern.rows.unsqueeze(1).expand(terms.shape)
    start = terms.new_zeros((pattern.shape[0], b.shape[1]))
    return start.scatter_reduce(0, rows, terms, reduce, include_self=False)


def matmul(a: Any, b: Any, op: str = "matmul") -> Any:
    """`a @ b` where at least one is sparse; `b` may be a vector.

    >>> import undertow as ut
    >>> graph = ut.tensor([[0.0, 1.0], [0.5, 0.0]]).to_sparse_csr()
    >>> ut.sparse.matmul(graph, ut.tensor([10.0, 20.0]))
    tensor([20.,  5.])
    """
    for x in (a, b):
        if not isinstance(x, (Tensor, SparseTensor)):
            raise DTypeError(f"[{op}] expects tensors, got {type(x).__name__}")
    if op == "matmul" and a.ndim == b.ndim == 3:
        return bmm(a, b)
    if op == "matmul" and a.ndim == 1 and b.ndim == 2 and isinstance(b, SparseTensor):
        return matmul(b.t(), a, op)
    _check(op, a, b)
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        return _both(op, a, b)
    if isinstance(a, SparseTensor):
        pattern, values = _stored(op, a)
        if b.ndim == 1:
            return product(values, b.unsqueeze(1), pattern).squeeze(1)
        return product(values, b, pattern)
    pattern, values = _stored(op, b)
    values = index_select(values, 0, pattern.order)
    return product(values, a.t(), pattern.transposed).t()


def _both(op: str, a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """Each element of a, times each element of the row of b that its column names, added up."""
    left, x = _stored(op, a)
    right, y = _stored(op, b)
    lengths = index_select(right.begins[1:] - right.begins[:-1], 0, left.columns)
    of = arange(x.shape[0], device=x.device).repeat_interleave(lengths)
    before = index_select(cumsum(lengths, 0) - lengths, 0, of)
    start = index_select(right.begins, 0, index_select(left.columns, 0, of))
    at = start + arange(of.shape[0], device=x.device) - before
    places = stack([index_select(left.rows, 0, of), index_select(right.columns, 0, at)])
    values = index_select(x, 0, of) * index_select(y, 0, at)
    out = SparseCOO(places, values, (left.shape[0], right.shape[1]), False).coalesce()
    return a._like(out)


def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * mat + alpha * (mat1 @ mat2)`, where mat1 is sparse.

    >>> import undertow as ut
    >>> ut.sparse.addmm(ut.ones(2, 2), ut.eye(2).to_sparse(), ut.ones(2, 2), beta=2)
    tensor([[3., 3.],
            [3., 3.]])
    """
    return _scaled(mat, beta) + matmul(mat1, mat2, "sparse.addmm") * alpha


def _nothing_of(input: Any) -> Any:
    sparse = isinstance(input, SparseTensor)
    return sparse_zeros_like(input) if sparse else dense_zeros_like(input)


def _scaled(input: Any, beta: Any) -> Any:
    """`beta * input`; with beta 0 nothing of it counts, not even what is no number."""
    return input * beta if isinstance(beta, Tensor) or beta else _nothing_of(input)


def bmm(input: Any, mat2: Any) -> Any:
    """The products of two batches of matrices, one of them sparse: dense."""
    if isinstance(input, SparseTensor) and isinstance(mat2, SparseTensor):
        raise input._undefined("bmm", "is multiplied with batches of dense matrices")
    shapes = tuple(input.shape), tuple(mat2.shape)
    fits = len(shapes[0]) == len(shapes[1]) == 3 and shapes[0][0] == shapes[1][0]
    if not fits or shapes[0][2] != shapes[1][1]:
        raise ShapeError(f"[bmm] {shapes[0]} @ {shapes[1]}: the sizes do not fit")
    if input.dtype is not mat2.dtype:
        raise DTypeError(f"[bmm] expects one dtype, got {input.dtype} and {mat2.dtype}")
    if isinstance(mat2, SparseTensor):
        turned = bmm(mat2.to_sparse_coo().transpose(1, 2), input.transpose(1, 2))
        return turned.transpose(1, 2)
    found = input.to_sparse_coo()
    if found.sparse_dim() != 3:
        raise input._undefined("bmm", "is a batch of matrices if it has 3 sparse dimensions")
    count, rows, columns = shapes[0]
    which, row, column = found._places
    places = stack([which * rows + row, which * columns + column])  # along one diagonal
    whole = SparseCOO(places, found._stored, (count * rows, count * columns), found._coalesced)
    out = matmul(whole, mat2.reshape(count * columns, shapes[1][2]), "bmm")
    return out.reshape(count, rows, shapes[1][2])


def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * input + alpha * bmm(batch1, batch2)`."""
    return _scaled(input, beta) + bmm(batch1, batch2) * alpha


def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * input + alpha * (mat @ vec)`."""
    if vec.ndim != 1:
        raise ShapeError(f"[addmv] expects a vector, got shape {tuple(vec.shape)}")
    return _scaled(input, beta) + matmul(mat, vec, "addmv") * alpha


def mv(input: Any, vec: Any) -> Any:
    """The product with a vector."""
    if vec.ndim != 1:
        raise ShapeError(f"[mv] expects a vector, got shape {tuple(vec.shape)}")
    return matmul(input, vec, "mv")


def sampled_addmm(
    input: SparseCSR,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: Any = 1.0,
    alpha: Any = 1.0,
    out: SparseCSR | None = None,
) -> SparseCSR:
    """`beta * input + alpha * (mat1 @ mat2)` at the positions of the sparse input alone.

    Batches of matrices go with a batch of as many sparse ones.

    >>> import undertow as ut
    >>> at = ut.eye(2).to_sparse_csr()
    >>> ut.sparse.sampled_addmm(at, ut.ones(2, 3), ut.ones(3, 2)).values()
    tensor([4., 4.])
    """
    if not isinstance(input, SparseCSR):
        raise DTypeError("[sparse.sampled_addmm] input is sparse_csr; use to_sparse_csr()")
    if mat1.dtype is not mat2.dtype:
        raise DTypeError(
            f"[sparse.sampled_addmm] expects one dtype, got {mat1.dtype} and {mat2.dtype}"
        )
    *batch, rows, columns = input.shape
    fits = mat1.ndim >= 2 and mat2.ndim >= 2 and mat1.shape[-1] == mat2.shape[-2]
    if (
        not fits
        or tuple(mat1.shape[:-1]) != (*batch, rows)
        or (*mat2.shape[:-2], mat2.shape[-1]) != (*batch, columns)
    ):
        raise ShapeError(
            f"[sparse.sampled_addmm] {mat1.shape} @ {mat2.shape} does not have the shape of input, "
            f"{tuple(input.shape)}"
        )
    found = sampled(mat1, mat2.transpose(-1, -2), input._places)
    result: SparseCSR = input._with(input._stored * beta + found * alpha)
    return result if out is None else out._receive("sparse.sampled_addmm", result)


def smm(input: Any, mat: Tensor) -> Any:
    """The product of a sparse matrix with a dense one, as a sparse matrix.

    >>> import undertow as ut
    >>> ut.smm(ut.eye(2).to_sparse(), ut.tensor([[0.0, 2.0], [3.0, 0.0]])).values()
    tensor([2., 3.])
    """
    return matmul(input, mat, "smm").to_sparse()


def hspmm(mat1: Any, mat2: Tensor) -> Any:
    """The product of a sparse matrix with a dense one, by the rows that are not zero.

    >>> import undertow as ut
    >>> s = ut.tensor([[0.0, 0.0], [0.0, 5.0]]).to_sparse()
    >>> ut.hspmm(s, ut.ones(2, 3)).indices()
    tensor([[1]])
    """
    found = matmul(mat1, mat2, "hspmm")
    rows = mat1.to_sparse_coo()._places[:1]
    which = rows.unique(dim=1)
    return SparseCOO(which, found[which[0]], found.shape, True)


def sspaddmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * input + alpha * (mat1 @ mat2)` for sparse input and mat1: sparse.

    >>> import undertow as ut
    >>> e = ut.eye(2).to_sparse()
    >>> ut.sspaddmm(e, e, ut.ones(2, 2), beta=2).to_dense()
    tensor([[3., 1.],
            [1., 3.]])
    """
    return input * beta + smm(mat1, mat2) * alpha


# The names of old programs.
def spmm(mat1: Any, mat2: Any) -> Any:
    """`sparse.mm`, or the product of two dense matrices.

    >>> import undertow as ut
    >>> ut.spmm(ut.eye(2).to_sparse(), ut.ones(2, 1)).equal(ut.spmm(ut.eye(2), ut.ones(2, 1)))
    True
    """
    sparse = isinstance(mat1, SparseTensor) or isinstance(mat2, SparseTensor)
    return mm(mat1, mat2) if sparse else dense_mm(mat1, mat2)


dsmm = spmm
hsmm, saddmm = hspmm, sspaddmm

ANSWERS = {
    "addmm": addmm,
    "addmv": addmv,
    "baddbmm": baddbmm,
    "bmm": bmm,
    "hsmm": hspmm,
    "hspmm": hspmm,
    "matmul": matmul,
    "mm": partial(matmul, op="mm"),
    "mv": mv,
    "saddmm": sspaddmm,
    "smm": smm,
    "spmm": spmm,
    "sspaddmm": sspaddmm,
}
