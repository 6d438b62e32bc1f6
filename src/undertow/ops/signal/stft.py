"""Spectrograms: the Fourier transforms of the windows of a signal, and the signal again."""

from __future__ import annotations

import warnings
from typing import Any

from ...core.dispatch import apply
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError, ShapeError
from ...shapes import as_int
from ..create.creation import ones
from ..elementwise.comparison import holds
from ..shape.padding import pad
from ..shape.strided import fold_op


def _sizes(op: str, n_fft: Any, hop: Any, win: Any) -> tuple[int, int, int]:
    """n_fft, hop_length and win_length, with their defaults."""
    size = as_int(op, "n_fft", n_fft)
    step = size // 4 if hop is None else as_int(op, "hop_length", hop)
    width = size if win is None else as_int(op, "win_length", win)
    if size < 1 or step < 1 or not 0 < width <= size:
        raise ArgumentError(
            f"[{op}] expects hop_length > 0 and 0 < win_length <= n_fft, got hop_length={step}, "
            f"win_length={width} and n_fft={size}"
        )
    return size, step, width


def _window(op: str, window: Tensor | None, width: int, size: int, like: Tensor) -> Tensor | None:
    """The window in the middle of n_fft elements; None if it is all ones."""
    if window is None:
        if width == size:
            return None
        window = ones(width, dtype=like.real.dtype, device=like.device)
    if window.shape != (width,):
        raise ShapeError(
            f"[{op}] expects a window of shape ({width},), as win_length says, got {window.shape}"
        )
    left = (size - width) // 2
    return pad(window, [left, size - width - left]) if width < size else window


@function()
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The short-time Fourier transform: of a signal (time) or a batch of them, (frequency, frame).

    Frames of `n_fft` elements, every `hop_length` (a quarter of that), are multiplied by the
    `window` and transformed. With `center` the signal is first padded by half a frame on both
    sides. `onesided` leaves out what a real signal's spectrum has twice. `return_complex=False`
    gives real and imaginary parts as a last dimension.

    >>> import undertow as ut
    >>> x = ut.tensor([0.0, 1.0, 0.0, -1.0] * 4)
    >>> ut.stft(x, 4, window=ut.hann_window(4), return_complex=True).abs()[:, :3]
    tensor([[1., 1., 0.],
            [0., 1., 1.],
            [1., 1., 0.]])
    """
    from .fourier import run, transform

    if input.ndim not in (1, 2) or not (input.is_floating_point() or input.is_complex()):
        raise ShapeError(
            "[stft] expects a floating or complex signal of 1 or 2 dimensions, got "
            f"{input.dtype} of shape {input.shape}"
        )
    size, step, width = _sizes("stft", n_fft, hop_length, win_length)
    shaped = _window("stft", window, width, size, input)
    complex_input = input.is_complex() or (shaped is not None and shaped.is_complex())
    if return_complex is None and not complex_input:
        raise ArgumentError(
            "[stft] return_complex must be given for a real signal: True for complex numbers, "
            "False for a last dimension of two parts"
        )
    if center and align_to_window is not None:
        raise ArgumentError("[stft] align_to_window may only be set when center=False")
    half = not complex_input if onesided is None else bool(onesided)
    if half and complex_input:
        raise ArgumentError("[stft] onesided=True needs a real signal and window")
    x = input if input.ndim == 2 else input.unsqueeze(0)
    if center:
        x = pad(x.unsqueeze(0), [size // 2, size // 2], pad_mode).squeeze(0)
    elif align_to_window:
        x = pad(x, [(size - width) // 2] * 2)
    if x.shape[-1] < size:
        raise ShapeError(f"[stft] n_fft={size} is more than the signal has: {x.shape[-1]} elements")
    frames = x.unfold(-1, size, step)
    if shaped is not None:
        frames = frames * shaped
    norm = "ortho" if normalized else "backward"
    if half:
        found = run("real", frames, (2,), size, norm)
    else:
        found = transform("stft", "", frames, (2,), [None], norm)
    found = found.transpose(1, 2)
    if input.ndim == 1:
        found = found.squeeze(0)
    return found if return_complex or return_complex is None else _as_pairs(found)


def _as_pairs(x: Tensor) -> Tensor:
    from ..elementwise.complex_numbers import view_as_real

    return view_as_real(x)


@function()
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal of which `stft` with the same arguments gives `input`, or the nearest there is.

    Frames are transformed back, multiplied by the window and added; the sum is divided by that of
    the squared windows, which must nowhere be zero. `length` is that of the signal.

    >>> import undertow as ut
    >>> x = ut.arange(8.0)
    >>> ut.istft(ut.stft(x, 4, return_complex=True), 4)
    tensor([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    from .fourier import run

    if input.ndim not in (2, 3) or not input.is_complex():
        raise DTypeError(
            "[istft] expects complex numbers of shape (frequency, frame) or (batch, frequency, "
            f"frame), got {input.dtype} of shape {input.shape}"
        )
    size, step, width = _sizes("istft", n_fft, hop_length, win_length)
    if step > width:
        raise ArgumentError(
            f"[istft] expects hop_length <= win_length, got {step} and {width}: frames have gaps"
        )
    count = input.shape[-2]
    half = count != size if onesided is None else bool(onesided)
    if count != (size // 2 + 1 if half else size):
        raise ShapeError(
            f"[istft] n_fft={size} with onesided={half} needs {size // 2 + 1 if half else size} "
            f"frequencies, got input of shape {input.shape}"
        )
    if return_complex and half:
        raise ArgumentError("[istft] return_complex=True needs a spectrum with onesided=False")
    spectrum = (input if input.ndim == 3 else input.unsqueeze(0)).transpose(1, 2)
    shaped = _window("istft", window, width, size, input)
    if shaped is None:
        shaped = ones(size, dtype=input.real.dtype, device=input.device)
    if shaped.is_complex() and not return_complex:
        raise ArgumentError("[istft] a complex window needs return_complex=True")
    norm = "ortho" if normalized else "backward"
    if return_complex:
        frames = run("inverse", spectrum, (2,), size, norm)
    else:  # of a whole spectrum the other half is not looked at
        frames = run("to_real", spectrum[..., : size // 2 + 1], (2,), size, norm)
    batch, rows = frames.shape[:2]
    whole = size + step * (rows - 1)
    added: Tensor = apply(fold_op, (frames * shaped,), ((batch, whole), 1, size, step))
    squares = (shaped * shaped).expand(1, rows, size)
    envelope: Tensor = apply(fold_op, (squares,), ((1, whole), 1, size, step))
    start = size // 2 if center else 0
    end = whole - start
    if length is not None:
        end = start + as_int("istft", "length", length)
    shown = slice(start, min(end, whole))
    added, envelope = added[:, shown], envelope[:, shown]
    if envelope.numel() and not holds(envelope.detach().abs() > 1e-11):
        raise ArgumentError(
            "[istft] the windows leave gaps: somewhere the sum of their squares is zero, so that "
            "the signal there is lost"
        )
    signal = added / envelope
    if end > whole:
        warnings.warn(
            f"[istft] length={length} is more than the {whole - start} elements of the frames: "
            "zeros follow",
            stacklevel=2,
        )
        signal = pad(signal, [0, end - whole])
    return signal if input.ndim == 3 else signal.squeeze(0)
