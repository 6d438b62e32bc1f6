"""Reductions as kernels: choose, lay out and call.

The sizes of blocks and pieces depend on the operands alone, never on the number of threads, so that
neither do results; see the notes of kernel/reductions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....kernel.accumulators import LAST, POSITIONS, kept_types
from ....kernel.expr import Expr, arg, operations, trace
from ....kernel.layout import Sizes, row_major, some
from ....kernel.lower import NotCompiled
from ....kernel.maps import Operand
from ....kernel.reductions import Loops, reduce_function
from ....shapes import reduced_shape
from ..calls.launch import Launch, Plan, Room, plan_of, planned, run
from ..calls.layouts import (
    compute_type,
    known,
    lay_out,
    numpy_name,
    paired_type,
    result_type,
    scalar_type,
    typed,
    with_numbers,
)
from ..codegen.kernels import QUICK, kernel

_ndarray = np.ndarray
BLOCK = 8192  # elements of short rows that one block takes together, about
PIECE = 16384  # elements of a long row that one block takes
FEW = 64  # results: so many occupy all threads, so that a row need not be divided between them
STRIP = 1024  # columns that are accumulated together: they stay in the first cache
TALL = 128, 2048  # rows in a piece of columns, at least and at most
AREA = 1 << 17  # elements of a piece of columns, about
SHORT = 32  # rows that are walked down column by column
NARROW = 16  # elements of a row that are too few for lanes

_IDENTITY = arg(0)
_DIFFERENCE = trace(lambda a, b: a - b, 2)


def run_reduce(kind: str, x: Any, dims: Sizes, keepdim: bool) -> Any | None:
    """The form `reduce`; None if there is no kernel for it."""
    if kind == "squares":  # see Note [shifted squares] of kernel/accumulators
        if x.dtype.kind == "f" and x.dtype.itemsize == 8:
            near = run_map_reduce("mean", _IDENTITY, (x,), dims, True, x.dtype)
        else:
            near = x[tuple([slice(0, 1) if d in dims else slice(None) for d in range(x.ndim)])]
        return run_map_reduce(kind, _DIFFERENCE, (x, near), dims, keepdim, x.dtype)
    plan = plan_of(_make, (x,), kind, _IDENTITY, dims, keepdim, x.dtype)
    if not plan:
        return None
    found = run(plan, (x,))
    return found[0] if len(found) == 1 else tuple(found)


def run_map_reduce(
    kind: str, expr: Expr, operands: Sequence[Any], dims: Sizes, keepdim: bool, dtype: Any
) -> Any | None:
    """The form `map_reduce`; None if there is no kernel for it."""
    plan = plan_of(_make, operands, kind, expr, dims, keepdim, dtype)
    if not plan:
        return None
    arrays = [o for o in operands if o.__class__ is _ndarray]
    found = run(plan, arrays, [o for o in operands if o.__class__ is not _ndarray])
    return found[0] if len(found) == 1 else tuple(found)


def _make(
    operands: Sequence[Any], kind: str, expr: Expr, dims: Sizes, keepdim: bool, dtype: Any
) -> Plan:
    """The plan for operands like these."""
    shape, types, steps = lay_out([o for o in operands if o.__class__ is _ndarray], paired_type)
    compute = compute_type(operands, types)
    element = scalar_type(result_type(dtype, paired_type))
    if kind == "squares":
        compute = element = "f64"
    dtypes = _results(kind, np.dtype(dtype), shape[dims[0]] if dims else 1)
    layout = _lay_out(shape, dims, steps, row_major(reduced_shape(shape, dims, True)))
    cut = _cut(layout)
    at = known([k[-1] if layout.columns else r[-1] for k, r in layout.steps])
    inputs = with_numbers(operands, typed(types, at), compute)
    last = known(layout.out[-1:])[0] if layout.columns else None
    outs = [Operand(paired_type(t), last) for t in dtypes]
    call = kernel("reduce", reduce_function, kind, expr, inputs, compute, element, outs, cut.loops)
    ints = [*layout.kept, *layout.reduced, cut.piece, cut.together, cut.strip]
    ints += layout.out if last is None else layout.out[:-1]
    for (k, r), step in zip(layout.steps, at, strict=True):
        ints += k[:-1] if layout.columns and step is not None else k
        ints += r[:-1] if not layout.columns and step is not None else r
    out_shape = reduced_shape(shape, dims, keepdim)
    scratch = [
        Room((cut.parts,), np.dtype(numpy_name(t))) for t in kept_types(kind, element) if cut.parts
    ]
    size, buffers = math.prod(shape), len(dtypes) + len(scratch) + len(types)
    launch = Launch(call, buffers, ints, size >= QUICK, size * (1 + operations(expr)))
    return planned(launch, [Room(out_shape, t) for t in dtypes], scratch)


def _results(kind: str, dtype: Any, length: int) -> list[Any]:
    """The dtypes of the results, of which positions are looked for among `length` elements."""
    if kind in ("any", "all"):
        return [np.dtype(bool)]
    if kind not in POSITIONS:
        return [dtype]
    if length >= LAST:
        raise NotCompiled("too many elements to count")
    return [*([dtype] if kind.startswith("first") else []), np.dtype(np.int64)]


class _Layout(NamedTuple):
    """The dimensions of a reduction; see Note [rows and columns] of kernel/reductions."""

    kept: Sizes
    reduced: Sizes
    out: Sizes  # kept steps
    steps: list[tuple[Sizes, Sizes]]  # each operand's kept and reduced ones
    columns: bool


def _lay_out(shape: Sizes, dims: Sizes, steps: Sequence[Sizes], out: Sizes) -> _Layout:
    # The operand with the most elements of its own decides on the order.
    own = [math.prod(n for n, s in zip(shape, st, strict=True) if s) for st in steps]
    lead = own.index(max(own))
    order = [lead, *(i for i in range(len(steps)) if i != lead)]
    inner = [d for d in range(len(shape)) if d in dims]
    outer = [d for d in range(len(shape)) if d not in dims]
    kept, outer_steps = some(shape, outer, [*(steps[i] for i in order), out])
    reduced, inner_steps = some(shape, inner, [steps[i] for i in order])
    columns = _rank(kept[-1], outer_steps[0][-1]) < _rank(reduced[-1], inner_steps[0][-1])
    if reduced[-1] < NARROW and kept[-1] >= 4 * NARROW:
        columns = True
    pairs = {i: (outer_steps[at], inner_steps[at]) for at, i in enumerate(order)}
    return _Layout(kept, reduced, outer_steps[-1], [pairs[i] for i in range(len(steps))], columns)


class _Cut(NamedTuple):
    """How the elements are cut into blocks; see Note [pieces] of kernel/reductions."""

    loops: Loops
    piece: int  # of the dimension that is cut
    together: int  # kept rows of a block
    strip: int
    parts: int  # that are kept, and combined in the end; 0: there are no pieces


def _cut(layout: _Layout) -> _Cut:
    whole, results = math.prod(layout.reduced), math.prod(layout.kept)
    strip = min(layout.kept[-1], STRIP)
    if layout.columns:
        tall = min(max(AREA // strip, TALL[0]), TALL[1])
        pieces = whole > SHORT
        together = max(1, BLOCK // (whole * strip))
    else:
        tall = PIECE
        pieces = whole > PIECE and results < FEW
        together = max(1, BLOCK // whole)
    # The dimension to cut is the outermost of which one step is not too much.
    fit = [d for d, size in enumerate(layout.reduced) if whole <= tall * size]
    split = fit[0] if fit else layout.reduced.index(max(layout.reduced))
    piece = max(1, tall * layout.reduced[split] // whole)
    parts = -(-layout.reduced[split] // piece) * results if pieces else 0
    loops = Loops(layout.columns, pieces, len(layout.kept), len(layout.reduced), split)
    return _Cut(loops, piece, together, strip, parts)


def _rank(size: int, step: int) -> tuple[int, int]:
    """How well lanes run along a dimension: best if elements lie together."""
    return (3 if size == 1 else 0 if step == 1 else 1 if step == 0 else 2), abs(step)
