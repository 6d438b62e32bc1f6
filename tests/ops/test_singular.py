"""Gradients at singular points, held against slopes of the function from both sides.

gradcheck compares with central differences, which say nothing at a kink or at the edge of a domain.
Here each side has its own slope, found by shrinking steps:

- where both sides agree the gradient is that slope, infinite ones included;
- where one side lies outside the domain it is the slope of the other;
- at a kink it lies between the two: a subgradient (which one, `tests/conformance` asks torch);
- a jump is no slope, nor is the way to a pole: the function beyond it counts.

Elements are moved one by one. Then all those of an input move together, and all inputs: where that
is smooth, as for a tie, the shares must add up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import undertow as ut
from op_cases import flat, host, leaves, resolve, tensors
from op_samples import OpInfo, Sample, load

STEPS = (1e-4, 1e-6, 1e-8)


def cases() -> list[Any]:
    """Every (op, sample) of a singular point."""
    return [
        pytest.param(info, point.sample, id=f"{info.name}{i}-{point.sample}")
        for info in load().values()
        for i, point in enumerate(info.singular)
    ]


def weighted(results: Any) -> list[Any]:
    """One number out of each floating result: its sum with weights that are all different."""
    floating = [t for t in flat(results) if t.is_floating_point()]
    weights = [1 + 0.125 * np.arange(math.prod(t.shape)).reshape(t.shape) for t in floating]
    return [(t * ut.tensor(w)).sum() for t, w in zip(floating, weights, strict=True)]


def moved(value: Any, which: list[int], step: float, where: Any, seen: list[int]) -> Any:
    """A sample's value with the elements `where` of some differentiated arrays moved."""
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        seen[0] += 1
        if seen[0] - 1 not in which:
            return value
        out = value.copy()
        out[where] += step
        return out
    if isinstance(value, (list, tuple)):
        return type(value)(moved(v, which, step, where, seen) for v in value)
    if isinstance(value, dict):
        return {k: moved(v, which, step, where, seen) for k, v in value.items()}
    return value


def one_side(value: Callable[[float], float], sign: int) -> float | None:
    """The slope on one side of 0; None if the function is not defined there."""
    here = value(0.0)
    if math.isinf(here):
        slopes = [(value(sign * 2 * h) - value(sign * h)) / (sign * h) for h in STEPS]
        return math.copysign(math.inf, slopes[2]) if all(map(math.isfinite, slopes)) else None
    slopes = [(value(sign * h) - here) / (sign * h) for h in STEPS]
    if not all(map(math.isfinite, slopes)):
        return None
    first, second = abs(slopes[1] - slopes[0]), abs(slopes[2] - slopes[1])
    noise = 1e-6 * (1 + abs(here))
    if second <= 0.5 * first + noise:
        return slopes[2]
    if second > 50 * first:  # grows like the inverse of the step: a jump
        return (value(sign * 2e-6) - value(sign * 1e-6)) / (sign * 1e-6)
    return math.copysign(math.inf, slopes[2])


def check(gradient: float, value: Callable[[float], float], what: str) -> None:
    """The gradient is a slope, or lies between the two of a kink."""
    sides = [s for s in (one_side(value, -1), one_side(value, 1)) if s is not None]
    if not sides:
        return
    assert not math.isnan(gradient), f"{what}: the gradient is NaN, slopes are {sides}"
    slack = 1e-3 * (1 + max((abs(s) for s in sides if math.isfinite(s)), default=0.0))
    inside = min(sides) - slack <= gradient <= max(sides) + slack
    assert inside, f"{what}: the gradient is {gradient}, slopes are {sides}"


def check_whole(gradient: float, value: Callable[[float], float], what: str) -> None:
    """Where many elements move at once, kinks may bend either way: only a slope says something."""
    left, right = one_side(value, -1), one_side(value, 1)
    if left is not None and right is not None and abs(left - right) < 1e-4 * (1 + abs(left)):
        check(gradient, value, what)


@pytest.mark.parametrize("info, sample", cases())
def test_gradient_is_a_slope(info: OpInfo, sample: Sample) -> None:
    """See above; one result of the op after the other."""
    args, kwargs = tensors(sample.args, grad=True), tensors(sample.kwargs, grad=True)
    inputs = leaves(args, kwargs)

    def at(k: int, which: list[int], where: Any) -> Callable[[float], float]:
        def value(step: float) -> float:
            seen = [0]
            parts = [moved(v, which, step, where, seen) for v in (sample.args, sample.kwargs)]
            return weighted(resolve(info.name)(*tensors(parts[0]), **tensors(parts[1])))[k].item()

        return value

    for k, total in enumerate(weighted(resolve(info.name)(*args, **kwargs))):
        found = (
            ut.autograd.grad(total, inputs, materialize_grads=True)
            if total.requires_grad
            else [ut.zeros_like(t) for t in inputs]
        )
        grads = [host(g) for g in found]
        for i, gradient in enumerate(grads):
            for where in np.ndindex(gradient.shape):
                check(float(gradient[where]), at(k, [i], where), f"input {i} at {where}")
            check_whole(float(gradient.sum()), at(k, [i], ...), f"the whole of input {i}")
        with np.errstate(invalid="ignore"):  # inf - inf: then the whole says nothing
            whole = float(sum(g.sum() for g in grads))
        check_whole(whole, at(k, list(range(len(grads))), ...), "all inputs together")


def test_every_kinked_op_has_singular_points() -> None:
    """The ops whose gradient has been decided at a kink or an edge keep such points."""
    with_points = {name for name, info in load().items() if info.singular}
    for name in ("abs", "sqrt", "pow", "clamp", "maximum", "norm", "prod", "atan2", "xlogy", "max"):
        assert name in with_points


def test_a_wrong_gradient_is_noticed() -> None:
    """The check tells a sign from a slope, NaN from infinity, and a share from the whole."""
    absolute = lambda t: abs(t)
    check(0.0, absolute, "a subgradient")
    root = lambda t: t**0.5 if t >= 0 else math.nan
    check(math.inf, root, "an edge")
    for gradient, value in ((1.5, absolute), (0.0, root), (math.nan, absolute), (2.0, math.sin)):
        with pytest.raises(AssertionError):
            check(gradient, value, "wrong")
    assert one_side(lambda t: math.floor(t), -1) == 0  # beyond the jump
