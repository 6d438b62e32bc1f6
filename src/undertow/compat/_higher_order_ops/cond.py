"""`cond`: one of two functions, by a truth value."""

from __future__ import annotations

from typing import Any

from ...core.batching import differs
from ...core.tensor import Tensor
from ...utils._pytree import tree_leaves
from .choosing import chosen

__all__ = ["cond"]


def cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    """`true_fn(*operands)` if `pred` holds, else `false_fn(*operands)`.

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0])
    >>> ut.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
    tensor([0.8415, 0.9093])

    Inside of `vmap` both functions are called, and each element has the result of its own.
    """
    if isinstance(pred, (bool, int, float)):
        return true_fn(*operands) if pred else false_fn(*operands)
    if not isinstance(pred, Tensor) or pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)) or not all(
        isinstance(t, Tensor) for t in tree_leaves(operands)
    ):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists "
            f"of tensor leaves, but got {operands}."
        )
    if differs(pred):  # in vmap: both, and of each element what its own value says
        return chosen(pred.reshape(()).bool(), true_fn(*operands), false_fn(*operands))
    return true_fn(*operands) if bool(pred) else false_fn(*operands)
