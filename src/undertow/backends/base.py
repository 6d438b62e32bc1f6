"""The backend protocol: the closed list of kernel forms that a device answers.

Arrays are opaque to everyone but their backend; all that others read is `shape`, `strides` (in
bytes), `dtype` (NumPy's) and `size`. A CPU array is an `ndarray`. Views share memory; every other
form returns a fresh array, except `assign` and `conv`, which write. An op's forward is a short
composition of these forms; a device that answers them all runs every op.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from ..devices import Device
from ..kernel.expr import Expr
from ..kernel.row_program import Program

Array = Any
NumpyDType = Any
Shape = tuple[int, ...]


class Backend(ABC):
    """One device's implementation of every form."""

    device: Device

    # Memory -------------------------------------------------------------------------------
    @abstractmethod
    def from_host(self, array: Array) -> Array:
        """An array on this device with a NumPy array's elements (may share memory on the CPU)."""

    @abstractmethod
    def to_host(self, array: Array) -> Array:
        """The elements as a NumPy array (may share memory on the CPU)."""

    @abstractmethod
    def empty(self, shape: Shape, dtype: NumpyDType) -> Array:
        """Uninitialised row-major memory."""

    @abstractmethod
    def full(self, shape: Shape, value: Any, dtype: NumpyDType) -> Array:
        """Every element is `value`."""

    @abstractmethod
    def arange(self, start: Any, step: Any, count: int, dtype: NumpyDType) -> Array:
        """`start + i * step` for i below `count`."""

    @abstractmethod
    def philox(self, seed: int, offset: int, count: int) -> Array:
        """`count` words (uint32) of the Philox 4x32-10 stream of `seed`, from word `offset` on."""

    @abstractmethod
    def coin_map(
        self, expr: Expr, x: Array, numbers: tuple[float, ...], limit: int, seed: int, offset: int
    ) -> Array:
        """A scalar expression over each element of floating `x`, its coin, and the numbers.

        The coin of the element at the row-major position i tells whether word `offset` + i of the
        Philox stream of `seed` is below `limit`; the offset is a multiple of four.
        """

    @abstractmethod
    def copy(self, x: Array) -> Array:
        """A fresh row-major copy."""

    @abstractmethod
    def cast(self, x: Array, dtype: NumpyDType) -> Array:
        """A fresh copy in another dtype.

        Complex to real drops the imaginary part, floating to integer truncates, and an integer
        that is too large wraps around.
        """

    @abstractmethod
    def assign(self, target: Array, source: Array) -> None:
        """Write `source`, broadcast and cast, into the memory of `target`."""

    # Views --------------------------------------------------------------------------------
    @abstractmethod
    def as_strided(self, x: Array, shape: Shape, strides: Shape, offset: int) -> Array:
        """A view by element strides, from `offset` elements past x's own first element."""

    @abstractmethod
    def storage_offset(self, x: Array) -> int:
        """Elements between the start of the memory that x looks at and its first element."""

    @abstractmethod
    def root(self, x: Array) -> Array:
        """The whole memory that x looks at, as a one-dimensional array."""

    @abstractmethod
    def reshape(self, x: Array, shape: Shape) -> Array | None:
        """A view in another shape, or None when the strides do not allow one."""

    @abstractmethod
    def permute(self, x: Array, dims: Sequence[int]) -> Array:
        """A view with its dimensions in another order."""

    @abstractmethod
    def expand(self, x: Array, shape: Shape) -> Array:
        """A view broadcast to `shape`."""

    @abstractmethod
    def slice(self, x: Array, slices: tuple[Any, ...]) -> Array:
        """A view by Python slices with positive or negative steps, integers, None and Ellipsis."""

    @abstractmethod
    def part(self, x: Array, which: str) -> Array:
        """A view of a complex array's "real" or "imag" part."""

    @abstractmethod
    def bits(self, x: Array, dtype: NumpyDType) -> Array:
        """A view of the same bytes as another dtype; the last dimension's size scales with it."""

    # Computation --------------------------------------------------------------------------
    @abstractmethod
    def map(
        self, expr: Expr, operands: Sequence[Any], dtype: NumpyDType, out: Array | None = None
    ) -> Array:
        """A scalar expression over broadcast operands (arrays of one dtype, or numbers).

        With `out`, an array of that dtype, written into it; it may be one of the operands.
        """

    @abstractmethod
    def reduce(self, kind: str, x: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
        """kind: sum mean prod max min any all; argmax argmin take exactly one dim.

        So do first_max and first_min, which give two arrays: the extremes and their indices.
        "squares" is the sum of squared deviations from the mean. Half precision is summed in single
        at least, integers wrap around.
        """

    @abstractmethod
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

    @abstractmethod
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

    @abstractmethod
    def scan(self, kind: str, x: Array, dim: int) -> Any:
        """kind: sum prod logaddexp; or max min, which return values and indices of positions."""

    @abstractmethod
    def recurrence(self, a: Array, b: Array, dim: int, reverse: bool) -> Array:
        """`h[i] = a[i] * h[i-1] + b[i]` along `dim` from zero; reversed, from the other end."""

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
    def take(self, x: Array, index: tuple[Any, ...]) -> Array:
        """Advanced indexing by integer arrays and full slices (NumPy's rules), as a copy."""

    @abstractmethod
    def put(
        self, kind: str, x: Array, index: tuple[Any, ...], source: Array, inplace: bool = False
    ) -> Array:
        """A copy of x (or x itself, changed) with source combined in at the `take` positions.

        kind as in `scatter`; source broadcasts to the shape that `take` would give.
        """

    @abstractmethod
    def concat(self, arrays: Sequence[Array], dim: int) -> Array:
        """Arrays of one dtype joined along `dim`."""

    @abstractmethod
    def matmul(self, a: Array, b: Array, bias: Array | None = None) -> Array:
        """(…, m, k) times (…, k, n), batch dimensions broadcast, plus a bias per column (n)."""

    @abstractmethod
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
        """(n, g, c, …) correlated with (g, o, c, …) over the last dimensions, plus a bias (g, o).

        With `relu` what is negative then becomes 0. Written into `out`, which is (n, g, o, …); see
        Note [convolution geometry] in kernel/windows. All four arrays may have any strides: an op
        turns its operands and its result by permuted and reversed views, never by copies.
        """

    @abstractmethod
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
        """The windows of `conv` over the last dimensions of x, reduced; kind: sum or max.

        Floating sums are divided by the divisor, in single precision at least.
        max, which takes no input dilation, also returns where in those dimensions, flattened, the
        largest element is (int32 if that holds all places, else int64): of equal ones the first, of
        several NaN any. Padding never wins; a window of nothing else has any place.
        """

    @abstractmethod
    def attention(
        self, q: Array, k: Array, v: Array, mask: Array | None, scale: float, causal: bool
    ) -> tuple[Array, Array]:
        """softmax(q kᵀ scale + mask) v for (b, h, length, width) arrays, and what a backward needs.

        A boolean mask tells where a query may look, a floating one is added to the scores; causal
        lets query i look at keys up to i. A query that may look nowhere gets zeros. The second
        result holds for each query the logarithm of the sum of its exponentials (+inf: nowhere).
        """

    @abstractmethod
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

    @abstractmethod
    def sort(
        self, x: Array, dim: int, descending: bool, count: int | None = None
    ) -> tuple[Array, Array]:
        """Stably sorted values and their indices; NaN counts as largest.

        With a count, only the first so many; which of equal elements are the last is left open.
        """

    @abstractmethod
    def searchsorted(self, edges: Array, values: Array, right: bool) -> Array:
        """Insertion points (int64) into the last dimension; leading dimensions correspond."""

    @abstractmethod
    def nonzero(self, x: Array) -> Array:
        """Coordinates of the nonzero elements in row-major order: (count, ndim), int64."""

    @abstractmethod
    def bincount(self, x: Array, weights: Array | None, length: int) -> Array:
        """Occurrences (int64), or summed weights, of each of the values 0 to length - 1."""
