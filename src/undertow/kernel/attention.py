"""The form `attention`: softmax(q kᵀ scale + mask) v in blocks, never the whole score matrix.

Note [attention]
Queries (B, H, L, E), keys (B, H, S, E) and values (B, H, S, Ev) come with any steps but for their
last dimension, which lies together in memory. A block of QUERIES rows against KEYS keys is scored
in scratch memory of the running thread, so that it stays in the cache. The softmax is taken as the
keys come: each row keeps its greatest score and the sum of exponentials relative to it, and what it
has gathered so far is scaled down when a greater score appears. The forward saves one number per
row, the logarithm of its sum, from which the backward recomputes a block's weights. The matrix
products in between are the GEMM's, run as kernels in this kernel.

Few queries, as where a text is written token by token, are no work for matrix products: each row
then reads its keys and values once, and nothing is prepared for the number of keys, which grows.

A boolean mask tells where a query may look; a float mask is added to the scores. A row that may
look nowhere gives zeros, and its saved number is +inf, so that its weights are zero again.
"""

from __future__ import annotations

from collections.abc import Callable

from . import elementary
from .ir import Buffer, Function, Value
from .products import Products

QUERIES = 128
KEYS = 512
_NEVER = float("-inf")

# The matrix products of the forward and of the backward. A corner is 0 for blocks of full size, or
# 1, 2 or 3 for the last block of keys, of queries or of both, which are shorter.
PRODUCTS = ("scores", "first", "more"), ("scores", "by_weight", "dv", "dq", "dk")


def scratch_size(blocks: int, width: int) -> int:
    """Elements of scratch memory per thread: blocks of scores, and rows of the given width."""
    return blocks * QUERIES * KEYS + QUERIES * (width + 2)


class _Heads:
    """The operands of one (batch, head) pair: each with the offset of its first element."""

    def __init__(self, f: Function, names: str, dtype: str, written: str = "") -> None:
        self.f = f
        self.buffers: dict[str, Buffer] = {}
        self.steps: dict[str, tuple[Value, Value, Value]] = {}
        for name in names.split():
            self.buffers[name] = f.buffer(name, dtype, written=name in written.split())
        for name in names.split():
            batch, head, row = (f.param(f"{name}_{part}") for part in ("batch", "head", "row"))
            self.steps[name] = (batch, head, row)

    def start(self, name: str, batch: Value, head: Value) -> Value:
        """The offset of the first row."""
        steps = self.steps[name]
        return batch * steps[0] + head * steps[1]

    def row(self, name: str) -> Value:
        """The step from row to row."""
        return self.steps[name][2]


class _Mask:
    """How scores are masked: not at all, by a buffer, or causally."""

    def __init__(self, f: Function, kind: str, dtype: str) -> None:
        self.f = f
        self.kind = kind  # "", "bool", "add" or "causal"
        self.given = kind in ("bool", "add")
        if self.given:
            self.buffer = f.buffer("mask", "bool" if kind == "bool" else dtype)
            self.steps = [f.param(f"mask_{part}") for part in ("batch", "head", "row", "column")]

    def start(self, batch: Value, head: Value, row: Value) -> Value | None:
        """The offset of a row's first element of the mask."""
        if self.given:
            return batch * self.steps[0] + head * self.steps[1] + row * self.steps[2]
        return None

    def seen(self, row: Value, begin: Value, few: Value) -> Value:
        """How many keys of a block a query looks at; a causal one at the first, at least."""
        return self.f.call("minimum", row + 1 - begin, few) if self.kind == "causal" else few

    def clear(self, scratch: Buffer, line: Value, seen: Value, few: Value) -> None:
        """No weight for the keys that a query does not look at."""
        if self.kind == "causal":
            with self.f.vector(few - seen) as i:
                self.f.store(scratch, line + seen + i, 0)

    def apply(self, score: Value, start: Value | None, column: Value) -> Value:
        """The score of a query and a key."""
        f = self.f
        if start is None:
            return score
        given = f.load(self.buffer, start + column * self.steps[3])
        return f.select(given, score, _NEVER) if self.kind == "bool" else score + given


