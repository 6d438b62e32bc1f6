"""The version of torch that the names here follow, for programs that compare it."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["TorchVersion"]

_FORM = re.compile(
    r"v?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<early>a|alpha|b|beta|c|rc|pre|preview)[-_.]?(?P<nth>\d*))?"
    r"(?:[-_.]?(?P<post>post|rev|r)[-_.]?(?P<after>\d*))?"
    r"(?:[-_.]?(?P<dev>dev)[-_.]?(?P<day>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?",
    re.IGNORECASE,
)
_LAST = float("inf")


class TorchVersion(str):
    """A version as text that compares by its numbers: with text, tuples and `packaging`'s versions.

    >>> from undertow.torch_version import TorchVersion
    >>> here = TorchVersion("2.13.0+undertow")
    >>> here >= "2.9", here < (3, 0), here == "2.13.0", here > "2.13.0rc1"
    (True, True, False, True)
    """

    __slots__ = ()

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, "__lt__")

    def __le__(self, other: Any) -> Any:
        return self._compare(other, "__le__")

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, "__gt__")

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, "__ge__")

    def __eq__(self, other: object) -> Any:
        return self._compare(other, "__eq__")

    def __ne__(self, other: object) -> Any:
        return self._compare(other, "__ne__")

    __hash__ = str.__hash__

    def _compare(self, other: Any, how: str) -> Any:
        if isinstance(other, (tuple, list)):
            other = ".".join(map(str, other))
        mine, theirs = _key(str(self)), _key(str(other))
        if mine is None or theirs is None:  # as text, where one is no version
            return getattr(str, how)(self, other)
        return getattr(mine, how)(theirs)


def _key(text: str) -> tuple[Any, ...] | None:
    """What versions are sorted by (PEP 440); None for text that is no version."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        return None
    numbers = [int(n) for n in found["release"].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    if found["early"]:
        first = found["early"].lower()[0]
        early: tuple[Any, ...] = ("c" if first in "rp" else first, int(found["nth"] or 0))
    else:  # a release in the making comes before its first trials, a release after its last
        early = ("",) if found["dev"] and not found["post"] else ("z",)
    after = int(found["after"] or 0) if found["post"] else -1
    day = int(found["day"] or 0) if found["dev"] else _LAST
    local = re.split(r"[-_.]", found["local"].lower()) if found["local"] else []
    parts = tuple((1, int(p), "") if p.isdigit() else (0, 0, p) for p in local)
    return tuple(numbers), early, after, day, parts
