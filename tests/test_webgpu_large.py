"""Arrays beyond what a kernel sees of a buffer: a WebGPU device that is told it sees 4 KiB."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import undertow as ut
import undertow.nn.functional as F
from undertow.backends import registry
from undertow.devices import Device

pytestmark = pytest.mark.webgpu

SEEN = 4096  # bytes, a thousand floats


@pytest.fixture(scope="module", autouse=True)
def backend() -> Iterator[Any]:
    """The backend of `device="narrow"`."""
    pytest.importorskip("wgpu")
    if not ut.webgpu.is_available():
        pytest.skip("there is no WebGPU adapter here")
    from undertow.backends.webgpu.backend import WebGpuBackend
    from undertow.backends.webgpu.runtime import WebGpuRuntime

    runtime = WebGpuRuntime(0)
    runtime.limits = dataclasses.replace(runtime.limits, max_binding=SEEN, max_buffer=1 << 20)
    made = WebGpuBackend(Device("narrow", 0), runtime)
    registry._makers["narrow"] = lambda device: made
    yield made
    del registry._makers["narrow"]
    for name in ("narrow", "narrow:0"):
        registry._running.pop(name, None)


def data(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)


def in_place(x: ut.Tensor) -> ut.Tensor:
    y = x.clone()
    y[:2000].add_(y[2000:] * 2)  # too far apart for one part of the buffer
    y[1::3].mul_(x[1::3])
    return y


LARGE: dict[str, tuple[Any, Any]] = {
    "elementwise": ((70, 60), lambda x: (x * 2 + x.t().reshape(70, 60)).tanh()),
    "broadcast": ((1500,), lambda x: x[:60, None] * x[None, :70]),
    "copies": ((40, 5, 30), lambda x: x.permute(2, 0, 1).contiguous().flip(0)),
    "casts": ((4000,), lambda x: (x * 100).to(ut.int8).to(ut.float32)),
    "in place": ((4000,), in_place),
    "reversed and strided": ((5000,), lambda x: x.flip(0)[::2] - x[::2]),
    "joined": ((1200,), lambda x: ut.cat([x, x * 2, x[:7]])),
    "sum of all": ((9000,), lambda x: x.sum()),
    "sum of rows": ((3, 5000), lambda x: x.sum(1)),
    "sum of columns": ((5000, 3), lambda x: x.sum(0)),
    "many sums": ((2000, 4), lambda x: x.sum(1)),
    "mean": ((7, 3001), lambda x: x.mean(1)),
    "variance": ((3, 5000), lambda x: x.var(1)),
    "product": ((4, 1500), lambda x: (1 + x.detach() / 100).prod(1)),
    "largest": ((5000,), lambda x: x.max()),
    "largest of rows": ((3, 4001), lambda x: x.detach().max(1)[0]),
    "where it is": ((4, 3000), lambda x: x.argmax(1)),
    "smallest of columns": ((3000, 4), lambda x: x.detach().min(0)[0]),
    "any": ((5000,), lambda x: (x > 0.999).any()),
    "softmax": ((3, 4000), lambda x: x.softmax(1)),
    "layer norm": ((9, 500), lambda x: F.layer_norm(x, (500,))),
    "matrices": ((60, 70), lambda x: x @ x.t()),
    "linear": ((3, 20), lambda x: F.linear(x, x.repeat(500, 1), x.reshape(-1).repeat(25))),
    "batches": ((6, 30, 20), lambda x: x @ x.transpose(1, 2)),
    "wide matrices": ((4, 200), lambda x: x.t() @ x),
}


@pytest.mark.parametrize("name", LARGE)
def test_forms_are_cut(name: str) -> None:
    """Results and gradients are the CPU's."""
    shape, function = LARGE[name]
    found: list[Any] = []
    for where in ("narrow", "cpu"):
        x = ut.tensor(data(*shape)).to(where).requires_grad_()
        y = function(x)
        results = [y.detach()]
        if y.requires_grad:
            results += ut.autograd.grad((y * y).sum(), x)
        found.append([r.cpu().numpy() for r in results])
    for mine, expected in zip(*found, strict=True):
        assert mine.dtype == expected.dtype
        bound = 1e-5 * max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(mine, expected, rtol=1e-5, atol=bound)


def test_nan_wins_in_every_piece() -> None:
    for place in (10, 3990):
        host = data(4000)
        host[place] = np.nan
        x = ut.tensor(host).to("narrow")
        assert np.isnan(x.max().item())
        assert x.argmax().item() == x.argmin().item() == place


def test_random_numbers_and_training_are_the_cpus() -> None:
    def trained(where: str) -> Any:
        ut.manual_seed(0)
        noise = [ut.rand(5000, device=where), F.dropout(ut.ones(3000, device=where), 0.3)]
        w = ut.tensor(data(3000)).to(where).requires_grad_()
        optimizer = ut.optim.Adam([w], 0.1)
        for _ in range(2):
            optimizer.zero_grad()
            (w * w).mean().backward()
            optimizer.step()
        return [t.detach().cpu().numpy() for t in (*noise, w, ut.arange(3000, device=where))]

    for mine, expected in zip(trained("narrow"), trained("cpu"), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-5, atol=1e-6)


def test_what_cannot_be_cut_is_named() -> None:
    x = ut.ones(5000, device="narrow")
    with pytest.raises(ut.errors.OutOfMemoryError, match=r"\[sort\].*20000 bytes.*4096.*\(5000,\)"):
        x.sort()
    with pytest.raises(ut.errors.OutOfMemoryError, match=r"shape \(1000, 1000\).*1048576"):
        ut.zeros(1000, 1000, device="narrow")
    assert x.sum().item() == 5000
