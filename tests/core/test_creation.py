"""The functions that make a tensor in the manner of another: `…_like` and `new_…`."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow import errors

X = ut.tensor([[1, 2, 3], [4, 5, 6]], dtype=ut.int32, device="reference")
LIKE = {
    "zeros_like": (),
    "ones_like": (),
    "empty_like": (),
    "full_like": (7,),
    "rand_like": (),
    "randn_like": (),
    "randint_like": (2, 9),
}
NEW = {"new_zeros": (), "new_ones": (), "new_empty": (), "new_full": (7,)}
RANDOM = ("rand_like", "randn_like")


@pytest.mark.parametrize("name", LIKE)
def test_like_takes_shape_dtype_and_device(name: str) -> None:
    """What is not given comes from the tensor, and what is given wins."""
    make, own = getattr(ut, name), LIKE[name]
    x = X.double() if name in RANDOM else X
    made = make(x, *own)
    assert (made.shape, made.dtype, made.device) == (x.shape, x.dtype, x.device)
    options = {"dtype": ut.float32, "device": "cpu", "requires_grad": True, "memory_format": None}
    other = make(x, *own, **options)
    assert (other.shape, other.dtype, str(other.device)) == (x.shape, ut.float32, "cpu")
    assert other.requires_grad
    assert not hasattr(X, name)


@pytest.mark.parametrize("name", NEW)
@pytest.mark.parametrize("size", [(), (0,), (4,), (2, 1, 3)])
def test_new_takes_dtype_and_device(name: str, size: tuple[int, ...]) -> None:
    """The shape is the caller's: as sizes, as a tuple, or by name."""
    own = NEW[name]
    made = getattr(X, name)(size, *own)
    assert (made.shape, made.dtype, made.device) == (size, X.dtype, X.device)
    named = getattr(X, name)(*own, size=size) if not own else X.new_full(size=size, fill_value=7)
    assert named.shape == size
    if size and not own:
        assert getattr(X, name)(*size).shape == size
    other = getattr(X, name)(size, *own, dtype=ut.float64, device="cpu", requires_grad=True)
    assert (other.dtype, str(other.device), other.requires_grad) == (ut.float64, "cpu", True)
    assert not hasattr(ut, name)


def test_values() -> None:
    """The values are those of NumPy's functions of the same name."""
    x = ut.tensor([[1.5, -2.0]], dtype=ut.float64)
    for name, own in (("zeros", ()), ("ones", ()), ("full", (2.5,))):
        expected = getattr(np, f"{name}_like")(x.numpy(), *own)
        np.testing.assert_array_equal(getattr(ut, f"{name}_like")(x, *own).numpy(), expected)
        new = getattr(x, f"new_{name}")((2, 3), *own)
        np.testing.assert_array_equal(new.numpy(), getattr(np, name)((2, 3), *own))


def test_random_like_is_its_function_with_the_shape() -> None:
    """The same seed gives the same numbers, of a generator as well."""
    x = ut.zeros(3, 4)
    for name, args in (("rand", ()), ("randn", ()), ("randint", (2, 9))):
        first, second = (ut.Generator().manual_seed(5) for _ in range(2))
        alike = getattr(ut, f"{name}_like")(x, *args, generator=first)
        plain = getattr(ut, name)(*args, (3, 4), generator=second)
        np.testing.assert_array_equal(alike.numpy(), plain.numpy())
    assert ut.randint_like(x, 3, high=4).eq(3).all()
    assert ut.randint_like(x, low=2, high=3).eq(2).all()


def test_full_like_keeps_the_gradient_of_its_value() -> None:
    """A fill value that requires gradients gets their sum."""
    value = ut.tensor(2.0, requires_grad=True)
    (ut.full_like(ut.zeros(3), value) * 2 + ut.zeros(3).new_full((3,), value)).sum().backward()
    assert value.grad is not None
    assert value.grad.item() == 9.0


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: ut.zeros_like(X, ut.float64),
            r"^\[zeros_like\] too many positional .* dtype=None",
        ),
        (lambda: ut.zeros_like(X, size=(2,)), r"^\[zeros_like\] got an unexpected .*'size'"),
        (lambda: ut.rand_like(X, foo=2), r"^\[rand_like\] got an unexpected .*'foo'.*generator"),
        (lambda: ut.full_like(X), r"^\[full_like\] missing a required argument: 'fill_value'"),
        (lambda: ut.full_like(X, 2, 3), r"^\[full_like\] too many positional arguments"),
        (lambda: ut.full_like(X, "a"), r"^\[full_like\] expects a number, got str 'a'"),
        (lambda: ut.ones_like([1]), r"^\[ones_like\] input must be a Tensor, got list"),
        (lambda: ut.randint_like(X), r"^\[randint_like\] is called as"),
        (lambda: ut.randint_like(X, "a"), r"^\[randint_like\] high must be an integer.*'a'"),
        (lambda: X.new_zeros(), r"^\[new_zeros\] needs a size, such as \(2, 3\)"),
        (lambda: X.new_ones(2, size=(2,)), r"^\[new_ones\] got sizes \(2,\) and size=\(2,\)"),
        (lambda: X.new_zeros(2, "a"), r"^\[new_zeros\] size must be an integer, got str 'a'"),
        (lambda: X.new_zeros(2, memory_format=1), r"^\[new_zeros\] got an unexpected"),
        (lambda: X.new_full((2,)), r"^\[new_full\] missing a required argument: 'fill_value'"),
        (lambda: ut.zeros(2, size=(2,)), r"^\[zeros\] got sizes \(2,\) and size=\(2,\); give one"),
    ],
)
def test_bad_calls_are_named(call: Any, message: str) -> None:
    """An error names the function that was called, and for a wrong call its arguments."""
    with pytest.raises(errors.DTypeError, match=message):
        call()


def test_signatures_are_torchs() -> None:
    """Editors and `help` see the arguments by name, the function's own ones first."""
    shown = {
        "zeros_like": "input dtype device requires_grad memory_format",
        "full_like": "input fill_value dtype device requires_grad memory_format",
        "rand_like": "input generator dtype device requires_grad memory_format",
        "new_zeros": "input sizes size dtype device requires_grad",
        "new_full": "input size fill_value dtype device requires_grad",
    }
    for name, expected in shown.items():
        fn = getattr(ut, name, None) or getattr(ut.Tensor, name)
        assert " ".join(inspect.signature(fn).parameters) == expected
        assert fn.__name__ == name


@pytest.mark.parametrize(
    "data, dtype",
    [
        ([1.0, np.float64(2)], ut.float64),
        ([1, np.float64(2)], ut.float64),
        ([[1, 2], [3, np.array(4.0)]], ut.float64),
        ([1.0, np.complex128(2)], ut.complex128),
        ([1.0, np.float32(2)], ut.float32),
        ([1.0, np.int64(2)], ut.float32),
        ([[1.0, 2], [3, True]], ut.float32),
    ],
)
def test_numbers_of_numpy_among_others_keep_their_dtype(data: Any, dtype: Any) -> None:
    """NumPy's float64 is a Python float as well, and may stand anywhere in a list."""
    assert ut.tensor(data).dtype is dtype
