"""Reductions as kernels: choose, lay out and call.

The sizes of blocks and pieces depend on the operands alone, never on the number of threads, so that
neither do results; see the notes of kernel/reductions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...kernel.accumulators import LAST, POSITIONS, kept_types
from ...kernel.expr import Expr, arg, trace
from ...kernel.ir import Function
from ...kernel.layout import Sizes, coalesce
from ...kernel.lower import NotCompiled
from ...kernel.maps import NUMBER, Operand
from ...kernel.reductions import Loops, reduce_function
from ...shapes import reduced_shape
from . import pool
from .kernels import address, kernel, type_of
from .maps import aligned, steps_of

_ndarray = np.ndarray
_REMEMBERED = 4096
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
_kernels: dict[Any, Callable[..., None] | None] = {}
_plans: dict[Any, tuple[_Plan | None, Expr]] = {}


class _Plan(NamedTuple):
    """One call's layout: everything but the addresses and the numbers."""

    call: Callable[..., None]
    shape: Sizes
    dtypes: list[Any]
    scratch: list[tuple[int, str]]
    ints: list[int]


def run_reduce(kind: str, x: Any, dims: Sizes, keepdim: bool) -> Any | None:
    """The form `reduce`; None if there is no kernel for it."""
    if kind == "squares":  # see Note [shifted squares] of kernel/accumulators
        if x.dtype.kind == "f" and x.dtype.itemsize == 8:
            near = run_map_reduce("mean", _IDENTITY, (x,), dims, True, x.dtype)
        else:
            near = x[tuple([slice(0, 1) if d in dims else slice(None) for d in range(x.ndim)])]
        return run_map_reduce(kind, _DIFFERENCE, (x, near), dims, keepdim, x.dtype)
    return run_map_reduce(kind, _IDENTITY, (x,), dims, keepdim, x.dtype)


def run_map_reduce(
    kind: str, expr: Expr, operands: Sequence[Any], dims: Sizes, keepdim: bool, dtype: Any
) -> Any | None:
    """The form `map_reduce`; None if there is no kernel for it."""
    key: list[Any] = [kind, id(expr), dims, keepdim, dtype]
    arrays, numbers = [], []
    for o in operands:
        if o.__class__ is _ndarray:
            key.append((o.shape, o.strides, o.dtype))
            arrays.append(o)
        else:
            key.append(o.__class__)
            numbers.append(o)
    signature = tuple(key)
    found = _plans.get(signature)
    if found is None:
        if len(_plans) >= _REMEMBERED:
            _plans.clear()
        # The expression stays alive with its plan, so that its identity stays its own.
        found = _plans[signature] = (_make(kind, expr, operands, dims, keepdim, dtype), expr)
    plan = found[0]
    if plan is None:
        return None
    made = [np.empty(plan.shape, t) for t in plan.dtypes]
    made += [np.empty(count, t) for count, t in plan.scratch]
    plan.call(pool.pointer(), *map(address, made), *map(address, arrays), *plan.ints, *numbers)
    return made[0] if len(plan.dtypes) == 1 else tuple(made[: len(plan.dtypes)])


