"""Layers of convolutional networks, forward and backward with a random cotangent: the gradients of
the input, the weight and the bias. Each is also written for JAX, which has names of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import undertow as ut

from ._workload import Run, Workload, normal, training

Shape = tuple[int, ...]


class Layer(NamedTuple):
    """A layer of any library: a function of the input and the parameters."""

    name: str
    apply: Callable[..., Any]  # of a library with torch's names, and the inputs
    in_jax: Callable[..., Any]  # of jax, and the inputs
    shapes: dict[str, Shape]  # of the inputs by their names, the layer's input first
    output: Shape
    flops: int  # of the output, and of the gradient of input and weight each
    bar: float = 1.0
    aim: float = 0.8

    def arrays(self) -> list[Any]:
        """The inputs; parameters are as large as in a network."""
        first, *others = self.shapes.values()
        scales = [max(1, math.prod(shape[1:])) ** -0.5 for shape in others]
        return [
            normal(*first),
            *(
                (normal(*shape, seed=1 + i) * scale).astype("float32")
                for i, (shape, scale) in enumerate(zip(others, scales, strict=True))
            ),
        ]

    def cotangent(self) -> Any:
        """What the output's gradient is."""
        return normal(*self.output, seed=9)

    def make(self, module: Any) -> Run:
        """Output and all gradients by a library with torch's names."""
        inputs = [module.from_numpy(a).requires_grad_() for a in self.arrays()]
        cotangent = module.from_numpy(self.cotangent())
        return training(partial(self.apply, module), inputs, cotangent)

    def make_jax(self, jax: Any) -> Run:
        """Output and all gradients by JAX, as one compiled function."""

        def function(cotangent: Any, *inputs: Any) -> tuple[Any, ...]:
            out, pull = jax.vjp(partial(self.in_jax, jax), *inputs)
            return (out, *pull(cotangent))

        compiled = jax.jit(function)
        given = [jax.device_put(a) for a in (self.cotangent(), *self.arrays())]
        return lambda: jax.block_until_ready(compiled(*given))

    def parts(self, module: Any) -> dict[str, Run]:
        """The forward pass, and the gradient of each input by itself, from a graph that stays."""
        plain = [module.from_numpy(a) for a in self.arrays()]
        cotangent = module.from_numpy(self.cotangent())
        found: dict[str, Run] = {"forward": lambda: (self.apply(module, *plain),)}
        for i, name in enumerate(self.shapes):
            inputs = [module.from_numpy(a) for a in self.arrays()]
            inputs[i].requires_grad_()
            out = self.apply(module, *inputs)
            found[f"gradient of {name}"] = partial(
                module.autograd.grad, out, inputs[i], cotangent, retain_graph=True
            )
        return found

    @property
    def workload(self) -> Workload:
        """What the other benchmarks race.

        The input is read in both directions, and so are the parameters; the cotangent is read;
        output and gradients are written.
        """
        given = 4 * sum(map(math.prod, self.shapes.values()))
        output = 4 * math.prod(self.output)
        return Workload(
            self.name,
            self.make,
            self.bar,
            self.aim,
            read=2 * given + output,
            written=given + output,
            flops=3 * self.flops,
            resident=2 * given + 2 * output,
        )


def _by(sizes: Shape) -> str:
    return "x".join(map(str, sizes))


