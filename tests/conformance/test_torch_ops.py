"""The op table against torch: values, dtypes, first and second gradients in float64."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import undertow as ut
from op_samples import Const, OpInfo, Sample, load
from test_ops import cases, flat, host, leaves, resolve, tensors
from undertow.core.tensor import wrap

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance
TABLE = load()


def translate(value: Any, grad: bool = True) -> Any:
    """A sample's value for torch."""
    if isinstance(value, Const):
        return torch.from_numpy(value.array.copy(order="K"))
    if isinstance(value, np.ndarray):
        t = torch.from_numpy(value.copy(order="K") if value.size else value.copy())
        return t.requires_grad_() if grad and value.dtype == np.float64 else t
    if isinstance(value, ut.dtypes.DType):
        return getattr(torch, value.name)
    if isinstance(value, (list, tuple)):
        return type(value)(translate(v, grad) for v in value)
    if isinstance(value, dict):
        return {k: translate(v, grad) for k, v in value.items()}
    return value


def torch_leaves(*values: Any) -> list[Any]:
    out: list[Any] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            if value.requires_grad:
                out.append(value)
        elif isinstance(value, (list, tuple)):
            out += torch_leaves(*value)
        elif isinstance(value, dict):
            out += torch_leaves(*value.values())
    return out


def torch_function(info: OpInfo) -> Any:
    if callable(info.torch):
        return info.torch
    found: Any = torch
    for part in (info.name if info.torch == "same" else info.torch).split("."):
        found = getattr(found, part)
    return found


def compare(found: Any, expected: Any, info: OpInfo, dtype: bool = True) -> None:
    if not isinstance(expected, torch.Tensor):
        assert found == expected
        return
    assert found.shape == tuple(expected.shape)
    if dtype and info.check_dtype:
        assert found.dtype.name == str(expected.dtype).removeprefix("torch.")
    np.testing.assert_allclose(
        host(found),
        expected.detach().numpy(force=True),
        rtol=max(info.rtol, 1e-7),
        atol=max(info.atol, 1e-9),
    )


@pytest.mark.parametrize("info, sample", cases(lambda i, s: i.torch is not None))
def test_agrees_with_torch(info: OpInfo, sample: Sample) -> None:
    """Forward, first and second gradients agree."""
    args, kwargs = tensors(sample.args, grad=True), tensors(sample.kwargs, grad=True)
    targs, tkwargs = translate(sample.args), translate(sample.kwargs)
    found = flat(resolve(info.name)(*args, **kwargs))
    with warnings.catch_warnings():  # torch's own: deprecations, no degrees of freedom …
        warnings.simplefilter("ignore")
        expected = flat(torch_function(info)(*targs, **tkwargs))
    assert len(found) == len(expected)
    for f, e in zip(found, expected, strict=True):
        compare(f, e, info)
    if not info.grad:
        return
    pairs = [
        (f, e)
        for f, e in zip(found, expected, strict=True)
        if isinstance(e, torch.Tensor) and e.requires_grad
    ]
    inputs, tinputs = leaves(args, kwargs), torch_leaves(targs, tkwargs)
    if not pairs or not inputs:
        return
    for f, _ in pairs:
        assert f.requires_grad, "torch differentiates this output, we do not"
    random = np.random.default_rng(7)
    seeds = [random.standard_normal(f.shape) for f, _ in pairs]
    grads = ut.autograd.grad(
        [f for f, _ in pairs],
        inputs,
        [wrap(np.asarray(s)) for s in seeds],
        create_graph=True,
        materialize_grads=True,
    )
    tgrads = torch.autograd.grad(
        [e for _, e in pairs],
        tinputs,
        [torch.from_numpy(np.asarray(s)) for s in seeds],
        create_graph=True,
        materialize_grads=True,
    )
    for g, t in zip(grads, tgrads, strict=True):
        compare(g, t, info)
    if not (info.gradgrad and info.torch_gradgrad):
        return
    seconds = [random.standard_normal(g.shape) for g in grads]
    chosen = [k for k, t in enumerate(tgrads) if t.requires_grad]
    if not chosen:
        return
    # A gradient of ours that is constant has no graph; torch must then find zeros.
    varying = [k for k in chosen if grads[k].requires_grad]
    second = (
        ut.autograd.grad(
            [grads[k] for k in varying],
            inputs,
            [wrap(np.asarray(seconds[k])) for k in varying],
            materialize_grads=True,
        )
        if varying
        else [ut.zeros_like(t) for t in inputs]
    )
    tsecond = torch.autograd.grad(
        [tgrads[k] for k in chosen],
        tinputs,
        [torch.from_numpy(np.asarray(seconds[k])) for k in chosen],
        materialize_grads=True,
        allow_unused=True,
    )
    for g, t in zip(second, tsecond, strict=True):
        compare(g, t, info)
