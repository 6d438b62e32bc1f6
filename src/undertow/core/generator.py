"""Generators: a seed, and how much of its stream of random words has been used.

The words themselves are computed by a backend from (seed, position); see `backends/philox`. One
generator therefore serves every device, with the same numbers, and threads only share a counter.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from ..backends.locks import Lock
from ..devices import Device
from ..dtypes import uint8
from ..errors import ArgumentError, DTypeError
from ..shapes import as_int
from .reading import READERS, tell
from .recording import RECORDERS, recorder, refuse
from .tensor import Tensor, wrap

_WORD = 1 << 64


class Generator:
    """A stream of random numbers of its own; pass it as `generator=`.

    >>> import undertow as ut
    >>> g = ut.Generator().manual_seed(7)
    >>> first = ut.rand(3, generator=g)
    >>> bool((ut.rand(3, generator=g.manual_seed(7)) == first).all())
    True
    """

    __slots__ = ("_lock", "_offset", "_seed", "device")

    def __init__(self, device: Any = "cpu") -> None:
        self.device = Device(device)
        self._lock = Lock()
        self._seed = 67280421310721  # torch's fixed seed of a new Generator
        self._offset = 0

    def manual_seed(self, seed: int) -> Generator:
        """Begin the stream of `seed`; returns the generator."""
        number = as_int("manual_seed", "seed", seed)
        if not -(_WORD // 2) <= number < _WORD:
            raise ArgumentError(f"[manual_seed] expects a seed of 64 bits, got {number}")
        acting = self._acting()
        self._noticed()
        with acting._lock:
            acting._seed, acting._offset = number % _WORD, 0
        return self

    def seed(self) -> int:
        """Begin the stream of a seed from the system's entropy, and return that seed."""
        number = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(number)
        return number

    def initial_seed(self) -> int:
        """The seed whose stream this is."""
        self._noticed()
        return self._acting()._seed

    def get_state(self) -> Tensor:
        """Seed and position as a uint8 tensor, for `set_state`."""
        acting = self._acting()
        self._noticed()
        with acting._lock:
            words = np.array([acting._seed, acting._offset], "<u8")
        return wrap(words.view(np.uint8))

    def set_state(self, state: Tensor) -> Generator:
        """Continue where `get_state` was called."""
        if getattr(state, "dtype", None) is not uint8 or state.shape != (16,):
            raise DTypeError("[set_state] expects the uint8 tensor that get_state returned")
        words = np.frombuffer(bytes(state.tolist()), "<u8").tolist()
        acting = self._acting()
        self._noticed()
        with acting._lock:
            acting._seed, acting._offset = words
        return self

    def clone_state(self) -> Generator:
        """A second generator at the same place."""
        return Generator(self.device).set_state(self.get_state())

    def reserve(self, count: int) -> tuple[int, int]:
        """The seed and the offset of `count` words that nobody else gets."""
        if READERS:
            tell(None)
        acting = self._acting()
        with acting._lock:
            offset = acting._offset
            acting._offset = offset + (count + 3) // 4 * 4  # the next call begins a new block
            for begun in _watching.get():
                begun.setdefault(acting, (acting._seed, offset))
            # What is drawn once more is a part of the first draw, as a program knows it.
            if RECORDERS and recorder() is not None and acting is not _stand_in.get():
                recorder().tape.draw(acting, count, acting._seed, offset)
            return acting._seed, offset

    def place(self) -> tuple[int, int]:
        """Seed and offset, for `replaying`."""
        acting = self._acting()
        with acting._lock:
            return acting._seed, acting._offset

    def _noticed(self) -> None:
        if RECORDERS:
            refuse("a generator is seeded or read inside, which a program would not do")

    def _acting(self) -> Generator:
        """Itself; the default generator has a stand-in inside `replaying`."""
        return (_stand_in.get() or self) if self is default_generator else self

    def __repr__(self) -> str:
        return f"<Generator on {self.device}, seed {self._seed}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (str(self.device), self._seed, self._offset)


def _rebuild(device: str, seed: int, offset: int) -> Generator:
    generator = Generator(device)
    generator._seed, generator._offset = seed, offset
    return generator


_stand_in: ContextVar[Generator | None] = ContextVar("undertow_generator", default=None)
default_generator = Generator()
default_generator.seed()


# Which generators were drawn from, and where each of them stood at first; one for each block.
_watching: ContextVar[tuple[dict[Generator, tuple[int, int]], ...]] = ContextVar(
    "undertow_watched_generators", default=()
)


@contextmanager
def watched() -> Iterator[dict[Generator, tuple[int, int]]]:
    """A block whose draws are noted: where each generator stood before its first one."""
    begun: dict[Generator, tuple[int, int]] = {}
    token = _watching.set((*_watching.get(), begun))
    try:
        yield begun
    finally:
        _watching.reset(token)


def rewind(begun: dict[Generator, tuple[int, int]]) -> None:
    """Put generators back to where `watched` saw them."""
    for generator, place in begun.items():
        generator._noticed()
        with generator._lock:
            generator._seed, generator._offset = place


@contextmanager
def replaying(place: tuple[int, int] | None) -> Iterator[None]:
    """Let the default generator continue from a `place` (None: as it is) in this context only.

    Other threads draw from it at the same time, and two of them may replay different states.
    """
    if place is None:
        yield
        return
    stand_in = Generator()
    stand_in._seed, stand_in._offset = place
    token = _stand_in.set(stand_in)
    try:
        yield
    finally:
        _stand_in.reset(token)


def manual_seed(seed: int) -> Generator:
    """Seed the default generator, on all devices; returns it.

    >>> import undertow as ut
    >>> _ = ut.manual_seed(0)
    >>> a = ut.rand(2)
    >>> _ = ut.manual_seed(0)
    >>> bool((ut.rand(2) == a).all())
    True
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seed the default generator from the system's entropy, and return that seed.

    >>> import undertow as ut
    >>> ut.seed() == ut.initial_seed()
    True
    """
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator.

    >>> import undertow as ut
    >>> _ = ut.manual_seed(5)
    >>> ut.initial_seed()
    5
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator as a uint8 tensor.

    >>> import undertow as ut
    >>> state = ut.get_rng_state()
    >>> a = ut.rand(2)
    >>> ut.set_rng_state(state)
    >>> bool((ut.rand(2) == a).all())
    True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Continue the default generator from a state that `get_rng_state` returned.

    >>> import undertow as ut
    >>> ut.set_rng_state(ut.get_rng_state())
    """
    default_generator.set_state(new_state)
