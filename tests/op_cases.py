"""The samples of the op table as arguments and as tensors, for every test that goes through it."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import undertow as ut
from op_samples import DIFFERENTIATED, Const, OpInfo, Sample, load
from undertow.core.dispatch import transfer
from undertow.core.tensor import wrap

TABLE = load()


def resolve(name: str) -> Any:
    """The function of a table entry; random ones draw the same numbers every time."""
    ut.manual_seed(0)
    found: Any = ut
    for part in name.split("."):
        found = getattr(found, part)
    return found


def within(info: OpInfo, function: Any = None) -> Any:
    """The function of a table entry, or torch's, as it is differentiated; see `OpInfo.within`."""
    function = function or resolve(info.name)
    return info.within(function) if info.within else function


def tensors(value: Any, grad: bool = False, device: str = "cpu") -> Any:
    """A sample's value with its arrays turned into fresh tensors; see `op_samples`."""
    if isinstance(value, Const):
        return transfer(wrap(value.array.copy(order="K")), device)
    if isinstance(value, np.ndarray):
        t = transfer(wrap(value.copy(order="K") if value.size else value.copy()), device)
        return t.requires_grad_() if grad and value.dtype in DIFFERENTIATED else t
    if isinstance(value, (list, tuple)):
        return type(value)(tensors(v, grad, device) for v in value)
    if isinstance(value, dict):
        return {k: tensors(v, grad, device) for k, v in value.items()}
    return value


def arrays(value: Any) -> Any:
    """A sample's value for the NumPy reference."""
    if isinstance(value, Const):
        return value.array
    if isinstance(value, (list, tuple)):
        return type(value)(arrays(v) for v in value)
    if isinstance(value, dict):
        return {k: arrays(v) for k, v in value.items()}
    return value


def flat(result: Any) -> list[Any]:
    """The tensors of a result, in order."""
    if isinstance(result, (list, tuple)):
        return [t for r in result for t in flat(r)]
    return [result]


def call(info: OpInfo, sample: Sample, **how: Any) -> Any:
    """The op on a sample."""
    return resolve(info.name)(*tensors(sample.args, **how), **tensors(sample.kwargs, **how))


def leaves(*values: Any) -> list[ut.Tensor]:
    """The tensors that require gradients, in order."""
    out: list[ut.Tensor] = []
    for value in values:
        if isinstance(value, ut.Tensor):
            if value.requires_grad:
                out.append(value)
        elif isinstance(value, (list, tuple)):
            out += leaves(*value)
        elif isinstance(value, dict):
            out += leaves(*value.values())
    return out


def host(t: Any) -> Any:
    """A result as NumPy."""
    return np.asarray(transfer(t, "cpu").detach()._array) if isinstance(t, ut.Tensor) else t


def cases(want: Any = lambda info, sample: True, every: int = 1) -> list[Any]:
    """Every (op, sample) for which `want` holds, as pytest parameters.

    Of each op only the first of `every` so many samples, unless UNDERTOW_SAMPLES=all.
    """
    every = 1 if os.environ.get("UNDERTOW_SAMPLES") == "all" else every
    return [
        pytest.param(info, sample, id=f"{info.name}{i}-{sample}")
        for info in TABLE.values()
        for i, sample in enumerate(info.samples)
        if i % every == 0 and want(info, sample)
    ]


def seed_of(random: Any, t: ut.Tensor) -> Any:
    """A random cotangent for a result, as an array."""
    values = random.standard_normal(t.shape)
    return np.asarray(values + 1j * random.standard_normal(t.shape) if t.is_complex() else values)


def has_float(info: OpInfo, sample: Sample) -> bool:
    """Whether a sample has something to differentiate."""

    def found(value: Any) -> bool:
        if isinstance(value, np.ndarray):
            return value.dtype in DIFFERENTIATED
        if isinstance(value, (list, tuple)):
            return any(map(found, value))
        return False

    return info.grad and (found(sample.args) or found(list(sample.kwargs.values())))


def listed(value: Any, kind: type) -> list[Any]:
    """The tensors of a sample's value or of a result, also inside lists, tuples and dicts."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in listed(v, kind)]
    return []


def sharing(info: OpInfo, grad: bool) -> list[list[list[bool]]]:
    """For every sample, result and input: whether the two share memory."""
    found = []
    for sample in info.samples:
        args, kwargs = tensors(sample.args, grad), tensors(sample.kwargs, grad)
        results = listed(resolve(info.name)(*args, **kwargs), ut.Tensor)
        inputs = [t.detach()._array for t in listed([args, kwargs], ut.Tensor)]
        arrays = [t.detach()._array for t in results]
        found.append([[np.may_share_memory(r, i) for i in inputs] for r in arrays])
    return found
