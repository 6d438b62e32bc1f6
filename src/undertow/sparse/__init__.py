"""`undertow.sparse`: tensors of which only some elements are stored, and functions of them.

>>> import undertow as ut
>>> a = ut.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csr()
>>> a @ ut.tensor([1.0, 10.0])
tensor([20.,  3.])
"""

from .checking import as_sparse_gradcheck, check_sparse_tensor_invariants
from .compressed import SparseBSC, SparseBSR, SparseCSC, SparseCSR
from .coo import SparseCOO
from .creation import (
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
    sparse_mask,
    spdiags,
    to_sparse,
    to_sparse_coo,
)
from .products import addmm, hspmm, matmul, mm, sampled_addmm, smm, sspaddmm
from .reductions import log_softmax, softmax, sum
from .tensor import SparseTensor

__all__ = [
    "SparseBSC",
    "SparseBSR",
    "SparseCOO",
    "SparseCSC",
    "SparseCSR",
    "SparseTensor",
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "hspmm",
    "log_softmax",
    "matmul",
    "mm",
    "sampled_addmm",
    "smm",
    "softmax",
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
    "sparse_mask",
    "spdiags",
    "sspaddmm",
    "sum",
    "to_sparse",
    "to_sparse_coo",
]
