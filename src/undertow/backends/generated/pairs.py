"""Forms of complex numbers, which no kernel of a form knows: each is one of their parts.

Note [complex numbers on devices]
A complex array is one of real numbers with a last dimension of two, or two arrays of real numbers
whose steps are twice as long. What only moves elements, or adds them, is done on the former; an
expression is one kernel that loads and stores pairs (kernel/complex_lower); products of matrices,
and convolutions, are four real ones. A form without complex operands never comes here: `type_of`
refuses their dtype with `Paired`, and `with_host` then looks for the form in this file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...kernel.complex_lower import PARTS
from ...kernel.expr import Expr, call, trace
from ...kernel.groups.elements import Operand, blocks
from ...kernel.groups.maps import map_function
from ...kernel.layout import coalesce
from ...kernel.lower import NotCompiled
from .. import compositions
from ..base import Backend
from ..strided import StridedArray, expanded
from .launching import Made, sharing
from .layouts import broadcast, countable, padded, steps_in

_BOOL = np.dtype(bool)
_IS_TRUE = trace(lambda a: call("ne", a, 0), 1)
_PRODUCT = trace(lambda a, b: a * b, 2)
_SUM = trace(lambda a, b: a + b, 2)
_LESS = trace(lambda a, b: a - b, 2)


class Paired(NotCompiled):
    """Complex numbers, in a form whose kernels know none."""


def real_of(dtype: Any) -> Any:
    """The dtype of the parts of a complex one; another one is itself."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def as_parts(x: StridedArray) -> StridedArray:
    """Both parts along a last dimension of two."""
    real = real_of(x.dtype)
    return x.seen((*x.shape, 2), (*x.strides, real.itemsize), 0, real)


def as_complex(x: StridedArray) -> StridedArray:
    """The complex numbers whose parts lie beside each other along the last dimension."""
    assert x.strides[-1] == x.dtype.itemsize
    return x.seen(x.shape[:-1], x.strides[:-1], 0, np.dtype(f"c{2 * x.dtype.itemsize}"))


def _joined(k: Any, re: StridedArray, im: StridedArray) -> StridedArray:
    out: StridedArray = k.empty(re.shape, np.dtype(f"c{2 * re.dtype.itemsize}"))
    k.assign(k.part(out, "real"), re)
    k.assign(k.part(out, "imag"), im)
    return out


def _both(k: Any, x: StridedArray) -> tuple[StridedArray, StridedArray]:
    return k.part(x, "real"), k.part(x, "imag")


# Element by element ---------------------------------------------------------------------------
def maps(
    k: Any,
    exprs: tuple[Expr, ...],
    operands: Sequence[Any],
    dtypes: Sequence[Any],
    outs: Sequence[StridedArray] | None = None,
) -> Sequence[StridedArray]:
    arrays = [o for o in operands if o.__class__ is StridedArray]
    if not arrays:
        arrays = [k.from_host(np.asarray(operands[0], dtypes[0]))]
        operands = (arrays[0], *operands[1:])
    if outs is None:
        shape = broadcast(*[a.shape for a in arrays])
        outs = [k.empty(shape, np.dtype(t)) for t in dtypes]
    else:
        operands, arrays = k._apart(outs, operands, arrays)
    shape = outs[0].shape
    key: list[Any] = ["pairs", exprs, shape]
    key += [(a.shape, a.strides, a.dtype) for a in (*outs, *arrays)]
    key += [a.__class__ for a in operands]
    seen = sharing([*outs, *arrays])
    plan = k.plan((*key, seen), _map_plan, k, exprs, operands, outs, seen)
    if outs[0].size:
        numbers: list[float] = []
        for o in operands:
            if o.__class__ is not StridedArray:
                numbers += (o.real, o.imag) if isinstance(o, complex) else (float(o),)
        # Real parts, whose offsets count in real numbers.
        k.launcher.launch(plan, [_first(k, a) for a in (*outs, *arrays)], numbers)
    return outs


def _first(k: Any, a: StridedArray) -> StridedArray:
    return k.part(a, "real") if a.dtype.kind == "c" else a


