"""What `undertow check-device` asks of a device: a few of every kind of op, memory, and speed.

The op table of the tests has thousands of samples and is not in the wheel. This one takes each kind
of kernel at sizes for which several groups of threads work together, and some with few elements.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

import undertow as ut
import undertow.nn.functional as F

from ..backends.registry import backend_on
from ..errors import DTypeError, OutOfMemoryError

# How far results and gradients may be from the CPU's, as a part of the largest element.
NEAR = {"float64": 1e-11, "float32": 1e-4, "float16": 1e-2, "bfloat16": 3e-2}


# Right ----------------------------------------------------------------------------------------
class Case(NamedTuple):
    """A function of tensors of these shapes, whose elements are between `low` and 1."""

    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...] = ("float32", "float64")
    low: float = -1.0


def case(function: Callable[..., Any], *shapes: tuple[int, ...], **how: Any) -> Case:
    """A case, in short."""
    return Case(function, shapes, **how)


def _whole(x: ut.Tensor, most: int) -> ut.Tensor:
    """Integers below `most`, of numbers between -1 and 1."""
    return ((x.detach() + 1) * (most / 2)).long().clamp(0, most - 1)


def _drawn(x: ut.Tensor) -> ut.Tensor:
    ut.manual_seed(5)
    return x * ut.rand_like(x) + ut.randn_like(x) + F.dropout(x, 0.5)


def _in_place(x: ut.Tensor) -> ut.Tensor:
    y = x * 2
    y[1:, ::3] += 1
    y[:, 0] = y[:, 1].detach()
    return y.mul_(y.detach().clone()).sub_(x)


def _second(x: ut.Tensor, w: ut.Tensor) -> ut.Tensor:
    (first,) = ut.autograd.grad((x @ w).tanh().square().sum(), w, create_graph=True)
    return first


def _trained(x: ut.Tensor, w: ut.Tensor, v: ut.Tensor) -> list[ut.Tensor]:
    weights = [t.detach().clone().requires_grad_() for t in (w, v)]
    adam = ut.optim.Adam(weights, lr=0.01)
    for _ in range(3):
        adam.zero_grad()
        F.cross_entropy(
            (x.detach() @ weights[0]).relu() @ weights[1], _whole(x[:, 0], 10)
        ).backward()
        adam.step()
    return weights


def _recurrent(x: ut.Tensor, w: ut.Tensor, r: ut.Tensor) -> ut.Tensor:
    h = ut.zeros_like(r[:1]).expand(x.shape[0], -1)
    for t in range(x.shape[1]):
        h = ut.tanh(x[:, t] @ w + h @ r)
    return h


HALF = ("float16", "bfloat16")
CASES: dict[str, Case] = {
    "arithmetic": case(lambda x, y: x * y - x / (y + 3) + 2, (70, 90), (70, 90)),
    "broadcast": case(lambda x, y: x[:, None] * y + x[:, None].abs(), (300,), (50,)),
    "views": case(lambda x: x.t()[1::2].flip(0) * x[0, 0], (40, 30)),
    "exp log sqrt": case(lambda x: x.exp() + x.log() * x.sqrt() + x.log1p(), (5000,), low=0.1),
    "sin cos tan": case(lambda x: (50 * x).sin() + (900 * x).cos() + x.tan(), (5000,)),
    "inverse functions": case(
        lambda x: x.asin() + x.acos() * x.atan() + x.asinh(), (999,), low=-0.9
    ),
    "hyperbolic": case(lambda x: x.tanh() + x.sinh() * x.cosh() + x.sigmoid(), (999,)),
    "powers": case(lambda x, y: x**y + x**3 - x.rsqrt(), (77, 5), (77, 5), low=0.1),
    "erf and gamma": case(lambda x: x.erf() + x.lgamma() + x.digamma(), (700,), low=0.2),
    "activations": case(lambda x: F.gelu(x) + F.silu(x) * F.softplus(x) + F.elu(x), (3000,)),
    "choices": case(
        lambda x, y: ut.where(x > y, x, y * 2).clamp(-0.5, 0.7) + x.maximum(y), (999,), (999,)
    ),
    "rounding": case(lambda x: (9 * x).floor() + (9 * x).round() + (9 * x).trunc() % 4, (999,)),
    "integers": case(lambda x: (_whole(x, 1000) * 77 // 13 % 31) ^ (_whole(x, 50) << 3), (999,)),
    "narrow integers": case(
        lambda x: _whole(x, 256).to(ut.int8) * _whole(x, 90).to(ut.uint8), (999,)
    ),
    "truth": case(lambda x: (x > 0).logical_and(x < 0.5).any(1), (60, 20)),
    "half precision": case(lambda x, y: x * y + x.exp(), (900,), (900,), dtypes=HALF),
    "half products": case(lambda x, y: x @ y / 8, (60, 64), (64, 50), dtypes=HALF),
    "conversions": case(
        lambda x: (x * 9).to(ut.int32).to(x.dtype) + x.to(ut.float32).to(x.dtype), (999,)
    ),
    "in place": case(_in_place, (60, 31)),
    "join and cut": case(lambda x, y: ut.cat([x, y[:9]]).roll(3, 0).repeat(1, 2), (20, 9), (30, 9)),
    "sum of rows": case(lambda x: x.sum(1), (70, 300)),
    "sum of columns": case(lambda x: x.sum(0), (700, 90)),
    "sum of everything": case(lambda x: x.sum() / 99, (30_000,)),
    "variance": case(lambda x: x.var(1) + x.std(1), (30, 900)),
    "extremes": case(lambda x: x.amax(1) - x.amin(1), (500, 20)),
    "where the largest is": case(lambda x: x.argmax(1), (50, 2000)),
    "product of a row": case(lambda x: x.prod(1), (40, 9), low=0.5),
    "softmax": case(lambda x: x.softmax(1) + x.log_softmax(0), (40, 200)),
    "long softmax": case(lambda x: (x * 5).softmax(-1) * 99, (3, 9000)),
    "layer norm": case(lambda x, w: F.layer_norm(x, (500,), w), (9, 500), (500,)),
    "batch norm": case(lambda x: F.batch_norm(x, None, None, training=True), (20, 5, 60)),
    "cross entropy": case(lambda x: F.cross_entropy(x, _whole(x[:, 0], 100)), (50, 100)),
    "running sum": case(lambda x: x.cumsum(1) / 9, (2, 5000)),
    "running product": case(lambda x: x.cumprod(0), (9, 30), low=0.5),
    "running maximum": case(lambda x: x.cummax(0)[1], (3000,)),
    "sort": case(lambda x: x.sort(1)[0] + x.argsort(1).to(x.dtype), (3, 700)),
    "topk": case(lambda x: x.topk(10)[0], (2500,)),
    "nonzero": case(lambda x: (x > 0).nonzero(), (5000,)),
    "gather": case(lambda x: x.gather(1, _whole(x, 50)), (30, 50)),
    "scatter": case(lambda x: ut.zeros_like(x[:, :9]).scatter_add(1, _whole(x, 9), x), (30, 50)),
    "index": case(lambda x: x[_whole(x[:, 0], 300)] + x[:, _whole(x[0], 20)], (300, 20)),
    "index_add": case(lambda x: ut.zeros_like(x[:40]).index_add(0, _whole(x, 40), x) / 9, (3000,)),
    "embedding": case(lambda w, x: F.embedding(_whole(x, 100), w), (100, 24), (7, 30)),
    "product": case(lambda x, y: x @ y / 9, (100, 90), (90, 130)),
    "transposed product": case(lambda x, y: x.t() @ y.t() / 9, (90, 65), (70, 90)),
    "batched product": case(lambda x, y: x @ y / 9, (3, 70, 40), (3, 40, 33)),
    "product with a vector": case(lambda x, y: x @ y / 9, (300, 77), (77,)),
    "product of many terms": case(lambda x, y: x @ y / 99, (40, 4500), (4500, 30)),
    "product with few results": case(lambda x, y: x @ y / 99, (2, 5000), (5000, 2)),
    "conv1d": case(lambda x, w: F.conv1d(x, w, padding=2, stride=2), (4, 20, 50), (8, 20, 5)),
    "conv2d": case(lambda x, w: F.conv2d(x, w, padding=1) / 5, (2, 8, 20, 20), (16, 8, 3, 3)),
    "depthwise": case(lambda x, w: F.conv1d(x, w, groups=12), (3, 12, 90), (12, 1, 7)),
    "transposed conv": case(lambda x, w: F.conv_transpose1d(x, w, stride=2), (2, 6, 30), (6, 5, 4)),
    "pools": case(lambda x: F.max_pool2d(x, 3, 2) + F.avg_pool2d(x, 3, 2), (2, 5, 21, 21)),
    "attention": case(F.scaled_dot_product_attention, *[(2, 3, 70, 32)] * 3),
    "causal attention": case(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        *[(1, 2, 90, 16)] * 3,
    ),
    "recurrent": case(_recurrent, (6, 9, 10), (10, 20), (20, 20)),
    "solve": case(
        lambda a, b: ut.linalg.solve(a + 9 * ut.eye(12, dtype=a.dtype, device=a.device), b),
        (4, 12, 12),
        (4, 12, 2),
    ),
    "random numbers": case(_drawn, (9999,)),
    "second derivatives": case(_second, (20, 30), (30, 10)),
    "training": case(_trained, (32, 20), (20, 40), (40, 10)),
}


class Failure(NamedTuple):
    """A case that went wrong on a dtype, and how."""

    case: str
    dtype: str
    what: str


class Outcome(NamedTuple):
    """What became of all cases."""

    right: int
    failures: list[Failure]
    refused: dict[str, str]  # cases that the device says it cannot compute, and why
    left: int  # for which there was no time
    lost: bool  # the device no longer answers


def check_cases(device: str, names: list[str], seconds: float) -> Outcome:
    """Compare results and first gradients with the CPU's, and with those of a second run."""
    right = 0
    failures: list[Failure] = []
    refused: dict[str, str] = {}
    end = time.monotonic() + seconds
    wanted = [(name, dtype) for name in names for dtype in CASES[name].dtypes]
    for done, (name, dtype) in enumerate(wanted):
        if time.monotonic() > end:
            return Outcome(right, failures, refused, len(wanted) - done, False)
        try:
            wrong = _wrong(device, name, dtype)
        except DTypeError as error:
            refused[f"{name}, {dtype}"] = str(error).split(";")[0]
            continue
        except Exception as error:  # whatever it is, the report tells it and the next case runs
            wrong = f"{type(error).__name__}: {error}".splitlines()[0]
            if not _answers(device):
                failures.append(Failure(name, dtype, wrong))
                return Outcome(right, failures, refused, len(wanted) - done - 1, True)
        if wrong:
            failures.append(Failure(name, dtype, wrong))
        right += not wrong
    return Outcome(right, failures, refused, 0, False)


