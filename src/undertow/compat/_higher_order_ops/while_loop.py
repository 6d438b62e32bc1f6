"""`while_loop`: a function of some values, again and again, while another one holds of them."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...core.batching import differs
from ...core.tensor import Tensor
from ...ops.elementwise.comparison import holds
from ...utils._pytree import tree_flatten, tree_leaves, tree_map
from .choosing import chosen

__all__ = ["while_loop"]


def while_loop(cond_fn: Any, body_fn: Any, carried_inputs: Any) -> Any:
    """What `body_fn` makes of `carried_inputs` while `cond_fn` holds of them.

    >>> import undertow as ut
    >>> ut.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (ut.tensor(0), ut.ones(2)))
    (tensor(3), tensor([8., 8.]))

    Inside of `vmap` it goes on until no element does; those that are done stay as they are.
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    leaves = tree_leaves(carried_inputs)
    if not isinstance(carried_inputs, (tuple, list)) or not all(
        isinstance(t, (Tensor, int)) for t in leaves
    ):
        raise RuntimeError(
            "Expect carried_inputs to be a tuple of possibly nested dict/list/tuple that only "
            f"consists of tensor or int leaves, but got {carried_inputs}."
        )
    going = cond_fn(*carried_inputs)
    if not _holds(going):
        return tree_map(lambda t: t.clone() if isinstance(t, Tensor) else t, carried_inputs)
    carried = tuple(carried_inputs)
    _, wanted = tree_flatten(carried)
    while True:
        before = carried
        carried = body_fn(*carried)
        if not isinstance(carried, (tuple, list)):
            raise AssertionError(f"body_fn should return a tuple but got {type(carried).__name__}")
        found = tree_flatten(tuple(carried))[1]
        if found != wanted:
            raise AssertionError(
                "body_fn should return the same number of elements as carried_inputs, in the same "
                f"containers: {found.num_leaves} vs {wanted.num_leaves}"
            )
        if isinstance(going, Tensor) and differs(going):
            carried = chosen(going, tuple(carried), tuple(before))
        again = cond_fn(*carried)
        if isinstance(going, Tensor) and isinstance(again, Tensor) and differs(going):
            again = going & again
        going = again
        if not _holds(going):
            return tuple(carried)


def _holds(pred: Any) -> bool:
    """Whether to go on; in vmap, for any element."""
    if isinstance(pred, bool):
        return pred
    if isinstance(pred, Tensor) and pred.ndim == 0 and pred.dtype is dtypes.bool:
        return not holds(~pred) if differs(pred) else bool(pred)
    raise RuntimeError(f"cond_fn must return a boolean scalar tensor or a boolean but got {pred}")
