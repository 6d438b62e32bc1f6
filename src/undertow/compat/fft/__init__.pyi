# Written by tools/stubs.py: run `make stubs` instead of editing it.
"""Fourier transforms: torch's `fft`, published by `undertow.ops`."""

from ...core.tensor import Tensor
from ...devices import DeviceLike
from ...dtypes import DTypeLike
from ...shapes import Ints

def fft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The discrete Fourier transform, over one dimension, of which `n` elements are taken."""

def fft2(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The discrete Fourier transform, over two dimensions, of which `s` elements are taken."""

def fftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The discrete Fourier transform, over all dimensions or `dim`, of which `s` elements are taken."""

def ifft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `fft`, over one dimension, of which `n` elements are taken."""

def ifft2(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `fft2`, over two dimensions, of which `s` elements are taken."""

def ifftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `fftn`, over all dimensions or `dim`, of which `s` elements are taken."""

def rfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The half of `fft` of a real tensor that tells the rest, over one dimension, of which `n` elements are taken."""

def rfft2(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The half of `fft2` of a real tensor that tells the rest, over two dimensions, of which `s` elements are taken."""

def rfftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The half of `fftn` of a real tensor that tells the rest, over all dimensions or `dim`, of which `s` elements are taken."""

def irfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `rfft`: real, of an even size unless told otherwise, over one dimension, of which `n` elements are taken."""

def irfft2(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `rfft2`: real, of an even size unless told otherwise, over two dimensions, of which `s` elements are taken."""

def irfftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `rfftn`: real, of an even size unless told otherwise, over all dimensions or `dim`, of which `s` elements are taken."""

def hfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform, which is real, of half of a Hermitian-symmetric signal, over one dimension, of which `n` elements are taken."""

def hfft2(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform, which is real, of half of a Hermitian-symmetric signal, over two dimensions, of which `s` elements are taken."""

def hfftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform, which is real, of half of a Hermitian-symmetric signal, over all dimensions or `dim`, of which `s` elements are taken."""

def ihfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `hfft`: half of a Hermitian-symmetric signal, over one dimension, of which `n` elements are taken."""

def ihfft2(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `hfft2`: half of a Hermitian-symmetric signal, over two dimensions, of which `s` elements are taken."""

def ihfftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `hfftn`: half of a Hermitian-symmetric signal, over all dimensions or `dim`, of which `s` elements are taken."""

def fftshift(input: Tensor, dim: Ints | None = None) -> Tensor:
    """The frequencies of a spectrum in rising order, zero in the middle."""

def ifftshift(input: Tensor, dim: Ints | None = None) -> Tensor:
    """The inverse of `fftshift`."""

def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The frequency of each element of `fft` of `n` elements that are `d` apart."""

def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The frequency of each element of `rfft` of `n` elements that are `d` apart."""

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