def _make(
    kind: str, expr: Expr, operands: Sequence[Any], dims: Sizes, keepdim: bool, dtype: Any
) -> _Plan | None:
    """The plan for operands like these; None if there is no kernel for them."""
    arrays = [o for o in operands if o.__class__ is _ndarray]
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    types = [type_of(a.dtype) for a in arrays]
    element = scalar_type(type_of(np.dtype(dtype)))
    if 0 in shape or "" in types or element == "" or not all(map(aligned, arrays)):
        return None
    dtypes = [np.dtype(bool if kind in ("any", "all") else dtype)]
    if kind in POSITIONS:
        if shape[dims[0]] >= LAST:
            return None
        dtypes = [*(dtypes if kind.startswith("first") else []), np.dtype(np.int64)]
    compute = scalar_type(next((t for t in types if t != "bool"), "bool"))
    if compute == "bool" and len(arrays) < len(operands):
        return None  # a number beside nothing that tells its type
    if kind == "squares":
        compute = element = "f64"
    out_shape = reduced_shape(shape, dims, True)
    steps = [steps_of(a, shape) for a in arrays]
    layout = _lay_out(shape, dims, steps, steps_of(np.empty(out_shape, "b"), shape))
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
    split = _split(layout.reduced, tall)
    piece = max(1, tall * layout.reduced[split] // whole)
    loops = Loops(layout.columns, pieces, len(layout.kept), len(layout.reduced), split)
    at = [k[-1] if layout.columns else r[-1] for k, r in layout.steps]
    known = [s if s in (0, 1) else None for s in at]
    listed = iter([Operand(t, s) for t, s in zip(types, known, strict=True)])
    number = Operand(compute, NUMBER)
    inputs = [next(listed) if o.__class__ is _ndarray else number for o in operands]
    last = layout.out[-1] if layout.columns and layout.out[-1] in (0, 1) else None
    outs = [Operand(type_of(t), last) for t in dtypes]
    call = _kernel(kind, expr, inputs, compute, element, outs, loops)
    if call is None:
        return None
    ints = [*layout.kept, *layout.reduced, piece, together, strip]
    ints += layout.out if last is None else layout.out[:-1]
    for (k, r), step in zip(layout.steps, known, strict=True):
        ints += k[:-1] if layout.columns and step is not None else k
        ints += r[:-1] if not layout.columns and step is not None else r
    count = -(-layout.reduced[split] // piece) * results
    scratch = [(count, numpy_name(t)) for t in kept_types(kind, element)] if pieces else []
    return _Plan(call, reduced_shape(shape, dims, keepdim), dtypes, scratch, ints)


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
    kept, outer_steps = _some(shape, outer, [*(steps[i] for i in order), out])
    reduced, inner_steps = _some(shape, inner, [steps[i] for i in order])
    columns = _rank(kept[-1], outer_steps[0][-1]) < _rank(reduced[-1], inner_steps[0][-1])
    if reduced[-1] < NARROW and kept[-1] >= 4 * NARROW:
        columns = True
    pairs = {i: (outer_steps[at], inner_steps[at]) for at, i in enumerate(order)}
    return _Layout(kept, reduced, outer_steps[-1], [pairs[i] for i in range(len(steps))], columns)


def _split(reduced: Sizes, most: int) -> int:
    """The dimension to cut into pieces: the outermost of which one step is not too much."""
    whole = math.prod(reduced)
    fit = [d for d, size in enumerate(reduced) if whole <= most * size]
    return fit[0] if fit else max(range(len(reduced)), key=lambda d: reduced[d])


def _some(shape: Sizes, dims: Sequence[int], steps: Sequence[Sizes]) -> tuple[Sizes, list[Sizes]]:
    return coalesce(tuple([shape[d] for d in dims]), [tuple([s[d] for d in dims]) for s in steps])


def _rank(size: int, step: int) -> tuple[int, int]:
    """How well lanes run along a dimension: best if elements lie together."""
    return (3 if size == 1 else 0 if step == 1 else 1 if step == 0 else 2), abs(step)


def _kernel(
    kind: str,
    expr: Expr,
    inputs: list[Operand],
    compute: str,
    element: str,
    outs: list[Operand],
    loops: Loops,
) -> Callable[..., None] | None:
    key = (kind, str(expr), tuple(inputs), compute, element, tuple(outs), loops)
    if key not in _kernels:

        def make(name: str) -> Function:
            return reduce_function(name, kind, expr, inputs, compute, element, outs, loops)

        try:
            _kernels[key] = kernel("reduce", key, make)
        except NotCompiled:
            _kernels[key] = None
    return _kernels[key]


def scalar_type(dtype: str) -> str:
    """The type that elements of a memory type are loaded as."""
    return "f32" if dtype in ("f16", "bf16") else dtype


def numpy_name(dtype: str) -> str:
    """NumPy's name of a type of the loop IR."""
    return "?" if dtype == "bool" else f"{dtype[0]}{int(dtype[1:]) // 8}"
