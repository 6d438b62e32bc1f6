"""dtypes against torch: every pair of dtypes, every kind of operand, every arithmetic op."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance

DTYPES = ut.dtypes.ALL
KINDS = ("dim", "zero", "number")
TWO_KINDS = list(itertools.product(KINDS, KINDS))
NUMBERS = {0: True, 1: 2, 2: 2.5, 3: 2 + 1j}


def theirs(dtype: ut.dtypes.DType) -> Any:
    return getattr(torch, dtype.name)


def operand(module: Any, dtype: Any, kind: str) -> Any:
    """A value of `dtype`: a tensor with dimensions, a zero-dimensional one, or a number."""
    if kind == "number":
        return NUMBERS[dtype.category]
    name = dtype.name
    data = [True, True] if name == "bool" else [1, 2]
    return module.tensor(data if kind == "dim" else data[0], dtype=getattr(module, name))


def outcome(call: Any) -> str:
    """The dtype of the result, or that there was an error."""
    try:
        result = call()
    except (RuntimeError, TypeError, NotImplementedError):
        return "error"
    return str(result.dtype).rpartition(".")[2]


PAIRS = list(itertools.product(DTYPES, DTYPES))
OPS = ["add", "sub", "mul", "div", "pow", "eq", "lt", "maximum", "remainder", "floor_divide"]


def unsupported(*dtypes: Any) -> bool:
    """complex32 is no dtype of ours: float16 with complex numbers gives complex64."""
    names = {d.name for d in dtypes}
    return "float16" in names and any(d.is_complex for d in dtypes)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("kinds", TWO_KINDS[:-1], ids="-".join)
def test_operators(op: str, kinds: tuple[str, str]) -> None:
    ours_fn, theirs_fn = getattr(ut, op, None), getattr(torch, op)
    assert ours_fn is not None
    wrong = []
    for a, b in PAIRS:
        if unsupported(a, b):
            continue
        if op == "maximum" and "number" in kinds:
            continue  # torch takes tensors only
        expected = outcome(
            lambda a=a, b=b: theirs_fn(operand(torch, a, kinds[0]), operand(torch, b, kinds[1]))
        )
        found = outcome(
            lambda a=a, b=b: ours_fn(operand(ut, a, kinds[0]), operand(ut, b, kinds[1]))
        )
        if expected == "error" and kinds[0] == "number":
            continue  # several of torch's functions take no number on the left; ours do
        if op == "sub" and found != "error" and ut.bool in (a, b) and a is not b:
            continue  # torch refuses a boolean on either side; ours only two of them
        if op == "pow" and a is b is ut.bool and kinds[1] == "number":
            continue  # torch has no power of booleans, but lets x ** True through
        if found != expected:
            wrong.append(f"{op}({a.name} {kinds[0]}, {b.name} {kinds[1]}): {found}, not {expected}")
    assert not wrong, "\n".join(wrong[:20])


@pytest.mark.parametrize("kinds", TWO_KINDS, ids="-".join)
def test_result_type(kinds: tuple[str, str]) -> None:
    for a, b in PAIRS:
        if unsupported(a, b):
            continue
        expected = torch.result_type(operand(torch, a, kinds[0]), operand(torch, b, kinds[1]))
        found = ut.result_type(operand(ut, a, kinds[0]), operand(ut, b, kinds[1]))
        assert found.name == str(expected).removeprefix("torch."), (a, b, kinds)


def test_promote_types_and_can_cast() -> None:
    for a, b in PAIRS:
        assert ut.can_cast(a, b) == torch.can_cast(theirs(a), theirs(b)), (a, b)
        if not unsupported(a, b):
            expected = str(torch.promote_types(theirs(a), theirs(b))).removeprefix("torch.")
            assert ut.promote_types(a, b).name == expected, (a, b)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.is_floating_point or d.is_complex])
def test_finfo(dtype: Any) -> None:
    found, expected = ut.finfo(dtype), torch.finfo(theirs(dtype))
    for name in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "dtype"):
        assert getattr(found, name) == getattr(expected, name), name
    assert repr(found) == repr(expected)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.category == 1])
def test_iinfo(dtype: Any) -> None:
    found, expected = ut.iinfo(dtype), torch.iinfo(theirs(dtype))
    for name in ("bits", "max", "min", "dtype"):
        assert getattr(found, name) == getattr(expected, name), name
    if dtype.itemsize < 4:  # torch rounds the others to six digits
        assert repr(found) == repr(expected)


def test_properties() -> None:
    for dtype in DTYPES:
        for name in ("abbr", "is_floating_point", "is_complex", "is_signed", "itemsize"):
            assert getattr(dtype, name) == getattr(theirs(dtype), name), (dtype, name)


@pytest.mark.parametrize("source", DTYPES, ids=str)
@pytest.mark.parametrize("target", DTYPES, ids=str)
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_casts(source: Any, target: Any) -> None:
    values = {0: [True, False], 1: [0, 1, 2, 100], 2: [0.0, -0.0, 1.7, 3.2, 100.0]}
    data = values.get(source.category, [0, 1.5 + 2j, 2j])
    if source.category >= 1 and source.is_signed and target.is_signed:
        data = [*data, -1, -100]
    found = ut.tensor(data, dtype=source).to(target)
    expected = torch.tensor(data, dtype=theirs(source)).to(theirs(target))
    assert found.dtype is target
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("default", ["float32", "float64", "float16", "bfloat16"])
def test_default_dtype_reaches_creation(default: str) -> None:
    try:
        ut.set_default_dtype(getattr(ut, default))
        torch.set_default_dtype(getattr(torch, default))
        for make in (
            lambda m: m.tensor([1.0]),
            lambda m: m.tensor(1),
            lambda m: m.zeros(1),
            lambda m: m.arange(1.0),
            lambda m: m.full((1,), 2.0),
            lambda m: m.tensor([1]) + 1.5,
            lambda m: m.tensor([1]) / 2,
            lambda m: m.eye(1),
            lambda m: m.linspace(0, 1, 2),
            lambda m: m.rand(1),
            lambda m: m.tensor([True]) * 1.5,
        ):
            assert make(ut).dtype.name == str(make(torch).dtype).removeprefix("torch.")
    finally:
        ut.set_default_dtype(ut.float32)
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    "call",
    [
        lambda lib, b, i: b.sum_to_size(3, 1),
        lambda lib, b, i: b.sum_to_size(3, 2),
        lambda lib, b, i: b[0, 0].sum_to_size(()),
        lambda lib, b, i: i.sum_to_size(2),
        lambda lib, b, i: i.sum_to_size(3, 2),
        lambda lib, b, i: lib.masked.prod(b[0, 0]),
        lambda lib, b, i: lib.masked.prod(i[0, 0], mask=b[0, 0]),
        lambda lib, b, i: lib.masked.prod(i, dim=0),
        lambda lib, b, i: lib.addr(~b, b[:, 0], b[0], beta=3, alpha=2),
        lambda lib, b, i: lib.addr(b, b[:, 0], b[0], beta=0, alpha=2),
        lambda lib, b, i: lib.addr(b, b[:, 0], b[0], beta=0, alpha=0),
    ],
)
def test_integers_and_booleans_that_are_reduced(call: Any) -> None:
    """Sums and products count in int64; sums of products of booleans stay booleans."""
    values = np.array([[True, False], [True, True], [False, False]])
    ours, theirs = (
        call(lib, lib.tensor(values), lib.tensor(values.astype("int32") * 3)) for lib in (ut, torch)
    )
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_windows_are_floating() -> None:
    """A window of integers is an error of the argument's value, as in torch."""
    for lib in (ut, torch):
        with pytest.raises(ValueError, match="float"):
            lib.signal.windows.hann(3, dtype=lib.int64)