def _type(k: Any, dtype: Any) -> str:
    """A memory type, or the name of pairs of one."""
    if dtype.kind != "c":
        return str(k.type_of(dtype))
    part = k.type_of(real_of(dtype))
    return next(c for c, real in PARTS.items() if real == part)


def _map_plan(
    k: Any, exprs: Any, operands: Sequence[Any], outs: Sequence[StridedArray], seen: Any
) -> Made:
    shape = outs[0].shape
    arrays = [o for o in operands if o.__class__ is StridedArray]
    types = [_type(k, a.dtype) for a in arrays]
    results = [_type(k, o.dtype) for o in outs]
    compute = next(PARTS[t] for t in (*types, *results) if t in PARTS)
    own = [steps_in(_first(k, a), shape) for a in (*outs, *arrays)]
    sizes, steps = padded(*coalesce(shape, own))
    given = iter(types)
    inputs = []
    for o in operands:
        if o.__class__ is StridedArray:
            inputs.append(Operand(next(given)))
        else:
            wide = next(c for c, real in PARTS.items() if real == compute)
            inputs.append(Operand(wide if isinstance(o, complex) else compute, True))
    count = countable(shape)
    ints = (count, *sizes, *(n for s in steps for n in s))
    told = (exprs, inputs, results, compute, len(sizes))
    return Made("map", map_function, told, seen, ints, blocks(count))


def assign(k: Any, target: StridedArray, source: StridedArray) -> None:
    if not target.size:
        return
    if source.dtype.kind == "c" and target.dtype == bool:
        source = k.map(_IS_TRUE, (source,), _BOOL)
    if target.dtype.kind != "c":
        k.assign(target, _first(k, source))
    elif source.dtype.kind != "c":
        k.assign(k.part(target, "real"), source)
        k.assign(k.part(target, "imag"), k.full((), 0, real_of(target.dtype)))
    else:
        k.assign(as_parts(target), as_parts(source))


def random_map(k: Any, *args: Any) -> StridedArray:
    return Backend.random_map(k, *args)


def update(k: Any, *args: Any) -> None:
    Backend.update(k, *args)


# Along dimensions -----------------------------------------------------------------------------
def reduce(k: Any, kind: str, x: StridedArray, dims: tuple[int, ...], keepdim: bool) -> Any:
    if kind in ("any", "all"):
        return k.reduce(kind, k.map(_IS_TRUE, (x,), _BOOL), dims, keepdim)
    if kind in ("sum", "mean"):
        return as_complex(k.reduce(kind, as_parts(x), dims, keepdim))
    if kind != "prod":
        raise NotCompiled(f"{kind} of complex numbers")
    for dim in dims:
        x = _multiplied(k, x, dim)
    if keepdim:
        return x
    shape = tuple([n for d, n in enumerate(x.shape) if d not in dims])
    found = k.reshape(x, shape)
    return k.reshape(k.copy(x), shape) if found is None else found


