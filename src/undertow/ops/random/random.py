"""Random numbers: uniform, normal, integers, permutations; `distributions` has the others.

Every function takes words from a generator's stream (see `core/generator`) and turns them into
numbers; a word's meaning depends only on its position, so results do not depend on how the work
was cut or where it ran.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, overload

from ... import dtypes
from ...backends.base import Array, Forms
from ...backends.batch import copies, drawing
from ...backends.registry import backend_of, backend_on
from ...core.foreign import INTEGERS
from ...core.generator import Generator, default_generator
from ...core.register import function
from ...core.tensor import Tensor
from ...devices import DeviceLike
from ...dtypes import DType, DTypeLike, Number
from ...errors import ArgumentError, DTypeError
from ...kernel.expr import call, trace
from ...shapes import Ints, Shape, as_int, as_shape, broadcast_shapes
from ..create.creation import given_shape, of_tensor
from ..create.from_data import made

_INT64, _U64 = dtypes.int64.numpy, dtypes.UINT64


# From words to numbers ----------------------------------------------------------------------
def words(k: Forms, generator: Generator | None, count: int) -> Any:
    """`count` fresh random words (uint32) of the generator, as an array of backend `k`."""
    source = default_generator if generator is None else generator
    seed, offset = source.reserve(count * copies(k))
    return k.philox(seed, offset, count)


_shifted = trace(lambda w, bits: call("shift_right", w, bits), 2)
_scaled = trace(lambda w, half, scale: (w + half) * scale, 3)
_capped = trace(lambda w, half, scale, top: call("minimum", (w + half) * scale, top), 4)
_joined = trace(lambda high, low: high * 67108864.0 + low, 2)


def _length(u: Any, half: Any, scale: Any) -> Any:
    return call("sqrt", -2.0 * call("log", (u + half) * scale))


def _angle(v: Any, half: Any, scale: Any) -> Any:
    return 2 * math.pi * ((v + half) * scale)


# The two normal numbers of a pair of uniform ones, u and v, which are `(whole + half) * scale`.
_cosine = trace(
    lambda u, v, half, scale: _length(u, half, scale) * call("cos", _angle(v, half, scale)), 4
)
_sine = trace(
    lambda u, v, half, scale: _length(u, half, scale) * call("sin", _angle(v, half, scale)), 4
)
MANTISSA_BITS = {"float16": 11, "bfloat16": 8, "float32": 24}  # of a mantissa


def _halves(k: Forms, array: Array) -> tuple[Any, Any]:
    """The elements at even and at odd positions."""
    return k.slice(array, (slice(0, None, 2),)), k.slice(array, (slice(1, None, 2),))


def uniform_words(k: Forms, generator: Any, count: int, dtype: DType, open: bool = False) -> Any:
    """Multiples of 2^-bits in [0, 1), as many bits as the dtype has; or, open, between them.

    An open uniform is never 0 nor 1, so its logarithm is finite. Halves are numbers of single
    precision rounded, so that small ones are as fine as they can be; none becomes 1.
    """
    if dtype.itemsize > 2:
        return k.map(_scaled, _whole_words(k, generator, count, dtype, open), dtype.numpy)
    whole = _whole_words(k, generator, count, dtypes.float32, open)
    below_one = 1 - 2.0 ** -MANTISSA_BITS[dtype.name]
    return k.cast(k.map(_capped, (*whole, below_one), dtypes.float32.numpy), dtype.numpy)


def _whole_words(
    k: Forms, generator: Any, count: int, dtype: DType, open: bool
) -> tuple[Any, float, float]:
    """Whole numbers, and what to add to them and multiply with for `uniform_words`."""
    half = 0.5 if open else 0.0
    if dtype is dtypes.float64:
        low_bits, high_bits = (26, 26) if open else (26, 27)
        pairs = _halves(k, words(k, generator, 2 * count))
        high, low = (
            k.map(_shifted, (w, 32 - bits), dtype.numpy)
            for w, bits in zip(pairs, (high_bits, low_bits), strict=True)
        )
        return k.map(_joined, (high, low), dtype.numpy), half, 2.0 ** -(high_bits + low_bits)
    bits = MANTISSA_BITS[dtype.name] - open
    whole = k.map(_shifted, (words(k, generator, count), 32 - bits), dtypes.float32.numpy)
    return whole, half, 2.0**-bits


def _normal(k: Forms, generator: Any, count: int, dtype: DType) -> Any:
    """Standard normal numbers, two from each pair of uniform ones (Box and Muller)."""
    wide = dtype if dtype.itemsize > 2 else dtypes.float32
    whole, half, scale = _whole_words(k, generator, count + count % 2, wide, open=True)
    u, v = _halves(k, whole)
    out = k.empty((count + count % 2,), wide.numpy)
    k.maps((_cosine, _sine), (u, v, half, scale), (wide.numpy,) * 2, _halves(k, out))
    out = k.slice(out, (slice(0, count),))
    return out if wide is dtype else k.cast(out, dtype.numpy)


def _long_words(k: Forms, generator: Any, count: int) -> Any:
    """64 random bits each: two words, the lower first, which is how memory holds them."""
    return k.bits(words(k, generator, 2 * count), _U64)


_remainder = trace(lambda w, span: call("mod", w, span), 2)
_sum = trace(lambda w, low: w + low, 2)


def integer_words(k: Forms, generator: Any, count: int, low: int, high: int, dtype: DType) -> Any:
    """Integers in [low, high); 64 bits for each leave a bias below span / 2^64."""
    span = high - low
    bits = _long_words(k, generator, count)
    if span < 1 << 64:
        bits = k.map(_remainder, (bits, span), _U64)
    signed = k.bits(bits, _INT64)
    if low:  # adding in 64 bits wraps to the right signed number
        signed = k.map(_sum, (signed, low), _INT64)
    return signed if dtype is dtypes.int64 else k.cast(signed, dtype.numpy)


def drawn(
    op: str, draw: Any, shape: Shape, dtype: Any, device: Any, generator: Any, requires_grad: bool
) -> Tensor:
    """A new tensor of floating or complex numbers that `draw` gives."""
    wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    k = drawing(backend_on(device))
    count = math.prod(shape)
    if wanted.is_floating_point:
        return made(k.reshape(draw(k, generator, count, wanted), shape), requires_grad)
    if not wanted.is_complex:
        raise DTypeError(f"[{op}] gives floating numbers, not {wanted}; use randint for integers")
    out = k.empty((count,), wanted.numpy)
    parts = draw(k, generator, 2 * count, dtypes.real_of(wanted))
    for name, part in zip(("real", "imag"), _halves(k, parts), strict=True):
        k.assign(k.part(out, name), part)
    return made(k.reshape(out, shape), requires_grad)


def _complex_normal(k: Forms, generator: Any, count: int, dtype: DType) -> Any:
    """Parts of complex numbers whose variance is 1."""
    return k.map(_scaled, (_normal(k, generator, count, dtype), 0.0, math.sqrt(0.5)), dtype.numpy)


def _draw_normal(dtype: Any) -> Any:
    return _complex_normal if dtype is not None and dtypes.as_dtype(dtype).is_complex else _normal


def span(t: Tensor) -> tuple[float, float]:
    """The smallest and the largest element; NaN if there is one, none fails a comparison."""
    whole = backend_of(t._array).whole(t._array)
    if not whole.size:
        return math.inf, -math.inf
    k = backend_of(whole)
    dims = tuple(range(len(whole.shape)))
    low, high = (k.to_host(k.reduce(kind, whole, dims, False)) for kind in ("min", "max"))
    return float(low), float(high)


def check_std(op: str, std: Any) -> None:
    if isinstance(std, Tensor):
        if std.numel() and not span(std)[0] >= 0:
            raise ArgumentError(f"[{op}] std must be at least 0, got {span(std)[0]} in a tensor")
    elif not std >= 0:
        raise ArgumentError(f"[{op}] std must be at least 0, got {std}")


# New tensors --------------------------------------------------------------------------------
@function(method=False)
def rand(
    *sizes: Ints,
    size: Ints | None = None,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Uniform random numbers in [0, 1).

    >>> import undertow as ut
    >>> _ = ut.manual_seed(0)
    >>> ut.rand(2, 3).shape
    (2, 3)
    """
    shape = given_shape("rand", sizes, size)
    return drawn("rand", uniform_words, shape, dtype, device, generator, requires_grad)


