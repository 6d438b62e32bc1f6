"""One number for all dimensions as a tuple, under the names that torch's layers import."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """A function that gives a tuple: its argument's elements, or the argument `n` times."""

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    """The elements from the last to the first, each `n` times: what `F.pad` wants of a padding."""
    return tuple(x for x in reversed(t) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix off the names in a state_dict, in place, such as "module." of a wrapped model.

    >>> state = {"module.weight": 1, "bias": 2}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'weight': 1, 'bias': 2}
    """
    changed = {name.removeprefix(prefix): value for name, value in state_dict.items()}
    state_dict.clear()
    state_dict.update(changed)
    versions = getattr(state_dict, "_metadata", None)
    if versions is not None:
        for name in list(versions):
            if name and (name == prefix.rstrip(".") or name.startswith(prefix)):
                versions[name[len(prefix) :]] = versions.pop(name)