@pytest.mark.parametrize("op", ["add", "sub", "rsub", "add_", "sub_"])
@pytest.mark.parametrize("kinds", [("dim", "dim"), ("dim", "zero"), ("zero", "dim")])
def test_a_factor_changes_no_dtype(op: str, kinds: tuple[str, str]) -> None:
    """`alpha` is a number of the sum's dtype: of booleans, too, and beside half precision."""
    wrong = []
    for (a, b), alpha in itertools.product(PAIRS, (0, 2, 0.5)):
        if unsupported(a, b) or (op[:3] != "add" and ut.bool in (a, b)):
            continue

        def call(library: Any, a: Any = a, b: Any = b, alpha: Any = alpha) -> Any:
            x, y = operand(library, a, kinds[0]), operand(library, b, kinds[1])
            if op.endswith("_"):
                return getattr(x, op)(y, alpha=alpha)
            return getattr(library, op)(x, y, alpha=alpha)

        found, expected = outcome(lambda: call(ut)), outcome(lambda: call(torch))
        if found == expected != "error":
            found, expected = call(ut).tolist(), call(torch).tolist()
        if found != expected:
            wrong.append(f"{op}({a.name}, {b.name}, alpha={alpha}): {found}, not {expected}")
    assert not wrong, "\n".join(wrong[:20])


@pytest.mark.parametrize("op", ["addcmul", "addcdiv"])
@pytest.mark.parametrize("kinds", list(itertools.product(KINDS[:2], repeat=3)), ids="-".join)
def test_three_are_promoted_together(op: str, kinds: tuple[str, ...]) -> None:
    some = [ut.bool, ut.uint8, ut.int64, ut.bfloat16, ut.float32, ut.float64]
    for dtypes in itertools.product(some, repeat=3):
        found, expected = (
            outcome(
                lambda module=module, dtypes=dtypes: getattr(module, op)(
                    *(operand(module, d, k) for d, k in zip(dtypes, kinds, strict=True)), value=2
                )
            )
            for module in (ut, torch)
        )
        assert expected in (found, "error"), (dtypes, kinds)
