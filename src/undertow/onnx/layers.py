"""How the ops of layers are written: convolution, pooling, norms, softmax, attention."""

from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from ..core.register import FUNCTIONS
from ..core.tensor import Tensor
from ..kernel.tables import span_taps
from ..kernel.windows import Geometry, Spans
from .ops import spread, writes
from .writer import Writer


# Windows -----------------------------------------------------------------------------------------
def _geometries(w: Writer) -> tuple[Geometry, Geometry]:
    """The geometry in both traces; only its sizes and padding may vary."""
    one, other = w.params("geometry")
    w.fixed("windows", one._replace(size=(), padding=()), other._replace(size=(), padding=()))
    return one, other


def _pads(w: Writer) -> tuple[Geometry, list[int]]:
    """The geometry, and its padding: low ones, then high ones."""
    one, other = _geometries(w)
    if one.padding != other.padding:
        raise w.refused("its padding varies with a dynamic axis")
    if any(low < 0 or high < 0 for low, high in one.padding):
        raise w.refused(f"padding {one.padding} cuts off elements")
    return one, [low for low, _ in one.padding] + [high for _, high in one.padding]


@writes("conv", "conv_relu")
def _conv(w: Writer) -> Any:
    geometry, pads = _pads(w)
    if any(d > 1 for d in geometry.input_dilation):
        raise w.refused("its input is dilated")
    y = w.node(
        "Conv",
        *[name for name in w.names if name is not None],
        kernel_shape=geometry.kernel,
        strides=geometry.stride,
        dilations=geometry.dilation,
        pads=pads,
        group=w.param("groups"),
    )
    return w.node("Relu", y) if w.call.op.name == "conv_relu" else y


@writes("conv_input")
def _conv_transpose(w: Writer) -> Any:
    geometry, pads = _pads(w)
    extra = set()
    for g, shape in zip(w.params("geometry"), w.shapes(), strict=True):
        sizes = zip(g.size, shape[2:], g.stride, g.extent, g.padding, strict=True)
        extra.add(tuple(n - (s * (m - 1) + e - sum(p)) for n, m, s, e, p in sizes))
    if len(extra) > 1:
        raise w.refused("its output padding varies with a dynamic axis")
    return w.node(
        "ConvTranspose",
        *[name for name in w.names if name is not None],
        kernel_shape=geometry.kernel,
        strides=geometry.stride,
        dilations=geometry.dilation,
        pads=pads,
        output_padding=extra.pop(),
        group=w.param("groups"),
    )


@writes("im2col")
def _unfold(w: Writer) -> Any:
    """Windows as columns: a convolution with a kernel of one 1 for each tap of each channel."""
    geometry, pads = _pads(w)
    y = w.node("Conv", w.x, _taps(w, w.tensor().shape[1], geometry), **_windows(w, geometry, pads))
    return w.node("Reshape", y, w.graph.numbers([0, 0, -1]))


@writes("col2im")
def _fold(w: Writer) -> Any:
    """The transpose of `_unfold`."""
    geometry, pads = _pads(w)
    if geometry.size != w.params("geometry")[1].size:
        raise w.refused("the size of its result varies with a dynamic axis")
    channels = w.out_shapes()[0][1]
    shape = w.graph.numbers([0, channels * math.prod(geometry.kernel), *geometry.output])
    taps = _taps(w, channels, geometry)
    # A stride may have left elements over.
    sizes = zip(geometry.padded, geometry.output, geometry.stride, geometry.extent, strict=True)
    extra = [n - (s * (m - 1) + e) for n, m, s, e in sizes]
    x = w.node("Reshape", w.x, shape)
    how = _windows(w, geometry, pads)
    return w.node("ConvTranspose", x, taps, output_padding=extra, **how)


def _taps(w: Writer, channels: int, geometry: Geometry) -> str:
    count = math.prod(geometry.kernel)
    one = FUNCTIONS["eye"](count, dtype=w.dtype).reshape(count, 1, *geometry.kernel)
    return w.graph.tensor(one.repeat(channels, *[1] * (1 + len(geometry.kernel))))


