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


def places(x: ut.Tensor, count: int, size: int) -> ut.Tensor:
    """Indices below `size`, some of them several times."""
    return (ut.arange(count) * 7919 % (size + 3) % size).to(x.device)


def added_halves(x: ut.Tensor) -> ut.Tensor:
    y = x.half()
    return y.index_add(0, places(x, 2600, 1300), y.repeat(2)).float()


def put_in_place(x: ut.Tensor) -> ut.Tensor:
    y = x.clone()
    y[places(x, 700, 40), places(x, 700, 60)] = x.reshape(-1)[:700] * 2
    y.index_put_((places(x, 50, 40),), x[:1].expand(50, 60), accumulate=True)
    return y


def halves_convolved(x: ut.Tensor) -> ut.Tensor:
    y = x.half().reshape(1, 2, 1300)
    return F.conv1d(y, y[:, :, :3].expand(4, 2, 3), padding=1).float()


def recurrent(x: ut.Tensor) -> ut.Tensor:
    ut.manual_seed(0)
    layer = ut.nn.GRU(3, 5).to(x.device)
    return layer(x)[0]


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
    # Lines side by side, lines that lie far apart, a line that is too long
    "scan": ((60, 40), lambda x: x.cumsum(1)),
    "scan of columns": ((400, 7), lambda x: x.cumsum(0)),
    "long scan": ((2, 2500), lambda x: x.cumsum(1)),
    "long scan in half precision": ((2500,), lambda x: (x / 50).half().cumsum(0).float()),
    "running product": ((2500,), lambda x: (1 + x / 100).cumprod(0)),
    "running log of sums": ((2500,), lambda x: x.logcumsumexp(0)),
    "running maximum": ((1300,), lambda x: x.cummax(0)[0]),
    "where that was": ((3, 1300), lambda x: (x * 4).round().cummax(1)[1]),
    "where the least was": ((1300, 3), lambda x: (x * 4).round().cummin(0)[1]),
    "sort": ((30, 50), lambda x: x.sort(1)[0]),
    "sort of columns": ((300, 7), lambda x: x.sort(0, descending=True)[0]),
    "long sort": ((1, 1300), lambda x: x.sort(1)[0]),
    "long stable sort": ((1300,), lambda x: (x * 4).round().sort(0, stable=True)[1]),
    "long sort downwards": ((1300,), lambda x: (x * 4).round().sort(0, True, stable=True)[1]),
    "median": ((1100,), lambda x: x.median()),
    "topk": ((3, 2500), lambda x: x.topk(5)[0]),
    "long topk": ((1300,), lambda x: x.topk(700)[0]),
    "index_select": ((700, 6), lambda x: x.index_select(0, places(x, 40, 700))),
    "index_select of columns": ((6, 700), lambda x: x[:, places(x, 900, 700)]),
    "embedding": ((700, 6), lambda x: F.embedding(places(x, 600, 700), x)),
    "gather": ((5, 1500), lambda x: x.gather(1, places(x, 5 * 700, 1500).reshape(5, 700))),
    "several indices": ((40, 60), lambda x: x[places(x, 900, 40), places(x, 900, 60)]),
    "gather in bytes": ((5000,), lambda x: (x * 100).to(ut.int8)[places(x, 700, 5000)].float()),
    "masked": ((3000,), lambda x: x[x > 0.5]),
    "index_add": ((1500,), lambda x: x.index_add(0, places(x, 900, 1500), x[:900] * x[600:])),
    "index_add of rows": ((300, 7), lambda x: x.index_add(0, places(x, 90, 300), x[:90] * 2)),
    "index_add in half precision": ((1300,), added_halves),
    "scatter": ((9, 300), lambda x: x.scatter(1, places(x, 180, 300).reshape(9, 20), x[:, 5:])),
    "largest of indices": (
        (2500,),
        lambda x: x.scatter_reduce(0, places(x, 1500, 2500), x[:1500].flip(0), "amax").detach(),
    ),
    "put": ((40, 60), put_in_place),
    "searchsorted": ((60, 40), lambda x: ut.searchsorted(x.detach().sort(1)[0], x.detach())),
    "long searchsorted": ((1500,), lambda x: ut.searchsorted(x.detach().sort()[0], x[:900] * 1.1)),
    "bucketize": (
        (50, 30),
        lambda x: ut.bucketize(x.detach(), ut.linspace(-1, 1, 9, device=x.device)),
    ),
    "nonzero": ((7, 30, 20), lambda x: (x > 0.3).nonzero()),
    "convolution": ((30, 3, 40), lambda x: F.conv1d(x, x[:5, :, :4], x[0, 0, :5], padding=2)),
    "convolution of many channels": (
        (2, 40, 30),
        lambda x: F.conv1d(x, x[:, :, :3].repeat(30, 1, 1), stride=2, groups=1),
    ),
    "convolution in groups": (
        (3, 60, 20),
        lambda x: F.conv1d(x, x[:2, :30, :3].reshape(60, 1, 3), groups=60).relu(),
    ),
    "long convolution": (
        (1, 1, 3000),
        lambda x: F.conv1d(x, x[:, :, :6], stride=2, padding=3, dilation=5),
    ),
    "large images": (
        (1, 2, 40, 50),
        lambda x: F.conv2d(x, x[:, :, :3, :4], stride=(2, 1), padding=(1, 2)),
    ),
    "transposed convolution": (
        (1, 2, 700),
        lambda x: F.conv_transpose1d(x, x[0, :, None, :5].expand(2, 3, 5), stride=2, padding=1),
    ),
    "convolution in half precision": ((2, 1300), halves_convolved),
    "pooling": ((4, 3, 20, 30), lambda x: F.max_pool2d(x, 3, 2, padding=1)),
    "where the largest are": (
        (1, 1, 60, 50),
        lambda x: F.max_pool2d(x, (3, 2), (2, 3), dilation=(2, 1), return_indices=True)[1],
    ),
    "wide pooling": ((1, 1, 2, 3000), lambda x: F.max_pool2d(x, 2, 1, return_indices=True)[1]),
    "means of windows": ((1, 1, 5000), lambda x: F.avg_pool1d(x, 4, 2, padding=1)),
    "adaptive pooling": ((2, 3, 700), lambda x: F.adaptive_avg_pool1d(x, 9)),
    "attention": ((2, 3, 50, 8), lambda x: F.scaled_dot_product_attention(x, x * 2, x + 1)),
    "causal attention": (
        (1, 5, 40, 16),
        lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    ),
    "histogram": ((3000,), lambda x: ((x + 1) * 20).long().bincount()),
    "recurrent layer": ((200, 4, 3), recurrent),
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
        exact = 2**-10 if "half precision" in name else 1e-5
        bound = exact * max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(mine, expected, rtol=exact, atol=bound)


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
    with pytest.raises(
        ut.errors.OutOfMemoryError, match=r"\[window\].*20000 bytes.*4096.*\(1, 1, 5000\)"
    ):
        F.max_pool1d(x.reshape(1, 1, 5000), 4900)
    with pytest.raises(ut.errors.OutOfMemoryError, match=r"shape \(1000, 1000\).*1048576"):
        ut.zeros(1000, 1000, device="narrow")
    assert x.sum().item() == 5000
