"""The form `recurrent`: all steps of a recurrent layer, and their backward, in one kernel each.

Note [recurrent layers]
The sequences of a batch know nothing of each other: a block of ROWS of them is one task, which
takes all steps from first to last, so that threads never wait for each other in between. A step is
a product of the block's states with the weights, which stay in the cache, and one pass over the
block for everything else (kernel/cells). The products of all inputs were made before, at once; and
those that make the weights' gradients come after the backward, over all steps at once.

Arrays are (steps, batch, blocks of the width), row-major but for what comes from outside, the
input's products and the cotangents of the results, whose first two dimensions have any steps. The
state and the memory are (batch, width); they are read, changed and left behind as the last ones.
A reversed layer begins at the last step. With `lengths` a sequence has so many steps, and beyond
them its state stands still: so the last state is the right one in both directions.

The product of a `single` step is the caller's, whose threads can share it: in `scratch` before the
forward, and added to the cotangent of the state behind the backward.
"""

from __future__ import annotations

from collections.abc import Callable

from .cells import CELLS
from .ir import Buffer, Function, Value
from .lower import Lowering
from .products import Products

ROWS = 16
CORNERS = 2  # a block of ROWS, or the last one


class _Layer:
    """What both kernels have: the blocks of rows, the steps, and the loops over them."""

    def __init__(self, f: Function, masked: bool) -> None:
        self.f = f
        self.lengths = f.buffer("lengths", "i64") if masked else None
        self.products = Products(f, ("step",), CORNERS)
        names = ("steps", "batch", "width", "first", "direction", "outer_step", "outer_row")
        params = [f.param(name) for name in names]
        self.steps, self.batch, self.width, self.first, self.direction = params[:5]
        self.outer = params[5:]  # the steps of the array from outside

    def run(
        self,
        before: Callable[[Value, Value, Value], None],
        row: Callable[[Value, Value, bool], None],
        after: Callable[[Value, Value, Value], None],
    ) -> None:
        """The kernel's body.

        `before` and `after` are given the step, a block's first row and its corner; `row` the step,
        a row, and whether it takes part in the step.
        """
        f = self.f
        blocks = (self.batch + (ROWS - 1)) // ROWS
        with f.parallel(blocks) as block:
            start = block * ROWS
            some = f.call("minimum", self.batch - start, ROWS)
            corner = f.select(block + 1 == blocks, f.const(1, "i64"), 0)
            with f.loop(self.steps) as s:
                t = self.first + s * self.direction
                before(t, start, corner)
                with f.loop(some) as r:
                    at = start + r
                    if self.lengths is None:
                        row(t, at, True)
                    else:
                        length = f.load(self.lengths, at)
                        with f.branch(t < length):
                            row(t, at, True)
                        with f.branch(t >= length):
                            row(t, at, False)
                after(t, start, corner)

    def inner(self, t: Value, row: Value, blocks: int) -> Value:
        """The offset of a step and row in an array of so many blocks of the width."""
        return (t * self.batch + row) * (self.width * blocks)

    def from_outside(self, t: Value, row: Value) -> Value:
        """The same in the array from outside."""
        return t * self.outer[0] + row * self.outer[1]

    def loads(self, buffer: Buffer, at: Value, count: int) -> list[Value]:
        """An element of so many blocks."""
        return [self.f.load(buffer, at + self.width * k) for k in range(count)]

    def stores(self, buffer: Buffer, at: Value, values: list[Value]) -> None:
        """The same, written."""
        for k, value in enumerate(values):
            self.f.store(buffer, at + self.width * k, value)


