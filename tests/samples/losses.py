"""Samples for `undertow.ops.nn.losses`."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import Bad, Const, S, arr, ints, op, positive, singular

F = "nn.functional."


def reduced(loss, reduction="mean"):
    """The mean (NaN of nothing), the sum, or everything."""
    if reduction == "none":
        return loss
    return np.sum(loss) if reduction == "sum" else ratio(np.sum(loss), np.size(loss))


def ratio(total, count):
    return total / count if count else np.nan


def reductions(*args, **kwargs):
    """One call with every reduction."""
    return [S(*args, **kwargs), *(S(*args, reduction=r, **kwargs) for r in ("none", "sum"))]


def bad(name, *args):
    """What every loss refuses."""
    return [
        Bad(S(*args, reduction="max"), ut.errors.ArgumentError, rf"\[{name}\] reduction.*'max'")
    ]


def pairs(make=arr, other=None):
    """Awkward pairs of input and target."""
    other = other or make
    return [
        *reductions(make(3, 4), other(3, 4, seed=1)),
        S(make(), other(seed=1)),
        S(make(4, 3).T, other(3, 4, seed=1)),
        S(make(2, 6)[:, ::2], other(2, 3, seed=1)),
        *reductions(make(0, 3), other(0, 3)),  # the mean of nothing is NaN
    ]


def broadcast_pairs(make=arr):
    return [
        *pairs(make),
        S(make(3, 1), make(4, seed=1)),
        S(make(3, 4), make(seed=1)),
        S(make(2, 3, 4), make(3, 1, seed=1), reduction="none"),
    ]


# Regression ----------------------------------------------------------------------------------
def weighted(error):
    """A reference with torch's weighted mean."""

    def run(x, y, weight=None, reduction="mean"):
        loss = error(x - y)
        if weight is None:
            return reduced(loss, reduction)
        loss = loss * weight
        return loss.sum() / weight.sum() if reduction == "mean" else reduced(loss, reduction)

    return run


def quiet(name):
    """torch's function without its warning about broadcasting, and Const weights."""

    def run(*args, **kwargs):
        import warnings

        import torch

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(torch.nn.functional, name)(*args, **kwargs)

    return run


WEIGHTED = [
    *reductions(arr(3, 4), arr(3, 4, seed=1), weight=positive(3, 4, seed=2)),
    S(arr(2, 3), arr(3, seed=1), weight=positive(2, 3, seed=2)),
]
BAD_WEIGHT = S(arr(3), arr(3), weight=arr(1))

op(
    F + "mse_loss",
    weighted(np.square),
    [*broadcast_pairs(), *WEIGHTED],
    torch=quiet("mse_loss"),
    bad=[
        *bad("mse_loss", arr(3), arr(3)),
        Bad(BAD_WEIGHT, ut.errors.ShapeError, r"\[mse_loss\] weight.*\(3,\).*\(1,\)"),
        Bad(S(arr(3) * 1j, arr(3)), TypeError, r"\[mse_loss\].*complex128"),
        Bad(S(arr(3), arr(4)), ut.errors.ShapeError, "do not broadcast"),
    ],
)
op(
    F + "l1_loss",
    weighted(np.abs),
    [*broadcast_pairs(), *WEIGHTED],
    torch=quiet("l1_loss"),
    bad=[
        *bad("l1_loss", arr(3), arr(3)),
        Bad(BAD_WEIGHT, ut.errors.ShapeError, r"\[l1_loss\] weight"),
    ],
)


def huber(x, y, reduction="mean", delta=1.0, weight=None):
    z = np.abs(x - y)
    loss = np.where(z < delta, 0.5 * z * z, delta * (z - 0.5 * delta))
    return reduced(loss if weight is None else loss * weight, reduction)


def smooth_l1(x, y, reduction="mean", beta=1.0):
    z = np.abs(x - y)
    return reduced(np.where(z < beta, 0.5 * z * z / (beta or 1), z - 0.5 * beta), reduction)


