"""Matrix products by generated kernels.

    gemm         Python's entry: finds the plan of a product, or makes it, and runs it
    gemm_plan    chooses tiles, blocks, packing and tasks for a shape
    gemm_micro   the code of one tile: vectors along rows of the result
    gemm_thin    the code of one tile for few columns: vectors along k
    window_pack  copies the windows of a convolution to where tiles want them, as kernel/packing
                 does it for matrices
    gemm_driver  the loops around tiles and packing, and the tasks of the pool's threads
    gemm_tiles   sizes that come from the machine

A convolution, `conv`, is a product with windows as one operand, which only packing lays out.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....kernel.expr import Expr
from ....kernel.packing import pack_function
from ... import debug
from ...memory import empty
from ...threads import current_limit
from ..calls.launch import Launch, Plan, Room, keep, plan_of, planned, unwritten
from ..codegen import jit
from ..codegen.jit import address
from ..codegen.kernels import Kernel
from ..codegen.llvm import emit
from ..threads.pool import pointer
from .gemm_driver import CALL, COMMON, WIDE, wide_text
from .gemm_micro import Epilogue, Shape, passing_text, tile_text, width
from .gemm_plan import Choice, Operands, Setting, choose, packed_row
from .gemm_thin import ThinShape, thin_text, thin_tile_text
from .gemm_tiles import IR_TYPES, MOST_ROWS, MOST_WIDTH, Target, Tile, cache_sizes, evenly, host
from .window_pack import WindowPacking, window_text

PAGE = 4096
_DEEPEST = 16384  # steps of k in one block, up to which halves are packed as floats
_DTYPES = {"half": np.float16, "i16": np.uint16, "float": np.float32, "double": np.float64}
_MEMORY = {"float16": "half", "bfloat16": "i16", "float32": "float", "float64": "double"}
_SWAPPED = {"": "", "columns": "rows", "rows": "columns"}


class Product(NamedTuple):
    """What a product's plan remembers."""

    transposed: bool  # the kernel takes b before a
    thin: bool
    depths: int  # blocks of k that are summed one after the other
    threads: int
    scratch: int  # bytes, for all of them


def gemm(
    a: Any,
    b: Any,
    out: Any = None,
    bias: Any = None,
    accumulate: bool = False,
    activation: Expr | None = None,
    summed: bool = False,
) -> Any:
    """`activation(a @ b + out + bias)` for arrays of one floating dtype; batches broadcast.

    Operands may have any strides. `out` is added if `accumulate` is set, otherwise overwritten;
    without one the result is new. The bias is a vector, one number per column, or has the shape
    (m, 1), one per row. If `summed` is set, the first dimension of a and of b, which must not be
    empty, counts products that are added.

    >>> import numpy as np
    >>> gemm(np.ones((2, 3)), np.ones((3, 2)), bias=np.array([0.0, 10.0]))
    array([[ 3., 13.],
           [ 3., 13.]])
    """
    plan = plan_of(_make, (a, b, out, bias), current_limit(), accumulate, activation, summed)
    if not plan:
        return _by_floats(a, b, out, bias, accumulate, activation, summed)
    if out is None:
        out = empty(plan.results[0].shape, a.dtype)
    elif np.may_share_memory(out, a) or np.may_share_memory(out, b):
        there = out.copy() if accumulate else None
        out[...] = gemm(a, b, there, bias, accumulate, activation, summed)
        return out
    run_product(plan, a, b, out, bias)
    return out


def _make(
    operands: tuple[Any, Any, Any, Any],
    threads: int,
    accumulate: bool,
    activation: Expr | None,
    summed: bool,
) -> Plan | None:
    """The plan of a product; None for halves that packing cannot convert."""
    a = operands[0]
    if a.itemsize == 2 and (summed or not _converts(a)):
        return None
    setting = Setting(host(), *cache_sizes(), threads)
    return make_plan(setting, *operands, accumulate, activation, summed)


