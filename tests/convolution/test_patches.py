"""Convolutions whose stride is the kernel: products on patches, their values and their bits."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
import undertow.nn.functional as F
from undertow.backends.cpu.convolution.choose import only

# batch, channels, outputs, size, kernel, groups, and elements that no window sees
CASES = [
    (3, 2, 20, (170,), (10,), 1, (4,)),
    (2, 3, 18, (4, 4), (16, 16), 1, (0, 0)),
    (2, 4, 34, (3, 6), (5, 8), 2, (1, 7)),
    (1, 2, 17, (2, 3, 4), (1, 2, 9), 1, (0, 1, 0)),
]


@pytest.fixture(autouse=True)
def by_patches():
    with only("patches"):
        yield


def made(case, transposed, dtype=np.float32):
    n, c, o, counts, kernel, groups, rest = case
    rng = np.random.default_rng(3)
    size = [p * k + r for p, k, r in zip(counts, kernel, rest, strict=True)]
    shapes = [(n, c, *size), (o, c // groups, *kernel), (o,)]
    if transposed:
        shapes = [(n, o, *counts), (o, c // groups, *kernel), (c,)]
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def gradients(case, arrays, transposed, dtype=ut.float32, device="cpu"):
    """The result and all gradients."""
    *_, kernel, groups, rest = case
    tensors = [ut.tensor(a, dtype=dtype, device=device).requires_grad_() for a in arrays]
    steps = {"stride": kernel, "groups": groups}
    if transposed:
        steps["output_padding"] = tuple([min(r, k - 1) for r, k in zip(rest, kernel, strict=True)])
    name = f"conv{'_transpose' * transposed}{len(kernel)}d"
    out = getattr(F, name)(*tensors, **steps)
    seed = np.random.default_rng(9).standard_normal(out.shape).astype(np.float32)
    return [
        out.detach(),
        *ut.autograd.grad(out, tensors, ut.tensor(seed, dtype=dtype, device=device)),
    ]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_values(case, transposed):
    """As the reference device has them in float64, with the same bits by any number of threads."""
    arrays = made(case, transposed)
    found = gradients(case, arrays, transposed)
    expected = gradients(case, arrays, transposed, ut.float64, "reference")
    for mine, right in zip(found, expected, strict=True):
        right = right.cpu()
        assert float((mine - right).abs().max()) <= 5e-6 * float(right.abs().max())
    limit = ut.get_num_threads()
    try:
        ut.set_num_threads(1 if limit > 1 else 2)
        again = gradients(case, arrays, transposed)
    finally:
        ut.set_num_threads(limit)
    assert all(bool((a == b).all()) for a, b in zip(found, again, strict=True))
    last = gradients(case, [arrays[0][-1:], *arrays[1:]], transposed)
    assert bool((last[0] == found[0][-1:]).all())


def test_layouts_and_relu():
    """Arrays that are no one piece, and what follows a result in evaluation."""
    x, w, b = map(ut.from_numpy, made(CASES[1], False))
    turned = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    other = w.flip(3).contiguous().flip(3)
    right = F.conv2d(x, w, b, stride=16)
    assert bool((F.conv2d(turned, other, b, stride=16) == right).all())
    assert bool((F.conv2d(x, w, b, stride=16, activation="relu") == right.relu()).all())
    wide = F.conv2d(x.double(), w.double(), b.double(), stride=16)
    assert float((wide - right).abs().max()) < 1e-4


def test_what_is_not_finite_stays_in_its_patch():
    x, w, b = map(ut.from_numpy, made(CASES[1], False))
    x[0, 1, 17, 3] = float("inf")
    found = F.conv2d(x, w, b, stride=16).isfinite()
    assert not bool(found[0, :, 1, 0].any())
    assert int(found.logical_not().sum()) == found.shape[1]