def _answers(device: str) -> bool:
    """Whether a device still computes: after a wrong address no card does."""
    try:
        return (ut.ones(3, device=device) + 1).tolist() == [2, 2, 2]
    except Exception:
        return False


def _wrong(device: str, name: str, dtype: str) -> str:
    """What is wrong with a case; empty if nothing is."""
    expected, found = _results("cpu", name, dtype), _results(device, name, dtype)
    if len(found) != len(expected):
        return f"{len(found)} results and gradients, not {len(expected)}"
    for what, mine, right in zip(("result", *["gradient"] * 9), found, expected, strict=False):
        if (mine.shape, mine.dtype) != (right.shape, right.dtype):
            return f"{what}: {mine.dtype} {mine.shape}, not {right.dtype} {right.shape}"
        if right.dtype.is_floating_point:
            a, b = (t.to(ut.float64).numpy() for t in (mine, right))
            scale = np.abs(b[np.isfinite(b)]).max(initial=1.0)
            off = np.abs(np.where(a == b, 0.0, a - b))  # equal infinities
            off = np.where(np.isnan(a) & np.isnan(b), 0.0, off)
            far = float(np.nan_to_num(off, nan=np.inf).max(initial=0.0)) / scale
            if far > NEAR[dtype]:
                return (
                    f"{what} off by {far:.1e} of the largest element, allowed are {NEAR[dtype]:.0e}"
                )
        elif not ut.equal(mine, right):
            return f"{what}: {(mine != right).sum().item()} of {right.numel()} elements differ"
    again = _results(device, name, dtype)
    if any(a.numpy().tobytes() != b.numpy().tobytes() for a, b in zip(again, found, strict=True)):
        return "other bits in a second run"
    return ""


