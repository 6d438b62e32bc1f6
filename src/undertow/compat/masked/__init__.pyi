# Written by tools/stubs.py: run `make stubs` instead of editing it.
"""Reductions over the elements that a mask lets through, and tensors that carry such a mask."""

from ...core.tensor import Tensor
from ...dtypes import DTypeLike
from ...shapes import Ints
from .masked_tensor import MaskedTensor as MaskedTensor
from .masked_tensor import as_masked_tensor as as_masked_tensor
from .masked_tensor import is_masked_tensor as is_masked_tensor
from .masked_tensor import masked_tensor as masked_tensor

def sum(
    input: Tensor,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The sum of the elements that are not masked."""

def prod(
    input: Tensor,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The product of the elements that are not masked."""

def mean(
    input: Tensor,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The mean of the elements that are not masked."""

def amax(
    input: Tensor,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The largest of the elements that are not masked."""

def amin(
    input: Tensor,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The smallest of the elements that are not masked."""

def logsumexp(
    input: Tensor,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The logarithm of the sum of exp of the elements that are not masked."""

def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Where the largest element that is not masked is."""

def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Where the smallest element that is not masked is."""

def cumsum(
    input: Tensor, dim: int, *, dtype: DTypeLike | None = None, mask: Tensor | None = None
) -> Tensor:
    """Running sums over what is not masked."""

def cumprod(
    input: Tensor, dim: int, *, dtype: DTypeLike | None = None, mask: Tensor | None = None
) -> Tensor:
    """Running products over what is not masked."""

def softmax(
    input: Tensor, dim: int, *, dtype: DTypeLike | None = None, mask: Tensor | None = None
) -> Tensor:
    """`softmax` over what is not masked; zero elsewhere."""

def log_softmax(
    input: Tensor, dim: int, *, dtype: DTypeLike | None = None, mask: Tensor | None = None
) -> Tensor:
    """`log_softmax` over what is not masked."""

def softmin(
    input: Tensor, dim: int, *, dtype: DTypeLike | None = None, mask: Tensor | None = None
) -> Tensor:
    """`softmin` over what is not masked; zero elsewhere."""

def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The median of the elements that are not masked, the lower one of two."""

def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The norm of order `ord` of the vectors of elements that are not masked."""

def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """`input` divided by the norm of what is not masked along `dim`; zero where it is masked."""

def var(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance of the elements that are not masked."""

def std(
    input: Tensor,
    dim: Ints | None = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The standard deviation of the elements that are not masked."""

def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: DTypeLike | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """`logaddexp`, where a masked element adds nothing."""

__all__ = [
    "MaskedTensor",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "as_masked_tensor",
    "cumprod",
    "cumsum",
    "is_masked_tensor",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "masked_tensor",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]
