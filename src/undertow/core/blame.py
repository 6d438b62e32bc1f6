"""Whose fault a TypeError is: the caller's, whose argument it speaks of, or the op's own."""

from __future__ import annotations

import dis
import itertools
import re
from collections.abc import Iterable, Iterator
from types import TracebackType
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
    seen = frame.f_locals
    steps = list(dis.get_instructions(frame.f_code))
    failed = list(frame.f_code.co_positions())[innermost.tb_lasti // 2]  # two bytes each
    names = _loaded(steps, failed)
    found = [seen[name] for name in names if name in seen]
    # From Python 3.12 on a comprehension has no frame of its own, and its variables are gone by
    # now: what they were is among the elements of what it runs over.
    gone = [name for name in names.intersection(frame.f_code.co_varnames) if name not in seen]
    for name in gone:
        over = _run_over(steps, name)
        found.extend(_parts([seen[n] for n in over if n in seen]))
        gone.extend(n for n in over - set(gone) if n in frame.f_code.co_varnames and n not in seen)
    return found


def _run_over(steps: list[dis.Instruction], name: str) -> set[str]:
    """The names in what loops over whose elements have this name."""
    names: set[str] = set()
    span: Any = None  # of the loop that stores its element now
    for step in steps:
        if step.opname == "FOR_ITER":
            span = step.positions
        elif not step.opname.startswith(("STORE_FAST", "UNPACK_")):
            span = None
        elif span is not None and name in _argument(step):
            names |= _loaded(steps, span)
    return names


def _loaded(steps: list[dis.Instruction], span: Any) -> set[str]:
    """The names that instructions within a range of the source load."""
    names: set[str] = set()
    if None in span:  # -X no_debug_ranges
        return names
    for step, after in itertools.pairwise(steps):
        if "LOAD" not in step.opname:
            continue
        first, *second = _argument(step)
        if _begins_in(step, span) and not step.opname.startswith("STORE"):
            names.add(first)
        # An instruction that is two in one, from 3.13 on, tells where the first stands. What comes
        # after it is in the expression that reads the second.
        if second and (_begins_in(step, span) or _begins_in(after, span)):
            names.update(second)
    return names


def _begins_in(step: dis.Instruction, span: Any) -> bool:
    line, last, column, end = span
    at = step.positions
    if at is None or at.lineno is None or at.col_offset is None:
        return False
    return bool((line, column) <= (at.lineno, at.col_offset) < (last, end))


def _argument(step: dis.Instruction) -> tuple[str, ...]:
    """The names that an instruction is about: some are two in one."""
    found = step.argval  # of LOAD_CONST, too, this may be a tuple
    return found if isinstance(found, tuple) and "FAST" in step.opname else (str(found),)
