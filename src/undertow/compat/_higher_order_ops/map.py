"""`map`: a function of each element along the first dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.register import FUNCTIONS
from ...core.tensor import Tensor
from ...utils._pytree import tree_flatten, tree_unflatten

__all__ = ["map"]


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """`f(x, *args)` for each `x` along the first dimension of `xs`, stacked.

    >>> import undertow as ut
    >>> ut.map(lambda x, y: x.sum() * y, ut.ones(2, 3), ut.tensor(2.0))
    tensor([6., 6.])
    """
    leaves, spec = tree_flatten(xs)
    if not leaves or not all(isinstance(t, Tensor) for t in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    shapes = [t.shape for t in leaves]
    if any(not shape for shape in shapes) or shapes[0][0] == 0:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    if any(shape[0] != shapes[0][0] for shape in shapes):
        raise RuntimeError(
            f"Leading dimensions of mapped xs must be consistent. Got shapes {shapes}."
        )
    results = []
    out_spec = None
    for values in zip(*[t.unbind(0) for t in leaves], strict=True):
        found, out_spec = tree_flatten(f(tree_unflatten(values, spec), *args))
        results.append(found)
    assert out_spec is not None
    stacked = [
        FUNCTIONS["stack"](column) if isinstance(column[0], Tensor) else column[0]
        for column in zip(*results, strict=True)
    ]
    return tree_unflatten(stacked, out_spec)
