"""Fourier transforms: torch's `fft`, published by `undertow.ops`."""

from ...core.register import SPACES as _spaces
from ...ops.signal import fourier as _fourier  # noqa: F401

globals().update(_spaces["fft"])
__all__ = sorted(_spaces["fft"])
