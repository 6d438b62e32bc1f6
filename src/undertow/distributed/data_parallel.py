"""`DistributedDataParallel`: a module whose gradients are averaged over processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from hashlib import sha256
from typing import Any

from .. import nn
from ..core.generator import Generator, default_generator, replaying
from ..core.modes import current
from ..core.tensor import Tensor
from ..errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from ..nn.parallel.wrappers import Wrapper
from ..nn.utils.stateless import functional_call
from ..ops.create.creation import zeros_like
from ..ops.create.from_data import tensor as tensor_of
from ..ops.shape.joining import stack
from . import functions, groups
from .reducer import GradBucket, Reducer
from .reductions import ReduceOp

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Wrapper):
    """A module over several processes: after a backward pass all have the same average gradients.

    They are sent while the pass runs. Without a process group the module is called as it is.

    `shards=8` makes the result independent of the number of processes, to the bit: whatever a
    batch is spread over, 1, 2, 4 or 8 processes, it is 8 shards, each of which is computed by
    itself, and the gradients of the shards are summed in one tree. It gives what 8 processes give
    without it. Rows i, i + k, i + 2k … of a process with k shards are one shard; a sampler with the
    same `shards` deals them out so.

    >>> import undertow as ut
    >>> model = ut.nn.parallel.DistributedDataParallel(ut.nn.Linear(2, 1))
    >>> model.module
    Linear(in_features=2, out_features=1, bias=True)
    """

    def __init__(
        self,
        module: nn.Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        *,
        shards: int | None = None,
    ) -> None:
        super().__init__(module, device_ids)
        given = {
            "delay_all_reduce_named_params": delay_all_reduce_named_params,
            "param_to_hook_all_reduce": param_to_hook_all_reduce,
            "mixed_precision": mixed_precision,
            "device_mesh": device_mesh,
        }
        for name, value in given.items():
            if value is not None:
                raise UnsupportedError(f"[DistributedDataParallel] {name} is not supported")
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self._entries = [
            (name, p)
            for name, p in module.named_parameters()
            if p.requires_grad and name not in ignored
        ]
        if not self._entries:
            raise ArgumentError(
                "[DistributedDataParallel] no parameter of the module requires a gradient, so "
                "there is nothing to bring together; use the module itself"
            )
        self._ignored = ignored
        self.dim = dim
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True
        self.shards = shards
        self._joining: dict[str, Any] | None = None
        one = groups.state.world is None and process_group is None
        self.process_group = (
            None if one else groups.resolved("DistributedDataParallel", process_group)
        )
        if self.process_group is not None and init_sync:
            self._synchronise()
        self.reducer: Reducer | None = None
        if self.process_group is not None or shards is not None:
            group = self.process_group or groups.alone()
            self._group = group
            self.reducer = Reducer(
                group,
                self._entries,
                25e6 if bucket_cap_mb is None else bucket_cap_mb * 2**20,
                find_unused_parameters or static_graph,
                gradient_as_bucket_view and shards is None,
            )
            if shards is not None:
                self._shards = Shards(self, group, shards)
            else:
                for _, p in self._entries:
                    p.register_post_accumulate_grad_hook(self._gradient_came)

    def _gradient_came(self, parameter: Tensor) -> None:
        if self.require_backward_grad_sync and self.reducer is not None:
            self.reducer.ready(parameter)

    def _synchronise(self, source: int = 0) -> None:
        """Give all processes the parameters and buffers of one."""
        for name, value in (*self.module.named_parameters(), *self.module.named_buffers()):
            if name not in self._ignored:
                functions.broadcast(value, group=self.process_group, group_src=source, label=name)

    def _synchronise_buffers(self, source: int = 0) -> None:
        if self.process_group is None or not self.broadcast_buffers:
            return
        works = [
            functions.broadcast(b, None, self.process_group, True, group_src=source, label=name)
            for name, b in self.module.named_buffers()
            if name not in self._ignored
        ]
        for work in works:
            work.wait()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        gave_up = current().grad and self.reducer is not None and self.reducer.forget()
        if gave_up and self.shards is not None:
            self._shards.forget()
        # Only in passes that all have: an evaluation may be of any length, here or there.
        if current().grad and self.require_backward_grad_sync:
            self._synchronise_buffers(0 if self._joining is None else self._tell_others())
        if self.shards is not None:
            outputs = self._shards.forward(args, kwargs)
        else:
            outputs = self.module(*args, **kwargs)
        return outputs

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block in which gradients are summed here, and not brought together."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    # Hooks of the user ----------------------------------------------------------------------------
    def register_comm_hook(self, state: Any, hook: Callable[[Any, GradBucket], Any]) -> None:
        """Combine each bucket by a function: `hook(state, bucket)` gives a future of the result."""
        if not callable(hook):
            raise DTypeError(f"[register_comm_hook] expects a function, got {type(hook).__name__}")
        if self.shards is not None:
            raise UnsupportedError("[register_comm_hook] hooks and shards do not go together")
        if self.reducer is not None:
            if self.reducer.hook is not None:
                raise ArgumentError("[register_comm_hook] there is a hook already")
            self.reducer.hook, self.reducer.hook_state = hook, state

    # Uneven inputs --------------------------------------------------------------------------------
    @contextmanager
    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Iterator[None]:
        """A block in which processes may have uneven inputs.

        Who is ready first answers the others with zeros, until all are. With
        `throw_on_early_termination` it is an error everywhere instead.
        """
        if self.process_group is None or self.process_group.members == 1 or not enable:
            yield
            return
        if self.shards is not None:
            raise UnsupportedError("[join] shards of a batch are never uneven; leave it out")
        self._joining = {
            "initial": divide_by_initial_world_size,
            "throw": throw_on_early_termination,
        }
        try:
            yield
            while True:
                active, source = self._active(False)
                if not active:
                    break
                if throw_on_early_termination:
                    raise ArgumentError("[join] this process has no more inputs, others have")
                self._synchronise_buffers(source)
                assert self.reducer is not None
                self.reducer.shadow()
            self._synchronise(self._joining.get("last", 0))  # who was ready early has missed steps
        finally:
            self._joining = None
            assert self.reducer is not None
            self.reducer.divisor = 0

    def _active(self, has_input: bool) -> tuple[int, int]:
        """How many processes have inputs, and the last of them."""
        group = self.process_group
        assert group is not None
        flags = tensor_of([0] * group.members)
        flags[group.me] = int(has_input)
        functions.all_reduce(flags, ReduceOp.MAX, group, label="who has inputs")
        known = flags.tolist()
        count = sum(known)
        last = max((i for i, x in enumerate(known) if x), default=0)
        if count and self._joining is not None:
            self._joining["last"] = last
        if self._joining is not None and not self._joining["initial"] and self.reducer is not None:
            self.reducer.divisor = max(1, count)
        return count, last

    def _tell_others(self) -> int:
        assert self._joining is not None
        assert self.process_group is not None
        count, source = self._active(True)
        if self._joining["throw"] and count < self.process_group.members:
            raise ArgumentError("[join] a process has no more inputs, and this one has")
        return source


class Shards:
    """A batch as a number of parts that does not depend on the number of processes.

    Each part is computed with leaves of its own, which share the memory of the parameters, so that
    its gradient is known by itself. Buffers are those of the first part, as torch's are those of
    rank 0; each part begins with the same ones.
    """

    def __init__(self, wrapper: DistributedDataParallel, group: Any, count: int) -> None:
        if count < 1 or count & (count - 1) or count % group.members:
            raise ArgumentError(
                f"[DistributedDataParallel] shards must be a power of two that {group.members} "
                f"processes can share, got {count}"
            )
        if any(isinstance(m, nn.SyncBatchNorm) for m in wrapper.module.modules()):
            raise UnsupportedError(
                "[DistributedDataParallel] shards run one after the other, so a SyncBatchNorm "
                "cannot see all of them; use BatchNorm with shards"
            )
        assert wrapper.reducer is not None
        self.wrapper, self.group = wrapper, group
        self.here = count // group.members
        self.first = group.me * self.here
        self.steps = 0
        self.leaves: list[dict[str, Tensor]] = [{} for _ in range(self.here)]
        self.arrived: dict[int, int] = {}
        # Gradients of parameters, and their versions, when the parts last had some of their own.
        self.seen: dict[int, tuple[Tensor, int]] = {}
        self.names = {id(p): name for name, p in wrapper._entries}
        seed = tensor_of([default_generator.initial_seed() >> 1])
        if group.members > 1:
            functions.broadcast(seed, group=group, group_src=0)
        self.seed = seed.item()
        self.lock = threading.Lock()
        self.reducer = wrapper.reducer
        self.reducer.gradient = self.gradient
        self.reducer.keep = _added
        self.reducer.settle = self._settle

    def forward(self, args: Any, kwargs: Any) -> Any:
        """Compute the parts one after the other, and put the results together."""
        module = self.wrapper.module
        parts = _dealt((args, kwargs), self.here)
        # The buffers of the beginning, for every part but the first, which has the module's own.
        begun = {name: b.clone() for name, b in module.named_buffers()} if self.here > 1 else {}
        results = []
        self.steps += module.training
        for i, (some, named) in enumerate(parts):
            tensors: dict[str, Tensor] = {}
            if current().grad:
                if not i:
                    self._clear()
                tensors |= self._leaves(i)
            if i:
                tensors |= {name: b.clone() for name, b in begun.items()}
            with self._random(i) if module.training else nullcontext():
                results.append(functional_call(module, tensors, tuple(some), named))
        return _together(results)

    def _random(self, i: int) -> Any:
        """Random numbers that depend on the shard and the step, and on nothing else."""
        text = f"{self.seed}/{self.steps}/{self.first + i}"
        seed = int.from_bytes(sha256(text.encode()).digest()[:7], "little")
        return replaying(Generator().manual_seed(seed).place())

    def _leaves(self, i: int) -> dict[str, Tensor]:
        """Leaves for part i that share the memory of the parameters; made again when that moved."""
        known = self.leaves[i]
        for name, p in self.wrapper._entries:
            if not p.requires_grad:
                known.pop(name, None)
                continue
            leaf = known.get(name)
            if leaf is None or leaf._array is not p._array:
                leaf = known[name] = p.detach().requires_grad_()
                leaf.register_post_accumulate_grad_hook(self._told_of(p))
        return known

    def forget(self) -> None:
        """Drop what a pass that ended with an error has left; sums of `no_sync` stay."""
        self.arrived.clear()
        for name, p in self.wrapper._entries:
            if id(p) not in self.seen:
                self._drop(name)

    def _drop(self, name: str) -> None:
        for leaves in self.leaves:
            if name in leaves:
                leaves[name].grad = None

    def _clear(self) -> None:
        """Drop what was summed in `no_sync`, if the user has since cleared the gradient."""
        for name, p in self.wrapper._entries:
            seen = self.seen.get(id(p))
            if seen is not None and (p.grad is not seen[0] or p.grad._version != seen[1]):
                del self.seen[id(p)]
                self._drop(name)

    def _told_of(self, parameter: Tensor) -> Callable[[Tensor], None]:
        return lambda leaf: self._arrived(parameter)

    def _arrived(self, parameter: Tensor) -> None:
        if not self.wrapper.require_backward_grad_sync:
            if parameter.grad is None:  # so that clearing it can be seen
                parameter.grad = zeros_like(parameter.detach())
            self.seen[id(parameter)] = parameter.grad, parameter.grad._version
            return
        self.reducer.begin()
        with self.lock:
            count = self.arrived[id(parameter)] = self.arrived.get(id(parameter), 0) + 1
            if count == self.here:
                del self.arrived[id(parameter)]
        if count == self.here:
            self.reducer.ready(parameter)

    def _settle(self) -> None:
        """At the end of a pass: parameters that not every part has used."""
        for _, p in self.wrapper._entries:
            if self.arrived.pop(id(p), None):
                self.reducer.ready(p)

    def gradient(self, parameter: Tensor) -> Tensor | None:
        """The sum of the parts' gradients, in the order of Note [one tree]."""
        name = self.names[id(parameter)]
        found = [leaves[name].grad for leaves in self.leaves]
        self._drop(name)
        self.seen.pop(id(parameter), None)
        left: list[Any] = found
        while len(left) > 1:
            left = [_sum(left[i], left[i + 1]) for i in range(0, len(left), 2)]
        return left[0]


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """The sum, in the memory of the first; None where a part has no gradient."""
    return b if a is None else a if b is None else a.add_(b)


