"""The CPU: generated kernels for large arrays, NumPy for small ones and for what has no kernel.

The modules that generate are imported with the first kernel, so that `import undertow` stays quick.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ...kernel.expr import Expr, trace
from ...kernel.row_program import Program
from ...kernel.windows import Geometry
from .. import memory
from ..base import Array, Direct, NumpyDType, Shape
from ..reference import TINY_PRODUCT, NumpyBackend, all_bits_zero
from .calls.choice import MULTIPLIED, convolved, crossover, threshold
from .calls.prepared import direct, prepared, quickest

_EXACT = _SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
_INT64, _UINT64 = np.dtype(np.int64), np.dtype(np.uint64)
_largest = np.maximum.reduce
_TINY = min(threshold(MULTIPLIED), TINY_PRODUCT + 1)
_MULTIPLIED = threshold(MULTIPLIED)
_MULTIPLIED_PAIRS = threshold(MULTIPLIED // 4)  # four multiplications each
# Elements from which on a kernel is faster than NumPy, on one thread: NumPy finds extremes quickly
# but for those of rows, and has several passes for squares.
_REDUCED = {"squares": threshold(1), "argmax": threshold(65536), "argmin": threshold(65536)}
_REDUCED |= dict.fromkeys(
    ("sum", "mean", "prod", "max", "min", "first_max", "first_min", "any", "all"), threshold(16384)
)
_MAP_REDUCED = threshold(2048)
_DOTTED = threshold(8192)  # and BLAS has one thread for so few
_ZEROED = threshold(1 << 17)  # and a kernel has several
_SCANNED = threshold(4096)
_SUM = trace(lambda a, b: a + b, 2)
_SQUARE = trace(lambda x: x * x, 1)
_SUMS = (_SUM,)
_ADDED = crossover(_SUM)
_may_overlap = np.may_share_memory
_reduce = NumpyBackend.reduce
# Compositions of rows take ten times as long at any size, so even one row is worth a kernel.
_ROWS = threshold(1)
_WINDOWS = threshold(512)


def _launching() -> Any:
    """The forms that algorithms ask for while their launches are found out."""
    from .forms.launching import Launching

    return Launching()


def _later(module: str, name: str) -> Any:
    """A function of a module that is imported with its first call, and only then costs a look."""

    def first(*args: Any, **kwargs: Any) -> Any:
        found = globals()[name] = getattr(import_module(f"{__package__}.{module}"), name)
        return found(*args, **kwargs)

    return first


apart = _later("forms.maps", "apart")
complex_product = _later("forms.complex_products", "complex_product")
gemm = _later("products.gemm", "gemm")
run_add_product = _later("products.added_products", "run_add_product")
run_attention = _later("forms.attention", "run_attention")
run_conv = _later("convolution.conv", "run_conv")
run_convolution = _later("convolution.conv", "run_convolution")
is_right = _later("convolution.conv", "is_right")
run_linalg = _later("forms.matrices", "run_linalg")
run_maps = _later("forms.maps", "run_maps")
run_random_map = _later("forms.random", "run_random_map")
run_reduce = _later("forms.reductions", "run_reduce")
run_rows = _later("forms.rows", "run_rows")
run_update = _later("forms.updates", "run_update")


class CpuBackend(NumpyBackend):
    """Every form on `ndarray`s, by whichever of the two is faster."""

    def maps(
        self,
        exprs: tuple[Expr, ...],
        operands: Sequence[Any],
        dtypes: Sequence[NumpyDType],
        outs: Sequence[Array] | None = None,
    ) -> Sequence[Array]:
        size = max([o.size for o in operands if o.__class__ is np.ndarray], default=0)
        large = size >= crossover(*exprs)
        if large and (outs is None or all(apart(out, operands) for out in outs)):
            found = run_maps(exprs, operands, tuple(dtypes), outs or ())
            if found is not None:
                return found
        return super().maps(exprs, operands, dtypes, outs)

    def map(
        self, expr: Expr, operands: Sequence[Any], dtype: NumpyDType, out: Array | None = None
    ) -> Array:
        size = 0
        for o in operands:  # a comprehension is a call of its own
            if o.__class__ is np.ndarray and o.size > size:
                size = o.size
        if size >= crossover(expr) and (out is None or apart(out, operands)):
            found = run_maps((expr,), operands, (dtype,), () if out is None else (out,))
            if found is not None:
                return found[0]
        return super().map(expr, operands, dtype, out)

    def prepare(
        self, exprs: tuple[Expr, ...], arrays: tuple[bool, ...], largest: bool = False
    ) -> Callable[..., Any]:
        return prepared(exprs, arrays, largest, globals(), self.maps)

    def direct(
        self, expr: Expr, arrays: tuple[bool, ...], dtypes: tuple[Any, Any, Any]
    ) -> Direct | None:
        return direct(expr, arrays, dtypes)

    def update(
        self,
        exprs: tuple[Expr, ...],
        rows: Sequence[Sequence[Array]],
        numbers: Sequence[float],
        places: tuple[int, ...],
    ) -> None:
        if threshold(1) == 1:
            rows = run_update(exprs, rows, numbers, places)
        super().update(exprs, rows, numbers, places)

    def zero(self, arrays: Sequence[Array]) -> None:
        super().zero([a for a in arrays if a.size < _ZEROED])
        for a in arrays:
            if a.size >= _ZEROED:
                self.assign(a, np.zeros((), a.dtype))

    def norms(self, arrays: Sequence[Array]) -> Sequence[Array] | None:
        squares = np.empty(len(arrays), arrays[0].dtype)
        for i, a in enumerate(arrays):
            if a.size < _DOTTED:
                line = a.reshape(-1)
                squares[i] = line.dot(line)
            else:
                squares[i] = self.map_reduce("sum", _SQUARE, [a], _every(a), False, a.dtype)
        np.sqrt(squares, squares)
        return [squares[i, ...] for i in range(len(squares))]

    def add_into(self, target: Array, value: Array) -> None:
        if target.size < _ADDED:
            quickest["add"](target, value, target)
        elif _may_overlap(target, value) or not run_maps(
            _SUMS, (target, value), (target.dtype,), (target,)
        ):
            self.map(_SUM, (target, value), target.dtype, target)

    def reduce(self, kind: str, x: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
        if x.size >= _REDUCED[kind] and keepdim.__class__ is bool:  # NumPy tells what is wrong
            found = run_reduce(kind, x, dims, keepdim)
            if found is not None:
                return found
        return _reduce(self, kind, x, dims, keepdim)

    def require(
        self,
        x: Array,
        low: float,
        high: float,
        error: Callable[[Any], Exception],
        but: int | None = None,
    ) -> Any:
        if x.dtype == _INT64 and x.size and low <= 0 and self._below(x, high):
            return 0
        return super().require(x, low, high, error, but)

    def within(self, x: Array, low: float, high: float) -> bool:
        if x.dtype == _INT64 and x.size and low == 0:
            return self._below(x, high)
        return super().within(x, low, high)

    def _below(self, x: Array, high: float) -> bool:
        """Whether 0 <= x < high; read as unsigned, a negative number is larger than any size."""
        words = x.view(_UINT64)
        small = x.size < 1 << 18
        most = _largest(words, axis=None) if small else self.reduce("max", words, _every(x), False)
        return bool(most < high)

    def scan(self, kind: str, x: Array, dim: int) -> Any:
        if x.size >= _SCANNED and kind != "logaddexp":
            from .forms.scans import run_scan

            found = run_scan(kind, (x,), dim)
            if found is not None:
                return found
        return super().scan(kind, x, dim)

    def recurrence(self, a: Array, b: Array, dim: int, reverse: bool) -> Array:
        if a.size >= _SCANNED:
            from .forms.scans import run_scan

            found = run_scan("recurrence", (a, b), dim, reverse)
            if found is not None:
                return found
        return super().recurrence(a, b, dim, reverse)

    def map_reduce(
        self,
        kind: str,
        expr: Expr,
        operands: Sequence[Any],
        dims: tuple[int, ...],
        keepdim: bool,
        dtype: NumpyDType,
    ) -> Array:
        if max([o.size for o in operands if o.__class__ is np.ndarray]) >= _MAP_REDUCED:
            from .forms.reductions import run_map_reduce

            found = run_map_reduce(kind, expr, operands, dims, keepdim, dtype)
            if found is not None:
                return found
        return super().map_reduce(kind, expr, operands, dims, keepdim, dtype)

    def rows(
        self,
        program: Program,
        operands: Sequence[Any],
        dims: tuple[int, ...],
        dtypes: Sequence[NumpyDType],
    ) -> tuple[Array, ...]:
        if operands[0].size >= _ROWS:
            found = run_rows(program, operands, dims, dtypes)
            if found is not None:
                return found
        return super().rows(program, operands, dims, dtypes)

    def window(
        self,
        kind: str,
        x: Array,
        kernel: Shape,
        stride: Shape,
        padding: tuple[tuple[int, int], ...],
        input_dilation: Shape,
        dilation: Shape,
        divisor: float = 1.0,
    ) -> Any:
        steps = (kernel, stride, padding, input_dilation, dilation, divisor)
        if x.size >= _WINDOWS:
            from .forms.windows import run_window

            found = run_window(kind, x, *steps)
            if found is not None:
                return found
        return super().window(kind, x, *steps)

    def spans(self, kind: str, x: Array, output: Shape) -> Any:
        if x.size >= _WINDOWS and x.size:
            from .forms.windows import run_spans

            found = run_spans(kind, x, output)
            if found is not None:
                return found
        return super().spans(kind, x, output)

    # Products ---------------------------------------------------------------------------------
    def matmul(self, a: Array, b: Array, bias: Array | None = None) -> Array:
        if a.ndim == 2 == b.ndim:  # as below, at less overhead
            dtype = a.dtype
            if (dtype is _SINGLE or dtype is _DOUBLE) and a.size * b.shape[1] < _TINY:
                out = a.dot(b)  # for its warnings see Note [floating-point warnings]
                return out if bias is None else np.add(out, bias, out)
        work = a.size * b.shape[-1] if a.ndim >= b.ndim else b.size * a.shape[-2]
        if work >= _MULTIPLIED and a.dtype.kind in "fV" and a.shape[-1] == b.shape[-2]:
            if a.itemsize == 1:
                return super().matmul(a, b, bias)
            return gemm(a, b, bias=bias)
        if work >= _MULTIPLIED_PAIRS and a.dtype.kind == "c" and a.shape[-1] == b.shape[-2]:
            vector = bias is None or bias.ndim == 1
            found = complex_product(a, b, bias) if vector and a.dtype == b.dtype else None
            if found is not None:
                return found
        return super().matmul(a, b, bias)

    def add_product(self, target: Array, a: Array, b: Array) -> bool:
        if a.size * b.shape[-1] < _MULTIPLIED or a.dtype not in _EXACT:
            return False
        return bool(run_add_product(target, a, b))

    def conv(
        self,
        out: Array,
        x: Array,
        w: Array,
        bias: Array | None,
        stride: Shape,
        padding: tuple[tuple[int, int], ...],
        input_dilation: Shape,
        dilation: Shape,
        relu: bool = False,
    ) -> None:
        if convolved(out, w):
            steps = (stride, padding, input_dilation, dilation)
            geometry = _geometry(x.shape[3:], w.shape[3:], *steps)
            if run_conv(out, x, w, bias, geometry, self, relu):
                return
        super().conv(out, x, w, bias, stride, padding, input_dilation, dilation, relu)

    def convolution(
        self,
        wanted: str,
        a: Array,
        b: Array,
        bias: Array | None,
        geometry: Geometry,
        groups: int,
        relu: bool = False,
    ) -> Array:
        found = run_convolution(wanted, a, b, bias, geometry, groups, relu, self, _launching)
        if found is not None:
            return found
        return super().convolution(wanted, a, b, bias, geometry, groups, relu)

    def mend_convolution(self, out: Array, asked: Any, border: Any, *given: Any) -> None:
        """Compute a result of `convolution` again if it is wrong; see Note [zeros meet weights]."""
        if not is_right(out, given[2], asked, border, self):
            np.copyto(out, CpuBackend.convolution(self, *given))

    def attention(
        self, q: Array, k: Array, v: Array, mask: Array | None, scale: float, causal: bool
    ) -> tuple[Array, Array]:
        if _attends(q, k, v):
            return run_attention(q, k, v, mask, scale, causal)
        return super().attention(q, k, v, mask, scale, causal)

    def attention_backward(
        self,
        g: Array,
        q: Array,
        k: Array,
        v: Array,
        mask: Array | None,
        out: Array,
        lse: Array,
        scale: float,
        causal: bool,
    ) -> tuple[Array, Array, Array]:
        if _attends(q, k, v, 1024):
            from .forms.attention import run_attention_backward

            return run_attention_backward(g, q, k, v, mask, out, lse, scale, causal)
        return super().attention_backward(g, q, k, v, mask, out, lse, scale, causal)

    def recurrent(
        self,
        kind: str,
        gates: Array,
        h: Array,
        c: Array | None,
        weight: Array,
        bias: Array | None,
        lengths: Array | None,
        reverse: bool,
    ) -> tuple[Any, ...]:
        if gates.size >= threshold(RECURRENT) and gates.dtype in _EXACT:
            from .forms.recurrent import run_recurrent

            return run_recurrent(kind, gates, h, c, weight, bias, lengths, reverse)
        return super().recurrent(kind, gates, h, c, weight, bias, lengths, reverse)

    def recurrent_backward(
        self,
        kind: str,
        g: Array,
        dh: Array,
        dc: Array | None,
        kept: Array | None,
        before: Array,
        weight: Array,
        lengths: Array | None,
        reverse: bool,
    ) -> tuple[Any, ...]:
        given = (kind, g, dh, dc, kept, before, weight, lengths, reverse)
        if g.size >= threshold(RECURRENT >> 2) and g.dtype in _EXACT:
            from .forms.recurrent import run_recurrent_backward

            return run_recurrent_backward(*given)
        return super().recurrent_backward(*given)

    def fft(self, kind: str, x: Array, dims: Shape, size: int, norm: str) -> Array:
        if x.size >= threshold(TRANSFORMED):
            from .forms.fourier import run_fft

            return run_fft(kind, x, dims, size, norm)
        return super().fft(kind, x, dims, size, norm)

    def linalg(self, kind: str, arrays: Sequence[Array], *options: Any) -> tuple[Array, ...]:
        found = run_linalg(kind, arrays, *options)
        return super().linalg(kind, arrays, *options) if found is None else found

    def sort(
        self, x: Array, dim: int, descending: bool, count: int | None = None
    ) -> tuple[Array, Array]:
        if count == 1 and descending and x.shape[dim] > 1:  # the greatest, NaN or not
            first = self.reduce("argmax", x, (dim,), True)
            return self.gather(x, dim, first), first
        if x.size >= threshold(1):
            from .forms.sorting import run_sort

            found = run_sort(x, dim, descending, count, self)
            if found is not None:
                return found
        return super().sort(x, dim, descending, count)

    def ranked(self, x: Array, dim: int, rank: int) -> tuple[Array, Array]:
        if x.size >= threshold(1):
            from .forms.sorting import run_rank

            found = run_rank(x, dim, rank, self)
            if found is not None:
                return found
        return super().ranked(x, dim, rank)

    def searchsorted(self, edges: Array, values: Array, right: bool) -> Array:
        # NumPy searches one row after the other.
        if values.size >= threshold(SEARCHED if edges.ndim == 1 else 1):
            from .forms.searching import run_search

            found = run_search(edges, values, right)
            if found is not None:
                return found
        return super().searchsorted(edges, values, right)

    def philox(self, seed: int, offset: int, count: int) -> Array:
        if count >= threshold(1):  # NumPy takes 200 microseconds for the first block
            from .forms.random import run_philox

            return run_philox(seed, offset, count)
        return super().philox(seed, offset, count)

    def random_map(
        self, expr: Expr, x: Array, numbers: tuple[float, ...], limit: int, seed: int, offset: int
    ) -> Array:
        if x.size >= threshold(1):
            found = run_random_map(expr, x, numbers, limit, seed, offset)
            if found is not None:
                return found
        return super().random_map(expr, x, numbers, limit, seed, offset)

    # Moving data ------------------------------------------------------------------------------
    def empty(self, shape: Shape, dtype: NumpyDType) -> Array:
        return memory.empty(shape, dtype)

    def full(self, shape: Shape, value: Any, dtype: NumpyDType) -> Array:
        # Zeros that the allocator has not kept cost nothing until they are touched.
        if _FILLED <= math.prod(shape) <= memory.KEEP // 8:
            from .forms.copies import run_full

            found = run_full(shape, value, dtype)
            if found is not None:
                return found
        if memory.LARGE <= math.prod(shape) * np.dtype(dtype).itemsize <= memory.KEEP // 8:
            out = memory.empty(shape, dtype)  # kept for the next one, which NumPy's would not be
            if all_bits_zero(value):
                out.view(np.uint8).fill(0)
            else:
                np.copyto(out, value, casting="unsafe")
            return out
        return super().full(shape, value, dtype)

    def copy(self, x: Array) -> Array:
        if x.size >= threshold(COPIED if x.flags.c_contiguous else TURNED):
            from .forms.copies import run_copy

            found = run_copy(x)
            if found is not None:
                return found
        if x.nbytes >= memory.HUGE:
            out = memory.empty(x.shape, x.dtype)
            np.copyto(out, x)
            return out
        return super().copy(x)

    def cast(self, x: Array, dtype: NumpyDType) -> Array:
        half = x.itemsize == 2 or np.dtype(dtype).itemsize == 2
        large = x.size >= threshold(CONVERTED >> 4 if half else CONVERTED)
        if large and not (dtype == _UINT64 and x.dtype.kind not in "iub"):  # kernels: below 2^63
            from .forms.copies import run_cast

            found = run_cast(x, dtype)
            if found is not None:
                return found
        return super().cast(x, dtype)

    def assign(self, target: Array, source: Array) -> None:
        unsigned = target.dtype == _UINT64 and source.dtype.kind not in "iub"
        if target.size >= threshold(TURNED) and not unsigned:
            from .forms.copies import run_assign

            if run_assign(target, source):
                return
        super().assign(target, source)

    def concat(self, arrays: Sequence[Array], dim: int) -> Array:
        total = sum([a.size for a in arrays])
        if total >= threshold(COPIED) and total >= LAUNCHED * len(arrays):
            from .forms.copies import run_concat

            found = run_concat(arrays, dim)
            if found is not None:
                return found
        return super().concat(arrays, dim)

    # Reading and writing at index arrays ------------------------------------------------------
    def gather(self, x: Array, dim: int, index: Array) -> Array:
        if index.size >= threshold(GATHERED):
            from .forms.indexing import run_gather

            found = run_gather(x, dim, index)
            if found is not None:
                return found
        return super().gather(x, dim, index)

    def take(self, x: Array, index: tuple[Any, ...]) -> Array:
        if _taken(x, index) >= threshold(TAKEN):
            from .forms.indexing import run_take

            found = run_take(x, index)
            if found is not None:
                return found
        return super().take(x, index)

    def csr_matmul(
        self, begins: Array, rows: Array, columns: Array, values: Array, dense: Array
    ) -> Array:
        if values.size * dense.shape[1] >= threshold(TAKEN):
            from .forms.sparse import run_csr_matmul

            found = run_csr_matmul(begins, columns, values, dense)
            if found is not None:
                return found
        return super().csr_matmul(begins, rows, columns, values, dense)

    def scatter(
        self, kind: str, x: Array, dim: int, index: Array, source: Array, inplace: bool = False
    ) -> Array:
        if index.size >= threshold(SCATTERED):
            from .forms.scatter import run_scatter

            found = run_scatter(kind, x, dim, index, source, inplace)
            if found is not None:
                return found
        return super().scatter(kind, x, dim, index, source, inplace)

    def put(
        self, kind: str, x: Array, index: tuple[Any, ...], source: Array, inplace: bool = False
    ) -> Array:
        if _taken(x, index) >= threshold(SET if kind == "set" else PUT):
            from .forms.scatter import run_put

            found = run_put(kind, x, index, source, inplace)
            if found is not None:
                return found
        return super().put(kind, x, index, source, inplace)


# What follows from a geometry is remembered with it.
_geometry = functools.lru_cache(maxsize=1024)(Geometry)

# Elements from which on a generated kernel is faster than NumPy: copies that it makes with memcpy
# or memset, others, conversions, fancy indexing, and random words.
FILLED = 1 << 21
_FILLED = threshold(FILLED)
COPIED = 1 << 19
LAUNCHED = 1 << 15  # one of several pieces, each of which is a launch
TURNED = CONVERTED = 1 << 16
GATHERED = SCATTERED = 1 << 11
TAKEN = 1 << 16
SET = 1 << 15
PUT = 1 << 11
TRANSFORMED = 1 << 13  # elements of a Fourier transform
RECURRENT = 512  # elements of gates
SEARCHED = 128  # values


def _every(x: Array) -> tuple[int, ...]:
    return tuple(range(x.ndim))


def _attends(q: Array, k: Array, v: Array, scores: int = 1) -> bool:
    """Whether attention has a kernel for these, and scores enough to be worth it."""
    if not v.size or not (q.dtype is _SINGLE or q.dtype is _DOUBLE):
        return False
    return q.size // (q.shape[-1] or 1) * k.shape[-2] >= threshold(scores)


def _taken(x: Array, index: tuple[Any, ...]) -> int:
    """About how many elements an index takes: right for a single array of indices."""
    most = 0
    size = x.size
    if size:
        for d, i in enumerate(index):
            if i.__class__ is np.ndarray:
                most = max(most, i.size)
                size //= x.shape[d]
    return most * size
