"""Numbers before tensors: the order of arguments that torch had before 1.5 and still takes.

Optimisers of that time say `exp_avg.add_(1 - beta, grad)` and `p.addcdiv_(-step, a, b)`. A function
is asked in the new order first, so that nobody else pays for it.
"""

from __future__ import annotations

import warnings
from typing import Any

from .tensor import Tensor

_BETA_ALPHA = ("beta", "alpha")
_WORDS = {
    "add": ("alpha",),
    "sub": ("alpha",),
    "addcdiv": ("value",),
    "addcmul": ("value",),
    "addbmm": _BETA_ALPHA,
    "addmm": _BETA_ALPHA,
    "addmv": _BETA_ALPHA,
    "addr": _BETA_ALPHA,
    "baddbmm": _BETA_ALPHA,
}


def in_new_order(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """The numbers among the arguments of a call by their names; None if it is no such call.

    >>> import undertow as ut
    >>> with warnings.catch_warnings(action="ignore"):
    ...     in_new_order("add", (ut.ones(2), 0.5, ut.ones(2)), {})
    {'alpha': 0.5}
    """
    words = _WORDS.get(name, ())
    numbers = [a for a in args if isinstance(a, (int, float, complex))]
    tensors = len(args) - len(numbers)
    takes = 2 if words == ("alpha",) else 3
    if not 1 <= len(numbers) <= len(words) or tensors != takes or kwargs:
        return None
    first = words == _BETA_ALPHA or isinstance(args[0], Tensor)  # beta may stand before all
    if not first or not isinstance(args[-1], Tensor):
        return None
    found = dict(zip(words, numbers, strict=False))
    told = ", ".join(f"{word}={number}" for word, number in found.items())
    warnings.warn(
        f"This overload of {name} is deprecated: numbers before tensors; use {name}(…, {told})",
        stacklevel=3,
    )
    return found
