"""Generated convolutions against NumPy's in float64: every role, layout, geometry and processor."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends.cpu.backend import CpuBackend
from undertow.backends.cpu.convolution import conv, problem
from undertow.backends.cpu.convolution.conv import run_conv
from undertow.backends.cpu.products.window_pack import pieces
from undertow.backends.sliding import correlate
from undertow.kernel.windows import Geometry, phases

BACKEND = CpuBackend(ut.device("cpu"))
ROLES = ["forward", "input", "weight"]
LAYOUTS = ["rows", "channels last", "backwards", "odd"]
CASES = 24


def geometry_of(seed: int) -> Geometry:
    """A geometry in which the kernel fits."""
    choose = random.Random(seed).choice
    while True:
        rank = choose([1, 2, 3])
        sizes = [1, 3, 5, 9] if rank == 3 else [1, 3, 7, 14, 20, 40]
        geometry = Geometry(
            tuple(choose(sizes) for _ in range(rank)),
            tuple(choose([1, 2, 3, 5]) for _ in range(rank)),
            tuple(choose([1, 1, 2, 3, 4, 9]) for _ in range(rank)),
            tuple((choose([0, 1, 2, -1]), choose([0, 1, 3, -1])) for _ in range(rank)),
            (1,) * rank,
            tuple(choose([1, 1, 2, 3]) for _ in range(rank)),
        )
        if all(0 < a <= b for a, b in zip(geometry.extent, geometry.padded, strict=True)):
            return geometry


def operands(seed: int, role: str, layout: str, dtype: Any) -> tuple[Any, ...]:
    """The operands of the form for a role, and the shape of its result."""
    g, choose = geometry_of(seed), random.Random(seed + 1).choice
    n, groups, c, o = choose([1, 2, 3]), choose([1, 2]), choose([1, 3, 17]), choose([1, 5, 18])
    normal, rank = np.random.default_rng(seed).standard_normal, len(g.size)
    x, y = normal((n, groups, c, *g.size)), normal((n, groups, o, *g.output))
    w, bias = normal((groups, o, c, *g.kernel)), None
    last = range(3, 3 + rank)
    if role == "forward":
        shape, bias = y.shape, choose([None, normal((groups, o)).astype(dtype)])
    elif role == "input":
        shape, x, g = x.shape, y, g.of_input
        w = w.swapaxes(1, 2)[(..., *(slice(None, None, -1),) * rank)]
    else:
        shape, g = (c, groups, o, *g.kernel), g.of_kernel
        x, w = x.transpose(2, 1, 0, *last), y.transpose(1, 2, 0, *last)
    return (
        laid(x.astype(dtype), layout, 0 if role == "weight" else 2),
        w.astype(dtype),
        bias,
        g,
        shape,
    )


def laid(x: Any, layout: str, channels: int) -> Any:
    """The same elements in another order in memory."""
    if layout == "channels last":
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, channels, -1)), -1, channels)
    if layout == "backwards":
        return np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    return np.repeat(x, 2, axis=-1)[..., ::2] if layout == "odd" else x


def double(a: Any) -> Any:
    return None if a is None else a.astype(np.float64)


def check(seed: int, role: str, layout: str, dtype: Any) -> None:
    """Compare one convolution with NumPy's."""
    x, w, bias, geometry, shape = operands(seed, role, layout, dtype)
    want = np.zeros(shape)
    correlate(want, double(x), double(w), double(bias), geometry, np.matmul)
    found = np.full(shape, np.nan, dtype)
    assert run_conv(found, x, w, bias, geometry, BACKEND)
    terms = w.size // max(w.shape[0] * w.shape[1], 1)
    bound = 4 * terms**0.5 * np.finfo(dtype).eps * max(np.abs(want).max(initial=0), 1)
    np.testing.assert_allclose(found, want, rtol=0, atol=bound, err_msg=f"{geometry}")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("seed", range(CASES))
def test_against_numpy(seed: int, role: str, dtype: Any) -> None:
    check(seed, role, LAYOUTS[seed % len(LAYOUTS)], dtype)


