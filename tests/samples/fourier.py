"""Samples for `undertow.ops.signal.fourier` and `undertow.ops.signal.stft`."""

from __future__ import annotations

import numpy as np

from op_samples import Bad, Const, S, arr, ints, op
from undertow.errors import ArgumentError, DimError, DTypeError, ShapeError

F32 = np.float32


def z(*shape, seed=0):
    """Random complex numbers."""
    return arr(*shape, seed=seed) + 1j * arr(*shape, seed=seed + 50)


def over_axes(kind):
    """NumPy's function of several axes; those that it lacks, by conjugates."""
    opposite = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}

    def reference(x, s=None, dim=None, norm=None):
        if s is not None and dim is None:
            dim = tuple(range(x.ndim - len(s), x.ndim))
        if kind == "h":
            return np.fft.irfftn(np.conj(x), s, dim, norm=opposite[norm])
        if kind == "ih":
            return np.conj(np.fft.rfftn(x, s, dim, norm=opposite[norm]))
        return getattr(np.fft, f"{kind}fftn")(x, s, dim, norm=norm)

    return reference


for kind in ("", "i", "r", "ir", "h", "ih"):
    make = arr if kind in ("r", "ih") else z
    one = f"fft.{kind}fft"
    samples = [
        S(make(5)),
        S(make(2, 4)),
        S(make(3, 2), dim=0, norm="ortho"),
        S(make(2, 6), 4, norm="forward"),
        S(make(3).reshape(1, 3), 8),
        S(make(2, 3).T, n=5, dim=-2, norm="backward"),
        S(make(4).astype(F32 if make is arr else np.complex64)),
    ]
    if kind in ("", "i", "r", "ih"):
        samples += [S(make(1)), S(ints(4))]
    if kind in ("", "i"):
        samples.append(S(arr(3, 2)))  # a real tensor becomes complex
    bad = [
        Bad(S(make(3), 0), ArgumentError, rf"\[{one}\].*at least 1"),
        Bad(S(make(3), dim=2), DimError, rf"\[{one}\].*2"),
        Bad(S(make(3), norm="other"), ArgumentError, rf"\[{one}\] norm.*'other'"),
        Bad(S(make()), DimError, rf"\[{one}\] needs at least one dimension"),
        Bad(S(np.ones(3, np.float16)), DTypeError, rf"\[{one}\].*float16"),
    ]
    if kind in ("r", "ih"):
        bad.append(Bad(S(z(3)), DTypeError, rf"\[{one}\] expects a real tensor.*complex128"))
    op(
        one,
        lambda x, n=None, dim=-1, norm=None, kind=kind: getattr(np.fft, f"{kind}fft")(
            x, n, dim, norm
        ),
        samples,
        bad=bad,
        rtol=1e-6,
        method=False,
    )
    op(
        f"{one}2",
        lambda x, s=None, dim=(-2, -1), norm=None, kind=kind: over_axes(kind)(x, s, dim, norm),
        [S(make(2, 3)), S(make(2, 3, 4), (3, 3), (0, -1), "ortho"), S(make(3, 2), norm="forward")],
        bad=[Bad(S(make(3)), DimError, rf"\[{one}2\]")],
        method=False,
    )
    op(
        f"{one}n",
        over_axes(kind),
        [
            S(make(2, 3)),
            S(make(2, 2, 3), dim=(0, 2)),
            S(make(3, 2, 4), s=(3, 3), norm="ortho"),
            S(make(2, 5), s=(3,), dim=(0,)),
        ],
        bad=[
            Bad(S(make(2, 3), (1, 2, 3)), DimError, rf"\[{one}n\] got 3 sizes"),
            Bad(S(make(2, 3), (2,), (0, 1)), ArgumentError, rf"\[{one}n\].*as many sizes"),
        ],
        method=False,
    )

shifts = [S(arr(5)), S(arr(4, 3)), S(arr(4, 3), dim=1), S(ints(2, 3, 4), dim=(0, 2)), S(z(3))]
shifts += [S(arr(2, 5), dim=(1, -1))]
op("fft.fftshift", lambda x, dim=None: np.fft.fftshift(x, dim), shifts, method=False)
op("fft.ifftshift", lambda x, dim=None: np.fft.ifftshift(x, dim), shifts, method=False)
for name in ("fftfreq", "rfftfreq"):
    op(
        f"fft.{name}",
        getattr(np.fft, name),
        [S(1), S(4), S(5, 0.5), S(8, d=3.0)],
        rtol=1e-6,
        bad=[Bad(S(-1), ArgumentError, rf"\[fft.{name}\].*not be negative, got -1")],
    )


