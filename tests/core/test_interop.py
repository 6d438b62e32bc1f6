"""NumPy and DLPack: shared memory, `__array__`, ufuncs, awkward arrays."""

from __future__ import annotations

import operator
from array import array
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow import errors


# Sharing memory -----------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ut.dtypes.ALL, ids=str)
def test_round_trip_shares_memory(dtype: Any) -> None:
    a = np.zeros((2, 3), dtype.numpy)
    t = ut.from_numpy(a)
    assert t.dtype is dtype
    a[0, 0] = 1
    assert t[0, 0].item() == 1
    t[1, 2] = 1
    assert a[1, 2] == 1
    back = t.numpy()
    assert back.dtype == a.dtype
    assert np.shares_memory(back, a)
    assert back is not t._array, "setting the shape of one would turn the other"


def test_frombuffer_shares_bytes() -> None:
    raw = bytearray(np.arange(4, dtype=np.float32).tobytes())
    t = ut.frombuffer(raw, dtype=ut.float32, count=2, offset=4, requires_grad=True)
    assert t.tolist() == [1, 2]
    with ut.no_grad():
        t[0] = 7
    assert np.frombuffer(raw, np.float32).tolist() == [0, 7, 2, 3]
    assert t.sum().requires_grad
    with pytest.raises(errors.InplaceError, match="read-only"):
        ut.frombuffer(b"abcd", dtype=ut.int32).zero_()


def test_from_numpy_follows_views() -> None:
    a = np.arange(12.0).reshape(3, 4)
    for view in (
        a[:, ::2],
        a.T,
        a[::-1],
        a[1:, ::-2],
        a[0],
        a[2, 3:],
        np.broadcast_to(a[0], (2, 4)),
    ):
        t = ut.from_numpy(view)
        np.testing.assert_array_equal((t * 2).numpy(), view * 2)
        np.testing.assert_array_equal(t.sum().numpy(), view.sum())
        np.testing.assert_array_equal(t.clone().numpy(), view)
        assert t.stride() == tuple(s // 8 for s in view.strides)
    flipped = ut.from_numpy(a[::-1])
    flipped[0] = -1
    assert (a[2] == -1).all()
    assert flipped.reshape(-1)[:4].tolist() == [-1] * 4


def test_negative_strides_differentiate() -> None:
    x = ut.from_numpy(np.arange(6.0)[::-1]).requires_grad_()
    (x * x).sum().backward()
    assert x.grad.tolist() == [10, 8, 6, 4, 2, 0]


def test_read_only_arrays() -> None:
    a = np.arange(3.0)
    a.flags.writeable = False
    t = ut.from_numpy(a)
    assert (t + 1).tolist() == [1, 2, 3]
    for write in (lambda: t.zero_(), lambda: t.add_(1), lambda: operator.setitem(t, 0, 5.0)):
        with pytest.raises(errors.InplaceError, match=r"read-only.*clone"):
            write()
    assert a.tolist() == [0, 1, 2]
    t.clone().zero_()


def test_byte_swapped_arrays() -> None:
    a = np.array([1.5, 2.5], ">f4")
    with pytest.raises(errors.DTypeError, match=r"\[from_numpy\].*byte order.*ut\.tensor"):
        ut.from_numpy(a)
    for t in (ut.tensor(a), ut.as_tensor(a), ut.ones(2) * a, a * ut.ones(2)):
        assert t.tolist() == [1.5, 2.5]
        assert t.dtype is ut.float32
        assert t._array.dtype.isnative


@pytest.mark.parametrize(
    "value, match",
    [
        ([1.0], "list"),
        (np.float32(1), "float32"),
        (np.array([None]), "object"),
        (np.zeros(1, "i4,f4"), "void"),
    ],
)
def test_from_numpy_refuses(value: Any, match: str) -> None:
    with pytest.raises(errors.DTypeError, match=match):
        ut.from_numpy(value)


class Special(np.ndarray):
    """A subclass, such as np.matrix is."""


def test_subclasses_become_plain() -> None:
    a = np.array([1.0, 2.0]).view(Special)
    assert type(a) is not np.ndarray
    for t in (ut.from_numpy(a), ut.tensor(a), ut.as_tensor(a), ut.ones(2) * a, a * ut.ones(2)):
        assert type(t._array) is np.ndarray
        assert t.tolist() == [1, 2]


def test_numpy_needs_detach_and_the_cpu() -> None:
    x = ut.ones(2, requires_grad=True)
    for take in (x.numpy, (x * 2).numpy, lambda: np.asarray(x), lambda: np.array(x), x.__dlpack__):
        with pytest.raises(errors.GradientError, match="detach"):
            take()
    assert x.detach().numpy().tolist() == [1, 1]
    assert x.numpy(force=True).tolist() == [1, 1]
    assert np.shares_memory(x.numpy(force=True), x.detach().numpy())
    y = ut.ones(2, device="reference")
    for take in (y.numpy, lambda: np.asarray(y), y.__dlpack__):
        with pytest.raises(errors.DeviceError, match="cpu"):
            take()
    assert y.numpy(force=True).tolist() == [1, 1]


def test_numpy_without_recording() -> None:
    """Under no_grad there is no history to lose; an export to others has to be explicit."""
    x = ut.ones(2, requires_grad=True)
    y = x * 2
    for mode in (ut.no_grad, ut.inference_mode):
        with mode():
            assert np.shares_memory(x.numpy(), x.detach().numpy())
            assert np.asarray(y).tolist() == [2, 2]
            out = np.zeros(2, np.float32)
            out += x
            assert out.tolist() == [1, 1]
            with pytest.raises(errors.GradientError, match=r"\[__dlpack__\].*detach"):
                x.__dlpack__()
    with ut.no_grad(), ut.enable_grad(), pytest.raises(errors.GradientError, match="no_grad"):
        x.numpy()


def test_array_protocol() -> None:
    x = ut.arange(3)
    assert np.shares_memory(np.asarray(x), x.numpy())
    assert not np.shares_memory(np.array(x), x.numpy())
    assert np.asarray(x, np.float32).dtype == np.float32
    assert np.shares_memory(np.array(x, copy=False), x.numpy())
    with pytest.raises(ValueError, match="copying"):
        np.asarray(x, np.float32, copy=False)
    assert np.stack([x, x]).shape == (2, 3)
    np.testing.assert_array_equal(x, [0, 1, 2])


def test_numpy_reductions_are_the_tensors_own() -> None:
    x = ut.tensor([[1.0, 2.0], [3.0, 5.0]])
    for function in (np.sum, np.mean, np.prod, np.max, np.min, np.argmax):
        found = function(x)
        assert isinstance(found, ut.Tensor)
        assert found.item() == function(x.numpy())
    assert np.sum(x, axis=0).tolist() == [4, 7]
    assert np.sum(x, axis=1, keepdims=True).shape == (2, 1)


# ufuncs and operators -----------------------------------------------------------------------
BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.pow,
    operator.floordiv,
    operator.mod,
    operator.eq,
    operator.lt,
    operator.ge,
]