@pytest.mark.parametrize("dims", ["all", "spatial", "last", "batch"])
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("seed", [4, 8, 13, 18])
def test_expanded_operands(seed: int, role: str, dims: str) -> None:
    """One element in memory for many, as in the cotangent of a sum."""
    x, w, bias, geometry, shape = operands(seed, role, "rows", np.float32)

    def expanded(a: Any) -> Any:
        chosen = {
            "all": range(a.ndim),
            "spatial": range(3, a.ndim),
            "last": [a.ndim - 1],
            "batch": [0],
        }[dims]
        kept = [slice(0, 1) if d in chosen else slice(None) for d in range(a.ndim)]
        return np.broadcast_to(np.ascontiguousarray(a[tuple(kept)]), a.shape)

    for x_given, w_given in ((expanded(x), w), (x, expanded(w)), (expanded(x), expanded(w))):
        want, found = np.zeros(shape), np.full(shape, np.nan, np.float32)
        correlate(want, double(x_given), double(w_given), double(bias), geometry, np.matmul)
        assert run_conv(found, x_given, w_given, bias, geometry, BACKEND)
        np.testing.assert_allclose(found, want, atol=1e-4 * max(np.abs(want).max(), 1))


@pytest.mark.parametrize("features", ["-avx512f", "-avx512f,-fma", "-avx2", "-avx"])
def test_other_processors(features: str) -> None:
    """Vectors of other lengths, with and without masks and fused multiply-adds."""
    code = (
        "import numpy as np, test_kernels as t\n"
        "for seed in range(t.CASES):\n"
        "    for role in t.ROLES:\n"
        "        t.check(seed, role, t.LAYOUTS[seed % 4], [np.float32, np.float64][seed % 2])\n"
    )
    environment = {**os.environ, "UNDERTOW_CPU_FEATURES": features}
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=300)


@pytest.mark.parametrize("role", ROLES)
def test_the_number_of_threads_does_not_show(role: str) -> None:
    """Sums have one order, however the work is shared out."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 24, 40, 33)).astype(np.float32)
    w = rng.standard_normal((20, 24, 3, 3)).astype(np.float32)
    before, found = ut.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            ut.set_num_threads(threads)
            a, b = (ut.tensor(t, requires_grad=True) for t in (x, w))
            y = ut.conv2d(a, b, padding=1, stride=2)
            y.backward(ut.ones_like(y) * 0.1)
            found.append({"forward": y, "input": a.grad, "weight": b.grad}[role].detach().numpy())
    finally:
        ut.set_num_threads(before)
    assert all(np.array_equal(found[0], other) for other in found[1:])


def test_the_gradient_of_a_sum() -> None:
    """Its cotangent is a single one, expanded; the kernel's gradient is a sum of the input."""
    x, w = ut.randn(2, 32, 200), ut.randn(40, 32, 3, requires_grad=True)
    ut.conv1d(x, w).sum().backward()
    want = ut.stack([x[:, :, t : t + 198].sum((0, 2)) for t in range(3)], 1)
    assert ut.allclose(w.grad, want.expand(40, 32, 3), atol=1e-3)


ACTIVATED = {
    "product": ((2, 16, 40), (24, 16, 3), {"padding": 1}),
    "groups": ((2, 32, 40), (48, 16, 3), {"groups": 2, "stride": 2}),
    "pointwise": ((2, 16, 40), (24, 16, 1), {}),
    "pointwise groups": ((2, 32, 40), (48, 16, 1), {"groups": 2}),
    "depthwise": ((2, 32, 200), (32, 1, 5), {"groups": 32, "padding": 2}),
    "few channels": ((4, 2, 100), (2, 2, 80), {}),
    "one window": ((3, 16, 40), (24, 16, 40), {}),
    "more taps than positions": ((3, 16, 40), (24, 16, 30), {}),
    "small": ((1, 2, 5), (1, 2, 2), {}),
    "no elements": ((2, 16, 0), (24, 16, 3), {"padding": 40}),
}


@pytest.mark.parametrize("dtype", [ut.float32, ut.float64, ut.float16], ids=str)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name", ACTIVATED)
def test_activation(name: str, bias: bool, dtype: Any) -> None:
    """The same bits as a convolution and a relu after it, recorded or not."""
    shape, kernel, how = ACTIVATED[name]
    ut.manual_seed(0)
    x, w = ut.randn(shape).to(dtype), ut.randn(kernel).to(dtype)
    b = ut.randn(kernel[0]).to(dtype) if bias else None
    plain = ut.conv1d(x, w, b, **how)
    assert name in ("small", "no elements") or (plain < 0).any()
    assert ut.equal(ut.conv1d(x, w, b, activation="relu", **how), plain.relu())
    y = ut.conv1d(x, w.requires_grad_(), b, activation="relu", **how)
    assert ut.equal(y.detach(), plain.relu())
    y.sum().backward()
    other = w.detach().requires_grad_()
    ut.conv1d(x, other, b, **how).relu().sum().backward()
    assert ut.equal(w.grad, other.grad)


