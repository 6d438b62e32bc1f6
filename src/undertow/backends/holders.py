"""How many hold an object: memory that nobody else holds is written into, or handed out again.

Note [holders]
CPython counts references, but which of them it counts is its own business. What is called with a
local variable has a reference of its own up to 3.13, and borrows that of the variable from 3.14 on.
So a count is asked of an item of a list or an attribute, `getrefcount(holder[i])`, never of a local
variable: the container's reference and that of the question are counted in all versions, and every
other holder, be it a variable, adds one. `_counts` tries this before anybody relies on it.
Without the interpreter's lock another thread may take hold of an object between the question and
the answer. Where counts do not tell, `getrefcount` answers that many hold everything, and nothing
is used again.
"""

from __future__ import annotations

import sys
import sysconfig
from typing import Any

_COUNT: Any = getattr(sys, "getrefcount", None)


class _Holder:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _attribute(holder: _Holder) -> int:
    return int(_COUNT(holder.value))


def _item(holder: list[Any], i: int) -> int:
    return int(_COUNT(holder[i]))


def _counts(rounds: int = 16) -> bool:
    """Whether counts are 2 for what one container holds, and one more for whoever else does.

    In several rounds, since an interpreter makes other instructions of what runs often.
    """
    for _ in range(rounds):
        alone, several = [object()], [object()]
        kept = several[0]
        again = [kept]
        held = _Holder(object())
        if (_item(alone, 0), _item(several, 0), _item(again, 0)) != (2, 4, 4):
            return False
        if _attribute(held) != 2 or _attribute(_Holder(kept)) != 5:
            return False
    return True


def refusal() -> str:
    """Why counts of references do not tell who holds an object; empty if they do."""
    if sys.implementation.name != "cpython" or _COUNT is None:
        return f"{sys.implementation.name} does not count references as CPython does"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "this build of Python may run without its lock"
    return "" if _counts() else "this Python counts references in another way"


COUNTED = not refusal()


def _many(_: Any) -> int:
    return sys.maxsize


getrefcount: Any = _COUNT if COUNTED else _many
