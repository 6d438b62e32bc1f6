"""ctc_loss against torch, behind a log_softmax, where torch's gradient is the derivative."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
from undertow.core.tensor import wrap

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_random_cases(seed: int, reduction: str) -> None:
    """Repeated labels, empty targets, short inputs, infeasible targets, either layout."""
    random = np.random.default_rng(seed)
    steps, batch, classes = random.integers(1, 30), random.integers(1, 6), random.integers(2, 6)
    longest = random.integers(0, 12)
    blank = int(random.integers(classes))
    logits = random.standard_normal((steps, batch, classes)) * 3
    others = [c for c in range(classes) if c != blank]
    targets = random.choice(others, (batch, longest))
    frames = random.integers(1, steps + 1, batch)
    sizes = random.integers(0, longest + 1, batch)
    if seed % 2:
        targets = np.concatenate([row[:n] for row, n in zip(targets, sizes, strict=True)])
    zero_infinity = seed % 3 > 0

    x = wrap(logits.copy()).requires_grad_()
    found = ut.nn.functional.ctc_loss(
        ut.log_softmax(x, -1),
        wrap(targets),
        frames.tolist(),
        wrap(sizes),
        blank,
        reduction,
        zero_infinity,
    )
    y = torch.from_numpy(logits.copy()).requires_grad_()
    expected = torch.nn.functional.ctc_loss(
        torch.log_softmax(y, -1),
        torch.from_numpy(targets),
        torch.from_numpy(frames),
        torch.from_numpy(sizes),
        blank,
        reduction,
        zero_infinity,
    )
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-9)
    seed_grad = random.standard_normal(expected.shape)
    (grad,) = ut.autograd.grad(found, x, wrap(np.asarray(seed_grad)))
    (tgrad,) = torch.autograd.grad(expected, y, torch.from_numpy(np.asarray(seed_grad)))
    # Where a target does not fit and the loss is infinite, torch's gradient is NaN, ours zero.
    wanted = np.nan_to_num(tgrad.numpy(), nan=0.0)
    np.testing.assert_allclose(grad.numpy(), wanted, rtol=1e-7, atol=1e-10)
