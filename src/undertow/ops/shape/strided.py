"""Views by strides and by bytes: as_strided, unfold, other dtypes.

Note [as_strided]
`as_strided` looks at its input's memory, not at its input: the derivative goes by way of a storage.
Every element of the input is written to its place there (elements that share a place are
averaged), and the output reads from it. With S scattering and adding by a geometry, and G = S'
gathering by it, as_strided is G_out D S_in, where D divides by how many input elements share a
place. Its adjoint, G_in D S_out, has the same form: `restride` is the one op for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...backends.base import Array, Forms
from ...backends.registry import backend_of
from ...core.dispatch import apply
from ...core.modes import current
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor, differentiated, node_of, share, wrap_shared
from ...dtypes import DType
from ...errors import ArgumentError, BoundsError, GradientError, ShapeError
from ...kernel.expr import call, trace
from ...shapes import Shape, as_int, contiguous_strides, wrap_dim
from .movement import _view, along

Places = tuple[Shape, Shape, int]  # shape, strides and offset in a storage, in elements

_ADD = trace(lambda a, b: a + b, 2)
_DIVIDE = trace(lambda a, b: a / b, 2)
_AT_LEAST_ONE = trace(lambda a: call("maximum", a, 1), 1)


# as_strided, see Note [as_strided] -------------------------------------------------------------
def _restride_forward(k: Forms, x: Array, source: Places, target: Places, counted: Places) -> Any:
    low = min(source[2], target[2])
    extent = max(_end(source), _end(target)) - low

    def places(of: Places) -> Any:
        return k.as_strided(k.arange(0, 1, extent, dtypes.int64.numpy), of[0], of[1], of[2] - low)

    storage = k.full((extent,), 0, x.dtype)
    if _is_nested(source):
        k.assign(k.as_strided(storage, source[0], source[1], source[2] - low), x)
    else:
        storage = k.put("add", storage, (places(source),), x)
    if not _is_nested(counted):
        ones = k.full(counted[0], 1, x.dtype)
        times = k.put("add", k.full((extent,), 0, x.dtype), (places(counted),), ones)
        times = k.map(_AT_LEAST_ONE, (times,), x.dtype)
        storage = k.map(_DIVIDE, (storage, times), x.dtype)
    return k.copy(k.as_strided(storage, target[0], target[1], target[2] - low))


_restride: Op = Op(
    "restride",
    _restride_forward,
    inputs="x",
    params="source target counted",
    vjp={"x": lambda g, source, target, counted: apply(_restride, (g,), (target, source, counted))},
)
_as_strided = Op(
    "as_strided",
    lambda k, x, target, source: k.as_strided(x, *target),
    inputs="x",
    params="target source",
    view=True,
    vjp={"x": lambda g, target, source: apply(_restride, (g,), (target, source, source))},
)


def _end(places: Places) -> int:
    """One past the last element that is looked at."""
    shape, strides, offset = places
    if 0 in shape:
        return offset
    return offset + 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def _is_nested(places: Places) -> bool:
    """Whether the strides show at once that no two elements share a place."""
    span = 0
    for stride, size in sorted(zip(places[1], places[0], strict=True)):
        if size > 1:
            if stride <= span:
                return False
            span += stride * (size - 1)
    return True


def strided_of(op: str, x: Tensor, size: Any, stride: Any, storage_offset: Any) -> Any:
    """The parameters of `_as_strided`, checked against the memory of `x`."""
    shape = tuple([as_int(op, "size", n) for n in size])
    strides = tuple([as_int(op, "stride", s) for s in stride])
    backend = backend_of(x._array)
    own = backend.storage_offset(x._array)
    offset = own if storage_offset is None else as_int(op, "storage_offset", storage_offset)
    if len(shape) != len(strides) or min((*shape, *strides, offset), default=0) < 0:
        raise ArgumentError(
            f"[{op}] takes as many strides as sizes, none negative, got size {shape}, stride "
            f"{strides} and storage_offset {offset}"
        )
    memory = backend.storage_size(x._array)
    if 0 in shape:
        offset = min(offset, memory)  # no element lies anywhere
    elif _end((shape, strides, offset)) > memory:
        raise BoundsError(
            f"[{op}] size {shape} with stride {strides} from {offset} on reaches element "
            f"{_end((shape, strides, offset)) - 1} of a storage of {memory}"
        )
    return (shape, strides, offset - own), (x.shape, x.stride(), 0)


@function()
def as_strided(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A view of the tensor's memory by sizes, strides and offset in elements of its storage.

    >>> import undertow as ut
    >>> ut.arange(5).as_strided((2, 2), (2, 1), 1)
    tensor([[1, 2],
            [3, 4]])
    """
    where = strided_of("as_strided", input, size, stride, storage_offset)
    base = input._base if node_of(input) is not None and current().grad else None
    if base is not None and node_of(base) is not None and _leaves(*where):
        # What lies outside the input has its gradient from the base.
        offset = input.storage_offset() + where[0][2]
        input, where = base, strided_of("as_strided", base, size, stride, offset)
    return apply(_as_strided, (input,), where)


