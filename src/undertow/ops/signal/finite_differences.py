"""`gradient`: slopes of sampled values, by differences of second order."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...core.dispatch import cast
from ...core.foreign import NUMBERS
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError
from ...shapes import Ints, wrap_dim, wrap_dims
from ..shape.joining import cat

_STEPS = (*NUMBERS, complex)


def _slopes(x: Tensor, dim: int, spacing: Any, edge_order: int) -> Tensor:
    """Along one dimension, at distances that are a number or lie between coordinates."""
    count = x.shape[dim]

    def part(start: int, stop: int | None) -> Tensor:
        return x[(slice(None),) * dim + (slice(start, stop),)]

    if isinstance(spacing, Tensor):
        steps = spacing.diff()
        a, b = (
            steps[s].reshape((-1,) + (1,) * (x.ndim - 1 - dim)) for s in (slice(-1), slice(1, None))
        )
        inner = (
            part(0, -2) * (-b / (a * (a + b)))
            + part(1, -1) * ((b - a) / (a * b))
            + part(2, None) * (a / (b * (a + b)))
        )
    else:  # the middle has no weight: what is not finite there must not come in
        inner = (part(2, None) - part(0, -2)) / (2 * spacing)
    if edge_order == 1:
        ends = [
            (part(i + 1, i + 2 or None) - part(i, i + 1 or None))
            / (steps[0 if i == 0 else -1] if isinstance(spacing, Tensor) else spacing)
            for i in (0, -2)
        ]
    else:
        ends = []
        for sign, at in ((1, (0, 1, 2)), (-1, (count - 1, count - 2, count - 3))):
            if isinstance(spacing, Tensor):
                h, k = (steps[0], steps[1]) if sign > 0 else (steps[-1], steps[-2])
            else:
                h = k = spacing
            y0, y1, y2 = (part(i, i + 1) for i in at)
            ends.append(
                (
                    y0 * (-(2 * h + k) / (h * (h + k)))
                    + y1 * ((h + k) / (h * k))
                    - y2 * (h / (k * (h + k)))
                )
                * sign
            )
    return cat([ends[0], inner, ends[1]], dim)


@function(method=False)
def gradient(
    input: Tensor, *, spacing: Any = 1, dim: Ints | None = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """The slopes along each dimension of values on a grid, by central differences.

    `spacing` is the distance of neighbours (1 if None), one for each dimension, or coordinates
    (tensors) for each. `edge_order` 1 or 2 tells how the slopes at both ends are estimated.

    >>> import undertow as ut
    >>> ut.gradient(ut.tensor([1.0, 2.0, 4.0, 8.0]))
    (tensor([1.0000, 1.5000, 3.0000, 4.0000]),)
    """
    if edge_order not in (1, 2):
        raise ArgumentError(f"[gradient] edge_order must be 1 or 2, got {edge_order}")
    if dim is None:
        dims = tuple(range(input.ndim))
    elif isinstance(dim, int):
        dims = (wrap_dim("gradient", dim, input.ndim),)
    else:
        dims = wrap_dims("gradient", dim, input.ndim)
    if spacing is None:
        spacing = 1
    if isinstance(spacing, _STEPS):
        spacings: list[Any] = [spacing] * len(dims)
    else:
        spacings = list(spacing)
    if len(spacings) != len(dims):
        raise ArgumentError(
            f"[gradient] needs one spacing for each of dims {dims}, got {len(spacings)}"
        )
    x = input if input.dtype.category > 1 else cast(input, dtypes.get_default_dtype())
    for d, along in zip(dims, spacings, strict=True):
        if not isinstance(along, (Tensor, *_STEPS)):
            raise ArgumentError(
                f"[gradient] spacing must be a number, or numbers or coordinates for each "
                f"dimension, got {spacing!r}"
            )
        if x.shape[d] < edge_order + 1:
            raise ArgumentError(
                f"[gradient] needs {edge_order + 1} elements along dim {d} at least, got shape "
                f"{x.shape}"
            )
        if isinstance(along, Tensor) and along.ndim and along.shape != (x.shape[d],):
            raise ArgumentError(
                f"[gradient] needs {x.shape[d]} coordinates along dim {d}, got shape {along.shape}"
            )
    return tuple(
        _slopes(x, d, s.item() if isinstance(s, Tensor) and not s.ndim else s, edge_order)
        for d, s in zip(dims, spacings, strict=True)
    )
