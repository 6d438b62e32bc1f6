"""Common divisors and multiples of integers, and positions as coordinates."""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError, BoundsError, DTypeError
from ...shapes import Ints, as_int, as_shape, wrap_dims
from ..index.selection import nonzero
from .comparison import holds


def _check_integers(op: str, *operands: Tensor) -> None:
    for t in operands:
        if t._array.dtype.kind not in "iu":
            raise DTypeError(f"[{op}] is of integers, got {t.dtype}")


@function(inplace=True)
def gcd(input: Tensor, other: Tensor) -> Tensor:
    """The greatest common divisor; that of 0 and 0 is 0.

    >>> import undertow as ut
    >>> ut.gcd(ut.tensor([12, -6]), ut.tensor([18, 4]))
    tensor([6, 2])
    """
    _check_integers("gcd", input, other)
    zero = input * 0 * (other * 0)  # gives both the common dtype and shape
    a, b = (input + zero).abs(), (other + zero).abs()
    while a.numel() and not holds(b == 0):  # Euclid's way, on all pairs at once
        a, b = b.where(b != 0, a), a.remainder(b.where(b != 0, b + 1)) * (b != 0)
    return a


@function(inplace=True)
def lcm(input: Tensor, other: Tensor) -> Tensor:
    """The least common multiple; 0 if one of them is 0.

    >>> import undertow as ut
    >>> ut.lcm(ut.tensor([4, 0]), ut.tensor([6, 3]))
    tensor([12,  0])
    """
    _check_integers("lcm", input, other)
    divisor = gcd(input, other)
    return (input.floor_divide(divisor.where(divisor != 0, divisor + 1)) * other).abs()


@function(method=False)
def unravel_index(indices: Tensor, shape: Ints) -> tuple[Tensor, ...]:
    """The coordinates, in a tensor of `shape`, of positions that are counted in row-major order.

    >>> import undertow as ut
    >>> ut.unravel_index(ut.tensor([4, 7]), (3, 3))
    (tensor([1, 2]), tensor([1, 1]))
    """
    _check_integers("unravel_index", indices)
    sizes = as_shape("unravel_index", shape if isinstance(shape, int) else tuple(shape))
    if min(sizes, default=0) < 0:
        raise ArgumentError(f"[unravel_index] sizes must not be negative, got {sizes}")
    found: list[Tensor] = []
    rest = indices
    for size in reversed(sizes):
        found.append(rest.remainder(size))
        rest = rest.floor_divide(size)
    return tuple(reversed(found))


@function()
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """`nonzero`, cut off after `size` rows, or filled up to them with rows of `fill_value`.

    >>> import undertow as ut
    >>> ut.nonzero_static(ut.tensor([0, 5, 0]), size=2)
    tensor([[ 1],
            [-1]])
    """
    count = as_int("nonzero_static", "size", size)
    if count < 0:
        raise ArgumentError(f"[nonzero_static] size must not be negative, got {count}")
    found: Any = nonzero(input)[:count]
    out = found.new_full((count, input.ndim), fill_value, dtype=dtypes.int64)
    out[: found.shape[0]] = found
    return out


@function()
def hash_tensor(
    input: Tensor, dim: Ints | None = None, keepdim: bool = False, *, mode: int = 0
) -> Tensor:
    """A number (uint64) that tells tensors apart: exclusive or of the bits of all elements.

    The elements are taken as int64 or float64; `dim` says along which dimensions.

    >>> import undertow as ut
    >>> ut.hash_tensor(ut.tensor([[5, 3], [1, 1]]), 1)
    tensor([6, 0], dtype=undertow.uint64)
    """
    op = "hash_tensor"
    if mode != 0:
        raise ArgumentError(f"[{op}] has one mode, 0 (exclusive or), got {mode}")
    if input.is_complex():
        raise DTypeError(f"[{op}] is of integers and floating numbers, got {input.dtype}")
    if dim is None and not input.numel():
        raise ArgumentError(f"[{op}] needs a dim for a tensor without elements, {input.shape}")
    dims = wrap_dims(op, dim, input.ndim)
    for d in dims:
        if not input.shape[d]:
            raise BoundsError(f"[{op}] dimension {d} of {input.shape} has no elements to hash")
    kept = tuple(d for d in range(input.ndim) if d not in dims)
    shape = tuple(1 if d in dims else n for d, n in enumerate(input.shape))
    wide = dtypes.float64 if input.is_floating_point() else dtypes.int64
    bits = input.detach().to(wide).view(dtypes.int64).permute(*kept, *dims)
    bits = bits.reshape(*(input.shape[d] for d in kept), math.prod(input.shape[d] for d in dims))
    if bits.shape[-1] == 1:
        bits = bits.clone()  # which may still be the input's memory
    while bits.shape[-1] > 1:  # one half with the other
        half = bits.shape[-1] // 2
        joined = bits[..., :half] ^ bits[..., half : 2 * half]
        if bits.shape[-1] % 2:
            joined[..., 0] ^= bits[..., -1]
        bits = joined
    found: Tensor = bits.view(dtypes.uint64).reshape(shape)
    return found if keepdim else found.squeeze(dims)
