"""`out=`: what every function that takes it does with it, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut
from op_cases import flat, host, resolve, tensors
from op_samples import OpInfo, load
from undertow.core.out import TAKES_OUT

TABLE = load()


@pytest.mark.parametrize(
    "info", [pytest.param(i, id=n) for n, i in TABLE.items() if n in TAKES_OUT]
)
def test_the_result_is_in_out(info: OpInfo) -> None:
    """For every function: out is returned, holds the result, and has its shape."""
    if info.name == "empty":  # whose elements may be anything
        return
    for sample in info.samples[:3]:
        args, kwargs = tensors(sample.args), tensors(sample.kwargs)
        expected = resolve(info.name)(*args, **kwargs)
        parts = flat(expected)
        outs = [ut.empty(0, dtype=e.dtype) for e in parts]
        out: Any = outs[0] if isinstance(expected, ut.Tensor) else tuple(outs)
        found = resolve(info.name)(*args, **kwargs, out=out)
        if isinstance(expected, ut.Tensor):
            assert found is out
        for target, result, wanted in zip(outs, flat(found), parts, strict=True):
            assert result is target
            assert target.shape == wanted.shape
            np.testing.assert_array_equal(host(target), host(wanted))


@pytest.mark.parametrize(
    "name",
    [
        "avg_pool2d",
        "avg_pool3d",
        "gelu",
        "linear",
        "logsigmoid",
        "softplus",
        "softshrink",
        "hardshrink",
    ],
)
def test_functions_of_nn(name: str) -> None:
    """The functions of nn.functional with `out` are torch's."""
    function = getattr(ut.nn.functional, name)
    x = ut.arange(16.0).reshape(1, 1, 2, 2, 4) - 7
    args = {"avg_pool2d": (x[0], 2), "avg_pool3d": (x, 2), "linear": (x, x[0, 0, 0])}
    given = args.get(name, (x,))
    out = ut.empty(0)
    assert function(*given, out=out) is out
    assert out.equal(function(*given))


def test_memory_and_strides_stay() -> None:
    """A tensor that fits is written where it is, views of it see it, its version rises."""
    whole = ut.zeros(2, 3)
    part = whole.T
    before = part._version
    assert ut.mul(ut.ones(3, 2), 2, out=part) is part
    assert whole.tolist() == [[2.0] * 3] * 2
    assert part.stride() == (1, 3)
    assert part._version > before
    x = ut.arange(3.0)
    assert ut.flip(x, (0,)).tolist() == ut.add(x.flip(0), 0, out=x).tolist()


def test_dtypes() -> None:
    """Anything that the result can be cast to; what makes or sums computes in the dtype of out."""
    half = ut.empty(3, dtype=ut.float16)
    assert ut.exp(ut.zeros(3), out=half).dtype is ut.float16
    assert ut.eq(ut.ones(2), 1, out=ut.empty(2, dtype=ut.int64)).tolist() == [1, 1]
    assert ut.ones(2, out=ut.empty(2, dtype=ut.int32)).dtype is ut.int32
    assert ut.sum(ut.tensor([0.6, 0.6]), 0, out=ut.empty((), dtype=ut.int64)).item() == 0
    with pytest.raises(RuntimeError, match=r"\[exp\] the result is .*float32.* can't be cast"):
        ut.exp(ut.zeros(3), out=ut.zeros(3, dtype=ut.int64))
    with pytest.raises(RuntimeError, match=r"\[ones\] dtype=.*float32 is not that of out"):
        ut.ones(2, dtype=ut.float32, out=ut.empty(2, dtype=ut.int32))


