"""Convolutions by shifted products: the values of windows, and nothing where it must not be."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
import undertow.nn.functional as F
from undertow.backends.cpu.convolution import choose, shifted

# batch, channels, outputs, size, kernel, padding, dilation, groups
CASES = [
    (2, 32, 24, (61,), (3,), (1,), (1,), 1),
    (3, 16, 8, (40,), (5,), (0,), (3,), 1),
    (1, 64, 12, (33,), (4,), (5,), (2,), 2),
    (2, 16, 16, (37, 29), (3, 3), (1, 1), (1, 1), 1),
    (2, 64, 64, (20, 41), (2, 4), (0, 2), (2, 1), 2),
    (1, 17, 5, (9, 50), (1, 3), (3, 0), (1, 2), 1),
]


@pytest.fixture
def by_shifts():
    with choose.only("shifted"):
        yield


def gradients(case, dtype, reference=False):
    """The result of a convolution and all its gradients."""
    n, c, o, size, kernel, padding, dilation, groups = case
    rng = np.random.default_rng(0)
    shapes = [(n, c, *size), (o, c // groups, *kernel), (o,)]
    device = "reference" if reference else "cpu"
    given = [
        ut.tensor(rng.standard_normal(s), dtype=dtype, device=device).requires_grad_()
        for s in shapes
    ]
    function = F.conv1d if len(size) == 1 else F.conv2d
    out = function(*given, padding=padding, dilation=dilation, groups=groups)
    seed = ut.tensor(rng.standard_normal(out.shape), dtype=dtype, device=device)
    return [out.detach(), *ut.autograd.grad(out, given, seed)]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("dtype", [ut.float32, ut.float64], ids=str)
def test_values(case, dtype):
    """As the reference device has them."""
    with choose.only("shifted"):
        found = gradients(case, dtype)
    for mine, right in zip(found, gradients(case, dtype, reference=True), strict=True):
        right = right.cpu()
        tolerance = (2e-5 if dtype is ut.float32 else 1e-13) * float(right.abs().max())
        assert float((mine - right).abs().max()) <= tolerance


@pytest.mark.parametrize("case", CASES[:1] + CASES[3:4], ids=str)
@pytest.mark.usefixtures("by_shifts")
def test_threads_and_batches_change_nothing(case):
    """The same bits for any number of threads, and for a batch of one."""
    limit = ut.get_num_threads()
    try:
        ut.set_num_threads(1)
        one = gradients(case, ut.float32)
        ut.set_num_threads(3)
        three = gradients(case, ut.float32)
    finally:
        ut.set_num_threads(limit)
    assert all(bool((a == b).all()) for a, b in zip(one, three, strict=True))
    n, c, o, size, kernel, padding, dilation, _ = case
    x, w = ut.randn(n, c, *size), ut.randn(o, c, *kernel)
    function = F.conv1d if len(size) == 1 else F.conv2d
    together = function(x, w, padding=padding, dilation=dilation)
    for i in range(n):
        alone = function(x[i : i + 1], w, padding=padding, dilation=dilation)
        assert bool((alone == together[i : i + 1]).all())


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.usefixtures("by_shifts")
def test_what_is_not_finite_stays_in_its_windows(value):
    """An element reaches the outputs and the gradients of weights that see it, and no others."""
    x = ut.randn(1, 16, 24, 30)
    x[0, 3, 10, 29] = value  # at the end of a row: the next row begins behind it
    w = ut.randn(16, 16, 3, 3).requires_grad_()
    out = F.conv2d(x, w)
    wrong = ~out.isfinite()
    assert bool(wrong[:, :, 8:11, 27:28].all())
    assert int(wrong.sum()) == 16 * 3
    (slope,) = ut.autograd.grad(out.sum(), w)
    bad = ~slope.isfinite()
    # Only windows that end in the last column meet it: the last tap of each row.
    assert bool(bad[:, 3, :, 2].all())
    assert int(bad.sum()) == 16 * 3


def test_far_taps_are_not_copied(monkeypatch):
    """Between them there would be gigabytes of zeros."""
    monkeypatch.setattr(shifted, "padded", None)
    x, w = ut.ones(1, 24, 50), ut.ones(24, 24, 2)
    y = ut.conv1d(x, w, padding=[(1 << 30, 0)], dilation=1 << 30)
    assert y.shape == x.shape
    assert y.unique().tolist() == [24]
