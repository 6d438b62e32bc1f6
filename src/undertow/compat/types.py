"""Names of types that programs annotate with, as in `torch.types`."""

from __future__ import annotations

import os
from typing import Any, TypeAlias

from ..core.tensor import Tensor
from ..devices import Device as _Device
from ..dtypes import DType as _dtype
from ..shapes import Size as _size_class

__all__ = ["Device", "FileLike", "Number", "Tensor", "_device", "_dtype", "_int", "_size"]

_device = _Device
_int = int
_float = float
_bool = bool
Number: TypeAlias = int | float | bool
_size: TypeAlias = _size_class | list[int] | tuple[int, ...]
Device: TypeAlias = _Device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | Any
