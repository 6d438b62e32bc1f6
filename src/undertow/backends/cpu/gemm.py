"""Matrix products by generated kernels.

    gemm        Python's entry: finds the plan of a product, or makes it, and runs it
    gemm_plan   chooses tiles, blocks, packing and tasks for a shape
    gemm_micro  the code of one tile: vectors along rows of the result
    gemm_thin   the code of one tile for few columns: vectors along k
    gemm_pack   copies blocks of operands to where tiles want them
    gemm_driver the loops around tiles and packing, and the tasks of the pool's threads

Convolution shares the tiles and the loops, with packing functions of its own.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..threads import current_limit
from . import jit, pool
from .gemm_driver import COMMON, MOST_ROWS, WIDE, wide_text
from .gemm_micro import Activation, Epilogue, Shape, tile_text
from .gemm_pack import pack_text
from .gemm_plan import Choice, Operands, Setting, choose, packed_row
from .gemm_thin import ThinShape, thin_text, thin_tile_text
from .gemm_tiles import Target, Tile, cache_sizes, host
from .kernels import address

_REMEMBERED = 4096
_PAGE = 4096
_TYPES = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}


class Plan(NamedTuple):
    """One product's layout: everything but the addresses."""

    call: Callable[..., None]
    shape: tuple[int, ...]
    transposed: bool
    numbers: int  # the address of the driver's table
    scratch: int  # bytes
    parallel: bool
    memory: Any  # what the table is made of, kept alive


_plans: dict[Any, Plan] = {}


def gemm(
    a: Any, b: Any, out: Any = None, bias: Any = None, accumulate: bool = False,
    activation: Activation | None = None,
) -> Any:  # fmt: skip
    """`activation(a @ b + out + bias)` of arrays of one floating dtype; batches broadcast.

    Operands may have any strides. `out` is added if `accumulate` is set, otherwise overwritten;
    without one the result is new. The bias is a vector, one per column, or a column of shape
    (m, 1), one per row.

    >>> import numpy as np
    >>> gemm(np.ones((2, 3)), np.ones((3, 2)), bias=np.array([0.0, 10.0]))
    array([[ 3., 13.],
           [ 3., 13.]])
    """
    threads = current_limit()
    key = (
        a.shape, a.strides, b.shape, b.strides, a.dtype, threads, accumulate,
        None if out is None else out.strides, None if bias is None else bias.ndim, activation,
    )  # fmt: skip
    plan = _plans.get(key)
    if plan is None:
        setting = Setting(host(), *cache_sizes(), threads)
        plan = make_plan(setting, a, b, out, bias, accumulate, activation)
        if len(_plans) >= _REMEMBERED:
            _plans.clear()
        _plans[key] = plan
    if out is None:
        out = np.empty(plan.shape, a.dtype)
    run(plan, a, b, out, bias)
    return out


def run(plan: Plan, a: Any, b: Any, out: Any, bias: Any) -> None:
    """Compute by a plan that was made for operands like these."""
    if plan.transposed:
        a, b = b, a
    plan.call(
        pool.pointer() if plan.parallel else 0, plan.numbers, address(a), address(b), address(out),
        0 if bias is None else address(bias), _scratch(plan.scratch),
    )  # fmt: skip


class _Scratch(threading.local):
    """Memory for packed blocks: of the calling thread, for all threads of its job."""

    size = address = 0
    memory: Any = None


_own = _Scratch()


def _scratch(size: int) -> int:
    """The address of so many bytes, which stay the thread's own."""
    if size > _own.size:
        _own.memory = np.empty(size + _PAGE, np.uint8)
        _own.size, _own.address = size, -(-address(_own.memory) // _PAGE) * _PAGE
    return _own.address


def make_plan(
    setting: Setting, a: Any, b: Any, out: Any = None, bias: Any = None, accumulate: bool = False,
    activation: Activation | None = None, choice: Choice | None = None,
) -> Plan:  # fmt: skip
    """The plan for operands like these; tests give their own setting and choice."""
    (m, k), n = a.shape[-2:], b.shape[-1]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*batch, m, n)
    c_steps = _contiguous(shape, a.itemsize) if out is None else out.strides
    size = a.itemsize
    steps = [x[-2:] for x in (a.strides, b.strides, c_steps)]
    o = Operands(m, n, k, int(np.prod(batch)), *steps, size)
    chosen = choice or choose(o, setting)
    lead = len(batch)
    outer = [[0] * (lead + 2 - len(x)) + list(x[:-2]) for x in (a.strides, b.strides, c_steps)]
    outer[:2] = [
        [0 if length == 1 else step for length, step in zip(_full(x, lead), steps, strict=True)]
        for x, steps in zip((a, b), outer, strict=False)
    ]
    epilogue = Epilogue("" if bias is None else "columns" if bias.ndim == 1 else "rows", activation)
    if chosen.transposed:
        o, outer[:2] = o.transposed(), outer[1::-1]
        turned = {"": "", "columns": "rows", "rows": "columns"}
        epilogue = epilogue._replace(bias=turned[epilogue.bias])
    tail = [*batch, *outer[0], *outer[1], *outer[2]]
    return _laid_out(setting, o, chosen, epilogue, accumulate, _TYPES[a.dtype], tail, shape)