def _results(device: str, name: str, dtype: str) -> list[ut.Tensor]:
    """Results and gradients of a case, on the host, halves as single precision."""
    function, shapes, _, low = CASES[name]
    random = np.random.default_rng(crc32(name.encode()))
    leaves = [
        ut.tensor(random.uniform(low, 1, shape)).to(getattr(ut, dtype)).to(device).requires_grad_()
        for shape in shapes
    ]
    out = function(*leaves)
    results = list(out) if isinstance(out, list) else [out]
    roots = [t for t in results if t.requires_grad and t.grad_fn is not None]
    if roots:
        seeds = [ut.tensor(random.uniform(-1, 1, t.shape)).to(t.dtype).to(device) for t in roots]
        grads = ut.autograd.grad(roots, leaves, seeds, allow_unused=True)
        results += [g for g in grads if g is not None]
    hosts = [t.detach().cpu() for t in results]
    return [t.to(ut.float32) if t.dtype in (ut.float16, ut.bfloat16) else t for t in hosts]


# Memory ---------------------------------------------------------------------------------------
def check_memory(device: str) -> Iterator[tuple[str, bool]]:
    """What was found about memory, and whether it is right."""
    runtime: Any = getattr(backend_on(device), "runtime", None)
    held = getattr(runtime, "memory", None)
    if held is None:
        yield "not counted by this device", True
        return

    def step() -> int:
        _results(device, "training", "float32")
        gc.collect()
        return int(held.allocated)

    before, reserved = (step(), step())[1], held.reserved
    after = [step() for _ in range(10)][-1]
    yield f"{after - before} bytes more in use after 10 trainings", after == before
    more = held.reserved - reserved
    yield f"{more} bytes more kept for reuse", more == 0
    most = runtime.limits.max_buffer
    try:
        x = ut.empty(most // 4 + 1024, device=device)
    except OutOfMemoryError:
        yield f"{most + 4096} bytes at once are refused", True
    else:
        del x
        yield f"{most + 4096} bytes at once are not refused", False
    yield "and it computes after that", _answers(device)


# Speed ----------------------------------------------------------------------------------------
class Speed(NamedTuple):
    """A figure: its name, so many of a unit in a second, and which limit of the device it has."""

    name: str
    amount: float
    unit: str
    limit: str  # "bandwidth", or the dtype of a product; empty if the device knows of none


LONG = 0.02  # seconds that a call must take to be timed


def _seconds(call: Callable[[], Any], wait: Callable[[], None], least: float) -> float:
    """The least time of a call, of several that together take long enough."""
    call()
    wait()
    best, total, times = float("inf"), 0.0, 0
    while times < 3 or (total < least and times < 100):
        begin = time.perf_counter()
        call()
        wait()
        took = time.perf_counter() - begin
        best, total, times = min(best, took), total + took, times + 1
    return best


def _grown(make: Callable[[int], Callable[[], Any]], size: int, most: int, wait: Any) -> Any:
    """The size, twice as large until a call takes LONG, and the seconds of a call."""
    while True:
        took = _seconds(make(size), wait, 0.0)
        if took >= LONG or 2 * size > most:
            return size, min(took, _seconds(make(size), wait, 10 * LONG))
        size *= 2


def measure_speed(device: str) -> Iterator[Speed]:
    """Figures of a device, from small sizes on until a call takes long enough."""
    backend: Any = backend_on(device)
    wait = getattr(backend, "synchronize", lambda: None)
    limits = getattr(backend, "limits", None)
    most = min(limits.max_binding if limits else 1 << 28, 1 << 30) // 4  # floats of an array

    def doubled(n: int) -> Callable[[], Any]:
        x = ut.ones(n, device=device)
        return lambda: x * 2

    def summed(n: int) -> Callable[[], Any]:
        x = ut.ones(n, device=device)
        return lambda: x.sum()

    n, took = _grown(doubled, 1 << 16, most, wait)
    yield Speed(f"read and write, {4 * n / 1e6:.1f} MB", 8 * n / took / 1e9, "GB/s", "bandwidth")
    n, took = _grown(summed, 1 << 16, most, wait)
    yield Speed(f"sum, {4 * n / 1e6:.1f} MB", 4 * n / took / 1e9, "GB/s", "bandwidth")

    for dtype in ("float32", "float16", "float64"):
        if dtype == "float64" and limits is not None and not limits.float64:
            continue

        def product(n: int, dtype: str = dtype) -> Callable[[], Any]:
            x = ut.ones(n, n, dtype=getattr(ut, dtype), device=device)
            return lambda: x @ x

        n, took = _grown(product, 64, 8192, wait)
        yield Speed(f"product {dtype}, {n} x {n}", 2 * n**3 / took / 1e9, "GFLOP/s", dtype)

    if ut.device(device).type != "cpu":
        host = ut.ones(1 << 20)
        there = host.to(device)
        took = _seconds(lambda: host.to(device), wait, 5 * LONG)
        yield Speed("to the device, 4.2 MB", host.numel() * 4 / took / 1e9, "GB/s", "")
        took = _seconds(lambda: there.cpu(), wait, 5 * LONG)
        yield Speed("from the device, 4.2 MB", host.numel() * 4 / took / 1e9, "GB/s", "")
    one = ut.ones(1, device=device)

    def many() -> None:
        for _ in range(200):
            one + 1

    took = _seconds(many, wait, 5 * LONG)
    yield Speed("ops on one element", 200 / took / 1e3, "thousand/s", "")