def _added(parameter: Tensor, gradient: Tensor) -> None:
    """Add a gradient to what a parameter has."""
    if parameter.grad is None:
        parameter.grad = gradient.clone()
    else:
        parameter.grad.add_(gradient)


def _dealt(given: Any, count: int) -> list[Any]:
    """Arguments in so many parts: tensors of as many rows as the first have a part of the rows."""
    if count == 1:
        return [given]
    rows = _rows(given)
    if rows is None or rows % count:
        raise ShapeError(
            f"[DistributedDataParallel] a batch of {rows} rows cannot be dealt to {count} shards; "
            "give each process a multiple of that"
        )
    return [_part(given, i, count, rows) for i in range(count)]


def _rows(given: Any) -> int | None:
    if isinstance(given, Tensor):
        return int(given.shape[0]) if given.ndim else None
    values = given.values() if isinstance(given, dict) else given
    if not isinstance(given, (dict, list, tuple)):
        return None
    return next((r for r in map(_rows, values) if r is not None), None)


def _part(given: Any, i: int, count: int, rows: int) -> Any:
    if isinstance(given, Tensor):
        return given[i::count] if given.ndim and given.shape[0] == rows else given
    if isinstance(given, dict):
        return type(given)((k, _part(v, i, count, rows)) for k, v in given.items())
    if isinstance(given, (list, tuple)):
        parts = [_part(v, i, count, rows) for v in given]
        return type(given)(*parts) if hasattr(given, "_fields") else type(given)(parts)
    return given


def _together(results: list[Any]) -> Any:
    """Results of the parts as one: rows in their old places, numbers averaged."""
    first = results[0]
    if len(results) == 1:
        return first
    if isinstance(first, Tensor):
        if first.ndim:
            return stack(results, 1).flatten(0, 1)
        left = results
        while len(left) > 1:
            left = [left[i] + left[i + 1] for i in range(0, len(left), 2)]
        return left[0] / len(results)
    if isinstance(first, dict):
        return type(first)(**{k: _together([r[k] for r in results]) for k in first})
    if isinstance(first, (list, tuple)):
        parts = [_together(list(row)) for row in zip(*results, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    return first
