"""Activations: layers that are one function of their input, and what they hold for it."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from ...core.tensor import Tensor
from ...errors import ArgumentError, ShapeError
from .. import functional as F
from .. import init as initial
from ..parameter import Parameter
from .attention import MultiheadAttention
from .linear import new_parameter
from .module import Module


class _Activation(Module):
    """What activations share: `repr` shows the attributes of `_shown`, and `inplace` if it is."""

    _shown: ClassVar[tuple[str, ...]] = ()

    def extra_repr(self) -> str:
        fields = self.__dict__
        return ", ".join([f"{n}={fields[n]!r}" for n in self._shown if n != "inplace" or fields[n]])


class _InPlace(_Activation):
    """An activation whose only argument is whether it overwrites its input."""

    _shown: ClassVar[tuple[str, ...]] = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


# Straight lines ----------------------------------------------------------------------------------
class ReLU(_InPlace):
    """`max(x, 0)`.

    >>> import undertow as ut
    >>> ut.nn.ReLU()(ut.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


class Hardtanh(_Activation):
    """`x` between `min_val` and `max_val`.

    >>> import undertow as ut
    >>> ut.nn.Hardtanh(-2, 2)(ut.tensor([-3.0, 0.5, 3.0]))
    tensor([-2.0000,  0.5000,  2.0000])
    """

    _shown: ClassVar[tuple[str, ...]] = ("min_val", "max_val", "inplace")

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        for old, new in ((min_value, "min_val"), (max_value, "max_val")):
            if old is not None:
                message = f"keyword argument `{new}ue` is deprecated and renamed to `{new}`"
                warnings.warn(message, FutureWarning, stacklevel=2)
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise ArgumentError(
                f"[Hardtanh] max_val must be greater than min_val, got {self.max_val} and "
                f"{self.min_val}"
            )

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """`min(max(x, 0), 6)`.

    >>> import undertow as ut
    >>> ut.nn.ReLU6()(ut.tensor([-1.0, 2.0, 9.0]))
    tensor([0., 2., 6.])
    """

    _shown = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class Threshold(_Activation):
    """The elements above `threshold`, and `value` in place of the others.

    >>> import undertow as ut
    >>> ut.nn.Threshold(1, 20)(ut.tensor([0.5, 2.0]))
    tensor([20.,  2.])
    """

    _shown = ("threshold", "value", "inplace")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)


