"""Changing a tensor in place: write the value, raise the version, rewrite the history.

An in-place op is its functional twin followed by `write`. If the target is a view, the history
that changes is the base's: the base becomes `view_write(base, value, steps)`; see Note [views].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .. import dtypes
from ..backends.base import Array, Forms
from ..backends.dual import LEVELS, STEPS
from ..backends.registry import backend_of
from ..backends.strided import overlaps
from ..errors import DTypeError, InplaceError, ShapeError
from ..kernel.expr import Expr
from .dispatch import apply, cast, expand, mixed_devices
from .inplace_examples import describe
from .modes import current, enter, leave
from .node import AccumulateGrad, Barrier, Node
from .op import Op
from .other_kinds import OtherKind
from .record import record
from .tensor import Alias, Tensor, Version, is_dual, listed, new_alias, node_of, share, wrap

# Note [view writes]
# What an in-place change of a view does to its base is one op: base and value in, new base out.
# Its rules follow the recorded steps through the gradient of the base. Steps such as `view` and
# `as_strided` mean something only in the memory layout that they were recorded for, so a base
# that is not plain row-major memory hands its geometry on, and the gradient is laid out likewise.
Geometry = tuple[tuple[int, ...], int, int]  # strides, offset and extent of memory, in elements


def _geometry(array: Any, steps: tuple[Any, ...]) -> Geometry | None:
    storage = any(op.name == "as_strided" for op, _ in steps)
    backend = backend_of(array)
    if backend.contiguous(array) and not storage:
        return None
    strides = tuple(s // array.dtype.itemsize for s in array.strides)
    if storage:
        return strides, backend.storage_offset(array), backend.storage_size(array)
    extent = 1 + sum((n - 1) * s for n, s in zip(array.shape, strides, strict=True))
    return strides, 0, extent if array.size else 0


def _lay_out(k: Forms, x: Array, geometry: Geometry | None) -> Any:
    if geometry is None:
        return k.copy(x)
    strides, offset, extent = geometry
    out = k.as_strided(k.full((extent,), 0, x.dtype), x.shape, strides, offset)
    k.assign(out, x)
    return out


def _view_write_forward(k: Forms, base: Array, value: Array, steps: Any, geometry: Any) -> Any:
    out = _lay_out(k, base, geometry)
    target = out
    for op, params in steps:  # which may lead into a batch and out of it
        target = op.forward(backend_of(target), target, *params)
    backend_of(target).assign(target, value)
    return out


def replay(x: Tensor, steps: tuple[Any, ...]) -> Tensor:
    """Apply recorded view steps to `x`."""
    for op, params in steps:
        x = apply(op, (x,), params)
    return x


def _within(g: Tensor, steps: Any, geometry: Any) -> Tensor:
    if geometry is not None or not g.is_contiguous():
        g = apply(_laid_out, (g,), (geometry,))
    return replay(g, steps)


def _without(g: Tensor, value_shape: Any, steps: Any, geometry: Any) -> Tensor:
    part = dtypes.real_of(g.dtype).numpy  # a view of complex numbers may be one of real parts
    zeros = wrap(backend_of(g._array).full(value_shape, 0, part))
    return apply(_view_write, (g, zeros), (steps, geometry))


_laid_out = Op(
    "laid_out", _lay_out, inputs="x", params="geometry", vjp={"x": lambda g: g}, conjugate=False
)
_view_write = Op(
    "view_write",
    _view_write_forward,
    inputs="base value",
    params="steps geometry",
    vjp={"base": _without, "value": _within},
    conjugate=False,
)

_overwrite = Op(
    "overwrite",
    lambda k, x, value: k.copy(value),
    inputs="x value",
    vjp={"x": lambda g: zeros_of(g), "value": lambda g: g},
    conjugate=False,
)


def view_write(base: Tensor, value: Tensor, steps: tuple[Any, ...]) -> Tensor:
    """A copy of `base` with `value` in the place that the view steps lead to."""
    stored = any(op.name == "as_strided" for op, _ in steps)  # others do as well in a plain copy
    geometry = _geometry(base._array, steps) if stored else None
    return apply(_view_write, (base, value), (steps, geometry))


def zeros_of(t: Any) -> Any:
    """Zeros of the same shape, dtype and device, without history."""
    if isinstance(t, Expr):  # a rule is being traced, see Note [fused rules]
        return Expr("const", (0,))
    return wrap(backend_of(t._array).full(t.shape, 0, t._array.dtype))


def refresh(t: Tensor, alias: Alias) -> None:
    """Bring the node of a view up to date with its base; see Note [views]."""
    base = alias.base
    assert base is not None
    seen = base._node
    if seen is None or not alias.tracked:
        lost = base._node is not None or (t._node is not None and share(base).dormant is None)
        leaves = isinstance(t._node, AccumulateGrad) or isinstance(base._node, AccumulateGrad)
        if lost and not leaves and alias.made != alias.version.value:
            t._node, t._index = _stale(t, base), 0
        alias.seen = seen
        return
    token = enter(current().but(grad=True, inference=False, pack=None, unpack=None))
    try:
        fresh = replay(base, _steps(alias))
    finally:
        leave(token)
    alias.made = alias.version.value
    _set_history(t, fresh._node, fresh._index)
    alias.seen = seen  # last: until then another thread, or a second try, does it again


def _stale(t: Tensor, base: Tensor) -> Node:
    """What becomes of a view that cannot follow the history of its base."""
    if base._node is None:
        why = "whose base was changed in place and then detached in place, has lost its history"
    else:
        maker = "under no_grad()" if t._node is None else f"by {t._node.name()}"
        why = (
            f"made {maker}, shares memory with a tensor that was changed in place with gradients "
            "since: it is no longer the constant, or the result, that it was"
        )
    return Barrier(
        f"[view] a view of shape {t.shape}, {why}; use a clone() of it, or clone the tensor "
        "before changing it",
        [(t._node, t._index), (base._node, base._index)],
        (tuple(t._array.shape), t._array.dtype),
    )


def _steps(alias: Alias) -> tuple[Any, ...]:
    """The way from the base as it is now to the view."""
    ways_back: tuple[Any, ...] = alias.base._alias.ways_back  # type: ignore[union-attr]
    missed = len(ways_back) - alias.ways_seen
    return ways_back[:missed] + listed(alias.steps)


def _set_history(t: Tensor, node: Node | None, index: int) -> None:
    """Make `t` output `index` of `node`; `retain_grad` is about the tensor, so it moves along."""
    old, i = t._node, t._index
    t._node, t._index = node, index
    if old is not None and old.hooks is not None and node is not None:
        reference = old.hooks.capture.get(i)
        if reference is not None and reference() is t:
            node._hooks().capture[index] = old.hooks.capture.pop(i)


def check_writable(op: str, t: Tensor, recorded: bool = True) -> None:
    """Raise unless `t` may be changed in place now; nothing has been changed then.

    `recorded` tells whether the change is, if gradients are.
    """
    array = t._array
    k = backend_of(array)
    if not k.writable(array):
        raise InplaceError(
            f"[{op}] this tensor shares read-only NumPy memory; clone() it before changing it"
        )
    base = None if t._alias is None else t._alias.base
    if (not k.contiguous(array) and overlaps(array.shape, array.strides)) or (
        base is not None and _overlaps(base._array)
    ):
        raise InplaceError(
            f"[{op}] several elements of this tensor of shape {t.shape} and strides {t.stride()} "
            "share one memory location (an expanded or overlapping view); clone() it before "
            "changing it in place"
        )
    _check_graph(op, t, recorded)


def _check_graph(op: str, t: Tensor, recorded: bool = True) -> None:
    state = current()
    alias = t._alias
    if alias is not None and alias.inference and not state.inference:
        raise InplaceError(
            f"[{op}] an inference tensor can be changed only in inference_mode; clone() it first"
        )
    if state.grad and recorded:
        if isinstance(node_of(t), AccumulateGrad):
            raise InplaceError(
                f"[{op}] a leaf that requires gradients cannot be changed in place; "
                "do it under no_grad() or on a clone()"
            )
        base = None if alias is None else alias.base
        if base is not None and isinstance(base._node, AccumulateGrad):
            raise InplaceError(
                f"[{op}] a view of a leaf that requires gradients cannot be changed in "
                "place; do it under no_grad() or on a clone()"
            )
    if state.writing is not None:
        state.writing(t)


def _overlaps(array: Any) -> bool:
    """Whether two elements share memory."""
    return not backend_of(array).contiguous(array) and overlaps(array.shape, array.strides)


def _check_history(op: str, t: Tensor, node: Node | None) -> None:
    """Raise if a view made under no_grad would have to rewrite the history of its base."""
    alias = t._alias
    if alias is None or alias.base is None or alias.tracked or not current().grad:
        return
    if node is not None or alias.base._node is not None:
        raise InplaceError(
            f"[{op}] this view was made under no_grad(), by a custom Function or by copy.copy, so "
            "a change with gradients cannot reach its base; change a clone() of it, or do it under "
            "no_grad()"
        )


def write(op: str, t: Tensor, value: Tensor) -> Tensor:
    """Make `t` hold `value`, whose history (it may include the old `t`) becomes that of `t`."""
    check_writable(op, t)
    if value._array.shape != t._array.shape:
        raise ShapeError(
            f"[{op}] the result has shape {value.shape}, which does not fit in place into {t.shape}"
        )
    if value._array.dtype != t._array.dtype:
        if value.dtype.category > t.dtype.category:
            raise DTypeError(
                f"[{op}] the result is {value.dtype}, which cannot be stored in place in {t.dtype}"
            )
        value = cast(value, t.dtype)
    if current().grad:
        node = node_of(value)
        _check_history(op, t, node)
        if node is None and node_of(t) is not None:  # the op has no gradient: that of t is zero
            value = _replaced(t, value)
    _assign(op, t, value)
    _commit(t, value)
    return t


def _assign(op: str, t: Tensor, value: Tensor) -> None:
    if LEVELS and STEPS[2](op, t, value):  # one has a tangent
        return
    array, k = value._array, backend_of(t._array)
    if backend_of(array) is not k and backend_of(array).base is k.base:  # in `vmap`
        from .batching import fitted

        array = fitted(op, t._array, array)
    k.assign(t._array, array)


def store(op: str, t: Tensor, value: Tensor) -> None:
    """`write` under no_grad of a value of the same shape and dtype, at less overhead."""
    check_writable(op, t, recorded=False)
    _assign(op, t, value)
    share(t).version.value += 1


def overwrite(op: str, t: Tensor, source: Tensor) -> Tensor:
    """Copy `source`, broadcast and cast, into `t`; the gradient of the old `t` becomes zero."""
    check_writable(op, t)
    source = cast(source, t.dtype)
    if source._array.shape != t._array.shape:
        from ..shapes import broadcast_shapes

        if broadcast_shapes(op, source.shape, t.shape) != t.shape:
            raise ShapeError(f"[{op}] shape {source.shape} does not broadcast to {t.shape}")
        source = expand(source, t.shape)
    if backend_of(source._array).base is backend_of(t._array).base:
        frames = backend_of(t._array).frames
        if frames and node_of(source) is not None:
            from .batching import lifted

            source = lifted(source, frames)
    value = source
    if current().grad:
        _check_history(op, t, node_of(source))
        # Of a view, `view_write` takes the old gradient away.
        if t._base is None and (node_of(t) is not None or node_of(source) is not None):
            value = _replaced(t, source)
    _assign(op, t, source)
    _commit(t, value)
    return t


def _replaced(t: Tensor, source: Tensor) -> Tensor:
    value = wrap(source._array)
    record(_overwrite, (t, source), (), (value,))
    return value


def update(name: str, op: Op, inputs: Sequence[Any], params: tuple[Any, ...] = ()) -> Tensor:
    """`apply`, except that the result is written into the first input, which no rule of `op` saves.

    With `inplace=True` the op's forward changes its first array itself.
    """
    t: Tensor = inputs[0]
    if any(is_dual(i) for i in inputs):
        return write(name, t, apply(op, (_before(t), *inputs[1:]), params))
    check_writable(name, t)
    arrays = [i._array if isinstance(i, Tensor) else i for i in inputs]
    backend = backend_of(t._array)
    for i in inputs:
        if isinstance(i, Tensor) and backend_of(i._array) is not backend:
            if backend_of(i._array).base is not backend.base:
                raise mixed_devices(op, backend, backend_of(i._array))
            from .batching import fitted, met

            fitted(name, t._array, i._array)
            return update(name, op, (t, *met(inputs)[1:]), params)
    after = wrap(t._array)
    if current().grad and any(isinstance(i, Tensor) and node_of(i) is not None for i in inputs):
        record(op, inputs, params, (after,))
    _check_history(name, t, after._node)
    backend.run(partial(op.forward, inplace=True), arrays, params)
    _commit(t, after)
    return t


def view_in_place(name: str, t: Tensor, step: Any, back: Any) -> Tensor:
    """Make `t` a view of itself, by `step`; `back` leads to the old shape. See Note [views]."""
    _check_graph(name, t)
    alias = share(t)
    op, params = step
    if isinstance(t._node, AccumulateGrad):
        t._array = op.forward(backend_of(t._array), t._array, *params)
        t._node.metas = ((t._array.shape, t._array.dtype),)
    else:
        # A change of shape is part of the history even where gradients are disabled.
        token = enter(current().but(grad=True, pack=None, unpack=None))
        try:
            view = apply(op, (t,), params)
        finally:
            leave(token)
        t._array = view._array
        _set_history(t, view._node, view._index)
    if alias.base is None:
        alias.ways_back = (back, *alias.ways_back)
    else:
        alias.steps = (alias.steps, step)
    alias.version.value += 1
    return t


def _commit(t: Tensor, value: Tensor) -> None:
    """Raise the version of t's memory and give it the history of `value`."""
    alias = share(t)
    alias.version.value += 1
    if not current().grad:
        return
    node = node_of(value)
    base = alias.base
    if base is None:
        if node is not None:
            _set_history(t, node, value._index)
    elif node is not None or base._node is not None:
        after = wrap(base._array)
        steps = _steps(alias)
        record(_view_write, (base, value), (steps, _geometry(base._array, steps)), (after,))
        _set_history(base, after._node, after._index)
        if t._node is not None and t._node.hooks is not None:
            node_of(t)  # a retained gradient is that of the new value


def _before(t: Tensor) -> Tensor:
    """`t` for the functional op: the same memory and history, copied if it is saved."""
    if not current().grad:
        return t
    old = wrap(t._array)
    old._node, old._index = node_of(t), t._index
    old._alias = new_alias(Version(overwritten=True))
    return old


def inplace(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    """The in-place method of a functional op: compute, then write."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        check_writable(name, self)
        found = function(_before(self), *args, **kwargs)
        if isinstance(found, OtherKind):  # a dense tensor times a sparse one
            found = found.to_dense()
        return write(name, self, found)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = describe(name)
    return method