@function(method=False)
def randn(
    *sizes: Ints,
    size: Ints | None = None,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Normal random numbers with mean 0 and variance 1.

    >>> import undertow as ut
    >>> _ = ut.manual_seed(0)
    >>> ut.randn(2, 3).shape
    (2, 3)
    """
    shape = given_shape("randn", sizes, size)
    return drawn("randn", _draw_normal(dtype), shape, dtype, device, generator, requires_grad)


rand_like = of_tensor(
    "rand_like",
    rand,
    """`rand` with the shape, dtype and device of `input`.

    >>> import undertow as ut
    >>> ut.rand_like(ut.zeros(2, dtype=ut.float64)).dtype
    undertow.float64
    """,
)
randn_like = of_tensor(
    "randn_like",
    randn,
    """`randn` with the shape, dtype and device of `input`.

    >>> import undertow as ut
    >>> ut.randn_like(ut.zeros(2, 3)).shape
    (2, 3)
    """,
)


def bounded(op: str, low: Any, high: Any, dtype: DType) -> tuple[int, int]:
    """Bounds of random integers, checked against each other and the dtype."""
    first, last = as_int(op, "low", low), as_int(op, "high", high)
    if first >= last:
        raise ArgumentError(f"[{op}] low must be below high, got {first} and {last}")
    if dtype.is_complex:
        raise DTypeError(f"[{op}] gives real numbers, not {dtype}; make them and cast them")
    if dtype.category < 2:
        smallest, largest = (
            (0, 1) if dtype is dtypes.bool else (dtypes.iinfo(dtype).min, dtypes.iinfo(dtype).max)
        )
        if first < smallest or last - 1 > largest:
            raise ArgumentError(
                f"[{op}] {first} to {last - 1} do not fit into {dtype}, which holds {smallest} to "
                f"{largest}"
            )
    return first, last


@overload
def randint(
    high: int,
    size: Sequence[int],
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor: ...
@overload
def randint(
    low: int,
    high: int,
    size: Sequence[int],
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor: ...
@function(method=False)
def randint(
    *args: Any,
    low: int = 0,
    high: int | None = None,
    size: Sequence[int] | None = None,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Random integers from `low` (0 unless given) to below `high`.

    Called as `randint(high, size)` or `randint(low, high, size)`.

    >>> import undertow as ut
    >>> _ = ut.manual_seed(0)
    >>> bool((ut.randint(10, (100,)) < 10).all())
    True
    """
    given = list(args)
    if size is None and given and not isinstance(given[-1], (*INTEGERS, Tensor)):
        size = given.pop()
    if len(given) == 2:
        low, high = given
    elif len(given) == 1:
        if high is None:
            high = given[0]
        else:
            low = given[0]
    if size is None or high is None or len(given) > 2:
        raise DTypeError("[randint] is called as randint(high, size) or randint(low, high, size)")
    wanted = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)
    first, last = bounded("randint", low, high, wanted)
    shape = as_shape("randint", tuple(size))
    k = drawing(backend_on(device))
    array = integer_words(k, generator, math.prod(shape), first, last, wanted)
    return made(k.reshape(array, shape), requires_grad)


