"""Convolutions that are one matrix product on views: each element is a window, or all are one."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from ....kernel.windows import Geometry
from ...base import Backend
from ..products.gemm import gemm
from ..products.gemm_micro import RELU
from .problem import Arrays, Problem, Way


def plan(p: Problem) -> Way | None:
    """How to compute it so; None if it is no such product."""
    found = factors(p, p.geometry)
    if found is None:
        return None
    last = found.swapped and found.whole
    return Way(functools.partial(_run, p.geometry, p.relu and last), found.bias is not None, last)


def _run(geometry: Geometry, relu: bool, a: Arrays, backend: Backend) -> bool:
    found = factors(a, geometry)
    assert found is not None
    gemm(*found[:4], activation=RELU if relu else None, summed=found.summed)
    return True


class Factors(NamedTuple):
    """A convolution as one product of views: out = a @ b + bias."""

    a: Any
    b: Any
    out: Any
    bias: Any  # one number per row
    summed: bool  # the product is a sum of several; see `gemm`
    swapped: bool  # a is w, not x
    whole: bool  # no bias must be added afterwards


def factors(arrays: Arrays | Problem, geometry: Geometry) -> Factors | None:
    """The product, if every element is a window or all are one; None if neither is so."""
    one = geometry.kernel == geometry.size and math.prod(geometry.output) == 1
    each = geometry.output == geometry.size and math.prod(geometry.kernel) == 1
    if (
        not (one or each)
        or max(geometry.input_dilation) > 1
        or any(low for low, _ in geometry.padding)
    ):
        return None
    out, x, w, bias = arrays[:4]
    to, of, by = step_of(out), step_of(x), step_of(w)
    steps = geometry.dilation if one else geometry.stride
    if to is None or of is None or by is None or max(steps) > 1:
        return None
    out, x, w = _flat(out, to), _flat(x, of), _flat(w, by)
    if not one:
        rows = bias is not None and len(w) == 1
        added = bias.reshape(-1, 1) if rows else None
        return Factors(w[..., 0], x, out, added, False, True, rows or bias is None)
    out = out[..., 0].swapaxes(0, 1)
    if x.shape[-1] > 1:
        a, b = x.transpose(2, 1, 0, 3), w.transpose(2, 0, 3, 1)
    else:
        a, b = x[..., 0].swapaxes(0, 1), w[..., 0].swapaxes(1, 2)
    return Factors(a, b, out, None, x.shape[-1] > 1, False, bias is None)


def _flat(x: Any, step: int) -> Any:
    """A view with the spatial dimensions as one, with that step in bytes."""
    flat = x.reshape(*x.shape[:3], math.prod(x.shape[3:]))
    assert flat.strides[3] == step or flat.shape[3] == 1
    return flat


def step_of(x: Any) -> int | None:
    """The step in bytes between neighbours of the spatial dimensions as one; None if it varies."""
    step = None
    following = 1
    for size, stride in zip(reversed(x.shape[3:]), reversed(x.strides[3:]), strict=True):
        if size == 1:
            continue
        if step is None:
            step = stride
        elif stride != step * following:
            return None
        following *= size
    return x.itemsize if step is None else step
