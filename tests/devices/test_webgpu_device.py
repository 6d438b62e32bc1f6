"""`device="webgpu"` as a user meets it: errors, the host, training, moves, what is printed."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import undertow as ut
import undertow.nn.functional as F
from undertow.backends.registry import backend_on
from undertow.kernel.groups.products import Tile

pytestmark = pytest.mark.webgpu


@pytest.fixture(scope="module", autouse=True)
def adapter() -> Any:
    pytest.importorskip("wgpu")
    if not ut.webgpu.is_available():
        pytest.skip("there is no WebGPU adapter here")
    return ut.webgpu.devices()[0]


def test_devices(adapter: Any) -> None:
    assert adapter.device == ut.device("webgpu:0")
    assert adapter.api in ("Vulkan", "Metal", "D3D12")
    assert adapter.limits["max-storage-buffers-per-shader-stage"] >= 8
    assert ut.webgpu.device_count() == len(ut.webgpu.devices())
    assert ut.ones(2, device="webgpu").device == ut.device("webgpu:0")
    with pytest.raises(ut.errors.DeviceError, match="no 'webgpu:77'; there are 'webgpu:0'"):
        ut.ones(2, device="webgpu:77")
    with pytest.raises(ut.errors.DeviceError, match="expects a device such as 'webgpu:0'"):
        ut.webgpu.synchronize("cpu")


@pytest.mark.parametrize("tile", [Tile(16, 16, depth=8), Tile(8, 8), Tile(2, 4, 4, 8, 8)])
def test_products_by_any_tile(tile: Tile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Larger and smaller than their groups, square or not, at edges, in each order of memory."""
    backend = backend_on("webgpu")
    monkeypatch.setattr(backend, "limits", replace(backend.limits, tiles=(tile,)))
    monkeypatch.setattr(backend.launcher, "plans", {})
    ut.manual_seed(0)
    a, b, c = ut.randn(2, 131, 37), ut.randn(37, 140), ut.randn(140)
    for left, right in ((a, b), (a.mT.contiguous().mT, b.T.contiguous().T)):
        found = left.to("webgpu") @ right.to("webgpu") + c.to("webgpu")
        np.testing.assert_allclose(found.cpu(), left @ right + c, rtol=1e-4, atol=1e-4)
    x, w = ut.randn(3, 9, 53), ut.randn(131, 9, 3)
    found = F.conv1d(x.to("webgpu"), w.to("webgpu"), stride=2, padding=4, dilation=2)
    expected = F.conv1d(x, w, stride=2, padding=4, dilation=2)
    np.testing.assert_allclose(found.cpu(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mask", ["causal", "bool"])
def test_attention_stores_no_scores(mask: str) -> None:
    """A launch for the forward, four for the gradients, in memory of queries, keys and values."""
    ut.manual_seed(0)
    q, k, v = (ut.randn(2, n, 2, 20).transpose(1, 2) for n in (70, 100, 100))  # not contiguous
    given = None
    if mask == "bool":
        given = ut.rand(2, 1, 70, 100) > 0.4
        given[:, :, 3] = False  # a query that may look nowhere
    g = ut.randn(2, 2, 70, 20)
    found = []
    for device in ("cpu", "webgpu"):
        inputs = [x.to(device).detach().requires_grad_() for x in (q, k, v)]
        own, by_out = None if given is None else given.to(device), g.to(device)
        before = ut.webgpu.stats("webgpu")["launches"]
        out = F.scaled_dot_product_attention(*inputs, own, is_causal=mask == "causal")
        if device == "webgpu":
            assert ut.webgpu.stats(device)["launches"] - before == 1
        out.backward(by_out)
        if device == "webgpu":
            assert ut.webgpu.stats(device)["launches"] - before == 5
        found.append([out.detach(), *[x.grad for x in inputs]])
    for expected, result in zip(*found, strict=True):
        np.testing.assert_allclose(result.cpu(), expected, rtol=1e-4, atol=1e-5)


def test_float64_and_complex_numbers_are_errors_that_name_the_fix() -> None:
    for make in (
        lambda: ut.ones(2, dtype=ut.float64, device="webgpu"),
        lambda: ut.ones(2, device="webgpu").double(),
        lambda: ut.ones(2, dtype=ut.complex64, device="webgpu"),
        lambda: ut.tensor([1.0], dtype=ut.float64).to("webgpu"),
        lambda: ut.empty(2, dtype=ut.complex64, device="webgpu"),
        lambda: ut.empty_strided((2,), (1,), dtype=ut.float64, device="webgpu"),
        lambda: ut.polar(*ut.ones(2, 3, device="webgpu")),
        lambda: ut.complex(*ut.ones(2, 3, device="webgpu")),
        lambda: ut.view_as_complex(ut.ones(3, 2, device="webgpu")),
        lambda: ut.ones(2, device="webgpu").view(ut.complex64),
        lambda: ut.ones(2, device="webgpu") * 1j,
        lambda: ut.fft.rfft(ut.ones(8, device="webgpu")),
        lambda: ut.linalg.eigvals(ut.eye(2, device="webgpu")),
        lambda: ut.linspace(0, 1, 3, dtype=ut.float64, device="webgpu"),
        lambda: ut.rand(2, dtype=ut.float64, device="webgpu"),
        lambda: ut.sum(ut.ones(2, device="webgpu"), 0, dtype=ut.float64),
    ):
        with pytest.raises(ut.errors.DTypeError, match=r"webgpu:0.*ut\.webgpu\.allow_host"):
            make()
    with pytest.raises(ut.errors.DTypeError, match=r"\[double\] no kernel on .*: float64.*'cpu'"):
        ut.ones(2, device="webgpu").double()
    assert (ut.ones(2, device="webgpu") * 2).tolist() == [2, 2]


def test_complex_numbers_by_the_host() -> None:
    """Complex results, their gradients and views of them, where the host is allowed."""
    ut.webgpu.allow_host()
    try:
        r = ut.tensor([1.0, 2.0], device="webgpu", requires_grad=True)
        z = ut.polar(r, r * 2)
        with pytest.warns(UserWarning, match="on the host"):
            (g,) = ut.autograd.grad((z * z).abs().sum(), r)
        assert z.dtype == ut.complex64
        assert z.device.type == "webgpu"
        np.testing.assert_allclose(g.cpu().numpy(), [2, 4], rtol=1e-5)
        np.testing.assert_allclose(
            z.detach().real.cpu().numpy(), [np.cos(2), 2 * np.cos(4)], rtol=1e-5
        )
    finally:
        ut.webgpu.allow_host(False)


def test_the_host_may_help() -> None:
    ut.webgpu.allow_host()
    try:
        x = ut.tensor([1.0, 2.0], dtype=ut.float64).to("webgpu")
        with pytest.warns(UserWarning, match="on the host"):
            y = (x * 3).exp()
        assert y.device.type == "webgpu"
        np.testing.assert_allclose(y.cpu().numpy(), np.exp([3.0, 6.0]), rtol=1e-15)
        assert ut.webgpu.stats()["host"] > 0
    finally:
        ut.webgpu.allow_host(False)


def test_out_of_memory_loses_nothing() -> None:
    x = ut.arange(1000, device="webgpu")
    with pytest.raises(ut.errors.OutOfMemoryError, match="bytes"):
        ut.zeros(1 << 20, 1 << 10, device="webgpu")
    assert x.sum().item() == 499500
    ut.webgpu.empty_cache()
    before = ut.webgpu.memory_allocated()
    y = ut.zeros(1 << 18, device="webgpu")
    assert ut.webgpu.memory_allocated() - before == 1 << 20
    del y
    assert ut.webgpu.memory_allocated() == before
    assert ut.webgpu.memory_reserved() >= before
    with pytest.raises(ut.errors.ArgumentError, match="more than 0"):
        ut.webgpu.set_memory_budget(0)


def test_default_devices() -> None:
    with ut.device("webgpu"):
        assert ut.rand(3).device.type == "webgpu"
        layer = ut.nn.Linear(2, 3)
        assert layer.weight.device.type == "webgpu"
        with ut.device("cpu"):
            assert ut.zeros(1).device.type == "cpu"
    assert ut.zeros(1).device.type == "cpu"


def test_moves_and_files(tmp_path: Any) -> None:
    model = ut.nn.Sequential(ut.nn.Linear(3, 4), ut.nn.BatchNorm1d(4)).to("webgpu")
    ut.save(model.state_dict(), tmp_path / "model.pt")
    found = ut.load(tmp_path / "model.pt")
    assert found["0.weight"].device.type == "webgpu"
    there = ut.load(tmp_path / "model.pt", map_location="cpu")
    assert there["0.weight"].tolist() == model[0].weight.tolist()
    again = pickle.loads(pickle.dumps(found["1.num_batches_tracked"]))
    assert again.device.type == "webgpu"
    assert again.dtype == ut.int64


def network() -> Any:
    return ut.nn.Sequential(
        ut.nn.Conv1d(2, 8, 5, padding=2),
        ut.nn.BatchNorm1d(8),
        ut.nn.ReLU(),
        ut.nn.Conv1d(8, 8, 3, stride=2, groups=8),
        ut.nn.GELU(),
        ut.nn.AdaptiveAvgPool1d(1),
        ut.nn.Flatten(),
        ut.nn.Dropout(0.1),
        ut.nn.Linear(8, 3),
    )


def losses(device: str, steps: int = 12) -> list[float]:
    ut.manual_seed(0)
    model = network().to(device)
    optimizer = ut.optim.AdamW(model.parameters(), 0.02)
    x, y = ut.randn(24, 2, 30).to(device), ut.randint(0, 3, (24,)).to(device)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
        loss.backward()
        ut.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        found.append(loss.item())
    return found


def test_a_training_is_the_cpus() -> None:
    before = ut.webgpu.stats()["host"]
    found = losses("webgpu")
    np.testing.assert_allclose(found, losses("cpu"), rtol=2e-3)
    assert found[-1] < found[0]
    assert ut.webgpu.stats()["host"] == before


def test_a_training_creates_nothing_after_two_steps() -> None:
    ut.manual_seed(0)
    model = network().to("webgpu")
    optimizer = ut.optim.Adam(model.parameters())
    x, y = ut.randn(24, 2, 30).to("webgpu"), ut.randint(0, 3, (24,)).to("webgpu")
    counted = []
    for _ in range(8):
        before = ut.webgpu.stats()
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        model[-1].bias.sum().item()
        after = ut.webgpu.stats()
        counted.append({name: after[name] - before[name] for name in after})
    for count in counted[4:]:
        assert count["buffers"] == count["bind_groups"] == count["pipelines"] == 0, counted
        assert count["submissions"] <= count["launches"] // 64 + 2
        assert count["uploads"] == 0


def test_nan_in_gives_nan_out() -> None:
    nan = float("nan")
    x = ut.tensor([1.0, nan, float("inf"), -2.0], device="webgpu")
    for compute in (
        *(ut.exp, ut.tanh, ut.sigmoid, F.relu, F.gelu, ut.sin, ut.abs),
        *(lambda v: v * 0, lambda v: v - v, lambda v: v.clamp(-1, 1)),
        *(lambda v: ut.maximum(v, v * 0), lambda v: v.cumsum(0), lambda v: ut.softmax(v, 0)),
        *(lambda v: v.sum(), lambda v: v.max(), lambda v: v.reshape(1, 4) @ v),
    ):
        found, expected = compute(x).cpu().numpy(), compute(x.cpu()).numpy()
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_long_integers() -> None:
    big = [2**40 + 5, -(2**62), 7, -1, 2**63 - 1]
    x = ut.tensor(big, device="webgpu")
    assert (x + x).tolist() == (ut.tensor(big) + ut.tensor(big)).tolist()
    assert (x * 3).tolist() == (ut.tensor(big) * 3).tolist()
    assert (x // 10).tolist() == (ut.tensor(big) // 10).tolist()
    assert (x % -7).tolist() == (ut.tensor(big) % -7).tolist()
    assert x.sort()[0].tolist() == sorted(big)
    assert x.float().tolist() == ut.tensor(big).float().tolist()
    assert (x >> 3).tolist() == [v >> 3 for v in big]


DEBUG = """
import undertow as ut
x = ut.ones(3, device="webgpu")
(x + x).tolist()
print(ut.webgpu.stats()["submissions"])
"""


@pytest.mark.parametrize("mode", ["webgpu", "wgsl"])
def test_debugging(mode: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DEBUG],
        env={**os.environ, "UNDERTOW_DEBUG": mode},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert ("@compute" in done.stderr) == (mode == "wgsl")
    assert (int(done.stdout) > 2) == (mode == "webgpu")


@pytest.mark.parametrize("special", [np.inf, np.nan])
@pytest.mark.parametrize("channels, outputs, length", [(2, 3, 7), (20, 128, 70)])
def test_weights_that_are_not_finite_never_meet_padding(
    channels: int, outputs: int, length: int, special: float
) -> None:
    random = np.random.default_rng(0)
    x = random.uniform(1, 2, (2, channels, length)).astype(np.float32)
    w = random.uniform(1, 2, (outputs, channels, 3)).astype(np.float32)
    w[1, 1, 0] = w[2, 0, 2] = special
    for options in ({"padding": 1}, {"padding": 2, "stride": 2, "dilation": 2}):
        found, expected = (
            F.conv1d(ut.tensor(x).to(k), ut.tensor(w).to(k), **options).cpu().numpy()
            for k in ("webgpu", "cpu")
        )
        assert np.isfinite(expected[:, 1, 0]).all()  # whose first tap looks beside the input
        assert np.isfinite(expected[:, 2, -1]).all()
        np.testing.assert_allclose(found, expected, rtol=1e-5)