def test_resizing_warns_unless_empty() -> None:
    """A tensor with elements of another shape is resized with a warning."""
    out = ut.zeros(2)
    with pytest.warns(UserWarning, match=r"\[exp\] out had shape \(2,\) and was resized"):
        ut.exp(ut.zeros(3), out=out)
    assert out.tolist() == [1.0, 1.0, 1.0]
    assert ut.exp(ut.zeros(4), out=out.resize_(0)).shape == (4,)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x, o: ut.exp(x.requires_grad_(), out=o), RuntimeError, r"\[exp\] .*an input requ"),
        (lambda x, o: ut.exp(x, out=o.requires_grad_()), RuntimeError, r"\[exp\] .*out requires"),
        (lambda x, o: ut.sum(x.requires_grad_(), 0, out=o), RuntimeError, r"\[sum\] .*automatic"),
        (lambda x, o: ut.exp(x, out=3), TypeError, r"\[exp\] out must be a Tensor, got int"),
        (lambda x, o: ut.max(x, 0, out=o), RuntimeError, r"\[max\] out must be a tuple of 2"),
        (lambda x, o: ut.exp(x, out=(o,)), RuntimeError, r"\[exp\] out must be one tensor"),
        (lambda x, o: ut.exp(x, out=o[:1].expand(3)), RuntimeError, r"\[exp\] several elements"),
        (lambda x, o: ut.reshape(x, (3,), out=o), TypeError, "out"),
        (lambda x, o: x.exp(out=o), TypeError, "out"),
    ],
)
def test_refusals(call: Any, error: type[Exception], message: str) -> None:
    """Errors name the function and what to do."""
    with pytest.raises(error, match=message):
        call(ut.zeros(3), ut.zeros(3))


def test_without_gradients_inputs_may_require_them() -> None:
    """Under no_grad nothing would be recorded, and it is allowed."""
    x, out = ut.zeros(3, requires_grad=True), ut.empty(0)
    with ut.no_grad():
        ut.exp(x, out=out)
    assert not out.requires_grad
    assert ut.argmax(x, out=ut.empty((), dtype=ut.int64)).item() == 0
    assert ut.sum(x.detach(), 0, out=None).item() == 0


@pytest.mark.parametrize(
    ("fill", "wanted"),
    [
        (lambda out: ut.arange(0, 4, out=out), [0, 1, 2, 3]),
        (lambda out: ut.range(0, 3, out=out), [0, 1, 2, 3]),
        (lambda out: ut.linspace(0, 3, 4, out=out), [0, 1, 2, 3]),
        (lambda out: ut.logspace(0, 3, 4, out=out), [1, 10, 100, 1000]),
    ],
)
def test_numbers_in_order_fill_any_shape_of_their_number(fill: Any, wanted: list[int]) -> None:
    """A view of as many elements is filled where it is; it got memory of its own instead."""
    x = ut.zeros(2, 3)
    part = x[:, 1:]
    assert fill(part) is part
    a, b, c, d = wanted
    assert x.tolist() == [[0, a, b], [0, c, d]]


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "nansum", "cumsum", "cumprod"])
def test_a_dtype_that_is_not_that_of_out(name: str) -> None:
    """Which of the two was meant? As in torch, an error."""
    out = ut.empty(0)
    with pytest.raises(TypeError, match="is not that of out"):
        getattr(ut, name)(ut.ones(3), 0, dtype=ut.float64, out=out)
    getattr(ut, name)(ut.ones(3), 0, dtype=ut.float32, out=out)


@pytest.mark.parametrize("name", ["all", "any"])
def test_truths_go_into_bool_and_uint8(name: str) -> None:
    """Whichever of them the result would be by itself, and, as in torch, into nothing else."""
    fn = getattr(ut, name)
    for given in (ut.float32, ut.uint8, ut.bool):
        for dtype in (ut.bool, ut.uint8):
            out = ut.empty(2, dtype=dtype)
            assert fn(ut.ones(3, 2).to(given), 0, out=out) is out
            assert out.dtype is dtype
            assert out.tolist() == [1, 1]
        for dtype in (ut.int64, ut.float32, ut.complex64):
            with pytest.raises(TypeError, match=rf"\[{name}\] out must be bool or uint8"):
                fn(ut.ones(3, 2).to(given), out=ut.empty((), dtype=dtype))


def test_nonzero_writes_int64_alone() -> None:
    with pytest.raises(RuntimeError, match=r"\[nonzero\] out must be int64, got undertow.float32"):
        ut.nonzero(ut.ones(2), out=ut.empty(0))


def test_out_of_a_new_tensor_may_require_gradients() -> None:
    out = ut.zeros(2)
    assert ut.ones(2, out=out, requires_grad=True) is out
    assert out.requires_grad
    assert out.tolist() == [1, 1]


def test_windows_of_halves_are_rounded_once() -> None:
    for dtype in (ut.bfloat16, ut.float16):
        for make in (ut.kaiser_window, ut.hann_window, ut.blackman_window):
            assert make(50, dtype=dtype).equal(make(50).to(dtype))
