"""ONNX export: onnxruntime computes what the model computes, also at other sizes."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import undertow as ut
from undertow.errors import ArgumentError, UnsupportedError

F = ut.nn.functional


def session(data: bytes) -> Any:
    onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def check(
    model: Callable[..., Any],
    args: tuple[Any, ...],
    others: tuple[tuple[Any, ...], ...] = (),
    rtol: float = 2e-4,
    **how: Any,
) -> list[str]:
    """Compare for `args` and for `others`, of other sizes; the operations of the graph."""
    data = ut.onnx.export(model, args, **how)
    assert data is not None
    run = session(data)
    for given in (args, *others):
        tensors = [t for t in given if isinstance(t, ut.Tensor)]
        feed = {i.name: t.numpy() for i, t in zip(run.get_inputs(), tensors, strict=True)}
        found = run.run(None, feed)
        with ut.no_grad():
            expected = listed(model(*given))
        for ours, theirs in zip(expected, found, strict=True):
            assert ours.shape == theirs.shape
            assert ours.numpy().dtype == theirs.dtype
            np.testing.assert_allclose(theirs, ours.numpy(), rtol=rtol, atol=2e-5)
    return [node.op_type for node in onnx.load_from_string(data).graph.node]


def x(*shape: int, seed: int = 0, dtype: str = "float32") -> ut.Tensor:
    rng = np.random.default_rng((seed, *shape))
    return ut.from_numpy(rng.standard_normal(shape).astype(dtype))


def ids(*shape: int, below: int = 5) -> ut.Tensor:
    return ut.from_numpy(np.random.default_rng(1).integers(0, below, shape))


BATCH = {"dynamic_axes": {"input": {0: "batch"}}}

# Elementwise -------------------------------------------------------------------------------------
UNARY = """
abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad erf erfc exp exp2 expm1 floor frac log
log10 log1p log2 logit neg rad2deg reciprocal round rsqrt sigmoid sign sin sinh sqrt square tan tanh
trunc isnan isinf isfinite sinc signbit
""".split()  # noqa: SIM905
ACTIVATIONS = """
celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6 selu
silu softplus softshrink softsign tanhshrink
""".split()  # noqa: SIM905
AWAY = {"acosh": 2.5}  # where it is defined


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    t = ut.linspace(0.05, 0.9, 12).reshape(3, 4) + AWAY.get(name, 0)
    check(
        getattr(ut, name),
        (t,),
        ((ut.linspace(0.1, 0.8, 8).reshape(2, 4) + AWAY.get(name, 0),),),
        **BATCH,
    )


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    check(getattr(F, name), (x(3, 4) * 3,), ((x(5, 4) * 3,),), **BATCH)


BINARY: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda a, b: a * b - a / (b.abs() + 1) + 2,
    "numbers": lambda a, b: 1 - a + 2 / (b.abs() + 1),
    "power": lambda a, b: a.abs() ** b + a**2 + a**3,
    "remainder": lambda a, b: ut.remainder(a, 0.7) + ut.fmod(b, 0.3) + a // 0.4,
    "extremes": lambda a, b: ut.maximum(a, b) + ut.minimum(a, b) + a.clamp(-1, 1),
    "compare": lambda a, b: ut.where((a > b) & (a != 0) | ~(b <= 0), a, 0.5),
    "logic": lambda a, b: (a > 0) ^ (b > 0),
    "lerp": lambda a, b: ut.lerp(a, b, 0.3) + ut.hypot(a, b) + ut.fmax(a, b),
    "where": lambda a, b: ut.where(a > 0, 1.0, b),
    "addcmul": lambda a, b: ut.addcmul(a, a, b, value=0.5),
}


@pytest.mark.parametrize("function", BINARY.values(), ids=BINARY)
def test_binary(function: Any) -> None:
    axes = {"a": {0: "n"}, "b": {0: "n"}}
    pairs = [(x(3, 4, seed=i), x(3, 1, seed=i + 9)) for i in range(2)]
    others = ((x(6, 4), x(6, 1, seed=3)),)
    check(function, pairs[0], others, input_names=["a", "b"], dynamic_axes=axes)


def test_integers() -> None:
    a, b = ids(3, 4, below=50) - 20, ids(3, 4, below=7) + 1
    check(lambda a, b: a // b + a % b - a * b, (a, b))
    check(lambda a, b: (a & b) | (a ^ 3), (a, b))
    check(lambda a, b: (a > b, a.float() / b, a.sum(), a.max()), (a, b))


def test_other_dtypes() -> None:
    check(lambda t: (t.exp() * 2).sum(-1), (x(3, 4, dtype="float64"),), rtol=1e-12)
    check(lambda t: t.double() * 2 + t.int(), (x(3, 4),))


# Shapes ------------------------------------------------------------------------------------------
SHAPES: dict[str, Callable[..., Any]] = {
    "flatten": lambda t: t.flatten(1),
    "reshape": lambda t: t.reshape(t.shape[0], 4, -1),
    "merge the batch": lambda t: t.reshape(-1, 6),
    "split the batch": lambda t: t.reshape(t.shape[0] * 4, 3, 2).reshape(t.shape[0], 4, 3, 2),
    "permute": lambda t: t.permute(2, 0, 1, 3).contiguous(),
    "transpose": lambda t: t.transpose(1, -1),
    "squeeze": lambda t: t[:, :1].squeeze(1).unsqueeze(-1),
    "slice": lambda t: t[:, 1:, ::2, -1],
    "ellipsis": lambda t: t[..., 0] + t[:, 2, None, :, 1],
    "from the end": lambda t: t[1:, :-1],
    "flip": lambda t: t.flip(1, 2),
    "roll": lambda t: t.roll(1, 1) + t.roll(-2, 2),
    "cat": lambda t: ut.cat([t, t * 2, t[:, :1]], 1),
    "stack": lambda t: ut.stack([t, -t], 1),
    "split": lambda t: list(t.split(2, 1)),
    "chunk": lambda t: t.chunk(2, 2)[1] * 2,
    "unbind": lambda t: t.unbind(1)[2] + 1,
    "expand": lambda t: t[:, :1].expand(-1, 7, -1, -1),
    "expand to the batch": lambda t: ut.ones(1, 2).expand(t.shape[0], 2) * t[:, 0, 0],
    "repeat": lambda t: t.repeat(1, 2, 1, 3),
    "repeat with more dims": lambda t: t.repeat(2, 1, 1, 1, 1),
    "pad": lambda t: F.pad(t, (1, 2, 0, 1), value=0.5),
    "reflect": lambda t: F.pad(t, (1, 1), mode="reflect"),
    "crop": lambda t: F.pad(t, (-1, 1)),
    "tril": lambda t: t.tril() + t.triu(1),
    "unfold": lambda t: t.unfold(2, 2, 1),
    "diagonal": lambda t: t[:, :3].diagonal(0, 1, 2),
    "zeros of the batch": lambda t: ut.cat([ut.zeros(t.shape[0], 1), t[:, 0, 0]], 1),
    "positions of the batch": lambda t: ut.arange(t.shape[0])[:, None] * t[:, 0, 0],
}


@pytest.mark.parametrize("function", SHAPES.values(), ids=SHAPES)
def test_shapes(function: Any) -> None:
    check(function, (x(2, 4, 3, 2),), ((x(5, 4, 3, 2),), (x(1, 4, 3, 2),)), **BATCH)


INDICES: dict[str, Callable[..., Any]] = {
    "rows": lambda t: t[:, ut.tensor([2, 0, -1])],
    "index_select": lambda t: t.index_select(1, ut.tensor([1, 1])),
    "gather": lambda t: t.gather(1, ut.zeros(t.shape[0], 2, 3, dtype=ut.int64)),
    "argmax": lambda t: (t.argmax(1), t.argmin(-1, keepdim=True)),
    "max": lambda t: (*t.max(1), *t.min(2, keepdim=True)),
    "sort": lambda t: list(t.sort(1)),
    "kthvalue": lambda t: list(t.kthvalue(2, 1)),
    "topk": lambda t: list(t.topk(2, 1)),
    "cumsum": lambda t: t.cumsum(1),
    "masked_fill": lambda t: t.masked_fill(t > 0, -1.0),
    "one_hot": lambda t: F.one_hot(t.argmax(1), 4).float(),
}


@pytest.mark.parametrize("function", INDICES.values(), ids=INDICES)
def test_indices(function: Any) -> None:
    check(function, (x(2, 4, 3),), ((x(5, 4, 3),),), **BATCH)


def test_several_indices() -> None:
    rows, columns = ut.tensor([0, 1]), ut.tensor([2, 0])
    check(lambda t: t[rows, columns], (x(2, 4, 3),))
    check(lambda t: t.index_put((rows, columns), x(2, 3)), (x(2, 4, 3),))
    check(lambda t: t.index_put((rows, columns), x(3), accumulate=True), (x(2, 4, 3),))
    check(lambda t: t.scatter_add(1, ut.zeros(2, 2, 3, dtype=ut.int64), t), (x(2, 4, 3),))


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda t: t.sum(),
    "sum of dims": lambda t: t.sum((1, 2)),
    "mean": lambda t: t.mean(-1, keepdim=True) + t.mean(1, keepdim=True),
    "prod": lambda t: t.prod(1),
    "amax": lambda t: t.amax((1, 2)) - t.amin((1, 2)),
    "logsumexp": lambda t: t.logsumexp(1),
    "var": lambda t: t.var(1) + t.std(1, correction=0),
    "norm": lambda t: t.norm(dim=1) + t.norm(1, dim=1) + t.norm(3, dim=1),
    "any": lambda t: ((t > 0).any(1), (t > 0).all(2)),
    "count": lambda t: (t > 0).sum(1),
    "softmax": lambda t: t.softmax(-1) + t.log_softmax(1),
    "cosine": lambda t: F.cosine_similarity(t, t + 1, dim=1),
    "normalize": lambda t: F.normalize(t, dim=1),
    "mse": lambda t: F.mse_loss(t, t * 0.5, reduction="none").mean(1),
}


@pytest.mark.parametrize("function", REDUCTIONS.values(), ids=REDUCTIONS)
def test_reductions(function: Any) -> None:
    check(function, (x(2, 4, 3),), ((x(5, 4, 3),),), **BATCH)


# Products ----------------------------------------------------------------------------------------
PRODUCTS: dict[str, Callable[..., Any]] = {
    "constant": lambda t: t @ x(3, 5),
    "transposed": lambda t: t @ t.transpose(-1, -2),
    "left": lambda t: x(5, 4) @ t,
    "vector": lambda t: t @ x(3),
    "einsum": lambda t: ut.einsum("bij,kj->bik", t, x(6, 3)),
    "baddbmm": lambda t: ut.bmm(t, t.mT) + 1,
    "linear": lambda t: F.linear(t, x(5, 3), x(5)),
    "linear without bias": lambda t: F.linear(t, x(5, 3)),
    "bilinear": lambda t: F.bilinear(t, t, x(5, 3, 3), x(5)),
    "attention": lambda t: F.scaled_dot_product_attention(t, t, t),
    "causal": lambda t: F.scaled_dot_product_attention(t, t, t, is_causal=True),
    "added mask": lambda t: F.scaled_dot_product_attention(t, t, t, x(4, 4)),
    "mask": lambda t: F.scaled_dot_product_attention(t, t, t, ut.tensor([True, False, True, True])),
    "nothing to see": lambda t: F.scaled_dot_product_attention(t, t, t, ut.zeros(4, 4) > 0),
}


@pytest.mark.parametrize("function", PRODUCTS.values(), ids=PRODUCTS)
def test_products(function: Any) -> None:
    check(function, (x(2, 4, 3),), ((x(5, 4, 3),),), **BATCH)


def test_attention_of_any_length() -> None:
    axes = {"input": {0: "batch", 2: "time"}}
    causal = lambda t: F.scaled_dot_product_attention(t, t, t, is_causal=True)
    check(causal, (x(2, 2, 4, 3),), ((x(3, 2, 9, 3),), (x(1, 2, 1, 3),)), dynamic_axes=axes)


# Layers ------------------------------------------------------------------------------------------
PLANES: dict[str, Callable[..., Any]] = {
    "conv": lambda t: F.conv2d(t, x(6, 4, 3, 2), x(6), stride=2, padding=1),
    "dilated": lambda t: F.conv2d(t, x(6, 4, 3, 3), dilation=2, padding=2),
    "same": lambda t: F.conv2d(t, x(6, 4, 4, 3), padding="same"),
    "grouped": lambda t: F.conv2d(t, x(8, 1, 3, 3), groups=4),
    "transposed": lambda t: F.conv_transpose2d(
        t, x(4, 3, 3, 3), x(3), stride=2, padding=1, output_padding=1
    ),
    "transposed groups": lambda t: F.conv_transpose2d(t, x(4, 3, 3, 2), groups=2, dilation=2),
    "max_pool": lambda t: F.max_pool2d(t, 3, 2, 1),
    "max_pool without padding": lambda t: F.max_pool2d(t, 2),
    "max_pool ceil": lambda t: F.max_pool2d(t, 2, ceil_mode=True),
    "max_pool dilated": lambda t: F.max_pool2d(t, 2, 1, dilation=2),
    "avg_pool": lambda t: F.avg_pool2d(t, 3, 2, 1),
    "avg_pool without the padding": lambda t: F.avg_pool2d(t, 3, 2, 1, count_include_pad=False),
    "avg_pool divisor": lambda t: F.avg_pool2d(t, 2, divisor_override=3),
    "lp_pool": lambda t: F.lp_pool2d(t.abs(), 2, 2),
    "adaptive mean": lambda t: F.adaptive_avg_pool2d(t, 1).flatten(1),
    "adaptive means": lambda t: F.adaptive_avg_pool2d(t, (3, 2)),
    "adaptive max": lambda t: F.adaptive_max_pool2d(t, (3, 2)),
    "nearest": lambda t: F.interpolate(t, scale_factor=2),
    "bilinear": lambda t: F.interpolate(t, scale_factor=2, mode="bilinear"),
    "pixel_shuffle": lambda t: F.pixel_shuffle(t, 2),
    "batch_norm": lambda t: F.batch_norm(t, x(4), x(4).abs(), x(4, seed=1), x(4, seed=2)),
    "batch_norm alone": lambda t: F.batch_norm(t, x(4), x(4).abs()),
    "instance_norm": lambda t: F.instance_norm(t, weight=x(4), bias=x(4, seed=1)),
    "group_norm": lambda t: F.group_norm(t, 2, x(4), x(4, seed=1)),
    "group_norm alone": lambda t: F.group_norm(t, 4),
    "layer_norm": lambda t: F.layer_norm(t, (7, 6), x(7, 6), x(7, 6, seed=1)),
    "layer_norm alone": lambda t: F.layer_norm(t, (6,)),
    "rms_norm": lambda t: F.rms_norm(t, (6,), x(6)),
    "dropout": lambda t: F.dropout(t, training=False) + F.dropout2d(t, training=False),
    "glu": lambda t: F.glu(t, 1),
    "unfold": lambda t: F.unfold(t, (3, 2), dilation=2, padding=1, stride=(1, 2)),
    "fold": lambda t: F.fold(F.unfold(t, 3, padding=1, stride=2), (7, 6), 3, padding=1, stride=2),
    "prelu": lambda t: F.prelu(t, x(4)),
    "local response": lambda t: F.local_response_norm(t, 2),
}


@pytest.mark.parametrize("function", PLANES.values(), ids=PLANES)
def test_planes(function: Any) -> None:
    check(function, (x(2, 4, 7, 6),), ((x(5, 4, 7, 6),),), **BATCH)


@pytest.mark.parametrize("rank", [1, 3])
def test_other_ranks(rank: int) -> None:
    size = (6, 7, 5)[:rank]
    conv, turned = getattr(F, f"conv{rank}d"), getattr(F, f"conv_transpose{rank}d")
    pool, mean = getattr(F, f"max_pool{rank}d"), getattr(F, f"avg_pool{rank}d")
    kernel = (3,) * rank

    def model(t: Any) -> Any:
        t = conv(t, x(4, 3, *kernel), padding=1)
        return turned(pool(t, 2), x(4, 2, *kernel)), mean(t, 3, 2, 1)

    check(model, (x(2, 3, *size),), ((x(4, 3, *size),),), **BATCH)


def test_series_of_any_length() -> None:
    axes = {"input": {0: "batch", 2: "time"}}

    def model(t: Any) -> Any:
        t = F.relu(F.conv1d(t, x(8, 3, 5), padding=2, stride=2), inplace=True)
        t = F.max_pool1d(F.batch_norm(t, x(8), x(8).abs()), 3, 2, 1)
        return F.pad(t, (1, 1)).mean(-1), t.flatten(1)

    check(model, (x(2, 3, 32),), ((x(5, 3, 51),), (x(1, 3, 8),)), dynamic_axes=axes)


def test_sizes_that_are_products() -> None:
    axes = {"input": {0: "batch", 1: "time"}}

    def model(t: Any) -> Any:
        n, length, _ = t.shape
        return t.reshape(n * length, 3) + ut.zeros(n * length, 1), ut.ones(2 * n, length + 1)

    check(model, (x(2, 4, 3),), ((x(3, 5, 3),), (x(1, 1, 3),)), dynamic_axes=axes)


def test_embedding() -> None:
    table = x(5, 3)
    axes = {"input": {0: "batch", 1: "time"}}
    model = lambda i: F.embedding(i, table) + ut.arange(i.shape[1])[:, None]
    check(model, (ids(2, 4),), ((ids(3, 7),),), dynamic_axes=axes)
    check(lambda i: F.embedding(i, table, padding_idx=0), (ids(2, 4),))


# Modules -----------------------------------------------------------------------------------------
def test_parameters_keep_their_names() -> None:
    model = ut.nn.Sequential(ut.nn.Linear(3, 4), ut.nn.Linear(4, 2))
    data = ut.onnx.export(
        model, ut.ones(5, 3), input_names=["x"], output_names=["y"], opset_version=20
    )
    assert data is not None
    graph = onnx.load_from_string(data).graph
    assert [i.name for i in graph.input] == ["x"]
    assert [o.name for o in graph.output] == ["y"]
    assert {i.name for i in graph.initializer} == {"0.weight", "0.bias", "1.weight", "1.bias"}
    assert onnx.load_from_string(data).opset_import[0].version == 20
    assert [n.op_type for n in graph.node] == ["Gemm", "Gemm", "Identity"]


class Block(ut.nn.Module):
    """A transformer block, written by hand."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = ut.nn.Linear(width, 3 * width)
        self.out = ut.nn.Linear(width, width)
        self.up = ut.nn.Linear(width, 2 * width)
        self.down = ut.nn.Linear(2 * width, width)
        self.weight = ut.nn.Parameter(ut.ones(width))

    def forward(self, t: Any) -> Any:
        n, length, width = t.shape
        h = F.layer_norm(t, (width,), self.weight)
        q, k, v = self.qkv(h).reshape(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        h = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        t = t + self.out(h.transpose(1, 2).reshape(n, length, width))
        return t + self.down(F.gelu(self.up(F.layer_norm(t, (width,)))))


def test_a_transformer_of_any_length() -> None:
    model = ut.nn.Sequential(Block(8, 2), Block(8, 2))
    axes = {"input": {0: "batch", 1: "time"}}
    check(model, (x(2, 5, 8),), ((x(3, 9, 8),), (x(1, 1, 8),)), dynamic_axes=axes)


nn: Any = ut.nn
SMALL = "CELU ELU GELU Hardswish LeakyReLU LogSigmoid Mish PReLU ReLU SELU SiLU Softplus Tanh"
LAYERS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "images": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, padding=1, padding_mode="reflect"),
            nn.GELU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Dropout(),
            nn.Linear(8, 4),
            nn.Softmax(-1),
        ),
        (3, 8, 8),
    ),
    "series": (
        lambda: nn.Sequential(
            nn.Conv1d(3, 8, 8, padding="same"),
            nn.BatchNorm1d(8),
            nn.ReLU(),
            nn.ConvTranspose1d(8, 3, 4, stride=2, padding=1),
        ),
        (3, 16),
    ),
    "volumes": (
        lambda: nn.Sequential(
            nn.Conv3d(2, 4, 3), nn.InstanceNorm3d(4, affine=True), nn.AvgPool3d(2)
        ),
        (2, 6, 6, 6),
    ),
    "norms": (lambda: nn.Sequential(nn.LayerNorm(6), nn.GroupNorm(2, 4), nn.RMSNorm(6)), (4, 6)),
    "shapes": (
        lambda: nn.Sequential(
            nn.Upsample(scale_factor=2), nn.PixelShuffle(2), nn.ZeroPad2d(1), nn.ReplicationPad2d(1)
        ),
        (4, 4, 4),
    ),
    "activations": (lambda: nn.Sequential(*[getattr(nn, a)() for a in SMALL.split()]), (5,)),
    "encoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2),
        (5, 8),
    ),
}


