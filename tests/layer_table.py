"""The table of layers: for every module class its function, and calls that exercise it.

`test_layers.py` turns it into tests without torch, `conformance/test_torch_layers.py` into a
comparison with torch's layer of the same name: state, text, outputs, gradients, start values. A
public module class without an entry fails the suite.

Arrays stand for tensors, in constructors as well as among the inputs; float64 inputs are
differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from op_samples import arr, ints, positive
from undertow.nn import functional as F


class Case:
    """One call of a layer: `Case(8, 3, padding=1)(x)`, constructor first, then the inputs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs
        self.inputs: tuple[Any, ...] = ()
        self.options: dict[str, Any] = {}
        self.training = True

    def __call__(self, *inputs: Any, **options: Any) -> Case:
        self.inputs, self.options = inputs, options
        return self

    @property
    def eval(self) -> Case:
        """The same in evaluation."""
        self.training = False
        return self

    def __repr__(self) -> str:
        shown = [f"{n}={_short(v)}" for n, v in {**self.kwargs, **self.options}.items()]
        return ",".join([*map(_short, self.args), *shown, "" if self.training else "eval"])


C = Case


@dataclass
class Layer:
    """One module class: its function of (module, *inputs), its cases, a large one to start."""

    name: str
    function: Callable[..., Any]
    cases: list[Case]
    starts: Case | None = None  # constructor arguments with enough parameters to measure
    random: bool = False  # in training: compared with its function under one seed only
    becomes: str | None = None  # of a lazy layer
    torch_grad: bool = True  # whether torch's gradients are the derivatives


class Sub:
    """A module among constructor arguments: `Sub("LayerNorm", 8)`."""

    def __init__(self, name: str, *args: Any, **kwargs: Any) -> None:
        self.name, self.args, self.kwargs = name, args, kwargs
        self.__name__ = name


TABLE: dict[str, Layer] = {}


def layer(name: str, function: Callable[..., Any], *cases: Case, **more: Any) -> None:
    """Enter a layer into the table."""
    assert name not in TABLE, name
    TABLE[name] = Layer(name, function, list(cases), **more)


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"array{list(value.shape)}".replace(" ", "")
    return getattr(value, "__name__", str(value)).replace(" ", "")


def made(namespace: Any, entry: Layer, case: Case, convert: Callable[[Any], Any]) -> Any:
    """The layer of a case, in the library whose `nn` is given."""

    def prepared(value: Any) -> Any:
        if isinstance(value, Sub):
            return getattr(namespace, value.name)(*value.args, **value.kwargs)
        return convert(value) if isinstance(value, np.ndarray) else value

    args = [prepared(a) for a in case.args]
    kwargs = {n: prepared(v) for n, v in case.kwargs.items()}
    return getattr(namespace, entry.name)(*args, **kwargs).train(case.training)


def outputs(out: Any) -> list[Any]:
    """The tensors of an output."""
    return [t for t in out if t is not None] if isinstance(out, tuple) else [out]


x = arr
SIGNALS, IMAGES, VOLUMES = arr(2, 4, 9), arr(2, 4, 6, 7), arr(2, 4, 5, 4, 6)
BY_DIMS = {1: SIGNALS, 2: IMAGES, 3: VOLUMES}
MASK = np.triu(np.full((5, 5), -np.inf), 1)
PADDED = np.array([[False] * 5, [False] * 3 + [True] * 2])


# Products ----------------------------------------------------------------------------------------
layer("Identity", lambda m, x: x, C(54, unused=1)(x(2, 3)))
layer(
    "Linear",
    lambda m, x: F.linear(x, m.weight, m.bias),
    C(3, 4)(x(5, 3)),
    C(3, 4, bias=False)(x(2, 5, 3)),
    starts=C(300, 500),
)
layer(
    "LazyLinear",
    lambda m, x: F.linear(x, m.weight, m.bias),
    C(4)(x(5, 3)),
    C(4, False)(x(3)),
    becomes="Linear",
)
layer(
    "Bilinear",
    lambda m, a, b: F.bilinear(a, b, m.weight, m.bias),
    C(3, 2, 4)(x(5, 3), x(5, 2)),
    C(3, 2, 4, bias=False)(x(5, 3), x(5, 2)),
    starts=C(30, 40, 500),
)


