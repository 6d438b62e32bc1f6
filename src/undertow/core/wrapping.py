"""The step of an op of wrappers: they are asked, and what they answer is recorded.

Note [history of wrappers]
A wrapper that requires gradients is a leaf, and results of it have a history, as in torch: what the
class holds, or computes with, has none. So a public function of such a wrapper is not asked for as
a whole. It runs, the ops that it is made of come to the door, and there the class is asked for each
one (`step`), as in torch below autograd: by the name of aten's operator that does the same, or, for
what aten has no operator, as `undertow.<op>`, which is called with the inputs and the parameters of
the op. The op is recorded with the wrappers as its inputs. Its rule is made of functions again, so
a backward asks the class as well, and can be recorded itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from ..backends.batch import frames_of
from ..backends.wrapped import STEPS, array_of, noted
from ..devices import Device, get_default_device
from ..errors import UnsupportedError
from .derived import evaluated, ordered
from .dispatch import apply
from .dispatching import dispatchers, is_wrapper, operator, overload_of, product_of
from .modes import current, enter, leave
from .node import WrapperNode
from .op import OPS, Op
from .overriding import EVERYBODY, answer
from .record import record
from .register import FUNCTIONS
from .tensor import Tensor, differentiated, restored, share, wrap, wrap_shared


def make_wrapper(
    cls: type[Tensor],
    size: Iterable[int],
    strides: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """An instance of a subclass that has a shape, a dtype and a device, and no memory."""
    more = {"dtype": dtype, "device": "meta"}
    if strides is None:
        like = FUNCTIONS["empty"]([*size], **more)
    else:
        like = FUNCTIONS["empty_strided"]([*size], [*strides], **more)
    made: Any = wrap_shared(array_of(like._array, cls, {}), share(like), cls)
    vars(made)["_device"] = Device(device) if device is not None else get_default_device()
    if requires_grad:
        Tensor.requires_grad.fset(made, True)  # type: ignore[attr-defined]
    return made


def step(op: Op, inputs: Sequence[Any], params: tuple[Any, ...]) -> Any:
    """Ask for an op of which some input is a wrapper; see Note [history of wrappers]."""
    if op.scalar is not None and OPS.get(op.name) is not op:  # of a rule, see Note [derived ops]
        return evaluated(ordered(op.expr), inputs)
    state = current()
    if differentiated(*inputs) and any(
        frames_of(t._array) for t in inputs if isinstance(t, Tensor)
    ):
        raise UnsupportedError(
            f"[{op.name}] a wrapper with a history meets a tensor that vmap maps; map what it holds"
        )
    given = [restored(t) for t in inputs]
    found = dispatchers(given)
    if not found or not state.dispatches:
        raise UnsupportedError(
            f"[{op.name}] has no answer for a wrapper here: its class answers operators, and is "
            "not asked while that is switched off"
        )
    asked, args, kwargs = _as_asked(op, given, params)
    token = enter(state.but(grad=False, asks=EVERYBODY, around=None))
    try:
        answered = answer(asked, found, args, kwargs, "dispatch")
    finally:
        leave(token)
    several = op.outputs != 1
    for t in given:
        if is_wrapper(t):
            noted(t._array, t)
    outs = [_fresh(out, given) for out in (answered if several else (answered,))]
    for out in outs:
        if is_wrapper(out):
            noted(out._array, out)
    if state.grad:
        record(op, inputs, params, outs)
        for out in outs:
            if out._node is not None:
                out._node.__class__ = WrapperNode
    return tuple(outs) if several else outs[0]


STEPS.append(step)


def _fresh(out: Any, given: Sequence[Any]) -> Any:
    """A result that can get a history of its own."""
    if not isinstance(out, Tensor):
        raise UnsupportedError(
            f"[__torch_dispatch__] answered with a {type(out).__name__}; a result that is to have "
            "a history is a Tensor"
        )
    if out._node is None and all(out is not t for t in given):
        return out
    return restored(wrap(out._array))


# Ops as operators -----------------------------------------------------------------------------
# What an op is called with in aten, of its inputs and parameters, where the names are the same.
_AS_ATEN: dict[str, Callable[..., Any]] = {
    "amax": lambda x, dims, keepdim: (x, [*dims], keepdim),
    "amin": lambda x, dims, keepdim: (x, [*dims], keepdim),
    "addmm": lambda a, b, c: (c, a, b),
    "cat": lambda *given: ([*given[:-2]], given[-2]),
    "clone": lambda x: (x,),
    "cumprod": lambda x, dim: (x, dim),
    "cumsum": lambda x, dim: (x, dim),
    "dot": lambda a, b: (a, b),
    "expand": lambda x, shape: (x, [*shape]),
    "flip": lambda x, dims: (x, [*dims]),
    "gather": lambda x, index, dim: (x, dim, index),
    "logsumexp": lambda x, dims, keepdim: (x, [*dims], keepdim),
    "matmul": lambda a, b: (a, b),
    "mean": lambda x, dims, keepdim: (x, [*dims], keepdim),
    "permute": lambda x, dims: (x, [*dims]),
    "reshape": lambda x, shape: (x, [*shape]),
    "stack": lambda *given: ([*given[:-1]], given[-1]),
    "sum": lambda x, dims, keepdim: (x, [*dims], keepdim),
    "tril": lambda x, diagonal: (x, diagonal),
    "triu": lambda x, diagonal: (x, diagonal),
    "view": lambda x, shape: (x, [*shape]),
}


def _as_asked(
    op: Op, inputs: Sequence[Any], params: tuple[Any, ...]
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The operator for an op, and what it is called with."""
    if op.name == "cast":
        return operator("_to_copy"), (inputs[0],), {"dtype": params[0]}
    if op.name not in _AS_ATEN and (op.scalar is None or not _is_in_aten(op.name)):
        return _own(op), (*inputs, *params), {}
    args = (*inputs, *params)
    if op.name in _AS_ATEN:
        args = _AS_ATEN[op.name](*args)
    name = product_of(args) if op.name == "matmul" else op.name
    return operator(name, overload_of(name, args, {})), args, {}


@cache
def _is_in_aten(name: str) -> bool:
    try:
        operator(name)
    except AttributeError:
        return False
    return True


@cache
def _own(op: Op) -> Any:
    """`undertow.<op>`: the op itself, called with its inputs and its parameters."""
    count = len(op.params)

    def call(*given: Any) -> Any:
        end = len(given) - count
        return apply(op, given[:end], given[end:])

    overload = import_module("undertow.compat.aten").AtenOverload
    return overload(op.name, "default", call, "undertow")
