"""Transforms and spectrograms beyond the op table: identities, edges, precision, devices."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("size", [1, 2, 7, 12, 97, 128])
def test_inverses_give_back(size: int, norm: str) -> None:
    x = ut.from_numpy(np.random.default_rng(size).standard_normal((3, size)))
    z = ut.complex(x, x.flip(0))
    for there, back, of in (
        (ut.fft.fft, ut.fft.ifft, z),
        (ut.fft.fftn, ut.fft.ifftn, z),
        (ut.fft.fft2, ut.fft.ifft2, z),
    ):
        assert ut.allclose(back(there(of, norm=norm), norm=norm), of)
    for there, back in ((ut.fft.rfft, ut.fft.irfft), (ut.fft.ihfft, ut.fft.hfft)):
        assert ut.allclose(back(there(x, norm=norm), size, norm=norm), x)
    s = (3, size)
    assert ut.allclose(ut.fft.irfftn(ut.fft.rfftn(x, norm=norm), s, norm=norm), x)
    assert ut.allclose(ut.fft.hfftn(ut.fft.ihfftn(x, norm=norm), s, norm=norm), x)


def test_energy_is_kept() -> None:
    """Parseval's theorem."""
    x = ut.from_numpy(np.random.default_rng(0).standard_normal((4, 30)))
    spectrum = ut.fft.fft(x, norm="ortho")
    assert ut.allclose(spectrum.abs().square().sum(), x.square().sum())


@pytest.mark.parametrize("kind", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_single_precision_and_empty_batches(kind: str) -> None:
    real = kind in ("rfft", "ihfft")
    x = ut.ones(0, 4, dtype=ut.float32 if real else ut.complex64)
    found = getattr(ut.fft, kind)(x)
    assert found.shape[0] == 0
    assert found.dtype is (ut.float32 if kind in ("irfft", "hfft") else ut.complex64)
    assert not found.requires_grad


def test_gradient_of_a_real_loss_descends() -> None:
    """A filter in the frequency domain is learnt by its gradient."""
    x = ut.from_numpy(np.random.default_rng(1).standard_normal(16))
    target = ut.roll(x, 3)
    filter_ = ut.zeros(9, dtype=ut.complex128, requires_grad=True)
    losses = []
    for _ in range(200):
        loss = (ut.fft.irfft(ut.fft.rfft(x) * filter_, 16) - target).square().sum()
        losses.append(loss.item())
        (g,) = ut.autograd.grad(loss, filter_)
        filter_ = (filter_ - 0.05 * g).detach().requires_grad_()
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.02 * losses[0]


def test_the_reference_device_transforms() -> None:
    x = ut.arange(6.0, device="reference", requires_grad=True)
    found = ut.fft.rfft(x)
    assert str(found.device) == "reference"
    found.abs().square().sum().backward()
    expected = ut.arange(6.0, requires_grad=True)
    ut.fft.rfft(expected).abs().square().sum().backward()
    assert ut.allclose(x.grad.cpu(), expected.grad)


@pytest.mark.parametrize("size, hop, width", [(8, 2, 8), (8, 4, 8), (9, 3, 7), (16, 4, 12)])
@pytest.mark.parametrize("center", [True, False])
def test_istft_reconstructs(size: int, hop: int, width: int, center: bool) -> None:
    x = ut.from_numpy(np.random.default_rng(2).standard_normal((2, 61)))
    window = ut.signal.windows.hamming(width, sym=False, dtype=ut.float64)
    how = {"window": window, "center": center}
    if not center and width < size:
        pytest.skip("the padding of the window leaves the first elements to no frame")
    spectrum = ut.stft(x, size, hop, width, return_complex=True, **how)
    found = ut.istft(spectrum, size, hop, width, **how)
    n = found.shape[1]
    assert n > 40
    assert ut.allclose(found, x[:, :n])


def test_istft_fills_up_with_zeros() -> None:
    x = ut.arange(8.0)
    with pytest.warns(UserWarning, match="zeros follow"):
        found = ut.istft(ut.stft(x, 4, return_complex=True), 4, length=12)
    assert ut.allclose(found[:8], x)
    assert found.shape == (12,)


# Generated kernels, against NumPy in double precision -----------------------------------------
@pytest.mark.parametrize(
    "shape, dims",
    [
        ((3, 16), (1,)),  # two passes
        ((5, 1024), (1,)),  # radices 8 and 4
        ((2, 64, 21), (1,)),  # columns, some of them left over
        ((24, 32), (0, 1)),  # one of the dims by NumPy
        ((1 << 14,), (0,)),  # a long row in two steps
        ((4, 17), (1,)),  # no kernel
    ],
)
@pytest.mark.parametrize("single", [False, True])
def test_kernels(shape: tuple[int, ...], dims: tuple[int, ...], single: bool) -> None:
    from undertow.backends.cpu.forms.fourier import run_fft

    random = np.random.default_rng(0)
    x = random.standard_normal(shape) + 1j * random.standard_normal(shape)
    tolerance = 1e-6 if single else 1e-14
    given = x.astype(np.complex64) if single else x
    real = given.real.copy()
    last = shape[dims[-1]]
    for norm in ("backward", "ortho"):
        for kind, expected, of in (
            ("forward", np.fft.fftn(x, axes=dims, norm=norm), given),
            ("inverse", np.fft.ifftn(x, axes=dims, norm=norm), given),
            ("real", np.fft.rfftn(x.real, axes=dims, norm=norm), real),
            ("to_real", np.fft.irfftn(x, (*shape[:1], last)[-len(dims) :], dims, norm=norm), None),
        ):
            if of is None:  # as many frequencies as give `last` numbers again
                of = given[..., : last // 2 + 1].copy() if dims[-1] == len(shape) - 1 else None
            if of is None:
                continue
            found = run_fft(kind, of, dims, last, norm)
            assert found.shape == expected.shape
            assert found.dtype.itemsize * (2 if single else 1) == expected.dtype.itemsize
            assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max(), kind


def test_no_dims_are_none() -> None:
    """`dim=[]` transformed everything."""
    x = ut.arange(4.0).reshape(2, 2)
    for name in ("fftn", "ifftn", "fft2", "ifft2"):
        found = getattr(ut.fft, name)(x, dim=[])
        assert found.dtype == ut.complex64
        assert found.real.tolist() == x.tolist()
    for name in ("rfftn", "irfftn", "hfftn", "ihfftn", "rfft2", "irfft2"):
        with pytest.raises(IndexError, match="at least one dimension"):
            getattr(ut.fft, name)(x, dim=())
    assert ut.fft.fftshift(x, dim=[]).tolist() == x.tolist()


def test_no_frequencies_and_dims_twice() -> None:
    """As in torch: of no elements there are none, or the mean; a shift may be made twice."""
    assert ut.fft.fftfreq(0).shape == (0,)
    assert ut.fft.rfftfreq(0).isnan().tolist() == [True]
    assert ut.fft.fftshift(ut.arange(5), dim=(0, -1)).tolist() == [1, 2, 3, 4, 0]
