"""The one door: every op, forward and backward, goes to its backend and is recorded here.

`apply` is the door. `elementwise` prepares operands for it (promotion and broadcasting as explicit
casts and expands). `core/fast` is a quicker way through it for small elementwise calls, and
`core/views` the way of all views. The ops that dispatch itself inserts (cast, expand, sum_to,
transfer) stand here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes
from ..backends.base import Array, Forms
from ..backends.registry import OF_CLASS, backend_of, backend_on
from ..backends.wrapped import WRAPPERS
from ..dtypes import DType
from ..errors import ArgumentError, DeviceError, DTypeError, out_of_memory
from ..kernel.expr import Expr, call, substitute, trace, where
from ..shapes import broadcast_shapes
from .foreign import host_number, is_foreign
from .modes import current
from .node import Node, new_node
from .op import EVERY, Op
from .other_kinds import NotDense, other_kind
from .record import record, record_alone
from .tensor import Tensor, is_dual, node_of, share, wrap
from .views import viewed

# What a forward without `begin` raises that `apply` deals with, or explains; for warnings that a
# user turned into errors see Note [floating-point warnings] in backends/cpu/prepared.
GIVE_UP = (RuntimeWarning, FloatingPointError, MemoryError)


def apply(op: Op, inputs: Sequence[Any], params: tuple[Any, ...] = ()) -> Any:
    """Run `op` on tensors (elementwise ops: also numbers), recorded if a gradient is wanted.

    Returns a tensor, or a tuple of tensors for an op with several outputs.
    """
    state = current()
    if state.around is not None:
        return state.around(op, inputs, params)
    backend: Any = None
    arrays: list[Any] = []
    tracked = False  # whether an input may have a history
    for t in inputs:
        if t is None:
            arrays.append(t)
            continue
        try:
            array = t._array
        except AttributeError:  # a number
            arrays.append(t)
            continue
        found = OF_CLASS.get(array.__class__) or array.backend
        if backend is not found:
            if found.steps is not None:  # a tensor with a tangent
                return found.steps(op, inputs, params)
            if backend is not None:
                if backend.base is not found.base:
                    raise mixed_devices(op, backend, found)
                return apply(op, _met(inputs), params)  # one is mapped by `vmap`
            backend = found
        arrays.append(array)
        if t._node is not None or t._alias is not None:
            tracked = True
    token = backend.begin()
    try:
        result = op.forward(backend, *arrays, *params)
    except MemoryError as error:
        raise out_of_memory(op.name, error) from error
    finally:
        backend.end(token)
    if op.view:
        return viewed(op, inputs[0], result, params)
    if op.outputs == 1:
        out = wrap(result)
        if state.grad:
            if tracked:
                record(op, inputs, params, (out,))
        elif state.inference:
            share(out).inference = True
        return out
    outs = tuple(map(wrap, result))
    if state.grad:
        if tracked:
            record(op, inputs, params, outs)
    elif state.inference:
        for out in outs:
            share(out).inference = True
    return outs


def apply_alone(op: Op, x: Tensor, params: tuple[Any, ...]) -> Tensor:
    """`apply`, quicker, of an op of one tensor that gives one, and no view.

    Its forward is asked without `begin` and `end`, see `Backend.reduce`.
    """
    out: Tensor
    state = current()
    if not state.plain:
        out = apply(op, (x,), params)
        return out
    array = x._array
    k = OF_CLASS.get(array.__class__) or array.backend
    if k.steps is not None:
        out = apply(op, (x,), params)
        return out
    try:
        result = op.forward(k, array, *params)
    except GIVE_UP:
        out = apply(op, (x,), params)
        return out
    out = wrap(result)
    if state.grad:
        node = x._node if x._alias is None else node_of(x)
        if node is not None:
            record_alone(op, x, node, params, out)
    return out


def _met(inputs: Sequence[Any]) -> Sequence[Any]:
    from .batching import met

    return met(inputs)


def mixed_devices(op: Op, first: Any, second: Any) -> DeviceError:
    devices = str(first.device), str(second.device)
    there = "meta" if "meta" in devices else devices[0]  # from meta nothing can be moved
    return DeviceError(
        f"[{op.name}] expects all tensors on one device, got {devices[0]} and {devices[1]}; "
        f"move one with .to({there!r})"
    )


def table(x: Tensor, make: Callable[..., Any], *args: Any) -> Tensor:
    """The table `make(*args)` on the device of `x`, to be read only; see `Backend.table`."""
    return wrap(backend_of(x._array).table(make, *args))


# Operands of elementwise ops -----------------------------------------------------------------
_NUMBERS = (bool, int, float, complex)


def operand(op: str, value: Any) -> Any:
    """A tensor or Python number from anything an arithmetic op accepts."""
    if isinstance(value, Tensor) or type(value) in _NUMBERS:
        return value
    if is_foreign(value):
        found = host_number(value)
        return found if isinstance(found, _NUMBERS) else wrap(found)
    if isinstance(value, _NUMBERS):
        return value
    kind = other_kind((value,))
    if kind is not None:
        raise NotDense(kind)
    raise DTypeError(
        f"[{op}] expects tensors or numbers, got {type(value).__name__}; "
        "convert it with ut.tensor(...) first"
    )


def is_operand(value: Any) -> bool:
    """Whether an elementwise function has an answer, or knows who has."""
    try:
        operand("", value)
    except NotDense:
        return True
    except DTypeError:
        return False
    return True


def compute_dtype(op: str, operands: Sequence[Any], kind: str) -> DType:
    """The dtype in which an elementwise op computes; see `elementwise_op`."""
    if kind == "input":
        tensors = [o for o in operands if isinstance(o, Tensor)]
        for o in operands:
            if type(o) is complex and not any(t._array.dtype.kind == "c" for t in tensors):
                raise DTypeError(f"[{op}] takes real numbers beside a real tensor, got {o}")
        operands = tensors or operands
    dtype = dtypes.result_type(
        *(
            (o.dtype, 2 if o._array.shape else 1)
            if isinstance(o, Tensor)
            else (dtypes.of_scalar(o), 0)
            for o in operands
        )
    )
    if kind == "float" and dtype.category < 2:
        return dtypes.get_default_dtype()
    if kind == "number" and dtype.category == 0:
        return dtypes.int64
    return dtype


def elementwise(op: Op, *values: Any) -> Tensor:
    """The long way of every elementwise op: any operands, any dtypes, any shapes."""
    if "f" in op.domain and alike(values):
        try:
            return apply(op, values)
        except OverflowError as error:
            raise ArgumentError(f"[{op.name}] {error}; write it as math.inf") from error
    if _whole(op, values):
        return apply(op, values)
    if any(isinstance(v, Expr) for v in values):  # a rule is being traced, see Note [fused rules]
        assert op.expr is not None
        return substitute(op.expr, values)  # type: ignore[return-value]
    try:
        operands = [operand(op.name, v) for v in values]
    except NotDense as met:
        return met.kind._answer(op.name, values, {})
    dtype = compute_dtype(op.name, operands, op.kind)
    if dtype.itemsize == 1 and dtype.category == 2:
        return _of_float8(op, operands, dtype)
    if dtype.category == 3 and op.complex_op is not None:
        op = op.complex_op
    elif EVERY[dtype.category] not in op.domain:
        raise _outside(op, dtype)
    if not any(isinstance(o, Tensor) for o in operands):
        operands[0] = wrap(backend_on(None).full((), operands[0], dtype.numpy))
    if dtype.itemsize == 2 and dtype.category == 2 and op.name in _IN_SINGLE:
        operands = [_as_number(o, dtype) for o in operands]
    operands = align(op.name, operands, dtype, exact=op.kind == "bool")
    try:
        return apply(op, operands)
    except TypeError as error:
        if not str(error).startswith("ufunc"):  # else NumPy has no loop for this dtype
            raise
        raise DTypeError(f"[{op.name}] is not defined for {dtype}") from error


def _of_float8(op: Op, operands: list[Any], dtype: DType) -> Tensor:
    """Floats of eight bits are for storage: they are compared, and multiplied, in single precision.

    That is what torch has for them.
    """
    if op.kind != "bool" and op.name not in ("mul", "abs", "where"):
        raise DTypeError(
            f"[{op.name}] is not defined for {dtype}, which is for storage; compute in another "
            "dtype: x.float()"
        )
    wide = [cast(o, dtypes.float32) if isinstance(o, Tensor) else o for o in operands]
    out = elementwise(op, *wide)
    return out if op.kind == "bool" else cast(out, dtype)


# What computes halves beside a number in single precision, and beside a tensor that stands for one:
# a scale of 65536 is beyond float16, its products need not be.
_IN_SINGLE = frozenset(("add", "div", "mul", "rdiv", "rsub", "sub"))


def _as_number(o: Any, dtype: DType) -> Any:
    """A wider tensor of no dimensions as the number that it is, if nothing is recorded of it."""
    if not isinstance(o, Tensor) or o._array.shape or o.dtype.category != 2 or o.itemsize == 2:
        return o
    return o if node_of(o) is not None or o.device.type != "cpu" else o.item()


def broadcast_edge(node: Node, index: int, array: Array, shape: tuple[int, ...]) -> Node:
    """The node that `expand` of `array`, an output of `node`, to another shape would record.

    For ops that save nothing of it, and so need no more than that.
    """
    plan = _expand.plans.get((1, 1, 0)) or _expand.plan(1, 1)
    return new_node(plan, (node,), (index,), shape, array.dtype, (array.shape,))


def alike(values: Sequence[Any], shape: Any = None) -> bool:
    """Whether all are floating tensors of one device, dtype and shape, or numbers beside them."""
    first = None
    for v in values:
        kind = v.__class__
        if kind is float or kind is int:
            continue
        if kind is not Tensor and not isinstance(v, Tensor):
            return False
        array = v._array
        if first is None:
            if array.dtype.kind != "f" or array.dtype.itemsize == 1:
                return False
            first, backend = array, backend_of(array)
            if shape is None:
                shape = array.shape
        elif array.dtype is not first.dtype or backend_of(array) is not backend:
            return False
        if array.shape != shape:
            return False
    return first is not None


_KEPT = {  # dtype rules that compute in the common dtype, by its kind
    "b": frozenset(("promote", "bool", "real", "input")),
    "i": frozenset(("promote", "bool", "real", "input", "number")),
    "u": frozenset(("promote", "bool", "real", "input", "number")),
}


def _whole(op: Op, values: Sequence[Any]) -> bool:
    """Whether all are tensors of one device, shape and dtype, not floating, that `op` takes."""
    first = None
    for v in values:
        if v.__class__ is not Tensor and not isinstance(v, Tensor):
            return False
        array = v._array
        if first is None:
            kind = array.dtype.kind
            if kind not in _KEPT or op.kind not in _KEPT[kind]:
                return False
            if ("b" if kind == "b" else "i") not in op.domain:
                return False
            first, backend = array, backend_of(array)
        elif (
            array.dtype is not first.dtype
            or array.shape != first.shape
            or backend_of(array) is not backend
        ):
            return False
    return first is not None


def align(
    op: str, operands: list[Any], dtype: DType, skip: int = 0, exact: bool = False
) -> list[Any]:
    """The operands on one device, but for the first `skip` in one dtype, broadcast if recorded.

    An op that is `exact` about numbers takes integers of any size.
    """
    operands = _one_device(operands)
    shape = broadcast_shapes(
        op, *(tuple(o._array.shape) for o in operands if isinstance(o, Tensor))
    )
    wanted = current().grad
    for i, o in enumerate(operands):
        if isinstance(o, Tensor):
            if i >= skip and o._array.dtype != dtype.numpy:
                o = cast(o, dtype)
            # Without a gradient the backend broadcasts by itself.
            if o._array.shape != shape and ((wanted and node_of(o) is not None) or is_dual(o)):
                o = expand(o, shape)
            operands[i] = o
        elif dtype.category == 0 and type(o) is not bool:
            operands[i] = bool(o)
        elif (
            dtype.category == 1
            and not exact
            and not -(2**63) <= o < 2 ** (64 if dtype is dtypes.uint64 else 63)
        ):
            raise ArgumentError(f"[{op}] {o} is out of range for int64; write it as a float")
    return operands


def _outside(op: Op, dtype: DType) -> DTypeError:
    names = {"b": "bool", "i": "integer", "f": "floating", "c": "complex"}
    listed = ", ".join(names[letter] for letter in op.domain)
    hint = "; use logical_not or ^ instead" if op.name in ("sub", "rsub", "neg") else ""
    return DTypeError(f"[{op.name}] is defined for {listed} tensors, not for {dtype}{hint}")


def _one_device(operands: list[Any]) -> list[Any]:
    """Zero-dimensional CPU tensors follow the others to their device, as in torch."""
    devices = {backend_of(o._array) for o in operands if isinstance(o, Tensor)}
    if len(devices) > 1 and WRAPPERS not in devices:
        if len({k.base for k in devices}) == 1:
            return list(_met(operands))
        with_dims = {
            backend_of(o._array) for o in operands if isinstance(o, Tensor) and o._array.shape
        }
        if len(with_dims) == 1:
            target = with_dims.pop().device
            return [
                transfer(o, target)
                if isinstance(o, Tensor) and not o._array.shape and o.device.type == "cpu"
                else o
                for o in operands
            ]
    return operands


# The ops that dispatch itself inserts --------------------------------------------------
def _converted(k: Forms, x: Array, dtype: DType, source: DType) -> Array:
    """The elements in another dtype; see Note [numbers without an integer]."""
    if dtype.category == 1 and x.dtype.kind in "fcV":
        real = k.part(x, "real") if x.dtype.kind == "c" else x
        x = k.cast(real, dtypes.float32.numpy) if real.dtype.itemsize < 4 else real
        long = dtype.itemsize == 8 or dtype in (dtypes.uint8, dtypes.uint32)
        half = 2**63 if long else 2**31
        end = 2 * half if dtype is dtypes.uint64 else half
        if not k.within(x, -half, end):
            least = -half if dtype.is_signed and dtype.itemsize >= 4 else 0
            x = k.map(_BOUNDED, (x, float(-half), float(end), float(least)), x.dtype)
    return k.cast(x, dtype.numpy)


# Note [numbers without an integer]: NaN, infinities and numbers beyond 64 bits (32 for int8, int16,
# int32 and uint16) have no value in an integer dtype, and instructions, LLVM and NumPy differ on
# what they give. Libraries cast such numbers and select others afterwards (the positions of T5), so
# they are not refused: as torch on x86, they become the least integer of 32 or 64 bits, and 0 in a
# shorter or unsigned one, on every device. Other numbers wrap.
_BOUNDED = trace(
    lambda a, low, end, least: where(
        call("ge", a, low), where(call("lt", a, end), a, least), least
    ),
    4,
)
_cast = Op(
    "cast",
    _converted,
    inputs="x",
    params="dtype source",
    vjp={"x": lambda g, source: cast(g, source)},
    conjugate=False,
)

_expand = Op(
    "expand",
    lambda k, x, shape: k.expand(x, shape),
    inputs="x",
    params="shape",
    view=True,
    vjp={"x": lambda g, x_shape: sum_to(g, x_shape)},
    bare={"x": lambda k, g, x_shape: g if g.shape == x_shape else _reduce_to(k, g, x_shape)},
)

_sum_to = Op(
    "sum_to",
    lambda k, x, shape: _reduce_to(k, x, shape),
    inputs="x",
    params="shape",
    vjp={"x": lambda g, x_shape: expand(g, x_shape)},
    conjugate=False,
)

_transfer = Op(
    "transfer",
    lambda k, x, target, source: k.transfer(x, target),
    inputs="x",
    params="target source",
    vjp={"x": lambda g, source: transfer(g, source.device)},
    conjugate=False,
)


def cast(x: Tensor, dtype: DType) -> Tensor:
    """`x` in another dtype; itself when it has that dtype already."""
    if x._array.dtype == dtype.numpy:
        return x
    if not dtype.is_differentiable:
        with_grad = current().grad and node_of(x) is not None
        return apply(_cast, (x.detach() if with_grad else x,), (dtype, x.dtype))
    return apply(_cast, (x,), (dtype, x.dtype))


def expand(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A view of `x` broadcast to `shape`; itself when it has that shape already."""
    return x if x._array.shape == shape else widened(x, shape)


def widened(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A view of `x` broadcast to `shape`, which may be the one that it has."""
    array = x._array
    return viewed(_expand, x, backend_of(array).expand(array, shape), (shape,))


def sum_to(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The adjoint of `expand`: sum over the dimensions that were broadcast from `shape`."""
    return x if x._array.shape == shape else apply(_sum_to, (x,), (shape,))


def transfer(x: Tensor, device: Any) -> Tensor:
    """`x` on another device; itself when it is there already."""
    source, target = backend_of(x._array), backend_on(device)
    return x if source is target else apply(_transfer, (x,), (target, source))


def _reduce_to(k: Forms, x: Array, shape: tuple[int, ...]) -> Any:
    lead = len(x.shape) - len(shape)
    first = tuple(range(lead))
    inner = tuple(
        [lead + i for i, size in enumerate(shape) if size == 1 and x.shape[lead + i] != 1]
    )
    if not inner:  # no view of the sum, so a leaf may keep it
        return k.reduce("sum", x, first, False)
    return k.reshape(k.reduce("sum", x, first + inner, True), shape)
