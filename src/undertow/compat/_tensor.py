"""Where torch keeps its class Tensor."""

from ..core.tensor import Tensor
from ..files.rebuilding import _from_type as _rebuild_from_type_v2

__all__ = ["Tensor", "_rebuild_from_type_v2"]
