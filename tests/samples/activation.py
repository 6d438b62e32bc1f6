"""Samples for `undertow.ops.elementwise.activation`."""

from __future__ import annotations

import math

import numpy as np

from op_samples import Bad, Const, S, arr, bools, ints, op, singular, unary_samples

from .arithmetic import quiet

nan, inf = float("nan"), float("inf")
edges = S(Const([nan, inf, -inf, 0.0, -0.0]))
large = S(arr(2, 3) * 100)
erf = np.vectorize(math.erf, otypes=[float])


def spread(*shape, seed=0):
    """Random numbers between -8 and 8, on both sides of every bend."""
    return np.asarray(arr(*shape, seed=seed) * 4)


def activation(name, reference, samples=(), ints_fail=True, **more):
    """An entry whose function takes one tensor and options."""
    bad = more.pop("bad", [])
    if ints_fail:
        bad = [*bad, Bad(S(ints(3), *more.pop("required", ())), TypeError, rf"\[{name}\].*int64")]
    op(
        f"nn.functional.{name}",
        quiet(reference),
        [*unary_samples(spread), *samples],
        method=False,
        inplace=False,
        bad=bad,
        **more,
    )


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def np_relu(x, inplace=False):
    return np.maximum(x, 0)


def np_elu(x, alpha=1.0, inplace=False):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def np_softplus(x, beta=1.0, threshold=20.0):
    return np.where(x * beta > threshold, x, np.log1p(np.exp(np.minimum(x * beta, 700))) / beta)


def np_prelu(x, weight):
    if weight.size > 1:
        weight = weight.reshape(1, -1, *(1,) * (x.ndim - 2))
    return np.where(x > 0, x, x * (weight if weight.size > 1 else weight.reshape(())))


def np_gelu(x, approximate="none"):
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def np_glu(x, dim=-1):
    a, b = np.split(x, 2, axis=dim)
    return a * sigmoid(b)


def np_shrink(soft):
    def run(x, lambd=0.5):
        return np.where(np.abs(x) <= lambd, 0, x - lambd * np.sign(x) if soft else x)

    return run


no_bools = [Bad(S(bools(3)), TypeError, r"bool")]
activation("relu", np_relu, [S(ints(4)), edges, S(spread(3), inplace=False)], False, bad=no_bools)
op("relu", np_relu, [*unary_samples(spread), S(ints(4)), edges], bad=no_bools)
activation(
    "relu6", lambda x, inplace=False: np.clip(x, 0, 6), [S(ints(4)), edges], False, bad=no_bools
)
activation(
    "leaky_relu",
    lambda x, negative_slope=0.01, inplace=False: np.where(x > 0, x, x * negative_slope),
    [S(spread(4), 0.2), S(spread(4), -1), edges],
)
for prefix in ("", "nn.functional."):
    op(
        f"{prefix}prelu",
        np_prelu,
        [
            S(spread(2, 3, 4), arr(3, seed=1)),
            S(spread(2, 3), arr(3, seed=1)),
            S(spread(3), arr(1, seed=1)),
            S(spread(2, 3), arr(seed=1)),
            S(spread(), arr(1, seed=1)),
            S(spread(0, 3), arr(3, seed=1)),
        ],
        bad=[
            Bad(S(arr(2, 3), arr(2)), ValueError, r"\[prelu\] weight has 2.*3 channels"),
            Bad(S(arr(2, 3), arr(1, 3)), ValueError, r"\[prelu\] weight must have.*\(1, 3\)"),
        ],
    )