def _converts(a: Any) -> bool:
    """Whether packing can convert halves like these."""
    return a.shape[-1] <= _DEEPEST and (host().half or a.dtype != np.float16)


def _by_floats(
    a: Any, b: Any, out: Any, bias: Any, accumulate: bool, activation: Expr | None, summed: bool
) -> Any:
    """A product of halves for which there are no instructions, or more than one block of steps."""
    x, y, there, added = (None if z is None else z.astype(np.float32) for z in (a, b, out, bias))
    result = gemm(x, y, there, added, accumulate, activation, summed)
    if out is None:
        out = empty(result.shape, a.dtype)
    with np.errstate(all="ignore"):  # as where packing converts
        out[...] = result
    return out


def run_product(plan: Plan, a: Any, b: Any, out: Any, bias: Any = None) -> None:
    """Compute by a plan that was made for operands like these."""
    if plan.more.transposed:
        a, b = b, a
    if bias is None:
        bias = out  # not looked at
    elif bias.itemsize == 2 or not bias.flags.c_contiguous:
        unwritten()  # NumPy copies it
        bias = bias.astype(np.float32 if bias.itemsize == 2 else bias.dtype, order="C")
    _, _, _, threads, size = plan.more
    scratch = keep(size) if size else out
    plan.launch.run(pointer(threads), a, b, out, bias, scratch, plan.tables[0])


def pages(bytes: int) -> int:
    """Rounded up to whole pages."""
    return -(-bytes // PAGE) * PAGE


def make_plan(
    setting: Setting,
    a: Any,
    b: Any,
    out: Any = None,
    bias: Any = None,
    accumulate: bool = False,
    activation: Expr | None = None,
    summed: bool = False,
    choice: Choice | None = None,
) -> Plan:
    """The plan for operands like these; tests give their own setting and choice."""
    images, a_image, b_image = (len(a), a.strides[0], b.strides[0]) if summed else (1, 0, 0)
    if summed:
        a, b = a[0], b[0]
    batch: Sequence[int] = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*batch, a.shape[-2], b.shape[-1])
    memory = _MEMORY[a.dtype.name]
    type = "double" if memory == "double" else "float"
    # The steps of all three through the batch, with 0 where one is broadcast, then in a matrix.
    steps = [
        np.broadcast_to(x, (*batch, *x.shape[-2:])).strides
        for x in (a, b, np.empty(shape, a.dtype) if out is None else out)
    ]
    (*_, m, n), k = shape, a.shape[-1]
    while batch and (bias is None or bias.ndim == 1) and _joins(m, *(s[-3:] for s in steps)):
        *batch, m = *batch[:-1], m * batch[-1]
        steps = [(*s[:-3], *s[-2:]) for s in steps]
    a_steps, b_steps, c_steps = ((s[-2], s[-1]) for s in steps)
    o = Operands(
        m,
        n,
        k,
        math.prod(batch),
        a_steps,
        b_steps,
        c_steps,
        width(type),
        width(memory),
        images,
        a_image,
        b_image,
    )
    epilogue = Epilogue("" if bias is None else "columns" if bias.ndim == 1 else "rows", activation)
    chosen = choice or choose(o._replace(m=max(m, 1), n=max(n, 1)), setting)
    debug.note(f"product of {a.dtype.name} {a.shape} @ {b.shape}: {chosen}")
    if chosen.transposed:
        o, steps = o.transposed(), [steps[1], steps[0], steps[2]]
        epilogue = epilogue._replace(bias=_SWAPPED[epilogue.bias])
    maps = [np.array(steps, np.int64) for steps in (o.a, o.b[::-1] if chosen.thin else o.b)]
    outer = [*(s[:-2] for s in steps), (0,) * len(batch)]
    return assembled(
        setting, o, chosen, epilogue, (type, memory), batch, outer, maps, shape, accumulate
    )