@pytest.mark.skipif(not hasattr(nn, "Conv2d"), reason="there are no such layers yet")
@pytest.mark.parametrize("make, shape", LAYERS.values(), ids=LAYERS)
def test_layers(make: Any, shape: Any) -> None:
    model = make().eval()
    check(model, (x(2, *shape),), ((x(5, *shape),),), **BATCH)


RECURRENT: dict[str, Callable[[], Any]] = {
    "lstm": lambda: nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True),
    "gru": lambda: nn.GRU(3, 4, 2, batch_first=True, bias=False),
    "rnn": lambda: nn.RNN(3, 4, nonlinearity="relu", batch_first=True),
}


@pytest.mark.skipif(not hasattr(nn, "LSTM"), reason="there are no such layers yet")
@pytest.mark.parametrize("make", RECURRENT.values(), ids=RECURRENT)
def test_recurrent_layers(make: Any) -> None:
    model = make().eval()

    def run(t: Any) -> Any:
        out, state = model(t)
        return (out, *state) if isinstance(state, tuple) else (out, state)

    axes = {"input": {0: "batch", 1: "time"}}
    check(run, (x(2, 5, 3),), ((x(4, 9, 3),), (x(1, 1, 3),)), dynamic_axes=axes)


def test_a_recurrent_cell_is_unrolled() -> None:
    w, u = x(6, 3), x(6, 6)

    def model(t: Any) -> Any:
        h, found = ut.zeros(t.shape[0], 6), []
        for i in range(t.shape[1]):
            h = ut.tanh(t[:, i] @ w.t() + h @ u.t())
            found.append(h)
        return ut.stack(found, 1), h

    check(model, (x(2, 4, 3),), ((x(5, 4, 3),),), **BATCH)


