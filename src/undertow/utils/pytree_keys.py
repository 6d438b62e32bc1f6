"""Keys that lead from a tree to its leaves: `tree["a"][0].x`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["GetAttrKey", "KeyEntry", "KeyPath", "MappingKey", "SequenceKey", "key_get", "keystr"]


class KeyEntry(Protocol):
    """One step."""

    def get(self, parent: Any) -> Any:
        """What is there."""


KeyPath = tuple[KeyEntry, ...]


@dataclass(frozen=True)
class SequenceKey:
    """The step to an element of a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """The element."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """The step to a value of a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """The value."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """The step to an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """The attribute."""
        return getattr(obj, self.name)


def keystr(kp: Iterable[KeyEntry]) -> str:
    """A path as it is written.

    >>> keystr((MappingKey("a"), SequenceKey(0), GetAttrKey("x")))
    "['a'][0].x"
    """
    return "".join(map(str, kp))


def key_get(obj: Any, kp: Iterable[KeyEntry]) -> Any:
    """What stands at the end of a path.

    >>> key_get({"a": [7]}, (MappingKey("a"), SequenceKey(0)))
    7
    """
    for step in kp:
        obj = step.get(obj)
    return obj
