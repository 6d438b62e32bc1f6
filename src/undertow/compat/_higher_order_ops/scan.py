"""`scan`: a function along a dimension, each time with what it carried away from the last."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...autograd.checkpoint import checkpoint as recomputed
from ...core.register import FUNCTIONS
from ...core.tensor import Tensor
from ...utils._pytree import tree_flatten, tree_unflatten

__all__ = ["scan"]


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    *,
    dim: int = 0,
    reverse: bool = False,
    checkpoint: bool = False,
) -> tuple[Any, Any]:
    """The last carry and all outputs of `carry, out = combine_fn(carry, x)`, along `dim`.

    With `checkpoint` a backward keeps only the carries at every √n-th of n steps, and computes what
    is between them again: memory grows with √n, and the forward runs twice.

    >>> import undertow as ut
    >>> ut.scan(lambda c, x: (c + x, c * x), ut.tensor(1.0), ut.tensor([1.0, 2.0, 3.0]))
    (tensor(7.), tensor([ 1.,  4., 12.]))
    """
    leaves, spec = tree_flatten(xs)
    carried, carry_spec = tree_flatten(init)
    if not leaves:
        return init, []
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise RuntimeError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if not carried:
        raise RuntimeError("scan() operator requires init leaves.")
    for name, values in (("init", carried), ("xs", leaves)):
        for value in values:
            if not isinstance(value, Tensor):
                raise RuntimeError(f"All {name} leaves must be a Tensor but got {value}")
    dim = along(leaves, dim, "scan", RuntimeError)
    steps = [leaf.unbind(dim) for leaf in leaves]
    count = len(steps[0])
    order = list(reversed(range(count)) if reverse else range(count))
    out_spec: Any = None

    def run(places: list[int], carry: Any) -> tuple[Any, list[list[Any]]]:
        nonlocal out_spec
        found = []
        for i in places:
            given = tree_unflatten([step[i] for step in steps], spec)
            carry, out = combine_fn(carry, given)
            if tree_flatten(carry)[1] != carry_spec:
                raise RuntimeError(
                    "combine_fn must carry what init is: the containers of the carry differ"
                )
            leaves, out_spec = tree_flatten(out)
            found.append(leaves)
        return carry, found

    length = math.isqrt(count - 1) + 1 if checkpoint else count
    carry, outs = init, []
    for start in range(0, count, length):
        places = order[start : start + length]
        if checkpoint:
            carry, found = recomputed(run, places, carry, use_reentrant=False)
        else:
            carry, found = run(places, carry)
        outs += found
    if reverse:
        outs.reverse()
    if out_spec is None:
        return carry, []
    stack = FUNCTIONS["stack"]
    joined = []
    for column in zip(*outs, strict=True):
        if isinstance(column[0], Tensor):
            # An output that has not that many dimensions is stacked along the first.
            joined.append(stack(column, dim if dim <= column[0].ndim else 0))
        else:
            joined.append(column[0])
    return carry, tree_unflatten(joined, out_spec)


def along(leaves: list[Any], dim: int, name: str, error: type[Exception]) -> int:
    """`dim` counted from the front, checked for all leaves."""
    ndim = leaves[0].ndim
    if not -ndim <= dim < max(ndim, 1):
        raise IndexError(f"[{name}] a tensor of {ndim} dimensions has no dimension {dim}")
    dim %= max(ndim, 1)
    if any(x.ndim <= dim or x.shape[dim] == 0 for x in leaves):
        raise error(
            "All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0"
        )
    if any(x.shape[dim] != leaves[0].shape[dim] for x in leaves):
        sizes = [x.shape[dim] for x in leaves]
        raise error(f"[{name}] all xs leaves must have one size in dimension {dim}, got {sizes}")
    return dim