@pytest.mark.parametrize("op", BINARY, ids=lambda f: f.__name__)
def test_arrays_beside_tensors(op: Any) -> None:
    a, b = np.array([[1.5, 2.0], [3.0, 4.5]]), np.array([2.0, 0.5])
    t = ut.tensor(b)
    for found, expected in ((op(a, t), op(a, b)), (op(t, a), op(b, a))):
        assert isinstance(found, ut.Tensor)
        np.testing.assert_allclose(found.numpy(), expected)
    for scalar in (np.float64(1.5), np.float32(1.5), np.int64(2)):
        for found, expected in ((op(scalar, t), op(scalar, b)), (op(t, scalar), op(b, scalar))):
            assert isinstance(found, ut.Tensor)
            np.testing.assert_allclose(found.numpy(), expected)


def test_bitwise_and_matmul() -> None:
    a, t = np.array([True, False]), ut.tensor([True, True])
    for found in (a & t, a | t, a ^ t, t & a):
        assert isinstance(found, ut.Tensor)
    m = np.arange(4.0).reshape(2, 2)
    assert (m @ ut.tensor(m)).tolist() == (m @ m).tolist()
    assert (ut.tensor(m) @ m).tolist() == (m @ m).tolist()
    assert (np.array([1, 2]) << ut.tensor([1, 2])).tolist() == [2, 8]


def test_scalars_are_weak_arrays_are_not() -> None:
    x = ut.ones(2)
    assert (np.float64(2) * x).dtype is ut.float32
    assert (np.ones(2) * x).dtype is ut.float64
    assert (np.ones(()) * x).dtype is ut.float32
    number = ut.ones([])  # a scalar of NumPy is weak beside a tensor of no dimensions as well
    for scalar in (np.float64(2), np.float32(2), np.int64(2)):
        for half in (ut.float16, ut.float32):
            assert (number.to(half) * scalar).dtype is half
            assert (scalar - number.to(half)).dtype is half
        assert (ut.arange(2) * scalar).dtype is (
            ut.int64 if isinstance(scalar, np.integer) else ut.float32
        )
    with pytest.raises(ut.errors.DTypeError, match=r"\[matmul\] expects tensors, got float64"):
        x @ np.float64(2)


