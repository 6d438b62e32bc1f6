"""Tables of programs whose maps are joined: the groups of the passes as kernels.

Note [tables that come later]
A kernel takes tens of milliseconds to compile, so a program runs by its first table, one launch for
each form, at once. When it has run a few times, a thread runs the passes, compiles what they ask
for and lays out a second table, which has its own block of memory and its own words. The program
takes it over between two calls. Both give the same bits, so nobody sees it.

The thread is a daemon and holds no lock of the program. It ends when its table is there, or with
an error, after which the first table stays: there is nothing that it waits for but the compiler,
whose lock is released after each kernel (Note [lifetime] of the compiler, which is also why it may
die at exit or in a fork). It is started at most once for each program.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ...kernel.ir import STREAM
from ..program.graph import Launched, Piece, Recording
from ..program.passes import Group, Passed, passed, settled
from .forms import maps
from .table import Table


def joined(table: Table, fixed: list[int], movable: list[int]) -> tuple[Table | None, Passed]:
    """A table that does the same with fewer launches, if there is one; and what was done."""
    recording = table.recording
    found = passed(recording, [*fixed, *movable])
    if not found.dead and not found.groups:
        return None, found
    inside, still = set(table.inside), set(fixed)
    steps = [
        _launched(s, recording, inside, still) if s.__class__ is Group else s
        for s in found.recording.steps
    ]
    made = Table(settled(found.recording, steps, table.inside), table.cpu, fixed, movable)
    made.held += table.held
    return made, found


def _launched(group: Group, recording: Recording, inside: set[int], still: set[int]) -> Launched:
    """A group as a launch."""
    ins = [_like(p, recording) for p in group.ins]
    outs = [_like(p, recording) for p in group.outs]
    dtypes = tuple([p.dtype for p in group.outs])
    plan = maps._make([*ins, *group.numbers, *outs], group.exprs, dtypes, len(outs))
    launch = plan.launch
    if plan.stream is not None and _may_stream(group, recording, inside, still):
        launch = plan.stream
    kernel = launch.kernel
    kinds = kernel.kinds[1 + launch.buffers + len(launch.ints) :]
    where = (kernel.name, kernel.address, group.pool)
    writes = frozenset([p.store for p in group.outs])
    pieces = (*group.outs, *group.ins)
    return Launched(*where, pieces, launch.ints, group.numbers, kinds, None, None, writes)


def _like(p: Piece, recording: Recording) -> Any:
    """An array of this layout, whose elements nobody may look at."""
    size = max(recording.stores[p.store].nbytes, 1)
    buffer: Any = (ctypes.c_char * size).from_address(recording.stores[p.store].address or 64)
    return np.ndarray(p.shape, p.dtype, buffer, p.offset, p.strides)


def _may_stream(group: Group, recording: Recording, inside: set[int], still: set[int]) -> bool:
    """Whether results begin whole lines in every call, and are no operands."""
    read = {p.store for p in group.ins}
    for p in group.outs:
        begin = 0 if p.store in inside else recording.stores[p.store].address
        moves = p.store not in inside and p.store not in still
        if moves or (begin + p.offset) % STREAM or p.store in read:
            return False
    return True
