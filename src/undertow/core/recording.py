"""Whoever records what a call does is told here of what no form shows.

That is: which tensors were there before, leaves that get a gradient, random numbers that are drawn,
and what library code changes on the host. `epoch` counts changes of modules, optimisers, hooks and
settings: as long as it stands still, none of them needs to be looked at again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import get_ident
from typing import Any

# Empty as a rule, so that asking costs next to nothing.
RECORDERS: list[Any] = []


class Epoch:
    """A count of changes."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


epoch = Epoch()


def changed() -> None:
    """Count a change of something that programs may depend on."""
    epoch.value += 1


def recorder() -> Any:
    """Who records on this thread; None if nobody does."""
    for found in RECORDERS:
        if found.thread == get_ident() and not found.hosting:
            return found
    return None


def touched(leaf: Any) -> None:
    """Tell a recorder that somebody looks at a leaf's gradient, or sets it."""
    found = recorder()
    if found is not None:
        found.leaf(leaf)


def refuse(why: str) -> None:
    """Tell a recorder of something that a program would not do."""
    found = recorder()
    if found is not None:
        found.refuse(why)


def told(act: Callable[..., Any], *args: Any) -> bool:
    """Have a recorder call a function that changes the host, now and in each call of its program.

    False if nobody records here: then nothing has happened.
    """
    found = recorder() if RECORDERS else None
    if found is None:
        return False
    found.host(partial(act, *args))
    return True
