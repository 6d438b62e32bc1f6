"""Numerical edges: NaN, infinities, signed zeros, subnormals, huge numbers, ties, empties."""

from __future__ import annotations

import numpy as np

from .case import Case, Line

inf, nan = float("inf"), float("nan")


def words(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


SPECIAL = [0.0, -0.0, inf, -inf, nan, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -2.5, 1e-3, 88.0, -88.0]
RANGE = {
    "float32": [1e-45, -1e-40, 1.1754944e-38, 3.4028235e38, -3.4028235e38, 1e10, -1e-20, 1e20],
    "float64": [1e10, -1e-20, 1e20, -1e-100, 1e100],  # nobody arbitrates further out
}
# Left out because torch is wrong at edges: i0, sinc, logit, logaddexp2, addcdiv, softsign,
# tanhshrink, hardsigmoid (its sixth is in single precision), and the product of many numbers.
UNARY = words(
    """
    abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2
    expm1 floor frac isfinite isinf isnan lgamma log log10 log1p log2 nan_to_num neg positive
    reciprocal relu round rsqrt sgn sigmoid sign signbit sin sinh sqrt square tan tanh trunc
    """
)
ACTIVATIONS = words(
    """
    celu elu gelu hardshrink hardswish hardtanh leaky_relu logsigmoid mish relu6 selu
    silu softplus softshrink
    """
)
BINARY = words(
    """
    add atan2 copysign div eq floor_divide fmax fmin fmod ge gt heaviside hypot le logaddexp
    lt maximum minimum mul ne pow remainder sub xlogy
    """
)
REDUCTIONS = words(
    """
    sum mean amax amin prod std var logsumexp nansum nanmean argmax argmin any all median
    count_nonzero cumsum cumprod cummax cummin logcumsumexp softmax log_softmax norm
    """
)
OTHERS = [
    "lib.clamp({x}, -1, 1)",
    "lib.clamp({x}, min={y})",
    "lib.where({x} > {y}, {x}, {y})",
    "lib.lerp({x}, {y}, 0.5)",
    "{x} ** 2",
    "{x} ** 0.5",
    "{x} ** -1",
    "{x} ** 0",
    "2.0 ** {x}",
    "{x}.norm(p=1)",
    "{x}.norm(p=np.inf)",
    "{x}.norm(p=0)",
    "lib.nan_to_num({x}, 1.0, 2.0, 3.0)",
    "lib.isclose({x}, {y}, equal_nan=True)",
    "{x}.amax(0)",
    "F.normalize({x}, dim=0)",
    "F.mse_loss({x}, {y})",
    "F.smooth_l1_loss({x}, {y})",
    "F.max_pool1d({x}[None, None], 2)",
    "{x}.reshape(1, -1) @ {y}.reshape(-1, 1)",
    "lib.searchsorted({x}.nan_to_num().sort()[0], {y})",
    "lib.unique({x})",
    "lib.bincount({x}.nan_to_num(0, 3, 2).clamp(0, 9).to(lib.int64))",
]


def template(random: np.random.Generator) -> str:
    """A call with the operands {x}, {y} and {z}."""
    kind = random.choice(["unary", "activation", "binary", "reduction", "other"])
    if kind == "unary":
        return f"lib.{random.choice(UNARY)}({{x}})"
    if kind == "activation":
        return f"F.{random.choice(ACTIVATIONS)}({{x}})"
    if kind == "binary":
        return f"lib.{random.choice(BINARY)}({{x}}, {{y}})"
    if kind == "other":
        return str(random.choice(OTHERS))
    name = str(random.choice(REDUCTIONS))
    first = "[0]" if name in ("cummax", "cummin", "sort", "median") else ""
    return f"{{x}}.{name}({'dim=' if name == 'norm' else ''}0){first}"


def literal(random: np.random.Generator, pool: list[float], shape: tuple[int, ...]) -> str:
    """Code for an array in which edges are common, or which is all the same."""
    chance = random.random()
    if chance < 0.3:  # ordinary edges, so that NaN does not hide the rest
        pool = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, 3.0]
    elif chance < 0.5:
        pool = [float(random.choice(pool))]
    text = repr(np.asarray(random.choice(pool, shape)).tolist())
    text = text.replace("nan", "np.nan").replace("inf", "np.inf")
    return f"np.array({text}, float).reshape({shape})"


def make(seed: int) -> Case:
    """The case of a seed; one in four repeats its numbers, enough of them for a kernel."""
    random = np.random.default_rng([seed, 4])
    dtype = str(random.choice(["float32", "float64"]))
    shape = [(), (0,), (1,), (2,), (3,), (5,), (9,), (17,)][int(random.integers(8))]
    code = template(random)
    elementwise = code.startswith(("lib.", "F.")) and "(1, -1)" not in code
    pool = [*SPECIAL, *RANGE[dtype]] if elementwise else SPECIAL
    names = [n for n in "xyz" if f"{{{n}}}" in code]
    arrays = [literal(random, pool, shape) for _ in names]
    if seed % 4 == 3 and "prod" not in code:
        arrays = [f"np.tile({array}, 4001)" for array in arrays]
    leaves = tuple(Line(f"x{j}", array) for j, array in enumerate(arrays))
    operands = {name: leaf.name for name, leaf in zip(names, leaves, strict=True)}
    edge = "each" if elementwise else "whole"
    line = Line("v", code.format(**operands))
    return Case(f"edges, seed {seed}", leaves, (line,), 1, dtype, edge=edge)
