"""Whose fault a TypeError is: the caller's, whose argument it speaks of, or the op's own."""

from __future__ import annotations

import dis
import re
from collections.abc import Iterable, Iterator
from types import CodeType, TracebackType
from typing import Any

from .foreign import is_foreign
from .tensor import Tensor

_HOME = __package__.partition(".")[0]


def about_argument(error: Exception, arguments: Iterable[Any]) -> bool:
    """Whether a TypeError or AttributeError speaks of one of the arguments.

    An AttributeError says which object lacked the attribute. A TypeError is about an argument when
    the expression that failed reads it and the message names its type or shows it. A tensor is
    what every op expects, so it is never to blame.
    """
    suspects = {id(v): v for v in _parts(arguments) if not isinstance(v, Tensor)}
    if isinstance(error, AttributeError):
        return id(error.obj) in suspects
    read = [suspects[id(v)] for v in _read_at(error.__traceback__) if id(v) in suspects]
    return any(_named(v, str(error)) for v in read)


def _parts(values: Iterable[Any]) -> Iterator[Any]:
    """The values, and what lists, tuples and dictionaries among them hold."""
    for value in values:
        yield value
        if isinstance(value, (list, tuple)):
            yield from _parts(value)
        elif isinstance(value, dict):
            yield from _parts(value.values())


def _named(value: Any, message: str) -> bool:
    """Whether the message has the value's type, as Python or NumPy says it, or quotes the value."""
    kind = "ndarray|arrays" if is_foreign(value) else re.escape(type(value).__name__)
    quoted = repr(value) if isinstance(value, str) else f"'{value!r}'"
    return quoted in message or re.search(rf"\b({kind})\b", message) is not None


def _read_at(traceback: TracebackType | None) -> list[Any]:
    """What the failing expression reads, in the innermost frame of the library."""
    innermost = None
    while traceback is not None:
        if traceback.tb_frame.f_globals.get("__name__", "").partition(".")[0] == _HOME:
            innermost = traceback
        traceback = traceback.tb_next
    if innermost is None:
        return []
    frame = innermost.tb_frame
    names = _names_at(frame.f_code, innermost.tb_lasti)
    return [frame.f_locals[name] for name in names if name in frame.f_locals]


def _names_at(code: CodeType, offset: int) -> set[str]:
    """The names loaded within the source range of the instruction at `offset`."""
    line, last, column, end = list(code.co_positions())[offset // 2]  # an instruction is two bytes
    names: set[str] = set()
    if line is None or last is None or column is None or end is None:  # -X no_debug_ranges
        return names
    for step in dis.get_instructions(code):
        at = step.positions
        if at is None or at.lineno is None or at.col_offset is None or "LOAD" not in step.opname:
            continue
        if (line, column) <= (at.lineno, at.col_offset) < (last, end):
            names.update(step.argval if isinstance(step.argval, tuple) else [str(step.argval)])
    return names
