"""Binomial counts: by inversion where few successes are expected, else by rejection."""

from __future__ import annotations

import math
from typing import Any

from ...core.generator import Generator
from ...core.modes import no_grad
from ...core.register import function
from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError
from ..elementwise.comparison import where
from ..shape.joining import broadcast_tensors
from .distributions import _fresh
from .random import span

_FEW = 10.0


@function(method=False)
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """How many of `count` trials succeed, each with probability `prob`.

    >>> import undertow as ut
    >>> ut.binomial(ut.tensor([3.0, 3.0]), ut.tensor([0.0, 1.0]))
    tensor([0., 3.])
    """
    for name, t in (("count", count), ("prob", prob)):
        if not t.is_floating_point():
            raise DTypeError(f"[binomial] {name} must be floating, got {t.dtype}")
    with no_grad():
        n, p = broadcast_tensors(count.detach().double(), prob.detach().double())
        if n.numel():
            if not (span(n)[0] >= 0 and span(n)[1] < math.inf):
                raise ArgumentError(f"[binomial] count must be finite, from 0 on, got {span(n)}")
            if not (span(p)[0] >= 0 and span(p)[1] <= 1):
                raise ArgumentError(f"[binomial] prob must lie in 0 to 1, got {span(p)}")
        rarer = where(p > 0.5, 1 - p, p)
        few = n * rarer < _FEW
        drawn = _by_inversion(where(few, n, 1.0), where(few, rarer, 0.5), generator)
        if n.numel() and not bool(few.all()):
            safe = where(few, 100.0, n), where(few, 0.5, rarer)
            drawn = where(few, drawn, _by_rejection(*safe, generator))
        return where(p > 0.5, n - drawn, drawn).to(count.dtype)


def _by_inversion(n: Tensor, p: Tensor, generator: Any) -> Tensor:
    """Count up until the cumulated probability passes a uniform number."""
    uniform = _fresh(n, generator)
    term = (n * (-p).log1p()).exp()
    ratio = p / (1 - p)
    total, found = term, n * 0
    for k in range(200):  # with ten successes expected the terms vanish long before
        beyond = (uniform > total) & (found < n)
        if not n.numel() or not bool(beyond.any()):
            break
        found = found + beyond.to(n.dtype)
        term = term * ratio * (n - k) / (k + 1)
        total = total + term
    return found


def _by_rejection(n: Tensor, p: Tensor, generator: Any) -> Tensor:
    """Hörmann's transformed rejection (BTRS, 1993), for ten expected successes and more."""
    spread = (n * p * (1 - p)).sqrt()
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    scale = (2.83 + 5.1 / b) * spread
    squeeze = 0.92 - 4.2 / b
    mode = ((n + 1) * p).floor()
    odds = (p / (1 - p)).log()
    at_mode = (mode + 1).lgamma() + (n - mode + 1).lgamma()
    found: Tensor = mode
    waiting = n == n
    while bool(waiting.any()):
        u = _fresh(n, generator) - 0.5
        v = _fresh(n, generator)
        us = 0.5 - u.abs()
        k = ((2 * a / us + b) * u + n * p + 0.5).floor()
        fast = (us >= 0.07) & (v <= squeeze)
        possible = (k >= 0) & (k <= n)
        safe = k.clamp(min=0).minimum(n)
        bound = at_mode - (safe + 1).lgamma() - (n - safe + 1).lgamma() + (safe - mode) * odds
        exact = (v * scale / (a / (us * us) + b)).log() <= bound
        accepted = waiting & possible & (fast | exact)
        found = where(accepted, k, found)
        waiting = waiting & ~accepted
    return found
