"""Making tensors of one value and of sequences; `from_data` reads data."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

from ... import dtypes
from ...backends.base import Forms
from ...backends.registry import backend_of, backend_on
from ...core.dispatch import apply, cast, expand, transfer
from ...core.op import Op
from ...core.other_kinds import NotDense, OtherKind
from ...core.protocol import plain_number
from ...core.register import function
from ...core.tensor import Tensor, differentiated
from ...devices import DeviceLike
from ...dtypes import DTypeLike, Number
from ...errors import ArgumentError, DTypeError, ShapeError
from ...shapes import Ints, Shape, as_int, as_shape
from .from_data import made, tensor

_clone = Op(
    "clone", lambda k, x: k.copy(x), inputs="x", vjp={"x": lambda g: g}, bare={"x": lambda k, g: g}
)


@function()
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy in memory of its own that gradients flow through.

    >>> import undertow as ut
    >>> ut.tensor([1, 2]).clone()
    tensor([1, 2])
    """
    return apply(_clone, (input,))


# One value ----------------------------------------------------------------------------------
def filled(shape: Shape, value: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    """A tensor of one value; what `zeros`, `ones` and `full` share."""
    wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    return made(backend_on(device).full(shape, value, wanted.numpy), requires_grad)


def given_shape(op: str, sizes: Any, size: Any) -> Shape:
    """The shape from `op(2, 3)`, `op((2, 3))` or `op(size=(2, 3))`."""
    if size is None:
        if not sizes:
            raise DTypeError(f"[{op}] needs a size, such as (2, 3); a scalar has size ()")
        return as_shape(op, sizes)
    if sizes:
        raise DTypeError(f"[{op}] got sizes {sizes} and size={size}; give one of them")
    return as_shape(op, size)


@function(method=False)
def zeros(
    *sizes: Ints,
    size: Ints | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Zeros of the given shape.

    >>> import undertow as ut
    >>> ut.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return filled(given_shape("zeros", sizes, size), 0, dtype, device, requires_grad)


@function(method=False)
def ones(
    *sizes: Ints,
    size: Ints | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Ones of the given shape.

    >>> import undertow as ut
    >>> ut.ones(2)
    tensor([1., 1.])
    """
    return filled(given_shape("ones", sizes, size), 1, dtype, device, requires_grad)


@function(method=False)
def empty(
    *sizes: Ints,
    size: Ints | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Memory of the given shape whose elements have any value, until they are set.

    >>> import undertow as ut
    >>> ut.empty(2, 3).shape
    (2, 3)
    """
    wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    shape = given_shape("empty", sizes, size)
    return made(backend_on(device).empty(shape, wanted.numpy), requires_grad)


def _full(
    fill_value: Tensor | Number,
    *,
    size: Ints,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    shape = as_shape("full", size if isinstance(size, int) else tuple(size))
    if isinstance(fill_value, Tensor) and differentiated(fill_value):
        wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
        value = cast(fill_value.reshape(()), wanted)
        return clone(expand(value if device is None else transfer(value, device), shape))
    number = plain_number(fill_value)
    wanted = dtypes.of_scalar(number) if dtype is None else dtypes.as_dtype(dtype)
    return filled(shape, dtypes.fit("full", number, wanted), wanted, device, requires_grad)


@function(method=False)
def full(
    size: Ints,
    fill_value: Tensor | Number,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`fill_value` in every element; its type gives the dtype (bool, int64, floating, complex).

    >>> import undertow as ut
    >>> ut.full((2,), 7), ut.full((2,), 0.5)
    (tensor([7, 7]), tensor([0.5000, 0.5000]))
    """
    return _full(fill_value, size=size, dtype=dtype, device=device, requires_grad=requires_grad)


@function(method=False)
def scalar_tensor(
    s: Tensor | Number,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A number as a zero-dimensional tensor of the default dtype, whatever the number's type.

    >>> import undertow as ut
    >>> ut.scalar_tensor(3)
    tensor(3.)
    """
    wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    value = dtypes.fit("scalar_tensor", plain_number(s), wanted)
    return filled((), value, wanted, device, requires_grad)


# In the manner of another tensor -------------------------------------------------------------
Fill = Callable[[Any, Shape, Any], Any]  # of a backend, a shape and a NumPy dtype: an array


def of_tensor(
    op: str, make: Callable[..., Tensor], doc: str, fill: Fill | None = None
) -> Callable[..., Tensor]:
    """Publish `make` as a function of a tensor, `input`, whose dtype and device are the defaults.

    The function `…_like` takes its shape from there as well, the method `new_…` does not. Their
    other parameters are those of `make`, which takes the shape as `size`. `fill` is what `make`
    does when no option is given: the shortcut for the calls that rules make.
    """
    make = inspect.unwrap(make)
    alike = op.endswith("_like")
    left_out = ("sizes", "size", "memory_format") if alike else ("memory_format",)
    signature = inspect.Signature(
        [
            inspect.Parameter(
                "input", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation="Tensor"
            ),
            *(p for n, p in inspect.signature(make).parameters.items() if n not in left_out),
            *([_MEMORY_FORMAT] if alike else []),
        ],
        return_annotation="Tensor",
    )

    def method(
        input: Tensor, *args: Any, dtype: Any = None, device: Any = None, **kwargs: Any
    ) -> Tensor:
        if fill is not None and dtype is None and device is None and not kwargs:
            array = input._array
            if not alike:
                return made(fill(backend_of(array), given_shape(op, args, None), array.dtype))
            if not args:
                return made(fill(backend_of(array), tuple(array.shape), array.dtype))
        options = {
            "dtype": input.dtype if dtype is None else dtype,
            "device": input.device if device is None else device,
        }
        if alike:
            if isinstance(input, OtherKind):
                raise NotDense(input)
            options["size"] = input.shape
            kwargs.pop("memory_format", None)
        try:
            return make(*args, **options, **kwargs)
        except TypeError:
            _check_call(op, signature, input, *args, **kwargs)
            raise

    method.__name__ = method.__qualname__ = op
    method.__signature__ = signature  # type: ignore[attr-defined]
    method.__doc__ = doc
    return function(top=alike, method=not alike)(method)


_MEMORY_FORMAT = inspect.Parameter(
    "memory_format", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Any"
)


def _check_call(op: str, signature: inspect.Signature, *args: Any, **kwargs: Any) -> None:
    """Raise if a call that failed does not fit the signature: that is what was wrong with it."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        shown = ", ".join(str(p.replace(annotation=p.empty)) for p in signature.parameters.values())
        raise DTypeError(f"[{op}] {error}; its arguments are {shown}") from None


def _zeros(k: Forms, shape: Shape, dtype: Any) -> Any:
    return k.full(shape, 0, dtype)


def _ones(k: Forms, shape: Shape, dtype: Any) -> Any:
    return k.full(shape, 1, dtype)


def _empty(k: Forms, shape: Shape, dtype: Any) -> Any:
    return k.empty(shape, dtype)


zeros_like = of_tensor(
    "zeros_like",
    zeros,
    """Zeros of the shape, dtype and device of `input`.

    >>> import undertow as ut
    >>> ut.zeros_like(ut.tensor([1, 2]))
    tensor([0, 0])
    """,
    _zeros,
)
ones_like = of_tensor(
    "ones_like",
    ones,
    """Ones of the shape, dtype and device of `input`.

    >>> import undertow as ut
    >>> ut.ones_like(ut.tensor([5, 6]))
    tensor([1, 1])
    """,
    _ones,
)
empty_like = of_tensor(
    "empty_like",
    empty,
    """Memory of the shape, dtype and device of `input`, with any values.

    >>> import undertow as ut
    >>> ut.empty_like(ut.ones(2, 3)).shape
    (2, 3)
    """,
    _empty,
)
full_like = of_tensor(
    "full_like",
    _full,
    """`fill_value` in the shape, dtype and device of `input`.

    >>> import undertow as ut
    >>> ut.full_like(ut.tensor([5, 6]), 2)
    tensor([2, 2])
    """,
)
new_zeros = of_tensor(
    "new_zeros",
    zeros,
    """Zeros of another shape, with the dtype and device of `input`.

    >>> import undertow as ut
    >>> ut.tensor([1, 2]).new_zeros(3)
    tensor([0, 0, 0])
    """,
    _zeros,
)
new_ones = of_tensor(
    "new_ones",
    ones,
    """Ones of another shape, with the dtype and device of `input`.

    >>> import undertow as ut
    >>> ut.tensor([1, 2]).new_ones(3)
    tensor([1, 1, 1])
    """,
    _ones,
)
new_empty = of_tensor(
    "new_empty",
    empty,
    """Memory of another shape, with the dtype and device of `input` and any values.

    >>> import undertow as ut
    >>> ut.tensor([1, 2]).new_empty(3).dtype
    undertow.int64
    """,
    _empty,
)
new_full = of_tensor(
    "new_full",
    full,
    """`fill_value` in another shape, with the dtype and device of `input`.

    >>> import undertow as ut
    >>> ut.tensor([1, 2]).new_full((3,), 7)
    tensor([7, 7, 7])
    """,
)


@function(top=False)
def new_tensor(
    input: Tensor,
    data: Any,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A copy of `data` in the dtype and on the device of `input`.

    >>> import undertow as ut
    >>> ut.tensor([0.5]).new_tensor([1, 2])
    tensor([1., 2.])
    """
    return tensor(
        data,
        dtype=input.dtype if dtype is None else dtype,
        device=input.device if device is None else device,
        requires_grad=requires_grad,
    )


# Sequences ----------------------------------------------------------------------------------
@function(method=False)
def arange(
    start: Tensor | Number = 0,
    end: Tensor | Number | None = None,
    step: Tensor | Number = 1,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`start`, `start + step`, … below `end`; int64 when all three are integers.

    >>> import undertow as ut
    >>> ut.arange(5), ut.arange(1, 2, 0.25)
    (tensor([0, 1, 2, 3, 4]), tensor([1.0000, 1.2500, 1.5000, 1.7500]))
    """
    if end is None:
        start, end = 0, start
    first, last, by = plain_number(start), plain_number(end), plain_number(step)
    kinds = {type(first), type(last), type(by)}
    if not kinds <= {int, float, bool}:
        raise DTypeError(f"[arange] expects real numbers, got {start!r}, {end!r} and {step!r}")
    whole = float not in kinds
    if dtype is None:
        wanted = dtypes.int64 if whole else dtypes.get_default_dtype()
    else:
        wanted = dtypes.as_dtype(dtype)
    if wanted.category in (0, 3):
        raise DTypeError(f"[arange] counts in integers or floating numbers, not in {wanted}")
    if not (whole or all(math.isfinite(v) for v in (first, last, by))):
        raise ArgumentError(f"[arange] expects finite numbers, got {start}, {end} and {step}")
    if by == 0 or (wanted.category == 1 and int(by) == 0):
        raise ArgumentError(f"[arange] step must not be zero in {wanted}, got {step!r}")
    if (last - first) * by < 0:
        raise ArgumentError(
            f"[arange] from {first} to {last} with step {by} goes the wrong way; change its sign"
        )
    if wanted is dtypes.int64 and not whole:  # torch rounds before it counts, in int64 only
        first, last, by = int(first), int(last), int(by)
        whole = True
    count = -((first - last) // by) if whole else math.ceil((last - first) / by)
    if wanted.category == 1:
        first, by = int(first), int(by)
    array = backend_on(device).arange(first, by, count, wanted.numpy)
    return made(array, requires_grad)


@function(method=False)
def range(
    start: Number,
    end: Number,
    step: Number = 1,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`start`, `start + step`, … up to `end`, which counts in; floating. Rather use `arange`.

    >>> import undertow as ut
    >>> ut.range(1, 2, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    first, last, by = plain_number(start), plain_number(end), plain_number(step)
    if not by or (last - first) * by < 0:
        raise ArgumentError(f"[range] from {first} to {last} with step {by} leads nowhere")
    wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    count = math.floor((last - first) / by) + 1
    array = backend_on(device).arange(first, by, count, wanted.numpy)
    return made(array, requires_grad)


def _spaced(op: str, start: Any, end: Any, steps: Any, dtype: Any, device: Any) -> Tensor:
    """`steps` numbers from `start` to `end`, each counted from the nearer end, as in torch."""
    n = as_int(op, "steps", steps)
    if n < 0:
        raise ArgumentError(f"[{op}] steps must be at least 0, got {n}")
    for value in (start, end):
        if isinstance(value, Tensor) and value.ndim:
            raise ShapeError(
                f"[{op}] start and end are numbers or zero-dimensional tensors, "
                f"got shape {value.shape}"
            )
    first, last = plain_number(start), plain_number(end)
    if dtype is None:
        kind = dtypes.of_scalar(first + last)
        wanted = kind if kind.category >= 2 else dtypes.get_default_dtype()
    else:
        wanted = dtypes.as_dtype(dtype)
    if wanted.category == 0:
        raise DTypeError(f"[{op}] is not defined for {wanted}")
    if wanted.category < 3 and isinstance(first + last, complex):
        raise DTypeError(
            f"[{op}] from {first} to {last} in {wanted} would drop imaginary parts; pass a complex "
            "dtype"
        )
    if wanted.category == 1:
        first, last = dtypes.fit(op, first, wanted), dtypes.fit(op, last, wanted)
    k = backend_on(device)
    step = (last - first) / (n - 1) if n > 1 else 0
    half = (n + 1) // 2 if n == 1 else n // 2
    front = k.arange(first, step, half, wanted.numpy)
    back = k.slice(k.arange(last, -step, n - half, wanted.numpy), (slice(None, None, -1),))
    return made(k.concat([front, back], 0))


@function(method=False)
def linspace(
    start: Tensor | Number,
    end: Tensor | Number,
    steps: int,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`steps` evenly spaced numbers from `start` to `end`, both included.

    Unlike torch's, it is differentiable in `start` and `end` when they are tensors.

    >>> import undertow as ut
    >>> ut.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    out = _spaced("linspace", start, end, steps, dtype, device)
    ends = [v for v in (start, end) if isinstance(v, Tensor) and v.is_floating_point()]
    if ends and out.is_floating_point():
        weights = _spaced("linspace", 0.0, 1.0, steps, out.dtype, device or ends[0].device)
        out = weights * end + (1 - weights) * start
    return out.requires_grad_() if requires_grad else out


@function(method=False)
def logspace(
    start: Tensor | Number,
    end: Tensor | Number,
    steps: int,
    base: float = 10.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`base` to the powers `linspace(start, end, steps)`.

    >>> import undertow as ut
    >>> ut.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    if dtype is None:
        kind = dtypes.of_scalar(plain_number(start) + plain_number(end))
        wanted = kind if kind.is_complex else dtypes.get_default_dtype()
    else:
        wanted = dtypes.as_dtype(dtype)
    if wanted.category == 1:  # torch casts the ends first
        start, end = int(plain_number(start)), int(plain_number(end))
    inner = wanted if wanted.is_complex else dtypes.float64
    powers = filled((), base, inner, device, False) ** linspace(
        start, end, steps, dtype=inner, device=device
    )
    out = cast(powers, wanted)
    return out.requires_grad_() if requires_grad else out


@function(method=False)
def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Ones on the diagonal of an n × m matrix (square unless m is given), zeros elsewhere.

    >>> import undertow as ut
    >>> ut.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    rows, columns = as_shape("eye", (n, n if m is None else m))
    wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    k = backend_on(device)
    out = k.full((rows, columns), 0, wanted.numpy)
    end = min(rows, columns) * (columns + 1)
    diagonal = k.slice(k.reshape(out, (rows * columns,)), (slice(0, end, columns + 1),))
    k.assign(diagonal, k.full((), 1, wanted.numpy))
    return made(out, requires_grad)