# Convolutions ------------------------------------------------------------------------------------
def conv(n: int) -> Callable[..., Any]:
    plain = getattr(F, f"conv{n}d")

    def function(m: Any, x: Any) -> Any:
        if m.padding_mode == "zeros":
            return plain(x, m.weight, m.bias, m.stride, m.padding, m.dilation, m.groups)
        padded = F.pad(x, m._reversed_padding_repeated_twice, m.padding_mode)
        return plain(padded, m.weight, m.bias, m.stride, 0, m.dilation, m.groups)

    return function


def transposed(n: int) -> Callable[..., Any]:
    plain = getattr(F, f"conv_transpose{n}d")

    def function(m: Any, x: Any, output_size: Any = None) -> Any:
        more = m.output_padding
        if output_size is not None:
            size = plain(x, m.weight, None, m.stride, m.padding, 0, m.groups, m.dilation).shape[2:]
            more = [a - b for a, b in zip(output_size[-n:], size, strict=True)]
        return plain(x, m.weight, m.bias, m.stride, m.padding, more, m.groups, m.dilation)

    return function


for n, inputs in BY_DIMS.items():
    layer(
        f"Conv{n}d",
        conv(n),
        C(4, 6, 3)(inputs),
        C(4, 6, 3, 2, 1, groups=2, bias=False)(inputs),
        C(4, 6, (2,) * n, dilation=2, padding="same")(inputs),
        C(4, 6, 2, padding="valid")(inputs[0]),
        C(4, 6, 3, padding="same", padding_mode="reflect")(inputs),
        C(4, 6, (3, 2, 1)[:n], padding=(2, 1, 0)[:n], padding_mode="circular")(inputs),
        C(4, 6, 3, stride=2, padding=1, padding_mode="replicate")(inputs),
        starts=C(8, 600, 3),
    )
    layer(
        f"LazyConv{n}d",
        conv(n),
        C(6, 3, padding=1)(inputs),
        C(6, 3, groups=2, bias=False)(inputs[0]),
        becomes=f"Conv{n}d",
    )
    larger = [2 * size + 2 for size in inputs.shape[2:]]
    layer(
        f"ConvTranspose{n}d",
        transposed(n),
        C(4, 6, 3)(inputs),
        C(4, 6, 3, 2, 1, 1, groups=2, bias=False)(inputs),
        C(4, 6, (3, 2, 3)[:n], dilation=2, padding=1)(inputs[0]),
        C(4, 6, 3, stride=2)(inputs, output_size=larger),
        C(4, 6, 3, stride=2)(inputs, output_size=[2, 6, *larger]),
        starts=C(600, 8, 3),
    )
    layer(
        f"LazyConvTranspose{n}d",
        transposed(n),
        C(6, 3, stride=2)(inputs),
        C(6, 3, groups=2, bias=False)(inputs[0]),
        becomes=f"ConvTranspose{n}d",
    )


# Pooling -----------------------------------------------------------------------------------------
def pool(name: str, *attributes: str) -> Callable[..., Any]:
    plain = getattr(F, name)
    return lambda m, x, *more: plain(x, *more, *[getattr(m, a) for a in attributes])


for n, inputs in BY_DIMS.items():
    layer(
        f"MaxPool{n}d",
        pool(
            f"max_pool{n}d",
            *("kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices"),
        ),
        C(2)(inputs),
        C((3,) * n, 2, 1, ceil_mode=True)(inputs),
        C(2, stride=1, dilation=2, return_indices=True)(inputs[0]),
    )
    places = np.arange(4).reshape((1, 1) + (1,) * (n - 1) + (4,)) * 2 + 1
    layer(
        f"MaxUnpool{n}d",
        pool(f"max_unpool{n}d", "kernel_size", "stride", "padding"),
        C(2)(x(*(2, 3), *(1,) * (n - 1), 4), np.broadcast_to(places, (2, 3, *(1,) * (n - 1), 4))),
    )
    averaged = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")
    divided = ("divisor_override",) if n > 1 else ()
    layer(
        f"AvgPool{n}d",
        pool(f"avg_pool{n}d", *averaged, *divided),
        C(2)(inputs),
        C((3,) * n, 2, 1, True, False)(inputs),
        *([C(2, divisor_override=3)(inputs[0])] if n > 1 else []),
    )
    layer(
        f"LPPool{n}d",
        pool(f"lp_pool{n}d", "norm_type", "kernel_size", "stride", "ceil_mode"),
        C(2, 3)(positive(*inputs.shape)),
        C(3.0, (2,) * n if n > 1 else 2, stride=1, ceil_mode=True)(positive(*inputs.shape)),
    )
    layer(
        f"AdaptiveAvgPool{n}d",
        pool(f"adaptive_avg_pool{n}d", "output_size"),
        C(1)(inputs),
        C((3, None, 2)[:n])(inputs[0]),
    )
    layer(
        f"AdaptiveMaxPool{n}d",
        pool(f"adaptive_max_pool{n}d", "output_size", "return_indices"),
        C(2)(inputs),
        C((3, None, 2)[:n], return_indices=True)(inputs),
    )