def attention_function(name: str, dtype: str, mask: str) -> Function:
    """The forward kernel: out (B, H, L, Ev) and lse (B * H, L)."""
    f = Function(name)
    heads = _Heads(f, "out q k v", dtype, "out")
    lse, scratch = f.buffer("lse", dtype, True), f.buffer("scratch", dtype, True)
    masking = _Mask(f, mask, dtype)
    products = Products(f, PRODUCTS[0], 4)
    batches, count, rows, keys, depth = (f.param(n) for n in ("b", "h", "l", "s", "ev"))
    size, pitch = f.param("scratch_size"), f.param("pitch")
    scale = f.cast(f.param("scale", "f64"), dtype)
    blocks = (rows + (QUERIES - 1)) // QUERIES
    with f.parallel(batches * count * blocks) as job:
        place, block = job // blocks, job % blocks
        batch, head = place // count, place % count
        first = block * QUERIES
        some = f.call("minimum", rows - first, QUERIES)
        start = {n: heads.start(n, batch, head) for n in ("out", "q", "k", "v")}
        scores = f.thread() * size
        gathered = scores + QUERIES * KEYS
        peaks = gathered + depth * QUERIES
        sums = peaks + QUERIES
        with f.loop(some) as r:
            f.store(scratch, peaks + r, _NEVER)
            f.store(scratch, sums + r, 0)
        with f.loop(_key_blocks(f, mask, keys, first + some)) as number:
            begin = number * KEYS
            few = f.call("minimum", keys - begin, KEYS)
            corner = _corner(f, block, blocks, begin, keys)
            queries = (heads.buffers["q"], start["q"] + first * heads.row("q"))
            lookup = (heads.buffers["k"], start["k"] + begin * heads.row("k"))
            products.run("scores", (scratch, scores), queries, lookup, corner)
            with f.loop(some) as r:
                row = first + r
                line = scores + r * pitch
                mask_start = masking.start(batch, head, row)
                seen = masking.seen(row, begin, few)
                peak = f.state(f.const(_NEVER, dtype), combine=_greater(f))
                with f.vector(seen) as i:
                    score = f.load(scratch, line + i) * scale
                    score = masking.apply(score, mask_start, begin + i)
                    f.store(scratch, line + i, score)
                    peak.add(score)
                before = f.load(scratch, peaks + r)
                now = _greater(f)(before, peak.get()[0])
                base = f.select(now == _NEVER, 0.0, now)
                total = f.state(f.const(0, dtype), combine=lambda a, b: a + b)
                with f.vector(seen) as i:
                    weight = elementary.FUNCTIONS["exp"](f, f.load(scratch, line + i) - base)
                    f.store(scratch, line + i, weight)
                    total.add(weight)
                masking.clear(scratch, line, seen, few)
                f.store(scratch, peaks + r, now)
                with f.branch(number > 0):
                    fade = elementary.FUNCTIONS["exp"](f, before - base)
                    f.store(scratch, sums + r, f.load(scratch, sums + r) * fade)
                    with f.vector(depth) as i:
                        at = gathered + r * depth + i
                        f.store(scratch, at, f.load(scratch, at) * fade)
                f.store(scratch, sums + r, f.load(scratch, sums + r) + total.get()[0])
            values = (heads.buffers["v"], start["v"] + begin * heads.row("v"))
            with f.branch(number == 0):
                products.run("first", (scratch, gathered), (scratch, scores), values, corner)
            with f.branch(number > 0):
                products.run("more", (scratch, gathered), (scratch, scores), values, corner)
        with f.vector(some) as r:  # many rows at once, since a logarithm takes as long as a row
            total_sum = f.load(scratch, sums + r)
            nothing = total_sum == 0  # the mask hides all, or every score is -inf
            share = 1 / f.select(nothing, 1.0, total_sum)
            found = f.load(scratch, peaks + r) + elementary.FUNCTIONS["log"](f, total_sum)
            f.store(lse, place * rows + first + r, f.select(nothing, float("inf"), found))
            f.store(scratch, sums + r, share)
        with f.loop(some) as r:
            share = f.load(scratch, sums + r)
            out = start["out"] + (first + r) * heads.row("out")
            with f.vector(depth) as i:
                f.store(
                    heads.buffers["out"], out + i, f.load(scratch, gathered + r * depth + i) * share
                )
    return f