def _windows(w: Writer, geometry: Geometry, pads: list[int]) -> dict[str, Any]:
    return {
        "kernel_shape": geometry.kernel,
        "strides": geometry.stride,
        "dilations": geometry.dilation,
        "pads": pads,
        "group": (w.tensor() if w.call.op.name == "im2col" else w.call.outputs[0].tensor).shape[1],
    }


def _pool_pads(w: Writer) -> list[int]:
    """Padding that gives the same number of windows at every size.

    What a geometry has at the end is exact: less than at the beginning where elements are left
    over. As much as there does as well, and does not vary.
    """
    pairs = w.params("geometry")
    lows, highs = [], []
    for d in range(len(pairs[0].kernel)):
        low = pairs[0].padding[d][0]
        for high in (low, max(pairs[0].padding[d][1], 0)):
            counts = [
                (g.size[d] + low + high - g.extent[d]) // g.stride[d] + 1 == g.output[d]
                for g in pairs
            ]
            if all(counts):
                break
        else:
            raise w.refused("the padding of its windows varies with a dynamic axis")
        lows.append(low)
        highs.append(high)
    return lows + highs


def _pooled(w: Writer, op: str, **attributes: Any) -> str:
    """A pooling of planes: (N, C, …), or (C, …)."""
    geometry, _ = _geometries(w)
    lacks = len(geometry.kernel) + 2 - w.rank
    x = w.x
    if lacks not in (0, 1):
        raise w.refused(f"its input has {w.rank} dimensions")
    if lacks:
        x = w.node("Unsqueeze", x, w.graph.numbers([0]))
    if any(d > 1 for d in geometry.dilation):
        attributes["dilations"] = geometry.dilation
    y: str = w.node(
        op,
        x,
        kernel_shape=geometry.kernel,
        strides=geometry.stride,
        pads=_pool_pads(w),
        **attributes,
    )
    return w.node("Squeeze", y, w.graph.numbers([0])) if lacks else y


@writes("max_pool")
def _max_pool(w: Writer) -> Any:
    return _pooled(w, "MaxPool")


@writes("sum_pool")
def _sum_pool(w: Writer) -> Any:
    geometry, _ = w.params("geometry")
    if any(d > 1 for d in geometry.dilation):
        raise w.refused("a dilated mean is no operation of ONNX")
    y = _pooled(w, "AveragePool", count_include_pad=1)
    factor = math.prod(geometry.kernel) / w.param("divisor")
    return y if factor == 1 else w.node("Mul", y, w.number(factor))


@writes("span_sum", "span_max")
def _spans(w: Writer) -> Any:
    """What each window sees, along one dimension after the other; the last element repeated."""
    spans, x = w.param("spans"), w.x
    kind, rank = "Max" if w.call.op.name == "span_max" else "Sum", len(spans.size)
    for d in range(rank):
        places, exists = span_taps(Spans(spans.size[d : d + 1], spans.output[d : d + 1]))
        axis = w.rank - rank + d
        x = w.node("Gather", x, w.graph.tensor(FUNCTIONS["tensor"](places.tolist())), axis=axis)
        if kind == "Sum" and not exists.all():
            inside = exists.reshape(*exists.shape, *(1,) * (rank - 1 - d)).tolist()
            x = w.node("Where", w.graph.tensor(FUNCTIONS["tensor"](inside)), x, w.number(0))
        x = w.reduce(kind, x, (axis + 1,), False)
    return x


# Norms -------------------------------------------------------------------------------------------
def _filled(w: Writer, name: str | None, shape: Any, value: float, like: Tensor) -> str:
    """A weight or bias, or what stands for none."""
    if name is not None:
        return name
    return w.graph.tensor(FUNCTIONS["full"](tuple(shape), value, dtype=like.dtype))


@writes("layer_norm")
def _layer_norm(w: Writer) -> Any:
    x, weight, bias = w.names
    dims, eps = w.param("dims"), w.param("eps")
    if dims != tuple(range(dims[0], w.rank)):
        raise w.refused(f"it goes over dims {dims}, which are not the last ones")
    one, other = (tuple(s[d] for d in dims) for s in w.shapes())
    if one != other:
        raise w.refused("the dimensions that it goes over vary")
    scale = _filled(w, weight, one, 1.0, w.tensor())
    shift = [bias] if bias is not None else []
    return w.node("LayerNormalization", x, scale, *shift, axis=dims[0], epsilon=eps)


