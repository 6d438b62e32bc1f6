"""Observers and fake quantisers beside torch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.conformance, pytest.mark.filterwarnings("ignore")]
OBSERVERS = [
    ("MinMaxObserver", {}),
    ("MinMaxObserver", {"reduce_range": True}),
    ("MinMaxObserver", {"dtype": "qint8", "qscheme": "per_tensor_symmetric"}),
    ("MinMaxObserver", {"dtype": "quint8", "qscheme": "per_tensor_symmetric"}),
    ("MinMaxObserver", {"quant_min": 0, "quant_max": 15}),
    ("MovingAverageMinMaxObserver", {"averaging_constant": 0.1}),
    ("PerChannelMinMaxObserver", {"ch_axis": 1}),
    ("PerChannelMinMaxObserver", {"dtype": "qint8", "qscheme": "per_channel_symmetric"}),
    ("MovingAveragePerChannelMinMaxObserver", {"averaging_constant": 0.2}),
]


def options(m: Any, given: dict[str, Any]) -> dict[str, Any]:
    return {k: getattr(m, v) if isinstance(v, str) else v for k, v in given.items()}


@pytest.mark.parametrize("name, given", OBSERVERS)
def test_observers(name: str, given: dict[str, Any]) -> None:
    found = []
    for m in (ut, torch):
        rng = np.random.default_rng(0)
        observer = getattr(m.ao.quantization, name)(**options(m, given))
        unseen = [t.tolist() for t in observer.calculate_qparams()] if "ch_axis" in given else []
        for _ in range(3):
            observer(m.tensor(rng.standard_normal((4, 5)).astype(np.float32)))
        scale, zero = observer.calculate_qparams()
        found.append((scale.tolist(), zero.tolist(), observer.min_val.tolist()))
        assert unseen is not None
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-6)
    assert found[0][1] == found[1][1]
    np.testing.assert_allclose(found[0][2], found[1][2], rtol=1e-6)


# Not the fused ones of torch's default configuration, whose kernel has scales of its own.
@pytest.mark.parametrize(
    "which",
    [
        "default_fake_quant",
        "default_weight_fake_quant",
        "default_per_channel_weight_fake_quant",
        "FakeQuantize",
    ],
)
def test_fake_quantisers(which: str) -> None:
    found = []
    for m in (ut, torch):
        rng = np.random.default_rng(0)
        module = getattr(m.ao.quantization, which)()
        for _ in range(3):
            x = m.tensor(rng.standard_normal((4, 5)).astype(np.float32), requires_grad=True)
            out = module(x)
        (out * out).sum().backward()
        found.append((out.detach().numpy(), x.grad.numpy(), module.scale.numpy()))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
