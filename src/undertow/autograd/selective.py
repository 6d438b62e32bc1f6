"""Selective checkpointing: some results of a checkpointed function are kept, not computed again.

Note [selective checkpoint]
Ops are numbered in the order in which the function runs them. The first run keeps the results that
a policy chooses; in the second, an op whose number has a result is recorded as usual, with that
result, and computes nothing. Views and changes in place are never kept: they compute nothing, or
are somebody's memory. An operator of the user's (`library.custom_op`) counts as one op, whatever it
is made of: it finds the `operator` of the function that stands around ops, and asks that.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from ..core.dispatch import apply, transfer
from ..core.dispatching import overload_of
from ..core.modes import State, Switch, current, enter, leave
from ..core.op import OPS, Op
from ..core.record import record
from ..core.tensor import Tensor
from ..errors import ArgumentError, DTypeError, VersionError
from .checkpoint import CheckpointError


class CheckpointPolicy(enum.Enum):
    """What becomes of the result of an op; MUST and PREFER mean the same here."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVE = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
_OFFLOAD = (CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD)


class SelectiveCheckpointContext:
    """What a policy is told besides the op: the op's result."""

    def __init__(self, *, is_recompute: bool = False, op_output: Any = None) -> None:
        self.is_recompute = is_recompute  # a policy is asked in the first run only
        self.op_output = op_output


class _Kept(NamedTuple):
    """Results of one op or operator, without history, and their versions then."""

    op: Any
    tensors: tuple[Tensor, ...]
    versions: tuple[int, ...]
    device: Any


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Callable[..., Any] | Sequence[Any], allow_cache_entry_mutation: bool = False
) -> tuple[Switch, Switch]:
    """The two contexts with which `checkpoint` keeps the results of some ops.

    A list names the ops to keep, by our names or as torch's operators (`ut.ops.aten.mm.default`). A
    function gets a `SelectiveCheckpointContext`, the op (whose `name` tells what it is, and which
    equals torch's operator for the same), and the op's tensors and parameters, and returns a
    `CheckpointPolicy`, or True to keep the result. A result that is changed in place before it is
    needed is an error unless `allow_cache_entry_mutation`.

    >>> import functools
    >>> import undertow as ut
    >>> from undertow.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> keep = functools.partial(create_selective_checkpoint_contexts, ["matmul"])
    >>> x = ut.ones(2, 2, requires_grad=True)
    >>> y = checkpoint(lambda x: (x @ x).exp().sum(), x, context_fn=keep)
    >>> y.backward()  # computes exp again, and not x @ x
    """
    kept: dict[int, _Kept] = {}
    policy = _policy(policy_fn_or_list)
    return _Keep(policy, kept), _Reuse(kept, allow_cache_entry_mutation)


def _policy(chosen: Any) -> Callable[..., Any]:
    if callable(chosen):
        return chosen
    if not isinstance(chosen, (list, tuple, set, frozenset)):
        raise DTypeError(
            "[create_selective_checkpoint_contexts] takes a function or a list of ops, got "
            f"{type(chosen).__name__}"
        )
    names = {op.name if isinstance(op, Op) else op for op in chosen}
    for name in names:
        if name not in OPS and not hasattr(name, "overloadpacket"):
            raise ArgumentError(
                f"[create_selective_checkpoint_contexts] {name!r} is not the name of an op; a "
                "policy function that prints op.name shows those that a function runs"
            )
    return lambda ctx, op, *args: op.name in names or op in names


# What torch's operator is called where our op has another name; products by their dimensions.
_OPERATORS = {
    "attention": "_scaled_dot_product_flash_attention_for_cpu.default",
    "channel_norm": "native_batch_norm.default",
    "conv": "convolution.default",
    "conv_relu": "convolution.default",
    "gelu_tanh": "gelu.default",
    "group_norm": "native_group_norm.default",
    "layer_norm": "native_layer_norm.default",
    "log_softmax": "_log_softmax.default",
    "relu_layer": "addmm.default",
    "softmax": "_softmax.default",
    "var_mean": "var_mean.correction",
}


def operator_name(op: Op, inputs: Any, params: tuple[Any, ...]) -> str:
    """`mm.default`: torch's operator for a call of an op."""
    if op.name in _OPERATORS:
        return _OPERATORS[op.name]
    if op.name.startswith("matmul"):
        return "mm.default" if all(t.ndim == 2 for t in inputs) else "bmm.default"
    if op.name == "linear":
        return "addmm.default" if len(inputs) > 2 else "mm.default"
    return f"{op.name}.{overload_of(op.name, (*inputs, *params), {})}"


