"""The fast path: small elementwise calls, which Python's overhead dominates.

Everything here can be left out, and every result and every recorded node stays the same: what is
unusual (other dtypes, modes, devices that differ, numbers beside halves) goes to `elementwise`.
What this is for a backward: the fused step of `autograd/engine`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..backends.base import Forms
from ..backends.registry import OF_CLASS, backend_of
from .dispatch import apply, broadcast_edge, elementwise, expand, record
from .fused import Prepared
from .inplace import check_writable, inplace
from .modes import current
from .node import new_node
from .op import Op
from .plan import Plan
from .tensor import Tensor, node_of, share, wrap

_FLOAT32, _FLOAT64 = dtypes.float32.numpy, dtypes.float64.numpy
_INT64 = dtypes.int64.numpy
_AS_THEY_ARE = ("promote", "number", "bool", "real", "input")  # dtype rules that keep integers
# What a call raises that `elementwise` deals with, or explains; for warnings that a user turned
# into errors see Note [floating-point warnings] in backends/cpu/prepared.
_GIVE_UP = (
    AttributeError,
    TypeError,
    ValueError,
    OverflowError,
    RuntimeWarning,
    FloatingPointError,
    MemoryError,
)


def unary_function(op: Op) -> Callable[..., Tensor]:
    """`op` as a function of one tensor."""
    runs = Later(op, (True,))
    by_class = runs.by_class
    boolean = op.kind == "bool"
    whole = "i" in op.domain and op.kind in _AS_THEY_ARE
    floating = "f" in op.domain
    plan: Plan | None = None

    def door(input: Any) -> Tensor:
        nonlocal plan
        state = current()
        try:
            x = input._array
            dtype = x.dtype
            if not state.plain or not (
                floating if dtype is _FLOAT32 or dtype is _FLOAT64 else whole and dtype is _INT64
            ):
                return elementwise(op, input)
            r = (by_class.get(x.__class__) or runs.of(x))(x)
        except _GIVE_UP:
            return elementwise(op, input)
        t = wrap(r)
        if state.grad and not boolean:
            alias = input._alias
            parent = input._node if alias is None else node_of(input)
            if parent is not None:
                if plan is None:
                    plan = op.plan(1, 1)
                if alias is not None or plan.keep is None:
                    record(op, (input,), (), (t,))
                else:
                    meta = ((r.shape, dtype),)
                    saved = plan.keep(input, None, t)
                    t._node = new_node(plan, (parent,), (input._index,), meta, saved)
        return t

    return door


def binary_function(op: Op) -> Callable[..., Tensor]:
    """`op` as a function of two tensors or numbers, at least one of them a tensor."""
    runs = Later(op, (True, True))
    runs_beside = Later(op, (True, False))  # a number
    by_class, by_class_beside = runs.by_class, runs_beside.by_class
    boolean = op.kind == "bool"
    whole = "i" in op.domain and op.kind in _AS_THEY_ARE
    floating = "f" in op.domain
    # The plans, by which operands need gradients (1: the first, 2: the second), and whether the
    # second is a number (4); made when first met.
    plans: list[Plan | None] = [None] * 8

    def door(input: Any, other: Any) -> Tensor:
        state = current()
        kind = other.__class__
        number = kind is float or kind is int
        try:
            x = input._array
            dtype = x.dtype
            if not state.plain or not (
                floating
                if dtype is _FLOAT32 or dtype is _FLOAT64
                else whole and dtype is _INT64 and kind is not float
            ):
                return elementwise(op, input, other)
            if number:
                r = (by_class_beside.get(x.__class__) or runs_beside.of(x))(x, other)
            else:
                y = other._array
                run = by_class.get(x.__class__)
                if y.dtype is not dtype or y.__class__ is not x.__class__:
                    return elementwise(op, input, other)
                if run is None:
                    if backend_of(x) is not backend_of(y):
                        return elementwise(op, input, other)
                    run = runs.of(x)
                r = run(x, y)
        except _GIVE_UP:
            return elementwise(op, input, other)
        t = wrap(r)
        if state.grad and not boolean:
            alias = input._alias
            parent = input._node if alias is None else node_of(input)
            code = 0 if parent is None else 1
            if number:
                other_parent = None
                code += 4
            elif other._alias is None:
                other_parent = other._node
            else:
                alias = other._alias
                other_parent = node_of(other)
            if other_parent is not None:
                code += 2
            if code & 3:
                plan = plans[code]
                if plan is None:
                    plan = plans[code] = op.plan(2, code & 3, code >> 1 & 2)
                if plan.keep is None:
                    return elementwise(op, input, other)
                shape = r.shape
                if not (number or x.shape == shape == y.shape):
                    widen = expand if plan.recipe else broadcast_edge
                    if parent is not None and x.shape != shape:
                        input = widen(input, shape)
                        parent, alias = input._node, input._alias
                    if other_parent is not None and y.shape != shape:
                        other = widen(other, shape)
                        other_parent, alias = other._node, other._alias
                saved = plan.keep(input, other, t)
                versions = None
                if alias is not None and saved and plan.tensors:
                    saved, versions = plan.seal(list(saved))
                parents = (parent, other_parent)
                indices = (input._index, 0 if number else other._index)
                t._node = new_node(plan, parents, indices, ((shape, dtype),), saved, versions)
        return t

    return door


def pair_function(op: Op) -> Callable[[Tensor, Tensor], Tensor]:
    """`op`, not elementwise and without parameters, as a function of two tensors of one dtype."""
    plans: list[Plan | None] = [None] * 4

    def door(input: Tensor, other: Tensor) -> Tensor:
        state = current()
        x, y = input._array, other._array
        k = OF_CLASS.get(x.__class__) or x.backend
        if (
            not state.plain
            or input._alias is not None
            or other._alias is not None
            or (OF_CLASS.get(y.__class__) or y.backend) is not k
            or x.dtype.kind != "f"
        ):
            return apply(op, (input, other))
        token = k.begin()
        try:
            r = op.forward(k, x, y)
        finally:
            k.end(token)
        t = wrap(r)
        if state.grad:
            parent, other_parent = input._node, other._node
            code = (parent is not None) + 2 * (other_parent is not None)
            if code:
                plan = plans[code]
                if plan is None:
                    plan = plans[code] = op.plan(2, code)
                assert plan.keep is not None
                parents, indices = (parent, other_parent), (input._index, other._index)
                saved = plan.keep(input, other, t)
                t._node = new_node(plan, parents, indices, ((r.shape, x.dtype),), saved)
        return t

    return door


class Later(Prepared):
    """An op's expression, prepared; traced when it is first needed."""

    __slots__ = ("op",)

    def __init__(self, op: Op, arrays: tuple[bool, ...]) -> None:
        super().__init__((), arrays)
        self.op = op

    def of(self, array: Any) -> Callable[..., Any]:
        self.exprs = (self.op.expr,)
        return super().of(array)


