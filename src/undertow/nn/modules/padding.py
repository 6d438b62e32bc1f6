"""Layers that add elements at the ends of the last one, two or three dimensions."""

from __future__ import annotations

from typing import ClassVar

from ...core.tensor import Tensor
from ...shapes import Ints
from .. import functional as F
from .module import Module
from .utils import _ntuple


class _Pad(Module):
    """What they share: `padding` is (low, high) of the last dimension, then of the one before."""

    _dims: ClassVar[int]
    _mode: ClassVar[str]

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding: tuple[int, ...] = _ntuple(2 * self._dims)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    value: float

    def __init__(self, padding: Ints, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Adds `value` at the ends of signals.

    >>> import undertow as ut
    >>> ut.nn.ConstantPad1d((1, 2), 9.0)(ut.ones(1, 2))
    tensor([[9., 1., 1., 9., 9.]])
    """

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Adds `value` around images.

    >>> import undertow as ut
    >>> ut.nn.ConstantPad2d((0, 1, 0, 1), 9.0)(ut.ones(1, 1, 1))
    tensor([[[1., 9.],
             [9., 9.]]])
    """

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Adds `value` around volumes.

    >>> import undertow as ut
    >>> ut.nn.ConstantPad3d(1, 9.0)(ut.ones(1, 2, 2, 2)).shape
    (1, 4, 4, 4)
    """

    _dims = 3


class _ZeroPad(_ConstantPadNd):
    def __init__(self, padding: Ints) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad):
    """Adds zeros at the ends of signals.

    >>> import undertow as ut
    >>> ut.nn.ZeroPad1d((1, 2))(ut.ones(1, 2))
    tensor([[0., 1., 1., 0., 0.]])
    """

    _dims = 1


class ZeroPad2d(_ZeroPad):
    """Adds zeros around images.

    >>> import undertow as ut
    >>> ut.nn.ZeroPad2d((0, 1, 0, 1))(ut.ones(1, 1, 1))
    tensor([[[1., 0.],
             [0., 0.]]])
    """

    _dims = 2


class ZeroPad3d(_ZeroPad):
    """Adds zeros around volumes.

    >>> import undertow as ut
    >>> ut.nn.ZeroPad3d(1)(ut.ones(1, 2, 2, 2)).shape
    (1, 4, 4, 4)
    """

    _dims = 3


class ReflectionPad1d(_Pad):
    """Adds the elements of signals mirrored at the one at the edge.

    >>> import undertow as ut
    >>> ut.nn.ReflectionPad1d(2)(ut.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 2., 1., 2., 3., 2., 1.]])
    """

    _dims, _mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """Adds the pixels of images mirrored at those at the edge.

    >>> import undertow as ut
    >>> ut.nn.ReflectionPad2d((1, 0, 0, 1))(ut.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[2., 1., 2.],
             [4., 3., 4.],
             [2., 1., 2.]]])
    """

    _dims, _mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """Adds the elements of volumes mirrored at those at the edge.

    >>> import undertow as ut
    >>> ut.nn.ReflectionPad3d(1)(ut.ones(1, 2, 2, 2)).shape
    (1, 4, 4, 4)
    """

    _dims, _mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """Adds the element at the edge of signals again and again.

    >>> import undertow as ut
    >>> ut.nn.ReplicationPad1d(2)(ut.tensor([[1.0, 2.0]]))
    tensor([[1., 1., 1., 2., 2., 2.]])
    """

    _dims, _mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """Adds the pixels at the edge of images again and again.

    >>> import undertow as ut
    >>> ut.nn.ReplicationPad2d((1, 0, 0, 1))(ut.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2.],
             [1., 1., 2.]]])
    """

    _dims, _mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """Adds the elements at the edge of volumes again and again.

    >>> import undertow as ut
    >>> ut.nn.ReplicationPad3d(1)(ut.ones(1, 2, 2, 2)).shape
    (1, 4, 4, 4)
    """

    _dims, _mode = 3, "replicate"


class CircularPad1d(_Pad):
    """Adds the elements from the other end of signals.

    >>> import undertow as ut
    >>> ut.nn.CircularPad1d((1, 2))(ut.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 1., 2., 3., 1., 2.]])
    """

    _dims, _mode = 1, "circular"


class CircularPad2d(_Pad):
    """Adds the pixels from the other side of images.

    >>> import undertow as ut
    >>> ut.nn.CircularPad2d((1, 0, 0, 1))(ut.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[2., 1., 2.],
             [4., 3., 4.],
             [2., 1., 2.]]])
    """

    _dims, _mode = 2, "circular"


class CircularPad3d(_Pad):
    """Adds the elements from the other side of volumes.

    >>> import undertow as ut
    >>> ut.nn.CircularPad3d(1)(ut.ones(1, 2, 2, 2)).shape
    (1, 4, 4, 4)
    """

    _dims, _mode = 3, "circular"