def _full(x: Any, lead: int) -> list[int]:
    return [1] * (lead + 2 - x.ndim) + list(x.shape[:-2])


def _contiguous(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    steps = []
    for length in reversed(shape):
        steps.append(size)
        size *= max(length, 1)
    return tuple(reversed(steps))


def _laid_out(
    setting: Setting, o: Operands, choice: Choice, epilogue: Epilogue, accumulate: bool, type: str,
    tail: list[int], shape: tuple[int, ...],
) -> Plan:  # fmt: skip
    """The driver's table for a choice; compiles what is not there yet."""
    target, size, thin = setting.target, o.size, choice.thin
    row = packed_row(choice.depth, size, target)
    vector_lanes = target.vector // size
    panel_rows, longer_panels = divmod(o.m, choice.panels)
    units = -(-o.n // choice.lanes)
    strip_width, wider_strips = divmod(units, choice.strips)
    slack = vector_lanes * target.vector * choice.tile.vectors
    strips = -(-choice.strips // choice.column_parts)
    if not choice.pack_b:
        b_bytes = 0
    elif thin:
        b_bytes = (o.n + vector_lanes) * row
    else:
        b_bytes = choice.depth * strips * choice.tile.vectors * target.vector + slack
    b_bytes = -(-b_bytes // _PAGE) * _PAGE
    rows = choice.group * choice.tile.rows + vector_lanes if choice.pack_a else 0
    thread_bytes = b_bytes + -(-rows * row // _PAGE) * _PAGE
    map_b = (o.b[1], o.b[0]) if thin else o.b
    maps = (ctypes.c_int64 * 4)(*o.a, *map_b)
    tiles = _table(target, type, thin, bool(choice.pack_b), epilogue)
    for rows in {panel_rows, panel_rows + bool(longer_panels)} - {0}:
        for width in {strip_width, strip_width + bool(wider_strips)} - {0}:
            _compile_tile(tiles, target, type, thin, bool(choice.pack_b), epilogue, rows, width)
    values = {
        "batch_rank": len(shape) - 2,
        "tasks": o.batch * choice.row_parts * choice.column_parts,
        "row_parts": choice.row_parts, "column_parts": choice.column_parts,
        "columns": o.n, "k": o.k,
        "panels": choice.panels, "panel_rows": panel_rows, "longer_panels": longer_panels,
        "strips": choice.strips, "strip_width": strip_width, "wider_strips": wider_strips,
        "depths": max(1, -(-o.k // choice.depth)) if choice.depth else 1, "depth": choice.depth,
        "a_row": o.a[0], "a_k": o.a[1], "b_k": o.b[0], "b_column": o.b[1],
        "c_row": o.c[0], "c_column": o.c[1],
        "bias_row": size if epilogue.bias == "rows" else 0,
        "bias_column": size if epilogue.bias == "columns" else 0,
        "size": size, "accumulate": int(accumulate),
        "pack_a": _packer(target, choice.pack_a, type, type), "map_a": ctypes.addressof(maps),
        "pack_b": _packer(target, choice.pack_b, type, type), "map_b": ctypes.addressof(maps) + 16,
        "packed_row": row, "tiles": ctypes.addressof(tiles), "thread_bytes": thread_bytes,
        "lanes": choice.lanes, "group": choice.group, "b_bytes": b_bytes,
    }  # fmt: skip
    numbers = [values[name] for name in (COMMON if thin else WIDE)] + tail
    memory = (ctypes.c_int64 * len(numbers))(*numbers)
    parallel = setting.threads > 1 and values["tasks"] > 1
    scratch = thread_bytes * (setting.threads if parallel else 1)
    call = _driver(thin)
    return Plan(call, shape, choice.transposed, ctypes.addressof(memory), scratch, parallel,
                (memory, maps, tiles))  # fmt: skip


@functools.cache
def _table(target: Target, type: str, thin: bool, packed: bool, epilogue: Epilogue) -> Any:
    """The addresses of tiles by width and rows; 0 where one is not compiled yet."""
    return (ctypes.c_int64 * (8 * MOST_ROWS))()


def _compile_tile(
    table: Any, target: Target, type: str, thin: bool, packed: bool, epilogue: Epilogue, rows: int,
    width: int,
) -> None:  # fmt: skip
    place = (width - 1) * MOST_ROWS + rows - 1
    if table[place]:
        return
    tile = Tile(rows, width)
    if thin:
        shape = ThinShape(type, tile, epilogue)
        table[place] = _load("gemm_thin", thin_tile_text, shape, target)
    else:
        shape = Shape(type, tile, True, packed and not target.masks, epilogue)
        table[place] = _load("gemm_tile", tile_text, shape, target)


@functools.cache
def _packer(target: Target, how: str, source: str, type: str) -> int:
    return _load("gemm_pack", pack_text, how, source, type, target) if how else 0


@functools.cache
def _driver(thin: bool) -> Callable[..., None]:
    found = _load("gemm_driver", thin_text if thin else wide_text)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 7)(found)


@functools.cache
def _load(stem: str, write: Callable[..., str], *given: Any) -> int:
    """Compile a function of a text; its name tells its content."""
    text = write("NAME", *given)
    name = f"{stem}_{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"
    return jit.load(name, text.replace("@NAME", f"@{name}"))