def test_gradients_through_numpy_operands() -> None:
    x = ut.ones(2, requires_grad=True)
    (np.array([2.0, 3.0], np.float32) * x).sum().backward()
    assert x.grad.tolist() == [2, 3]
    y = ut.tensor([0.5], requires_grad=True)
    np.exp(y).backward()
    assert y.grad.item() == pytest.approx(np.exp(0.5))


@pytest.mark.parametrize(
    "name",
    [
        "exp",
        "log",
        "sqrt",
        "sin",
        "cos",
        "tan",
        "arcsin",
        "arctan",
        "sinh",
        "tanh",
        "negative",
        "absolute",
        "floor",
        "ceil",
        "trunc",
        "rint",
        "square",
        "sign",
        "isnan",
        "isfinite",
        "log1p",
        "expm1",
        "exp2",
        "log2",
        "log10",
        "reciprocal",
        "positive",
        "signbit",
        "degrees",
        "radians",
    ],
)
def test_unary_ufuncs(name: str) -> None:
    a = np.array([0.25, 0.5, 0.75])
    found = getattr(np, name)(ut.tensor(a))
    assert isinstance(found, ut.Tensor)
    np.testing.assert_allclose(found.numpy(), getattr(np, name)(a))


@pytest.mark.parametrize(
    "name",
    [
        "add",
        "subtract",
        "multiply",
        "divide",
        "power",
        "maximum",
        "minimum",
        "fmod",
        "arctan2",
        "hypot",
        "logaddexp",
        "remainder",
        "copysign",
        "logical_and",
        "greater",
    ],
)
def test_binary_ufuncs(name: str) -> None:
    a, b = np.array([0.25, 1.5]), np.array([2.0, 0.5])
    for found in (getattr(np, name)(ut.tensor(a), b), getattr(np, name)(a, ut.tensor(b))):
        assert isinstance(found, ut.Tensor)
        np.testing.assert_allclose(found.numpy(), getattr(np, name)(a, b))


def test_arrays_take_tensors_in_place() -> None:
    a = np.ones(2)
    a += ut.tensor([1.0, 2.0])
    assert type(a) is np.ndarray
    assert a.tolist() == [2, 3]
    with pytest.raises(errors.GradientError):
        a += ut.ones(2, requires_grad=True)
    t = ut.ones(2)
    t *= np.array([2.0, 3.0], np.float32)
    assert t.tolist() == [2, 3]


@pytest.mark.parametrize(
    "call, match",
    [
        (lambda t: np.exp(t, out=t), r"\[exp\].*with out"),
        (lambda t: np.exp(t, where=[True, False]), r"\[exp\].*with where"),
        (lambda t: np.add.reduce(t), r"np\.add\.reduce"),
        (lambda t: np.add.outer(t, t), r"np\.add\.outer"),
        (lambda t: np.spacing(t), r"\[spacing\].*no Undertow counterpart"),
        (lambda t: np.divmod(t, 2), r"\[divmod\]"),
    ],
)
def test_what_ufuncs_cannot_do(call: Any, match: str) -> None:
    with pytest.raises(errors.UnsupportedError, match=match):
        call(ut.ones(2))


# DLPack -------------------------------------------------------------------------------------
DLPACK = [d for d in ut.dtypes.ALL if d is not ut.bfloat16]


@pytest.mark.parametrize("dtype", DLPACK, ids=str)
def test_dlpack_with_numpy(dtype: Any) -> None:
    x = ut.zeros(2, 3, dtype=dtype)
    a = np.from_dlpack(x)
    assert np.shares_memory(a, x.numpy())
    assert a.dtype == dtype.numpy
    y = ut.from_dlpack(np.zeros((2, 3), dtype.numpy))
    assert y.dtype is dtype
    assert y.shape == (2, 3)
    assert ut.from_dlpack(x).data_ptr() == x.data_ptr()
    assert x.__dlpack_device__() == (1, 0)


@pytest.mark.parametrize("dtype", [ut.bfloat16, *ut.dtypes.FLOAT8], ids=str)
def test_dlpack_of_dtypes_that_numpy_has_not(dtype: Any) -> None:
    x = ut.tensor([[1.0, 2.0, 4.0], [0.5, 8.0, 16.0]]).to(dtype)
    for y in (ut.from_dlpack(x), ut.from_dlpack(ut.utils.dlpack.to_dlpack(x))):
        assert y.dtype is dtype
        assert y.data_ptr() == x.data_ptr()
        assert y.tolist() == x.tolist()
    assert ut.from_dlpack(x.T).stride() == (1, 3)
    assert ut.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()