for n in (2, 3):
    layer(
        f"FractionalMaxPool{n}d",
        lambda m, x, n=n: getattr(F, f"fractional_max_pool{n}d")(
            x, m.kernel_size, m.output_size, m.output_ratio, m.return_indices, m._random_samples
        ),
        C(2, output_size=2, _random_samples=positive(2, 4, n) / 3)(BY_DIMS[n]),
        C(2, output_ratio=0.5, return_indices=True, _random_samples=positive(2, 4, n) / 3)(
            BY_DIMS[n]
        ),
    )


# Normalisation -----------------------------------------------------------------------------------
def batch_norm(m: Any, x: Any) -> Any:
    mean, var = m.running_mean, m.running_var
    if m.training and m.track_running_stats:  # already moved by the layer: the batch decides
        mean = var = None
    batch = m.training or m.running_mean is None
    return F.batch_norm(x, mean, var, m.weight, m.bias, batch, 0.0, m.eps)


def instance_norm(m: Any, x: Any) -> Any:
    single = x.ndim == m._ndims[0]
    x = x.unsqueeze(0) if single else x
    own = m.training or not m.track_running_stats
    mean, var = (None, None) if own else (m.running_mean, m.running_var)
    out = F.instance_norm(x, mean, var, m.weight, m.bias, own, 0.0, m.eps)
    return out.squeeze(0) if single else out


for n, inputs in BY_DIMS.items():
    layer(
        f"BatchNorm{n}d",
        batch_norm,
        C(4)(inputs),
        C(4).eval(inputs),
        C(4, momentum=None, eps=1e-3)(inputs),
        C(4, affine=False, track_running_stats=False)(inputs),
        C(4, track_running_stats=False, bias=False).eval(inputs),
        *([C(3)(x(5, 3))] if n == 1 else []),
    )
    layer(
        f"LazyBatchNorm{n}d",
        batch_norm,
        C()(inputs),
        C(affine=False)(inputs),
        C(track_running_stats=False, bias=False)(inputs),
        becomes=f"BatchNorm{n}d",
    )
    layer(
        f"InstanceNorm{n}d",
        instance_norm,
        C(4)(inputs),
        C(4, affine=True)(inputs[0]),
        C(4, affine=True, track_running_stats=True, momentum=0.3)(inputs),
        C(4, track_running_stats=True).eval(inputs),
    )
    layer(
        f"LazyInstanceNorm{n}d",
        instance_norm,
        C()(inputs),
        C(affine=False)(inputs),
        becomes=f"InstanceNorm{n}d",
    )
