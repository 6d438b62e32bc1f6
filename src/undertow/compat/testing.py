"""What tests need: `assert_close`, which tells where values differ, and `make_tensor`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import dtypes
from ..core.other_kinds import OtherKind
from ..core.register import FUNCTIONS
from ..core.tensor import Tensor
from ..errors import ArgumentError
from ..layouts import memory_format as MemoryFormat

__all__ = ["assert_close", "make_tensor"]

# torch's tolerances: relative and absolute.
_TOLERANCES = {
    dtypes.float16: (1e-3, 1e-5),
    dtypes.bfloat16: (1.6e-2, 1e-5),
    dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7),
    dtypes.complex64: (1.3e-6, 1e-5),
    dtypes.complex128: (1e-7, 1e-7),
}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise an AssertionError unless `actual` equals `expected` within tolerances.

    Tensors, numbers, arrays, and sequences and mappings of them. Without tolerances those of the
    dtypes are taken. The error tells how many elements differ, and where the most.

    >>> import undertow as ut
    >>> ut.testing.assert_close(ut.tensor([1.0, 2.0]), ut.tensor([1.0, 2.000001]))
    >>> ut.testing.assert_close(1.0, 1.5)
    Traceback (most recent call last):
    AssertionError: scalars are not close: expected 1.5 but got 1.0 ...
    """
    if (rtol is None) != (atol is None):
        raise ArgumentError(
            f"[assert_close] give both rtol and atol or neither, got rtol={rtol}, atol={atol}"
        )
    checks = {
        "device": check_device,
        "dtype": check_dtype,
        "layout": check_layout,
        "stride": check_stride,
    }
    why = _difference(actual, expected, rtol, atol, equal_nan, checks, "")
    if why is not None:
        raise AssertionError(msg(why) if callable(msg) else why if msg is None else msg)


def _difference(
    actual: Any, expected: Any, rtol: Any, atol: Any, equal_nan: bool, checks: Any, at: str
) -> str | None:
    """What is different, in words; None if nothing is."""
    where = f" at {at}" if at else ""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            odd = sorted(map(str, actual.keys() ^ expected.keys()))
            return f"the keys{where} differ by {odd}"
        pairs: Any = [(f"{at}[{k!r}]", actual[k], expected[k]) for k in actual]
    elif _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"the lengths{where} differ: {len(actual)} and {len(expected)}"
        both = zip(actual, expected, strict=True)
        pairs = [(f"{at}[{i}]", a, e) for i, (a, e) in enumerate(both)]
    else:
        return _leaf(actual, expected, rtol, atol, equal_nan, checks, where)
    for place, a, e in pairs:
        why = _difference(a, e, rtol, atol, equal_nan, checks, place)
        if why is not None:
            return why
    return None


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _leaf(
    actual: Any, expected: Any, rtol: Any, atol: Any, equal_nan: bool, checks: Any, where: str
) -> str | None:
    if actual is None or expected is None or isinstance(actual, str) or isinstance(expected, str):
        return None if actual == expected else f"{actual!r} is not {expected!r}{where}"
    sparse = [isinstance(t, OtherKind) and hasattr(t, "_saved") for t in (actual, expected)]
    if any(sparse):
        layouts = [getattr(t, "layout", None) for t in (actual, expected)]
        if checks["layout"] and layouts[0] is not layouts[1]:
            return f"the layouts{where} differ: {layouts[0]} and {layouts[1]}"
        actual, expected = (
            t.to_dense() if s else t for t, s in zip((actual, expected), sparse, strict=True)
        )
    scalar = not isinstance(actual, Tensor) and not isinstance(expected, Tensor)
    if scalar and type(actual) is not type(expected) and checks["dtype"]:
        return f"the types{where} differ: {type(actual).__name__} and {type(expected).__name__}"
    a, e = (FUNCTIONS["as_tensor"](t) for t in (actual, expected))
    if a.shape != e.shape:
        return f"the shapes{where} differ: {a.shape} and {e.shape}"
    for name in ("device", "dtype", "stride"):
        first, second = (getattr(t, name) for t in (a, e))
        if name == "stride":
            first, second = first(), second()
        if checks[name] and first != second:
            return f"the {name}s{where} differ: {first} and {second}"
    if scalar and isinstance(actual, float):  # a Python float is float64
        a, e = (FUNCTIONS["tensor"](t, dtype=dtypes.float64) for t in (actual, expected))
    bounds = [_TOLERANCES.get(t.dtype, (0.0, 0.0)) for t in (a, e)]
    rel = max(b[0] for b in bounds) if rtol is None else rtol
    absolute = max(b[1] for b in bounds) if atol is None else atol
    common = dtypes.promote_types(a.dtype, e.dtype)
    a, e = (t.detach().to("cpu").to(common) for t in (a, e))
    if common is dtypes.bool:
        a, e = a.to(dtypes.int64), e.to(dtypes.int64)
    close = FUNCTIONS["isclose"](a, e, rtol=rel, atol=absolute, equal_nan=equal_nan)
    if bool(close.all()):
        return None
    allowed = f"(rtol {rel:g}, atol {absolute:g} allowed)"
    if scalar:
        return f"scalars are not close{where}: expected {expected} but got {actual} {allowed}"
    wide = dtypes.complex128 if common.is_complex else dtypes.float64
    gap = (a.to(wide) - e.to(wide)).abs()
    wrong = ~close
    worst = FUNCTIONS["where"](wrong, gap, -1.0).nan_to_num(float("inf"))
    index = _index(int(worst.argmax()), a.shape)
    share = 100.0 * int(wrong.sum()) / max(a.numel(), 1)
    return (
        f"tensors are not close{where}: {int(wrong.sum())} of {a.numel()} elements differ "
        f"({share:.1f}%), the most by {float(gap[index]):g} at {index}: "
        f"{a[index].item()} and {e[index].item()} {allowed}"
    )


