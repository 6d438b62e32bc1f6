"""Elements added around a tensor, or cut off: pad in four modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...backends.base import Array, Forms
from ...core.dispatch import apply, table
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor
from ...dtypes import Number
from ...errors import ArgumentError, ShapeError
from ...kernel import tables
from ...shapes import Shape, as_int
from ..index.indexing import index_by, number_for
from .movement import slice_view

_MODES = ("constant", "reflect", "replicate", "circular")


def _pad_forward(k: Forms, x: Array, shape: Shape, slices: tuple[Any, ...], value: Array) -> Any:
    out = k.full(shape, value, x.dtype)
    k.assign(k.slice(out, slices), x)
    return out


_pad = Op(
    "pad",
    _pad_forward,
    affine=True,
    inputs="x",
    params="shape slices value",
    vjp={"x": lambda g, slices: slice_view(g, slices)},
)


@function(top=False, method=False, functional=True)
def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: Number | None = None
) -> Tensor:
    """`input` with elements added at both ends of its last dimensions, or cut off.

    `pad` is (low, high) for the last dimension, then for the one before it, and so on; a negative
    number cuts elements off. The mode tells what is added: "constant" `value` (0), "reflect" the
    elements mirrored at the one at the edge, "replicate" that one again, "circular" the elements
    from the other end.

    >>> import undertow as ut
    >>> x = ut.tensor([[1, 2, 3]])
    >>> ut.nn.functional.pad(x, (1, 2), value=9)
    tensor([[9, 1, 2, 3, 9, 9]])
    >>> ut.nn.functional.pad(x, (2, -1), mode="reflect")
    tensor([[3, 2, 1, 2]])
    >>> ut.nn.functional.pad(x, (1, 1), mode="circular")
    tensor([[3, 1, 2, 3, 1]])
    """
    pairs = _pairs(input, pad)
    shape = tuple([n + low + high for n, (low, high) in zip(input.shape, pairs, strict=True)])
    if mode not in _MODES:
        raise ArgumentError(f"[pad] mode must be one of {', '.join(_MODES)}, got {mode!r}")
    if min(shape, default=0) < 0:
        raise ShapeError(f"[pad] {tuple(pad)} cuts more off {input.shape} than there is: {shape}")
    if mode == "constant":
        return constant_padded(input, pairs, number_for("pad", input, value or 0))
    if value not in (None, 0):
        raise ArgumentError(f"[pad] mode {mode!r} takes no value, got {value!r}")
    return continued(input, pairs, mode) if any(map(any, pairs)) else input.clone()


def continued(x: Tensor, pairs: Sequence[tuple[int, int]], mode: str) -> Tensor:
    """`x` padded, in a mode but "constant", by its own elements; itself if there is no padding."""
    for d, (low, high) in enumerate(pairs):
        if low or high:
            positions = table(x, tables.padded_positions, x.shape[d], low, high, mode)
            x = index_by(x, (positions,), (d,))
    return x


def _pairs(x: Tensor, pad: Any) -> list[tuple[int, int]]:
    """The padding of every dimension, the first one first."""
    if not isinstance(pad, Sequence) or len(pad) % 2 or len(pad) > 2 * x.ndim:
        raise ArgumentError(
            f"[pad] pad takes (low, high) for some of the {x.ndim} dimensions of {x.shape}, the "
            f"last one first, got {pad!r}"
        )
    numbers = [as_int("pad", "pad", p) for p in pad]
    pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
    return [(0, 0)] * (x.ndim - len(pairs)) + pairs[::-1]


def constant_padded(x: Tensor, pairs: list[tuple[int, int]], value: Any) -> Tensor:
    """`x` with `value` added at the ends of each dimension, or cut off."""
    if any(low < 0 or high < 0 for low, high in pairs):
        kept = [
            slice(max(-low, 0), n - max(-high, 0))
            for n, (low, high) in zip(x.shape, pairs, strict=True)
        ]
        x = slice_view(x, tuple(kept))
    shape, slices = [], []
    for n, (low, high) in zip(x.shape, pairs, strict=True):
        start = max(low, 0)
        shape.append(start + n + max(high, 0))
        slices.append(slice(start, start + n))
    return apply(_pad, (x,), (tuple(shape), tuple(slices), value))