# Convolutions ---------------------------------------------------------------------------------
def _convolution(
    size: Shape,
    channels: int,
    kernel: Shape,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    bar: float = 1.0,
    aim: float = 0.8,
) -> Layer:
    """A layer by the size of its input, its output channels and the rest of its arguments."""
    rank = len(kernel)
    output = (
        size[0],
        channels,
        *(
            (n + 2 * padding - dilation * (k - 1) - 1) // stride + 1
            for n, k in zip(size[2:], kernel, strict=True)
        ),
    )
    weight = (channels, size[1] // groups, *kernel)

    def apply(module: Any, x: Any, w: Any, bias: Any) -> Any:
        function = getattr(module.nn.functional, f"conv{rank}d")
        return function(x, w, bias, stride, padding, dilation, groups)

    def in_jax(jax: Any, x: Any, w: Any, bias: Any) -> Any:
        y = jax.lax.conv_general_dilated(
            x,
            w,
            (stride,) * rank,
            [(padding, padding)] * rank,
            rhs_dilation=(dilation,) * rank,
            feature_group_count=groups,
        )
        return y + bias.reshape(-1, *(1,) * rank)

    depthwise = groups == size[1] > 1
    name = " ".join(
        [
            f"conv{rank}d",
            _by(size),
            "depthwise" if depthwise else f"to {channels}",
            f"k{_by(kernel)}",
            *(f"{letter}{n}" for letter, n in (("s", stride), ("d", dilation)) if n > 1),
            *([f"g{groups}"] if groups > 1 and not depthwise else []),
        ]
    )
    return Layer(
        name,
        apply,
        in_jax,
        {"input": size, "weight": weight, "bias": (channels,)},
        output,
        2 * math.prod(output) * math.prod(weight[1:]),
        bar,
        aim,
    )


# Around them ----------------------------------------------------------------------------------
def _batch_norm(size: Shape) -> Layer:
    """Normalisation by the statistics of the batch, which also move the running ones."""
    channels = size[1]
    axes = (0, *range(2, len(size)))

    @cache
    def running(module: Any) -> tuple[Any, Any]:
        return module.zeros(channels), module.ones(channels)

    def apply(module: Any, x: Any, *parameters: Any) -> Any:
        batch_norm = module.nn.functional.batch_norm
        return batch_norm(x, *running(module), *parameters, training=True)

    def in_jax(jax: Any, x: Any, weight: Any, bias: Any) -> Any:
        mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
        scale, shift = (p.reshape(-1, *(1,) * (len(size) - 2)) for p in (weight, bias))
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift

    shapes = {"input": size, "weight": (channels,), "bias": (channels,)}
    return Layer(f"batch_norm {_by(size)}", apply, in_jax, shapes, size, 0)


def _pool(kind: str, size: Shape, kernel: int, stride: int, padding: int = 0) -> Layer:
    """The largest element, or the average, of each square window."""
    output = (*size[:2], *((n + 2 * padding - kernel) // stride + 1 for n in size[2:]))

    def apply(module: Any, x: Any) -> Any:
        return getattr(module.nn.functional, f"{kind}_pool2d")(x, kernel, stride, padding)

    def in_jax(jax: Any, x: Any) -> Any:
        window, steps = (1, 1, kernel, kernel), (1, 1, stride, stride)
        pads = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
        if kind == "max":
            return jax.lax.reduce_window(x, -math.inf, jax.lax.max, window, steps, pads)
        return jax.lax.reduce_window(x, 0.0, jax.lax.add, window, steps, pads) / kernel**2

    name = f"{kind}_pool2d {_by(size)} k{kernel} s{stride}"
    return Layer(name, apply, in_jax, {"input": size}, output, 0)


def _transposed(size: Shape, channels: int, kernel: Shape, stride: int, padding: int) -> Layer:
    """A transposed convolution: what gives a layer's input from its output."""
    rank = len(kernel)
    lengths = [(n - 1) * stride - 2 * padding + k for n, k in zip(size[2:], kernel, strict=True)]
    output, weight = (size[0], channels, *lengths), (size[1], channels, *kernel)

    def apply(module: Any, x: Any, w: Any, bias: Any) -> Any:
        function = getattr(module.nn.functional, f"conv_transpose{rank}d")
        return function(x, w, bias, stride, padding)

    def in_jax(jax: Any, x: Any, w: Any, bias: Any) -> Any:
        y = jax.lax.conv_general_dilated(
            x,
            jax.numpy.flip(w, range(2, 2 + rank)).swapaxes(0, 1),
            (1,) * rank,
            [(k - 1 - padding, k - 1 - padding) for k in kernel],
            lhs_dilation=(stride,) * rank,
        )
        return y + bias.reshape(-1, *(1,) * rank)

    name = f"conv_transpose{rank}d {_by(size)} to {channels} k{_by(kernel)} s{stride}"
    shapes = {"input": size, "weight": weight, "bias": (channels,)}
    return Layer(
        name, apply, in_jax, shapes, output, 2 * math.prod(size) * math.prod(weight[1:]), 0.9, 0.8
    )


def _expected(avx512: tuple[float, float], avx2: tuple[float, float]) -> dict[str, float]:
    """Bar and aim on this machine."""
    wide = ut.backends.cpu.get_cpu_capability() == "AVX512"
    return dict(zip(("bar", "aim"), avx512 if wide else avx2, strict=True))


_OTHERS = _expected((1.0, 0.8), (0.9, 0.8))

LAYERS = (
    _convolution((8, 64, 1024), 64, (3,), padding=1, **_expected((0.7, 0.55), (0.75, 0.6))),
    _convolution((8, 256, 512), 256, (3,), padding=1, **_expected((0.75, 0.6), (0.75, 0.6))),
    _convolution((16, 32, 4096), 32, (7,), padding=3, **_expected((0.65, 0.55), (0.8, 0.65))),
    _convolution((32, 1, 16000), 16, (9,), padding=4, **_expected((0.2, 0.15), (0.25, 0.2))),
    _convolution(
        (8, 64, 4096), 128, (8,), stride=4, padding=2, **_expected((0.75, 0.65), (0.85, 0.75))
    ),
    _convolution(
        (8, 64, 2048), 64, (3,), padding=8, dilation=8, **_expected((0.65, 0.55), (0.7, 0.6))
    ),
    _convolution(
        (8, 128, 1024), 128, (5,), padding=2, groups=8, **_expected((0.6, 0.5), (0.65, 0.55))
    ),
    _convolution(
        (8, 256, 1024), 256, (7,), padding=3, groups=256, **_expected((0.12, 0.1), (0.13, 0.1))
    ),
    _convolution((8, 64, 56, 56), 64, (3, 3), padding=1, **_expected((0.7, 0.55), (0.8, 0.6))),
    _convolution((8, 256, 14, 14), 256, (3, 3), padding=1, **_expected((0.7, 0.55), (0.8, 0.6))),
    _convolution((8, 256, 14, 14), 256, (1, 1), **_OTHERS),
    _convolution((8, 64, 56, 56), 64, (1, 1), **_OTHERS),
    _convolution(
        (8, 64, 56, 56), 128, (3, 3), stride=2, padding=1, **_expected((0.8, 0.7), (0.9, 0.8))
    ),
    _convolution((8, 64, 56, 56), 64, (3, 3), padding=1, groups=64, **_OTHERS),
    _convolution((4, 32, 16, 28, 28), 32, (3, 3, 3), padding=1, **_OTHERS),
    _convolution((8, 64, 2048), 64, (3,), stride=2, padding=1, **_OTHERS),
    _convolution((8, 3, 224, 224), 64, (7, 7), stride=2, padding=3, **_OTHERS),
    _convolution((16, 3, 32, 32), 64, (3, 3), padding=1, **_OTHERS),
    _convolution((8, 3, 224, 224), 768, (16, 16), stride=16, **_OTHERS),
    _transposed((8, 64, 28, 28), 32, (2, 2), 2, 0),
    _transposed((8, 128, 1024), 64, (4,), 2, 1),
    _transposed((8, 128, 28, 28), 64, (4, 4), 2, 1),
    _batch_norm((8, 64, 56, 56)),
    _batch_norm((128, 512)),
    _pool("max", (8, 64, 112, 112), 3, 2, 1),
    _pool("max", (8, 64, 56, 56), 2, 2),
    _pool("avg", (8, 64, 56, 56), 2, 2),
    _pool("avg", (8, 64, 56, 56), 3, 1, 1),
)