def assembled(
    setting: Setting,
    o: Operands,
    choice: Choice,
    epilogue: Epilogue,
    types: tuple[str, str],
    batch: Sequence[int],
    outer: Sequence[Sequence[int]],
    maps: Sequence[Any],
    shape: tuple[int, ...],
    accumulate: bool = False,
) -> Plan:
    """The plan of a product for which everything is chosen.

    Args:
        types: The LLVM types to compute with and of what is in memory.
        batch: The sizes of the batch's dimensions.
        outer: The steps of a, b, c and the bias through them.
        maps: What the packing functions of a and b are told, as arrays.
        shape: That of the result, as Python sees it.
    """
    layout = _layout(setting, o, choice, epilogue, *types)
    layout |= {
        "accumulate": int(accumulate),
        "batch_rank": len(batch),
        "tasks": choice.row_parts * choice.column_parts * o.batch if o.m and o.n else 0,
        "map_a": address(maps[0]),
        "map_b": address(maps[1]),
    }
    fields = COMMON if choice.thin else WIDE
    numbers = [*(layout[name] for name in fields), *batch, *itertools.chain(*outer)]
    table = np.array(numbers, np.int64)
    threads = setting.threads if layout["tasks"] > 1 else 1
    scratch = layout["thread_bytes"] * threads
    launch = Launch(
        _driver(choice.thin), len(CALL), (), work=2 * o.m * o.n * o.k * o.batch * o.images
    )
    return planned(
        launch,
        [Room(shape, _DTYPES[types[1]])],
        [Room((scratch,), np.uint8, kept=True)],
        [table, *maps],
        more=Product(choice.transposed, choice.thin, layout["depths"], threads, scratch),
    )


def _joins(rows: int, a: tuple[int, ...], b: tuple[int, ...], c: tuple[int, ...]) -> bool:
    """Whether matrices that follow each other are one of more rows: all by the same b."""
    return not b[0] and a[0] == rows * a[1] and c[0] == rows * c[1]