# Spectrograms --------------------------------------------------------------------------------
def np_window(window, win_length, n_fft):
    width = win_length or n_fft
    window = np.ones(width) if window is None else window
    left = (n_fft - width) // 2
    return np.pad(window, (left, n_fft - width - left))


def np_stft(
    x,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided=None,
    return_complex=None,
    align_to_window=None,
):
    hop = hop_length or n_fft // 4
    shaped = np_window(window, win_length, n_fft)
    if center:
        half = [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)]
        x = np.pad(x, half, pad_mode)
    rows = np.lib.stride_tricks.sliding_window_view(x, n_fft, -1)[..., ::hop, :] * shaped
    whole = np.iscomplexobj(rows) if onesided is None else not onesided
    norm = "ortho" if normalized else None
    found = np.swapaxes((np.fft.fft if whole else np.fft.rfft)(rows, norm=norm), -1, -2)
    return found if return_complex in (True, None) else np.stack([found.real, found.imag], -1)


hann = 0.5 - 0.5 * np.cos(np.arange(4) * np.pi / 2)
op(
    "stft",
    np_stft,
    [
        S(arr(9), 4, return_complex=True),
        S(arr(2, 10), 4, 2, 4, Const(hann), normalized=True, return_complex=True),
        S(arr(10), 5, 2, 3, arr(3, seed=1), False, onesided=False, return_complex=True),
        S(arr(8), 4, 3, pad_mode="constant", return_complex=False),
        S(z(8), 4, 2, window=Const(hann)),
    ],
    bad=[
        Bad(S(arr(8), 4), ArgumentError, r"\[stft\] return_complex must be given"),
        Bad(S(arr(3), 4, center=False, return_complex=True), ShapeError, r"\[stft\] n_fft=4.*3"),
        Bad(S(arr(8), 4, 0, return_complex=True), ArgumentError, r"\[stft\].*hop_length=0"),
        Bad(S(arr(8), 4, window=arr(3), return_complex=True), ShapeError, r"\[stft\].*\(4,\)"),
        Bad(S(z(8), 4, onesided=True), ArgumentError, r"\[stft\] onesided=True needs a real"),
        Bad(S(arr(1, 2, 8), 4, return_complex=True), ShapeError, r"\[stft\].*\(1, 2, 8\)"),
    ],
)


def np_istft(
    x,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    normalized=False,
    onesided=None,
    length=None,
    return_complex=False,
):
    hop = hop_length or n_fft // 4
    shaped = np_window(window, win_length, n_fft)
    norm = "ortho" if normalized else None
    rows = np.swapaxes(x, -1, -2)
    half = rows[..., : n_fft // 2 + 1]
    rows = np.fft.ifft(rows, norm=norm) if return_complex else np.fft.irfft(half, n_fft, norm=norm)
    count = rows.shape[-2]
    whole = n_fft + hop * (count - 1)
    total, envelope = np.zeros((*x.shape[:-2], whole), rows.dtype), np.zeros(whole)
    for i in range(count):
        total[..., i * hop : i * hop + n_fft] += rows[..., i, :] * shaped
        envelope[i * hop : i * hop + n_fft] += shaped**2
    start = n_fft // 2 if center else 0
    end = whole - start if length is None else start + length
    return total[..., start:end] / envelope[start:end]


op(
    "istft",
    np_istft,
    [
        S(z(3, 4), 4),
        S(z(2, 3, 5), 4, 2, window=Const(hann), length=7, normalized=True),
        S(z(3, 3), 5, 2, 3, arr(3, seed=1) + 3, length=5),
        S(z(4, 3), 4, 2, onesided=False),
        S(z(4, 3), 4, 2, center=False, return_complex=True),
    ],
    bad=[
        Bad(S(arr(3, 4), 4), DTypeError, r"\[istft\] expects complex.*float64"),
        Bad(S(z(4, 4), 8), ShapeError, r"\[istft\] n_fft=8.*needs 5"),
        Bad(S(z(3, 4), 4, 5), ArgumentError, r"\[istft\].*hop_length <= win_length"),
        Bad(S(z(3, 4), 4, window=Const(np.zeros(4))), ArgumentError, r"\[istft\].*gaps"),
        Bad(S(z(3, 4), 4, return_complex=True), ArgumentError, r"\[istft\] return_complex"),
    ],
)
