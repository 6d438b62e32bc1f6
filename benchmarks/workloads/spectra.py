"""Fourier transforms, a spectrogram, and special functions of a million numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ._workload import Workload, forward, normal


def _complex(*shape: int) -> Any:
    return normal(*shape) + 1j * normal(*shape, seed=1).astype(np.complex64)


def _positive(*shape: int) -> Any:
    return np.abs(normal(*shape)) * 5 + 0.1


_LONG = 1 << 20
SPECTRA = (
    Workload("fft 2^20", forward(lambda m, x: m.fft.fft(x), partial(_complex, _LONG)), 1.2, 1.0),
    Workload("rfft 2^20", forward(lambda m, x: m.fft.rfft(x), partial(normal, _LONG)), 1.2, 1.0),
    Workload(
        "fft 4096x1024", forward(lambda m, x: m.fft.fft(x), partial(_complex, 4096, 1024)), 1.2, 1.0
    ),
    Workload(
        "rfft 4096x1024", forward(lambda m, x: m.fft.rfft(x), partial(normal, 4096, 1024)), 1.2, 1.0
    ),
    Workload(
        "fft2 1024x1024",
        forward(lambda m, x: m.fft.fft2(x), partial(_complex, 1024, 1024)),
        1.2,
        1.0,
    ),
    Workload(
        "stft 2^20",
        forward(
            lambda m, x: m.stft(x, 1024, window=m.hann_window(1024), return_complex=True),
            partial(normal, _LONG),
        ),
        1.2,
        1.0,
    ),
    *[
        Workload(
            name,
            forward(lambda m, x, name=name: getattr(m.special, name)(x), partial(_positive, _LONG)),
            1.0,
            0.5,
        )
        for name in ("bessel_j0", "modified_bessel_k1", "airy_ai", "erfcx", "log_ndtr")
    ],
    Workload(
        "gammainc",
        forward(
            lambda m, a, x: m.special.gammainc(a, x),
            partial(_positive, 1 << 17),
            partial(_positive, 1 << 17),
        ),
        1.0,
        0.5,
    ),
)