op(
    F + "huber_loss",
    huber,
    [
        *broadcast_pairs(),
        S(arr(3, 4), arr(3, 4, seed=1), delta=0.3),
        S(arr(3, 4), arr(3, 4, seed=1), "none", 2.5, positive(3, 4)),
        *WEIGHTED,
    ],
    torch=quiet("huber_loss"),
    bad=[
        Bad(S(arr(3), arr(3), delta=0), ut.errors.ArgumentError, r"\[huber_loss\] delta.*0"),
        Bad(S(arr(3), arr(3), "x"), ut.errors.ArgumentError, r"\[huber_loss\] reduction"),
        Bad(S(arr(3) * 1j, arr(3)), TypeError, r"\[huber_loss\].*complex128"),
        Bad(BAD_WEIGHT, ut.errors.ShapeError, r"\[huber_loss\] weight"),
    ],
)
op(
    F + "smooth_l1_loss",
    smooth_l1,
    [
        *broadcast_pairs(),
        S(arr(3, 4), arr(3, 4, seed=1), beta=0.3),
        S(arr(3, 4), arr(3, 4, seed=1), beta=0),
        S(arr(3, 4), arr(3, 4, seed=1), beta=2.5),
    ],
    torch=quiet("smooth_l1_loss"),
    bad=[
        *bad("smooth_l1_loss", arr(3), arr(3)),
        Bad(S(arr(3), arr(3), beta=-1), ut.errors.ArgumentError, r"\[smooth_l1_loss\] beta.*-1"),
    ],
)


# Probabilities -------------------------------------------------------------------------------
def unit(*shape, seed=0):
    return arr(*shape, seed=seed, low=0.1, high=0.9)


def bce(p, t, weight=None, reduction="mean"):
    with np.errstate(divide="ignore"):
        a, b = np.maximum(np.log(p), -100), np.maximum(np.log1p(-p), -100)
    loss = -(t * a + (1 - t) * b)
    return reduced(loss if weight is None else loss * weight, reduction)


def bce_logits(x, t, weight=None, reduction="mean", pos_weight=None):
    log_p, log_q = -np.logaddexp(0, -x), -np.logaddexp(0, x)
    loss = -(t * log_p * (1 if pos_weight is None else pos_weight) + (1 - t) * log_q)
    return reduced(loss if weight is None else loss * weight, reduction)


op(
    F + "binary_cross_entropy",
    bce,
    [
        *pairs(unit),
        S(unit(3, 4), Const(unit(3, 4, seed=1)), Const(positive(4))),
        S(unit(3), Const([0.0, 1.0, 1.0])),
        S(unit(3, 4), unit(3, 4, seed=1), Const(positive(3, 1)), reduction="none"),
        S(Const([0.0, 1.0, 0.0, 1.0]), Const([0.0, 1.0, 1.0, 0.0]), reduction="none"),
    ],
    bad=[
        *bad("binary_cross_entropy", unit(3), unit(3)),
        Bad(S(arr(4), unit(4)), ut.errors.ArgumentError, r"from 0 to 1.*with_logits"),
        Bad(S(unit(4), unit(3)), ut.errors.ShapeError, r"\(4,\) and \(3,\)"),
    ],
)
op(
    F + "binary_cross_entropy_with_logits",
    bce_logits,
    [
        *pairs(arr, unit),
        S(arr(3, 4), unit(3, 4), Const(positive(4))),
        S(arr(3, 4), unit(3, 4), pos_weight=Const(positive(4))),
        S(
            arr(3, 4),
            unit(3, 4),
            Const(positive(3, 1)),
            pos_weight=Const(positive(4, seed=2)),
            reduction="sum",
        ),
        S(Const([1e4, -1e4, 800.0]), Const([0.0, 1.0, 0.5]), reduction="none"),
    ],
    bad=[
        *bad("binary_cross_entropy_with_logits", arr(3), arr(3)),
        Bad(S(arr(4), unit(3)), ut.errors.ShapeError, r"\(4,\) and \(3,\)"),
    ],
)


def kl(x, t, reduction="mean", log_target=False):
    if log_target:
        loss = np.exp(t) * (t - x)
    else:
        loss = np.where(t == 0, 0, t * np.log(np.where(t == 0, 1, t))) - t * x
    return loss.sum() / len(x) if reduction == "batchmean" else reduced(loss, reduction)


def quiet_kl(*args, **kwargs):
    return quiet("kl_div")(*args, **kwargs)


