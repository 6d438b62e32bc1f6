"""Making tensors from data, converting them, and Python's protocols."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow import errors


# From data ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "data, dtype, shape",
    [
        (1, ut.int64, ()),
        (True, ut.bool, ()),
        (1.5, ut.float32, ()),
        (1j, ut.complex64, ()),
        ([], ut.float32, (0,)),
        ([[], []], ut.float32, (2, 0)),
        ([1, 2.0], ut.float32, (2,)),
        ([True, 2], ut.int64, (2,)),
        ([True, 2.0], ut.float32, (2,)),
        ((1, 2), ut.int64, (2,)),
        ([1, 2j], ut.complex64, (2,)),
        (range(3), ut.int64, (3,)),
        (bytearray(b"ab"), ut.int64, (2,)),
        (np.float64(1), ut.float64, ()),
        (np.int32(1), ut.int32, ()),
        (np.ones(2), ut.float64, (2,)),
        ([np.float64(1)], ut.float64, (1,)),
        ([np.float32(1), 2.0], ut.float32, (2,)),
        ([np.ones(2), np.ones(2)], ut.float64, (2, 2)),
        (np.ones(2, ">f4"), ut.float32, (2,)),
        ([[1, 2, 3]] * 4, ut.int64, (4, 3)),
        (np.bool_(True), ut.bool, ()),
    ],
)
def test_inference(data: Any, dtype: Any, shape: Any) -> None:
    x = ut.tensor(data)
    assert x.dtype is dtype
    assert x.shape == shape
    assert x._array.dtype.isnative
    np.testing.assert_array_equal(x.numpy(), np.array(list(data) if shape else data))


def test_tensors_in_lists() -> None:
    one = ut.tensor(1.5, requires_grad=True)
    assert ut.tensor([one, 2.0]).tolist() == [1.5, 2.0]
    assert not ut.tensor([one]).requires_grad
    assert ut.tensor([ut.tensor([1, 2]), ut.tensor([3, 4])]).tolist() == [[1, 2], [3, 4]]
    assert ut.tensor([ut.ones((), device="reference")]).tolist() == [1.0]


def test_tensors_of_one_element_in_lists_are_numbers() -> None:
    """As in torch, whatever their dimensions; with their own dtype."""
    one = ut.tensor([1.0], dtype=ut.float64, requires_grad=True)
    for made in (
        ut.tensor([one, ut.tensor([[2]])]),
        ut.as_tensor((one, 2)),
        ut.tensor([1, one + 1]),
    ):
        assert made.tolist() == [1.0, 2.0]
    assert ut.tensor([one]).dtype is ut.float64
    assert ut.tensor([[ut.tensor([1]), ut.tensor(2)]]).shape == (1, 2)


def test_tensor_copies() -> None:
    a = np.zeros(3)
    t = ut.tensor(a)
    u = ut.tensor(t)
    a[0] = 1
    t[1] = 2
    assert t.tolist() == [0, 2, 0]
    assert u.tolist() == [0, 0, 0]
    w = ut.ones(2, requires_grad=True)
    assert not ut.tensor(w).requires_grad
    assert ut.tensor(w, requires_grad=True).is_leaf
    assert ut.tensor(ut.ones(2, device="reference")).device == ut.device("reference")


@pytest.mark.parametrize(
    "data, kwargs, error, match",
    [
        ([[1, 2], [1, 2, 3]], {}, errors.ShapeError, "depth 1.*length 2.*length 3"),
        ([[[1], [2]], [[3], [4, 5]]], {}, errors.ShapeError, "depth 2.*length 1.*length 2"),
        ([1, [2]], {}, errors.ShapeError, "ragged.*a number.*length 1"),
        ([[1, 2], []], {}, errors.ShapeError, "length 2.*length 0"),
        ("abc", {}, errors.DTypeError, "'abc' is text"),
        (b"abc", {}, errors.DTypeError, "text"),
        (["a"], {}, errors.DTypeError, "str 'a' at depth 1"),
        (None, {}, errors.DTypeError, "NoneType None"),
        ([1, None], {}, errors.DTypeError, "NoneType None at depth 1"),
        ({1: 2}, {}, errors.DTypeError, "dict"),
        (object(), {}, errors.DTypeError, "object"),
        (np.array([None]), {}, errors.DTypeError, "object"),
        (np.array(["a"]), {}, errors.DTypeError, "NumPy dtype str"),
        (np.zeros(2, np.longdouble), {}, errors.DTypeError, "float128|longdouble"),
        (np.zeros(2, "datetime64[s]"), {}, errors.DTypeError, "datetime64"),
        (2**63, {}, errors.ArgumentError, "9223372036854775808.*int64"),
        ([2**63, -1], {}, errors.ArgumentError, "9223372036854775808.*int64"),
        ([10**30], {}, errors.ArgumentError, str(10**30)),
        (math.nan, {"dtype": ut.int64}, errors.ArgumentError, r"nan.*int64"),
        ([1.0, math.inf], {"dtype": ut.int32}, errors.ArgumentError, r"inf.*int32"),
        ([1e20], {"dtype": ut.int64}, errors.ArgumentError, r"1e\+20 is out of range.*int64"),
        ([2.0**63], {"dtype": ut.int64}, errors.ArgumentError, r"out of range.*int64"),
        ([300], {"dtype": ut.uint8}, errors.ArgumentError, "300.*uint8.*0 to 255"),
        ([300.0], {"dtype": ut.uint8}, errors.ArgumentError, "300.0.*uint8"),
        ([-300], {"dtype": ut.uint8}, errors.ArgumentError, "-300.*uint8"),
        ([128], {"dtype": ut.int8}, errors.ArgumentError, "128.*int8.*-128 to 127"),
        ([1j], {"dtype": ut.float32}, errors.DTypeError, "1j.*float32"),
        ([1j], {"dtype": ut.int64}, errors.DTypeError, "1j.*int64"),
        ([1], {"requires_grad": True}, errors.GradientError, "int64"),
        ([1.0], {"device": "toaster"}, errors.DeviceError, "toaster"),
    ],
)
def test_bad_data(data: Any, kwargs: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        ut.tensor(data, **kwargs)


def test_fitting_numbers() -> None:
    assert ut.tensor([-1, 255], dtype=ut.uint8).tolist() == [255, 255]
    assert ut.tensor([1.9, -1.9], dtype=ut.int32).tolist() == [1, -1]
    assert ut.tensor([0.0, math.nan], dtype=ut.bool).tolist() == [False, True]
    assert ut.tensor([1e40]).tolist() == [math.inf]
    assert ut.tensor([70000.0], dtype=ut.float16).tolist() == [math.inf]
    assert ut.tensor([2**53 + 1]).tolist() == [2**53 + 1]
    assert ut.tensor([1 + 0j], dtype=ut.float32).tolist() == [1.0]
    assert ut.tensor(np.array([300]), dtype=ut.uint8).tolist() == [44]


def test_as_tensor_and_asarray() -> None:
    a = np.zeros(2, np.float32)
    w = ut.ones(2, requires_grad=True) * 2
    assert ut.as_tensor(w) is w
    assert ut.as_tensor(w, dtype=ut.float64).requires_grad
    shared = ut.as_tensor(a)
    a[0] = 4
    assert shared.tolist() == [4, 0]
    assert ut.as_tensor(a, dtype=ut.float64).tolist() == [4, 0]
    assert ut.as_tensor([1, 2], device="reference").device == ut.device("reference")
    assert not ut.asarray(w, requires_grad=False).requires_grad
    assert ut.asarray(w).data_ptr() == w.data_ptr()
    assert ut.asarray(w, copy=True).data_ptr() != w.data_ptr()
    assert ut.asarray(a, copy=False).data_ptr() == shared.data_ptr()
    assert ut.asarray(a, copy=True, requires_grad=True).requires_grad
    for obj in ([1, 2], np.zeros(2, ">f4")):
        with pytest.raises(errors.ArgumentError, match="copy=False"):
            ut.asarray(obj, copy=False)
    with pytest.raises(errors.ArgumentError, match="copy=False"):
        ut.asarray(a, dtype=ut.float64, copy=False)


def test_inference_mode_reaches_creation() -> None:
    with ut.inference_mode():
        made = [ut.zeros(1), ut.tensor([1.0]), ut.arange(3), ut.rand(2), ut.eye(2)]
    assert all(t.is_inference() for t in made)


# Conversion ---------------------------------------------------------------------------------
def test_to() -> None:
    x = ut.tensor([1.5, 2.5], requires_grad=True)
    assert x.to(ut.float32) is x
    assert x.to("cpu") is x
    assert x.to(ut.float32, copy=True) is not x
    assert x.to(ut.float64).dtype is ut.float64
    assert x.to("reference", ut.float64).device == ut.device("reference")
    assert x.to(device="reference", dtype=ut.float16).dtype is ut.float16
    assert x.to(ut.zeros(1, dtype=ut.float64)).dtype is ut.float64
    assert x.to(other=ut.zeros(1, device="reference")).device == ut.device("reference")
    assert x.to(float).dtype is ut.float64
    assert x.to("cpu", False, True) is not x
    assert x.to(ut.float64, False, True).dtype is ut.float64
    assert x.to(None) is x
    assert not x.to(ut.int64).requires_grad
    (x.to("reference").to(ut.float64) * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert x.grad.dtype is ut.float32
    assert x.grad.device == ut.device("cpu")


def test_shorthands() -> None:
    x = ut.tensor([1.7, 0.0])
    for name, dtype in {
        "float": ut.float32,
        "double": ut.float64,
        "half": ut.float16,
        "bfloat16": ut.bfloat16,
        "int": ut.int32,
        "long": ut.int64,
        "short": ut.int16,
        "char": ut.int8,
        "byte": ut.uint8,
        "bool": ut.bool,
        "cfloat": ut.complex64,
        "cdouble": ut.complex128,
    }.items():
        assert getattr(x, name)().dtype is dtype
    assert x.type() == "undertow.FloatTensor"
    assert x.type(ut.int64).tolist() == [1, 0]
    assert x.type("torch.LongTensor").dtype is ut.int64
    assert x.type_as(ut.tensor(1)).dtype is ut.int64
    assert x.to("reference").cpu().tolist() == x.tolist()
    assert x.resolve_conj() is x
    assert x.resolve_neg() is x


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e30])
@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("size", [2, 200_000])
def test_numbers_without_an_integer(value: float, device: str, size: int) -> None:
    """They become what torch makes of them on x86, by NumPy and by kernels."""
    x = ut.full((size,), value, device=device)
    x[0] = 1.5
    for dtype, least in {
        ut.int64: -(2**63),
        ut.int32: -(2**31),
        ut.int16: 0,
        ut.int8: 0,
        ut.uint8: 0,
    }.items():
        for given in (x, x.double(), x.bfloat16(), x.to(ut.complex64)):
            assert given.to(dtype)[:2].tolist() == [1, least], (dtype, given.dtype)
            assert given.to(dtype)[-1].item() == least
    target = ut.zeros(size, dtype=ut.int64, device=device)
    target.copy_(x)
    assert target[:2].tolist() == [1, -(2**63)]
    assert x.bool()[:2].tolist() == [True, True]
    assert ut.tensor(np.array([1.0, value]), dtype=ut.int64).tolist() == [1, -(2**63)]


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("size", [2, 200_000])
def test_numbers_beyond_32_bits(device: str, size: int) -> None:
    """int32 and shorter ones are made of 32 bits, as in torch on x86; uint8 is made of 64."""
    x = ut.full((size,), 3e9 + 5, dtype=ut.float64, device=device)
    for dtype, expected in {
        ut.int64: 3000000005,
        ut.int32: -(2**31),
        ut.int16: 0,
        ut.int8: 0,
        ut.uint8: 5,
        ut.uint16: 0,
    }.items():
        assert x.to(dtype)[-1].item() == expected, dtype
        assert (-x).to(dtype)[0].item() == {ut.int64: -3000000005, ut.uint8: 251}.get(
            dtype, expected
        )
        assert ut.zeros(size, dtype=dtype, device=device).copy_(x)[0].item() == expected


def test_integer_casts_truncate_and_wrap() -> None:
    assert ut.tensor([-1.9, 1.9]).int().tolist() == [-1, 1]
    assert ut.tensor([300, -1]).byte().tolist() == [44, 255]
    assert ut.tensor([-(2.0**63)]).long().tolist() == [-(2**63)]
    assert ut.tensor([1.5 + 7j]).long().tolist() == [1]
    assert ut.tensor([]).long().tolist() == []


def test_values() -> None:
    assert ut.tensor([[2]]).item() == 2
    assert isinstance(ut.tensor(1.5, dtype=ut.bfloat16).item(), float)
    assert ut.tensor(1.5, dtype=ut.bfloat16).tolist() == 1.5
    assert ut.tensor([1.5, 2.0], dtype=ut.bfloat16).tolist() == [1.5, 2.0]
    assert ut.tensor([True]).tolist() == [True]
    assert ut.zeros(0, 2).tolist() == []
    assert ut.ones(2, device="reference").tolist() == [1.0, 1.0]
    for shape in ((2,), (0,), (1, 3)):
        with pytest.raises(errors.ArgumentError, match=r"\[item\].*elements"):
            ut.zeros(shape).item()


def test_copy_fill_zero() -> None:
    x = ut.zeros(2, 3)
    assert x.copy_(ut.tensor([1, 2, 3])) is x
    assert x.tolist() == [[1, 2, 3], [1, 2, 3]]
    x.copy_(ut.ones(3, device="reference"), non_blocking=True)
    assert x.sum().item() == 6
    assert x.fill_(2.5).tolist() == [[2.5] * 3] * 2
    assert x.zero_().tolist() == [[0.0] * 3] * 2
    assert ut.zeros(2, dtype=ut.int64).fill_(2.7).tolist() == [2, 2]
    assert ut.zeros(2, dtype=ut.uint8).fill_(-1).tolist() == [255, 255]
    assert ut.zeros(2).fill_(np.float64(2)).tolist() == [2.0, 2.0]
    y = ut.arange(4.0)
    y[1:].copy_(y[:-1].clone())
    assert y.tolist() == [0, 0, 1, 2]
    version = y._version
    y.zero_()
    assert y._version == version + 1


def test_copy_and_fill_take_part_in_autograd() -> None:
    a = ut.ones(3, requires_grad=True)
    b = ut.tensor(2.0, requires_grad=True)
    x = a * 3
    x[:2].copy_(a[:2] * 5)
    x[2:].fill_(b)
    (x * ut.tensor([1.0, 2.0, 4.0])).sum().backward()
    assert a.grad.tolist() == [5.0, 10.0, 0.0]
    assert b.grad.item() == 4.0
    y = a * 3
    y.zero_()
    assert ut.autograd.grad(y.sum(), a)[0].tolist() == [0.0] * 3


@pytest.mark.parametrize(
    "call, error, match",
    [
        (lambda x: x.copy_([1.0]), errors.DTypeError, r"\[copy_\].*list"),
        (lambda x: x.copy_(ut.ones(3)), errors.ShapeError, r"\[copy_\]"),
        (lambda x: x.fill_(1j), errors.DTypeError, r"\[fill_\].*1j.*float32"),
        (lambda x: x.fill_("a"), errors.DTypeError, r"\[fill_\].*str"),
        (lambda x: x.fill_(ut.ones(1)), errors.ShapeError, r"\[fill_\]"),
        (lambda x: x.long().fill_(math.nan), errors.ArgumentError, r"\[fill_\] nan"),
        (lambda x: x.byte().fill_(300), errors.ArgumentError, r"\[fill_\] 300"),
        (lambda x: x.half().fill_(1e10), errors.ArgumentError, r"\[fill_\] .*float16"),
        (lambda x: x.requires_grad_().zero_(), errors.InplaceError, r"leaf"),
        (lambda x: x.to("toaster"), errors.DeviceError, "toaster"),
        (lambda x: x.to(ut.int64, 1, 2, 3), errors.DTypeError, r"\[to\]"),
    ],
)
def test_bad_conversions_change_nothing(call: Any, error: Any, match: str) -> None:
    x = ut.ones(2)
    with pytest.raises(error, match=match):
        call(x)
    assert x.tolist() == [1.0, 1.0]
    assert x._version == 0


def test_questions() -> None:
    assert ut.is_tensor(ut.ones(1))
    assert not ut.is_tensor(np.ones(1))
    assert ut.is_floating_point(ut.ones(1))
    assert ut.is_complex(ut.tensor(1j))
    assert ut.is_nonzero(ut.tensor([2]))
    assert ut.numel(ut.ones(2, 3)) == 6


# Python's protocols -------------------------------------------------------------------------
def test_numbers() -> None:
    assert float(ut.tensor([2.5])) == 2.5
    assert int(ut.tensor(2.9)) == 2
    assert complex(ut.tensor(1 + 2j)) == 1 + 2j
    assert bool(ut.tensor([[0.0]])) is False
    assert [10, 20, 30][ut.tensor(1)] == 20
    assert list(range(10))[ut.tensor(2) : ut.tensor([5])] == [2, 3, 4]
    assert float(ut.tensor(2.0, requires_grad=True)) == 2.0
    assert ut.zeros(ut.tensor(3)).shape == (3,)
    assert f"{ut.tensor(3.14159):.2f}" == "3.14"
    assert f"{ut.tensor([1.0])}" == "tensor([1.])"
    assert round(float(ut.tensor(2.5)), 1) == 2.5


@pytest.mark.parametrize(
    "call, error, match",
    [
        (lambda: bool(ut.ones(2)), errors.ArgumentError, r"\[bool\].*\(2,\).*any\(\)"),
        (lambda: bool(ut.ones(0)), errors.ArgumentError, r"\[bool\].*0 elements"),
        (lambda: float(ut.ones(2)), errors.ArgumentError, r"\[item\]"),
        (lambda: [1][ut.tensor(0.5)], errors.DTypeError, r"\[index\].*float32"),
        (lambda: [1][ut.tensor([0, 0])], errors.DTypeError, r"\[index\].*\(2,\)"),
        (lambda: len(ut.tensor(1)), errors.DTypeError, r"\[len\]"),
        (lambda: iter(ut.tensor(1)), errors.DTypeError, r"\[iter\]"),
        (lambda: "a" in ut.ones(2), errors.DTypeError, r"\[in\].*str"),
        (lambda: format(ut.ones(2), ".2f"), TypeError, "format"),
        (lambda: ut.Tensor(1.5), TypeError, r"ut\.tensor"),
    ],
)
def test_bad_numbers(call: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        call()


def test_sequences() -> None:
    x = ut.tensor([[1, 2], [3, 4], [5, 6]])
    assert len(x) == 3
    assert [row.tolist() for row in x] == x.tolist()
    assert next(iter(reversed(x))).tolist() == [5, 6]
    assert 4 in x
    assert 7 not in x
    assert ut.tensor([1, 2]) in x
    a, b = ut.tensor([1.0, 2.0], requires_grad=True)
    assert (a * b).requires_grad
    assert reversed(ut.tensor(3)).item() == 3
    assert list(ut.zeros(0, 2)) == []


def test_iteration_gives_views() -> None:
    x = ut.zeros(2, 2)
    for row in x:
        row += 1
    assert x.sum().item() == 4


def test_hash_is_identity() -> None:
    x, y = ut.ones(2), ut.ones(2)
    assert len({x, y, x}) == 2
    assert {x: 1}[x] == 1


# Copies and pickles -------------------------------------------------------------------------
def test_deepcopy() -> None:
    x = ut.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    twin, same = copy.deepcopy([x, x])
    assert twin is same
    assert twin is not x
    assert twin.requires_grad
    assert twin.is_leaf
    assert twin.grad.tolist() == x.grad.tolist()
    assert twin.grad is not x.grad
    (twin * 3).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    with pytest.raises(errors.GradientError, match=r"\[deepcopy\].*MulBackward0"):
        copy.deepcopy(x * 2)
    assert copy.deepcopy(ut.ones(2, device="reference")).device == ut.device("reference")


def test_copy_shares_memory() -> None:
    x = ut.tensor([1.0, 2.0], requires_grad=True)
    twin = copy.copy(x)
    assert twin is not x
    assert twin.requires_grad
    assert twin.is_leaf
    assert twin.data_ptr() == x.data_ptr()
    y = x * 2
    assert copy.copy(y).grad_fn is y.grad_fn
    copy.copy(y).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    z = ut.zeros(2)
    copy.copy(z).fill_(3)
    assert z.tolist() == [3.0, 3.0]
    assert z._version == 1


def test_a_copy_cannot_change_behind_the_history_of_its_original() -> None:
    """Nor the other way round."""
    x = ut.tensor([1.0, 2.0], requires_grad=True)
    for y in (x * 2, (x * 2)[:]):
        twin = copy.copy(y)
        with pytest.raises(errors.InplaceError, match=r"copy\.copy"):
            twin.mul_(3)
        y.mul_(3)
        with pytest.raises(errors.GradientError, match="changed in place"):
            twin.sum().backward()
        assert ut.autograd.grad(y.sum(), x)[0].tolist() == [6.0, 6.0]


def test_data_is_set_to_a_tensor_that_can_have_gradients() -> None:
    x = ut.tensor([1.0, 2.0], requires_grad=True)
    for value in ([3.0, 4.0], np.ones(2, np.float32), None):
        with pytest.raises(TypeError, match=r"\[data\]"):
            x.data = value
    with pytest.raises(errors.GradientError, match="is floating or complex"):
        x.data = ut.tensor([3, 4])
    assert x.tolist() == [1.0, 2.0]
    x.data = ut.tensor([3.0, 4.0])
    assert x.tolist() == [3.0, 4.0]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(protocol: int) -> None:
    for x in (
        ut.tensor([[1.5, 2.5]], requires_grad=True),
        ut.arange(6).reshape(2, 3).T,
        ut.tensor(True),
        ut.tensor([1.5], dtype=ut.bfloat16),
        ut.zeros(0, 3),
        ut.ones(2, device="reference"),
        ut.tensor([1 + 2j]),
        ut.ones(1).expand(4),
        ut.ones(2, requires_grad=True) * 2,
    ):
        back = pickle.loads(pickle.dumps(x, protocol))
        assert back.tolist() == x.tolist()
        assert back.dtype is x.dtype
        assert back.shape == x.shape
        assert back.device == x.device
        assert back.requires_grad == x.requires_grad
        assert back.is_leaf


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__, "-q"]))


def test_vectors_of_no_elements_join_along_any_dim() -> None:
    assert ut.cat([ut.empty(0), ut.empty(0)], dim=1).shape == (0,)


def test_asarray_keeps_the_history() -> None:
    """As torch does; `requires_grad=False` detaches."""
    x = ut.tensor([1.0, 2.0], requires_grad=True)
    assert ut.asarray(x) is x
    y = x * 3
    assert ut.asarray(y, requires_grad=True) is y
    (ut.asarray(y, copy=True) * ut.asarray(y, dtype=ut.float64)).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [18.0, 36.0]
    assert not ut.asarray(y, requires_grad=False).requires_grad
    plain = ut.ones(2)
    assert ut.asarray(plain, requires_grad=True).requires_grad
    assert not plain.requires_grad


def test_integers_beyond_64_bits_in_floats() -> None:
    assert ut.tensor(2**64 - 1, dtype=ut.float32).item() == 2.0**64
    assert ut.tensor([2**70, 1], dtype=ut.float64).tolist() == [2.0**70, 1.0]
    with pytest.raises(errors.ArgumentError, match="out of range for int64"):
        ut.tensor(2**64 - 1)


def test_real_numbers_of_complex_tensors() -> None:
    assert float(ut.tensor(1.5 + 0j)) == 1.5
    assert int(ut.tensor(2 + 0j)) == 2
    for convert in (float, int):
        with pytest.raises(RuntimeError, match="imaginary part"):
            convert(ut.tensor(1.5j))


def test_copying_a_number() -> None:
    x = ut.zeros(2, requires_grad=True)
    y = (x * 2).copy_(1.5)
    assert y.tolist() == [1.5, 1.5]
    assert ut.zeros(2, dtype=ut.int64).copy_(np.int32(3)).tolist() == [3, 3]
    with pytest.raises(errors.DTypeError, match=r"\[copy_\] src must be"):
        y.copy_([1.0, 2.0])  # type: ignore[arg-type]


def test_operators_leave_what_they_do_not_know_to_the_other_operand():
    """As Python has it: an object of the user's may know what to do with a tensor."""

    class Other:
        def __radd__(self, tensor):
            return "added"

        def __rmatmul__(self, tensor):
            return "multiplied"

        def __gt__(self, tensor):
            return "compared"

    x = ut.ones(2)
    assert (x + Other(), x @ Other(), x < Other()) == ("added", "multiplied", "compared")
    names = "add radd sub rsub mul rmul truediv rtruediv floordiv mod pow rpow matmul and or xor"
    for name in f"{names} lshift rshift lt le gt ge eq ne".split():
        assert getattr(x.long(), f"__{name}__")(object()) is NotImplemented
    for name in set(f"{names} lshift rshift".split()) - {"radd", "rsub", "rmul", "matmul"}:
        if hasattr(ut.Tensor, f"__i{name}__"):
            assert getattr(x.long(), f"__i{name}__")(object()) is NotImplemented
    assert x.__itruediv__(object()) is x.__ilshift__(object()) is NotImplemented
    y: Any = ut.ones(2)
    y += Other()
    assert y == "added"
    with pytest.raises(TypeError, match="unsupported operand"):
        x - "text"
    with pytest.raises(TypeError, match="expects tensors or numbers, got str"):
        ut.sub(x, "text")
