"""`undertow.sparse`: tensors of which only some elements are stored, and functions of them.

>>> import undertow as ut
>>> a = ut.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csr()
>>> a @ ut.tensor([1.0, 10.0])
tensor([20.,  3.])
"""

from .coo import SparseCOO
from .creation import sparse_coo_tensor, sparse_csr_tensor, to_sparse, to_sparse_coo
from .csr import SparseCSR
from .products import addmm, matmul, mm, sampled_addmm
from .reductions import log_softmax, softmax, sum
from .tensor import SparseTensor

__all__ = [
    "SparseCOO",
    "SparseCSR",
    "SparseTensor",
    "addmm",
    "log_softmax",
    "matmul",
    "mm",
    "sampled_addmm",
    "softmax",
    "sparse_coo_tensor",
    "sparse_csr_tensor",
    "sum",
    "to_sparse",
    "to_sparse_coo",
]