class LeakyReLU(_Activation):
    """The positive elements as they are, the others times `negative_slope`.

    >>> import undertow as ut
    >>> ut.nn.LeakyReLU(0.1)(ut.tensor([-1.0, 2.0]))
    tensor([-0.1000,  2.0000])
    """

    _shown = ("negative_slope", "inplace")

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class RReLU(_Activation):
    """A LeakyReLU whose slope is random between `lower` and `upper` in training.

    >>> import undertow as ut
    >>> ut.nn.RReLU(0.1, 0.3).eval()(ut.tensor([-1.0, 2.0]))
    tensor([-0.2000,  2.0000])
    """

    _shown = ("lower", "upper", "inplace")

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class PReLU(_Activation):
    """A LeakyReLU that learns its slope, one for all channels or one for each.

    >>> import undertow as ut
    >>> ut.nn.PReLU()(ut.tensor([-1.0, 2.0]))
    tensor([-0.2500,  2.0000], grad_fn=...)
    """

    _shown = ("num_parameters",)
    weight: Parameter

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = new_parameter(num_parameters, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Every slope is `init`."""
        initial.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)


class Hardsigmoid(_InPlace):
    """0 below -3, 1 above 3, a straight line between.

    >>> import undertow as ut
    >>> ut.nn.Hardsigmoid()(ut.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """

    _shown = ()

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Hardswish(_InPlace):
    """`x * hardsigmoid(x)`.

    >>> import undertow as ut
    >>> ut.nn.Hardswish()(ut.tensor([-4.0, 0.0, 4.0]))
    tensor([-0.,  0.,  4.])
    """

    _shown = ()

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class Hardshrink(_Activation):
    """The elements of size above `lambd`, and zero in place of the others.

    >>> import undertow as ut
    >>> ut.nn.Hardshrink()(ut.tensor([-1.0, 0.25, 2.0]))
    tensor([-1.,  0.,  2.])
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(_Activation):
    """The elements moved towards zero by `lambd`, at most to zero.

    >>> import undertow as ut
    >>> ut.nn.Softshrink()(ut.tensor([-1.0, 0.25, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


# Curves ------------------------------------------------------------------------------------------
class Sigmoid(_Activation):
    """`1 / (1 + exp(-x))`.

    >>> import undertow as ut
    >>> ut.nn.Sigmoid()(ut.tensor([0.0, 100.0]))
    tensor([0.5000, 1.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.sigmoid(input)


class LogSigmoid(_Activation):
    """`log(sigmoid(x))` without overflow.

    >>> import undertow as ut
    >>> ut.nn.LogSigmoid()(ut.tensor([-1000.0, 1000.0]))
    tensor([-1000.,     0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Tanh(_Activation):
    """The hyperbolic tangent.

    >>> import undertow as ut
    >>> ut.nn.Tanh()(ut.tensor([0.0, 100.0]))
    tensor([0., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanh(input)


class Tanhshrink(_Activation):
    """`x - tanh(x)`.

    >>> import undertow as ut
    >>> ut.nn.Tanhshrink()(ut.tensor([0.0, 100.0]))
    tensor([ 0., 99.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class Softsign(_Activation):
    """`x / (1 + abs(x))`.

    >>> import undertow as ut
    >>> ut.nn.Softsign()(ut.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Softplus(_Activation):
    """`log(1 + exp(beta * x)) / beta`; the element itself where beyond `threshold`.

    >>> import undertow as ut
    >>> ut.nn.Softplus()(ut.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """

    _shown = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)


class ELU(_Activation):
    """The positive elements as they are, `alpha * expm1(x)` for the others.

    >>> import undertow as ut
    >>> ut.nn.ELU()(ut.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    _shown = ("alpha", "inplace")

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(ELU):
    """The positive elements as they are, `alpha * expm1(x / alpha)` for the others.

    >>> import undertow as ut
    >>> ut.nn.CELU(2.0)(ut.tensor([-1.0, 2.0]))
    tensor([-0.7869,  2.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class SELU(_InPlace):
    """`elu` with the slope and scale of self-normalising networks.

    >>> import undertow as ut
    >>> ut.nn.SELU()(ut.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class SiLU(_InPlace):
    """`x * sigmoid(x)`, also known as swish.

    >>> import undertow as ut
    >>> ut.nn.SiLU()(ut.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_InPlace):
    """`x * tanh(softplus(x))`.

    >>> import undertow as ut
    >>> ut.nn.Mish()(ut.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class GELU(_Activation):
    """`x` times the normal distribution function of it; 'tanh' approximates that.

    >>> import undertow as ut
    >>> ut.nn.GELU()(ut.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """

    _shown = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)


# Along a dimension -------------------------------------------------------------------------------
class GLU(_Activation):
    """The first half along `dim` times the sigmoid of the second half.

    >>> import undertow as ut
    >>> ut.nn.GLU()(ut.tensor([1.0, 2.0, 0.0, 100.0]))
    tensor([0.5000, 2.0000])
    """

    _shown = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)


class Softmax(_Activation):
    """`exp(x)` divided by its sum along `dim`.

    >>> import undertow as ut
    >>> ut.nn.Softmax(dim=0)(ut.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """

    _shown = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class Softmin(Softmax):
    """`softmax(-x)`: the smallest element weighs most.

    >>> import undertow as ut
    >>> ut.nn.Softmin(dim=0)(ut.tensor([0.0, 1.0]))
    tensor([0.7311, 0.2689])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class LogSoftmax(Softmax):
    """`log(softmax(x, dim))`, accurate where the softmax itself would round to zero.

    >>> import undertow as ut
    >>> ut.nn.LogSoftmax(dim=0)(ut.tensor([0.0, 1000.0]))
    tensor([-1000.,     0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmax2d(_Activation):
    """The softmax over the channels of (N, C, H, W) or (C, H, W), at each place.

    >>> import undertow as ut
    >>> ut.nn.Softmax2d()(ut.zeros(2, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ShapeError(
                f"[Softmax2d] expects (N, C, H, W) or (C, H, W), got shape {input.shape}"
            )
        return F.softmax(input, -3)


__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "MultiheadAttention",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]