def _index(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Where the element with that number stands."""
    found: list[int] = []
    for size in reversed(shape):
        place, i = divmod(place, size)
        found.append(i)
    return tuple(reversed(found))


def make_tensor(
    *shape: int | Sequence[int],
    dtype: dtypes.DType,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """A tensor of evenly drawn values from low to high, for tests.

    By default from -9 to 9, or 0 and 1 for bool. The bounds are cut to what the dtype can hold;
    of a complex number both parts are drawn. `noncontiguous` gives every other element of a larger
    tensor, `exclude_zero` writes the smallest positive normal number (an integer: 1) for zero.

    >>> import undertow as ut
    >>> x = ut.testing.make_tensor(2, 3, dtype=ut.float64, device="cpu", low=1, noncontiguous=True)
    >>> x.shape, x.is_contiguous(), bool((x >= 1).all())
    ((2, 3), False, True)
    """
    sizes: Any = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    if noncontiguous and memory_format is not None:
        raise ArgumentError("[make_tensor] give noncontiguous or memory_format, not both")
    if requires_grad and not dtype.is_differentiable:
        raise ArgumentError(f"[make_tensor] {dtype} cannot require gradients")
    noncontiguous = noncontiguous and math.prod(sizes) > 1
    if noncontiguous:
        sizes = (*sizes[:-1], 2 * sizes[-1])
    bottom, top = _drawn_between(dtype, low, high)
    if dtype.is_floating_point and dtype.itemsize == 1:
        made = FUNCTIONS["empty"](sizes, device=device).uniform_(bottom, top).to(dtype)
    elif dtype.is_differentiable:
        made = FUNCTIONS["empty"](sizes, dtype=dtype, device=device)
        parts = FUNCTIONS["view_as_real"](made) if dtype.is_complex else made
        # In two steps, since the width of the whole range is beyond the dtype.
        parts.uniform_(bottom / 2, top / 2).mul_(2)
    else:
        made = FUNCTIONS["randint"](bottom, top, sizes, dtype=dtype, device=device)
    if noncontiguous:
        made = made[..., 1::2]
    if exclude_zero:
        tiny: Any = dtypes.finfo(dtype).tiny if dtype.is_differentiable else 1
        made[made == 0] = complex(tiny, tiny) if dtype.is_complex else tiny
    return made.requires_grad_(requires_grad)


def _drawn_between(dtype: dtypes.DType, low: float | None, high: float | None) -> tuple[Any, Any]:
    """The bounds of make_tensor, cut to what the dtype holds; the upper one is not drawn."""
    bottom: float = -9
    top: float = 9 if dtype.is_differentiable else 10
    if dtype is dtypes.bool:
        bottom, top = 0, 2
        limits: tuple[Any, Any] = (0, 2)
    elif dtype.is_differentiable:
        limits = dtypes.finfo(dtype).min, dtypes.finfo(dtype).max
    else:
        info = dtypes.iinfo(dtype)
        limits = info.min, info.max + (dtype is not dtypes.int64)
    bottom, top = bottom if low is None else low, top if high is None else high
    if not bottom < top and not (dtype.is_differentiable and bottom == top):
        raise ArgumentError(f"[make_tensor] low must be below high, got {bottom} and {top}")
    if top < limits[0] or bottom >= limits[1]:
        raise ArgumentError(f"[make_tensor] {dtype} has no values from {bottom} to {top}")
    bottom, top = (min(max(bound, limits[0]), limits[1]) for bound in (bottom, top))
    return (bottom, top) if dtype.is_differentiable else (math.ceil(bottom), math.ceil(top))
