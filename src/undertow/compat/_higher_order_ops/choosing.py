"""One of two results for each element of a batch."""

from __future__ import annotations

from typing import Any

from ...core.register import FUNCTIONS
from ...core.tensor import Tensor
from ...errors import ArgumentError
from ...utils._pytree import tree_flatten, tree_unflatten


def chosen(pred: Tensor, one: Any, other: Any) -> Any:
    """For each element of a batch one of two trees of tensors; anything else must be equal."""
    (first, spec), (second, same) = tree_flatten(one), tree_flatten(other)
    if spec != same:
        raise ArgumentError("[vmap] both ways must give results in the same containers")
    found = []
    for a, b in zip(first, second, strict=True):
        if isinstance(a, Tensor) or isinstance(b, Tensor):
            a = FUNCTIONS["where"](pred, a, b)
        elif a != b:
            raise ArgumentError(f"[vmap] both ways must give tensors, or equal values: {a}, {b}")
        found.append(a)
    return tree_unflatten(found, spec)