def test_the_mode_is_put_back() -> None:
    model = ut.nn.Sequential(ut.nn.Linear(3, 3), ut.nn.Linear(3, 3))
    model[1].eval()
    model.training = True
    ut.onnx.export(model, x(2, 3))
    assert [m.training for m in model.modules()] == [True, True, False]
    assert all(p.grad is None for p in model.parameters())


def test_in_place() -> None:
    def model(t: Any) -> Any:
        t.mul_(2).add_(1)
        u = t.exp()
        u.clamp_(max=3)
        return t + u.relu_()

    t = x(3, 4)
    before = t.clone()
    data = ut.onnx.export(model, t)
    assert data is not None
    assert t.equal(before)  # the model got a copy
    found = session(data).run(None, {"input": t.numpy()})[0]
    np.testing.assert_allclose(found, model(t.clone()).numpy(), rtol=1e-5)


# Files and arguments -----------------------------------------------------------------------------
def test_files(tmp_path: Path) -> None:
    model = ut.nn.Linear(3, 2)
    data = ut.onnx.export(model, (x(2, 3),))
    assert ut.onnx.export(model, (x(2, 3),), tmp_path / "m.onnx", export_params=True) is None
    assert (tmp_path / "m.onnx").read_bytes() == data
    file = io.BytesIO()
    ut.onnx.export(model, x(2, 3), file)
    assert file.getvalue() == data


