"""Smaller cases that fail as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from .case import Case, Line


def shrink(case: Case, fails: Callable[[Case], bool], patience: int = 400) -> Case:
    """The smallest failing case found in so many attempts: fewer lines and leaves, lower orders."""
    attempts = iter(range(patience))
    while True:
        for smaller in reductions(case):
            if next(attempts, None) is None:
                return case
            if fails(smaller):
                case = smaller
                break
        else:
            return case


def reductions(case: Case) -> Iterator[Case]:
    """Cases that are a little smaller."""
    if case.workers:
        yield replace(case, workers=0)
    if case.orders:
        yield replace(case, orders=case.orders - 1)
    for i in reversed(range(len(case.lines))):
        yield replace(case, lines=without(case.lines, i))
    for i, line in enumerate(case.lines):  # an operand in place of the step
        for other in (*case.leaves, *case.lines[:i]):
            if line.name[:1] == "v" and other.name and line.reads(other.name):
                stands = Line(line.name, other.name)
                if stands != line:
                    yield replace(case, lines=(*case.lines[:i], stands, *case.lines[i + 1 :]))
    for leaf in case.leaves[1:]:
        if not any(line.reads(leaf.name) for line in case.lines):
            yield replace(case, leaves=tuple(x for x in case.leaves if x is not leaf))


def without(lines: tuple[Line, ...], i: int) -> tuple[Line, ...]:
    """The lines without one of them, and without those that need it."""
    gone = {lines[i].name} - {""}
    kept = list(lines[:i])
    for line in lines[i + 1 :]:
        if any(line.reads(name) for name in gone):
            gone |= {line.name} - {""}
        else:
            kept.append(line)
    return tuple(kept)