@pytest.mark.parametrize("name", ["product", "groups", "pointwise", "depthwise", "few channels"])
def test_activation_is_part_of_the_product(name: str, monkeypatch: Any) -> None:
    """There is no pass after it."""
    shape, kernel, how = ACTIVATED[name]
    monkeypatch.setattr(problem, "_RELU", None)
    assert (ut.conv1d(ut.randn(shape), ut.randn(kernel), activation="relu", **how) >= 0).all()


def test_activation_keeps_nan_and_refuses_others() -> None:
    """What is not a number is not negative, and there is only one activation."""
    x, w = ut.full((1, 16, 40), float("nan")), ut.ones(24, 16, 3)
    assert ut.conv1d(x, w, activation="relu").isnan().all()
    with pytest.raises(
        ut.errors.ArgumentError, match="activation must be 'relu' or None, got 'selu'"
    ):
        ut.conv1d(x, w, activation="selu")
    with pytest.raises(ut.errors.DTypeError, match="floating"):
        ut.conv1d(x.isnan().long(), w.long(), activation="relu")


@pytest.mark.parametrize("dtype", [ut.float16, ut.bfloat16])
def test_halves_are_computed_in_single(dtype: Any) -> None:
    """The result is the rounded one of single precision."""
    ut.manual_seed(0)
    x, w = ut.randn(2, 8, 30).to(dtype), ut.randn(9, 8, 5).to(dtype)
    found, want = ut.conv1d(x, w), ut.conv1d(x.float(), w.float())
    assert found.dtype is dtype
    assert ut.equal(found, want.to(dtype))


