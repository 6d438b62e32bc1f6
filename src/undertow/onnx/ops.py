"""How each op that is not elementwise is written: shapes, joins, indices, reductions, products."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from .. import dtypes
from .graph import LAST
from .model import ELEMENTS
from .writer import Writer

F = TypeVar("F", bound=Callable[[Writer], Any])
WRITERS: dict[str, Callable[[Writer], Any]] = {}


def writes(*names: str) -> Callable[[F], F]:
    """Declare the writer of ops; it returns the name of their (first) result."""

    def declare(writer: F) -> F:
        WRITERS.update(dict.fromkeys(names, writer))
        return writer

    return declare


# Shapes ------------------------------------------------------------------------------------------
@writes("clone", "transfer", "laid_out")
def _same(w: Writer) -> Any:
    return w.x


@writes("cast")
def _cast(w: Writer) -> Any:
    return w.node("Cast", w.x, to=ELEMENTS[w.dtype])


@writes("view", "reshape")
def _reshape(w: Writer) -> Any:
    return w.reshape(w.x, w.shapes(), w.out_shapes())


@writes("permute")
def _permute(w: Writer) -> Any:
    return w.node("Transpose", w.x, perm=[d % w.rank for d in w.param("dims")])


@writes("expand")
def _expand(w: Writer) -> Any:
    source, target = w.shapes(), w.out_shapes()
    lead = len(target[0]) - len(source[0])
    one, other = [], []
    for i, (a, b) in enumerate(zip(*target, strict=True)):
        # A size that is there already need not be told: 1 leaves it.
        kept = i >= lead and (source[0][i - lead], source[1][i - lead]) == (a, b)
        one.append(1 if kept else a)
        other.append(1 if kept else b)
    return w.node("Expand", w.x, w.sizes(tuple(one), tuple(other)))


@writes("slice")
def _slice(w: Writer) -> Any:
    (one, other), shapes = w.params("slices"), w.shapes()
    one, other = (_filled(s, w.rank) for s in (one, other))
    x, dim = w.x, 0
    starts: list[tuple[int, int]] = []
    stops: list[tuple[int, int]] = []
    axes, steps, added = [], [], []
    taken: list[tuple[int, int, int]] = []  # dimension, index in both traces
    for place, (a, b) in enumerate(zip(one, other, strict=True)):
        if a is None:
            added.append(place - len(taken))
            continue
        if isinstance(a, int):
            taken.append((dim, a, b))
        elif a != slice(None) or b != slice(None):
            (p, q, step), (r, s, other_step) = a.indices(shapes[0][dim]), b.indices(shapes[1][dim])
            whole = (q, s) == (shapes[0][dim], shapes[1][dim])
            starts.append((p, r))
            if step < 0:
                stops.append((q if q >= 0 else -LAST, s if s >= 0 else -LAST))
            else:
                stops.append((LAST, LAST) if whole else (q, s))
            axes.append(dim)
            steps.append(w.fixed("step", step, other_step))
        dim += 1
    if axes:
        bounds = [w.sizes(*map(tuple, zip(*pairs, strict=True))) for pairs in (starts, stops)]
        x = w.node("Slice", x, *bounds, w.graph.numbers(axes), w.graph.numbers(steps))
    for dim, a, b in reversed(taken):
        sizes = shapes[0][dim], shapes[1][dim]
        if a != b and a - sizes[0] == b - sizes[1]:  # counted from the end
            a = b = a - sizes[0]
        if a == b:
            x = w.node("Gather", x, w.graph.number(a, dtypes.int64), axis=dim)
        else:
            x = w.node("Gather", x, w.graph.size(a, b, "an index of slice"), axis=dim)
            x = w.node("Squeeze", x, w.graph.numbers([dim]))
    return w.node("Unsqueeze", x, w.graph.numbers(added)) if added else x


def _filled(slices: Any, rank: int) -> list[Any]:
    """Slices without an Ellipsis, one for each dimension."""
    listed = list(slices) if isinstance(slices, tuple) else [slices]
    missing = rank - sum(s is not None and s is not Ellipsis for s in listed)
    if Ellipsis not in listed:
        listed.append(Ellipsis)
    at = listed.index(Ellipsis)
    return listed[:at] + [slice(None)] * missing + listed[at + 1 :]


@writes("cat")
def _cat(w: Writer) -> Any:
    return w.node("Concat", *w.names, axis=w.param("dim"))


@writes("stack")
def _stack(w: Writer) -> Any:
    dim = w.param("dim")
    axes = w.graph.numbers([dim])
    return w.node("Concat", *[w.node("Unsqueeze", x, axes) for x in w.names], axis=dim)


@writes("repeat")
def _repeat(w: Writer) -> Any:
    one, other = w.params("repeats")
    x, lead = w.x, len(one) - w.rank
    if lead:
        x = w.node("Unsqueeze", x, w.graph.numbers(range(lead)))
    return w.node("Tile", x, w.sizes(one, other))


@writes("flip")
def _flip(w: Writer) -> Any:
    dims = w.param("dims")
    bounds = [w.graph.numbers([n] * len(dims)) for n in (LAST, -LAST)]
    return w.node("Slice", w.x, *bounds, w.graph.numbers(dims), w.graph.numbers([-1] * len(dims)))


@writes("roll")
def _roll(w: Writer) -> Any:
    shift, dim = w.param("shift"), w.param("dim")
    axis, zero = w.graph.numbers([dim]), w.graph.numbers([0])
    cut, end = w.graph.numbers([-shift]), w.graph.numbers([LAST])
    parts = w.node("Slice", w.x, cut, end, axis), w.node("Slice", w.x, zero, cut, axis)
    return w.node("Concat", *parts, axis=dim)


@writes("pad", "embed")
def _pad(w: Writer) -> Any:
    lows, highs = [], []
    shapes, slices = w.params("shape"), w.params("slices")
    for i in range(w.rank):
        pairs = {
            (s[i].start or 0, n[i] - (n[i] if s[i].stop is None else s[i].stop))
            for n, s in zip(shapes, slices, strict=True)
            if isinstance(s[i], slice) and s[i].step in (None, 1)
        }
        if len(pairs) != 1:
            raise w.refused("its padding is not the same at every size")
        low, high = pairs.pop()
        lows.append(low)
        highs.append(high)
    value = w.param("value") if w.call.op.name == "pad" else 0
    return w.node("Pad", w.x, w.graph.numbers([*lows, *highs]), w.number(value))


@writes("tril", "triu")
def _triangle(w: Writer) -> Any:
    diagonal = w.graph.number(w.param("diagonal"), dtypes.int64)
    return w.node("Trilu", w.x, diagonal, upper=int(w.call.op.name == "triu"))


@writes("diagonal")
def _diagonal(w: Writer) -> Any:
    a, b, offset = w.param("dim1") % w.rank, w.param("dim2") % w.rank, w.param("offset")
    one, other = w.shapes()
    if (one[a], one[b]) != (other[a], other[b]):
        raise w.refused("its rows and columns vary")
    order = [*(d for d in range(w.rank) if d not in (a, b)), a, b]
    x = w.node("Transpose", w.x, perm=order)
    moved = tuple([tuple([s[d] for d in order]) for s in (one, other)])
    flat = tuple([(*s[:-2], s[-2] * s[-1]) for s in moved])
    x = w.reshape(x, (moved[0], moved[1]), (flat[0], flat[1]))
    places = [i * one[b] + i + offset for i in range(one[a]) if 0 <= i + offset < one[b]]
    return w.node("Gather", x, w.graph.numbers(places), axis=w.rank - 2)


@writes("unfold")
def _unfold(w: Writer) -> Any:
    dim, size, step = w.param("dim"), w.param("size"), w.param("step")
    one, other = w.out_shapes()
    if one[dim] != other[dim]:
        raise w.refused("the number of windows varies")
    places = [i * step + j for i in range(one[dim]) for j in range(size)]
    index = w.node("Reshape", w.graph.numbers(places), w.graph.numbers([one[dim], size]))
    x = w.node("Gather", w.x, index, axis=dim)
    order = [d for d in range(w.rank + 1) if d != dim + 1]
    return w.node("Transpose", x, perm=[*order, dim + 1])


# Indices -----------------------------------------------------------------------------------------
@writes("index", "index_last")
def _index(w: Writer) -> Any:
    dims = w.param("dims")
    if len(dims) == 1 and w.call.op.name == "index":
        return w.node("Gather", w.x, w.names[1], axis=dims[0])
    if dims != tuple(range(len(dims))) or w.call.op.name != "index":
        raise w.refused("only the first dimensions can be indexed together")
    shape = w.out_shapes()
    index_rank = len(shape[0]) - (w.rank - len(dims))
    places = _places(w, w.names[1:], (shape[0][:index_rank], shape[1][:index_rank]))
    return w.node("GatherND", w.x, places)


def _places(w: Writer, indices: list[str], shapes: tuple[Any, Any]) -> str:
    """Indices of the first dimensions, which are broadcast, as one: the last dimension tells."""
    whole = [w.node("Expand", name, w.sizes(*shapes)) for name in indices]
    last = w.graph.numbers([-1])
    return w.node("Concat", *[w.node("Unsqueeze", name, last) for name in whole], axis=-1)


@writes("index_put")
def _index_put(w: Writer) -> Any:
    dims = w.param("dims")
    if dims != tuple(range(len(dims))):
        raise w.refused("only the first dimensions can be indexed")
    x, value, *indices = w.names
    one, other = w.shapes(1)
    rank = len(one) - (w.rank - len(dims))
    kind = {"set": "none"}.get(w.param("kind"), w.param("kind"))
    places = _places(w, indices, (one[:rank], other[:rank]))
    return w.node("ScatterND", x, places, value, reduction=kind)


@writes("wrap_index")
def _wrap_index(w: Writer) -> Any:
    return w.x  # an index below zero counts from the end in ONNX, too


@writes("embedding")
def _embedding(w: Writer) -> Any:
    return w.node("Gather", w.x, w.names[1], axis=0)


@writes("gather", "gather_last")
def _gather(w: Writer) -> Any:
    return w.node("GatherElements", w.x, w.names[1], axis=w.param("dim"))


@writes("scatter")
def _scatter(w: Writer) -> Any:
    kind = {"set": "none", "add": "add", "mul": "mul", "max": "max", "min": "min"}[w.param("kind")]
    x, source, index = w.names
    return w.node("ScatterElements", x, index, source, axis=w.param("dim"), reduction=kind)


@writes("pool_pick")
def _pool_pick(w: Writer) -> Any:
    """Elements at positions in the last dimensions, which are counted as one."""
    rank = w.param("rank")
    source, index, out = w.shapes(0), w.shapes(1), w.out_shapes()
    flat = [
        tuple([(*s[: len(s) - rank], math.prod(s[len(s) - rank :])) for s in shapes])
        for shapes in (source, index)
    ]
    x = w.reshape(w.x, source, (flat[0][0], flat[0][1]))
    places = w.reshape(w.names[1], index, (flat[1][0], flat[1][1]))
    found = w.node("GatherElements", x, places, axis=len(flat[0][0]) - 1)
    return w.reshape(found, (flat[1][0], flat[1][1]), out)


@writes("cumsum")
def _cumsum(w: Writer) -> Any:
    return w.node("CumSum", w.x, w.graph.number(w.param("dim"), dtypes.int64))


@writes("sort")
def _sort(w: Writer) -> Any:
    dim = w.param("dim")
    one, other = w.out_shapes()
    count = w.sizes((one[dim],), (other[dim],))
    return w.node("TopK", w.x, count, count=2, axis=dim, largest=int(w.param("descending")))


@writes("rank_position")
def _rank_position(w: Writer) -> Any:
    dim, rank = w.param("dim"), w.param("rank")
    found = w.node("TopK", w.x, w.graph.numbers([rank + 1]), count=2, axis=dim, largest=0)
    return w.node("Gather", found[1], w.graph.numbers([rank]), axis=dim)


# Reductions --------------------------------------------------------------------------------------
_KINDS = {
    "sum": "Sum",
    "mean": "Mean",
    "prod": "Prod",
    "amax": "Max",
    "amin": "Min",
    "logsumexp": "LogSumExp",
    "max": "Max",
    "min": "Min",
}


@writes("sum", "mean", "prod", "amax", "amin", "logsumexp")
def _reduction(w: Writer) -> Any:
    return w.reduce(_KINDS[w.call.op.name], w.x, w.param("dims"), w.param("keepdim"))


@writes("whole")
def _whole(w: Writer) -> Any:
    x = w.node("Cast", w.x, to=ELEMENTS[dtypes.int64])
    return w.reduce(_KINDS[w.param("kind")], x, w.param("dims"), w.param("keepdim"))


@writes("truth")
def _truth(w: Writer) -> Any:
    x = w.node("Cast", w.node("Cast", w.x, to=ELEMENTS[dtypes.bool]), to=ELEMENTS[dtypes.int32])
    kind = "Max" if w.param("kind") == "any" else "Min"
    found = w.reduce(kind, x, w.param("dims"), w.param("keepdim"))
    return w.node("Cast", found, to=ELEMENTS[dtypes.bool])


@writes("norm")
def _norm(w: Writer) -> Any:
    p, dims, keepdim = w.param("p"), w.param("dims"), w.param("keepdim")
    if p in (1, 2):
        return w.reduce(f"L{int(p)}", w.x, dims, keepdim)
    size = w.node("Abs", w.x)
    if math.isinf(p):
        return w.reduce("Max" if p > 0 else "Min", size, dims, keepdim)
    if not p:
        raise w.refused("a count of what is not zero is no norm in ONNX")
    total = w.reduce("Sum", w.node("Pow", size, w.number(p)), dims, keepdim)
    return w.node("Pow", total, w.number(1 / p))


@writes("position")
def _position(w: Writer) -> Any:
    kind = {"argmax": "ArgMax", "argmin": "ArgMin"}[w.param("kind")]
    return w.node(kind, w.x, axis=w.param("dim"), keepdims=int(w.param("keepdim")))


@writes("chosen")
def _chosen(w: Writer) -> Any:
    kind, dim, keepdim = (w.param(p) for p in ("kind", "dim", "keepdim"))
    best = w.reduce(_KINDS[kind], w.x, [dim], keepdim)
    place = w.node({"max": "ArgMax", "min": "ArgMin"}[kind], w.x, axis=dim, keepdims=int(keepdim))
    return [best, place]


def spread(w: Writer, x: str, dims: Any) -> tuple[str, str]:
    """The mean, and the mean of squared deviations from it, with dims kept."""
    mean = w.reduce("Mean", x, dims)
    away = w.node("Sub", x, mean)
    return mean, w.reduce("Mean", w.node("Mul", away, away), dims)


@writes("var", "std", "var_mean", "std_mean")
def _var(w: Writer) -> Any:
    dims = w.param("dims")
    pairs = zip(w.shapes(), w.params("freedom"), strict=True)
    factors = {
        math.prod([s[d] for d in dims]) / freedom if freedom > 0 else 0 for s, freedom in pairs
    }
    if len(factors) > 1 or factors == {0}:
        raise w.refused("the number of elements varies, or is too small; use correction=0")
    mean, found = spread(w, w.x, dims)
    if factors != {1}:
        found = w.node("Mul", found, w.number(factors.pop()))
    if w.call.op.name.startswith("std"):
        found = w.node("Sqrt", found)
    results = [found, mean] if w.call.op.name.endswith("mean") else [found]
    if not w.param("keepdim"):
        results = [w.node("Squeeze", r, w.graph.numbers(dims)) if dims else r for r in results]
    return results


# Products ----------------------------------------------------------------------------------------
@writes("matmul", "matmul_nt", "matmul_tn", "matmul_tt")
def _matmul(w: Writer) -> Any:
    a, b = w.names
    how = w.call.op.name.removeprefix("matmul").removeprefix("_") or "nn"
    if how[0] == "t":
        a = w.transposed(a, w.rank)
    if how[1] == "t":
        b = w.transposed(b, w.tensor(1).ndim)
    return w.node("MatMul", a, b)


@writes("dot")
def _dot(w: Writer) -> Any:
    return w.node("MatMul", *w.names)


@writes("linear")
def _linear(w: Writer) -> Any:
    x, weight, bias = w.names
    added = [] if bias is None else [bias]
    if w.rank == 2:
        return w.node("Gemm", x, weight, *added, transB=1)
    out = w.node("MatMul", x, w.transposed(weight, 2))
    return w.node("Add", out, *added) if added else out
