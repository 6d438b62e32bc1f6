"""Layers in evaluation that are computed as one; see Note [fused evaluation]."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow import nn
from undertow.errors import ShapeError
from undertow.nn.modules import evaluation

CONVOLUTIONS = {1: (nn.Conv1d, nn.BatchNorm1d), 2: (nn.Conv2d, nn.BatchNorm2d)}
CONVOLUTIONS[3] = (nn.Conv3d, nn.BatchNorm3d)  # type: ignore[assignment]


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was computed as one: whether with a norm, and whether with a ReLU."""
    found: list[Any] = []
    as_one = evaluation._as_one

    def watched(layer: Any, norm: Any, relu: bool, x: ut.Tensor) -> ut.Tensor:
        found.append((norm is not None, relu))
        return as_one(layer, norm, relu, x)

    monkeypatch.setattr(evaluation, "_as_one", watched)
    return found


def block(rank: int, bias: bool = True, affine: bool = True, **given: Any) -> nn.Sequential:
    """A convolution, a norm that has seen something, and a ReLU."""
    ut.manual_seed(rank)
    conv, norm = CONVOLUTIONS[rank]
    found = nn.Sequential(conv(4, 6, 3, bias=bias, **given), norm(6, affine=affine), nn.ReLU())
    with ut.no_grad():
        for t in [*found[1].parameters(), found[1].running_mean, found[1].running_var]:
            t.copy_(ut.rand(6) + 0.5)
    return found.eval()


def data(rank: int, batch: int = 3) -> ut.Tensor:
    rng = np.random.default_rng(0)
    sizes = {1: (60,), 2: (9, 11), 3: (6, 7, 8)}[rank]
    return ut.tensor(rng.standard_normal((batch, 4, *sizes)), dtype=ut.float32)


def one_by_one(model: nn.Sequential, x: ut.Tensor) -> ut.Tensor:
    for module in model:
        x = module(x)
    return x


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("affine", [False, True])
def test_values(rank: int, bias: bool, affine: bool, fused: list[Any]) -> None:
    model, x = block(rank, bias, affine, padding="same", padding_mode="reflect"), data(rank)
    with ut.no_grad():
        found = model(x)
        assert fused == [(True, True)]
        right = one_by_one(model, x)
        assert float((model[:2](x).relu() - right).abs().max()) < 1e-5
        assert fused[1:] == [(True, False)]
    assert float((found - right).abs().max()) < 1e-5
    assert not found.requires_grad


def test_an_element_has_the_same_bits_in_every_batch(fused: list[Any]) -> None:
    ut.manual_seed(0)
    model = nn.Sequential(nn.Conv1d(32, 32, 3), nn.BatchNorm1d(32), nn.ReLU()).eval()
    x = ut.randn(9, 32, 128)
    with ut.no_grad():
        assert bool((model(x)[7:8] == model(x[7:8])).all())
    assert fused == [(True, True)] * 2


def test_a_large_weight_does_not_take_in_a_norm(fused: list[Any]) -> None:
    """But a ReLU behind it costs nothing."""
    model = nn.Sequential(nn.Conv1d(64, 6, 3), nn.BatchNorm1d(6), nn.Conv1d(6, 4, 1), nn.ReLU())
    with ut.no_grad():
        model.eval()(ut.ones(1, 64, 8))
    assert fused == [(False, True)]


def test_what_is_seen_or_differentiated_is_not_fused(fused: list[Any]) -> None:
    model, x = block(1), data(1)
    seen: list[Any] = []
    model(x).sum().backward()
    assert model[0].weight.grad is not None
    with ut.no_grad():
        handle = model[1].register_forward_hook(lambda *given: seen.append(given[0]))
        model(x)
        assert seen == [model[1]]
        handle.remove()
        model.train()(x)
        model.eval()[1].train()
        assert fused == []
        model(x)
    assert fused == []


def test_subclasses_and_autocast_are_not_fused(fused: list[Any]) -> None:
    class Mine(nn.BatchNorm1d):
        def forward(self, input: ut.Tensor) -> ut.Tensor:
            return input * 0

    model, x = block(1), data(1)
    with ut.no_grad():
        with ut.autocast("cpu", dtype=ut.bfloat16):
            assert model(x).dtype is ut.bfloat16
        model[1] = Mine(6).eval()
        assert not bool(model(x).any())
    assert fused == []


def test_a_class_that_was_changed_is_not_fused(
    fused: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As libraries that watch or replace layers do."""
    model, x = block(1), data(1)
    monkeypatch.setattr(nn.ReLU, "forward", lambda self, x: x * 0 + 7)
    with ut.no_grad():
        assert model(x).unique().tolist() == [7.0]
    assert fused == [(True, False)]


def test_a_norm_without_eps_is_not_taken_in(fused: list[Any]) -> None:
    model, x = block(1), data(1)
    model[1].eps = 0.0
    with ut.no_grad():
        model(x)
    assert fused == []


def test_an_error_names_the_layer() -> None:
    model = block(1)
    with ut.no_grad(), pytest.raises(ShapeError, match=r"input channels.*\n.*in 0: Conv1d\(4, 6"):
        model(ut.ones(1, 3, 9))


def test_models() -> None:
    """The library's own models agree with what they compute layer by layer."""
    ut.manual_seed(0)
    x = ut.randn(2, 1, 40)
    for make in (ut.models.FCN, ut.models.ResNet1d):
        model = make(1, 3).eval()
        right = model(x).detach()
        with ut.no_grad():
            assert float((model(x) - right).abs().max()) < 1e-5