def few_queries_function(name: str, dtype: str, mask: str) -> Function:
    """The forward kernel for few queries: row by row, without matrix products."""
    f = Function(name)
    heads = _Heads(f, "out q k v", dtype, "out")
    lse, scratch = f.buffer("lse", dtype, True), f.buffer("scratch", dtype, True)
    masking = _Mask(f, mask, dtype)
    sizes = ("b", "h", "l", "s", "ev", "e")
    batches, count, rows, keys, depth, width = (f.param(n) for n in sizes)
    scale = f.cast(f.param("scale", "f64"), dtype)
    out, q, k, v = (heads.buffers[n] for n in ("out", "q", "k", "v"))
    with f.parallel(batches * count * rows) as job:
        place, row = job // rows, job % rows
        batch, head = place // count, place % count
        start = {n: heads.start(n, batch, head) for n in heads.buffers}
        query, result = (start[n] + row * heads.row(n) for n in ("q", "out"))
        line = f.thread() * keys
        seen = masking.seen(row, f.const(0, "i64"), keys)

        def score(first: Value, many: int) -> None:
            sums = [f.state(f.const(0, dtype), combine=lambda a, b: a + b) for _ in range(many)]
            lines = [start["k"] + (first + j) * heads.row("k") for j in range(many)]
            with f.vector(width) as i:
                mine = f.load(q, query + i)
                for total, key in zip(sums, lines, strict=True):
                    total.set(f.fma(mine, f.load(k, key + i), total.get()[0]))
            for j, total in enumerate(sums):
                f.store(scratch, line + first + j, total.get()[0])

        def gather(first: Value, many: int) -> None:
            shares = [f.load(scratch, line + first + j) for j in range(many)]
            lines = [start["v"] + (first + j) * heads.row("v") for j in range(many)]
            with f.vector(depth) as i:
                found = f.load(out, result + i)
                for share, value in zip(shares, lines, strict=True):
                    found = f.fma(share, f.load(v, value + i), found)
                f.store(out, result + i, found)

        _in_fours(f, seen, score)
        mask_start = masking.start(batch, head, row)
        peak = f.state(f.const(_NEVER, dtype), combine=_greater(f))
        with f.vector(seen) as i:
            masked = masking.apply(f.load(scratch, line + i) * scale, mask_start, i)
            f.store(scratch, line + i, masked)
            peak.add(masked)
        greatest = peak.get()[0]
        base = f.select(greatest == _NEVER, 0.0, greatest)
        total = f.state(f.const(0, dtype), combine=lambda a, b: a + b)
        with f.vector(seen) as i:
            weight = elementary.FUNCTIONS["exp"](f, f.load(scratch, line + i) - base)
            f.store(scratch, line + i, weight)
            total.add(weight)
        all_weights = total.get()[0]
        nothing = all_weights == 0  # the mask hides all, or every score is -inf
        known = greatest + elementary.FUNCTIONS["log"](f, all_weights)
        f.store(lse, place * rows + row, f.select(nothing, float("inf"), known))
        share = 1 / f.select(nothing, 1.0, all_weights)
        with f.vector(depth) as i:
            f.store(out, result + i, 0)
        _in_fours(f, seen, gather)
        with f.vector(depth) as i:
            f.store(out, result + i, f.load(out, result + i) * share)
    return f


