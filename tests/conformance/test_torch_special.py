"""What the op table does not compare with torch: functions that are less accurate there, names."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance

# torch computes these to some 1e-6 also in double precision.
ROUGH = {
    "bessel_j0": (-12.0, 12.0),
    "bessel_j1": (-12.0, 12.0),
    "bessel_y0": (0.1, 12.0),
    "bessel_y1": (0.1, 12.0),
    "airy_ai": (-8.0, 8.0),
    "spherical_bessel_j0": (-9.0, 9.0),
    "modified_bessel_i0": (-9.0, 9.0),
    "modified_bessel_i1": (-9.0, 9.0),
    "modified_bessel_k0": (0.1, 9.0),
    "modified_bessel_k1": (0.1, 9.0),
    "scaled_modified_bessel_k0": (0.1, 9.0),
    "scaled_modified_bessel_k1": (0.1, 9.0),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("name", ROUGH)
def test_values(name: str, dtype: str) -> None:
    """Within torch's own errors, and in its dtype."""
    low, high = ROUGH[name]
    x = np.linspace(low, high, 101).astype(dtype)
    x = x[x != 0]
    found = getattr(ut.special, name)(ut.from_numpy(x))
    expected = getattr(torch.special, name)(torch.from_numpy(x))
    assert found.dtype.name == str(expected.dtype).removeprefix("torch.")
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("space", ["special", "fft", "signal.windows"])
def test_every_name_is_there(space: str) -> None:
    """All that torch lists."""
    ours, theirs = ut, torch
    for part in space.split("."):
        ours, theirs = getattr(ours, part), getattr(theirs, part)
    names = set(theirs.__all__) - {"Tensor"}
    assert names <= set(ours.__all__)
    assert [n for n in names if not callable(getattr(ours, n))] == []


def test_stft_aligned_to_the_window() -> None:
    """Without centre, and with a window that is shorter than a frame."""
    x = np.sin(np.arange(40.0) ** 2)
    for align in (None, False, True):
        how = {"center": False, "return_complex": True, "align_to_window": align}
        found = ut.stft(ut.from_numpy(x), 8, 3, 4, ut.hann_window(4, dtype=ut.float64), **how)
        window = torch.hann_window(4, dtype=torch.float64)
        expected = torch.stft(torch.from_numpy(x), 8, 3, 4, window, **how)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-12)


@pytest.mark.filterwarnings("ignore:stft with return_complex=False")
@pytest.mark.parametrize("width", [None, 5, 4])
@pytest.mark.parametrize("size", [7, 8])
@pytest.mark.parametrize(
    ("center", "pad_mode", "onesided", "normalized"),
    [
        (True, "reflect", None, False),
        (True, "constant", True, True),
        (True, "replicate", False, False),
        (True, "circular", True, False),
        (False, "reflect", None, True),
        (False, "reflect", False, False),
    ],
)
def test_stft_and_istft(
    size: int,
    width: int | None,
    center: bool,
    pad_mode: str,
    onesided: bool | None,
    normalized: bool,
) -> None:
    """Odd and even frames, shorter windows, every way to pad, half spectra and whole ones."""
    rng = np.random.default_rng(size)
    x = rng.standard_normal((2, 37))
    window = rng.uniform(0.5, 1.5, width or size)
    how = {"center": center, "normalized": normalized, "onesided": onesided}

    def both(module, x):
        given = (size, 2, width, module.from_numpy(window))
        signal = module.from_numpy(x)
        results = [
            module.stft(signal, *given, pad_mode=pad_mode, return_complex=as_complex, **how)
            for as_complex in (True, False)
        ]
        results.append(module.stft(signal + 0j, *given, center, pad_mode, normalized))
        if center or not width:
            results.append(module.istft(results[0], *given, **how))
            results.append(module.istft(results[0], *given, length=30, **how))
        else:  # no window covers the ends
            with pytest.raises(RuntimeError):
                module.istft(results[0], *given, **how)
        return [t.numpy() for t in results]

    for signal in (x, x[0]):
        for found, expected in zip(both(ut, signal), both(torch, signal), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, atol=1e-12)