def test_names_and_dynamic_shapes() -> None:
    model = lambda a, b, scale: {"sum": (a + b) * scale, "rows": a.sum(1)}
    args = (x(2, 3), x(2, 3), 2.0)
    data = ut.onnx.export(
        model,
        args,
        input_names=["a", "b"],
        dynamic_shapes=({0: "n"}, {0: "n"}),
        output_names=["s", "r"],
    )
    assert data is not None
    graph = onnx.load_from_string(data).graph
    shapes = [
        [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]
        for v in (*graph.input, *graph.output)
    ]
    assert shapes == [["n", 3], ["n", 3], ["n", 3], ["n"]]
    many = session(data).run(None, {"a": x(7, 3).numpy(), "b": x(7, 3).numpy()})
    np.testing.assert_allclose(many[0], 4 * x(7, 3).numpy(), rtol=1e-6)


def test_an_input_as_it_is() -> None:
    assert check(lambda t: (t, t.detach(), ut.ones(2)), (x(2, 3),)) == ["Identity"] * 3


# Errors ------------------------------------------------------------------------------------------
class Odd(ut.nn.Module):
    def forward(self, t: Any) -> Any:
        return ut.lgamma(t) if t.ndim == 1 else ut.special.digamma(t) if False else t.unique()


@pytest.mark.filterwarnings("ignore:.*how many elements are found")
def test_an_unsupported_op_names_the_module() -> None:
    model = ut.nn.Sequential(ut.nn.Linear(3, 3), ut.nn.Sequential(Odd()))
    with pytest.raises(UnsupportedError, match=r"op unique in module '1\.0' cannot be exported"):
        ut.onnx.export(model, x(2, 3))


