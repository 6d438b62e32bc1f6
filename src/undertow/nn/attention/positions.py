"""Functions of a position (batch, head, query, key) for all positions at once.

Note [all positions]
A `score_mod` or `mask_mod` is written for one position: its indices are tensors without dimensions.
Called with indices that broadcast against each other, most of them give all answers in one call. A
function that takes a tensor apart in two steps (`table[h][q - k]`) would mean something else then,
so the answers are compared with those of single positions, at corners and spread over all; where
they differ, or where the call fails, batches and heads are gone through one by one, then queries,
then keys.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from ...core.modes import no_grad
from ...core.register import FUNCTIONS
from ...core.tensor import Tensor
from ...errors import UndertowError

Sizes = tuple[int, int, int, int]
_COMPARED = 24  # positions that are looked at one by one


def at_all(fn: Callable[..., Any], sizes: Sizes, scores: Tensor | None, like: Tensor) -> Tensor:
    """`fn(scores, b, h, q, k)`, or of the indices alone, with the shape `sizes`."""
    if 0 in sizes:
        return _empty(sizes, scores, like)
    device = like.device
    indices = [FUNCTIONS["arange"](n, device=device) for n in sizes]
    for apart in (0, 2, 3):  # leading dimensions that are gone through one by one
        try:
            found = _in_parts(fn, sizes, scores, indices, apart)
        except (UndertowError, IndexError, TypeError, ValueError):
            continue
        if _agrees(fn, sizes, scores, indices, found):
            return found
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


def _places(sizes: Sizes) -> Iterator[tuple[int, ...]]:
    """Corners, then positions that are spread over all."""
    yield from itertools.islice(
        dict.fromkeys(itertools.product(*[(0, n - 1) for n in sizes])), _COMPARED // 2
    )
    for i in range(_COMPARED // 2):
        yield tuple((17 + 7919 * i * (d + 3)) % n for d, n in enumerate(sizes))


@no_grad()
def _agrees(
    fn: Callable[..., Any],
    sizes: Sizes,
    scores: Tensor | None,
    indices: list[Tensor],
    found: Tensor,
) -> bool:
    for place in _places(sizes):
        at = [x[i] for x, i in zip(indices, place, strict=True)]
        one = _call(fn, None if scores is None else scores[place], at)
        if one.numel() != 1 or one.dtype is not found.dtype:
            return False
        a, b = one.item(), found[place].item()
        if a != b and a == a and not abs(a - b) <= 1e-5 * abs(a):
            return False
    return True
