"""Gradients at singular points are torch's: which subgradient of a kink, which share of a tie."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import undertow as ut
from conformance.test_torch_ops import torch_function, torch_leaves, translate
from op_cases import flat, host, leaves, resolve, tensors
from op_samples import OpInfo, Sample, load

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance


def cases() -> list[Any]:
    """Every (op, sample) of a singular point where torch's gradient is ours."""
    return [
        pytest.param(info, point.sample, id=f"{info.name}{i}-{point.sample}")
        for info in load().values()
        for i, point in enumerate(info.singular)
        if point.torch and info.torch is not None
    ]


@pytest.mark.parametrize("info, sample", cases())
def test_gradient_is_torchs(info: OpInfo, sample: Sample) -> None:
    """To the number, infinities included."""
    args, kwargs = tensors(sample.args, grad=True), tensors(sample.kwargs, grad=True)
    targs, tkwargs = translate(sample.args), translate(sample.kwargs)
    found = [t for t in flat(resolve(info.name)(*args, **kwargs)) if t.requires_grad]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [t for t in flat(torch_function(info)(*targs, **tkwargs)) if t.requires_grad]
    inputs, tinputs = leaves(args, kwargs), torch_leaves(targs, tkwargs)
    ones = lambda lib, results: [lib.ones_like(t) for t in results]
    if not found:
        assert not any(
            g.any() for g in torch.autograd.grad(expected, tinputs, ones(torch, expected))
        )
        return
    grads = ut.autograd.grad(found, inputs, ones(ut, found), materialize_grads=True)
    theirs = torch.autograd.grad(expected, tinputs, ones(torch, expected), materialize_grads=True)
    for g, t in zip(grads, theirs, strict=True):
        np.testing.assert_allclose(host(g), t.numpy(force=True), rtol=1e-7, atol=1e-9)
