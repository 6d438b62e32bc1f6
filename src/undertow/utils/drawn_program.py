"""The boxes and arrows of a compiled program, for `ut.draw`: launches, and the memory they read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..backends.program.graph import Called, Checked, Launched, Piece, Recording, root_of
from .profiler.events import amount

_INNER = ("scratch", "table")  # memory of a launch alone


def boxes(
    recording: Recording, called: dict[str, Any], most: int
) -> tuple[list[list[str]], list[str], list[tuple[int, int]], int]:
    """For each box what it says and its kind; the arrows between them; the number of all steps.

    An arrow leads from the step that wrote a piece of memory last to one that reads it, or writes
    it again; from an argument or a tensor from outside, if no step has written it before.
    """
    names = {id(root_of(t._array)): name for name, t in called.items()}
    steps = [s for s in recording.steps if isinstance(s, (Launched, Called, Checked))]
    texts: list[list[str]] = []
    kinds: list[str] = []
    edges: set[tuple[int, int]] = set()
    last: dict[int, int] = {}  # the box that wrote a store last
    for step in steps[:most]:
        pieces = [p for p in _pieces(step) if recording.stores[p.store].origin not in _INNER]
        written = {p.store for p in step.results} if isinstance(step, Called) else set()
        if isinstance(step, Launched):
            written = set(step.writes)
        for p in pieces:
            store = recording.stores[p.store]
            if p.store not in last and store.origin in ("argument", "outer"):
                last[p.store] = len(texts)
                texts.append([_name(store, names), str(p.shape)])
                kinds.append("leaf")
        here = len(texts)
        edges |= {(last[p.store], here) for p in pieces if p.store in last}
        texts.append(_lines(step, pieces, written))
        kinds.append("op")
        for p in pieces:
            if p.store in written:
                last[p.store] = here
    return texts, kinds, sorted(edges), len(steps)


def _pieces(value: Any) -> Iterator[Piece]:
    """All pieces in a step, those of updates and of results as well."""
    if isinstance(value, Piece):
        yield value
    elif isinstance(value, Launched):
        yield from _pieces(value.rows)
        yield from value.pieces
    elif isinstance(value, tuple):  # arguments, and the other steps, which are tuples of them
        for inner in value:
            yield from _pieces(inner)


def _name(store: Any, names: dict[int, str]) -> str:
    if store.argument is not None:
        return f"argument {store.argument}"
    return names.get(id(store.held), "from outside")


def _lines(step: Any, pieces: list[Piece], written: set[int]) -> list[str]:
    """What the box of a step says."""
    out = next((p for p in pieces if p.store in written), None)
    lines = [step.name if isinstance(step, Launched) else step.form]
    if out is not None:
        lines.append(str(out.shape))
    if isinstance(step, Launched):
        moved = {p: int(np.prod(p.shape)) * np.dtype(p.dtype).itemsize for p in pieces}
        lines.append(f"{amount(sum(moved.values()), 'B', 1024)} touched")
    else:
        lines.append("asked before" if isinstance(step, Checked) else "called from Python")
    return lines
