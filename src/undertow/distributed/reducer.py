"""Gradients of several processes brought together while the backward pass still runs.

Parameters are kept in buckets, in the reverse of the order in which the module has them, which is
about the order in which their gradients come. A full bucket is sent at once, but never before the
one that comes before it: every process sends them in the same order. One parameter of many bytes
is a bucket by itself, and its gradient is combined where it lies. Small ones are copied into one
array and back.

The end of the backward pass (a callback of the engine's) waits for what is under way. A parameter
without a gradient is found there: it counts as zeros, or is an error that names it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.engine import queue_callback, running
from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..errors import GradientError
from ..ops.create.creation import zeros
from . import functions
from .groups import ProcessGroup
from .reductions import ReduceOp
from .work import Work

LARGE = 1 << 20  # bytes of a gradient that is a bucket by itself


class Bucket:
    """Parameters whose gradients travel together."""

    def __init__(self, index: int, entries: list[tuple[str, Tensor]]) -> None:
        self.index = index
        self.names = [name for name, _ in entries]
        self.parameters = [p for _, p in entries]
        self.waiting = len(entries)
        self.flat: Tensor | None = None  # of small gradients
        self.work: Any = None

    @property
    def label(self) -> str:
        """What errors call it."""
        more = f" and {len(self.names) - 1} more" if len(self.names) > 1 else ""
        return self.names[0] + more

    def views(self) -> list[Tensor]:
        """The parts of the array that belong to each parameter."""
        first = self.parameters[0]
        if self.flat is None:
            count = sum(p.numel() for p in self.parameters)
            self.flat = zeros(count, dtype=first.dtype, device=first.device)
        found, place = [], 0
        for p in self.parameters:
            found.append(self.flat[place : place + p.numel()].view(p.shape))
            place += p.numel()
        return found


class GradBucket:
    """What a communication hook is given."""

    def __init__(self, bucket: Bucket, buffer: Tensor, last: bool) -> None:
        self._bucket, self._buffer, self._last = bucket, buffer, last

    def buffer(self) -> Tensor:
        """The gradients, as one array."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Replace the gradients."""
        self._buffer = buffer

    def index(self) -> int:
        """Which bucket it is."""
        return self._bucket.index

    def is_last(self) -> bool:
        """Whether it is the last one of this pass."""
        return self._last

    def gradients(self) -> list[Tensor]:
        """The gradients of the parameters, as parts of the buffer."""
        found, place = [], 0
        for p in self._bucket.parameters:
            found.append(self._buffer[place : place + p.numel()].view(p.shape))
            place += p.numel()
        return found

    def parameters(self) -> list[Tensor]:
        """The parameters."""
        return list(self._bucket.parameters)


def buckets_of(entries: Sequence[tuple[str, Tensor]], cap: float) -> list[Bucket]:
    """Parameters in buckets of at most `cap` bytes, and of one dtype and device each."""
    found: list[Bucket] = []
    open_: dict[Any, list[tuple[str, Tensor]]] = {}

    def close(kind: Any) -> None:
        found.append(Bucket(len(found), open_.pop(kind)))

    for name, p in reversed(entries):
        size = p.numel() * p.element_size()
        if size >= LARGE:
            found.append(Bucket(len(found), [(name, p)]))
            continue
        kind = (p.dtype, p.device)
        held = open_.setdefault(kind, [])
        held.append((name, p))
        if sum(q.numel() * q.element_size() for _, q in held) >= cap:
            close(kind)
    for kind in list(open_):
        close(kind)
    return found


