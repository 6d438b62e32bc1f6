"""Fourier transforms of NumPy arrays, by NumPy's pocketfft, which keeps single precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Shape


def transform(kind: str, x: Any, dims: Shape, size: int, norm: Any) -> Any:
    """What `Backend.fft` says."""
    *others, last = dims
    if kind == "real":
        x = np.fft.rfft(x, axis=last, norm=norm)
    elif kind != "to_real":
        others = list(dims)
    step: Any = np.fft.ifft if kind in ("inverse", "to_real") else np.fft.fft
    for dim in others:
        x = step(x, axis=dim, norm=norm)
    return np.fft.irfft(x, size, last, norm=norm) if kind == "to_real" else x
