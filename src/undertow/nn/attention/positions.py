"""Functions of a position (batch, head, query, key) for all positions at once.

Note [all positions]
A `score_mod` or `mask_mod` is written for one position: its indices are tensors without dimensions.
Called with indices that broadcast against each other, most of them give all answers in one call. A
function that takes a tensor apart in two steps (`table[h][q - k]`), or sums without a dim, would
mean something else then, so the answers of a few positions are compared with those of each by
itself; and, if tensors that get gradients take part, once more with other elements in these: a
table of zeros gives the same answers either way, and other gradients. Where they differ, or where
the call fails, batches and heads are gone through one by one, then queries, then keys.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from ...core.dispatch import apply
from ...core.modes import current, enter, leave
from ...core.register import FUNCTIONS
from ...core.tensor import Tensor, node_of
from ...errors import UndertowError

Sizes = tuple[int, int, int, int]
_COMPARED = 2, 2, 2, 3  # places along each dimension that are looked at one by one


def at_all(fn: Callable[..., Any], sizes: Sizes, scores: Tensor | None, like: Tensor) -> Tensor:
    """`fn(scores, b, h, q, k)`, or of the indices alone, with the shape `sizes`."""
    if 0 in sizes:
        return _empty(sizes, scores, like)
    device = like.device
    indices = [FUNCTIONS["arange"](n, device=device) for n in sizes]
    for apart in (0, 2, 3):  # leading dimensions that are gone through one by one
        try:
            found = _in_parts(fn, sizes, scores, indices, apart)
            if _agrees(fn, scores, indices, found, apart):
                return found
        except (UndertowError, IndexError, TypeError, ValueError):
            continue  # an error of the function's own comes again below
    return _in_parts(fn, sizes, scores, indices, 4)


def _empty(sizes: Sizes, scores: Tensor | None, like: Tensor) -> Tensor:
    if scores is not None:
        return scores
    return FUNCTIONS["ones"](sizes, dtype="bool", device=like.device)


def _call(fn: Callable[..., Any], scores: Tensor | None, at: list[Tensor]) -> Tensor:
    return fn(*at) if scores is None else fn(scores, *at)


def _in_parts(
    fn: Callable[..., Any], sizes: Sizes, scores: Tensor | None, indices: list[Tensor], apart: int
) -> Tensor:
    """All answers, from one call for each place in the dimensions that are taken apart."""
    inner = sizes[apart:]
    shaped = [x.reshape((-1, *[1] * (3 - d))) if d >= apart else x for d, x in enumerate(indices)]
    parts = []
    for place in itertools.product(*map(range, sizes[:apart])):
        at = [x[place[d]] if d < apart else x for d, x in enumerate(shaped)]
        mine = scores[place] if scores is not None and place else scores
        parts.append(_call(fn, mine, at).expand(inner))
    return FUNCTIONS["stack"](parts).reshape(sizes) if apart else parts[0]


def _agrees(
    fn: Callable[..., Any], scores: Tensor | None, indices: list[Tensor], found: Tensor, apart: int
) -> bool:
    """Whether a few of the answers are those of single positions."""
    few = [
        x[[*dict.fromkeys((0, len(x) - 1, len(x) // 2))][:n]]
        for x, n in zip(indices, _COMPARED, strict=True)
    ]
    sizes = (len(few[0]), len(few[1]), len(few[2]), len(few[3]))
    at = tuple(x.reshape((-1, *[1] * (3 - d))) for d, x in enumerate(few))
    part = None if scores is None else scores.detach()[at]
    learned = swap = False

    def around(op: Any, inputs: Any, params: Any) -> Any:
        nonlocal learned
        learned = learned or any(map(_gets_gradients, inputs))
        token = enter(current().but(around=None))
        try:
            return apply(op, [_other(t) for t in inputs] if swap else inputs, params)
        finally:
            leave(token)

    token = enter(current().but(grad=False, around=around))
    try:
        single = _in_parts(fn, sizes, part, few, 4)
        if single.dtype is not found.dtype or not _close(found.detach()[at], single):
            return False
        if not learned:
            return True
        swap = True
        single = _in_parts(fn, sizes, part, few, 4)
        return _close(_in_parts(fn, sizes, part, few, apart), single)
    finally:
        leave(token)


def _gets_gradients(t: Any) -> bool:
    return isinstance(t, Tensor) and node_of(t) is not None


def _other(t: Any) -> Any:
    """Other elements in the place of those of a tensor that gets gradients, each its own."""
    if not _gets_gradients(t):
        return t
    return FUNCTIONS["arange"](1, t.numel() + 1, device=t.device).sin().reshape(t.shape).to(t.dtype)


def _close(a: Tensor, b: Tensor) -> bool:
    near: bool = FUNCTIONS["allclose"](a, b, 1e-5, 1e-8, True)
    return near