def recurrent_function(
    name: str, kind: str, dtype: str, masked: bool, single: bool, biased: bool
) -> Function:
    """The forward kernel: all states, and what a backward needs."""
    f, cell = Function(name), CELLS[kind]
    out, h = f.buffer("out", dtype, True), f.buffer("h", dtype, True)
    kept = f.buffer("kept", dtype, True) if cell.kept else None
    c = f.buffer("c", dtype, True) if cell.memory else None
    memories = f.buffer("memories", dtype, True) if cell.memory else None
    gates, weight = f.buffer("gates", dtype), f.buffer("weight", dtype)
    bias = f.buffer("bias", dtype) if biased else None
    scratch = f.buffer("scratch", dtype, True)
    layer = _Layer(f, masked)
    width, of_thread = layer.width, layer.width * (ROWS * cell.gates)

    def product(t: Value, start: Value, corner: Value) -> None:
        if single:
            return
        target = (scratch, f.thread() * of_thread)
        added = 0 if bias is None else (bias, 0)
        layer.products.run("step", target, (h, start * width), (weight, 0), corner, added)

    def row(t: Value, at: Value, active: bool) -> None:
        mine = at if single else f.thread() * ROWS + at % ROWS
        mine = mine * (width * cell.gates)
        base, given = at * width, layer.from_outside(t, at)
        place, blocks = layer.inner(t, at, 1), layer.inner(t, at, cell.kept)
        with f.vector(width) as i:
            held = f.load(h, base + i)
            memory = None if c is None else f.load(c, base + i)
            if memories is not None and memory is not None:
                f.store(memories, place + i, memory)
            if not active:
                f.store(out, place + i, held)
                if kept is not None:
                    layer.stores(kept, blocks + i, [f.const(0, dtype)] * cell.kept)
                return
            args = layer.loads(gates, given + i, cell.gates)
            args += layer.loads(scratch, mine + i, cell.gates)
            args.append(held if memory is None else memory)
            values = _values(f, cell.forward, args, dtype)
            if kept is not None:
                layer.stores(kept, blocks + i, values[: cell.kept])
            if c is not None:
                f.store(c, base + i, values[cell.kept])
            f.store(out, place + i, values[-1])
            f.store(h, base + i, values[-1])

    layer.run(product, row, lambda t, start, corner: None)
    return f


def recurrent_backward_function(
    name: str, kind: str, dtype: str, masked: bool, single: bool
) -> Function:
    """The backward kernel: the cotangents of the products, and of the first state and memory."""
    f, cell = Function(name), CELLS[kind]
    by_input = f.buffer("by_input", dtype, True)
    by_state = f.buffer("by_state", dtype, True) if cell.apart else by_input
    dh = f.buffer("dh", dtype, True)
    dc = f.buffer("dc", dtype, True) if cell.memory else None
    kept = f.buffer("kept", dtype) if cell.kept else None
    before, weight = f.buffer("before", dtype), f.buffer("weight", dtype)
    g = f.buffer("g", dtype)
    layer = _Layer(f, masked)
    width = layer.width
    slopes = [by_input, *([by_state] if cell.apart else [])]

    def row(t: Value, at: Value, active: bool) -> None:
        base, given = at * width, layer.from_outside(t, at)
        place = layer.inner(t, at, cell.gates)
        with f.vector(width) as i:
            state = f.load(dh, base + i) + f.load(g, given + i)
            if not active:
                for target in slopes:
                    layer.stores(target, place + i, [f.const(0, dtype)] * cell.gates)
                f.store(dh, base + i, state)
                return
            args = [state]
            if dc is not None:
                args.append(f.load(dc, base + i))
            if kept is not None:
                args += layer.loads(kept, layer.inner(t, at, cell.kept) + i, cell.kept)
            args.append(f.load(before, layer.inner(t, at, 1) + i))
            values = _values(f, cell.backward, args, dtype)
            for target in slopes:
                layer.stores(target, place + i, values[: cell.gates])
                values = values[cell.gates :]
            if dc is not None:
                f.store(dc, base + i, values.pop(0))
            f.store(dh, base + i, values[0] if values else f.const(0, dtype))

    def product(t: Value, start: Value, corner: Value) -> None:
        if single:
            return
        source = (by_state, layer.inner(t, start, cell.gates))
        layer.products.run("step", (dh, start * width), source, (weight, 0), corner)

    layer.run(lambda t, start, corner: None, row, product)
    return f


def _values(f: Function, exprs: tuple[object, ...], args: list[Value], dtype: str) -> list[Value]:
    lowering = Lowering(f, args, dtype)
    return [lowering.value(e) for e in exprs]  # type: ignore[arg-type]
