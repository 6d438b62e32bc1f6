"""Fake quantisation: the gradient of what is within the range, and what is not a number."""

from __future__ import annotations

import math

import undertow as ut


def test_gradients_pass_where_the_grid_has_not_ended() -> None:
    """At the last step, too; and beside values that are not finite."""
    x = ut.tensor([-3.0, -0.9, 0.2, 1.8, 2.2, 9.0, math.inf, -math.inf], requires_grad=True)
    y = ut.fake_quantize_per_tensor_affine(x, 0.5, 1, -1, 5)
    assert y.tolist() == [-1.0, -1.0, 0.0, 2.0, 2.0, 2.0, 2.0, -1.0]
    y.backward(ut.arange(1.0, 9.0))
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 2.0, 3.0, 4.0, 5.0, 0.0, 0.0, 0.0]


def test_channels_and_nan() -> None:
    x = ut.tensor([[0.3, math.nan], [0.3, 100.0]], requires_grad=True)
    scale, zero = ut.tensor([0.1, 1.0]), ut.tensor([0, 2], dtype=ut.int32)
    y = ut.fake_quantize_per_channel_affine(x, scale, zero, 0, -8, 7)
    assert ut.isnan(y[0, 1])
    assert y[1].tolist() == [0.0, 5.0]
    y[:, 0].sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[1.0, 0.0], [1.0, 0.0]]


def test_parameters_may_be_tensors() -> None:
    x = ut.tensor([0.26, 9.0])
    scale, zero = ut.tensor(0.25), ut.tensor(1, dtype=ut.int32)
    found = ut.fake_quantize_per_tensor_affine(x, scale, zero, 0, 7)
    assert found.tolist() == [0.25, 1.5]
    half = ut.fake_quantize_per_tensor_affine(x.half(), scale, zero, 0, 7)
    assert half.dtype is ut.float16


def test_native_dropout() -> None:
    ut.manual_seed(0)
    x = ut.full((1000,), 3.0, requires_grad=True)
    y, kept = ut.native_dropout(x, 0.25, True)
    assert 680 < int(kept.sum()) < 820
    assert y.tolist() == [4.0 if k else 0.0 for k in kept.tolist()]
    assert not ut.native_dropout(x, 1.0, True)[0].any()
    assert not ut.native_dropout(x, 1.0, None)[1].any()