class Asked:
    """An op as a policy sees it: ours by its `name`, and equal to torch's operator for the call."""

    def __init__(self, op: Op, inputs: Any, params: tuple[Any, ...]) -> None:
        self.op, self.name = op, op.name
        self._operator: Any = None
        packet, _, overload = operator_name(op, inputs, params).partition(".")
        aten = import_module("undertow.compat._ops").namespace("aten")
        try:
            self._operator = getattr(getattr(aten, packet), overload)
        except AttributeError:  # an op that torch does not have
            self._operator = op

    def __getattr__(self, name: str) -> Any:
        return getattr(self.op, name)

    def __eq__(self, other: object) -> bool:
        return other is self._operator or other is self.op

    def __hash__(self) -> int:
        return hash(self._operator)

    def __repr__(self) -> str:
        return repr(self.op)


class _Keep(Switch):
    """The first run."""

    __slots__ = ("_kept", "_policy")

    def __init__(self, policy: Callable[..., Any], kept: dict[int, _Kept]) -> None:
        super().__init__()
        self._policy = policy
        self._kept = kept

    def _next(self, state: State) -> State:
        policy, kept, count = self._policy, self._kept, 0

        def around(op: Op, inputs: Any, params: tuple[Any, ...]) -> Any:
            nonlocal count
            number, count = count, count + 1
            token = enter(current().but(around=None))
            try:
                out = apply(op, inputs, params)
                context = SelectiveCheckpointContext(op_output=out)
                choice = policy(context, Asked(op, inputs, params), *inputs, *params)
                if not op.view and (choice is True or choice in _SAVE or choice in _OFFLOAD):
                    outs = out if isinstance(out, tuple) else (out,)
                    kept[number] = _alone(op, outs, choice in _OFFLOAD)
            finally:
                leave(token)
            return out

        def operator(op: Any, kernel: Any, args: Any, named: dict[str, Any]) -> Any:
            nonlocal count
            number, count = count, count + 1
            token = enter(current().but(around=None))
            try:
                out = kernel(*args, **named)
                choice = policy(SelectiveCheckpointContext(op_output=out), op, *args, **named)
                outs = out if isinstance(out, tuple) else (out,)
                wanted = choice is True or choice in _SAVE or choice in _OFFLOAD
                if wanted and outs and all(isinstance(t, Tensor) for t in outs):
                    kept[number] = _alone(op, outs, choice in _OFFLOAD)
            finally:
                leave(token)
            return out

        around.operator = operator  # type: ignore[attr-defined]
        return state.but(around=around)


def _alone(op: Any, outs: tuple[Tensor, ...], offload: bool) -> _Kept:
    """What is kept of results."""
    device = outs[0].device
    alone = tuple(t.detach() for t in outs)
    if offload:
        alone = tuple(transfer(t, "cpu") for t in alone)
    return _Kept(op, alone, tuple(t._version for t in alone), device)


class _Reuse(Switch):
    """The second run, and every further one."""

    __slots__ = ("_changed", "_kept")

    def __init__(self, kept: dict[int, _Kept], changed: bool) -> None:
        super().__init__()
        self._kept = kept
        self._changed = changed

    def _next(self, state: State) -> State:
        count = 0

        def around(op: Op, inputs: Any, params: tuple[Any, ...]) -> Any:
            nonlocal count
            number, count = count, count + 1
            token = enter(current().but(around=None))
            try:
                found = self._kept.get(number)
                if found is None:
                    return apply(op, inputs, params)
                outs = self._results(number, found, op)
                if current().grad:
                    record(op, inputs, params, outs)
                return outs[0] if op.outputs == 1 else outs
            finally:
                leave(token)

        def operator(op: Any, kernel: Any, args: Any, named: dict[str, Any]) -> Any:
            nonlocal count
            number, count = count, count + 1
            token = enter(current().but(around=None))
            try:
                found = self._kept.get(number)
                if found is None:
                    return kernel(*args, **named)
                outs = self._results(number, found, op)
                return outs[0] if len(op._schema.returns) == 1 else outs
            finally:
                leave(token)

        around.operator = operator  # type: ignore[attr-defined]
        return state.but(around=around)

    def _results(self, number: int, found: _Kept, op: Any) -> tuple[Tensor, ...]:
        """What was kept of an op, without history."""
        if found.op is not op:
            raise CheckpointError(
                f"[checkpoint] op {number} of the function was {_name(found.op)} in the forward "
                f"but {_name(op)} when it was computed again; it must do the same both times"
            )
        for t, version in zip(found.tensors, found.versions, strict=True):
            if t._version != version and not self._changed:
                raise VersionError(
                    f"[checkpoint] the result of {_name(op)} of shape {t.shape}, kept at version "
                    f"{version}, is now at version {t._version}: it was changed in place; pass "
                    "allow_cache_entry_mutation=True if that does no harm, or do not keep it"
                )
        return tuple(
            transfer(t, found.device) if t.device != found.device else t.detach()
            for t in found.tensors
        )


def _name(op: Any) -> str:
    return op.name if isinstance(op, Op) else str(op)
