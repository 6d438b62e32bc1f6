"""Reductions over the elements that a mask lets through, and tensors that carry such a mask."""

from ...core.register import SPACES as _spaces
from .masked_tensor import MaskedTensor as MaskedTensor
from .masked_tensor import as_masked_tensor as as_masked_tensor
from .masked_tensor import is_masked_tensor as is_masked_tensor
from .masked_tensor import masked_tensor as masked_tensor

globals().update(_spaces["masked"])
_kinds = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]
__all__ = sorted([*_spaces["masked"], *_kinds])