_EXACT = 1 << 53  # integers up to here are floats


def inplace_elementwise(
    op: Op, function: Callable[..., Tensor], name: str
) -> Callable[..., Tensor]:
    """The in-place method of an elementwise op; without gradients it computes into the memory."""
    slow = inplace(function, name)

    def method(self: Tensor, *others: Any, **kwargs: Any) -> Tensor:
        x = self._array
        state = current()
        dtype = x.dtype
        if len(others) + 1 != op.arity or kwargs or not state.plain or "f" not in op.domain:
            return slow(self, *others, **kwargs)
        if not (dtype is _FLOAT32 or dtype is _FLOAT64):
            return slow(self, *others)
        base = self._base
        if state.grad and (node_of(self) or (base is not None and base._node is not None)):
            return slow(self, *others)
        k = OF_CLASS.get(x.__class__) or x.backend
        operands = [x]
        for other in others:
            kind = other.__class__
            if kind is float or (kind is int and -_EXACT <= other <= _EXACT):
                operands.append(other)
                continue
            if not isinstance(other, Tensor):
                return slow(self, *others)
            y = other._array
            if y.dtype is not dtype or (OF_CLASS.get(y.__class__) or y.backend) is not k:
                return slow(self, *others)
            lead = len(x.shape) - len(y.shape)
            if y.shape != x.shape[lead:] or (state.grad and node_of(other) is not None):
                return slow(self, *others)
            operands.append(y)
        check_writable(name, self)
        k.run(_into, operands, (op.expr,))
        share(self).version.value += 1
        return self

    method.__name__ = method.__qualname__ = name
    method.__doc__ = slow.__doc__
    return method


def _into(k: Forms, *operands: Any) -> None:
    *arrays, expr = operands
    k.map(expr, arrays, arrays[0].dtype, arrays[0])
