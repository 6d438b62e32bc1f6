"""Changing a tensor in place: write the value, raise the version, rewrite the history.

An in-place op is its functional twin followed by `write`. If the target is a view, the history
that changes is the base's: the base becomes `view_write(base, value, steps)`; see Note [views].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..backends.registry import backend_of
from ..errors import DTypeError, InplaceError, ShapeError
from .dispatch import _mixed_devices, apply, cast, expand, record
from .modes import current, enter, leave
from .node import AccumulateGrad
from .op import Op
from .tensor import Alias, Tensor, node_of, share, wrap


def _view_write_forward(k: Any, base: Any, value: Any, steps: Any) -> Any:
    out = k.copy(base)
    target = out
    for op, params in steps:
        target = op.forward(k, target, *params)
    k.assign(target, value)
    return out


def replay(x: Tensor, steps: tuple[Any, ...]) -> Tensor:
    """Apply recorded view steps to `x`."""
    for op, params in steps:
        x = apply(op, (x,), params)
    return x


def _without(g: Tensor, steps: Any) -> Tensor:
    hole = replay(g.detach(), steps)
    zeros = wrap(backend_of(g._array).full(hole.shape, 0, g._array.dtype))
    return apply(_view_write, (g, zeros), (steps,))  # type: ignore[no-any-return]


_view_write = Op(
    "view_write", _view_write_forward, inputs="base value", params="steps",
    vjp={"base": _without, "value": lambda g, steps: replay(g, steps)},
)  # fmt: skip

_overwrite = Op(
    "overwrite", lambda k, x, value: k.copy(value), inputs="x value",
    vjp={"x": lambda g: zeros_of(g), "value": lambda g: g},
)  # fmt: skip


def zeros_of(t: Tensor) -> Tensor:
    """Zeros of the same shape, dtype and device, without history."""
    return wrap(backend_of(t._array).full(t.shape, 0, t._array.dtype))


def refresh(t: Tensor, alias: Alias) -> None:
    """Bring the node of a view up to date with its base; see Note [views]."""
    alias.seen = alias.version.value
    base = alias.base
    if base is None or base._node is None or isinstance(t._node, AccumulateGrad):
        return
    token = enter(current().but(grad=True, inference=False, pack=None, unpack=None))
    try:
        fresh = replay(base, alias.steps)
    finally:
        leave(token)
    t._node, t._index = fresh._node, fresh._index


def check_writable(op: str, t: Tensor) -> None:
    """Raise unless `t` may be changed in place now; nothing has been changed then."""
    array = getattr(t._array, "host", t._array)
    if not array.flags.writeable:
        raise InplaceError(
            f"[{op}] this tensor shares read-only NumPy memory; clone() it before changing it"
        )
    if array.size and any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape, strict=True)):
        raise InplaceError(
            f"[{op}] several elements of this tensor of shape {t.shape} share one memory "
            "location (an expanded view); clone() it before changing it in place"
        )
    state = current()
    alias = t._alias
    if alias is not None and alias.inference and not state.inference:
        raise InplaceError(
            f"[{op}] an inference tensor can be changed only in inference_mode; clone() it first"
        )
    if state.grad:
        if isinstance(node_of(t), AccumulateGrad):
            raise InplaceError(
                f"[{op}] a leaf that requires gradients cannot be changed in place; "
                "do it under no_grad() or on a clone()"
            )
        if alias is not None and alias.base is not None:
            if isinstance(alias.base._node, AccumulateGrad):
                raise InplaceError(
                    f"[{op}] a view of a leaf that requires gradients cannot be changed in "
                    "place; do it under no_grad() or on a clone()"
                )


def write(op: str, t: Tensor, value: Tensor) -> Tensor:
    """Make `t` hold `value`, whose history (it may include the old `t`) becomes that of `t`."""
    check_writable(op, t)
    if value.shape != t.shape:
        raise ShapeError(
            f"[{op}] the result has shape {value.shape}, which does not fit in place into "
            f"{t.shape}"
        )
    if value._array.dtype != t._array.dtype:
        if value.dtype.category > t.dtype.category:
            raise DTypeError(
                f"[{op}] the result is {value.dtype}, which cannot be stored in place in "
                f"{t.dtype}"
            )
        value = cast(value, t.dtype)
    backend_of(t._array).assign(t._array, value._array)
    _commit(t, value)
    return t


def overwrite(op: str, t: Tensor, source: Tensor) -> Tensor:
    """Copy `source`, broadcast and cast, into `t`; the gradient of the old `t` becomes zero."""
    check_writable(op, t)
    source = cast(source, t.dtype)
    if source._array.shape != t._array.shape:
        from ..shapes import broadcast_shapes

        if broadcast_shapes(op, source.shape, t.shape) != t.shape:
            raise ShapeError(f"[{op}] shape {source.shape} does not broadcast to {t.shape}")
        source = expand(source, t.shape)
    value = source
    if current().grad and (node_of(t) is not None or node_of(source) is not None):
        value = wrap(source._array)
        record(_overwrite, (t, source), (), (value,))
    backend_of(t._array).assign(t._array, source._array)
    _commit(t, value)
    return t


def update(name: str, op: Op, inputs: Sequence[Any], params: tuple[Any, ...] = ()) -> Tensor:
    """`apply`, except that the result is written into the first input, which no rule of `op` saves.

    With `inplace=True` the op's forward changes its first array itself.
    """
    t: Tensor = inputs[0]
    check_writable(name, t)
    arrays = [i._array if isinstance(i, Tensor) else i for i in inputs]
    backend = backend_of(t._array)
    for i in inputs:
        if isinstance(i, Tensor) and backend_of(i._array) is not backend:
            raise _mixed_devices(op, backend, backend_of(i._array))
    after = wrap(t._array)
    if current().grad and any(isinstance(i, Tensor) and node_of(i) is not None for i in inputs):
        record(op, inputs, params, (after,))
    op.forward(backend, *arrays, *params, inplace=True)
    _commit(t, after)
    return t


def _commit(t: Tensor, value: Tensor) -> None:
    """Raise the version of t's memory and give it the history of `value`."""
    alias = share(t)
    node = node_of(value)
    base = alias.base
    if current().grad and (node is not None or t._node is not None):
        if base is None:
            t._node, t._index = node, value._index
        elif node is not None or base._node is not None:
            after = wrap(base._array)
            record(_view_write, (base, value), (alias.steps,), (after,))
            base._node, base._index = after._node, after._index
    alias.version.value += 1
    if base is None:
        alias.seen = alias.version.value