class Reducer:
    """The gradients of a module, on their way through the group."""

    def __init__(
        self,
        group: ProcessGroup,
        entries: Sequence[tuple[str, Tensor]],
        cap: float,
        allow_unused: bool,
        as_views: bool,
    ) -> None:
        self.group = group
        self.buckets = buckets_of(entries, cap)
        self.allow_unused = allow_unused
        self.as_views = as_views
        self.hook: Callable[[Any, GradBucket], Any] | None = None
        self.hook_state: Any = None
        self.divisor = 0  # what an average divides by, if it is not the size of the group
        self.gradient: Callable[[Tensor], Tensor | None] = lambda p: p.grad
        self.keep: Callable[[Tensor, Tensor], None] = _keep
        self.settle: Callable[[], None] = lambda: None  # what came in part only
        self._of = {id(p): b for b in self.buckets for p in b.parameters}
        self._ready: set[int] = set()
        self._next = 0
        self._queued = False
        self._lock = threading.Lock()

    def begin(self) -> None:
        """A pass has begun: be called at its end."""
        with self._lock:
            if not self._queued:
                self._queued = True
                queue_callback(self._finish)

    def forget(self) -> bool:
        """Before a pass: give up one that ended with an error; whether there was one.

        The engine then calls nobody. What was sent is waited for, as the others have it too.
        """
        if not self._queued or running.get() is not None:
            return False
        try:
            for bucket in self.buckets:
                if bucket.work is not None:
                    bucket.work.wait()
        finally:
            self._reset()
        return True

    def _failed(self, words: str) -> GradientError:
        """An error after which the others' buckets and those of this process do not fit."""
        error = GradientError(f"[DistributedDataParallel] {words}")
        if self.group.members > 1:
            self.group.error = error
        return error

    def ready(self, parameter: Tensor) -> None:
        """A gradient is complete; called by hooks, on any thread of the pass."""
        self.begin()
        with self._lock:
            bucket = self._of[id(parameter)]
            if id(parameter) in self._ready:
                name = bucket.names[[id(p) for p in bucket.parameters].index(id(parameter))]
                self._reset()
                raise self._failed(
                    f"parameter {name!r} got a second gradient in one "
                    "backward pass, after the first was sent; a part of the module runs in a "
                    "nested pass (use_reentrant=True of checkpoint does that)"
                )
            self._ready.add(id(parameter))
            bucket.waiting -= 1
            while self._next < len(self.buckets) and not self.buckets[self._next].waiting:
                self._send(self.buckets[self._next])

    def _send(self, bucket: Bucket) -> None:
        """Begin to combine a bucket; the next one may follow."""
        self._next = bucket.index + 1
        with no_grad():
            buffer = self._filled(bucket)
        last = self._next == len(self.buckets)
        if self.hook is not None:
            bucket.work = self.hook(self.hook_state, GradBucket(bucket, buffer, last))
            return
        bucket.work = average(buffer, self.group, self.divisor, bucket.label)

    def _filled(self, bucket: Bucket) -> Tensor:
        """The gradients of a bucket as one flat tensor: where it lies, or a copy."""
        gradients = [self.gradient(p) if id(p) in self._ready else None for p in bucket.parameters]
        if len(gradients) == 1:
            own = gradients[0]
            if own is None:
                own = zeros(tuple(bucket.parameters[0].shape), dtype=bucket.parameters[0].dtype)
            return (own if own.is_contiguous() else own.contiguous()).detach().view(-1)
        for view, gradient in zip(bucket.views(), gradients, strict=True):
            if gradient is None:
                view.zero_()
            else:
                view.copy_(gradient)
        assert bucket.flat is not None
        return bucket.flat

    def _finish(self) -> None:
        """The end of the backward pass: send what is left, and wait for everything."""
        try:
            if self.allow_unused:
                self.settle()
            with self._lock:
                lacking = [
                    (name, p)
                    for b in self.buckets
                    for name, p in zip(b.names, b.parameters, strict=True)
                    if id(p) not in self._ready
                ]
                if lacking and not self.allow_unused:
                    names = ", ".join(repr(name) for name, _ in lacking[:5])
                    more = f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
                    raise self._failed(
                        f"no gradient came for {names}{more} in this backward pass, and the "
                        "other processes wait for it; use every parameter in the loss, or pass "
                        "find_unused_parameters=True"
                    )
                while self._next < len(self.buckets):
                    self._send(self.buckets[self._next])
                unused = self._unused_everywhere(lacking) if self.allow_unused else set()
                with no_grad():
                    for bucket in self.buckets:
                        self._receive(bucket, unused)
        finally:
            self._reset()

    def _unused_everywhere(self, lacking: list[tuple[str, Tensor]]) -> set[int]:
        """The parameters that no process has a gradient for; they keep what they have."""
        own = {id(p) for _, p in lacking}
        everyone = [p for b in self.buckets for p in b.parameters]
        used = zeros(len(everyone), dtype=None)
        for i, p in enumerate(everyone):
            used[i] = id(p) not in own
        functions.all_reduce(used, ReduceOp.MAX, self.group, label="which parameters were used")
        return {id(p) for p, is_used in zip(everyone, used.tolist(), strict=True) if not is_used}

    def _receive(self, bucket: Bucket, unused: set[int]) -> None:
        work = bucket.work
        outcome = work.result() if isinstance(work, Work) else work.wait()
        outcome = outcome[0] if isinstance(outcome, (list, tuple)) else outcome
        place = 0
        for p in bucket.parameters:
            part = outcome[place : place + p.numel()].view(p.shape)
            place += p.numel()
            if id(p) not in unused:
                if self.as_views and len(bucket.parameters) > 1:
                    p.grad = part
                else:
                    self.keep(p, part)

    def shadow(self) -> None:
        """Take part in a pass of the others, with nothing to give; see `join`."""
        with self._lock:
            self._ready.clear()
            for bucket in self.buckets:
                self._send(bucket)
            unused = set()
            if self.allow_unused:
                everyone = zip(*[(b.names, b.parameters) for b in self.buckets], strict=True)
                names, parameters = ([x for part in parts for x in part] for parts in everyone)
                unused = self._unused_everywhere(list(zip(names, parameters, strict=True)))
            with no_grad():
                for bucket in self.buckets:
                    self._receive(bucket, unused)
        self._reset()

    def _reset(self) -> None:
        self._queued = False
        self._next = 0
        self._ready.clear()
        for bucket in self.buckets:
            bucket.waiting = len(bucket.parameters)
            bucket.work = None


def _keep(parameter: Tensor, gradient: Tensor) -> None:
    """Give a parameter its gradient."""
    old = parameter.grad
    if old is None:
        parameter.grad = gradient.clone()
    elif old._array is not gradient._array and old.data_ptr() != gradient.data_ptr():
        old.detach().copy_(gradient)


def average(tensor: Tensor, group: ProcessGroup, divisor: int, label: str) -> Any:
    """Begin to average a tensor over the group; with a divisor, it divides a sum.

    Halves are divided first: the sum of gradients may be more than float16 has.
    """
    if tensor.element_size() < 4:
        with no_grad():
            tensor.div_(divisor or group.members)
        return functions.all_reduce(tensor, ReduceOp.SUM, group, True, label=label)
    return functions.all_reduce(tensor, ReduceOp.AVG, group, True, label=label, count=divisor)