def _multiplied(k: Any, x: StridedArray, dim: int) -> StridedArray:
    """The product along a dimension, which is kept: halves times halves."""

    def cut(start: int, stop: int) -> StridedArray:
        part: StridedArray = k.slice(x, (*(slice(None),) * dim, slice(start, stop)))
        return part

    if not x.shape[dim]:
        return k.full((*x.shape[:dim], 1, *x.shape[dim + 1 :]), 1, x.dtype)
    while x.shape[dim] > 1:
        n = x.shape[dim]
        found = k.map(_PRODUCT, (cut(0, n // 2), cut(n // 2, n // 2 * 2)), x.dtype)
        x = k.concat([found, cut(n - 1, n)], dim) if n % 2 else found
    return x


def map_reduce(
    k: Any, kind: str, expr: Expr, operands: Any, dims: Any, keepdim: bool, dtype: Any
) -> Any:
    return k.reduce(kind, k.map(expr, operands, dtype), dims, keepdim)


def scan(k: Any, kind: str, x: StridedArray, dim: int) -> Any:
    if kind == "sum":
        return as_complex(k.scan(kind, as_parts(x), dim))
    if kind != "prod":
        raise NotCompiled(f"a scan by {kind} of complex numbers")
    out, step, before = k.copy(x), 1, (slice(None),) * dim
    while step < x.shape[dim]:
        end, start = k.slice(out, (*before, slice(step, None))), (*before, slice(None, -step))
        k.assign(end, k.map(_PRODUCT, (end, k.slice(out, start)), x.dtype))
        step *= 2
    return out


def recurrence(k: Any, *args: Any) -> StridedArray:
    return compositions.recurrence(k, *args)


# At index arrays ------------------------------------------------------------------------------
def _twice(index: StridedArray) -> StridedArray:
    """The same index for both parts."""
    one = index.seen((*index.shape, 1), (*index.strides, 0))
    return expanded(one, (*index.shape, 2))


def gather(k: Any, x: StridedArray, dim: int, index: StridedArray) -> StridedArray:
    return as_complex(k.gather(as_parts(x), dim, _twice(index)))


def take(k: Any, x: StridedArray, index: tuple[Any, ...]) -> StridedArray:
    index = (*index, *(slice(None),) * (len(x.shape) + 1 - len(index)))
    return as_complex(k.take(as_parts(x), index))


def scatter(
    k: Any, kind: str, x: Any, dim: int, index: Any, source: Any, inplace: bool = False
) -> StridedArray:
    if kind not in ("set", "add"):
        raise NotCompiled(f"a scatter by {kind} of complex numbers")
    given = as_parts(source)
    found = k.scatter(kind, as_parts(x), dim, _twice(index), given, inplace)
    return x if inplace else as_complex(found)


def put(
    k: Any, kind: str, x: Any, index: tuple[Any, ...], source: Any, inplace: bool = False
) -> StridedArray:
    if kind not in ("set", "add"):
        raise NotCompiled(f"a put by {kind} of complex numbers")
    index = (*index, *(slice(None),) * (len(x.shape) + 1 - len(index)))
    found = k.put(kind, as_parts(x), index, as_parts(source), inplace)
    return x if inplace else as_complex(found)


def nonzero(k: Any, x: StridedArray) -> StridedArray:
    return k.nonzero(k.map(_IS_TRUE, (x,), _BOOL))


# Products -------------------------------------------------------------------------------------
def matmul(
    k: Any, a: StridedArray, b: StridedArray, bias: StridedArray | None = None
) -> StridedArray:
    (x, y), (u, v) = _both(k, a), _both(k, b)
    real = x.dtype
    re = k.map(_LESS, (k.matmul(x, u), k.matmul(y, v)), real)
    im = k.map(_SUM, (k.matmul(x, v), k.matmul(y, u)), real)
    found = _joined(k, re, im)
    return found if bias is None else k.map(_SUM, (found, bias), found.dtype)


def conv(k: Any, out: StridedArray, x: StridedArray, w: StridedArray, bias: Any, *how: Any) -> None:
    if len(how) > 4 and how[4]:
        raise NotCompiled("a relu of complex numbers")
    (a, b), (c, d) = _both(k, x), _both(k, w)
    real, windows = a.dtype, how[:4]

    def product(p: StridedArray, q: StridedArray) -> StridedArray:
        found: StridedArray = k.empty(out.shape, real)
        k.conv(found, p, q, None, *windows)
        return found

    re = k.map(_LESS, (product(a, c), product(b, d)), real)
    im = k.map(_SUM, (product(a, d), product(b, c)), real)
    found = _joined(k, re, im)
    if bias is not None:
        flat = k.reshape(bias, (*bias.shape, *(1,) * len(x.shape[3:])))
        found = k.map(_SUM, (found, k.expand(flat, out.shape)), out.dtype)
    k.assign(out, found)


def window(k: Any, kind: str, x: StridedArray, *how: Any, **more: Any) -> StridedArray:
    if kind == "max":
        raise NotCompiled("the largest of complex numbers")
    return _joined(k, *[k.window(kind, part, *how, **more) for part in _both(k, x)])


FORMS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        *(maps, assign, random_map, update, reduce, map_reduce, scan, recurrence),
        *(gather, take, scatter, put, nonzero, matmul, conv, window),
    )
}