@pytest.mark.parametrize("dtype", [ut.float16, ut.bfloat16])
def test_halves_are_converted_a_few_images_at_a_time(
    dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which changes no bits of results, and sums a weight's gradient in single precision."""
    ut.manual_seed(0)
    x, w = (t.to(dtype).requires_grad_() for t in (ut.randn(5, 16, 40), ut.randn(24, 16, 3)))
    b, seed = ut.randn(24).to(dtype), ut.randn(5, 24, 40).to(dtype)
    found = []
    for limit in (1 << 20, 2000, 1):
        monkeypatch.setattr(conv, "HALVES", limit)
        y = ut.conv1d(x, w, b, padding=1)
        found.append([y.detach(), *ut.autograd.grad(y, (x, w), seed)])
    wide = [t.detach().float().requires_grad_() for t in (x, w)]
    exact = ut.conv1d(*wide, padding=1)
    _, slope = ut.autograd.grad(exact, wide, seed.float())
    for each in found:
        assert all(ut.equal(a, b) for a, b in zip(each[:2], found[0][:2], strict=True))
        assert each[2].dtype is dtype
        assert ut.allclose(each[2].float(), slope, rtol=2e-2 if dtype is ut.bfloat16 else 2e-3)


def test_halves_take_no_copies_of_whole_operands() -> None:
    x, w = ut.ones(64, 16, 4096).half(), ut.ones(16, 16, 9).half()
    ut.conv1d(x, w, padding=4)
    tracemalloc.start()
    ut.conv1d(x, w, padding=4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.5 * x.nbytes  # the result, and a few images in single precision


@pytest.mark.parametrize("shape", [(2, 3, 0), (0, 3, 50)])
def test_empty(shape: tuple[int, ...]) -> None:
    """No elements: the result is the bias, the weight's gradient zero."""
    x, w = ut.zeros(shape, requires_grad=True), ut.ones(4, 3, 3, requires_grad=True)
    y = ut.conv1d(x, w, ut.full((4,), 7.0), padding=300)
    assert y.shape[0] == shape[0]
    assert (y == 7).all()
    y.sum().backward()
    assert (w.grad == 0).all()


def test_windows_are_never_stored() -> None:
    """Memory beside the result is a few blocks, not k times the input."""
    x, w = ut.ones(8, 32, 4096), ut.ones(32, 32, 9)
    ut.conv1d(x, w, padding=4)
    tracemalloc.start()
    ut.conv1d(x, w, padding=4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * x.nbytes


@pytest.mark.parametrize("channels", [1, 24])
def test_dilation_takes_no_memory(channels: int) -> None:
    """Taps that are far apart, of which only one meets the input."""
    far = 10**7
    x, w = ut.randn(2, channels, 5000), ut.randn(channels, channels, 2, requires_grad=True)
    x.requires_grad_()
    tracemalloc.start()
    y = ut.conv1d(x, w, padding=[(far, 0)], dilation=far)
    y.backward(ut.ones_like(y))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * far
    assert ut.allclose(y, ut.conv1d(x, w[:, :, 1:]), atol=1e-4)
    assert ut.allclose(w.grad[:, :, 1], x.sum((0, 2)).expand(channels, channels), atol=1e-2)
    assert (w.grad[:, :, 0] == 0).all()
    assert ut.allclose(x.grad, w[:, :, 1].sum(0).reshape(-1, 1).expand(x.shape), atol=1e-4)


def test_channels_last_is_not_copied(monkeypatch: Any) -> None:
    """Neighbouring channels are transposed while they are packed."""
    x = ut.randn(2, 20, 21, 32).permute(0, 3, 1, 2)
    w = ut.randn(16, 32, 3, 3)
    want = ut.conv2d(x.contiguous(), w)
    copied: list[int] = []
    monkeypatch.setattr(CpuBackend, "copy", lambda self, a: copied.append(a.size) or a.copy())
    assert ut.allclose(ut.conv2d(x, w), want, atol=1e-4)
    assert max(copied, default=0) < x.numel()


@pytest.mark.parametrize("seed", range(60))
def test_phases(seed: int) -> None:
    """The phases of a dilated input cover once all positions where a tap meets no zero."""
    g = geometry_of(seed).of_input
    found = phases(g)
    if found is None:
        assert any(s > 1 and e > 1 for s, e in zip(g.stride, g.input_dilation, strict=True))
        return
    seen = np.zeros(g.output, int)
    for part in found:
        seen[part.positions] += 1
        assert part.geometry.output == np.empty(g.output)[part.positions].shape
    along = [
        [n == 1 or any(not (p + t * step - low) % e for t in range(kernel)) for p in range(many)]
        for n, e, many, kernel, step, (low, _) in zip(
            g.size, g.input_dilation, g.output, g.kernel, g.dilation, g.padding, strict=True
        )
    ]
    assert (seen == np.prod(np.meshgrid(*along, indexing="ij"), axis=0)).all()


@pytest.mark.parametrize("dtype", [ut.float32, ut.float16])
@pytest.mark.parametrize("channels", [1, 24])
@pytest.mark.parametrize("stride", [700, 1 << 40])
def test_strides_without_end(stride: int, channels: int, dtype: Any) -> None:
    """What no window sees has the gradient zero, and takes no time of its own."""
    ut.manual_seed(0)
    x = ut.randn(2, channels, 40, 1000).to(dtype).requires_grad_()
    w = ut.randn(2, channels, 3, 3).to(dtype)
    y = ut.conv2d(x, w, stride=stride)
    assert y.shape == (2, 2, 1, 2 if stride == 700 else 1)
    (found,) = ut.autograd.grad(y, x, ut.ones_like(y))
    want = np.zeros(x.shape, found.numpy().dtype)
    for position in range(y.shape[3]):
        want[:, :, :3, 700 * position :][..., :3] = w.numpy().sum(0)
    assert np.allclose(found.numpy(), want, atol=1e-2 if dtype is ut.float16 else 1e-5)


@pytest.mark.parametrize("line", [1, 2, 5, 7, 15, 16, 17, 40])
@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_pieces(line: int, lanes: int) -> None:
    """The number of lines that a vector can touch, found by looking."""
    lines = 50
    touched = [len({(p + lane) // line for lane in range(lanes)}) for p in range(line * lines)]
    assert pieces(line, lanes, lines) == max(touched[: line * lines - lanes])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_whose_rows_are_pages_apart(dtype: Any) -> None:
    """Rows of A that collide in the cache are packed in products, and never beside windows."""
    made = np.random.default_rng(0)
    x, w = (made.normal(size=shape).astype(dtype) for shape in [(4, 128, 45), (128, 128, 8)])
    found = ut.nn.functional.conv1d(ut.from_numpy(x), ut.from_numpy(w), padding="same")
    padded = np.pad(x, ((0, 0), (0, 0), (3, 4)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, 8, axis=2)
    expected = np.einsum("nctk,ock->not", windows, w, optimize=True)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-3)
