"""Samples for `undertow.ops.shape.raw_memory`, whose elements may be anything."""

from __future__ import annotations

from op_samples import Bad, S, op

op(
    "empty_strided",
    None,
    [],
    bad=[Bad(S((2, 3), (1,)), ValueError, r"\[empty_strided\] takes as many strides")],
    torch=None,
)
op(
    "empty_permuted",
    None,
    [],
    bad=[Bad(S((2, 3), (0, 0)), ValueError, r"\[empty_permuted\] physical_layout names")],
    torch=None,
)
