"""Attention over a runtime: lay out and launch."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...kernel.expr import trace
from ...kernel.groups.attention import LINES, THREADS, Attention, attention_function
from ...kernel.ir import WIDTH
from ...kernel.lower import NotCompiled
from ..memory_types import is_half, scalar_type
from ..strided import StridedArray
from .cut_windows import heads
from .launching import Made, sharing
from .layouts import countable, steps_in
from .memory import TooLarge
from .products import Products

NARROW = (2, 4, 8)  # columns of a thread: the fewest that suffice, or several groups
_SINGLE, _BOOL = np.dtype(np.float32), np.dtype(bool)
_PRODUCT = trace(lambda a, b: a * b, 2)


class Attending(Products):
    """attention and its gradients, without a matrix of scores."""

    def attention(
        self,
        q: StridedArray,
        k: StridedArray,
        v: StridedArray,
        mask: StridedArray | None,
        scale: float,
        causal: bool,
    ) -> tuple[StridedArray, StridedArray]:
        given = [q, k, v] if mask is None else [q, k, v, mask]
        if not all(x.size for x in given):
            return super().attention(q, k, v, mask, scale, causal)
        wide = _SINGLE if is_half(q.dtype) else q.dtype
        shapes = [((*q.shape[:3], v.shape[3]), q.dtype), (q.shape[:3], wide)]
        out, saved = (self.empty(*s) for s in shapes)
        try:
            self._attend("forward", False, [out, saved, q, k, v], mask, scale, causal)
        except TooLarge:
            if q.shape[:2] != (1, 1):
                cut = heads(
                    self,
                    partial(self.attention, scale=scale, causal=causal),
                    (q, k, v, mask),
                    shapes,
                )
                return cut[0], cut[1]
            return super().attention(q, k, v, mask, scale, causal)
        except NotCompiled:
            return super().attention(q, k, v, mask, scale, causal)
        return out, saved

    def attention_backward(
        self,
        g: StridedArray,
        q: StridedArray,
        k: StridedArray,
        v: StridedArray,
        mask: StridedArray | None,
        out: StridedArray,
        lse: StridedArray,
        scale: float,
        causal: bool,
    ) -> tuple[StridedArray, StridedArray, StridedArray]:
        given = [g, q, k, v] if mask is None else [g, q, k, v, mask]
        if not all(x.size for x in given):
            return super().attention_backward(g, q, k, v, mask, out, lse, scale, causal)
        wide = lse.dtype
        both = [x if x.dtype == wide else self.cast(x, wide) for x in (g, out)]
        try:
            dots = self.map_reduce("sum", _PRODUCT, both, (3,), False, wide)
            dq, dk, dv = (self.empty(x.shape, x.dtype) for x in (q, k, v))
            self._attend("slopes", False, [dq, q, k, k, lse, dots, g, v], mask, scale, causal)
            self._attend("slopes", True, [dk, k, q, q, lse, dots, v, g], mask, scale, causal)
            self._attend("weights", True, [dv, k, q, g, lse], mask, scale, causal)
        except TooLarge:
            if q.shape[:2] != (1, 1):
                cut = heads(
                    self,
                    partial(self.attention_backward, scale=scale, causal=causal),
                    (g, q, k, v, mask, out, lse),
                    [(x.shape, x.dtype) for x in (q, k, v)],
                )
                return cut[0], cut[1], cut[2]
            return super().attention_backward(g, q, k, v, mask, out, lse, scale, causal)
        except NotCompiled:
            return super().attention_backward(g, q, k, v, mask, out, lse, scale, causal)
        return dq, dk, dv

    def _attend(
        self,
        kind: str,
        flipped: bool,
        arrays: list[StridedArray],
        mask: StridedArray | None,
        scale: float,
        causal: bool,
    ) -> None:
        """Launch the kernel of one result; `arrays` as `attention_function` takes them."""
        masked = "causal" if causal else ""
        if mask is not None:
            masked = "bool" if mask.dtype == _BOOL else "add"
            arrays = [*arrays, mask]
        seen = sharing(arrays)
        key: tuple[Any, ...] = ("attention", kind, flipped, masked, seen, arrays[0].dtype)
        key += tuple([(x.shape, x.strides) for x in arrays])
        plan = self.plan(key, _made, self, kind, flipped, masked, arrays, seen)
        self.launcher.launch(plan, arrays, (float(scale),))


def _made(
    k: Attending,
    kind: str,
    flipped: bool,
    masked: str,
    arrays: list[StridedArray],
    seen: tuple[int, ...],
) -> Made:
    """The plan of one result."""
    out = arrays[0]
    four = [x for x in arrays if len(x.shape) == 4]  # but for what is saved of each query
    lines, others, right = four[1:4]
    dtype = k.type_of(out.dtype)
    compute = scalar_type(dtype)
    along = [x.strides[3] == x.dtype.itemsize for x in (lines, others, right)]
    if kind == "slopes":
        along += [x.strides[3] == x.dtype.itemsize for x in four[4:6]]
    columns = out.shape[3]
    narrow = next((n for n in NARROW if n * 8 >= columns), NARROW[-1])
    a = Attention(kind, dtype, compute, flipped, masked, narrow, tuple(along))
    if a.shared * WIDTH[compute] > k.limits.shared_bytes or k.launcher.group < THREADS:
        raise NotCompiled("attention in so little memory of a group")
    for x in arrays:
        countable(x.shape)
    batches, heads, count = lines.shape[:3]
    ints = [batches, heads, count, others.shape[2], lines.shape[3], columns]
    if kind == "slopes":
        ints.append(four[4].shape[3])
    for x in four:
        ints += steps_in(x, x.shape)
    groups = batches * heads * -(-count // LINES) * -(-columns // a.width)
    return Made("attention", attention_function, (a,), seen, tuple(ints), groups, None, THREADS)
