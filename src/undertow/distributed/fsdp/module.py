"""`fully_shard`, and what a module can do that it was called on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from ... import nn
from ...autograd.engine import running
from ...autograd.graph import saved_tensors_hooks
from ...core.modes import current, no_grad
from ...core.tensor import Tensor
from ...dtypes import DType
from ...errors import ArgumentError, ShapeError, UnsupportedError
from ...ops.create.from_data import tensor as tensor_of
from .. import functions, groups
from ..reductions import ReduceOp
from .rows import Pass, Rows, Unit, active

_OWN = "_unit_of_rows"


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Dtypes of the whole parameters, of sums of gradients and of results; None keeps them."""

    param_dtype: DType | None = None
    reduce_dtype: DType | None = None
    output_dtype: DType | None = None
    cast_forward_inputs: bool = True


def fully_shard(
    module: nn.Module,
    *,
    mesh: Any = None,
    reshard_after_forward: bool | None = None,
    shard_placement_fn: Any = None,
    mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: Any = None,
    ignored_params: Any = None,
    process_group: Any = None,
) -> Any:
    """Keep of each parameter of a module only the rows of this process; the module itself.

    The parameters are whole while the module runs, forward and backward, and freed after. Call it
    on the parts of a model first, such as its layers, and on the model last: each call makes a unit
    of the parameters that no other has. Make the optimiser after that. All processes should have
    the same parameters before; those of the first are taken.

    >>> import undertow as ut
    >>> from undertow.distributed.fsdp import fully_shard
    >>> ut.distributed.init_process_group(rank=0, world_size=1)
    >>> model = fully_shard(ut.nn.Linear(2, 3))
    >>> model(ut.ones(4, 2)).sum().backward()
    >>> model.weight.grad.shape
    (3, 2)
    >>> ut.distributed.destroy_process_group()
    """
    given = {
        "mesh": mesh,
        "shard_placement_fn": shard_placement_fn,
        "offload_policy": offload_policy,
    }
    for name, value in given.items():
        if value is not None:
            raise UnsupportedError(f"[fully_shard] {name} is not supported")
    if _OWN in module.__dict__:
        raise ArgumentError("[fully_shard] this module is sharded already")
    group = groups.resolved("fully_shard", process_group)
    policy = mp_policy or MixedPrecisionPolicy()
    ignored = {id(p) for p in ignored_params or ()}
    known: dict[int, Rows] = {}
    for path, below in module.named_modules():
        for name, p in below._parameters.items():
            if p is None or id(p) in ignored or hasattr(p, "_rows_of"):
                continue
            if id(p) not in known:
                label = f"{path}.{name}" if path else name
                functions.broadcast(p, group=group, group_src=0, label=label)
                known[id(p)] = Rows(label, p, group, policy.param_dtype)
            known[id(p)].places_in.append((below, name))
    unit = Unit(list(known.values()), group, policy, reshard_after_forward)
    for below in {id(m): m for r in unit.rows for m, _ in r.places_in}.values():
        if not _has_rows(below):  # of another unit, with which the hooks came
            below.register_state_dict_pre_hook(_refuse_rows)
            below.register_load_state_dict_pre_hook(_take_rows)
    unit.show(False)
    object.__setattr__(module, _OWN, unit)
    kind = type(module)
    module.__class__ = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {})
    return module


class FSDPModule:
    """What `fully_shard` adds to the class of a module."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives, with its parameters whole in the meantime."""
        unit: Unit = self.__dict__[_OWN]
        whole = active.get()
        if whole is None and running.get() is not None:
            whole = unit.owner  # what ran forward runs again, such as in a checkpoint
        policy = unit.policy
        if policy.param_dtype is not None and policy.cast_forward_inputs:
            args, kwargs = _cast((args, kwargs), policy.param_dtype)
        with ExitStack() as stack:
            root = whole is None
            if whole is None:
                whole = self.__dict__.get("_pass") or Pass()
                object.__setattr__(self, "_pass", whole)
                whole.forget()
                token = active.set(whole)
                stack.callback(active.reset, token)
                stack.enter_context(_hooks(whole))
            whole.ran(unit)
            with whole.lock:
                if running.get() is None:
                    unit.free()  # what a forward without a backward left may be old
                unit.gather()
            unit.show(True)
            stack.callback(_leave, unit, root)
            found = super().forward(*args, **kwargs)  # type: ignore[misc]
        return found if policy.output_dtype is None else _cast(found, policy.output_dtype)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """The whole parameters and buffers, at every process; all of them call it."""
        with summon_full_params(self, writeback=False):
            return super().state_dict(*args, **kwargs)  # type: ignore[misc]

    def sharded_state_dict(self) -> dict[str, Tensor]:
        """The rows of this process by name, and buffers; nothing is sent."""
        found: dict[str, Tensor] = {}
        for name, value in self.named_parameters():  # type: ignore[attr-defined]
            found[name] = value.detach()
        for name, value in self.named_buffers():  # type: ignore[attr-defined]
            found[name] = value.detach()
        return found

    def load_sharded_state_dict(self, state: dict[str, Tensor]) -> None:
        """Take back what `sharded_state_dict` gave, with the same number of processes."""
        own = self.sharded_state_dict()
        if own.keys() != state.keys():
            raise ArgumentError(
                "[load_sharded_state_dict] names differ: "
                f"{sorted(own.keys() ^ state.keys())[:5]} are in one only"
            )
        for name, value in own.items():
            if value.shape != state[name].shape:
                raise ArgumentError(
                    f"[load_sharded_state_dict] {name!r} has the rows {tuple(value.shape)} here, "
                    f"got {tuple(state[name].shape)}; use state_dict for another number of "
                    "processes"
                )
        with no_grad():
            for name, value in own.items():
                value.copy_(state[name])

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Whether backward passes sum gradients over processes; without, the whole ones stay."""
        for unit in units(self) if recurse else [self.__dict__[_OWN]]:
            unit.synchronises = requires_gradient_sync

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale gradients so that the norm over all rows of all processes is at most `max_norm`."""
        if norm_type not in (2, 2.0):
            raise UnsupportedError(f"[clip_grad_norm_] of norm 2 only, got {norm_type}")
        own = units(self)
        with no_grad():
            total = tensor_of(0.0)
            for r in (r for unit in own for r in unit.rows):
                if r.shard.grad is not None:
                    total += (r.shard.grad.float() ** 2).sum()
            functions.all_reduce(total, ReduceOp.SUM, own[0].group, label="norm of gradients")
            total = total.sqrt()
            scale = (max_norm / (total + 1e-6)).clamp(max=1.0)
            for r in (r for unit in own for r in unit.rows):
                if r.shard.grad is not None:
                    r.shard.grad.mul_(scale.to(r.shard.grad.dtype))
        return total