def test_training_statistics_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"channel_norm.*eval\(\)"):
        ut.onnx.export(lambda t: F.batch_norm(t, None, None, training=True), x(4, 3))


def test_sizes_that_cannot_vary() -> None:
    table = x(64, 3)
    with pytest.raises(UnsupportedError, match="dynamic axis"):
        ut.onnx.export(lambda t: t + table[: t.shape[0]] * x(t.shape[0], 1), x(2, 3), **BATCH)
    with pytest.raises(UnsupportedError, match="not linear"):
        ut.onnx.export(lambda t: t[: t.shape[0] // 2], x(6, 3), **BATCH)
    with pytest.raises(UnsupportedError, match="not linear"):
        ut.onnx.export(lambda t: ut.zeros(t.shape[0] ** 2, 3), x(6, 3), **BATCH)
    with pytest.raises(UnsupportedError, match="other operations"):
        ut.onnx.export(lambda t: t.exp() if t.shape[0] > 3 else t + 1, x(2, 3), **BATCH)


def test_bad_arguments() -> None:
    model = ut.nn.Linear(3, 2)
    with pytest.raises(ArgumentError, match="input_names must be 1 different names"):
        ut.onnx.export(model, x(2, 3), input_names=["a", "b"])
    with pytest.raises(ArgumentError, match="no dimension 5"):
        ut.onnx.export(model, x(2, 3), dynamic_axes={"input": {5: "n"}})
    with pytest.raises(ArgumentError, match="no input"):
        ut.onnx.export(model, x(2, 3), dynamic_axes={"x": {0: "n"}})
    with pytest.raises(UnsupportedError, match="opset_version 9"):
        ut.onnx.export(model, x(2, 3), opset_version=9)
    with pytest.raises(TypeError, match="no argument 'speed'"):
        ut.onnx.export(model, x(2, 3), speed=3)
    with pytest.raises(TypeError, match="returned a int"):
        ut.onnx.export(lambda t: 3, x(2, 3))
    with pytest.raises(UnsupportedError, match="export_params"):
        ut.onnx.export(model, x(2, 3), export_params=False)


def test_changes_that_cannot_be_followed() -> None:
    def model(t: Any) -> Any:
        t = t * 2
        t[0] = 5.0
        return t + 1

    with pytest.raises(UnsupportedError, match="changed in place"):
        ut.onnx.export(model, x(2, 3))


# Numbers that follow a size ----------------------------------------------------------------------
LENGTH: dict[str, Any] = {"input_names": ["i"], "dynamic_axes": {"i": {1: "t"}}}
LINEAR: dict[str, Callable[..., Any]] = {
    "mul": lambda t: t * t.shape[1],
    "div": lambda t: t.sum(1) / t.shape[1],
    "float": lambda t: t / float(2 * t.shape[1] + 1) - t.shape[1],
    "compare": lambda t: t.cumsum(1) > t.shape[1] - 2,
    "integers": lambda t: t.argmax(1) - t.shape[1],
}


@pytest.mark.parametrize("function", LINEAR.values(), ids=LINEAR)
def test_operands_that_are_sizes(function: Any) -> None:
    check(function, (x(2, 5),), ((x(2, 10),), (x(2, 1),), (x(2, 47),)), **LENGTH)


def test_operands_that_are_sizes_of_two_axes() -> None:
    axes = {"input": {0: "n", 1: "t"}}
    model = lambda t: t * t.shape[0] + t.shape[1] - t.numel()
    check(model, (x(2, 4),), ((x(3, 5),), (x(1, 1),), (x(6, 2),)), dynamic_axes=axes)


def test_a_constant_that_is_expanded_from_one() -> None:
    model = lambda t: (ut.ones(1, 2).expand(t.shape[1], 2).exp(), t * 1)
    check(model, (x(2, 1),), ((x(2, 3),),), **LENGTH)


TABLE, OTHER_TABLE = x(2, 1), x(2, 1, seed=1)
FROZEN: dict[str, tuple[Callable[..., Any], str]] = {
    "root": (lambda t: t / math.sqrt(t.shape[1]), "op div .*operand varies"),
    "inverse": (lambda t: t * (1 / t.shape[1]), "op mul .*operand varies"),
    "square": (lambda t: t * t.shape[1] ** 2, "operand of mul"),
    "product": (lambda t: t.sum(1) + t.shape[1] * t.shape[1], "operand of add"),
    "half": (lambda t: t * (t.shape[1] // 2), "operand of mul"),
    "remainder": (lambda t: t + t.shape[1] % 3, "operand of add"),
    "full": (lambda t: t + ut.full((2, 1), float(t.shape[1])), "op add.*other elements"),
    "full of that size": (lambda t: t + ut.full((t.shape[1],), 1 / t.shape[1]), "constant"),
    "tensor": (lambda t: t * ut.tensor(float(t.shape[1])), "op mul.*other elements"),
    "steps": (lambda t: t * ut.linspace(0, 1, t.shape[1]), "op mul.*constant of shape"),
    "random": (lambda t: t + ut.rand(2, 1), "op add.*at another call"),
    "roll": (lambda t: t.roll(t.shape[1] // 2, 1), "shift varies"),
    "step": (lambda t: t[:, :: t.shape[1] // 5], "step varies"),
    "index": (lambda t: t[:, t.shape[1] // 2], "index of slice depends on a dynamic axis"),
    "exponent": (lambda t: t.abs().norm(t.shape[1], dim=1), "p varies"),
    "epsilon": (lambda t: F.rms_norm(t[:, :3], (3,), eps=1 / t.shape[1]), "eps varies"),
    "pad to four": (lambda t: F.pad(t, (0, -t.shape[1] % 4)), "padding|other operations"),
    "pad to even": (lambda t: F.pad(t, (0, t.shape[1] % 2)), "padding|other operations"),
    "pad by half": (lambda t: F.pad(t, (0, t.shape[1] // 2)), "padding|other operations"),
    "value": (lambda t: F.pad(t, (0, 1), value=t.shape[1]), "value varies"),
    "stride": (lambda t: F.max_pool1d(t[None], 2, 1 + t.shape[1] // 7)[0], "windows varies"),
    "branch": (lambda t: t * 2 if t.shape[1] > 40 else t, "other operations.*mul"),
    "branch on a number": (lambda t: t * (2 if t.shape[1] > 40 else 3), "operand of mul"),
    "branch on a constant": (lambda t: t * (TABLE if t.shape[1] > 40 else OTHER_TABLE), "elements"),
    "branch on a value": (
        lambda t: (lambda a, b: a / b if t.shape[1] > 40 else b / a)(t + 1, t + 2),
        "op div .*other tensors",
    ),
    "branch on the result": (
        lambda t: (lambda a, b: a if t.shape[1] > 40 else b)(t + 1, t + 2),
        "returns other tensors",
    ),
    "item": (lambda t: t + t.sum().item(), "op add .*operand varies"),
}


@pytest.mark.filterwarnings("ignore:.*(is read as a number|random numbers are drawn)")
@pytest.mark.parametrize("size", [5, 6])
@pytest.mark.parametrize("function, told", FROZEN.values(), ids=FROZEN)
def test_numbers_are_not_frozen(function: Any, told: str, size: int) -> None:
    with pytest.raises(UnsupportedError, match=told):
        ut.onnx.export(function, x(2, size), **LENGTH)


@pytest.mark.parametrize(
    "function",
    [
        lambda t: t[:, -1],
        lambda t: t[..., -2],
        lambda t: t[:, t.shape[1] - 1] + t[:, 0],
        lambda t: t.select(1, -1) * 2,
    ],
)
def test_elements_counted_from_the_end_of_a_dynamic_axis(function: Any) -> None:
    check(function, (x(2, 5),), ((x(2, 10),), (x(2, 2),), (x(2, 47),)), **LENGTH)


@pytest.mark.parametrize(
    "read",
    [bool, float, int, lambda t: t.item(), lambda t: t.tolist(), lambda t: t.detach().numpy()],
)
def test_reading_a_value_while_exporting_warns_with_the_line(read: Any) -> None:
    class Branching(ut.nn.Module):
        def forward(self, t: ut.Tensor) -> ut.Tensor:
            read(ut.ones(()))  # a constant may be read
            read((t * 2).sum())
            return t + 1

    with pytest.warns(UserWarning, match="onnx.export.*depends on the inputs") as told:
        ut.onnx.export(Branching(), x(2, 3), **LENGTH)
    assert len(told) == 1
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Branching()(x(2, 3))


def test_a_buffer_that_the_model_counts_with() -> None:
    class Counting(ut.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", ut.tensor(0))

        def forward(self, t: ut.Tensor) -> ut.Tensor:
            self.calls.add_(1)
            self.calls.mul_(2)
            return t + 1

    check(Counting(), (x(2, 3),))


def test_dimensions_of_writers_are_not_frozen() -> None:
    model = lambda t: F.unfold(t, 2)
    with pytest.raises(UnsupportedError, match="dynamic axis"):
        ut.onnx.export(model, x(2, 3, 4, 4), dynamic_axes={"input": {1: "channels"}})


def test_a_result_that_follows_a_size() -> None:
    model = lambda t: (t + 1, ut.tensor([1.0, t.shape[1]]))
    with pytest.raises(UnsupportedError, match=r"^\[onnx.export\] a constant .* other elements"):
        ut.onnx.export(model, x(2, 5), **LENGTH)


def test_sizes_that_the_model_refuses() -> None:
    patches = lambda t: t.reshape(t.shape[0], -1, 4).mean(-1)
    check(patches, (x(2, 8),), ((x(2, 4),), (x(2, 20),)), **LENGTH)
