"""Hooks: what users have hung on tensors and nodes, run around a node's rule."""

from __future__ import annotations

from typing import Any

from ..core.dispatch import apply, cast, sum_to
from ..core.node import Node
from ..core.op import OPS
from ..core.overriding import of_user
from ..core.tensor import Tensor, node_of
from ..dtypes import as_dtype
from ..errors import GradientError


def copied(grad: Tensor) -> Tensor:
    """A gradient in memory of its own."""
    return apply(OPS["clone"], (grad,))


def summed(a: Any, b: Tensor) -> Tensor:
    """The sum of two gradients; one that `.grad` has may be sparse, and knows how to add."""
    return apply(OPS["add"], (a, b)) if isinstance(a, Tensor) else a + b


def run_tensor_hooks(node: Node, grads: list[Any], private: list[bool]) -> bool:
    """Run the hooks on the node's output gradients, then fill `.grad` of retained tensors.

    A hook may change its gradient in place, so nobody else may hold the same memory: `private`
    tells of which gradients that is known, and all others are copied first. As in torch, the hooks
    of one output are given the same object until one of them returns another, so that they can
    leave each other notes on it, and those of an output that no gradient reached are given None.

    Returns whether one of them gave a gradient without a history.
    """
    hooks = node.hooks
    assert hooks is not None
    cut = False
    for out, table in list(hooks.tensor.items()):
        theirs = private[out]
        for hook in list(table.values()):
            if not theirs and grads[out] is not None:
                grads[out] = copied(grads[out])
            private[out] = False  # the hook may keep it
            changed = of_user(hook, grads[out])
            theirs = changed is None
            if changed is not None:
                _check_hooked(node, out, changed, "a tensor hook")
                cut = cut or node_of(changed) is None
                grads[out] = changed
    for out, reference in hooks.capture.items():
        tensor = reference()
        if tensor is not None and grads[out] is not None:
            old = tensor._grad
            tensor._grad = copied(grads[out]) if old is None else summed(old, grads[out])
    return cut


def cuts(before: Any, after: Any) -> bool:
    """Whether a gradient that hooks gave for another has no history."""
    return any(
        new is not old and isinstance(new, Tensor) and node_of(new) is None
        for old, new in zip(before, after, strict=True)
    )


def run_prehooks(node: Node, grads: list[Any]) -> list[Any]:
    """The gradients of the node's outputs as its prehooks leave them."""
    assert node.hooks is not None
    for hook in list(node.hooks.pre.values()):
        before = _versions(grads)
        changed = of_user(hook, tuple(grads))
        _check_unchanged(node, grads, before)
        if changed is not None:
            grads = check_returned(node, changed, len(grads), "a prehook", "outputs")
            for out, grad in enumerate(grads):
                _check_hooked(node, out, grad, "a prehook")
    return grads


def _versions(grads: Any) -> list[int]:
    return [g._version if isinstance(g, Tensor) else 0 for g in grads]


def _check_unchanged(node: Node, grads: Any, before: list[int]) -> None:
    """A gradient may be on its way to several nodes, so a hook must not change it in place."""
    if _versions(grads) != before:
        raise GradientError(
            f"[{node.name()}] a hook changed a gradient in place; return a new one instead"
        )


def _check_hooked(node: Node, out: int, grad: Any, who: str) -> None:
    """A gradient that a hook returned must fit the output that it is for."""
    shape, dtype = node.metas[out]
    array = getattr(grad, "_array", None)
    if grad is not None and (array is None or array.shape != shape or array.dtype != dtype):
        raise wrong_gradient(node, grad, shape, dtype, who)


def run_posthooks(node: Node, results: Any, grads: list[Any]) -> Any:
    """The gradients of the node's inputs as its hooks leave them."""
    assert node.hooks is not None
    count = len(results)
    for hook in list(node.hooks.post.values()):
        before = _versions((*results, *grads))
        changed = of_user(hook, tuple(results), tuple(grads))
        _check_unchanged(node, (*results, *grads), before)
        if changed is not None:
            results = check_returned(node, changed, count, "a hook", "inputs")
    return results


def check_returned(node: Node, changed: Any, count: int, who: str, what: str) -> list[Any]:
    """What a hook returned, as a list of as many gradients as there must be."""
    grads = list(changed) if isinstance(changed, (tuple, list)) else [changed]
    if len(grads) != count:
        raise GradientError(
            f"[{node.name()}] {who} returned {len(grads)} gradients for {count} {what}"
        )
    return grads


def adapted(node: Node, result: Any, shape: Any, dtype: Any) -> Tensor:
    """A gradient of a custom function that is broadcast or of another dtype, summed and cast.

    As in torch, which does so for every node; a rule of an op of ours that does not fit is wrong,
    and so is a complex gradient of a real input.
    """
    real = isinstance(result, Tensor) and (dtype.kind == "c" or not result.is_complex())
    if node.adapts and real and len(shape) <= result.ndim:
        ends = result.shape[result.ndim - len(shape) :]
        if all(a in (1, b) for a, b in zip(shape, ends, strict=True)):
            return cast(sum_to(result, shape), as_dtype(dtype))
    raise wrong_gradient(node, result, shape, dtype)


def wrong_gradient(
    node: Node, result: Any, shape: Any, dtype: Any, who: str = "its rule"
) -> Exception:
    """The error for a gradient that does not fit."""
    found = (
        f"shape {result.shape} and {result.dtype}"
        if isinstance(result, Tensor)
        else f"type {type(result).__name__}"
    )
    return GradientError(
        f"[{node.name()}] {who} returned a gradient of {found}; expected a Tensor of shape "
        f"{tuple(shape)} and undertow.{dtype.name}"
    )