activation("elu", np_elu, [S(spread(4), 0.5), large, edges])
celu = [S(spread(4), 2.0), S(spread(4), -0.5), large]
zero_alpha = [Bad(S(arr(3), 0.0), ValueError, r"\[celu\] alpha")]
np_celu = lambda x, alpha=1.0, inplace=False: np.where(x > 0, x, alpha * np.expm1(x / alpha))
np_selu = lambda x, inplace=False: 1.0507009873554805 * np_elu(x, 1.6732632423543772)
activation("celu", np_celu, celu, bad=zero_alpha)
activation("selu", np_selu, [large])
op("celu", quiet(np_celu), [*unary_samples(spread), *celu], method=False, bad=zero_alpha)
op("selu", np_selu, [*unary_samples(spread), large], method=False)
activation(
    "gelu",
    np_gelu,
    [
        S(spread(3, 4), approximate="tanh"),
        S(spread(), approximate="tanh"),
        large,
        S(arr(2, 3) * 100, approximate="tanh"),
    ],
    bad=[Bad(S(arr(3), approximate="erf"), ValueError, r"\[gelu\].*'erf'")],
)
activation("silu", lambda x, inplace=False: x * sigmoid(x), [large])
activation("mish", lambda x, inplace=False: x * np.tanh(np_softplus(x)), [large])
activation(
    "softplus",
    np_softplus,
    [S(spread(4), 2.0), S(spread(4), 1, 2.5), S(spread(4), beta=0.5), large, edges],
)
activation("softsign", lambda x: x / (1 + np.abs(x)), [S(ints(3)), large], False)
activation(
    "softshrink",
    np_shrink(True),
    [S(spread(4), 2.0), S(spread(4), 0), edges],
    bad=[
        Bad(S(arr(3), -1.0), ValueError, r"\[softshrink\] lambd.*-1.0"),
        Bad(S(arr(3).astype(np.float16), 65507.0), ValueError, r"float16, at most 65504.*65507"),
    ],
)
activation("hardshrink", np_shrink(False), [S(spread(4), 2.0), edges])
op("hardshrink", np_shrink(False), [*unary_samples(spread), S(spread(4), 2.0), edges])
activation("tanhshrink", lambda x: x - np.tanh(x), [S(ints(3))], False)
activation(
    "hardtanh",
    lambda x, min_val=-1.0, max_val=1.0, inplace=False: np.clip(x, min_val, max_val),
    [S(spread(4), -2, 0.5), S(ints(4), -1, 2), edges],
    False,
    bad=[*no_bools, Bad(S(arr(3), 1.0, 0.0), ValueError, r"\[hardtanh\] min_val 1.0")],
)
activation(
    "hardsigmoid", lambda x, inplace=False: np.clip(x + 3, 0, 6) / 6, [edges], torch_gradgrad=False
)
activation("hardswish", lambda x, inplace=False: x * np.clip(x + 3, 0, 6) / 6, [large])
activation("logsigmoid", lambda x: -np.logaddexp(0, -x), [large, edges])
np_threshold = lambda x, threshold, value, inplace=False: np.where(x <= threshold, value, x)
for prefix in ("", "nn.functional."):
    op(
        f"{prefix}threshold",
        np_threshold,
        [
            *[S(*s.args, 0.5, 9.0) for s in unary_samples(spread)],
            S(ints(4), 1, 7),
            S(*edges.args, 0.0, 1.0),
        ],
        method=False,
        inplace=False,
    )
op(
    "nn.functional.glu",
    np_glu,
    [
        S(arr(4)),
        S(arr(3, 4)),
        S(arr(4, 3), 0),
        S(arr(2, 4, 3), dim=1),
        S(arr(2, 6).T, 0),
        S(arr(0, 4)),
    ],
    bad=[
        Bad(S(arr(3)), ValueError, r"\[glu\].*even size, got 3"),
        Bad(S(arr()), IndexError, r"\[glu\]"),
        Bad(S(arr(4), 2), IndexError, r"\[glu\] dim 2"),
    ],
)
op("nn.functional.sigmoid", quiet(sigmoid), unary_samples())
op("nn.functional.tanh", np.tanh, unary_samples())

steep = Const([-4.0, -0.5, 0.0, 0.5, 7.0])
in_place = {
    "relu_": (np_relu, []),
    "leaky_relu_": (lambda x, a=0.01: np.where(x > 0, x, x * a), [0.3]),
    "elu_": (np_elu, [2.0]),
    "celu_": (np_celu, [2.0]),
    "selu_": (np_selu, []),
    "hardtanh_": (lambda x, a=-1.0, b=1.0: np.clip(x, a, b), [-2.0, 3.0]),
    "threshold_": (np_threshold, [0.2, 9.0]),
}
for name, (reference, arguments) in in_place.items():
    top = [""] if name in ("relu_", "celu_", "selu_", "threshold_") else []
    for prefix in (*top, "nn.functional."):
        op(f"{prefix}{name}", quiet(reference), [S(steep, *arguments)], grad=False, method=False)

# Kinks ---------------------------------------------------------------------------------------
_bends = np.array([0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 6.0, 0.5, -0.5])
for _name in ("relu", "relu6", "hardtanh", "hardsigmoid", "hardswish", "leaky_relu", "elu", "celu"):
    singular(f"nn.functional.{_name}", S(_bends))
for _name in ("selu", "softshrink", "hardshrink", "softsign", "softplus", "logsigmoid"):
    singular(f"nn.functional.{_name}", S(_bends))
singular("nn.functional.threshold", S(_bends, 0.5, 0.5), S(_bends, 1.0, 2.0))
singular("prelu", S(np.array([[0.0, 1.0], [-1.0, -0.0]]), np.array([0.5, 0.25])))