def _in_fours(f: Function, count: Value, body: Callable[[Value, int], None]) -> None:
    """`body(first, many)` for all of `count`, four at a time and then one by one."""
    with f.loop(count // 4) as group:
        body(group * 4, 4)
    with f.loop(count % 4) as i:
        body(count // 4 * 4 + i, 1)


def attention_backward_function(name: str, dtype: str, mask: str) -> Function:
    """The backward kernel: dq, dk, dv from g, q, k, v, out and lse; parallel over the heads."""
    f = Function(name)
    heads = _Heads(f, "dq dk dv g out q k v", dtype, "dq dk dv")
    lse, scratch = f.buffer("lse", dtype), f.buffer("scratch", dtype, True)
    masking = _Mask(f, mask, dtype)
    products = Products(f, PRODUCTS[1], 4)
    batches, count, rows, keys, depth = (f.param(n) for n in ("b", "h", "l", "s", "ev"))
    width, size, pitch = f.param("e"), f.param("scratch_size"), f.param("pitch")
    scale = f.cast(f.param("scale", "f64"), dtype)
    blocks = (rows + (QUERIES - 1)) // QUERIES
    buffers = heads.buffers
    with f.parallel(batches * count) as place:
        batch, head = place // count, place % count
        start = {n: heads.start(n, batch, head) for n in buffers}
        weights = f.thread() * size
        slopes = weights + QUERIES * KEYS
        inner = slopes + QUERIES * KEYS
        for target, length, wide in (("dq", rows, width), ("dk", keys, width), ("dv", keys, depth)):
            with f.loop(length) as r:
                line = start[target] + r * heads.row(target)
                with f.vector(wide) as i:
                    f.store(buffers[target], line + i, 0)
        with f.loop(blocks) as block:
            first = block * QUERIES
            some = f.call("minimum", rows - first, QUERIES)
            at = {n: start[n] + first * heads.row(n) for n in ("dq", "g", "out", "q")}
            with f.loop(some) as r:
                dot = f.state(f.const(0, dtype), combine=lambda a, b: a + b)
                with f.vector(depth) as i:
                    left = f.load(buffers["g"], at["g"] + r * heads.row("g") + i)
                    dot.add(left * f.load(buffers["out"], at["out"] + r * heads.row("out") + i))
                f.store(scratch, inner + r, dot.get()[0])
            with f.loop(_key_blocks(f, mask, keys, first + some)) as number:
                begin = number * KEYS
                few = f.call("minimum", keys - begin, KEYS)
                corner = _corner(f, block, blocks, begin, keys)
                of = {n: start[n] + begin * heads.row(n) for n in ("dk", "dv", "k", "v")}
                place_of = {n: (buffers[n], o) for n, o in (at | of).items()}
                p, s = (scratch, weights), (scratch, slopes)
                products.run("scores", p, place_of["q"], place_of["k"], corner)
                products.run("by_weight", s, place_of["g"], place_of["v"], corner)
                with f.loop(some) as r:
                    row = first + r
                    mask_start = masking.start(batch, head, row)
                    known = f.load(lse, place * rows + row)
                    dot_value = f.load(scratch, inner + r)
                    seen = masking.seen(row, begin, few)
                    with f.vector(seen) as i:
                        here = r * pitch + i
                        score = f.load(scratch, weights + here) * scale
                        score = masking.apply(score, mask_start, begin + i)
                        weight = elementary.FUNCTIONS["exp"](f, score - known)
                        slope = weight * (f.load(scratch, slopes + here) - dot_value) * scale
                        f.store(scratch, weights + here, weight)
                        f.store(scratch, slopes + here, slope)
                    masking.clear(scratch, weights + r * pitch, seen, few)
                    masking.clear(scratch, slopes + r * pitch, seen, few)
                products.run("dv", place_of["dv"], p, place_of["g"], corner)
                products.run("dq", place_of["dq"], s, place_of["k"], corner)
                products.run("dk", place_of["dk"], s, place_of["q"], corner)
    return f


def _key_blocks(f: Function, mask: str, keys: Value, end: Value) -> Value:
    """How many blocks of keys the queries before `end` look at."""
    seen = f.call("minimum", keys, end) if mask == "causal" else keys
    return (seen + (KEYS - 1)) // KEYS


def _corner(f: Function, block: Value, blocks: Value, begin: Value, keys: Value) -> Value:
    """Which of the last blocks this is; see PRODUCTS."""
    last_rows = f.select(block + 1 == blocks, f.const(2, "i64"), 0)
    return last_rows + f.select(begin + KEYS >= keys, f.const(1, "i64"), 0)


def _greater(f: Function) -> Callable[[Value, Value], Value]:
    """The greater of two scores, in one instruction; a NaN may be lost, but not from the sum."""
    return lambda a, b: f.select(a > b, a, b)