def _normed(w: Writer, x: str, dims: Any, eps: float) -> str:
    """`x` less its mean, divided by its deviation."""
    mean, var = spread(w, x, dims)
    root = w.node("Sqrt", w.node("Add", var, w.number(eps)))
    return w.node("Div", w.node("Sub", x, mean), root)


def _affine(w: Writer, y: str, weight: str | None, bias: str | None) -> str:
    """`y * weight + bias` by channels, which are dimension 1."""
    shape = w.graph.numbers([-1] + [1] * (w.rank - 2))
    for op, name in (("Mul", weight), ("Add", bias)):
        if name is not None:
            y = w.node(op, y, w.node("Reshape", name, shape))
    return y


@writes("rms_norm")
def _rms_norm(w: Writer) -> Any:
    x, weight = w.names
    squares = w.reduce("Mean", w.node("Mul", x, x), w.param("dims"))
    y = w.node("Div", x, w.node("Sqrt", w.node("Add", squares, w.number(w.param("eps")))))
    return y if weight is None else w.node("Mul", y, weight)


@writes("fixed_norm")
def _batch_norm(w: Writer) -> Any:
    x, weight, bias, mean, var = w.names
    channels = w.tensor().shape[1:2]
    scale = _filled(w, weight, channels, 1.0, w.tensor())
    shift = _filled(w, bias, channels, 0.0, w.tensor())
    return w.node("BatchNormalization", x, scale, shift, mean, var, epsilon=w.param("eps"))


@writes("channel_norm")
def _channel_norm(w: Writer) -> Any:
    x, weight, bias, *_ = w.names
    dims = w.param("dims")
    if 0 in dims:
        raise w.refused("it computes the statistics of a batch; call model.eval() first")
    return _affine(w, _normed(w, x, dims, w.param("eps")), weight, bias)


@writes("group_norm")
def _group_norm(w: Writer) -> Any:
    x, weight, bias = w.names
    by_group = w.node("Reshape", x, w.graph.numbers([0, w.param("groups"), -1]))
    y = _normed(w, by_group, (2,), w.param("eps"))
    return _affine(w, w.node("Reshape", y, w.node("Shape", x)), weight, bias)


# Softmax and attention ---------------------------------------------------------------------------
def _softmax(w: Writer, x: str, dim: int, masked: bool) -> str:
    """A row of minus infinity alone gives zeros where that can be."""
    y: str = w.node("Softmax", x, axis=dim)
    return w.node("Where", w.node("IsNaN", y), w.number(0.0), y) if masked else y


def _one(w: Writer) -> int:
    dims = w.param("dims")
    if len(dims) != 1:
        raise w.refused(f"it goes over several dims: {dims}")
    return int(dims[0])


@writes("softmax")
def _softmax_op(w: Writer) -> Any:
    return _softmax(w, w.x, _one(w), w.param("masked"))


@writes("log_softmax")
def _log_softmax(w: Writer) -> Any:
    return w.node("LogSoftmax", w.x, axis=_one(w))


@writes("attention")
def _attention(w: Writer) -> Any:
    q, k, v, mask = w.names
    scores = w.node("MatMul", q, w.transposed(k, w.tensor(1).ndim))
    scores = w.node("Mul", scores, w.number(w.param("scale")))
    allowed = None
    if w.param("causal"):
        square = [tuple(s[-2] for s in w.shapes(i)) for i in (0, 1)]
        sizes = w.sizes(*zip(*square, strict=True))
        one = FUNCTIONS["ones"](1, dtype=dtypes.int64)
        ones = w.node("ConstantOfShape", sizes, value=one)
        zero = w.graph.number(0, dtypes.int64)
        allowed = w.node("Cast", w.node("Trilu", ones, zero, upper=0), to=9)
    elif mask is not None and w.tensor(3).dtype is dtypes.bool:
        allowed = mask
    elif mask is not None:
        scores = w.node("Add", scores, mask)
    if allowed is not None:
        scores = w.node("Where", allowed, scores, w.number(-math.inf))
    weights = _softmax(w, scores, -1, mask is not None)
    return w.node("MatMul", weights, v)
