"""Random convolutions, pools, norms, resampling, attention and losses, on odd layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .case import Case, Line


class Draw:
    """Random choices for one case, and the arrays that it asks for."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng([seed, 3])
        self.large = seed % 6 == 5
        self.rank = int(self.random.choice([1, 2, 3], p=[0.4, 0.4, 0.2]))
        self.batch = self.pick(0, 1, 1, 2, 3)
        self.leaves: list[Line] = []
        self.lines: list[Line] = []

    def pick(self, *items: Any) -> Any:
        """One of them."""
        return items[int(self.random.integers(len(items)))]

    def chance(self, probability: float) -> bool:
        """True so often."""
        return bool(self.random.random() < probability)

    def each(self, low: int, high: int) -> tuple[int, ...]:
        """A number in [low, high) for each spatial dimension."""
        return tuple(int(n) for n in self.random.integers(low, high, self.rank))

    def space(self) -> tuple[int, ...]:
        """The size of an image."""
        high = {1: (40, 2000), 2: (13, 70), 3: (8, 18)}[self.rank][self.large]
        return self.each(max(1, high // 3 if self.large else 1), high)

    def leaf(self, *shape: int, scale: float = 1.0, odd: bool = True) -> str:
        """A differentiated array of this shape, often behind an unusual layout."""
        view, stored = self.layout(shape) if odd and self.chance(0.5) else ("", shape)
        name, seed = f"x{len(self.leaves)}", int(self.random.integers(10**6))
        sizes = "".join(f", {n}" for n in stored)
        times = "" if scale == 1 else f" * {scale:.4g}"
        self.leaves.append(Line(name, f"numbers({seed}{sizes}){times}"))
        if not view:
            return name
        self.lines.append(Line(f"c_{name}", f"{name}{view}"))
        return f"c_{name}"

    def layout(self, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """How to view memory of another shape as this shape."""
        rank = len(shape)
        if not rank:
            return "", shape
        d = int(self.random.integers(rank))
        before = ":, " * d
        bigger = lambda n: (*shape[:d], n, *shape[d + 1 :])
        ways: list[tuple[str, tuple[int, ...]]] = [
            (f"[{before}::2]", bigger(2 * shape[d])),
            (f"[{before}1:-2]", bigger(shape[d] + 3)),
            (f".flip({d})", shape),
            (f".expand({shape})", bigger(1)),
            (f".transpose(0, {d})", swapped(shape, 0, d)),
            (".movedim(-1, 0)", (*shape[1:], shape[0])),
        ]
        return self.pick(*ways)

    def labels(self, code: str) -> str:
        """A constant, such as class numbers: code that gives an array."""
        self.lines.append(Line(f"c{len(self.lines)}", f"lib.tensor({code})"))
        return self.lines[-1].name

    def seed(self) -> int:
        """A seed for a constant."""
        return int(self.random.integers(10**6))


def swapped(shape: tuple[int, ...], i: int, j: int) -> tuple[int, ...]:
    """A shape with two dimensions exchanged."""
    out = list(shape)
    out[i], out[j] = out[j], out[i]
    return tuple(out)


def convolution(d: Draw) -> str:
    """Channels, groups, strides, dilations, paddings, biases; transposed or not."""
    groups = d.pick(1, 1, 2, 3)
    inputs = groups * d.pick(1, 2, 3, *([8, 17] if d.large else []))
    outputs = groups * d.pick(1, 2, 5, *([8, 31] if d.large else []))
    transposed = d.chance(0.4)
    kernel, stride = d.each(1, 5), d.each(1, 4)
    dilation = d.each(1, 3) if d.chance(0.4) else (1,) * d.rank
    x = d.leaf(d.batch, inputs, *d.space())
    scale = (inputs // groups * np.prod(kernel)) ** -0.5
    channels = (inputs, outputs // groups) if transposed else (outputs, inputs // groups)
    w = d.leaf(*channels, *kernel, scale=scale)
    b = d.leaf(outputs) if d.chance(0.5) else "None"
    padding: Any = d.each(0, 4)
    if transposed:
        more = tuple(int(d.random.integers(0, max(p))) for p in zip(stride, dilation, strict=True))
        return (
            f"F.conv_transpose{d.rank}d({x}, {w}, {b}, {stride}, {padding}, {more}, {groups}, "
            f"{dilation})"
        )
    if d.chance(0.2):
        padding, stride = d.pick("'same'", "'valid'"), (1,) * d.rank
    return f"F.conv{d.rank}d({x}, {w}, {b}, {stride}, {padding}, {dilation}, {groups})"


def pooling(d: Draw) -> str:
    """Maximum, mean and power pooling, adaptive pooling, and what undoes them."""
    x = d.leaf(d.batch, d.pick(1, 2, 3, 17), *d.space())
    kernel, stride = d.each(1, 5), d.each(1, 4)
    padding = tuple(int(d.random.integers(0, k // 2 + 1)) for k in kernel)
    ceil, r = d.chance(0.4), d.rank
    divisor = f", {d.pick(1, 3, 8)}" if r > 1 and d.chance(0.3) else ""
    # Not both: a window that sees only padding makes torch write outside its memory.
    spread = d.pick(f"{padding}", f"0, {d.each(1, 3)}")
    return d.pick(
        f"F.max_pool{r}d({x}, {kernel}, {d.pick(stride, None)}, {spread}, ceil_mode={ceil})",
        f"F.avg_pool{r}d({x}, {kernel}, {stride}, {padding}, {ceil}, {d.chance(0.5)}{divisor})",
        f"F.lp_pool{r}d({x} * {x} + 0.2, {d.pick(2.0, 3.0, 1.5)}, {kernel}, {stride}, {ceil})",
        f"F.adaptive_avg_pool{r}d({x}, {d.each(1, 8)})",
        f"F.adaptive_max_pool{r}d({x}, {d.each(1, 8)})",
        f"F.max_unpool{r}d(*F.max_pool{r}d({x}, {kernel}, {kernel}, return_indices=True), {kernel},"
        f" {kernel}, output_size={x}.shape[2:])",
    )


def normalisation(d: Draw) -> str:
    """Norms over batches, groups, instances and rows."""
    batch, channels = max(d.batch, 2), d.pick(1, 2, 4, 6)
    space = tuple(n + 2 for n in d.space())
    x = d.leaf(batch, channels, *space)
    w, b = d.pick((d.leaf(channels), d.leaf(channels)), ("None", "None"))
    groups = d.pick(*[n for n in range(1, channels + 1) if channels % n == 0])
    rows = (channels, *space)[-int(d.random.integers(1, d.rank + 2)) :]
    return d.pick(
        f"F.batch_norm({x}, None, None, {w}, {b}, True, 0.1, 1e-3)",
        f"F.group_norm({x}, {groups}, {w}, {b}, 1e-3)",
        f"F.instance_norm({x}, None, None, {w}, {b}, True, 0.1, 1e-3)",
        f"F.layer_norm({x}, {rows}, eps=1e-3)",
        f"F.layer_norm({x}, {rows}, {d.leaf(*rows)}, {d.leaf(*rows)}, 1e-3)",
        f"F.rms_norm({x}, {rows}, {d.leaf(*rows)}, 1e-3)",
        f"F.local_response_norm({x}, {d.pick(1, 2, 3, 5)})",
    )


def images(d: Draw) -> str:
    """Columns of windows, resampling, padding, shuffles, sampling at points."""
    channels = d.pick(1, 2, 3, 4)
    space = tuple(n + 2 for n in d.space())
    x = d.leaf(d.batch, channels, *space)
    modes = {1: "linear", 2: "bilinear bicubic", 3: "trilinear"}[d.rank].split()
    mode = d.pick(*modes)
    pads = tuple(int(n) for n in d.random.integers(0, 3, 2 * d.rank))
    flat = d.leaf(d.batch, 4 * channels, 5, 6)
    two = lambda low, high: tuple(int(n) for n in d.random.integers(low, high, 2))
    window = f"{two(1, 4)}, {two(1, 3)}, {two(0, 2)}, {two(1, 3)}"
    grid = d.leaf(max(d.batch, 1), *two(1, 5), 2, scale=0.6)
    return d.pick(
        f"F.interpolate({x}, size={d.each(1, 20)}, mode='{d.pick('nearest', 'area')}')",
        f"F.interpolate({x}, size={d.each(1, 20)}, mode='{mode}', align_corners={d.chance(0.5)})",
        f"F.interpolate({x}, scale_factor={d.pick(0.5, 1.5, 2.0, 2.7)}, mode='{mode}')",
        f"F.pad({x}, {pads}, mode='{d.pick('reflect', 'replicate', 'circular')}')",
        f"F.pad({x}, {tuple(p - 1 for p in pads)}, value=0.7)",
        f"F.unfold({flat}, {window})",
        f"F.fold(F.unfold({flat}, {window}).sin(), (5, 6), {window})",
        f"F.pixel_shuffle({flat}, {d.pick(1, 2)})",
        f"F.pixel_unshuffle({flat}, {d.pick(1, 2)})",
        f"F.channel_shuffle({flat}, {d.pick(1, 2, 4)})",
        f"F.grid_sample({d.leaf(max(d.batch, 1), channels, *two(1, 9))}, {grid}, "
        f"'{d.pick('bilinear', 'nearest', 'bicubic')}', "
        f"'{d.pick('zeros', 'border', 'reflection')}', {d.chance(0.5)})",
    )


def attention(d: Draw) -> str:
    """Scaled dot products, with masks and without."""
    batch, heads, top = d.pick(1, 2, 3), d.pick(1, 2, 4), 200 if d.large else 20
    queries, keys = (int(n) for n in d.random.integers(1, top, 2))
    width, out = d.pick(1, 4, 16, 33), d.pick(1, 4, 16, 33)
    q, k, v = (d.leaf(batch, heads, *s) for s in ((queries, width), (keys, width), (keys, out)))
    shape = d.pick((queries, keys), (batch, 1, queries, keys), (batch, heads, queries, keys))
    sizes = "".join(f", {n}" for n in shape)
    more = d.pick(
        "",
        ", is_causal=True",
        f", attn_mask={d.leaf(*shape)}",
        f", attn_mask={d.labels(f'flags({d.seed()}{sizes})')} | (lib.arange({keys}) == 0)",
        ", scale=0.3",
    )
    return f"F.scaled_dot_product_attention({q}, {k}, {v}{more})"


def losses(d: Draw) -> str:
    """Losses of classes and of numbers."""
    rows, classes = (300, 70) if d.large else (int(d.random.integers(1, 9)), d.pick(1, 2, 5, 8))
    extra = (3,) if d.chance(0.3) else ()
    x = d.leaf(rows, classes, *extra, scale=d.pick(1.0, 20.0))
    y = d.leaf(rows, classes, *extra)
    sizes = "".join(f", {n}" for n in (rows, *extra))
    target = d.labels(f"places({d.seed()}, {classes}{sizes})")
    how = f"reduction='{d.pick('mean', 'sum', 'none')}'"
    smooth = f"label_smoothing={d.pick(0.0, 0.1)}"
    ignored = f"ignore_index={d.pick(-100, 0)}"
    return d.pick(
        f"F.cross_entropy({x}, {target}, {how}, {smooth}, {ignored})",
        f"F.cross_entropy({x}, {target}, {d.leaf(classes)}.detach().abs(), {how}, {smooth})",
        f"F.cross_entropy({x}, F.softmax({y}, 1), {how}, {smooth})",
        f"F.nll_loss(F.log_softmax({x}, 1), {target}, {how}, {ignored})",
        f"F.multi_margin_loss({d.leaf(rows, classes)}, {target}.flatten()[:{rows}], {how})",
        f"F.smooth_l1_loss({x}, {y}, {how})",
        f"F.huber_loss({x}, {y}, {how})",
        f"F.l1_loss({x}, {y}, {how})",
        f"F.binary_cross_entropy_with_logits({x}, lib.sigmoid({y}), {how})",
        f"F.binary_cross_entropy(lib.sigmoid({y}), lib.sigmoid({x}).detach(), {how})",
        f"F.kl_div({x}, F.softmax({y}, 1), {how})",
        f"F.poisson_nll_loss(lib.tanh({x}), lib.relu({y}).detach(), {how})",
        f"F.soft_margin_loss({y}, lib.sign({x}).detach(), {how})",
        f"F.gaussian_nll_loss({x}, {y}, {y} * {y} + 0.3, {how})",
        f"F.hinge_embedding_loss({y}, lib.sign({x}).detach(), {how})",
        f"F.margin_ranking_loss({x}, {y}, lib.sign({y}).detach(), {how})",
        f"F.cosine_embedding_loss({d.leaf(rows, 5)}, {d.leaf(rows, 5)}, lib.ones({rows}), {how})",
        f"F.triplet_margin_loss({x}, {y}, {x} * {y} + 1, {how})",
    )


def tables(d: Draw) -> str:
    """Embeddings and bags of them."""
    words, width = d.pick(1, 7, 300), d.pick(1, 3, 16)
    w = d.leaf(words, width)
    index = d.labels(f"places({d.seed()}, {words}, {d.pick(1, 5, 400)}, {d.pick(1, 4)})")
    padding = f"padding_idx={int(d.random.integers(words))}"
    return d.pick(
        f"F.embedding({index}, {w})",
        f"F.embedding({index}, {w}, {padding})",
        f"F.embedding_bag({index}, {w}, mode='{d.pick('sum', 'mean')}')",
    )


def products(d: Draw) -> str:
    """Matrix products with batches that broadcast, and distances."""
    m, k, n = (
        int(s) for s in d.random.integers(0 if not d.large else 60, 300 if d.large else 20, 3)
    )
    one, two = d.pick(((), ()), ((3,), ()), ((), (3,)), ((2, 1), (3,)), ((2, 3), (2, 3)))
    a, b = d.leaf(*one, m, k, scale=max(k, 1) ** -0.5), d.leaf(*two, k, n)
    return d.pick(
        f"{a} @ {b}",
        f"({a} @ {b}).relu()",
        f"F.linear({a}, {d.leaf(n, k)}, {d.leaf(n)})",
        f"lib.addmm({d.leaf(n)}, {d.leaf(m, k)}, {d.leaf(k, n)}, beta=0.5, alpha=2)",
        f"lib.cdist({d.leaf(m, k)}, {d.leaf(n, k)}, p={d.pick(1.0, 2.0, 3.0)})",
        f"F.bilinear({d.leaf(m, 3)}, {d.leaf(m, 4)}, {d.leaf(5, 3, 4)})",
        f"F.cosine_similarity({d.leaf(m, k)}, {d.leaf(m, k)}, -1)",
    )


def rows(d: Draw) -> str:
    """Reductions and scans over rows and columns of any length."""
    shape = d.each(1, 500) if d.large and d.rank < 3 else d.each(1, 40)
    x = d.leaf(*shape, scale=d.pick(1.0, 20.0))
    dim = int(d.random.integers(-d.rank, d.rank))
    name = d.pick("softmax", "log_softmax", "logsumexp", "var", "std", "cumsum", "logcumsumexp")
    return d.pick(
        f"{x}.{name}({dim})",
        f"{x}.{d.pick('sum', 'mean', 'amax', 'amin')}({dim})",
        f"{x}.norm(p={d.pick(1, 2, 3, 0.5)}, dim={dim})",
        f"lib.var_mean({x}, {dim})[0]",
        f"F.normalize({x}, dim={dim})",
        f"lib.tanh({x}).prod({dim})",
        f"lib.tanh({x}).cumprod({dim})",
        f"{x}.quantile(0.3, {dim})",
    )


KINDS: list[Callable[[Draw], str]] = [convolution] * 4 + [pooling] * 3 + [images] * 2
KINDS += [losses] * 2 + [normalisation, attention, tables, products, rows]


def make(seed: int) -> Case:
    """The case of a seed: one in six is large enough for generated kernels."""
    draw = Draw(seed)
    code = draw.pick(*KINDS)(draw)
    used = [line for line in draw.lines if Line("", code).reads(line.name)]
    names = " ".join([code, *(line.code for line in used)])
    leaves = [leaf for leaf in draw.leaves if Line("", names).reads(leaf.name)]
    lines = (*used, Line("v", code))
    dtype = draw.pick("float32", "float64")
    orders = 1 if draw.large and draw.chance(0.6) else 2
    return Case(f"windows, seed {seed}", tuple(leaves), lines, orders, dtype, draw.pick(0, 0, 2))
