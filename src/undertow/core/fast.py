"""The fast path: small elementwise calls, which Python's overhead dominates.

Everything here can be left out, and every result and every recorded node stays the same: what is
unusual (other dtypes, modes, devices that differ, numbers beside halves) goes to `elementwise`.
What this is for a backward: the fused step of `autograd/engine`.

Note [small calls]
A multiply of 4×4 takes NumPy 0.4 microseconds, and a call of a Python function 0.05. So a door asks
each question once and calls nothing that it can do without, in this order:
  1. Are the modes as usual? Then `compute`, which came from the backend (`Backend.direct`) and is
     in the door's own variables, asks for the class of the arrays, their dtypes and their sizes: a
     ufunc behind a few instructions of machine code, once the door has been used often. For other
     arrays it gives None, and they go to what the backend has prepared for them (`Prepared`).
  2. `wrap` the result, if nothing is recorded.
  3. Else the plan of the inputs that need gradients, made when first met, tells what to save. A
     node knows the shape of its output, so an input need not be asked whether it was broadcast.
The other savings are where things are made: a Node has no `__init__` and a Tensor no `__new__`
(`new_node`, `TensorType`), and neither holds a tuple that its fields could tell.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..backends.base import Direct, Forms
from ..backends.registry import OF_CLASS, backend_of
from ..errors import DTypeError
from .dispatch import GIVE_UP, apply, broadcast_edge, elementwise, expand, is_operand
from .fused import Prepared
from .inplace import check_writable, inplace
from .modes import current
from .node import new_node
from .op import Op
from .plan import Plan
from .record import record
from .tensor import Tensor, node_of, share, wrap

_FLOAT32, _FLOAT64 = dtypes.float32.numpy, dtypes.float64.numpy
_INT64 = dtypes.int64.numpy
_AS_THEY_ARE = ("promote", "number", "bool", "real", "input")  # dtype rules that keep integers
_FIRST = (0, 0)  # the outputs that two inputs were, as a rule
# What a call raises that `elementwise` deals with, or explains.
_GIVE_UP = (AttributeError, TypeError, ValueError, OverflowError, *GIVE_UP)


def unary_function(op: Op) -> Callable[..., Tensor]:
    """`op` as a function of one tensor."""
    runs = Later(op, (True,))
    compute = runs.direct.compute
    boolean = op.kind == "bool"
    plan: Plan | None = None

    def door(input: Any) -> Tensor:
        nonlocal plan, compute
        state = current()
        if not state.plain:
            return elementwise(op, input)
        try:
            r = compute(input._array)
            if r is None:
                r = runs.other(input._array)
                if r is None:
                    return elementwise(op, input)
                compute = runs.direct.compute
        except _GIVE_UP:
            return elementwise(op, input)
        if not state.grad or boolean:
            return wrap(r)
        parent = input._node if input._alias is None else node_of(input)
        if parent is None:
            return wrap(r)
        if plan is None:
            plan = op.plan(1, 1)
        return _recorded(plan, input, None, (parent,), (input._index,), r)

    return door


def operation(fn: Callable[..., Tensor]) -> Callable[..., Any]:
    """A function of two operands as an operator: Python asks the other one if it is none of ours.

    >>> import undertow as ut
    >>> ut.ones(2).__add__("text")
    NotImplemented
    """

    @functools.wraps(fn)
    def operator(*operands: Any) -> Any:
        try:
            return fn(*operands)
        except DTypeError:
            if all(map(is_operand, operands[-2:])):
                raise
            return NotImplemented

    return operator


def assignment(method: Callable[[Tensor, Any], Tensor]) -> Callable[[Tensor, Any], Any]:
    """An in-place method as the operator of `x += y`, which asks the other operand likewise."""

    def operator(self: Tensor, other: Any) -> Any:
        try:
            return method(self, other)
        except DTypeError:
            if is_operand(other):
                raise
            return NotImplemented

    operator.__name__ = operator.__qualname__ = method.__name__
    operator.__doc__ = method.__doc__
    return operator


_operation = operation(elementwise)


def binary_function(op: Op, operator: bool = False) -> Callable[..., Tensor]:
    """`op` as a function of two tensors or numbers, at least one of them a tensor."""
    slow = _operation if operator else elementwise
    runs = Later(op, (True, True))
    compute = runs.direct.compute
    boolean = op.kind == "bool"
    beside_number = _beside_number(op)
    plans: list[Plan | None] = [None] * 4  # by which operands need gradients: bits, as in `plan`

    def door(input: Any, other: Any) -> Tensor:
        nonlocal compute
        if other.__class__ is not Tensor and (other.__class__ is float or other.__class__ is int):
            return beside_number(input, other)
        state = current()
        if not state.plain:
            return slow(op, input, other)
        try:
            r = compute(input._array, other._array)
            if r is None:
                r = runs.other(input._array, other._array)
                if r is None:
                    return slow(op, input, other)
                compute = runs.direct.compute
        except _GIVE_UP:
            return slow(op, input, other)
        if not state.grad or boolean:
            return wrap(r)
        aliased = input._alias is not None or other._alias is not None
        if aliased:
            a, b = node_of(input), node_of(other)
        else:
            a, b = input._node, other._node
        if a is None:
            if b is None:
                return wrap(r)
            needs = 2
        else:
            needs = 1 if b is None else 3
        plan = plans[needs]
        if plan is None:
            plan = plans[needs] = op.plan(2, needs)
        if plan.keep is None:
            return slow(op, input, other)
        shape = r.shape
        i, j = input._index, other._index
        if (a is not None and a._shape != shape) or (b is not None and b._shape != shape):
            if plan.recipe:
                if a is not None:
                    input = expand(input, shape)
                    a, i = input._node, input._index
                if b is not None:
                    other = expand(other, shape)
                    b, j = other._node, other._index
                aliased = input._alias is not None or other._alias is not None
            else:
                x, y = input._array, other._array
                if a is not None and x.shape != shape:
                    a, i = broadcast_edge(a, i, x, shape), 0
                if b is not None and y.shape != shape:
                    b, j = broadcast_edge(b, j, y, shape), 0
        saved = plan.keep(input, other, r)
        versions = None
        if aliased and plan.tensors:
            saved, versions = plan.seal(list(saved))
        indices = (i, j) if i or j else _FIRST
        return wrap(r, new_node(plan, (a, b), indices, shape, r.dtype, saved, versions))

    return door


def _beside_number(op: Op) -> Callable[[Any, Any], Tensor]:
    """`op` as a function of a tensor and a number."""
    runs = Later(op, (True, False))
    compute = runs.direct.compute
    boolean = op.kind == "bool"
    plan: Plan | None = None

    def door(input: Any, other: Any) -> Tensor:
        nonlocal plan, compute
        state = current()
        if not state.plain:
            return elementwise(op, input, other)
        try:
            r = compute(input._array, other)
            if r is None:
                r = runs.other(input._array, other)
                if r is None:
                    return elementwise(op, input, other)
                compute = runs.direct.compute
        except _GIVE_UP:
            return elementwise(op, input, other)
        if not state.grad or boolean:
            return wrap(r)
        parent = input._node if input._alias is None else node_of(input)
        if parent is None:
            return wrap(r)
        if plan is None:
            plan = op.plan(2, 1, 2)
        return _recorded(plan, input, other, (parent, None), (input._index, 0), r)

    return door


def _recorded(plan: Plan, input: Tensor, other: Any, parents: Any, indices: Any, r: Any) -> Tensor:
    """The result of an op of a tensor and, if it has two parents, another or a number."""
    if plan.keep is None:
        t = wrap(r)
        record(plan.op, (input,) if len(parents) == 1 else (input, other), (), (t,))
        return t
    saved, versions = plan.keep(input, other, r), None
    for j in plan.tensors:
        if saved[j]._alias is not None:
            saved, versions = plan.seal(list(saved))
            break
    return wrap(r, new_node(plan, parents, indices, r.shape, r.dtype, saved, versions))


def _taken(op: Op) -> tuple[Any, Any, Any]:
    """The dtypes of the fast path, None for those that the op does not take as they are."""
    floating = "f" in op.domain
    whole = "i" in op.domain and op.kind in _AS_THEY_ARE
    return _FLOAT32 if floating else None, _FLOAT64 if floating else None, _INT64 if whole else None


def pair_function(op: Op) -> Callable[[Tensor, Tensor], Tensor]:
    """`op`, a product of two tensors of one dtype, as a function of them.

    Its forward is asked without `begin` and `end`, see `Backend.matmul`.
    """
    forward = op.forward
    plans: list[Plan | None] = [None] * 4

    def door(input: Tensor, other: Tensor) -> Tensor:
        state = current()
        x, y = input._array, other._array
        k = OF_CLASS.get(x.__class__) or x.backend
        if (
            not state.plain
            or (OF_CLASS.get(y.__class__) or y.backend) is not k
            or x.dtype.kind != "f"
            or k.steps is not None
        ):
            return apply(op, (input, other))
        try:
            r = forward(k, x, y)
        except GIVE_UP:
            return apply(op, (input, other))
        if not state.grad:
            return wrap(r)
        a, b = node_of(input), node_of(other)
        needs = (a is not None) + 2 * (b is not None)
        if not needs:
            return wrap(r)
        plan = plans[needs]
        if plan is None:
            plan = plans[needs] = op.plan(2, needs)
        return _recorded(plan, input, other, (a, b), (input._index, other._index), r)

    return door


class Later(Prepared):
    """An op's expression, prepared; traced when it is first needed.

    `direct` has the function that a door asks first, and for whose Nones there is `other`.
    """

    __slots__ = ("direct", "op", "taken")

    def __init__(self, op: Op, arrays: tuple[bool, ...]) -> None:
        super().__init__((), arrays)
        self.op = op
        self.taken = _taken(op)
        self.direct = _NOTHING

    def of(self, array: Any) -> Callable[..., Any]:
        if array.__class__ is self.kind:
            return self.run
        self.exprs = (self.op.expr,)
        run = super().of(array)
        if array.__class__ is self.kind:
            found = backend_of(array).direct(self.op.expr, self.arrays, self.taken)
            self.direct = found or _NOTHING
        return run

    def at_once(self, x: Any, *others: Any) -> Any:
        """What `direct` gives, None if it gives up."""
        if self.kind is None:
            self.of(x)
        try:
            return self.direct.compute(x, *others)
        except _GIVE_UP:
            return None

    def other(self, x: Any, *others: Any) -> Any:
        """The result for arrays of one dtype and backend, of any size; None: for `elementwise`."""
        dtype = x.dtype
        single, double, long = self.taken
        if not (dtype is single or dtype is double or dtype is long):
            return None
        for is_array, y in zip(self.arrays[1:], others, strict=True):
            if is_array:
                if y.dtype is not dtype or backend_of(x) is not backend_of(y):
                    return None
            elif dtype is long and y.__class__ is not int:
                return None
        return self.of(x)(x, *others)


_NOTHING = Direct(lambda *operands: None)
_EXACT = 1 << 53  # integers up to here are floats


def inplace_elementwise(
    op: Op, function: Callable[..., Tensor], name: str
) -> Callable[..., Tensor]:
    """The in-place method of an elementwise op; without gradients it computes into the memory."""
    slow = inplace(function, name)
    single, double, long = _taken(op)
    # What computes small ones, as for a door: of arrays alone, and with a number at the end.
    both = [Later(op, (True,) * (op.arity - n) + (False,) * n) for n in (0, 1) if n < op.arity <= 2]

    def method(self: Tensor, *others: Any, **kwargs: Any) -> Tensor:
        x = self._array
        state = current()
        dtype = x.dtype
        if len(others) + 1 != op.arity or kwargs or not state.plain:
            return slow(self, *others, **kwargs)
        whole = dtype is long
        if not (dtype is single or dtype is double or whole):
            return slow(self, *others)
        base = self._base
        if state.grad and (node_of(self) or (base is not None and base._node is not None)):
            return slow(self, *others)
        k = OF_CLASS.get(x.__class__) or x.backend
        if k.steps is not None:
            return slow(self, *others)
        operands = [x]
        numbers = 0
        for other in others:
            kind = other.__class__
            if (kind is float and not whole) or (kind is int and -_EXACT <= other <= _EXACT):
                operands.append(other)
                numbers += 1
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
        r = both[numbers].at_once(*operands) if both else None
        if r is not None and r.dtype is dtype:
            k.assign(x, r)
        else:
            k.run(_into, operands, (op.expr,))
        share(self).version.value += 1
        return self

    method.__name__ = method.__qualname__ = name
    method.__doc__ = slow.__doc__
    return method


def _into(k: Forms, *operands: Any) -> None:
    *arrays, expr = operands
    k.map(expr, arrays, arrays[0].dtype, arrays[0])
