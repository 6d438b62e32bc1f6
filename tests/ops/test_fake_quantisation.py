"""Observers and fake quantisers: scales of what was seen, rounding with gradients, states."""

from __future__ import annotations

import pytest

import undertow as ut
from undertow.ao import quantization as q
from undertow.errors import ArgumentError, UnsupportedError


def test_observers() -> None:
    x = ut.tensor([[-1.0, 0.5], [2.0, 0.25]])
    seen = q.MinMaxObserver(dtype=ut.qint8, qscheme=ut.per_tensor_symmetric)
    assert seen(x) is x
    scale, zero = seen.calculate_qparams()
    assert scale.item() == pytest.approx(2 / 127.5)
    assert zero.item() == 0
    seen(ut.tensor([-8.0]))
    assert seen.min_val.item() == -8
    averaged = q.MovingAverageMinMaxObserver(averaging_constant=0.5)
    averaged(ut.tensor([0.0, 2.0]))
    averaged(ut.tensor([0.0, 4.0]))
    assert averaged.max_val.item() == 3
    channels = q.PerChannelMinMaxObserver(ch_axis=1)
    channels(x)
    assert channels.min_val.tolist() == [-1.0, 0.25]
    assert channels.calculate_qparams()[0].shape == (2,)
    assert q.MinMaxObserver().calculate_qparams()[0].tolist() == [1.0]  # nothing seen
    seen.reset_min_max_vals()
    assert seen.max_val.item() == float("-inf")
    with pytest.raises(UnsupportedError, match="schemes"):
        q.MinMaxObserver(qscheme=ut.per_channel_affine)
    with pytest.raises(ArgumentError, match="integers"):
        q.MinMaxObserver(dtype=ut.float32)


def test_fake_quantisers() -> None:
    module = q.FakeQuantize(quant_min=0, quant_max=3)
    x = ut.tensor([0.0, 0.4, 0.6, 3.0], requires_grad=True)
    module(x).sum().backward()
    assert x.grad.tolist() == [1, 1, 1, 1]
    module.disable_observer()
    assert module(ut.tensor([9.0])).item() == 3
    module.apply(q.disable_fake_quant)
    assert module(ut.tensor([9.5])).item() == 9.5
    weight = q.get_default_qat_qconfig().weight()
    rounded = weight(ut.tensor([[1.275, 0.3], [127.5, 0.3]]))
    ut.testing.assert_close(rounded, ut.tensor([[1.27, 0.3], [127.0, 0.0]]))
    other = q.get_default_qat_qconfig().weight()
    other.load_state_dict(weight.state_dict())
    other.apply(q.disable_observer)
    steps = (1 / weight.scale).round().clamp(max=127)
    ut.testing.assert_close(other(ut.ones(2, 1)).flatten(), weight.scale * steps)
    with pytest.raises(ArgumentError, match="backend"):
        q.get_default_qconfig("other")


def test_stubs_and_names() -> None:
    net = q.QuantWrapper(ut.nn.Linear(2, 2))
    x = ut.rand(3, 2)
    assert ut.equal(net(x), net.module(x))
    assert ut.quantization.QuantStub is q.QuantStub
    for name in ("quantize_dynamic", "convert", "prepare_qat"):
        with pytest.raises(UnsupportedError):
            getattr(q, name)(net)
