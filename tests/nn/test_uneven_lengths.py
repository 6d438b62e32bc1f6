"""Series of uneven lengths: what stands in the padding never influences a result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.errors import ShapeError
from undertow.models import MODELS, Classifier
from undertow.nn import functional as F

every = pytest.mark.parametrize("name", MODELS)
LENGTHS = (5, 12, 2, 9)


def padded(longest: int, junk: float) -> Any:
    """The same four series in an array of this length, with `junk` where they have ended."""
    random = np.random.default_rng(0)
    values = np.full((len(LENGTHS), 2, longest), junk, np.float32)
    for i, length in enumerate(LENGTHS):
        values[i, :, :length] = random.normal(-1, 1, (2, length))  # negative: zeros would be maxima
    return ut.from_numpy(values)


def model_of(name: str) -> Classifier:
    ut.manual_seed(0)
    model = MODELS[name](2, 3)
    for module in model.modules():
        if isinstance(module, ut.nn.BatchNorm1d):  # so that norms turn zeros into something
            ut.nn.init.normal_(module.bias)
            ut.nn.init.normal_(module.running_mean)
    return model


@every
def test_a_series_has_the_same_scores_alone_and_in_a_batch(name: str) -> None:
    model = model_of(name).eval()
    together = model(padded(12, 7.0), ut.tensor(LENGTHS)).detach().numpy()
    maps = model.activation_maps(padded(12, 7.0), ut.tensor(LENGTHS)).detach().numpy()
    for i, length in enumerate(LENGTHS):
        alone = padded(12, 0.0)[i : i + 1, :, :length]
        np.testing.assert_allclose(together[i], model(alone).detach()[0], rtol=1e-4, atol=1e-5)
        mine = model.activation_maps(alone).detach()[0]
        np.testing.assert_allclose(maps[i, :, :length], mine, rtol=1e-4, atol=1e-5)


@every
@pytest.mark.parametrize("longest, junk", [(12, 1e6), (12, float("nan")), (31, -3.0)])
def test_padding_changes_neither_loss_nor_gradients_nor_statistics(
    name: str, longest: int, junk: float
) -> None:
    """In training, where batch norms take the statistics of the batch."""
    found = []
    for values in (padded(12, 0.0), padded(longest, junk)):
        model = model_of(name)
        loss = F.cross_entropy(model(values, ut.tensor(LENGTHS)), ut.tensor([0, 1, 2, 0]))
        loss.backward()
        grads = {k: p.grad.numpy() for k, p in model.named_parameters() if p.grad is not None}
        found.append((loss.item(), grads, {k: b.numpy() for k, b in model.named_buffers()}))
    (loss, grads, buffers), (other, theirs, others) = found
    assert loss == pytest.approx(other, rel=1e-4)
    assert grads.keys() == dict(model.named_parameters()).keys()
    for key, value in grads.items():
        np.testing.assert_allclose(theirs[key], value, rtol=2e-2, atol=2e-4, err_msg=key)
    for key, value in buffers.items():
        np.testing.assert_allclose(others[key], value, rtol=1e-3, atol=1e-5, err_msg=key)


@every
def test_equal_lengths_are_no_lengths(name: str) -> None:
    x = ut.randn(4, 2, 10)
    for training in (True, False):
        plain, told = model_of(name).train(training), model_of(name).train(training)
        ours, theirs = plain(x).detach(), told(x, ut.full((4,), 10)).detach()
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


def test_lengths_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match=r"a length for each of 3 series, got lengths of shape"):
        MODELS["fcn"](1, 2)(ut.zeros(3, 1, 5), ut.tensor([5, 5]))
