"""`associative_scan`: all prefixes of an associative function, in a logarithmic number of calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.register import FUNCTIONS
from ...core.tensor import Tensor
from ...func import vmap
from ...utils._pytree import tree_flatten, tree_unflatten
from .scan import along

__all__ = ["associative_scan"]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """The results of `combine_fn` over the first element, the first two, … along `dim`.

    `combine_fn` is associative; in the mode "pointwise" it also works element by element, so that
    it is called with whole slices, in "generic" it is called with single ones (by `vmap`).

    >>> import undertow as ut
    >>> ut.associative_scan(lambda a, b: a * b, ut.tensor([1.0, 2.0, 3.0, 4.0]), dim=0)
    tensor([ 1.,  2.,  6., 24.])
    """
    leaves, spec = tree_flatten(xs)
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise ValueError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}"
        )
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    if any(not isinstance(x, Tensor) for x in leaves):
        raise ValueError("xs leaves must be a Tensor")
    dim = along(leaves, dim, "associative_scan", ValueError)
    combine = vmap(combine_fn) if combine_mode == "generic" else combine_fn

    def combined(first: list[Any], second: list[Any]) -> list[Any]:
        out = combine(tree_unflatten(first, spec), tree_unflatten(second, spec))
        found, out_spec = tree_flatten(out)
        if out_spec != spec:
            raise RuntimeError(
                "[associative_scan] combine_fn must return what it is given: its containers differ"
            )
        return found

    moved = [x.movedim(dim, 0) for x in leaves]
    if reverse:
        moved = [x.flip([0]) for x in moved]
    done = _scanned(moved, combined)
    if reverse:
        done = [x.flip([0]) for x in done]
    return tree_unflatten([x.movedim(0, dim) for x in done], spec)


def _scanned(elems: list[Any], combine: Callable[[list[Any], list[Any]], list[Any]]) -> list[Any]:
    """Prefixes: neighbours are combined, scanned, and give every second result."""
    count = elems[0].shape[0]
    if count < 2:
        return elems
    odd = _scanned(combine([e[:-1:2] for e in elems], [e[1::2] for e in elems]), combine)
    if count == 2:
        even = [e[:1] for e in elems]
    else:
        before = [o[:-1] for o in odd] if count % 2 == 0 else odd
        rest = combine(before, [e[2::2] for e in elems])
        cat = FUNCTIONS["cat"]
        even = [cat([e[:1], r]) for e, r in zip(elems, rest, strict=True)]
    return [_interleaved(a, b) for a, b in zip(even, odd, strict=True)]


def _interleaved(even: Tensor, odd: Tensor) -> Tensor:
    """The first of one, the first of the other, the second of one …"""
    cat, stack = FUNCTIONS["cat"], FUNCTIONS["stack"]
    pairs: Tensor = stack([even[: odd.shape[0]], odd], 1).flatten(0, 1)
    return pairs if even.shape[0] == odd.shape[0] else cat([pairs, even[-1:]])