def _layout(
    setting: Setting, o: Operands, choice: Choice, epilogue: Epilogue, type: str, memory: str
) -> dict[str, int]:
    """The driver's numbers for a choice; compiles what is not there yet."""
    target, thin, size = setting.target, choice.thin, o.size
    row = packed_row(choice.depth, size, target)
    lanes = target.vector // size
    panel_rows, longer_panels = divmod(o.m, choice.panels)
    strip_width, wider_strips = divmod(-(-o.n // choice.lanes), choice.strips)
    if thin:
        b_bytes = (o.n + lanes) * row
    else:
        b_bytes = (choice.depth * choice.staying + lanes) * choice.tile.vectors * target.vector
    b_bytes = pages(b_bytes) if choice.pack_b else 0
    group = min(choice.group, -(-choice.panels // choice.row_parts))
    a_bytes = pages((group * choice.tile.rows + lanes) * row) if choice.pack_a else 0
    rows = {panel_rows, panel_rows + bool(longer_panels)} - {0}
    widths = {strip_width, strip_width + bool(wider_strips)} - {0}
    sizes = [Tile(r, w) for r in rows for w in widths]
    if thin:
        tiles = last = micro_kernels(
            "gemm_thin", thin_tile_text, ThinShape(type, ANY, epilogue), target, sizes
        )
    elif choice.passing:
        shape = Shape(type, memory, ANY, False, False, False, False, epilogue)
        sizes = [Tile(r, choice.tile.vectors) for r in rows]
        tiles = last = micro_kernels("gemm_pass", passing_text, shape, target, sizes)
    else:
        # Only the last strip may end with a part of a vector. It is read as a whole all the same
        # if packing has filled it with zeros: a mask costs a multiply-add in every step.
        far = choice.panels == 1 and o.k * o.n * size > setting.level1 and not choice.pack_b
        whole = Shape(type, memory, ANY, False, False, far, choice.spread, epilogue)
        tiles = last = micro_kernels("gemm_tile", tile_text, whole, target, sizes)
        if o.n % lanes:
            part = whole._replace(partial=True, padded=bool(choice.pack_b))
            ends = [tile for tile in sizes if tile.vectors == strip_width]
            last = micro_kernels("gemm_tile", tile_text, part, target, ends)
    return {
        "row_parts": choice.row_parts,
        "column_parts": choice.column_parts,
        "columns": o.n,
        "k": o.k,
        "images": o.images,
        "a_image": o.a_image,
        "b_image": o.b_image,
        "panels": choice.panels,
        "panel_rows": panel_rows,
        "longer_panels": longer_panels,
        "strips": choice.strips,
        "strip_width": strip_width,
        "wider_strips": wider_strips,
        "depths": evenly(o.k, choice.depth),
        "depth": choice.depth,
        "a_row": o.a[0],
        "a_k": o.a[1],
        "b_k": o.b[0],
        "b_column": o.b[1],
        "c_row": o.c[0],
        "c_column": o.c[1],
        "bias_row": size if epilogue.bias == "rows" else 0,
        "bias_column": size if epilogue.bias == "columns" else 0,
        "size": size,
        "lanes": choice.lanes,
        "passing": choice.tile.vectors if choice.passing else 0,
        "pack_a": _packer(target, choice.pack_a, memory, type),
        "pack_b": _packer(target, choice.pack_b, memory, type),
        "packed_row": row,
        "group": choice.group,
        "staying": choice.staying,
        "b_bytes": b_bytes,
        "thread_bytes": a_bytes + b_bytes,
        "tiles": tiles,
        "last_tiles": last,
    }


ANY = Tile(0, 0)


_tables: dict[Any, Any] = {}  # never freed, since plans know them by their addresses


def _table(*kind: Any) -> Any:
    """The addresses of tiles by width and rows; 0 where one is not compiled yet."""
    found = _tables.get(kind)
    if found is None:  # of several threads that come at once all get the same
        found = _tables.setdefault(kind, (ctypes.c_int64 * (MOST_WIDTH * MOST_ROWS))())
    return found


def micro_kernels(
    stem: str, write: Callable[..., str], shape: Any, target: Target, sizes: list[Tile]
) -> int:
    """The address of the table of tiles of a kind, in which those of some sizes are compiled."""
    table = _table(stem, shape, target)
    for tile in sizes:
        place = (tile.vectors - 1) * MOST_ROWS + tile.rows - 1
        if not table[place]:
            table[place] = load(stem, write, shape._replace(tile=tile), target)
    return ctypes.addressof(table)


@functools.cache
def _packer(target: Target, how: str | WindowPacking, memory: str, type: str) -> int:
    if isinstance(how, WindowPacking):
        return load("window_pack", window_text, how, memory, type, target)
    if not how:
        return 0
    told = f"{how}, {memory}, {type}, {target}"

    def text() -> tuple[str, str]:
        types, lanes = (IR_TYPES[memory], IR_TYPES[type]), target.vector // width(type)
        return emit(pack_function("gemm_pack", how, *types, lanes), target.machine), ""

    return jit.lookup("gemm_pack", told, text, why=told, tuned=how != "any")[0]


@functools.cache
def _driver(thin: bool) -> Kernel:
    write = thin_text if thin else wide_text
    name = "gemm_thin" if thin else "gemm"
    return Kernel(name, load("gemm_driver", write, True), ["ptr"] * (1 + len(CALL)))


def nested(plans: Sequence[Plan]) -> tuple[Any, int]:
    """The table of products that a kernel runs by itself, and the scratch bytes of a thread.

    See kernel/products.py.
    """
    entries = []
    for plan in plans:
        place = load("gemm_driver", thin_text if plan.more.thin else wide_text, False)
        entries.append((place, address(plan.tables[0]), int(plan.more.transposed)))
    return np.array(entries, np.int64), max([p.more.scratch for p in plans], default=0)


@functools.cache
def load(name: str, write: Callable[..., str], *given: Any) -> int:
    """The address of a function whose text `write` gives."""
    told = f"{write.__name__}: {', '.join(map(str, given))}"
    return jit.lookup(name, told, lambda: (write(name, *given), ""), why=told, tuned=True)[0]
