"""The memory of tensors as flat arrays that can be sent: their own, or a copy that goes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.modes import no_grad
from ..core.tensor import Tensor, share, wrap
from ..errors import DTypeError
from .messages import DTYPES
from .work import Steps


class Staged:
    """Tensors of one operation: `read` and `write` give flat arrays, `back` finishes the written.

    CPU memory that is contiguous is used itself. Anything else goes through one copy.
    """

    def __init__(self, name: str, mixed: bool = False) -> None:
        self.name = name
        self.mixed = mixed  # tensors of several dtypes, which are bytes
        self.finish: list[Callable[[], None]] = []
        self.dtype = ""
        self.shape: tuple[int, ...] = ()

    def read(self, tensor: Tensor) -> Any:
        """The elements of a tensor, which will not be changed."""
        return self._array(tensor)[0]

    def write(self, tensor: Tensor) -> Any:
        """Memory for new elements of a tensor; what is there now is in it."""
        array, own = self._array(tensor)
        if own:
            self.finish.append(lambda: _changed(tensor))
        else:
            shaped = array.reshape(tuple(tensor.shape))
            self.finish.append(lambda: _copied(tensor, shaped))
        return array

    def _array(self, tensor: Tensor) -> tuple[Any, bool]:
        if not isinstance(tensor, Tensor):
            raise DTypeError(f"[{self.name}] expects tensors, got {type(tensor).__name__}")
        own = tensor._array
        array = own if isinstance(own, np.ndarray) else tensor.detach().cpu()._array
        dtype = str(array.dtype)
        if dtype not in DTYPES:
            raise DTypeError(f"[{self.name}] cannot send elements of {dtype}")
        if self.mixed:
            pass
        elif not self.dtype:
            self.dtype, self.shape = dtype, tuple(tensor.shape)
        elif dtype != self.dtype:
            raise DTypeError(
                f"[{self.name}] expects tensors of one dtype, got {self.dtype} and {dtype}"
            )
        if array.flags.c_contiguous:
            return array.reshape(-1), array is own
        return np.ascontiguousarray(array).reshape(-1), False

    def then(self, steps: Steps, result: Any = None) -> Steps:
        """The steps, and then the end of what was written."""
        found = yield from steps
        for finish in self.finish:
            finish()
        return found if result is None else result


def _changed(tensor: Tensor) -> None:
    share(tensor).version.value += 1


def _copied(tensor: Tensor, array: Any) -> None:
    with no_grad():
        tensor.detach().copy_(wrap(array))
