"""What distributions share, under torch's names: broadcasting, probabilities and their logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ..core.foreign import NUMBERS
from ..core.modes import enable_grad
from ..core.tensor import Tensor
from ..dtypes import finfo, get_default_dtype
from ..errors import DTypeError
from ..nn.functional import pad
from ..ops.create.from_data import tensor
from ..ops.random.random import randn
from ..ops.shape.joining import broadcast_tensors

euler_constant = 0.57721566490153286060
T = TypeVar("T")


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Samples of the standard normal distribution."""
    return randn(shape, dtype=dtype, device=device)


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Tensors and numbers as tensors of one shape; numbers in the dtype of the tensors.

    >>> import undertow as ut
    >>> ut.distributions.utils.broadcast_all(ut.zeros(2), 1)
    (tensor([0., 0.]), tensor([1., 1.]))
    """
    given = [v for v in values if hasattr(type(v), "__torch_function__")]
    if len(given) == len(values):
        return broadcast_tensors(*values)
    for v in values:
        if not isinstance(v, NUMBERS) and not hasattr(type(v), "__torch_function__"):
            raise DTypeError(f"[broadcast_all] takes tensors and numbers, got {type(v).__name__}")
    like = next((v for v in given if isinstance(v, Tensor)), tensor(0.0))
    dtype = like.dtype if like.is_floating_point() else get_default_dtype()
    made = [
        tensor(v, dtype=dtype, device=like.device) if isinstance(v, NUMBERS) else v for v in values
    ]
    return broadcast_tensors(*made)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of logits: by the sigmoid of each, or by softmax over the last dimension."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept away from 0 and 1, by the precision of their dtype."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Logits of probabilities, which stay finite."""
    p = clamp_probs(probs)
    return p.log() - (-p).log1p() if is_binary else p.log()


class lazy_property(Generic[T]):
    """A property that is computed when first asked for, and kept from then on."""

    def __init__(self, wrapped: Callable[[Any], T]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__
        self.name = wrapped.__name__

    def __get__(self, instance: Any, owner: Any = None) -> T:
        if instance is None:
            return self  # type: ignore[return-value]
        with enable_grad():  # it is kept for others, who may want its history
            value = self.wrapped(instance)
        instance.__dict__[self.name] = value
        return value


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Lower triangular matrices of rows that have their elements one row after the other."""
    count = vec.shape[-1]
    root = (1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)
    n = round((root**0.5 - (1 + 2 * diag)) / 2)
    mask = vec.new_ones((n, n)).tril(diag) != 0
    places = mask.reshape(-1).cumsum(0).reshape(n, n) - 1
    return vec[..., places.clamp(min=0).reshape(-1)].reshape(*vec.shape[:-1], n, n) * mask


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements of lower triangular matrices, one row after the other."""
    n = mat.shape[-1]
    places = (mat.new_ones((n, n)).tril(diag) != 0).reshape(-1).nonzero().reshape(-1)
    return mat.reshape(*mat.shape[:-2], n * n)[..., places]


def sum_rightmost(value: Any, count: int) -> Any:
    """The sum over the last `count` dimensions."""
    return value if not count else value.reshape(*value.shape[: value.ndim - count], -1).sum(-1)


def with_end(value: Tensor, number: float) -> Tensor:
    """The last dimension with one more element, a number."""
    return pad(value, (0, 1), value=number)


_sum_rightmost = sum_rightmost
