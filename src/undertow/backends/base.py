"""The contract: the closed list of forms that a device answers, and how few of them it must.

Arrays are opaque to everyone but their backend; all that others read is `shape`, `strides` (in
bytes), `dtype` (NumPy's), `size` and `backend`, the instance that runs it. (A CPU array is an
`ndarray`, which cannot know its backend: `registry.backend_of` is the one place that knows.) Views
share memory; every other form returns a fresh array, except `assign`, `add_into`, `add_product`
and `conv`, and those that are given an `out` or told to work in place, which write. An op's
forward is a short composition of forms, so a device that answers them runs every op.

Note [what a device must answer]
The twelve abstract forms. Every other form has a default: views are arithmetic on `StridedArray`s
(backends/strided), the rest are compositions of other forms (here, or in backends/compositions
where they are longer). A device overrides a default where it knows something faster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..devices import Device
from ..kernel.expr import RELU, Expr, call, trace, where
from ..kernel.row_program import Program
from ..kernel.windows import Geometry, Spans
from . import strided
from .holders import getrefcount
from .philox import philox_words

Array = Any
NumpyDType = Any
Shape = tuple[int, ...]
Padding = tuple[tuple[int, int], ...]
Dims = tuple[int, ...]


class Direct:
    """See `Backend.direct`: `compute` is the function, which a backend may change for a better."""

    __slots__ = ("compute",)

    def __init__(self, compute: Callable[..., Any]) -> None:
        self.compute = compute


_SUM = trace(lambda a, b: a + b, 2)
_REPLACED = trace(lambda a, old, new: where(call("eq", a, old), new, a), 3)
_INT64, _BOOL = np.dtype(np.int64), np.dtype(bool)
_TABLES = 256  # kept on a device


class Backend(ABC):
    """One device. See Note [what a device must answer]."""

    device: Device
    frames: tuple[Any, ...] = ()  # of a batch, see Note [batches] in backends/batch
    base: Backend  # the device itself, under any frames
    # What runs an op on its arrays in the place of the door; see Note [tangents] in backends/dual.
    steps: Callable[..., Any] | None = None

    def __init__(self, device: Device) -> None:
        self.device = device
        self.base = self
        self._tables: dict[Any, Array] = {}

    # Must be answered: memory -----------------------------------------------------------------
    @abstractmethod
    def empty(self, shape: Shape, dtype: NumpyDType) -> Array:
        """Uninitialised row-major memory."""

    @abstractmethod
    def from_host(self, array: Any) -> Array:
        """An array on this device with a NumPy array's elements (may share memory on the CPU)."""

    @abstractmethod
    def to_host(self, array: Array) -> Any:
        """The elements as a NumPy array (may share memory on the CPU)."""

    @abstractmethod
    def assign(self, target: Array, source: Array) -> None:
        """Write `source`, broadcast and cast, into the memory of `target`.

        Complex to real drops the imaginary part, floating to integer truncates, and an integer
        that is too large wraps around. The two may overlap.
        """

    # Must be answered: computation ------------------------------------------------------------
    @abstractmethod
    def maps(
        self,
        exprs: tuple[Expr, ...],
        operands: Sequence[Any],
        dtypes: Sequence[NumpyDType],
        outs: Sequence[Array] | None = None,
    ) -> Sequence[Array]:
        """Scalar expressions over broadcast operands (arrays of one dtype, or numbers).

        A boolean array may stand beside those of the one dtype, for `where`. With `outs`, arrays
        of those dtypes, written into them; an operand may be one of them.
        """

    @abstractmethod
    def reduce(self, kind: str, x: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
        """kind: sum mean prod max min any all; argmax argmin take exactly one dim.

        So do first_max and first_min, which give two arrays: the extremes and their indices.
        "squares" is the sum of squared deviations from the mean. Half precision is summed in single
        at least, integers wrap around. It is asked outside of `begin` and `end`, too.
        """

    @abstractmethod
    def scan(self, kind: str, x: Array, dim: int) -> Any:
        """kind: sum prod logaddexp; or max min, which return values and indices of positions."""

    @abstractmethod
    def gather(self, x: Array, dim: int, index: Array) -> Array:
        """`out[i][j][k] = x[i][index[i][j][k]][k]` for dim 1; indices are in range."""

    @abstractmethod
    def scatter(
        self, kind: str, x: Array, dim: int, index: Array, source: Array, inplace: bool = False
    ) -> Array:
        """A copy of x (or x itself, changed) with source combined in at the gather positions.

        kind: set add mul max min; duplicates combine in order ("set": the last one wins).
        """

    @abstractmethod
    def matmul(self, a: Array, b: Array, bias: Array | None = None) -> Array:
        """(…, m, k) times (…, k, n), batch dimensions broadcast, plus a bias per column (n).

        It is asked outside of `begin` and `end`, too.
        """

    @abstractmethod
    def sort(
        self, x: Array, dim: int, descending: bool, count: int | None = None
    ) -> tuple[Array, Array]:
        """Stably sorted values and their indices; NaN counts as largest.

        With a count, only the first so many of them.
        """

    @abstractmethod
    def nonzero(self, x: Array) -> Array:
        """Coordinates of the nonzero elements in row-major order: (count, ndim), int64."""

    # Batches ------------------------------------------------------------------------------------
    def lift(self, x: Array) -> Array:
        """An array of a backend with fewer frames, as one of this one."""
        if getattr(x, "backend", self) is not self:
            raise TypeError(f"an array of {x.backend.device} is none of {self.device}'s")
        return x

    def whole(self, x: Array) -> Array:
        """All elements of all batches, for a check that is about every one of them."""
        return x

    # Around an op -----------------------------------------------------------------------------
    def begin(self) -> Any:
        """Called before an op's forward, for a device that needs something set meanwhile."""
        return None

    def end(self, token: Any) -> None:  # noqa: B027 (most devices have nothing to do)
        """Called after an op's forward, with what `begin` returned."""

    def run(self, forward: Callable[..., Any], arrays: Sequence[Any], params: Sequence[Any]) -> Any:
        """A forward between `begin` and `end`."""
        token = self.begin()
        try:
            return forward(self, *arrays, *params)
        finally:
            self.end(token)

    def prepare(
        self, exprs: tuple[Expr, ...], arrays: tuple[bool, ...], largest: bool = False
    ) -> Callable[..., Any]:
        """`maps` of these expressions as a function of its operands, for who calls it often.

        Of a single expression it gives the array itself, else a sequence of them. `largest` tells
        that the first operand has the shape to which the others are broadcast.
        `arrays` tells which operands are arrays; the others are numbers. The arrays have one dtype,
        a floating one or int64, and so have the results, but for comparisons' booleans.
        """
        kinds = [_BOOL if is_boolean(e) else None for e in exprs]
        first = arrays.index(True)

        def run(*operands: Any) -> Any:
            dtype = operands[first].dtype
            found = self.maps(exprs, operands, [kind or dtype for kind in kinds])
            return found if len(exprs) > 1 else found[0]

        return run

    def direct(
        self, expr: Expr, arrays: tuple[bool, ...], dtypes: tuple[Any, Any, Any]
    ) -> Direct | None:
        """What computes `expr` for small operands; its answer is None for what `prepare` is for.

        The arrays come first and have one of `dtypes`; beside integers, the third, numbers are
        ints. Operands may be anything else, too: it has to look.
        """
        return None

    # Questions about an array -----------------------------------------------------------------
    def contiguous(self, x: Array) -> bool:
        """Whether its elements lie in row-major order without gaps."""
        return strided.contiguous(x.shape, x.strides, x.dtype.itemsize)

    def writable(self, x: Array) -> bool:
        """Whether its memory may be changed."""
        return True

    def memory(self, x: Array) -> int:
        """A number that two arrays have in common if they look at the same buffer."""
        return id(x.buffer)

    def owned(self, holder: list[Any], i: int) -> bool:
        """Whether nobody but `holder[i]` holds that array, which is no view, nor a view of it.

        The list is asked about rather than the array, so that the count of references is the same
        however deep the call: its own one, and that of the question.
        """
        if getrefcount(holder[i]) > 2 or getrefcount(holder[i].buffer) > 2:
            return False
        return not holder[i].offset and self.contiguous(holder[i])

    def address(self, x: Array) -> int:
        """The address of the first element, as far as the device has such a thing."""
        return self.memory(x) + int(x.offset)

    def require(
        self,
        x: Array,
        low: float,
        high: float,
        error: Callable[[Any], Exception],
        but: int | None = None,
    ) -> Any:
        """Raise `error(elements as a NumPy array)` unless `low <= x < high` everywhere.

        Elements equal to `but` may be anything. Returns a number that no other is below. A device
        may look later, when it waits for results anyway, and answers None then.
        """
        if not x.size:
            return low
        if but is not None:
            safe = self.map(_REPLACED, (x, but, low), x.dtype)
            return self.require(safe, low, high, lambda _: error(self.to_host(x)))
        dims = tuple(range(len(x.shape)))
        least, most = (self.to_host(self.reduce(r, x, dims, False))[()] for r in ("min", "max"))
        if not (least >= low and most < high):
            raise error(self.to_host(x))
        return least

    def within(self, x: Array, low: float, high: float) -> bool:
        """Whether `low <= x < high` everywhere; False also where looking would be a wait."""
        return False

    # Making arrays ----------------------------------------------------------------------------
    def full(self, shape: Shape, value: Any, dtype: NumpyDType) -> Array:
        """Every element is `value`."""
        out = self.empty(shape, dtype)
        self.assign(out, self.from_host(np.array(value, dtype)))
        return out

    def arange(self, start: Any, step: Any, count: int, dtype: NumpyDType) -> Array:
        """`start + i * step` for i below `count`."""
        steps = np.arange(count, dtype=np.int64 if np.dtype(dtype).kind in "iub" else np.float64)
        return self.from_host((start + steps * step).astype(dtype))

    def table(self, make: Callable[..., Any], *args: Any) -> Array:
        """The NumPy array `make(*args)` on this device, kept for the next time; never write to it.

        `make` is a function defined once; the arguments are hashable.
        """
        key = (make, args)
        found = self._tables.get(key)
        if found is None:
            if len(self._tables) >= _TABLES:
                self._tables.clear()
            found = self._tables[key] = self.from_host(make(*args))
        return found

    def philox(self, seed: int, offset: int, count: int) -> Array:
        """`count` words (uint32) of the Philox 4x32-10 stream of `seed`, from word `offset` on."""
        return self.from_host(philox_words(seed, offset, count))

    def copy(self, x: Array) -> Array:
        """A fresh row-major copy."""
        return self.cast(x, x.dtype)

    def cast(self, x: Array, dtype: NumpyDType) -> Array:
        """A fresh copy in another dtype, converted as by `assign`."""
        out = self.empty(x.shape, np.dtype(dtype))
        self.assign(out, x)
        return out

    def transfer(self, x: Array, target: Backend) -> Array:
        """A fresh array with these elements on another device, dense ones in their order there."""
        order = strided.memory_order(x.shape, x.strides, x.dtype.itemsize)
        if order is None:
            return target.from_host(self.to_host(x))
        there = target.from_host(self.to_host(self.permute(x, order)))
        return target.permute(there, [order.index(d) for d in range(len(order))])

    def concat(self, arrays: Sequence[Array], dim: int) -> Array:
        """Arrays of one dtype joined along `dim`."""
        from .compositions import concat

        return concat(self, arrays, dim)

    # Views ------------------------------------------------------------------------------------
    def as_strided(self, x: Array, shape: Shape, strides: Shape, offset: int) -> Array:
        """A view by element strides, from `offset` elements past x's own first element."""
        size = x.dtype.itemsize
        return x.seen(shape, tuple([s * size for s in strides]), offset * size)

    def storage_offset(self, x: Array) -> int:
        """Elements between the start of the memory that x looks at and its first element."""
        return int(x.offset // x.dtype.itemsize)

    def storage_size(self, x: Array) -> int:
        """Elements of x's dtype in the whole memory that x looks at."""
        return int(x.buffer.nbytes // x.dtype.itemsize)

    def reshape(self, x: Array, shape: Shape) -> Any:
        """A view in another shape, or None when the strides do not allow one."""
        strides = strided.reshaped(x.shape, x.strides, shape)
        return None if strides is None else x.seen(shape, strides)

    def permute(self, x: Array, dims: Sequence[int]) -> Array:
        """A view with its dimensions in another order."""
        return strided.permuted(x, dims)

    def transposed(self, x: Array) -> Array:
        """A view with its last two dimensions exchanged."""
        rank = len(x.shape)
        return self.permute(x, (*range(rank - 2), rank - 1, rank - 2))

    def expand(self, x: Array, shape: Shape) -> Array:
        """A view broadcast to `shape`."""
        return strided.expanded(x, shape)

    def slice(self, x: Array, slices: tuple[Any, ...]) -> Array:
        """A view by Python slices with positive or negative steps, integers, None and Ellipsis."""
        return strided.sliced(x, slices)

    def part(self, x: Array, which: str) -> Array:
        """A view of a complex array's "real" or "imag" part."""
        dtype = np.dtype(f"f{x.dtype.itemsize // 2}")
        return x.seen(x.shape, x.strides, 0 if which == "real" else dtype.itemsize, dtype)

    def bits(self, x: Array, dtype: NumpyDType) -> Array:
        """A view of the same bytes as another dtype; the last dimension's size scales with it."""
        dtype = np.dtype(dtype)
        if dtype.itemsize == x.dtype.itemsize:
            return x.seen(x.shape, x.strides, 0, dtype)
        last = x.shape[-1] * x.dtype.itemsize // dtype.itemsize
        return x.seen((*x.shape[:-1], last), (*x.strides[:-1], dtype.itemsize), 0, dtype)

    # Computation by other forms ---------------------------------------------------------------
    def map(
        self, expr: Expr, operands: Sequence[Any], dtype: NumpyDType, out: Array | None = None
    ) -> Array:
        """`maps` of one expression."""
        return self.maps((expr,), operands, (dtype,), None if out is None else (out,))[0]

    def all_plain(self, arrays: Sequence[Array]) -> bool:
        """Whether all can be written and lie in rows, so that no two elements are one place."""
        return all(self.writable(a) and self.contiguous(a) for a in arrays)

    def zero(self, arrays: Sequence[Array]) -> None:
        """Write zeros into arrays that are `all_plain`."""
        for a in arrays:
            self.assign(a, self.full((), 0, a.dtype))

    def norms(self, arrays: Sequence[Array]) -> Sequence[Array] | None:
        """The Euclidean norm of each of many arrays of one dtype, float32 or float64.

        None where one reduction after the other is as quick.
        """
        return None

    def update(
        self,
        exprs: tuple[Expr, ...],
        rows: Sequence[Sequence[Array]],
        numbers: Sequence[float],
        places: tuple[int, ...],
    ) -> None:
        """`maps` over each of many rows in turn, results written into arrays of the row itself.

        The operands are a row's arrays, of one floating dtype and one shape, then the numbers. The
        result of expression i goes into array `places[i]` of the row. All rows are of one dtype.
        """
        for row in rows:
            outs = [row[p] for p in places]
            self.maps(exprs, (*row, *numbers), [o.dtype for o in outs], outs)

    def add_into(self, target: Array, value: Array) -> None:
        """Add `value`, of the same shape and dtype, to `target` in its memory."""
        self.maps((_SUM,), (target, value), (target.dtype,), (target,))

    def add_product(self, target: Array, a: Array, b: Array) -> bool:
        """Add the product of two matrices to `target`, rounded as if it was made first.

        False, and nothing has happened, where that is not to be had.
        """
        return False

    def map_reduce(
        self,
        kind: str,
        expr: Expr,
        operands: Sequence[Any],
        dims: tuple[int, ...],
        keepdim: bool,
        dtype: NumpyDType,
    ) -> Array:
        """`reduce(kind, map(expr, operands, dtype), dims, keepdim)`, at once."""
        return self.reduce(kind, self.map(expr, operands, dtype), dims, keepdim)

    def rows(
        self,
        program: Program,
        operands: Sequence[Any],
        dims: tuple[int, ...],
        dtypes: Sequence[NumpyDType],
    ) -> tuple[Array, ...]:
        """A row program (kernel/rows) over broadcast operands; rows lie along `dims`, not empty.

        Operands of rows have size 1 along `dims`, and so have results of rows; results of columns
        have size 1 along the others. Half precision is computed in single. A program that uses the
        column takes one dim.
        """
        from .compositions import rows

        return rows(self, program, operands, dims, dtypes)

    def random_map(
        self, expr: Expr, x: Array, numbers: tuple[float, ...], limit: int, seed: int, offset: int
    ) -> Array:
        """A scalar expression over each element of floating `x`, its random bit, and the numbers.

        The bit of the element at the row-major position i tells whether word `offset` + i of the
        Philox stream of `seed` is below `limit`; the offset is a multiple of four.
        """
        words = self.reshape(self.cast(self.philox(seed, offset, x.size), _INT64), x.shape)
        drawn = self.map(_BELOW, (words, limit), _BOOL)
        return self.map(expr, (x, drawn, *numbers), x.dtype)

    def recurrence(self, a: Array, b: Array, dim: int, reverse: bool) -> Array:
        """`h[i] = a[i] * h[i-1] + b[i]` along `dim` from zero; reversed, from the other end."""
        from .compositions import recurrence

        return recurrence(self, a, b, dim, reverse)

    def take(self, x: Array, index: tuple[Any, ...]) -> Array:
        """Advanced indexing by integer arrays and full slices (NumPy's rules), as a copy."""
        from .compositions import take

        return take(self, x, index)

    def put(
        self, kind: str, x: Array, index: tuple[Any, ...], source: Array, inplace: bool = False
    ) -> Array:
        """A copy of x (or x itself, changed) with source combined in at the `take` positions.

        kind as in `scatter`; source broadcasts to the shape that `take` would give.
        """
        from .compositions import put

        return put(self, kind, x, index, source, inplace)

    def csr_matmul(
        self, begins: Array, rows: Array, columns: Array, values: Array, dense: Array
    ) -> Array:
        """A matrix whose values stand in these rows and columns, in order, times a dense one.

        `begins` says where among them each row begins, and where the last one ends.
        """
        from .compositions import csr_matmul

        return csr_matmul(self, begins, rows, columns, values, dense)

    def conv(
        self,
        out: Array,
        x: Array,
        w: Array,
        bias: Array | None,
        stride: Shape,
        padding: Padding,
        input_dilation: Shape,
        dilation: Shape,
        relu: bool = False,
    ) -> None:
        """(n, g, c, …) correlated with (g, o, c, …) over the last dimensions, plus a bias (g, o).

        With `relu` what is negative then becomes 0. Written into `out`, which is (n, g, o, …); see
        Note [convolution geometry] in kernel/windows. All four arrays may have any strides: an op
        permutes its operands and its result by views, never by copies.
        """
        from .compositions import conv

        sizes = x.shape[3:], w.shape[3:]
        conv(self, out, x, w, bias, Geometry(*sizes, stride, padding, input_dilation, dilation))
        if relu:
            self.map(RELU, (out,), out.dtype, out)

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
        """Of x, w and y, which a convolution relates, the one that is wanted, from the others.

        These are `a` and `b`, in the order x or y, w or y. See Note [one convolution] in
        ops/convolution; by default it is the form `conv` on views.
        """
        from .compositions import convolution

        return convolution(self, wanted, a, b, bias, geometry, groups, relu)

    def window(
        self,
        kind: str,
        x: Array,
        kernel: Shape,
        stride: Shape,
        padding: Padding,
        input_dilation: Shape,
        dilation: Shape,
        divisor: float = 1.0,
    ) -> Any:
        """The windows of `conv` over the last dimensions of x, reduced; kind: sum or max.

        Floating sums are divided by the divisor, in single precision at least.
        max, which takes no input dilation, also returns where in those dimensions, flattened, the
        largest element is (int32 if that holds all positions, else int64): of equal ones the first,
        of several NaN any. Padding never wins; a window of nothing else has any position.
        """
        from .compositions import window_max, window_sum

        size = x.shape[len(x.shape) - len(kernel) :]
        geometry = Geometry(size, kernel, stride, padding, input_dilation, dilation)
        if kind == "max":
            return window_max(self, x, geometry)
        return window_sum(self, x, geometry, divisor)

    def spans(self, kind: str, x: Array, output: Shape) -> Any:
        """The same of `Spans` (kernel/windows) over the last dimensions, as many as `output` says.

        None of them is empty.
        """
        from .compositions import span_max, span_sum

        spans = Spans(x.shape[len(x.shape) - len(output) :], output)
        return span_max(self, x, spans) if kind == "max" else span_sum(self, x, spans)

    def attention(
        self, q: Array, k: Array, v: Array, mask: Array | None, scale: float, causal: bool
    ) -> tuple[Array, Array]:
        """softmax(q kᵀ scale + mask) v for (b, h, length, width) arrays, and what a backward needs.

        A boolean mask tells where a query may look, a floating one is added to the scores; causal
        lets query i look at keys up to i. A query that may look nowhere gets zeros. The second
        result holds for each query the logarithm of the sum of its exponentials (+inf: nowhere).
        """
        from .compositions import attention

        return attention(self, q, k, v, mask, scale, causal)

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
        """The cotangents of q, k and v, given that of `attention`'s first result."""
        from .compositions import attention_backward

        return attention_backward(self, g, q, k, v, mask, out, lse, scale, causal)

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
        """All steps of a recurrent layer; kind: lstm, gru, tanh or relu, see Note [cells].

        `gates` (steps, batch, gates * width) are the products of the inputs, whose memory is given
        up: results may lie there; `h` and, of an LSTM,
        `c` (batch, width) the first state and memory; `weight` (gates * width, width) and `bias`
        make the products of the state. Reversed, the last step is the first. A sequence with a
        length (int64) takes part in that many steps, and has the same state in later ones.
        Returns the state after each step, the last state, the last memory or None, what the steps
        keep for a backward or None, and the memory before each step or None.
        """
        from .recurrent_steps import recurrent

        return recurrent(self, kind, gates, h, c, weight, bias, lengths, reverse)

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
        """The cotangents of `recurrent`'s input products, state's products, `h`, and `c` or None.

        Given those of its states, of the last state and of the last memory; `before` is what a
        cell's slopes ask for, see kernel/cells. The first two may be one array.
        """
        from .recurrent_steps import recurrent_backward

        return recurrent_backward(self, kind, g, dh, dc, kept, before, weight, lengths, reverse)

    def fft(self, kind: str, x: Array, dims: Shape, size: int, norm: str) -> Array:
        """A Fourier transform over some dims, scaled as NumPy's `norm` says.

        kind: "forward" and "inverse" of complex arrays; "real", of a real array, gives the first
        half of the last of the dims, the others being its conjugates; "to_real" is the inverse of
        that, to `size` elements. No dim is empty.
        """
        from .fourier import transform

        return self.from_host(transform(kind, self.to_host(x), dims, size, norm))

    def linalg(self, kind: str, arrays: Sequence[Array], *options: Any) -> tuple[Array, ...]:
        """A routine of dense linear algebra over the last two dimensions; see backends/lapack.

        Batch dimensions are the same for all arrays.
        """
        from .lapack import ROUTINES

        found = ROUTINES[kind](*[self.to_host(a) for a in arrays], *options)
        return tuple([self.from_host(a) for a in found])

    def ranked(self, x: Array, dim: int, rank: int) -> tuple[Array, Array]:
        """What `sort` has in the place `rank` along a dim, which is kept, and its index."""
        place = (slice(None),) * dim + (slice(rank, rank + 1),)
        values, indices = self.sort(x, dim, False, rank + 1)
        return self.slice(values, place), self.slice(indices, place)

    def searchsorted(self, edges: Array, values: Array, right: bool) -> Array:
        """Insertion points (int64) into the last dimension; leading dimensions correspond."""
        from .compositions import searchsorted

        return searchsorted(self, edges, values, right)

    def bincount(self, x: Array, weights: Array | None, length: int) -> Array:
        """Occurrences (int64), or summed weights (float64), of each of the values 0 to length-1."""
        flat = self.reshape(self.cast(x, _INT64), (x.size,))
        if weights is None:
            source = self.full((x.size,), 1, _INT64)
        else:
            source = self.reshape(self.cast(weights, np.dtype(np.float64)), (x.size,))
        return self.scatter("add", self.full((length,), 0, source.dtype), 0, flat, source, True)


Forms = Backend  # what an op's forward is given


_BELOW = trace(lambda a, b: call("lt", a, b), 2)
_BOOLEAN = {
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "isnan",
    "isinf",
    "isfinite",
    "signbit",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
}


def is_boolean(expr: Expr) -> bool:
    """Whether an expression is a comparison or a predicate, whose result is boolean."""
    return expr.head in _BOOLEAN
