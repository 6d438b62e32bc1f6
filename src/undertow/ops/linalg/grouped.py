"""Products of several pairs of matrices of different sizes, packed one behind the other."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...core.dispatch import cast
from ...core.register import function
from ...core.tensor import Tensor
from ...dtypes import DTypeLike
from ...errors import ArgumentError, ShapeError
from ..shape.joining import cat, stack
from .matmul import matmul


@function(top=False, method=False, functional=True)
def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """The products of groups of matrices; group i ends at `offs[i]`, where the next one begins.

    (rows, K) with (G, K, N): rows are in groups, each with a matrix of its own. (G, M, K) with
    (K, columns): columns are in groups. (M, K) with (K, N): K is in groups, and each gives a
    matrix. Without `offs` it is `bmm`. What is beyond the last group is zero.

    >>> import undertow as ut
    >>> rows, experts = ut.ones(3, 2), ut.tensor([[[1.0], [1.0]], [[2.0], [2.0]]])
    >>> ut.nn.functional.grouped_mm(rows, experts, offs=ut.tensor([1, 3])).flatten()
    tensor([2., 4., 4.])
    """
    op = "grouped_mm"
    dims = (mat_a.ndim, mat_b.ndim)
    if dims not in ((2, 3), (3, 2), (2, 2), (3, 3)) or mat_a.shape[-1] != mat_b.shape[-2]:
        raise ShapeError(
            f"[{op}] expects matrices, or batches of them, that fit, got {mat_a.shape} and "
            f"{mat_b.shape}"
        )
    if (offs is None) != (dims == (3, 3)):
        raise ArgumentError(
            f"[{op}] offs tells where groups end, unless both are batches; got {offs} for shapes "
            f"{mat_a.shape} and {mat_b.shape}"
        )
    if bias is not None:
        raise ArgumentError(f"[{op}] takes no bias yet, as in torch; add it to the result")
    if offs is None:
        out = matmul(mat_a, mat_b)
    else:
        out = _grouped(op, mat_a, mat_b, offs.tolist(), dims)
    return out if out_dtype is None else cast(out, dtypes.as_dtype(out_dtype))


def _grouped(op: str, a: Tensor, b: Tensor, ends: list[int], dims: tuple[int, int]) -> Tensor:
    groups = {(2, 3): len(b), (3, 2): len(a)}.get(dims, len(ends))
    total = b.shape[-1] if dims == (3, 2) else a.shape[0] if dims == (2, 3) else a.shape[1]
    if len(ends) != groups or any(not 0 <= e <= total for e in ends) or sorted(ends) != ends:
        raise ArgumentError(
            f"[{op}] offs must rise to at most {total}, one for each of {groups} groups, got {ends}"
        )
    spans = list(zip([0, *ends[:-1]], ends, strict=True)) if ends else []
    parts: list[Any]
    if dims == (2, 2):
        parts = [matmul(a[:, low:high], b[low:high]) for low, high in spans]
        return stack(parts) if parts else a.new_zeros((0, a.shape[0], b.shape[1]))
    end = ends[-1] if ends else 0
    if dims == (2, 3):
        parts = [matmul(a[low:high], b[i]) for i, (low, high) in enumerate(spans)]
        return cat([*parts, a.new_zeros((total - end, b.shape[-1]))])
    parts = [matmul(a[i], b[:, low:high]) for i, (low, high) in enumerate(spans)]
    return cat([*parts, a.new_zeros((a.shape[1], total - end))], 1)
