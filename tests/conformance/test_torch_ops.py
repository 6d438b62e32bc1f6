"""The op table against torch: values, dtypes, first and second gradients in float64, views."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import undertow as ut
from op_cases import cases, flat, host, leaves, listed, resolve, seed_of, sharing, tensors, within
from op_samples import DIFFERENTIATED, Const, OpInfo, Sample, load
from undertow.core.out import TAKES_OUT
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
        return t.requires_grad_() if grad and value.dtype in DIFFERENTIATED else t
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
    found = flat(within(info)(*args, **kwargs))
    with warnings.catch_warnings():  # torch's own: deprecations, no degrees of freedom …
        warnings.simplefilter("ignore")
        expected = flat(within(info, torch_function(info))(*targs, **tkwargs))
    assert len(found) == len(expected)
    for f, e in zip(found, expected, strict=True):
        compare(f, e, info)
    if not (info.grad and info.torch_grad):
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
    seeds = [seed_of(random, f) for f, _ in pairs]
    grads = ut.autograd.grad(
        [f for f, _ in pairs],
        inputs,
        [wrap(s) for s in seeds],
        create_graph=True,
        materialize_grads=True,
    )
    tgrads = torch.autograd.grad(
        [e for _, e in pairs],
        tinputs,
        [torch.from_numpy(s) for s in seeds],
        create_graph=True,
        materialize_grads=True,
    )
    for g, t in zip(grads, tgrads, strict=True):
        compare(g, t, info)
    if not (info.gradgrad and info.torch_gradgrad):
        return
    seconds = [seed_of(random, g) for g in grads]
    chosen = [k for k, t in enumerate(tgrads) if t.requires_grad]
    if not chosen:
        return
    # A gradient of ours that is constant has no graph; torch must then find zeros.
    varying = [k for k in chosen if grads[k].requires_grad]
    second = (
        ut.autograd.grad(
            [grads[k] for k in varying],
            inputs,
            [wrap(seconds[k]) for k in varying],
            materialize_grads=True,
        )
        if varying
        else [ut.zeros_like(t) for t in inputs]
    )
    tsecond = torch.autograd.grad(
        [tgrads[k] for k in chosen],
        tinputs,
        [torch.from_numpy(seconds[k]) for k in chosen],
        materialize_grads=True,
        allow_unused=True,
    )
    for g, t in zip(second, tsecond, strict=True):
        compare(g, t, info)


@pytest.mark.parametrize(
    "shapes, ends",
    [
        ([(8, 4), (3, 4, 8)], [2, 2, 8]),
        ([(3, 4, 8), (8, 12)], [4, 8, 12]),
        ([(4, 8), (8, 4)], [0, 4, 8]),
        ([(2, 4, 8), (2, 8, 4)], None),
    ],
    ids=str,
)
def test_grouped_mm(shapes: Any, ends: Any) -> None:
    """torch's own, in float32 and with rows of whole 16 bytes: values and gradients."""
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape, np.float32) for shape in shapes]
    found = []
    for lib in (ut, torch):
        inputs = [lib.tensor(a, requires_grad=True) for a in arrays]
        offs = None if ends is None else lib.tensor(ends, dtype=lib.int32)
        y = lib.nn.functional.grouped_mm(*inputs, offs=offs)
        assert y.dtype == lib.float32
        (y * y).sum().backward()
        found.append([t.detach().numpy() for t in (y, *(i.grad for i in inputs))])
    for ours, theirs in zip(*found, strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


# Views --------------------------------------------------------------------------------------
# Where ours is a copy and torch's a view: torch marks a tensor as conjugated, we conjugate it.
CONJUGATED = {"conj", "adjoint"}


def torch_sharing(name: str, grad: bool) -> list[list[list[bool]]]:
    """For every sample, result and input: whether the two share memory in torch."""
    info = TABLE[name]
    function = random_function(name) if info.torch is None else torch_function(info)
    found = []
    for sample in info.samples:
        args, kwargs = translate(sample.args, grad), translate(sample.kwargs, grad)
        with warnings.catch_warnings():  # torch's own: deprecations, no degrees of freedom …
            warnings.simplefilter("ignore")
            results = listed(function(*args, **kwargs), torch.Tensor)
        inputs = listed([args, kwargs], torch.Tensor)
        found.append([[one_memory(r, i) for i in inputs] for r in results])
    return found


def random_function(name: str) -> Any:
    """torch's function of this name, whose values need not be ours."""
    found: Any = torch
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        pytest.skip("torch has no function of this name")
    return found


def one_memory(a: Any, b: Any) -> bool:
    """Whether two tensors that have elements are in one storage."""
    same = a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    return bool(same and a.numel() and b.numel())


@pytest.mark.parametrize("grad", [False, True], ids=["plain", "recorded"])
@pytest.mark.parametrize("name", TABLE)
def test_views_are_torchs_views(name: str, grad: bool) -> None:
    """What shares memory with an input in torch does so here, and nothing else does."""
    expected = torch_sharing(name, grad)
    for i, sample in enumerate(TABLE[name].samples):
        if name in CONJUGATED and sample.args[0].dtype.kind == "c":
            expected[i] = [[False] * len(row) for row in expected[i]]
    for sample, ours, theirs in zip(
        TABLE[name].samples, sharing(TABLE[name], grad), expected, strict=True
    ):
        assert ours == theirs, sample


# Random ones, whose numbers differ.
RANDOM = {"bernoulli", "empty", "multinomial", "normal", "rand", "randint", "randn", "randperm"}


@pytest.mark.filterwarnings("ignore::UserWarning")  # of names that are old, or new, in torch
@pytest.mark.parametrize(
    "info",
    [i for n, i in TABLE.items() if n in TAKES_OUT - RANDOM and i.torch == "same"],
    ids=lambda info: info.name,
)
def test_out_agrees_with_torch(info: OpInfo) -> None:
    """A call with `out`, where torch takes these arguments with it."""
    args = translate(info.samples[0].args, False)
    kwargs = translate(info.samples[0].kwargs, False)
    theirs = [torch.empty(0, dtype=t.dtype) for t in flat(torch_function(info)(*args, **kwargs))]
    ours = [ut.empty(0, dtype=getattr(ut, str(t.dtype).removeprefix("torch."))) for t in theirs]
    try:
        torch_function(info)(*args, **kwargs, out=theirs[0] if len(theirs) == 1 else tuple(theirs))
    except (TypeError, RuntimeError):
        pytest.skip("torch has no out for these arguments, or wants its shape")
    args, kwargs = tensors(info.samples[0].args), tensors(info.samples[0].kwargs)
    resolve(info.name)(*args, **kwargs, out=ours[0] if len(ours) == 1 else tuple(ours))
    for found, expected in zip(ours, theirs, strict=True):
        compare(found, expected, info)