randint_like = of_tensor(
    "randint_like",
    randint,
    """`randint` with the shape, dtype and device of `input`: `randint_like(input, [low,] high)`.

    >>> import undertow as ut
    >>> ut.randint_like(ut.zeros(2, 3), 5).dtype
    undertow.float32
    """,
)


@function(method=False)
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The integers 0 to n - 1 in random order.

    >>> import undertow as ut
    >>> ut.randperm(5).sort().values
    tensor([0, 1, 2, 3, 4])
    """
    wanted = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)
    (count,) = as_shape("randperm", (n,))
    if count:
        bounded("randperm", 0, count, wanted)
    if wanted.is_floating_point and count - 1 > (most := round(2 / dtypes.finfo(wanted).eps)):
        raise ArgumentError(
            f"[randperm] 0 to {count - 1} are not all numbers of {wanted}, which holds those up to "
            f"{most}"
        )
    k = drawing(backend_on(device))
    order = k.sort(_long_words(k, generator, count), 0, False)[1]
    return made(order if wanted is dtypes.int64 else k.cast(order, wanted.numpy), requires_grad)


@function(method=False)
def normal(
    mean: Tensor | Number = 0.0,
    std: Tensor | Number = 1.0,
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Normal random numbers of given mean and standard deviation, numbers or tensors.

    With tensors, one number for each element of their broadcast shape; gradients flow to `mean`
    and `std` (the result is mean + std * noise), where torch's are zero.

    >>> import undertow as ut
    >>> ut.normal(ut.tensor([0.0, 100.0]), 0.0)
    tensor([  0., 100.])
    """
    tensors = [t for t in (mean, std) if isinstance(t, Tensor)]
    check_std("normal", std)
    if not tensors:
        if size is None:
            raise DTypeError("[normal] needs a size when mean and std are numbers")
        shape = as_shape("normal", tuple(size))
        noise = randn(shape, generator=generator, dtype=dtype, device=device)
        out: Tensor = noise * std + mean
        return out.requires_grad_() if requires_grad else out
    if size is not None:
        raise DTypeError("[normal] takes a size only when mean and std are numbers")
    first = tensors[0]
    if not first.is_floating_point():
        raise DTypeError(f"[normal] expects floating tensors, got {first.dtype}; convert it first")
    shape = broadcast_shapes("normal", *(t.shape for t in tensors))
    noise = randn(shape, generator=generator, dtype=first.dtype, device=first.device)
    if isinstance(std, Tensor):
        std = std.to(first.dtype)
    shifted: Tensor = noise * std + mean
    return shifted