def _leaves(target: Places, source: Places) -> bool:
    """Whether an element of the target lies in none of the source's places."""
    if source[1] == contiguous_strides(source[0]):
        return target[2] < 0 or _end(target) > max(_end(source), 0)
    return not set(_places(target)) <= set(_places(source))


def _places(of: Places) -> list[int]:
    places = [of[2]]
    for size, stride in zip(of[0], of[1], strict=True):
        places = [p + i * stride for p in places for i in range(size)]
    return places


# Windows -------------------------------------------------------------------------------------
def _unfold_forward(k: Forms, x: Array, dim: int, size: int, step: int) -> Any:
    strides = [s // x.dtype.itemsize for s in x.strides]
    if not strides:  # a zero-dimensional tensor counts as one element
        return k.as_strided(x, (size,), (1,), 0)
    shape = list(x.shape)
    stride = strides[dim]
    shape[dim] = (shape[dim] - size) // step + 1
    strides[dim] = stride * step
    return k.as_strided(x, (*shape, size), (*strides, stride), 0)


def _fold_forward(k: Forms, x: Array, shape: Shape, dim: int, size: int, step: int) -> Any:
    # Windows overlap, but those parts of them that are `step` wide or less do not.
    total = None
    for start in range(0, size, step) or (0,):
        width = min(step, size - start)
        out = k.full(shape, 0, x.dtype)
        count = x.shape[dim] if shape else 1
        if shape:
            region = k.slice(out, along(dim, slice(start, start + (count - 1) * step + width)))
            k.assign(
                _unfold_forward(k, region, dim, width, step),
                k.slice(x, (..., slice(start, start + width))),
            )
        elif width:
            k.assign(out, k.reshape(x, ()))
        total = out if total is None else k.map(_ADD, (total, out), x.dtype)
    return total


_unfold = Op(
    "unfold",
    _unfold_forward,
    inputs="x",
    params="dim size step",
    view=True,
    vjp={"x": lambda g, x_shape, dim, size, step: apply(fold_op, (g,), (x_shape, dim, size, step))},
)
fold_op: Op = Op(
    "fold",
    _fold_forward,
    inputs="x",
    params="shape dim size step",
    vjp={"x": lambda g, dim, size, step: apply(_unfold, (g,), (dim, size, step))},
)


@function(top=False)
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """A view of all windows of `size` along a dimension, every `step`; they form a new last one.

    >>> import undertow as ut
    >>> ut.arange(5).unfold(0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """
    shape = input._array.shape
    d = wrap_dim("unfold", dimension, len(shape), "dimension")
    width, stride = as_int("unfold", "size", size), as_int("unfold", "step", step)
    length = shape[d] if shape else 1
    if not 0 <= width <= length or stride <= 0:
        raise ArgumentError(
            f"[unfold] size must be between 0 and {length}, the size of dimension {d}, and step "
            f"positive; got size {width} and step {stride}"
        )
    return apply(_unfold, (input,), (d, width, stride))


# Bytes ---------------------------------------------------------------------------------------
def bits_as(x: Tensor, dtype: DType) -> Tensor:
    """The bytes of `x` seen as another dtype; sizes differ only along the last dimension.

    A number does not depend on another's bits in a way that has a derivative, so the result is
    outside the graph, like that of `detach`: it shares memory and version, not history.
    """
    old, new = x._array.dtype.itemsize, dtype.itemsize
    if dtype is x.dtype:
        return apply(_view, (x,), (x.shape,))
    if dtype.is_floating_point and differentiated(x):
        raise GradientError(
            f"[view] bits seen as {dtype} have no gradient; detach() the {x.dtype} tensor first"
        )
    if old != new:
        strides, last = x.stride(), x.shape[-1:]
        ratio = max(new // old, 1)
        wrong = (
            not last
            or strides[-1] != 1
            or last[0] % ratio
            or any(s % ratio for s in strides[:-1])
            or x.storage_offset() % ratio
        )
        if wrong:
            raise ShapeError(
                f"[view] {x.dtype} of shape {x.shape}, strides {strides} and storage_offset "
                f"{x.storage_offset()} cannot be seen as {dtype}: the last dimension must have "
                f"stride 1, and its size, the other strides and the offset be multiples of {ratio}"
            )
    return wrap_shared(backend_of(x._array).bits(x._array, dtype.numpy), share(x))
