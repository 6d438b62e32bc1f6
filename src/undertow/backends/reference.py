"""Plain NumPy: the living definition of every form, and the CPU's kernels for small arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.lib.stride_tricks import as_strided

from ..kernel.erf import erf_formula
from ..kernel.expr import Expr, trace
from ..kernel.windows import Geometry
from .base import Array, Backend, NumpyDType, Shape
from .holders import getrefcount
from .memory import owns
from .philox import philox_words
from .quiet import restore, silence
from .sliding import correlate, window_max, window_sum
from .strided import expanded_strides
from .threads import blas_threads, current_limit

UFUNCS: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "floor_div": np.floor_divide,
    "mod": np.remainder,
    "fmod": np.fmod,
    "pow": np.power,
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "copysign": np.copysign,
    "ldexp": np.ldexp,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "signbit": np.signbit,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "logical_not": np.logical_not,
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
    "bit_not": np.invert,
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
    "where": np.where,
    "real": np.real,
    "imag": np.imag,
    "conj": np.conjugate,
    "angle": np.angle,
}

_ndarray = np.ndarray
_asarray = np.asarray
_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
_compiled: dict[tuple[int, int], tuple[Expr, Callable[..., Any]]] = {}  # by identity and arity


def compile_map(expr: Expr, arity: int) -> Callable[..., Any]:
    """A NumPy callable for a scalar expression.

    A primitive of the arguments in order is its ufunc itself, so that interpreting it costs
    nothing. Anything longer becomes one Python function with a line per distinct subexpression.

    >>> from ..kernel.expr import trace
    >>> compile_map(trace(lambda a, b: a * b, 2), 2) is np.multiply
    True
    """
    found = _compiled.get((id(expr), arity))
    if found is None:
        found = _compiled[id(expr), arity] = (expr, _compile(expr, arity))
    return found[1]


def python_lines(exprs: Sequence[Expr]) -> tuple[list[str], list[str]]:
    """Assignments that compute expressions of `a0`, `a1` …, and a name for each result.

    There is a line per distinct subexpression; the names of the primitives are those of `UFUNCS`.
    """
    names: dict[str, str] = {}
    lines: list[str] = []
    done: dict[int, str] = {}

    def visit(node: Expr) -> str:
        if node.head == "arg":
            return f"a{node.args[0]}"
        if node.head == "const":
            value = node.args[0]
            return repr(value) if math.isfinite(abs(value)) else f"float('{value}')"
        if id(node) not in done:
            text = f"{node.head}({', '.join(visit(a) for a in node.args)})"
            if text not in names:
                names[text] = f"t{len(names)}"
                lines.append(f"{names[text]} = {text}")
            done[id(node)] = names[text]
        return done[id(node)]

    return lines, [visit(expr) for expr in exprs]


def _compile(expr: Expr, arity: int) -> Callable[..., Any]:
    # Not by the text of a part, which spells out again what parts have in common.
    plain = [a.args[0] for a in expr.args if isinstance(a, Expr) and a.head == "arg"]
    if plain == list(range(arity)) and len(expr.args) == arity and expr.head in UFUNCS:
        return UFUNCS[expr.head]
    lines, (result,) = python_lines((expr,))
    arguments = ", ".join(f"a{i}" for i in range(arity))
    body = "".join(f"    {line}\n" for line in lines)
    # The name lets the filter of Note [floating-point warnings] know warnings from in there.
    scope: dict[str, Any] = {**UFUNCS, "__name__": __name__}
    exec(f"def kernel({arguments}):\n{body}    return {result}", scope)
    kernel: Callable[..., Any] = scope["kernel"]
    if len(lines) < 2:
        return kernel  # one ufunc knows by itself about half precision and weak numbers

    def run(*operands: Any) -> Any:
        dtype = None
        numbers = False
        for o in operands:
            if o.__class__ is not _ndarray:
                numbers = True
            elif dtype is None or dtype.kind == "b":
                dtype = o.dtype
        if dtype is None or dtype.kind in "iubc":
            return kernel(*operands)
        half = dtype.itemsize == 2
        if half:  # computed in single, as compiled kernels will
            operands = tuple(
                o.astype(np.float32) if o.__class__ is _ndarray and o.dtype == dtype else o
                for o in operands
            )
        if numbers:  # lest an expression of numbers alone become float64
            number = np.float32 if half else dtype.type
            operands = tuple(number(o) if type(o) in (int, float) else o for o in operands)
        out = kernel(*operands)
        return out.astype(dtype) if half and out.dtype == np.float32 else out

    return run


def _erf(x: Any) -> Any:
    """NumPy has no error function: computed by a formula of what it has."""
    return compile_map(_ERF, 1)(x)


_ERF = trace(erf_formula, 1)
UFUNCS["erf"] = _erf

_ACCUMULATE: dict[str, Any] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "any": np.logical_or,
    "all": np.logical_and,
    "logaddexp": np.logaddexp,
}


_COMBINE = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


# Multiplications in one matrix product; see Note [BLAS threads].
TINY_PRODUCT = 1 << 18  # BLAS itself uses one thread up to here
LARGE_PRODUCT = 1 << 24  # from here on its threads pay


def _is_half(dtype: Any) -> bool:
    return dtype.itemsize == 2 and dtype.kind not in "iu"


def is_float8(dtype: Any) -> bool:
    """Whether it is a floating dtype of one byte."""
    return bool(dtype.itemsize == 1 and dtype.kind in "fV")


def to_float8(x: Array, dtype: NumpyDType) -> Array:
    """Numbers in eight bits by torch's rules: what is beyond e4m3fn is its largest number.

    And e8m0fnu, which has neither sign nor zero, takes magnitudes, and its smallest number for 0.
    """
    token = silence()
    try:
        x = x.astype(np.float32)
        name = np.dtype(dtype).name
        if name == "float8_e4m3fn":
            x = np.clip(x, -448.0, 448.0)
        elif name == "float8_e8m0fnu":
            x = np.maximum(np.abs(x), np.float32(2.0**-127))
        return np.asarray(x).astype(dtype, order="C")
    finally:
        restore(token)


def _double(dtype: Any) -> Any:
    """The dtype in which a scan runs: rounding in every step would cost digits in long lines."""
    return {"f": _DOUBLE, "V": _DOUBLE, "c": np.dtype(np.complex128)}.get(dtype.kind, dtype)


def _doubled(x: Array) -> Array:
    return x.astype(_double(x.dtype), copy=False)


def all_bits_zero(value: Any) -> bool:
    """Whether a number is zero, and not the negative one."""
    return value == 0 and not (isinstance(value, float) and math.copysign(1, value) < 0)


class NumpyBackend(Backend):
    """Every form by NumPy on `ndarray`s."""

    begin = staticmethod(silence)
    end = staticmethod(restore)

    def contiguous(self, x: Array) -> bool:
        return x.flags.c_contiguous

    def writable(self, x: Array) -> bool:
        return x.flags.writeable

    def all_plain(self, arrays: Sequence[Array]) -> bool:
        for a in arrays:
            flags = a.flags
            if not (flags.c_contiguous and flags.writeable):
                return False
        return True

    def zero(self, arrays: Sequence[Array]) -> None:
        for a in arrays:
            a.fill(0)

    def norms(self, arrays: Sequence[Array]) -> Sequence[Array] | None:
        return [np.asarray(np.sqrt(np.square(a).sum())) for a in arrays]

    def memory(self, x: Array) -> int:
        return id(x if x.base is None else _owner(x))

    def owned(self, holder: list[Any], i: int) -> bool:
        return getrefcount(holder[i]) <= 2 and owns(holder[i])

    def table(self, make: Callable[..., Any], *args: Any) -> Array:
        found = super().table(make, *args)
        found.setflags(write=False)  # whoever gets hold of it cannot spoil it for others
        return found

    def within(self, x: Array, low: float, high: float) -> bool:
        return not x.size or bool(x.min() >= low and x.max() < high)

    def address(self, x: Array) -> int:
        return int(x.__array_interface__["data"][0])

    def from_host(self, array: Array) -> Array:
        return array

    def to_host(self, array: Array) -> Array:
        return array

    def empty(self, shape: Shape, dtype: NumpyDType) -> Array:
        return np.empty(shape, dtype)

    def full(self, shape: Shape, value: Any, dtype: NumpyDType) -> Array:
        if not value and all_bits_zero(value):
            return np.zeros(shape, dtype)
        if np.dtype(dtype).itemsize == 1 and is_float8(np.dtype(dtype)):
            value = to_float8(np.asarray(value), dtype)
        return np.full(shape, value, dtype) if shape else np.array(value, dtype)

    def arange(self, start: Any, step: Any, count: int, dtype: NumpyDType) -> Array:
        whole = np.dtype(dtype).kind in "iub"
        steps = np.arange(count, dtype=np.int64 if whole else np.float64)
        if not (whole and start == 0 and step == 1):
            steps = start + steps * step
        return steps if steps.dtype == dtype else self.cast(steps, dtype)

    def philox(self, seed: int, offset: int, count: int) -> Array:
        return philox_words(seed, offset, count)

    def random_map(
        self, expr: Expr, x: Array, numbers: tuple[float, ...], limit: int, seed: int, offset: int
    ) -> Array:
        drawn = self.philox(seed, offset, x.size).reshape(x.shape) < limit
        return self.map(expr, (x, drawn, *numbers), x.dtype)

    def copy(self, x: Array) -> Array:
        return np.array(x, order="C", copy=True)

    def cast(self, x: Array, dtype: NumpyDType) -> Array:
        kind = np.dtype(dtype).kind
        if x.dtype.kind == "c" and kind not in "cb":
            x = x.real
        if kind in "iu" and x.dtype.kind not in "iub":
            if kind == "u" and np.dtype(dtype).itemsize == 8:
                high = x.astype(np.float64) >= 2.0**63
                x = np.where(high, x, 0).astype(np.uint64) + np.where(high, 0, x).astype(np.int64)
            else:
                x = x.astype(np.int64)  # then narrowing wraps, on every processor
        elif is_float8(np.dtype(dtype)):
            return to_float8(x, dtype)
        return x.astype(dtype, order="C")

    def assign(self, target: Array, source: Array) -> None:
        if source.dtype.kind == "c" and target.dtype.kind not in "cb":
            source = source.real
        if is_float8(target.dtype) and source.dtype != target.dtype:
            source = to_float8(source, target.dtype)
        token = silence()  # an in-place change calls it outside of `run`
        try:
            np.copyto(target, source, casting="unsafe")
        finally:
            restore(token)

    def as_strided(self, x: Array, shape: Shape, strides: Shape, offset: int) -> Array:
        size = x.itemsize
        steps = tuple([s * size for s in strides])
        if 0 in shape:
            return np.ndarray(shape, x.dtype, strides=steps, buffer=_whole(x))
        start = (self.storage_offset(x) + offset) * size
        return np.ndarray(shape, x.dtype, _whole(x), start, steps)

    def storage_offset(self, x: Array) -> int:
        owner = _owner(x)
        return int((x.__array_interface__["data"][0] - byte_bounds(owner)[0]) // x.itemsize)

    def storage_size(self, x: Array) -> int:
        return int(_whole(x).size)

    def reshape(self, x: Array, shape: Shape) -> Array | None:
        if x.flags.c_contiguous:
            return x.reshape(shape)
        try:
            return x.reshape(shape, copy=False)
        except ValueError:
            return None

    def permute(self, x: Array, dims: Sequence[int]) -> Array:
        return x.transpose(dims)

    def transposed(self, x: Array) -> Array:
        return x.mT

    def expand(self, x: Array, shape: Shape) -> Array:
        strides = expanded_strides(x.shape, x.strides, shape)
        if x.flags.c_contiguous and x.size:
            return np.ndarray(shape, x.dtype, x, 0, strides)
        return as_strided(x, shape, strides)

    def slice(self, x: Array, slices: tuple[Any, ...]) -> Array:
        view = x[slices]
        # Integers for every dimension would give a NumPy scalar, which is a copy.
        return view if view.__class__ is _ndarray else x[(*slices, ...)]

    def part(self, x: Array, which: str) -> Array:
        return x.real if which == "real" else x.imag

    def bits(self, x: Array, dtype: NumpyDType) -> Array:
        return x.view(dtype)

    def maps(
        self,
        exprs: tuple[Expr, ...],
        operands: Sequence[Any],
        dtypes: Sequence[NumpyDType],
        outs: Sequence[Array] | None = None,
    ) -> Sequence[Array]:
        found = [NumpyBackend.map(self, e, operands, d) for e, d in zip(exprs, dtypes, strict=True)]
        if outs is None:
            return found
        for out, value in zip(outs, found, strict=True):
            np.copyto(out, value)
        return outs

    def map(
        self, expr: Expr, operands: Sequence[Any], dtype: NumpyDType, out: Array | None = None
    ) -> Array:
        function = compile_map(expr, len(operands))
        half = None
        for o in operands:
            if o.__class__ is _ndarray and o.dtype.itemsize == 2 and o.dtype.kind not in "iu":
                half = o.dtype
                break
        if half is not None and not all(isinstance(o, np.ndarray) for o in operands):
            # Numbers are compared in the arrays' precision, and computed with in single, as in
            # torch; a ufunc would round them first, and promote beside bfloat16.
            wide = half if dtype.kind == "b" else np.dtype(np.float32)
            operands = [
                o if isinstance(o, np.ndarray) and o.dtype != half else np.asarray(o, wide)
                for o in operands
            ]
        elif dtype.kind in "iu":  # a boolean result compares with the number as it is
            operands = [_wrapped(o, operands) for o in operands]
        result = np.asarray(function(*operands)).astype(dtype, copy=False)
        if out is None:
            return result
        np.copyto(out, result)
        return out

    def reduce(self, kind: str, x: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
        token = silence()  # it is asked outside of `begin` and `end`, too
        try:
            return self._reduce(kind, x, dims, keepdim)
        finally:
            restore(token)

    def _reduce(self, kind: str, x: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
        dtype = x.dtype
        if (dtype is _SINGLE or dtype is _DOUBLE) and (kind == "sum" or kind == "mean"):
            # First, being in every training step.
            summed = x if x.size <= _BLOCK else _condensed(x, dims)
            out = _add_up(summed, dims, None, None, keepdim)
            if kind == "mean":
                out = out / (x.size // (out.size or 1))
            return out if out.__class__ is _ndarray else _asarray(out)
        if kind in ("first_max", "first_min"):
            kinds = kind[6:], f"arg{kind[6:]}"
            return tuple([self._reduce(k, x, dims, keepdim) for k in kinds])
        if kind in ("argmax", "argmin"):
            pick = np.argmax if kind == "argmax" else np.argmin
            return np.asarray(pick(x, axis=dims[0], keepdims=keepdim), np.int64)
        if kind not in ("sum", "mean", "prod", "squares"):
            return np.asarray(_ACCUMULATE[kind].reduce(x, axis=dims, keepdims=keepdim))
        if _is_half(dtype) or is_float8(dtype):
            x = x.astype(np.float32)
        if kind == "prod":
            out = _ACCUMULATE["prod"].reduce(x, axis=dims, dtype=x.dtype, keepdims=keepdim)
        elif kind == "sum":
            out = _sum(x, dims, keepdim)
        else:
            count = math.prod([x.shape[d] for d in dims])
            if kind == "mean":
                out = _sum(x, dims, keepdim) / count
            else:  # the mean is rounded; what that adds to the squares is taken off again
                x = x - _sum(x, dims, True) / count
                out = _sum(x * x, dims, keepdim) - _sum(x, dims, keepdim) ** 2 / count
                out = np.maximum(out, 0)
        out = np.asarray(out)
        return to_float8(out, dtype) if is_float8(dtype) else out.astype(dtype, copy=False)

    def map_reduce(
        self,
        kind: str,
        expr: Expr,
        operands: Sequence[Any],
        dims: tuple[int, ...],
        keepdim: bool,
        dtype: NumpyDType,
    ) -> Array:
        return self.reduce(kind, self.map(expr, operands, dtype), dims, keepdim)

    def scan(self, kind: str, x: Array, dim: int) -> Any:
        if kind in ("sum", "prod", "logaddexp"):
            found = _ACCUMULATE[kind].accumulate(_doubled(x), axis=dim, dtype=_double(x.dtype))
            return found.astype(x.dtype, copy=False)
        values = _ACCUMULATE[kind].accumulate(x, axis=dim)
        # The last position that equals the running extreme (or is NaN), as in torch.
        hit = (x == values) | ((x != x) & (values != values))
        count = x.shape[dim]
        steps = np.arange(count).reshape([-1 if i == dim else 1 for i in range(x.ndim)])
        indices = np.maximum.accumulate(np.where(hit, steps, 0), axis=dim)
        return values, indices.astype(np.int64)

    def recurrence(self, a: Array, b: Array, dim: int, reverse: bool) -> Array:
        a, out = _doubled(a), np.array(b, _double(b.dtype), order="C", copy=True)
        factors, steps = np.moveaxis(a, dim, 0), np.moveaxis(out, dim, 0)
        if reverse:
            factors, steps = factors[::-1], steps[::-1]
        for i in range(1, len(steps)):
            steps[i] += factors[i] * steps[i - 1]
        return out.astype(b.dtype, copy=False)

    def gather(self, x: Array, dim: int, index: Array) -> Array:
        return x[_gather_index(index, dim)]

    def scatter(
        self, kind: str, x: Array, dim: int, index: Array, source: Array, inplace: bool = False
    ) -> Array:
        return self.put(kind, x, _gather_index(index, dim), source, inplace)

    def take(self, x: Array, index: tuple[Any, ...]) -> Array:
        if all(i.__class__ is slice for i in index[:-1]):
            return np.asarray(x.take(index[-1], axis=len(index) - 1))
        return np.asarray(x[index])

    def put(
        self, kind: str, x: Array, index: tuple[Any, ...], source: Array, inplace: bool = False
    ) -> Array:
        out = x if inplace else np.array(x, order="C", copy=True)
        if inplace and np.may_share_memory(out, source):
            source = source.copy()
        if kind == "set":
            out[index] = source
        elif _is_half(out.dtype):
            wide = out.astype(np.float32)
            _accumulate(_COMBINE[kind], wide, index, source.astype(np.float32))
            np.copyto(out, wide, casting="unsafe")
        else:
            _accumulate(_COMBINE[kind], out, index, source)
        return out

    def concat(self, arrays: Sequence[Array], dim: int) -> Array:
        return np.concatenate(arrays, axis=dim)

    def matmul(self, a: Array, b: Array, bias: Array | None = None) -> Array:
        if is_float8(a.dtype):
            wide = [None if x is None else x.astype(np.float32) for x in (a, b, bias)]
            return to_float8(self.matmul(*wide), a.dtype)
        token = silence()
        try:
            return self._matmul(a, b, bias)
        finally:
            restore(token)

    def _matmul(self, a: Array, b: Array, bias: Array | None = None) -> Array:
        if bias is not None:
            if not _is_half(a.dtype):
                out = self.matmul(a, b)
                return np.add(out, bias, out)
            single = self.matmul(*(x.astype(np.float32) for x in (a, b, bias)))
            return single.astype(a.dtype)
        if _is_half(a.dtype):
            return self.matmul(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
        # A matrix product by `dot`: BLAS for any strides, at half the overhead of matmul.
        multiply = np.ndarray.dot if a.ndim == 2 and b.ndim == 2 else np.matmul
        work = a.shape[-2] * a.shape[-1] * b.shape[-1]
        if work <= TINY_PRODUCT or (work >= LARGE_PRODUCT and current_limit() > 1):
            return multiply(a, b)
        with blas_threads(1):
            return multiply(a, b)

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
        geometry = Geometry(x.shape[3:], w.shape[3:], stride, padding, input_dilation, dilation)
        if _is_half(x.dtype):
            single = np.dtype(np.float32)
            wide = np.empty(out.shape, single)
            added = None if bias is None else bias.astype(single)
            correlate(wide, x.astype(single), w.astype(single), added, geometry, self.matmul)
            np.copyto(out, wide, casting="unsafe")
        else:
            correlate(out, x, w, bias, geometry, self.matmul)
        if relu:
            out[out < 0] = 0

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
        size = x.shape[x.ndim - len(kernel) :]
        geometry = Geometry(size, kernel, stride, padding, input_dilation, dilation)
        if kind == "max":
            return window_max(x, geometry)
        dtype = x.dtype
        total = window_sum(x.astype(np.float32) if _is_half(dtype) else x, geometry)
        if divisor != 1:
            total = total / total.dtype.type(divisor)
        return total.astype(dtype, copy=False)

    def sort(
        self, x: Array, dim: int, descending: bool, count: int | None = None
    ) -> tuple[Array, Array]:
        keys = x.astype(np.float32) if _is_half(x.dtype) else x  # bfloat16 does not order NaN
        size = x.shape[dim]
        chosen = None
        if count is not None and 0 < count < size // 8:
            at = size - count if descending else count - 1
            lead = (slice(None),) * dim
            parted = np.argpartition(keys, at, axis=dim)
            edge = keys[_gather_index(parted[(*lead, slice(at, at + 1))], dim)]
            chosen = parted[(*lead, slice(at, None) if descending else slice(count))]
            chosen = np.sort(_first_of_equal(keys, chosen, edge, dim), axis=dim)
            keys = keys[_gather_index(chosen, dim)]
        if descending:
            # Sorting the reversed array stably and reversing keeps equal elements in order.
            order = np.flip(np.argsort(np.flip(keys, dim), axis=dim, stable=True), dim)
            order = keys.shape[dim] - 1 - order
        else:
            order = np.argsort(keys, axis=dim, stable=True)
        if count is not None:
            order = order[(*(slice(None),) * dim, slice(count))]
        if chosen is not None:
            order = chosen[_gather_index(order, dim)]
        return x[_gather_index(order, dim)], np.ascontiguousarray(order, np.int64)

    def searchsorted(self, edges: Array, values: Array, right: bool) -> Array:
        side = "right" if right else "left"
        if _is_half(edges.dtype):
            edges, values = edges.astype(np.float32), values.astype(np.float32)
        if edges.ndim == 1:
            return np.asarray(np.searchsorted(edges, values, side=side), np.int64)  # type: ignore[call-overload]
        out = np.empty(values.shape, np.int64)
        for position in np.ndindex(edges.shape[:-1]):
            out[position] = np.searchsorted(edges[position], values[position], side=side)  # type: ignore[call-overload]
        return out

    def nonzero(self, x: Array) -> Array:
        return np.ascontiguousarray(np.argwhere(x), np.int64)

    def bincount(self, x: Array, weights: Array | None, length: int) -> Array:
        return np.bincount(x.reshape(-1), None if weights is None else weights.reshape(-1), length)


_BLOCK = 512
_add_up: Any = np.add.reduce


def _sum(x: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
    if x.size > _BLOCK and x.dtype.kind not in "iub":
        x = _condensed(x, dims)
    return _add_up(x, dims, x.dtype, None, keepdim)


def _condensed(x: Array, dims: tuple[int, ...]) -> Array:
    """`x` with long dimensions that will be summed away summed in blocks already.

    NumPy adds in pairs along the dimension that lies together in memory, but one by one along any
    other, which would lose digits in proportion to its length.
    """
    if len(dims) == x.ndim and x.flags.c_contiguous:
        return x
    for d in dims:
        while x.shape[d] > 2 * _BLOCK and x.strides[d] != x.itemsize:
            lead, size = (slice(None),) * d, x.shape[d]
            whole = size - size % _BLOCK
            blocks = (*x.shape[:d], whole // _BLOCK, _BLOCK, *x.shape[d + 1 :])
            parts = [np.add.reduce(x[(*lead, slice(whole))].reshape(blocks), axis=d + 1)]
            if whole < size:
                parts.append(np.add.reduce(x[(*lead, slice(whole, None))], axis=d, keepdims=True))
            x = np.concatenate(parts, axis=d)
    return x


def _owner(x: Array) -> Array:
    owner = x
    while True:
        base = owner.base
        if base is not None and not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)  # stride_tricks put an object in between
        if not isinstance(base, np.ndarray):
            return owner
        owner = base


def _whole(x: Array) -> Array:
    """The whole memory that x looks at, as a one-dimensional array."""
    owner = _owner(x)
    if owner.flags.forc:
        flat = owner.reshape(-1, order="A")
    else:
        low, high = byte_bounds(owner)
        flat = as_strided(owner, ((high - low) // owner.itemsize,), (owner.itemsize,))
    return flat if owner.dtype == x.dtype else flat.view(x.dtype)


def _first_of_equal(keys: Array, chosen: Array, edge: Array, dim: int) -> Array:
    """Indices of the same elements, but of those equal to the edge the first ones."""
    equal = keys == edge
    if keys.dtype.kind == "f" and (edge != edge).any():
        equal |= (edge != edge) & (keys != keys)
    at = _gather_index(chosen, dim)
    wanted = np.count_nonzero(equal[at], axis=dim, keepdims=True)
    if (np.count_nonzero(equal, axis=dim, keepdims=True) == wanted).all():
        return chosen
    taken = np.zeros(keys.shape, bool)
    taken[at] = True
    taken = (taken & ~equal) | (equal & (np.cumsum(equal, axis=dim) <= wanted))
    lines = np.moveaxis(taken, dim, -1)
    found = np.nonzero(lines)[-1].reshape(*lines.shape[:-1], chosen.shape[dim])
    return np.moveaxis(found, -1, dim)


def _gather_index(index: Array, dim: int) -> tuple[Array, ...]:
    """The positions that `index` points at: itself along `dim`, an open grid along the others."""
    after = index.ndim - 1
    return tuple(
        index if d == dim else np.arange(size).reshape((size,) + (1,) * (after - d))
        for d, size in enumerate(index.shape)
    )


def _accumulate(combine: Any, out: Array, index: tuple[Any, ...], source: Array) -> None:
    """`combine.at(out, index, source)`, by the one-dimensional index that NumPy is fast at."""
    lead = 0
    while index[lead].__class__ is slice:
        lead += 1
    if not out.flags.c_contiguous or any(i.__class__ is slice for i in index[lead:]):
        combine.at(out, index, source)
        return
    if lead:
        rank = max(i.ndim for i in index[lead:])
        grid = (
            np.arange(n).reshape((n,) + (1,) * (lead - 1 - d + rank))
            for d, n in enumerate(out.shape[:lead])
        )
        index = (*grid, *index[lead:])
    count = len(index)
    line = index[0]
    for size, i in zip(out.shape[1:count], index[1:], strict=True):
        line = line * size + i
    row = math.prod(out.shape[count:])
    source = np.broadcast_to(source, line.shape + out.shape[count:])
    if row != 1:
        line = line[..., None] * row + np.arange(row)
    combine.at(out.reshape(-1), line.reshape(-1), source.reshape(-1))


def _wrapped(operand: Any, operands: Sequence[Any]) -> Any:
    """A Python int reduced to the integer dtype of the arrays beside it, wrapping as in torch."""
    if type(operand) is not int:
        return operand
    dtype = next((o.dtype for o in operands if isinstance(o, np.ndarray)), None)
    if dtype is None or dtype.kind not in "iu":
        return operand
    bits = 8 * dtype.itemsize
    value = operand & ((1 << bits) - 1)
    if dtype.kind == "i" and value >> (bits - 1):
        value -= 1 << bits
    return dtype.type(value)