def units(module: Any) -> list[Unit]:
    """Those of a module and of what is below it."""
    return [m.__dict__[_OWN] for m in module.modules() if _OWN in m.__dict__]


@contextmanager
def summon_full_params(module: Any, *, writeback: bool = True) -> Iterator[None]:
    """A block in which the parameters of a module are whole; all processes enter it.

    >>> import undertow as ut
    >>> from undertow.distributed.fsdp import fully_shard, summon_full_params
    >>> ut.distributed.init_process_group(rank=0, world_size=1)
    >>> model = fully_shard(ut.nn.Linear(2, 3))
    >>> with summon_full_params(model):
    ...     model.weight.shape
    (3, 2)
    >>> ut.distributed.destroy_process_group()
    """
    own = units(module)
    types = [r.dtype for unit in own for r in unit.rows]
    for unit in own:
        for r in unit.rows:
            r.dtype = r.shard.dtype  # as they are kept, not as they are used
        unit.free()
        unit.gather()
        unit.show(True)
    try:
        yield
        if writeback:
            with no_grad():
                for r in (r for unit in own for r in unit.rows):
                    r.shard.detach().copy_(r.full.detach()[r.mine])
    finally:
        for r, dtype in zip((r for unit in own for r in unit.rows), types, strict=True):
            r.dtype = dtype
        for unit in own:
            unit.show(False)
            unit.free()


def _has_rows(module: nn.Module) -> bool:
    return any(hasattr(p, "_rows_of") for p in module._parameters.values())


def _refuse_rows(module: nn.Module, prefix: str, keep_vars: bool) -> None:
    """Before a state_dict: a module in a unit cannot give its rows as if they were all."""
    if _has_rows(module):
        raise UnsupportedError(
            f"[state_dict] this {type(module).__name__} is part of a module that was sharded, and "
            "has rows of its parameters only; call state_dict on that module or above it, or in "
            "`with fsdp.summon_full_params(model):`"
        )


def _take_rows(
    module: nn.Module, state: dict[str, Any], prefix: str, metadata: dict[str, Any], *_: Any
) -> None:
    """Before a load: of whole parameters, leave the rows of this process."""
    for name, p in module._parameters.items():
        r, key = getattr(p, "_rows_of", None), prefix + name
        if r is None or key not in state:
            continue
        if metadata.get("assign_to_params_buffers"):
            raise UnsupportedError("[load_state_dict] assign=True is not supported by fully_shard")
        if tuple(state[key].shape) != r.shape:
            raise ShapeError(
                f"[load_state_dict] {key} has shape {tuple(state[key].shape)} in the state_dict, "
                f"and {r.shape} in the model, of which each process keeps rows"
            )
        state[key] = state[key][r.mine]


def _leave(unit: Unit, root: bool) -> None:
    unit.show(False)
    frees = not root if unit.frees is None else unit.frees
    # A forward in a backward pass, such as of checkpoint, is followed by its own backward.
    if (frees or not current().grad) and running.get() is None:
        unit.free()


def _hooks(whole: Pass) -> AbstractContextManager[Any]:
    """Saved parameters as places; hooks of the user come first."""
    if current().pack is not None:
        return nullcontext()
    return saved_tensors_hooks(whole.pack, whole.unpack)


def _cast(given: Any, dtype: DType) -> Any:
    if isinstance(given, Tensor):
        return given.to(dtype) if given.is_floating_point() else given
    if isinstance(given, dict):
        return type(given)((k, _cast(v, dtype)) for k, v in given.items())
    if isinstance(given, (list, tuple)):
        parts = [_cast(v, dtype) for v in given]
        return type(given)(*parts) if hasattr(given, "_fields") else type(given)(parts)
    return given
