"""Pooling to a given size: windows that are as equal as they can be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import dtypes
from ..core.dispatch import cast, table
from ..core.modes import no_grad
from ..core.register import function
from ..core.tensor import Tensor
from ..errors import ArgumentError
from ..kernel import tables
from ..kernel.windows import Geometry
from ..shapes import Shape, per_dim
from .comparison import where
from .indexing import index_by
from .pooling import check_planes, indices, largest, pick, window_sums


def _target(op: str, x: Tensor, output_size: Any, rank: int) -> Shape:
    """The size to pool to; None keeps a dimension's."""
    listed = output_size if isinstance(output_size, Sequence) else (output_size,) * rank
    if len(listed) != rank:
        raise ArgumentError(
            f"[{op}] output_size must be an integer or {rank} of them, or None, got {output_size!r}"
        )
    sizes = x.shape[-rank:]
    chosen = [n if wanted is None else wanted for n, wanted in zip(sizes, listed, strict=True)]
    return per_dim(op, "output_size", chosen, rank)


def _even(size: Shape, target: Shape) -> Geometry:
    """The windows of the dimensions that divide evenly; of others, each element."""
    widths = tuple([n // m if m and n % m == 0 else 1 for n, m in zip(size, target, strict=True)])
    rank = len(size)
    return Geometry(size, widths, widths, ((0, 0),) * rank, (1,) * rank, (1,) * rank)


def adaptive_mean(op: str, x: Tensor, output_size: Any, rank: int) -> Tensor:
    """The means of windows over the last dimensions."""
    check_planes(op, x, rank)
    target, size = _target(op, x, output_size, rank), x.shape[-rank:]
    wide = cast(x, dtypes.float32) if x.dtype.itemsize == 2 else x
    if target == (1,) * rank:
        out = wide.mean(tuple(range(x.ndim - rank, x.ndim)), True)
        return cast(out, x.dtype)
    even = _even(size, target)
    total = math.prod(even.kernel)
    out = window_sums(wide, even, total) if total > 1 else wide
    for d, (n, m) in enumerate(zip(even.output, target, strict=True)):
        if n != m:
            dim = x.ndim - rank + d
            behind = rank - 1 - d
            seen = index_by(out, (table(x, tables.span_positions, n, m),), (dim,))
            if not tables.span_inside(n, m, behind).all():
                seen = where(table(x, tables.span_inside, n, m, behind), seen, 0)
            shares = table(x, tables.span_counts, n, m, behind, wide.dtype.numpy)
            out = seen.sum(dim + 1) / shares
    return cast(out if out is not x else x.clone(), x.dtype)


def _adaptive_max(op: str, x: Tensor, output_size: Any, rank: int, return_indices: bool) -> Any:
    check_planes(op, x, rank)
    target, size = _target(op, x, output_size, rank), x.shape[-rank:]
    even = _even(size, target)
    if even.output == target:
        values, places = largest(x, even)
    else:
        places = _search(x.detach(), target)
        values = pick(x, places, rank)
    return (values, indices(places)) if return_indices else values


def _search(x: Tensor, target: Shape) -> Tensor:
    """Where in the last dimensions, flattened, the first largest element of each window is."""
    rank = len(target)
    found: Tensor | None = None
    step = 1
    with no_grad():
        for d in reversed(range(rank)):
            dim, size = x.ndim - rank + d, x.shape[-rank + d]
            places = table(x, tables.span_positions, size, target[d])
            seen = index_by(x, (places,), (dim,))
            best = seen.argmax(dim + 1, keepdim=True)
            x = seen.gather(dim + 1, best).squeeze(dim + 1)
            first = places[:, :1].reshape(-1, *(1,) * (rank - 1 - d))
            own = (best.squeeze(dim + 1) + first) * step
            if found is not None:
                inner = index_by(found, (places,), (dim,)).gather(dim + 1, best)
                own = own + inner.squeeze(dim + 1)
            found = own
            step *= size
    assert found is not None
    return found


@function(method=False, functional=True)
def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of `output_size` windows that cover signals (N, C, L) or (C, L).

    >>> import undertow as ut
    >>> ut.adaptive_avg_pool1d(ut.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]]), 2)
    tensor([[2., 4.]])
    """
    return adaptive_mean("adaptive_avg_pool1d", input, output_size, 1)


@function(top=False, method=False, functional=True)
def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of windows that cover images (N, C, H, W) or (C, H, W), as many as `output_size`.

    An integer is for both dimensions; None keeps the size of one.

    >>> import undertow as ut
    >>> ut.nn.functional.adaptive_avg_pool2d(ut.tensor([[[1.0, 2.0], [3.0, 4.0]]]), (None, 1))
    tensor([[[1.5000],
             [3.5000]]])
    """
    return adaptive_mean("adaptive_avg_pool2d", input, output_size, 2)


@function(top=False, method=False, functional=True)
def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of windows that cover (N, C, D, H, W) or (C, D, H, W); see `adaptive_avg_pool2d`.

    >>> import undertow as ut
    >>> ut.nn.functional.adaptive_avg_pool3d(ut.arange(8.0).reshape(1, 2, 2, 2), 1)
    tensor([[[[3.5000]]]])
    """
    return adaptive_mean("adaptive_avg_pool3d", input, output_size, 3)


@function(top=False, method=False, functional=True)
def adaptive_max_pool1d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest elements of `output_size` windows that cover signals (N, C, L) or (C, L).

    With `return_indices`, also where they were, of equal ones the first.

    >>> import undertow as ut
    >>> x = ut.tensor([[1.0, 5.0, 2.0, 4.0, 3.0]])
    >>> ut.nn.functional.adaptive_max_pool1d(x, 2, return_indices=True)
    (tensor([[5., 4.]]), tensor([[1, 3]]))
    """
    return _adaptive_max("adaptive_max_pool1d", input, output_size, 1, return_indices)


@function(top=False, method=False, functional=True)
def adaptive_max_pool2d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest elements of windows that cover (N, C, H, W) or (C, H, W).

    `output_size` is as in `adaptive_avg_pool2d`, the indices as in `max_pool2d`.

    >>> import undertow as ut
    >>> ut.nn.functional.adaptive_max_pool2d(ut.tensor([[[1.0, 2.0], [3.0, 4.0]]]), (1, None))
    tensor([[[3., 4.]]])
    """
    return _adaptive_max("adaptive_max_pool2d", input, output_size, 2, return_indices)


@function(top=False, method=False, functional=True)
def adaptive_max_pool3d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest elements of windows that cover (N, C, D, H, W); see `adaptive_max_pool2d`.

    >>> import undertow as ut
    >>> ut.nn.functional.adaptive_max_pool3d(ut.arange(8.0).reshape(1, 2, 2, 2), 1)
    tensor([[[[7.]]]])
    """
    return _adaptive_max("adaptive_max_pool3d", input, output_size, 3, return_indices)
