"""The op table as tests: forward, gradients to second order, errors, methods, devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut
from op_cases import (
    TABLE,
    arrays,
    call,
    cases,
    flat,
    has_float,
    host,
    leaves,
    resolve,
    seed_of,
    tensors,
    within,
)
from op_samples import OpInfo, Sample
from undertow.core.register import SPACES
from undertow.core.tensor import wrap


@pytest.mark.parametrize("info, sample", cases(lambda i, s: i.reference is not None))
def test_forward(info: OpInfo, sample: Sample) -> None:
    """The forward agrees with NumPy."""
    found = flat(call(info, sample))
    expected = info.reference(*arrays(sample.args), **arrays(sample.kwargs))  # type: ignore[misc]
    listed = flat(list(expected) if isinstance(expected, (tuple, list)) else [expected])
    assert len(found) == len(listed)
    for f, e in zip(found, listed, strict=True):
        if isinstance(f, ut.Tensor):
            assert f.shape == np.shape(e)
        np.testing.assert_allclose(host(f), e, rtol=info.rtol, atol=info.atol)


def differentiated(info: OpInfo, sample: Sample) -> Any:
    """The op as a function of its leaves, and the leaves."""
    args, kwargs = tensors(sample.args, grad=True), tensors(sample.kwargs, grad=True)

    def run(*_: Any) -> Any:
        out = flat(within(info)(*args, **kwargs))
        return tuple(t for t in out if isinstance(t, ut.Tensor))

    return run, leaves(args, kwargs)


@pytest.mark.parametrize("info, sample", cases(has_float))
def test_gradient(info: OpInfo, sample: Sample) -> None:
    """First derivatives agree with finite differences."""
    run, inputs = differentiated(info, sample)
    assert ut.autograd.gradcheck(run, inputs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("info, sample", cases(lambda i, s: i.gradgrad and has_float(i, s)))
def test_second_gradient(info: OpInfo, sample: Sample) -> None:
    """Second derivatives agree with finite differences."""
    run, inputs = differentiated(info, sample)
    if any(t.requires_grad for t in run()):
        assert ut.autograd.gradgradcheck(run, inputs, rtol=1e-4, atol=1e-5, fast_mode=True)


@pytest.mark.parametrize(
    "info, bad",
    [
        pytest.param(info, bad, id=f"{info.name}{i}-{bad.sample}")
        for info in TABLE.values()
        for i, bad in enumerate(info.bad)
    ],
)
def test_error(info: OpInfo, bad: Any) -> None:
    """Bad input raises the right error with a message that names op and values."""
    with pytest.raises(bad.error, match=bad.match) as caught:
        call(info, bad.sample)
    assert isinstance(caught.value, ut.errors.UndertowError), "an error of ours, not NumPy's"


def short_name(info: OpInfo) -> str:
    return info.name.rsplit(".", 1)[-1]


def may_be_method(info: OpInfo) -> bool:
    """Whether a method of the name is this function: those of `ut.linalg` have older namesakes."""
    return info.name.partition(".")[0] not in SPACES


@pytest.mark.parametrize(
    "info, sample",
    cases(lambda i, s: i.method and may_be_method(i) and hasattr(ut.Tensor, short_name(i))),
)
def test_method(info: OpInfo, sample: Sample) -> None:
    """The Tensor method is the same function."""
    args = tensors(sample.args)
    if not args or not isinstance(args[0], ut.Tensor):
        return
    method = getattr(args[0], short_name(info))(*args[1:], **tensors(sample.kwargs))
    for f, e in zip(flat(method), flat(call(info, sample)), strict=True):
        np.testing.assert_array_equal(host(f), host(e))


@pytest.mark.parametrize(
    "info, sample",
    cases(lambda i, s: i.inplace and may_be_method(i) and hasattr(ut.Tensor, short_name(i) + "_")),
)
def test_inplace(info: OpInfo, sample: Sample) -> None:
    """The in-place method gives the same values and gradients, where the result fits."""
    args = tensors(sample.args, grad=True)
    kwargs = tensors(sample.kwargs, grad=True)
    if not args or not isinstance(args[0], ut.Tensor):
        return
    expected = resolve(info.name)(*args, **kwargs)
    if expected.shape != args[0].shape or expected.dtype is not args[0].dtype:
        return
    target = args[0].clone()
    found = getattr(target, short_name(info) + "_")(*args[1:], **kwargs)
    assert found is target
    np.testing.assert_array_equal(host(found), host(expected))
    inputs = leaves(args, kwargs)
    if expected.requires_grad and inputs:
        seed = wrap(seed_of(np.random.default_rng(3), expected))
        grads = ut.autograd.grad(expected, inputs, seed, materialize_grads=True)
        again = ut.autograd.grad(found, inputs, seed, materialize_grads=True)
        for a, b in zip(grads, again, strict=True):
            np.testing.assert_allclose(host(a), host(b), rtol=1e-12, atol=1e-14)


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__, "-q"]))
