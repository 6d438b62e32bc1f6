"""Samples for `undertow.ops.signal.windows`."""

from __future__ import annotations

import numpy as np

from op_samples import Bad, S, op


def positions(M, sym):
    """From 0 to 1."""
    return np.arange(M) / (M - sym) if M > 1 else np.full(M, 0.5)


def cosines(*weights):
    def reference(M, *, sym=True, a=None, alpha=None, **_):
        used = a or ((alpha, 1 - alpha) if alpha else weights)
        if M == 1:
            return np.ones(1)
        x = 2 * np.pi * positions(M, sym)
        return sum((-1) ** k * w * np.cos(k * x) for k, w in enumerate(used))

    return reference


def np_kaiser(M, *, beta=12.0, sym=True, **_):
    x = 2 * positions(M, sym) - 1
    return np.i0(beta * np.sqrt(np.maximum(1 - x * x, 0))) / np.i0(beta)


def middle(M, sym):
    return np.arange(M) - (M - 1 if sym or M == 1 else M) / 2


WINDOWS = {
    "hamming": cosines(0.54, 0.46),
    "hann": cosines(0.5, 0.5),
    "blackman": cosines(0.42, 0.5, 0.08),
    "nuttall": cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "general_cosine": cosines(),
    "general_hamming": cosines(0.54, 0.46),
    "bartlett": lambda M, *, sym=True, **_: 1 - np.abs(2 * positions(M, sym) - 1),
    "cosine": lambda M, *, sym=True, **_: np.sin(
        np.pi / max(1, M if sym or M == 1 else M + 1) * (np.arange(M) + 0.5)
    ),
    "exponential": lambda M, *, center=None, tau=1.0, sym=True, **_: np.exp(
        -np.abs(middle(M, sym) if center is None else np.arange(M) - center) / tau
    ),
    "gaussian": lambda M, *, std=1.0, sym=True, **_: np.exp(-((middle(M, sym) / std) ** 2) / 2),
    "kaiser": np_kaiser,
}
MORE = {
    "general_cosine": [{"a": [0.4, 0.3, 0.2, 0.1]}],
    "general_hamming": [{"alpha": 0.7}],
    "exponential": [{"tau": 2.0}, {"sym": False, "center": 1.5}],
    "gaussian": [{"std": 0.7}],
    "kaiser": [{"beta": 4.0}, {"beta": 0.0}],
}
for name, reference in WINDOWS.items():
    options = MORE.get(name, [{}])
    first = options[0]
    op(
        f"signal.windows.{name}",
        reference,
        [
            *[S(n, sym=sym, **first) for n in (0, 1, 2, 7) for sym in (True, False)],
            *[S(6, **more) for more in options],
        ],
        rtol=2e-5,
        atol=2e-7,
        bad=[
            Bad(S(-1, **first), ValueError, rf"\[.*{name}\] M must not be negative"),
            Bad(S(3, dtype=int, **first), ValueError, rf"\[.*{name}\].*int64"),
        ],
    )
for name, reference in (
    ("hann", WINDOWS["hann"]),
    ("blackman", WINDOWS["blackman"]),
    ("bartlett", WINDOWS["bartlett"]),
    ("kaiser", np_kaiser),
):
    op(
        f"{name}_window",
        lambda n, periodic=True, f=reference, **how: f(n, sym=not periodic, **how),
        [S(0), S(1), S(5), S(6, False)],
        rtol=2e-5,
        atol=2e-7,
    )
op(
    "hamming_window",
    lambda n, periodic=True, alpha=0.54, beta=0.46: cosines(alpha, beta)(n, sym=not periodic),
    [S(1), S(5), S(6, False), S(6, True, 0.6, 0.3)],
    rtol=2e-5,
    atol=2e-7,
)