def test_dlpack_strides_and_copies() -> None:
    x = ut.arange(6).reshape(2, 3).T
    y = ut.from_dlpack(x)
    assert y.tolist() == x.tolist()
    assert y.stride() == x.stride()
    assert ut.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    assert ut.from_dlpack(x, device="reference").device == ut.device("reference")
    turned = ut.from_numpy(np.arange(3.0)[::-1])
    assert np.from_dlpack(turned.contiguous()).tolist() == [2, 1, 0]
    assert np.from_dlpack(turned, copy=True).tolist() == [2, 1, 0]
    assert np.from_dlpack(ut.from_numpy(np.ones(1)[::-1])).tolist() == [1], (
        "nothing is stepped over"
    )


@pytest.mark.parametrize(
    "call, error, match",
    [
        (lambda: ut.from_dlpack([1]), errors.DTypeError, r"\[from_dlpack\] list"),
        (lambda: ut.from_dlpack(np.zeros(2, np.longdouble)), errors.UnsupportedError, "IEEE"),
        (lambda: ut.ones(2).__dlpack__(stream=3), errors.ArgumentError, "stream"),
        (lambda: ut.ones(2).__dlpack__(stream="a"), TypeError, "stream"),
        (lambda: ut.ones(2, requires_grad=True).__dlpack__(), BufferError, "detach"),
        (  # NumPy refuses; from 2.5 on by a BufferError
            lambda: np.from_dlpack(ut.ones(2, dtype=ut.bfloat16)),
            (RuntimeError, BufferError),
            "dtype",
        ),
        (
            lambda: ut.from_numpy(np.ones((2, 3))[:, ::-1]).__dlpack__(),
            errors.UnsupportedError,
            r"\(2, 3\) with negative strides \(3, -1\).*contiguous\(\)",
        ),
        (lambda: ut.from_numpy(np.ones(3)[::-1]).__dlpack__(copy=False), RuntimeError, "negative"),
        (lambda: ut.from_numpy(np.ones(3)[::-1]).__dlpack__(), BufferError, "negative"),
    ],
)
def test_dlpack_refuses(call: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        call()


def test_dlpack_capsules() -> None:
    """A capsule is read once, and shares the memory."""
    x = ut.arange(6.0).reshape(2, 3).t()
    capsule = ut.utils.dlpack.to_dlpack(x)
    y = ut.utils.dlpack.from_dlpack(capsule)
    y[0, 0] = 7
    assert x[0, 0] == 7
    assert y.stride() == x.stride()
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        ut.from_dlpack(capsule)
    kind, _ = x.__dlpack_device__()
    assert kind == ut.utils.dlpack.DLDeviceType.kDLCPU


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__, "-q"]))


def test_a_capsule_is_read_once():
    capsule = ut.utils.dlpack.to_dlpack(ut.ones(2))
    ut.from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="the capsule was read already"):
        ut.from_dlpack(capsule)


def test_a_size_and_an_array_are_arithmetic():
    size = ut.ones(2, 3).shape
    assert (size * np.array([1, 2])).tolist() == [2, 6]
    assert (size + np.array([1, 2])).tolist() == [3, 5]
    assert size * 2 == (2, 3, 2, 3)


def test_asarray_takes_bytes_as_elements() -> None:
    """Of anything with a buffer it shares the memory, in the dtype that is asked for."""
    raw = bytearray(np.array([1, 2], np.int32).tobytes())
    t = ut.asarray(raw, dtype=ut.int32)
    t[0] = 5
    assert np.frombuffer(raw, np.int32).tolist() == [5, 2]
    assert ut.asarray(memoryview(raw), dtype=ut.int32, copy=True).tolist() == [5, 2]
    assert ut.asarray(array("f", [1.5, 2.5])).tolist() == [1.5, 2.5]
    shared = ut.asarray(ut.utils.dlpack.to_dlpack(t))
    shared[1] = 7
    assert t.tolist() == [5, 7]


def test_arrays_of_the_standard_library_are_numbers() -> None:
    """For `tensor` they are lists: what they have in memory does not matter, as in torch."""
    assert ut.tensor(array("i", [1, 2])).dtype is ut.int64
    assert ut.tensor(array("d", [1, 2])).dtype is ut.float32
