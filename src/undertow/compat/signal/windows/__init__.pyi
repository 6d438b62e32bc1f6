# Written by tools/stubs.py: run `make stubs` instead of editing it.
"""Windows of signals: torch's `signal.windows`, published by `undertow.ops`."""

from collections.abc import Iterable

from ....core.tensor import Tensor
from ....devices import DeviceLike
from ....dtypes import DTypeLike

def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The Hamming window of `M` elements."""

def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The Hann window of `M` elements."""

def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The Blackman window of `M` elements."""

def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The minimal 4-term Nuttall window of `M` elements."""

def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A window that is a sum of cosines with the coefficients `a`, of alternating signs."""

def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`alpha` less `1 - alpha` times a cosine."""

def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A triangle that ends in zeros."""

def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Half a period of a sine."""

def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`exp(-abs(position - center) / tau)`; symmetric ones have their centre in the middle."""

def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A normal density with the standard deviation `std`, 1 in the middle."""

def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The Kaiser window: `i0(beta * sqrt(1 - x**2)) / i0(beta)` for x from -1 to 1."""

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]
