"""The standard's extension for Fourier transforms, over `undertow.fft`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import undertow

from ...core.tensor import Tensor
from ...devices import DeviceLike
from ...dtypes import DTypeLike
from ...shapes import Ints

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]

_ut: Any = undertow  # its fft is loaded when it is asked for


def _along_one(name: str) -> Callable[..., Tensor]:
    def transform(
        x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Tensor:
        """The transform along one axis, of `n` elements if that is given."""
        return getattr(_ut.fft, name)(x, n, axis, norm)

    transform.__name__ = transform.__qualname__ = name
    return transform


def _along_several(name: str) -> Callable[..., Tensor]:
    def transform(
        x: Tensor,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: str = "backward",
    ) -> Tensor:
        """The transform along several axes, or all, of `s` elements if that is given."""
        return getattr(_ut.fft, name)(x, s, axes, norm)

    transform.__name__ = transform.__qualname__ = name
    return transform


fft, ifft, rfft, irfft, hfft, ihfft = map(
    _along_one, ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
)
fftn, ifftn, rfftn, irfftn = map(_along_several, ("fftn", "ifftn", "rfftn", "irfftn"))


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """The frequencies of `fft`, of n samples at a distance d."""
    return _ut.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """The frequencies of `rfft`, of n samples at a distance d."""
    return _ut.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: Ints | None = None) -> Tensor:
    """The frequencies in order, with zero in the middle."""
    return _ut.fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: Ints | None = None) -> Tensor:
    """`fftshift` undone."""
    return _ut.fft.ifftshift(x, axes)
