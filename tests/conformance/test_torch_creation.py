"""`…_like` and `new_…` against torch: the same calls give the same shape, dtype and values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance

CALLS = """
lib.zeros_like(x)
lib.zeros_like(x, dtype=lib.float64)
lib.ones_like(input=x, requires_grad=True)
lib.full_like(x, 2.5)
lib.full_like(x, fill_value=2, dtype=lib.int32)
lib.full_like(i, 3)
lib.zeros_like(i, device="cpu")
x.new_zeros(2, 3)
x.new_zeros((2, 3))
x.new_zeros(size=(2, 3))
i.new_ones([4], dtype=lib.float32)
i.new_full((2,), 7)
x.new_full(size=(2,), fill_value=7, requires_grad=True)
x.new_ones(())
lib.randint_like(i, 7, 8)
lib.randint_like(i, 7, high=8)
lib.randint_like(i, low=7, high=8)
lib.tensor([2**63, 0, -(2**63) - 1, 10**400], dtype=lib.bool)
lib.tensor(2**64, dtype=lib.bool)
""".strip().splitlines()


def made(call: str, lib: object) -> tuple[object, ...]:
    tensor = lib.tensor  # type: ignore[attr-defined]
    names = {"lib": lib, "x": tensor([[1.0, 2.0, 3.0]]), "i": tensor([1, 2])}
    t = eval(call, names)
    return tuple(t.shape), str(t.dtype).rpartition(".")[2], t.requires_grad, t.detach().numpy()


@pytest.mark.parametrize("call", CALLS)
def test_same_call_same_tensor(call: str) -> None:
    *ours, values = made(call, ut)
    *theirs, expected = made(call, torch)
    assert ours == theirs
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize(
    "call",
    [
        "lib.zeros_like(x, lib.float64)",
        "lib.full_like(x)",
        "lib.zeros_like(x, size=(2,))",
        "x.new_full((2,))",
        "x.new_zeros()",
        "lib.zeros_like([1.0])",
    ],
)
def test_same_bad_call(call: str) -> None:
    for lib in (torch, ut):
        with pytest.raises(TypeError):
            made(call, lib)


def test_a_list_that_contains_itself_is_no_tensor() -> None:
    endless: list[object] = []
    endless.append(endless)
    for lib in (torch, ut):
        with pytest.raises(ValueError):
            lib.tensor(endless)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float32"])
@pytest.mark.parametrize(
    "numbers",
    [
        (0.0, 8.000001, 4.0),
        (0.5, 3.2, 1),
        (0.9, 3.9, 1.0),
        (0, 3.9, 1.5),
        (1.1, 1.1, -1.0),
        (1.9, 1.2, 1),
        (9.9, 0.2, -3.3),
    ],
)
def test_floating_numbers_that_count_in_integers(numbers: tuple[float, ...], dtype: str) -> None:
    """`arange` rounds them off before it counts in int64, and after it in other integers."""

    def run(lib: Any) -> Any:
        try:
            return lib.arange(*numbers, dtype=getattr(lib, dtype)).numpy()
        except (RuntimeError, ValueError):
            return None

    np.testing.assert_array_equal(run(ut), run(torch))


@pytest.mark.parametrize("ends", [(0.9, 2.9, 3), (-1.9, 3.2, 4), (0, 1.2, 2)])
def test_powers_as_integers(ends: Any) -> None:
    """The ends of `logspace` are rounded off first."""
    ours, theirs = (lib.logspace(*ends, dtype=lib.int64).numpy() for lib in (ut, torch))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("value", [1 + 2j, np.array(1 + 2j)])
def test_a_complex_value_does_not_fill_real_numbers(value: Any) -> None:
    """A tensor with an imaginary part is refused as a number is."""
    for lib in (ut, torch):
        filling = lib.tensor(value) if isinstance(value, np.ndarray) else value
        with pytest.raises(RuntimeError):
            lib.ones(2).masked_fill(lib.tensor(True), filling)