layer("SyncBatchNorm", batch_norm, C(4)(SIGNALS), C(4).eval(IMAGES))
layer(
    "GroupNorm",
    lambda m, x: F.group_norm(x, m.num_groups, m.weight, m.bias, m.eps),
    C(2, 4)(IMAGES),
    C(4, 4, affine=False)(SIGNALS),
    C(2, 4, bias=False)(x(3, 4)),
)
layer(
    "LayerNorm",
    lambda m, x: F.layer_norm(x, m.normalized_shape, m.weight, m.bias, m.eps),
    C(9)(SIGNALS),
    C((6, 7), eps=1e-3, bias=False)(IMAGES),
    C([9], elementwise_affine=False)(SIGNALS),
)
layer(
    "RMSNorm",
    lambda m, x: F.rms_norm(x, m.normalized_shape, m.weight, m.eps),
    C(9)(SIGNALS),
    C((6, 7), eps=1e-3, elementwise_affine=False)(IMAGES),
)
layer(
    "LocalResponseNorm",
    lambda m, x: F.local_response_norm(x, m.size, m.alpha, m.beta, m.k),
    C(3)(IMAGES),
    C(2, 0.5, 0.6, 2.0)(SIGNALS),
)
layer(
    "CrossMapLRN2d",
    lambda m, x: x / (m.k + m.alpha / m.size * _windows(x * x, (m.size - 1) // 2)) ** m.beta,
    C(3, 0.5)(x(2, 2, 3, 4)),
    C(5, 0.5, 0.6, 2)(x(2, 3, 3, 4)),
    C(4, 0.5)(x(2, 2, 3, 4)),
    # With more channels torch forgets to take the first one out of the windows, and its gradient
    # looks at the wrong neighbours.
    torch_grad=False,
)


def _windows(squares: Any, reach: int) -> Any:
    """The sums of the channels at most so far away."""
    count = squares.shape[1]
    near = np.abs(np.subtract.outer(np.arange(count), np.arange(count))) <= reach
    return sum(
        squares[:, j : j + 1] * squares.new_tensor(near[:, j].astype(float)).reshape(1, -1, 1, 1)
        for j in range(count)
    )


# Tables ------------------------------------------------------------------------------------------
INDICES = ints(3, 4, low=0, high=7)
layer(
    "Embedding",
    lambda m, i: F.embedding(i, m.weight, m.padding_idx, m.max_norm, m.norm_type),
    C(7, 3)(INDICES),
    C(7, 3, padding_idx=-2)(INDICES),
    C(7, 3, max_norm=1.0, norm_type=1.0)(INDICES),
    C(7, 3, scale_grad_by_freq=True)(INDICES),
    C(7, 3, _weight=arr(7, 3), _freeze=True)(INDICES),
    starts=C(100, 50),
)
layer(
    "EmbeddingBag",
    lambda m, i, offsets=None, weights=None: F.embedding_bag(
        i,
        m.weight,
        offsets,
        mode=m.mode,
        per_sample_weights=weights,
        include_last_offset=m.include_last_offset,
        padding_idx=m.padding_idx,
    ),
    C(7, 3)(INDICES),
    C(7, 3, mode="sum", padding_idx=2)(INDICES.ravel(), np.array([0, 5, 5])),
    C(7, 3, mode="max", include_last_offset=True)(INDICES.ravel(), np.array([0, 5, 12])),
    C(7, 3, mode="sum")(INDICES, None, arr(3, 4)),
    starts=C(100, 50),
)

# Activations -------------------------------------------------------------------------------------
POINTS = arr(3, 4) * 2
for name, function, cases in [
    ("CELU", lambda m, x: F.celu(x, m.alpha), [C(), C(1.5)]),
    ("ELU", lambda m, x: F.elu(x, m.alpha), [C(), C(1.5)]),
    ("GELU", lambda m, x: F.gelu(x, approximate=m.approximate), [C(), C("tanh")]),
    ("GLU", lambda m, x: F.glu(x, m.dim), [C(), C(1)]),
    ("Hardshrink", lambda m, x: F.hardshrink(x, m.lambd), [C(), C(1.0)]),
    ("Hardsigmoid", lambda m, x: F.hardsigmoid(x), [C()]),
    ("Hardswish", lambda m, x: F.hardswish(x), [C()]),
    ("Hardtanh", lambda m, x: F.hardtanh(x, m.min_val, m.max_val), [C(), C(-2, 2.5)]),
    ("LeakyReLU", lambda m, x: F.leaky_relu(x, m.negative_slope), [C(), C(0.2)]),
    ("LogSigmoid", lambda m, x: F.logsigmoid(x), [C()]),
    ("LogSoftmax", lambda m, x: F.log_softmax(x, m.dim), [C(1), C(dim=0)]),
    ("Mish", lambda m, x: F.mish(x), [C()]),
    ("PReLU", lambda m, x: F.prelu(x, m.weight), [C(), C(4, 0.5)]),
    ("RReLU", lambda m, x: F.rrelu(x, m.lower, m.upper, m.training), [C(), C(0.1, 0.4).eval]),
    ("ReLU", lambda m, x: F.relu(x), [C()]),
    ("ReLU6", lambda m, x: F.relu6(x), [C()]),
    ("SELU", lambda m, x: F.selu(x), [C()]),
    ("SiLU", lambda m, x: F.silu(x), [C()]),
    ("Sigmoid", lambda m, x: F.sigmoid(x), [C()]),
    ("Softmax", lambda m, x: F.softmax(x, m.dim), [C(1), C(dim=0)]),
    ("Softmin", lambda m, x: F.softmin(x, m.dim), [C(1)]),
    ("Softplus", lambda m, x: F.softplus(x, m.beta, m.threshold), [C(), C(2.0, 1.0)]),
    ("Softshrink", lambda m, x: F.softshrink(x, m.lambd), [C(), C(1.0)]),
    ("Softsign", lambda m, x: F.softsign(x), [C()]),
    ("Tanh", lambda m, x: F.tanh(x), [C()]),
    ("Tanhshrink", lambda m, x: F.tanhshrink(x), [C()]),
    ("Threshold", lambda m, x: F.threshold(x, m.threshold, m.value), [C(0.5, 3)]),
]:
    layer(name, function, *[case(POINTS) for case in cases], random=name == "RReLU")
layer("Softmax2d", lambda m, x: F.softmax(x, -3), C()(IMAGES), C()(IMAGES[0]))


# Attention ---------------------------------------------------------------------------------------
def multihead(m: Any, q: Any, k: Any, v: Any, **options: Any) -> Any:
    turned = m.batch_first and q.ndim == 3
    q, k, v = (t.transpose(0, 1) if turned else t for t in (q, k, v))
    out, weights = F.multi_head_attention_forward(
        *(q, k, v, m.embed_dim, m.num_heads, m.in_proj_weight, m.in_proj_bias, m.bias_k),
        *(m.bias_v, m.add_zero_attn, m.dropout, m.out_proj.weight, m.out_proj.bias, m.training),
        use_separate_proj_weight=m.in_proj_weight is None,
        q_proj_weight=m.q_proj_weight,
        k_proj_weight=m.k_proj_weight,
        v_proj_weight=m.v_proj_weight,
        **options,
    )
    return out.transpose(0, 1) if turned else out, weights


SEQUENCES, MEMORY = arr(2, 5, 8), arr(2, 4, 8, seed=1)
OTHER_KEYS, OTHER_VALUES = arr(2, 4, 6, seed=2), arr(2, 4, 3, seed=3)
LAST: dict[str, Any] = {"batch_first": True}
layer(
    "MultiheadAttention",
    multihead,
    C(8, 2, batch_first=True)(SEQUENCES, SEQUENCES, SEQUENCES),
    C(8, 2)(SEQUENCES, SEQUENCES, SEQUENCES, need_weights=False),
    C(8, 4, bias=False, **LAST)(SEQUENCES, MEMORY, MEMORY, average_attn_weights=False),
    C(8, 2, **LAST)(SEQUENCES, MEMORY, arr(2, 4, 8, seed=4), need_weights=False),
    C(8, 2, kdim=6, vdim=3, **LAST)(SEQUENCES, OTHER_KEYS, OTHER_VALUES),
    C(8, 2, add_bias_kv=True, add_zero_attn=True, **LAST)(
        *(SEQUENCES,) * 3, key_padding_mask=PADDED, attn_mask=-np.inf == MASK
    ),
    C(8, 2, add_zero_attn=True)(
        *(SEQUENCES.transpose(1, 0, 2),) * 3, attn_mask=arr(4, 5, 5), need_weights=False
    ),
    C(8, 2, **LAST)(*(SEQUENCES,) * 3, attn_mask=MASK, is_causal=True, need_weights=False),
    C(8, 2, **LAST)(*(SEQUENCES,) * 3, attn_mask=MASK, is_causal=True),
    C(8, 2)(arr(5, 8), arr(4, 8), arr(4, 8), key_padding_mask=np.array([0, 0, 0, 1], bool)),
    starts=C(64, 4, add_bias_kv=True),
)


def encoder_layer(m: Any, x: Any, src_mask: Any = None, **options: Any) -> Any:
    def attention(y: Any) -> Any:
        padding = options.get("src_key_padding_mask")
        return m.self_attn(y, y, y, attn_mask=src_mask, key_padding_mask=padding)[0]

    def forward(y: Any) -> Any:
        return m.linear2(m.activation(m.linear1(y)))

    if m.norm_first:
        x = x + attention(m.norm1(x))
        return x + forward(m.norm2(x))
    x = m.norm1(x + attention(x))
    return m.norm2(x + forward(x))


def decoder_layer(m: Any, x: Any, memory: Any, tgt_mask: Any = None, **options: Any) -> Any:
    own = {"attn_mask": tgt_mask, "key_padding_mask": options.get("tgt_key_padding_mask")}
    other = {"attn_mask": options.get("memory_mask")}
    other["key_padding_mask"] = options.get("memory_key_padding_mask")
    steps = [
        (m.norm1, lambda y: m.self_attn(y, y, y, **own)[0]),
        (m.norm2, lambda y: m.multihead_attn(y, memory, memory, **other)[0]),
        (m.norm3, lambda y: m.linear2(m.activation(m.linear1(y)))),
    ]
    for norm, step in steps:
        x = x + step(norm(x)) if m.norm_first else norm(x + step(x))
    return x


SMALL: dict[str, Any] = {"dim_feedforward": 6, "dropout": 0.0}
layer(
    "TransformerEncoderLayer",
    encoder_layer,
    C(8, 2, **SMALL, **LAST)(SEQUENCES),
    C(8, 2, **SMALL, **LAST).eval(SEQUENCES, src_key_padding_mask=PADDED),
    C(8, 2, **SMALL, norm_first=True, activation="gelu", bias=False)(arr(5, 2, 8), src_mask=MASK),
    C(8, 2, **SMALL, **LAST)(SEQUENCES, src_mask=MASK, is_causal=True),
    starts=C(64, 4, 300),
)
layer(
    "TransformerDecoderLayer",
    decoder_layer,
    C(8, 2, **SMALL, **LAST)(SEQUENCES, MEMORY),
    C(8, 2, **SMALL, norm_first=True, activation="gelu", **LAST)(
        SEQUENCES, MEMORY, tgt_mask=MASK, memory_key_padding_mask=PADDED[:, 1:]
    ),
    C(8, 2, **SMALL)(arr(5, 2, 8), arr(4, 2, 8), memory_mask=arr(5, 4), tgt_is_causal=False),
    starts=C(64, 4, 300),
)


def stacked(each: Callable[..., Any], mask: str) -> Callable[..., Any]:
    def function(m: Any, *inputs: Any, **options: Any) -> Any:
        x, *more = inputs
        options[mask] = options.pop("mask", options.get(mask))
        for one in m.layers:
            x = each(one, x, *more, **options)
        return x if m.norm is None else m.norm(x)

    return function


ENCODER = Sub("TransformerEncoderLayer", 8, 2, **SMALL, **LAST)
DECODER = Sub("TransformerDecoderLayer", 8, 2, **SMALL, **LAST)
encode, decode = stacked(encoder_layer, "src_mask"), stacked(decoder_layer, "tgt_mask")
layer(
    "TransformerEncoder",
    encode,
    C(ENCODER, 2)(SEQUENCES),
    C(ENCODER, 2, Sub("LayerNorm", 8))(SEQUENCES, mask=MASK),
    C(ENCODER, 1, enable_nested_tensor=False)(SEQUENCES, mask=-np.inf == MASK),
)
layer(
    "TransformerDecoder",
    decode,
    C(DECODER, 2)(SEQUENCES, MEMORY),
    C(DECODER, 2, Sub("LayerNorm", 8))(SEQUENCES, MEMORY, tgt_mask=MASK),
)
layer(
    "Transformer",
    lambda m, s, t, **masks: decode(m.decoder, t, encode(m.encoder, s), **masks),
    C(8, 2, 1, 2, **SMALL, **LAST)(MEMORY, SEQUENCES),
    C(8, 2, 1, 1, **SMALL, **LAST)(MEMORY, SEQUENCES, tgt_mask=MASK),
    starts=C(64, 4, 1, 1, 300),
)

# Losses ------------------------------------------------------------------------------------------
A, B, UNIT = arr(4, 3), arr(4, 3, seed=1), positive(4, 3) / 3
CLASSES, SIGNS = np.array([0, 2, 1, 2]), np.array([1.0, -1.0, 1.0, 1.0])
WEIGHTS = positive(3)


def loss(function: Callable[..., Any], *attributes: str) -> Callable[..., Any]:
    """A function with the loss's attributes as keywords."""
    return lambda m, *inputs: function(
        *inputs, **{a: getattr(m, a) for a in (*attributes, "reduction")}
    )


for name, function, inputs, cases in [
    ("L1Loss", loss(F.l1_loss), (A, B), [C()]),
    ("MSELoss", loss(F.mse_loss), (A, B), [C()]),
    ("SmoothL1Loss", loss(F.smooth_l1_loss, "beta"), (A, B), [C(), C(beta=0.3)]),
    ("HuberLoss", loss(F.huber_loss, "delta"), (A, B), [C(), C(delta=0.3)]),
    (
        "PoissonNLLLoss",
        loss(F.poisson_nll_loss, "log_input", "full", "eps"),
        (UNIT, positive(4, 3)),
        [C(), C(log_input=False, full=True)],
    ),
    (
        "GaussianNLLLoss",
        loss(F.gaussian_nll_loss, "full", "eps"),
        (A, B, positive(4, 3)),
        [C(), C(full=True)],
    ),
    (
        "NLLLoss",
        loss(F.nll_loss, "weight", "ignore_index"),
        (A, CLASSES),
        [C(), C(WEIGHTS, ignore_index=1)],
    ),
    (
        "CrossEntropyLoss",
        loss(F.cross_entropy, "weight", "ignore_index", "label_smoothing"),
        (A, CLASSES),
        [C(), C(WEIGHTS, ignore_index=1, label_smoothing=0.2)],
    ),
    ("BCELoss", loss(F.binary_cross_entropy, "weight"), (UNIT, UNIT[::-1]), [C(), C(WEIGHTS)]),
    (
        "BCEWithLogitsLoss",
        loss(F.binary_cross_entropy_with_logits, "weight", "pos_weight"),
        (A, UNIT),
        [C(), C(WEIGHTS, pos_weight=WEIGHTS)],
    ),
    ("KLDivLoss", loss(F.kl_div, "log_target"), (A, UNIT), [C(), C(log_target=True)]),
    (
        "MultiMarginLoss",
        loss(F.multi_margin_loss, "p", "margin", "weight"),
        (A, CLASSES),
        [C(), C(2, 0.5, WEIGHTS)],
    ),
    (
        "MultiLabelMarginLoss",
        loss(F.multilabel_margin_loss),
        (A, np.array([[0, -1, 1], [2, 1, -1], [-1, 0, 0], [1, 0, 2]])),
        [C()],
    ),
    (
        "MultiLabelSoftMarginLoss",
        loss(F.multilabel_soft_margin_loss, "weight"),
        (A, UNIT),
        [C(), C(WEIGHTS)],
    ),
    ("SoftMarginLoss", loss(F.soft_margin_loss), (A, np.int64(np.sign(B))), [C()]),
    ("HingeEmbeddingLoss", loss(F.hinge_embedding_loss, "margin"), (A, np.sign(B)), [C(), C(2.0)]),
    (
        "CosineEmbeddingLoss",
        loss(F.cosine_embedding_loss, "margin"),
        (A, B, CLASSES % 2 * 2 - 1),
        [C(), C(0.2)],
    ),
    ("MarginRankingLoss", loss(F.margin_ranking_loss, "margin"), (A[0], B[0], SIGNS[:3]), [C()]),
    (
        "TripletMarginLoss",
        loss(F.triplet_margin_loss, "margin", "p", "eps", "swap"),
        (A, B, UNIT),
        [C(), C(2.0, p=1.0, swap=True)],
    ),
    (
        "TripletMarginWithDistanceLoss",
        loss(F.triplet_margin_with_distance_loss, "distance_function", "margin", "swap"),
        (A, B, UNIT),
        [C(), C(distance_function=lambda a, b: (a - b).abs().sum(-1), margin=2.0, swap=True)],
    ),
]:
    reductions = [C(reduction="none"), C(reduction="sum")]
    layer(name, function, *[case(*inputs) for case in [*cases, *reductions]])
layer(
    "CTCLoss",
    loss(F.ctc_loss, "blank", "zero_infinity"),
    *[
        case(
            np.log(positive(6, 2, 4)),
            np.array([[1, 2, 2], [3, 1, 1]]),
            np.array([6, 5]),
            np.array([3, 2]),
        )
        for case in (C(), C(reduction="sum", zero_infinity=True))
    ],
    torch_grad=False,  # it is that of a log_softmax before it; see test_torch_ctc.py
)
layer(
    "AdaptiveLogSoftmaxWithLoss",
    lambda m, x, t: (
        (found := m.log_prob(x).gather(-1, t.unsqueeze(-1)).squeeze(-1)),
        -found.mean(),
    ),
    C(16, 12, [3, 7], div_value=2.0)(arr(5, 16), np.array([0, 4, 11, 6, 2])),
    C(16, 12, [5], head_bias=True)(arr(2, 16), np.array([0, 1])),
    starts=C(100, 300, [50, 150], head_bias=True),
)
layer(
    "LinearCrossEntropyLoss",
    lambda m, x, t: F.cross_entropy(
        m.linear(x), t, m.weight, label_smoothing=m.label_smoothing, reduction=m.reduction
    ),
    C(3, 5)(A, CLASSES),
    C(3, 5, bias=True, label_smoothing=0.1, reduction="sum", weight=positive(5))(A, CLASSES),
    starts=C(300, 500, bias=True),
)

# Dropout -----------------------------------------------------------------------------------------
for name, function, inputs in [
    ("Dropout", F.dropout, IMAGES),
    ("Dropout1d", F.dropout1d, SIGNALS),
    ("Dropout2d", F.dropout2d, IMAGES),
    ("Dropout3d", F.dropout3d, VOLUMES),
    ("AlphaDropout", F.alpha_dropout, SIGNALS),
    ("FeatureAlphaDropout", F.feature_alpha_dropout, IMAGES),
]:
    layer(
        name,
        lambda m, x, function=function: function(x, m.p, m.training),
        C()(inputs),
        C(0.2).eval(inputs),
        C(0.0)(inputs),
        random=True,
    )

# Shapes, sizes and distances ---------------------------------------------------------------------
layer("Flatten", lambda m, x: x.flatten(m.start_dim, m.end_dim), C()(IMAGES), C(0, 1)(IMAGES))
layer(
    "Unflatten",
    lambda m, x: x.unflatten(m.dim, m.unflattened_size),
    C(1, (2, 3))(x(4, 6)),
    C(0, [2, -1])(x(4, 6)),
)
windows = ("kernel_size", "dilation", "padding", "stride")
layer(
    "Unfold",
    pool("unfold", *windows),
    C(2)(IMAGES),
    C((2, 3), dilation=(1, 2), padding=1, stride=2)(IMAGES),
)
layer(
    "Fold",
    pool("fold", "output_size", *windows),
    C((3, 4), (2, 2))(x(2, 8, 6)),
    C(5, 2, padding=1, stride=2)(x(2, 8, 9)),
)
for name, function, inputs, cases in [
    ("PixelShuffle", pool("pixel_shuffle", "upscale_factor"), x(2, 8, 3, 2), [C(2)]),
    ("PixelUnshuffle", pool("pixel_unshuffle", "downscale_factor"), x(2, 2, 4, 6), [C(2)]),
    ("ChannelShuffle", pool("channel_shuffle", "groups"), x(2, 6, 3, 2), [C(2), C(3)]),
]:
    layer(name, function, *[case(inputs) for case in cases])


def interpolated(m: Any, x: Any) -> Any:
    return F.interpolate(x, m.size, m.scale_factor, m.mode, m.align_corners)


layer(
    "Upsample",
    interpolated,
    C(scale_factor=2)(SIGNALS),
    C((9, 11), mode="bilinear", align_corners=True)(IMAGES),
    C(scale_factor=(2.0, 1.5, 2.0), mode="trilinear")(VOLUMES),
)
layer("UpsamplingNearest2d", interpolated, C(scale_factor=2)(IMAGES), C((9, 11))(IMAGES))
layer("UpsamplingBilinear2d", interpolated, C(scale_factor=2)(IMAGES), C((9, 11))(IMAGES))
for n, inputs in BY_DIMS.items():
    for name, mode in [
        ("Constant", "constant"),
        ("Zero", "constant"),
        ("Reflection", "reflect"),
        ("Replication", "replicate"),
        ("Circular", "circular"),
    ]:
        value = (3.5,) if name == "Constant" else ()
        layer(
            f"{name}Pad{n}d",
            lambda m, x, mode=mode: F.pad(x, m.padding, mode, getattr(m, "value", None)),
            C(2, *value)(inputs),
            C((1, 0, 2, 1, 1, 2)[: 2 * n], *value)(inputs),
        )
layer(
    "CosineSimilarity",
    lambda m, a, b: F.cosine_similarity(a, b, m.dim, m.eps),
    C()(A, B),
    C(0, 1e-3)(A, B),
)
layer(
    "PairwiseDistance",
    lambda m, a, b: F.pairwise_distance(a, b, m.norm, m.eps, m.keepdim),
    C()(A, B),
    C(1.0, keepdim=True)(A, B),
)

# Modules that are no layers: `test_module.py` and `test_containers.py` have them.
OTHERS = {
    "Module",
    "ModuleDict",
    "ModuleList",
    "NLLLoss2d",  # NLLLoss with a warning
    "ParameterDict",
    "ParameterList",
    "Sequential",
}