op(
    F + "kl_div",
    kl,
    [
        *pairs(arr, unit),
        S(arr(3, 4), unit(3, 4), reduction="batchmean"),
        S(arr(3, 4), arr(3, 4, seed=1), reduction="batchmean", log_target=True),
        S(arr(3, 4), arr(3, 4, seed=1), log_target=True),
        S(arr(3, 1), unit(4)),
        S(arr(3), Const([0.0, 1.0, 0.0]), reduction="none"),
    ],
    torch=quiet_kl,
    bad=[
        *bad("kl_div", arr(3), unit(3)),
        Bad(S(arr(3), unit(3), reduction="x"), ut.errors.ArgumentError, r"\[kl_div\].*batchmean"),
    ],
)


# Likelihoods ---------------------------------------------------------------------------------
def poisson(x, t, log_input=True, full=False, eps=1e-8, reduction="mean"):
    loss = np.exp(x) - t * x if log_input else x - t * np.log(x + eps)
    if full:
        safe = np.where(t > 1, t, 1)
        stirling = safe * np.log(safe) - safe + 0.5 * np.log(2 * np.pi * safe)
        loss = loss + np.where(t > 1, stirling, 0)
    return reduced(loss, reduction)


op(
    F + "poisson_nll_loss",
    poisson,
    [
        *pairs(arr, positive),
        S(positive(3, 4), positive(3, 4, seed=1), log_input=False),
        S(arr(3, 4), Const(ints(3, 4, low=0)), full=True),
        S(arr(3, 4), positive(3, 4, seed=1), full=True, reduction="none"),
        S(arr(3, 1), positive(4)),
        S(positive(3, 4), positive(3, 4), False, True, eps=1e-3, reduction="sum"),
    ],
    bad=bad("poisson_nll_loss", arr(3), positive(3)),
)


def gaussian(x, t, var, full=False, eps=1e-6, reduction="mean"):
    var = np.asarray(var, float)
    if var.ndim and var.shape == x.shape[:-1]:
        var = var[..., None]
    var = np.maximum(var, eps)
    loss = 0.5 * (np.log(var) + (x - t) ** 2 / var) + (0.5 * np.log(2 * np.pi) if full else 0)
    return reduced(loss, reduction)


op(
    F + "gaussian_nll_loss",
    gaussian,
    [
        *reductions(arr(3, 4), arr(3, 4, seed=1), positive(3, 4, seed=2)),
        S(arr(3, 4), arr(3, 4, seed=1), positive(3, seed=2), full=True),
        S(arr(3, 4), arr(3, 4, seed=1), positive(3, 1, seed=2)),
        S(arr(3, 4), arr(3, 4, seed=1), positive(1, 4, seed=2)),
        S(arr(3, 4), arr(4, seed=1), positive(3, 4, seed=2)),
        S(arr(3), arr(3, seed=1), 0.5),
        S(arr(), arr(seed=1), positive()),
        S(arr(0, 3), arr(0, 3), positive(0, 3)),
        S(Const(arr(3)), Const(arr(3, seed=1)), Const([0.0, 1e-9, 1.0]), reduction="none"),
    ],
    bad=[
        Bad(S(arr(2), arr(2), Const([1.0, -1.0])), ut.errors.ArgumentError, r"negative.*-1"),
        Bad(S(arr(2), arr(2), -0.5), ut.errors.ArgumentError, r"negative.*-0.5"),
        Bad(
            S(arr(2, 3), arr(2, 3), positive(2, 2)),
            ut.errors.ShapeError,
            r"\[gaussian_nll_loss\] var.*\(2, 3\)",
        ),
        Bad(S(arr(2), arr(2), 1.0, reduction="x"), ut.errors.ArgumentError, r"reduction.*'x'"),
    ],
)

# Kinks -----------------------------------------------------------------------------------------
_pairs = (np.array([0.0, 1.0, -1.0, 2.0]), np.array([0.0, 0.0, 0.0, 2.0]))
for _name in ("l1_loss", "smooth_l1_loss", "huber_loss", "mse_loss"):
    singular(f"nn.functional.{_name}", S(*_pairs), S(*_pairs, reduction="none"))
singular("nn.functional.kl_div", S(np.array([-1.0, 0.0]), Const([0.0, 1.0]), reduction="sum"))
