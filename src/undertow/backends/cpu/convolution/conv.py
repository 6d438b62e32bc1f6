"""Convolutions by generated kernels: find the algorithm, run it, and see to what is not finite.

Which algorithms there are `choose.py` tells, and docs/inside_convolution.md.

Note [zeros meet weights]
Zeros around the input, or in it, stay zeros even for weights that are not finite, but kernels
multiply them: then the result is NaN where it must not be. Of a weight that meets zeros anywhere
this shows at the border of every image: along each dimension, where the window of some phase is the
first or the last. So the border of one image is looked at after the fact, and only if there is a
NaN the weights are. If one of them is not finite, NumPy sums tap by tap.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....kernel.lower import NotCompiled
from ....kernel.windows import Geometry
from ... import cpu
from ...base import Backend, Shape
from ...compositions import convolution_views, convolved_shape
from ...memory import empty
from ...threads import current_limit
from ..calls import choice, launch
from ..calls.launch import plan_of, sound
from ..calls.layouts import forwards
from ..calls.steps import Steps
from . import choose as table
from .phases import fill_rest
from .problem import Arrays, Problem, Way, finish

_SINGLE = np.dtype(np.float32)
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_FEW = 1 << 14  # weights that NumPy sums in less time
HALVES = 1 << 20  # elements of half precision that are converted at a time, about


def run_conv(
    out: Any, x: Any, w: Any, bias: Any, geometry: Geometry, backend: Backend, relu: bool = False
) -> bool:
    """Write the form `conv` into `out`; False if there is no kernel for it.

    `backend` makes the copies that are needed, and a pass of its own for `relu` where that is not
    part of a product.
    """
    if not 1 <= len(geometry.size) <= 3 or x.dtype.kind not in "fV":
        return False
    if not out.size:
        return True
    a = Arrays(out, x, w, bias)
    if not x.size or not w.size:
        fill_rest(a, relu, (), backend)
        return True
    options = geometry, relu, cpu.fast_convolution
    way = plan_of(_plan, a, *options, table.forced)
    if not way:
        return x.itemsize == 2 and _in_single(a, geometry, backend, relu)
    if not way.compute(a, relu, backend):
        way = plan_of(_plan, a, *options, "packed")
        way.compute(a, relu, backend)
    return _right(out, w, border(geometry), backend)


def _plan(a: Arrays, geometry: Geometry, relu: bool, mode: str, forced: str) -> Way | None:
    found = table.choose(Problem(*a, geometry, relu, mode), forced)
    return None if found is None else found[1]


class Whole(NamedTuple):
    """The form `convolution` of one layout."""

    shape: Shape
    border: Border  # if zeros meet weights
    compute: Callable[..., Any]  # by an algorithm, of out, a, b and the bias
    steps: list[Steps | None]  # the same as launches, once that is known; None if it is not


def run_convolution(
    wanted: str,
    a: Any,
    b: Any,
    bias: Any,
    geometry: Geometry,
    groups: int,
    relu: bool,
    backend: Backend,
    launching: Callable[[], Any],
    later: list[Any] | None = None,
) -> Any:
    """The form `convolution` as launches on its operands as they are; None if it is not for that.

    Of a small one, the views and all questions about them would take longer than the kernel.
    `launching` gives the backend that algorithms have while their launches are found out. With a
    list `later` nobody looks whether the result is right, and `is_right` is to be asked with it.
    """
    mode, threads = cpu.fast_convolution, current_limit()
    options = wanted, geometry, groups, relu, backend, launching, mode, threads
    for forced in (table.forced, "packed"):
        whole = plan_of(_plan_whole, (a, b, bias), *options, forced)
        if not whole:
            return None
        out = empty(whole.shape, a.dtype)
        if not whole.steps:
            whole.steps.append(_steps(whole.compute, (out, a, b, bias)))
        steps = whole.steps[0]
        if steps is None:
            return None
        asked = steps.run(out, a, b, bias)
        if later is not None:
            later += [tuple(asked), whole.border]
            return out
        if not asked or all(map(sound, asked)):
            return out if _right(out, b, whole.border, backend) else None
    return None


def is_right(out: Any, w: Any, asked: Sequence[Any], border: Border, backend: Backend) -> bool:
    """Whether a convolution by launches is what it must be, though something is not finite."""
    return all(map(sound, asked)) and _right(out, w, border, backend)


def _steps(compute: Callable[..., Any], operands: Sequence[Any]) -> Steps | None:
    try:
        found = Steps(compute, operands)
    except (NotCompiled, MemoryError):  # rehearsed operands and intermediates need room, too
        return None
    launch.PLANS.count(found.nbytes)
    return found


def _plan_whole(
    operands: tuple[Any, Any, Any],
    wanted: str,
    geometry: Geometry,
    groups: int,
    relu: bool,
    backend: Backend,
    launching: Callable[[], Any],
    mode: str,
    threads: int,
    forced: str,
) -> Whole | None:
    a, b, bias = operands
    if not geometry.size or a.dtype.name not in _FLOATS:
        return None
    shape = convolved_shape(wanted, a, b, geometry, groups)

    def problem(out: Any, a: Any, b: Any, bias: Any) -> Problem:
        views = convolution_views(backend, wanted, out, a, b, bias, geometry, groups)
        return Problem(*views, relu=relu, mode=mode)

    p = problem(np.empty(shape, a.dtype), a, b, bias)
    found = (min(p.x.size, p.w.size, p.out.size) and table.choose(p, forced)) or None
    if found is None or (found[0] != "direct" and not choice.convolved(p.out, p.w)):
        return None

    def compute(*given: Any) -> None:
        p = problem(*given)
        made = table.choose(p, forced)  # again, so that launches are written down
        assert made is not None
        made[1].compute(Arrays(*p[:4]), relu, launching())

    edge = border(p.geometry)
    if wanted == "w":  # in which images are the second dimension
        edge = tuple([(slice(None), *at) for at in edge])
    return Whole(shape, edge, compute, [])


# Weights that are not finite --------------------------------------------------------------------
Border = tuple[tuple[Any, ...], ...]


@functools.lru_cache(maxsize=1024)
def border(geometry: Geometry) -> Border:
    """Where to look at a result; see Note [zeros meet weights].

    >>> border(Geometry((9,), (3,), (1,), ((1, 1),), (1,), (1,)))
    ((0, Ellipsis, slice(None, None, 8)),)
    """
    if not geometry.meets_zeros:
        return ()
    along = []
    for n, phases in zip(geometry.output, geometry.input_dilation, strict=True):
        if n <= 2 * phases:
            along.append([slice(None)])
        elif phases == 1:
            along.append([slice(None, None, n - 1)])
        else:
            along.append([slice(phases), slice(n - phases, None)])
    return tuple([(0, ..., *at) for at in itertools.product(*along)])


def _right(out: Any, w: Any, border: Border, backend: Backend) -> bool:
    """Whether no weight that is not finite has met zeros."""
    if not border or (w.size < _FEW and _finite(w, backend)):  # few weights are read sooner
        return True
    return all(_finite(out[at], backend) for at in border) or _finite(w, backend)


def _finite(w: Any, backend: Backend) -> bool:
    """Whether no number is infinite or NaN, nor so large that their sum is."""
    if w.itemsize == 2:
        w = backend.cast(w, _SINGLE)
    if w.size < _FEW:
        return math.isfinite(np.vdot(w, w))
    w = forwards(w)  # and in the order of memory, which is read fastest
    w = w.transpose(sorted(range(w.ndim), key=lambda d: -w.strides[d]))
    return math.isfinite(backend.reduce("sum", w, tuple(range(w.ndim)), False))


# Half precision ---------------------------------------------------------------------------------
def _in_single(a: Arrays, geometry: Geometry, backend: Backend, relu: bool) -> bool:
    """Half precision by single, of a few images at a time, which are all that is converted."""

    def wide(a: Any) -> Any:
        return None if a is None else backend.cast(a, _SINGLE)

    out, x, w, bias = *a[:3], wide(a.bias)
    left = math.prod(geometry.kernel) > math.prod(geometry.output)
    images = x.shape[2 if left else 0]  # see Note [two products]
    whole = x.size + (w.size if left else out.size)
    several = max(1, HALVES * images // whole)
    parts = [slice(first, first + several) for first in range(0, images, several)]
    if not left:
        w = wide(w)
        for part in parts:
            made = empty(out[part].shape, _SINGLE)
            if not run_conv(made, wide(x[part]), w, bias, geometry, backend, relu):
                return False
            backend.assign(out[part], made)
        return True
    total = empty(out.shape, _SINGLE)
    made = total if len(parts) < 2 else empty(out.shape, _SINGLE)
    for number, part in enumerate(parts):
        into = made if number else total
        if not run_conv(into, wide(x[:, :, part]), wide(w[:, :, part]), None, geometry, backend):
            return False
        if number:
            total += made
    finish(total, bias, relu, backend)
    backend.assign(out, total)
    return True
