"""Convolution as a matrix product with windows that only packing lays out.

Note [two products]
The form `conv` sums over channels and taps. There are two ways to see a matrix product in it:
  - windows on the right: for each element of the batch, (outputs × steps) @ (steps × positions),
    where a step is a tap of a channel.
  - windows on the left, for more taps than positions, as in the gradient of a weight: there the
    form's channels are the images of a batch, its taps the positions of the cotangent, and its
    positions the taps of the weight. The product is a sum over channels of
    (batch and positions × taps) @ (taps × outputs).
Either way elements are summed in an order that the shapes alone decide. A dilated input is split
into phases first, so that no zeros are multiplied. Kernels of one element, on elements as they are,
need no windows, and neither does a single window: they are matrix products on views.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....kernel.expr import arg, call
from ....kernel.windows import Geometry, phases
from ... import cpu, debug
from ...base import Backend, Shape
from ...compositions import convolution_views, convolved_shape
from ...memory import empty
from ...threads import current_limit
from ..calls import choice
from ..calls.launch import Plan, plan_of
from ..calls.layouts import forwards
from ..codegen import jit
from ..products.gemm import assembled, gemm, make_plan, run_product
from ..products.gemm_micro import RELU, Epilogue, width
from ..products.gemm_plan import Operands, Setting, choose_packed
from ..products.gemm_tiles import cache_sizes, host
from ..products.window_pack import MOST_STRIDE, RANK, WindowPacking, pieces
from .cook_toom import run_cook_toom, run_windows, run_woven
from .direct import direct_plan, run_direct, run_plan
from .patches import patches_of, run_patches
from .shifted import run_shifted

_TYPES = {"float32": "float", "float64": "double"}
_SINGLE = np.dtype(np.float32)
_FEW = 1 << 14  # weights that NumPy sums in less time
_MANY = 16  # channels of a group, from which on no direct kernel is for them
HALVES = 1 << 20  # elements of half precision that are converted at a time, about
_RELU = call("maximum", arg(0), 0)


def run_conv(
    out: Any, x: Any, w: Any, bias: Any, geometry: Geometry, backend: Backend, relu: bool = False
) -> bool:
    """Write the form `conv` into `out`; False if there is no kernel for it.

    `backend` makes the copies that are needed, and a pass of its own for `relu` where that is not
    part of a product.
    """
    if not 1 <= len(geometry.size) <= RANK or x.dtype.kind not in "fV":
        return False
    whole = max(geometry.input_dilation) == 1 and x.itemsize > 2
    whole = bool(whole and out.size and x.size and w.size)
    tried = whole and geometry.meets_zeros and w.shape[2] >= _MANY
    # Fewer products tell by themselves whether a weight is not finite: results are not, either.
    if tried and run_cook_toom(out, x, w, bias, geometry, backend, relu, cpu.fast_convolution):
        return True
    if geometry.meets_zeros and not _finite(w, backend):
        return False
    if whole:
        if not _one(out, x, w, bias, geometry, backend, relu, tried) and relu:
            _cut_off(out, backend)
        return True
    if x.itemsize > 2 and out.size and x.size and w.size:
        done = run_patches(out, x, w, bias, geometry, backend, relu)
        if done is not None:
            if relu and not done:
                _cut_off(out, backend)
            return True
    parts = phases(geometry)
    if parts is None:
        return False
    if (len(parts) > 1 or x.itemsize == 2) and run_direct(out, x, w, bias, geometry, relu):
        return True
    if not out.size:
        return True
    if x.itemsize == 2:
        _in_single(out, x, w, bias, geometry, backend, relu)
        return True
    if not x.size or not w.size:
        parts = ()
    if sum(math.prod(part.geometry.output) for part in parts) < math.prod(geometry.output):
        _fill(out, bias, backend)
        if relu:
            _cut_off(out, backend)
    if parts and run_woven(out, x, w, bias, geometry, backend, relu, cpu.fast_convolution):
        return True
    for part in parts:
        target = out[(..., *part.positions)]
        done = _one(target, x, w[(..., *part.taps)], bias, part.geometry, backend, relu)
        if relu and not done:
            _cut_off(target, backend)
    return True


class _Whole(NamedTuple):
    """A convolution by one kernel, on its operands as they are."""

    shape: Shape
    plan: Plan
    product: bool  # or direct
    swapped: bool  # b is the product's left operand
    finite: bool  # whether b must be


def run_convolution(
    wanted: str,
    a: Any,
    b: Any,
    bias: Any,
    geometry: Geometry,
    groups: int,
    relu: bool,
    backend: Backend,
) -> Any:
    """The form `convolution` by one kernel, without a view; None if that is not for it.

    Of a small one, the views and all questions about them would take longer than the kernel.
    """
    options = (wanted, geometry, groups, relu, backend, current_limit())
    found = plan_of(_plan_whole, (a, b, bias), *options)
    if not found or (found.finite and not _finite(b, backend)):
        return None
    out = empty(found.shape, a.dtype)
    if not found.product:
        run_plan(found.plan, out, a, b, bias)
    elif found.swapped:
        run_product(found.plan, b, a, out, bias)
    else:
        run_product(found.plan, a, b, out, bias)
    return out


def _plan_whole(
    operands: tuple[Any, Any, Any],
    wanted: str,
    geometry: Geometry,
    groups: int,
    relu: bool,
    backend: Backend,
    threads: int,
) -> _Whole | None:
    a, b, bias = operands
    if not geometry.size:
        return None
    shape = convolved_shape(wanted, a, b, geometry, groups)
    views = convolution_views(
        backend, wanted, np.empty(shape, a.dtype), a, b, bias, geometry, groups
    )
    to, x, w, biases, turned = views
    if a.itemsize > 2 and patches_of(x, w, turned) is not None:
        return None
    first = (jit.address(w) - jit.address(b)) // b.itemsize
    plan = direct_plan(*views, relu, first)
    if plan is not None:
        return _Whole(shape, plan, False, False, turned.meets_zeros)
    if (
        a.dtype.name not in _TYPES
        or not choice.convolved(to, w)
        or not min(x.size, w.size, to.size)
    ):
        return None
    if max(turned.input_dilation) > 1:
        return None
    factors = _factors(to, x, w, biases, turned)
    if factors is None or first or factors.rest is not None or (relu and not factors.last):
        return None
    setting = Setting(host(), *cache_sizes(), threads)
    activation = RELU if relu else None
    product = make_plan(setting, *factors[:4], activation=activation, summed=factors.summed)
    return _Whole(shape, product, True, factors.swapped, turned.meets_zeros)


def _finite(w: Any, backend: Backend) -> bool:
    """Whether no weight is infinite or NaN, nor so large that their sum is."""
    if w.itemsize == 2:
        w = backend.cast(w, _SINGLE)
    if w.size < _FEW:
        return math.isfinite(np.vdot(w, w))
    w = forwards(w)  # and in the order of memory, which is read fastest
    w = w.transpose(sorted(range(w.ndim), key=lambda d: -w.strides[d]))
    return math.isfinite(backend.reduce("sum", w, tuple(range(w.ndim)), False))


def _in_single(
    out: Any, x: Any, w: Any, bias: Any, geometry: Geometry, backend: Backend, relu: bool
) -> None:
    """Half precision by single, of a few images at a time, which are all that is converted."""

    def wide(a: Any) -> Any:
        return None if a is None else backend.cast(a, _SINGLE)

    bias = wide(bias)
    left = math.prod(geometry.kernel) > math.prod(geometry.output)
    images = x.shape[2 if left else 0]  # see Note [two products]
    whole = x.size + (w.size if left else out.size)
    several = max(1, HALVES * images // max(whole, 1))
    parts = [slice(first, first + several) for first in range(0, max(images, 1), several)]
    if not left:
        w = wide(w)
        for part in parts:
            made = empty(out[part].shape, _SINGLE)
            run_conv(made, wide(x[part]), w, bias, geometry, backend, relu)
            backend.assign(out[part], made)
        return
    total = empty(out.shape, _SINGLE)
    made = total if len(parts) < 2 else empty(out.shape, _SINGLE)
    for number, part in enumerate(parts):
        into = made if number else total
        run_conv(into, wide(x[:, :, part]), wide(w[:, :, part]), None, geometry, backend)
        if number:
            total += made
    if bias is not None:
        total += bias.reshape(*bias.shape, *(1,) * len(geometry.size))
    if relu:
        _cut_off(total, backend)
    backend.assign(out, total)


def _cut_off(out: Any, backend: Backend) -> None:
    """Make what is negative 0."""
    backend.map(_RELU, (out,), out.dtype, out)


def _fill(out: Any, bias: Any, backend: Backend) -> None:
    """The result where no tap meets an element."""
    rank = out.ndim - 3
    value = np.zeros((), out.dtype) if bias is None else bias.reshape(*bias.shape, *(1,) * rank)
    backend.assign(out, np.broadcast_to(value, out.shape))


def _one(
    out: Any,
    x: Any,
    w: Any,
    bias: Any,
    geometry: Geometry,
    backend: Backend,
    relu: bool,
    tried: bool = False,
) -> bool:
    """A convolution whose input is not dilated; whether `relu` is a part of what was done.

    `tried` tells that fewer products were, and are not for it.
    """
    left = math.prod(geometry.kernel) > math.prod(geometry.output)
    done = run_patches(out, x, w, bias, geometry, backend, relu)
    if done is None and run_direct(out, x, w, bias, geometry, relu):
        return True
    if done is None:
        done = _product(out, x, w, bias, geometry, relu)
    if done is None and not tried:
        done = run_cook_toom(out, x, w, bias, geometry, backend, relu, cpu.fast_convolution)
    for way in (run_windows, run_shifted) if left else (run_shifted, run_windows):
        if done is None:
            done = way(out, x, w, bias, geometry, backend, relu)
    if done is not None:
        return done
    if left:
        _windows_left(out, x, w, bias, geometry, backend)
        return False
    _windows_right(out, x, w, bias, geometry, backend, relu)
    return True


class _Factors(NamedTuple):
    """A convolution as one product of views: out = a @ b + bias."""

    a: Any
    b: Any
    out: Any
    bias: Any  # one number per row
    rest: Any  # a bias that must be added afterwards
    summed: bool  # the product is a sum of several; see `gemm`
    swapped: bool  # a is w, not x

    @property
    def last(self) -> bool:
        """Whether a function of the result may be part of the product."""
        return self.swapped and self.rest is None


def _factors(out: Any, x: Any, w: Any, bias: Any, geometry: Geometry) -> _Factors | None:
    """The product, if every element is a window or all are one; None if neither is so."""
    one = geometry.kernel == geometry.size and math.prod(geometry.output) == 1
    each = geometry.output == geometry.size and math.prod(geometry.kernel) == 1
    if not (one or each) or any(low for low, _ in geometry.padding):
        return None
    to, of, by = _step(out), _step(x), _step(w)
    steps = geometry.dilation if one else geometry.stride
    if to is None or of is None or by is None or max(steps) > 1:
        return None
    out, x, w = _flat(out, to), _flat(x, of), _flat(w, by)
    if not one:
        rows = bias is not None and len(w) == 1
        added, rest = (bias.reshape(-1, 1), None) if rows else (None, bias)
        rest = None if rest is None else rest[..., None]
        return _Factors(w[..., 0], x, out, added, rest, False, True)
    out = out[..., 0].swapaxes(0, 1)
    if x.shape[-1] > 1:
        a, b = x.transpose(2, 1, 0, 3), w.transpose(2, 0, 3, 1)
    else:
        a, b = x[..., 0].swapaxes(0, 1), w[..., 0].swapaxes(1, 2)
    rest = None if bias is None else bias[:, None]
    return _Factors(a, b, out, None, rest, x.shape[-1] > 1, False)


def _product(out: Any, x: Any, w: Any, bias: Any, geometry: Geometry, relu: bool) -> bool | None:
    """Write it as a product on views; whether `relu` is a part of it, or None if not for this."""
    found = _factors(out, x, w, bias, geometry)
    if found is None:
        return None
    a, b, out, added, rest, summed, _ = found
    last = relu and found.last
    gemm(a, b, out, added, activation=RELU if last else None, summed=summed)
    if rest is not None:
        out += rest
    return last


def _windows(
    x: Any, dim: int, stride: int, lines: Sequence[int], backend: Backend
) -> tuple[Any, WindowPacking]:
    """How to pack windows of x, with channels in `dim`; and x, copied if that must be.

    Positions are `stride` elements apart, in lines as long as the last number says.
    """
    if x.strides[-1] != x.itemsize and x.shape[-1] > 1:
        if x.strides[dim] == x.itemsize:
            return x, WindowPacking(channels_last=True)
        if stride <= MOST_STRIDE:
            x = backend.copy(x)
    if stride > MOST_STRIDE:
        x = backend.copy(x.swapaxes(dim, -1)).swapaxes(dim, -1)
        return x, WindowPacking(channels_last=True)
    lanes = host().vector // x.itemsize
    return x, WindowPacking(stride, pieces(lines[-1], lanes, math.prod(lines[:-1])))


def _flat(x: Any, step: int) -> Any:
    """A view with the spatial dimensions as one, with that step in bytes."""
    flat = x.reshape(*x.shape[:3], math.prod(x.shape[3:]))
    assert flat.strides[3] == step or flat.shape[3] == 1
    return flat


def _step(x: Any) -> int | None:
    """The step in bytes between neighbours of the spatial dimensions as one; None if it varies."""
    step = None
    following = 1
    for size, stride in zip(reversed(x.shape[3:]), reversed(x.strides[3:]), strict=True):
        if size == 1:
            continue
        if step is None:
            step = stride
        elif stride != step * following:
            return None
        following *= size
    return x.itemsize if step is None else step


def _windows_right(
    out: Any, x: Any, w: Any, bias: Any, geometry: Geometry, backend: Backend, relu: bool
) -> None:
    """(outputs × steps) @ (steps × positions); see Note [two products]."""
    x, windows = _windows(x, 2, geometry.stride[-1], geometry.output, backend)
    target, step = out, _step(out)
    if step is None:
        target, step = empty(out.shape, out.dtype), out.itemsize
    if not w.flags.c_contiguous:
        w = backend.copy(w)
    options = (step, geometry, bias is not None, relu, windows, current_limit())
    plan = plan_of(_plan_right, (target, x, w), *options)
    run_product(plan, w, x, target, bias)
    if target is not out:
        backend.assign(out, target)


def _plan_right(
    operands: tuple[Any, Any, Any],
    step: int,
    geometry: Geometry,
    biased: bool,
    relu: bool,
    windows: WindowPacking,
    threads: int,
) -> Plan:
    out, x, w = operands
    n, groups = x.shape[:2]
    outputs, steps = w.shape[1], math.prod(w.shape[2:])
    type = _TYPES[x.dtype.name]
    size = width(type)
    setting = Setting(host(), *cache_sizes(), threads)
    o = Operands(
        outputs,
        math.prod(geometry.output),
        steps,
        n * groups,
        (steps * size, size),
        (3 * size, size),
        (out.strides[2], step),
        size,
        size,
    )
    chosen = choose_packed(o, setting, windows, left=False)
    meeting = geometry.kernel, geometry.output, geometry.stride, geometry.dilation
    map = _map(x, 2, geometry, *meeting)
    debug.note(f"convolution of {x.dtype.name} {x.shape} by {w.shape}, {geometry}: {chosen}")
    outer = [(0, w.strides[0]), x.strides[:2], out.strides[:2], (0, outputs * size)]
    epilogue = Epilogue("rows" if biased else "", RELU if relu else None)
    maps = np.array(o.a, np.int64), map
    given = (epilogue, (type, type), (n, groups), outer, maps, out.shape)
    return assembled(setting, o, chosen, *given)


def _windows_left(
    out: Any, x: Any, w: Any, bias: Any, geometry: Geometry, backend: Backend
) -> None:
    """The sum over channels of (batch and positions × taps) @ (taps × outputs)."""
    x, windows = _windows(x, 0, geometry.dilation[-1], geometry.kernel, backend)
    step = _step(w)
    if step is None:
        w, step = backend.copy(w), w.itemsize
    n, groups, _ = x.shape[:3]
    result = empty((groups, n, *geometry.output, w.shape[1]), out.dtype)
    plan = plan_of(_plan_left, (result, x, w), step, geometry, windows, current_limit())
    run_product(plan, x, w, result)
    rank = len(geometry.size)
    backend.assign(out, result.transpose(1, 0, 2 + rank, *range(2, 2 + rank)))
    if bias is not None:
        out += bias.reshape(*bias.shape, *(1,) * rank)


def _plan_left(
    operands: tuple[Any, Any, Any],
    step: int,
    geometry: Geometry,
    windows: WindowPacking,
    threads: int,
) -> Plan:
    out, x, w = operands
    n, groups, images = x.shape[:3]
    outputs = w.shape[1]
    type = _TYPES[x.dtype.name]
    size = width(type)
    setting = Setting(host(), *cache_sizes(), threads)
    o = Operands(
        math.prod(geometry.output) * n,
        outputs,
        math.prod(geometry.kernel),
        groups,
        (size, 3 * size),
        (step, w.strides[1]),
        (outputs * size, size),
        size,
        size,
        images,
        x.strides[2],
        w.strides[2],
    )
    chosen = choose_packed(o, setting, windows, left=True)
    meeting = geometry.output, geometry.kernel, geometry.dilation, geometry.stride
    map = _map(x, 0, geometry, *meeting)
    debug.note(f"convolution of {x.dtype.name} {x.shape} by {w.shape}, {geometry}: {chosen}")
    outer = [x.strides[1:2], w.strides[:1], out.strides[:1], (0,)]
    maps = map, np.array(o.b, np.int64)
    given = (Epilogue(), (type, type), (groups,), outer, maps, out.shape)
    return assembled(setting, o, chosen, *given)


def _map(
    x: Any,
    dim: int,
    geometry: Geometry,
    taps: Shape,
    positions: Shape,
    stride: Shape,
    dilation: Shape,
) -> Any:
    """What the packing function is told, in as many dimensions as it has.

    `dim` is that of the channels. Which of kernel and output are the taps, and which the
    positions, and so which steps are whose, the caller says.
    """
    low = [pair[0] for pair in geometry.padding]
    # A line of one element may have any step, but lanes are counted in elements.
    steps = [x.itemsize if n == 1 else s for n, s in zip(x.shape[3:], x.strides[3:], strict=True)]
    numbers = [x.strides[dim]]
    for field, fill in (
        (taps, 1),
        (positions, 1),
        (geometry.size, 1),
        (stride, 1),
        (dilation, 1),
        (low, 0),
        (steps, 0),
    ):
        numbers += [*(fill,) * (RANK - len(field)), *field]
    return np.array(numbers, np.int64)
