"""`undertow.random`: the default generator's functions where programs look for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ..core.generator import (
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


@contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None, enabled: bool = True, *args: Any, **kwargs: Any
) -> Iterator[None]:
    """A block after which the default generator stands where it stood before.

    `devices` needs no listing: one generator serves them all.

    >>> import undertow as ut
    >>> _ = ut.manual_seed(0)
    >>> with ut.random.fork_rng():
    ...     a = ut.rand(2)
    >>> bool((ut.rand(2) == a).all())
    True
    """
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if state is not None:
            set_rng_state(state)