def _before(t: Tensor) -> Tensor:
    """`t` for the functional op: a copy with its history if the op may save it, since `t` changes."""
    if not current().grad:
        return t
    node = node_of(t)
    old = wrap(backend_of(t._array).copy(t._array))
    old._node, old._index = node, t._index
    return old


def inplace(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    """The in-place method of a functional op: compute, then write."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        check_writable(name, self)
        return write(name, self, function(_before(self), *args, **kwargs))

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"In-place form of `{name.rstrip('_')}`; returns the tensor itself."
    return method


def inplace_door(ufunc: Any, function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    """The in-place method of a binary elementwise op; without gradients it writes directly."""
    slow = inplace(function, name)

    def method(self: Tensor, other: Any, *args: Any, **kwargs: Any) -> Tensor:
        import numpy as np

        x = self._array
        state = current()
        if not args and not kwargs and state.plain and x.__class__ is np.ndarray:
            kind = other.__class__
            number = kind is float or kind is int
            y = other if number else getattr(other, "_array", None)
            quiet = not state.grad or (
                self._node is None and (number or getattr(other, "_node", None) is None)
            )
            if quiet and (number or getattr(y, "dtype", None) == x.dtype) and x.dtype.kind == "f":
                alias = self._alias
                if state.grad and alias is not None and alias.base is not None:
                    return slow(self, other)
                check_writable(name, self)
                if number or y.shape == x.shape:  # type: ignore[union-attr]
                    with np.errstate(all="ignore"):
                        ufunc(x, y, x)
                    share(self).version.value += 1
                    return self
        return slow(self, other, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = slow.__doc__
    return method
