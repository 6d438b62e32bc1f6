"""Floating numbers by their bits: fraction and exponent, and the neighbour of a number."""

from __future__ import annotations

from typing import NamedTuple

from ... import dtypes
from ...core.dispatch import cast
from ...core.modes import no_grad
from ...core.printing import in_lines
from ...core.register import function
from ...core.tensor import Tensor, differentiated
from ...errors import DTypeError
from ..create.conversion import result_type
from ..shape.joining import broadcast_tensors

# By size of an element in bytes: the integers of that size.
_BITS = {2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}
# By name of a dtype: bits of the fraction, and the exponent of numbers in [0.5, 1).
_FORMAT = {"float16": (10, 14), "bfloat16": (7, 126), "float32": (23, 126), "float64": (52, 1022)}


class Parts(NamedTuple):
    """What `frexp` returns."""

    mantissa: Tensor
    exponent: Tensor

    def __repr__(self) -> str:
        return in_lines(self)


def _power(exponent: Tensor, like: Tensor) -> Tensor:
    return (exponent * 1.0 if like.dtype.itemsize < 8 else exponent.double()).exp2().to(like.dtype)


@function()
def frexp(input: Tensor) -> Parts:
    """`input` as mantissa times two to the exponent, the mantissa at least 0.5 and below 1.

    Of 0, infinities and NaN the mantissa is the number itself and the exponent 0.

    >>> import undertow as ut
    >>> parts = ut.frexp(ut.tensor([8.0, -0.75]))
    >>> parts.mantissa, parts.exponent
    (tensor([ 0.5000, -0.7500]), tensor([4, 0], dtype=undertow.int32))
    """
    if not input.is_floating_point():
        raise DTypeError(f"[frexp] needs floating numbers, got {input.dtype}")
    fraction, bias = _FORMAT[input.dtype.name]
    with no_grad():
        x = input.detach()
        tiny = x.abs() < 2.0 ** (2 - bias)  # and those that have no exponent of their own
        scaled = x * (tiny * 2.0**fraction + ~tiny).to(x.dtype)
        bits = scaled.contiguous().view(_BITS[x.dtype.itemsize])
        exponent = ((bits >> fraction) & (2 * bias + 3)).to(dtypes.int32) - bias
        exponent = exponent - fraction * tiny.to(dtypes.int32)
        exponent = exponent.where((x != 0) & x.isfinite(), exponent * 0)
        half = exponent // 2  # the whole power may be beyond the dtype
    return Parts(input * _power(-half, x) * _power(half - exponent, x), exponent)


@function(inplace=True)
def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """The next floating number after `input` towards `other`.

    It goes along with `input`, so its derivative is 1 there and 0 in `other`; torch has none.

    >>> import undertow as ut
    >>> ut.nextafter(ut.tensor(1.0), ut.tensor(2.0)) - 1
    tensor(1.1921e-07)
    """
    dtype = result_type(input, other)
    if not dtype.is_floating_point:
        raise DTypeError(f"[nextafter] needs floating numbers, got {input.dtype} and {other.dtype}")
    moving, other = broadcast_tensors(cast(input, dtype), cast(other, dtype).detach())
    with no_grad():
        x = moving.detach()
        bits = x.contiguous().view(_BITS[dtype.itemsize])
        away = (other > x) == (x > 0)  # from zero: to the next larger number as an integer
        bits = bits + away * 2 - 1
        stepped = bits.to(_BITS[dtype.itemsize]).view(dtype)
        smallest = x.new_tensor(0).view(_BITS[dtype.itemsize]).add(1).view(dtype)
        stepped = stepped.where(x != 0, smallest.copysign(other))
        stepped = stepped.where(x != other, other)
        stepped = stepped.where(~(x.isnan() | other.isnan()), x + other)
        step = stepped - x
    return stepped.where(x.isinf(), moving + step) if differentiated(moving) else stepped
