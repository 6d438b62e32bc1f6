"""Checkpointing: save a function's arguments, and compute its inside again in the backward.

Note [checkpoint]
The function runs as usual, recorded in the usual graph, but what its operations save is replaced
by numbered tickets. The first backward that needs one of them runs the function again and collects
what it saves this time: ticket i gets the i-th tensor. So gradients flow through everything that
the function touches (arguments, keyword arguments, captured tensors), to any order, and each
checkpoint is computed again once per backward, however many are chained.

A checkpoint inside another one saves its arguments through the outer one's tickets, so they are
not kept either; the function at depth d is computed d times more, not 2^d.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from ..backends.batch import frames_of, reframed
from ..backends.dual import level_at
from ..backends.locks import Lock
from ..core.generator import default_generator, replaying
from ..core.modes import current, enter, leave
from ..core.tensor import Tensor, node_of, share, wrap_shared
from ..errors import ArgumentError, DTypeError, GradientError, UnsupportedError, VersionError
from .function import Saved
from .graph import saved_tensors_hooks
from .stacks import worker

_early_stop: ContextVar[bool | None] = ContextVar("undertow_early_stop", default=None)


class CheckpointError(GradientError):
    """The function did something else when it was computed again.

    >>> import undertow as ut
    >>> from undertow.autograd import checkpoint
    >>> x, steps = ut.tensor([2.0], requires_grad=True), iter([1, 2])
    >>> y = checkpoint(lambda x: x.sin() if next(steps) == 1 else x * 2, x)
    >>> try:
    ...     y.sum().backward()
    ... except ut.autograd.CheckpointError:
    ...     print("the second run did something else")
    the second run did something else
    """


class _Enough(BaseException):
    """Stops the second run once everything has been collected; no `except Exception` sees it."""


class _Ticket:
    """What a node saves instead of a tensor."""

    __slots__ = ("counter", "frames", "level", "meta", "number", "version")

    def __init__(self, number: int, t: Tensor) -> None:
        self.number = number
        self.meta = (t.shape, t.dtype, t.device)
        self.frames = frames_of(t._array)
        self.level = level_at(t._array)
        # A tensor from outside (a weight) is the same memory in both runs: its version tells if
        # it was changed in between. One made inside has a counter of its own in each run.
        self.counter = share(t).version
        self.version = t._version

    def of_first_run(self, t: Tensor) -> Tensor:
        """A tensor of the second run as one of the first: a `vmap` inside of it ran twice."""
        array = reframed(t._array, self.frames)
        return t if array is t._array else wrap_shared(array, share(t))


class _Frame:
    """One checkpointed call."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        preserve_rng_state: bool,
        context: AbstractContextManager[Any],
        early_stop: bool,
    ) -> None:
        self.function = function
        self.args = _mapped(args, _keep)
        self.kwargs = _mapped(kwargs, _keep)
        self.rng = default_generator.place() if preserve_rng_state else None
        self.autocast = current().autocast  # which is off in a backward
        self.context = context
        self.early_stop = early_stop
        self.completed = False  # the first run
        self.tickets: list[_Ticket] = []
        self.values: dict[int, Tensor] = {}  # collected, waiting to be fetched
        self.lock = Lock()  # two workers may ask at once
        self.holder: int | None = None  # who has it; see `stacks.worker`

    def pack(self, t: Tensor) -> _Ticket:
        """First run: a ticket for the tensor."""
        ticket = _Ticket(len(self.tickets), t)
        self.tickets.append(ticket)
        return ticket

    def unpack(self, ticket: _Ticket) -> Tensor:
        """Backward: the tensor, computed again if it is not there."""
        me = worker()
        if self.holder == me:  # inside the second run, perhaps on another stack
            return self.take(ticket)
        with self.lock:
            self.holder = me
            try:
                return self.take(ticket)
            finally:
                self.holder = None

    def take(self, ticket: _Ticket) -> Tensor:
        """The tensor for a ticket; the lock is held."""
        if ticket.number not in self.values:
            self.compute_again()
        return self.values.pop(ticket.number)

    def compute_again(self) -> None:
        """Run the function again and keep what it saves."""
        self.values.clear()
        # A gradient inside the function asks before the first run has ended: what has been saved
        # so far is then all that there is to compute.
        stop = self.early_stop or not self.completed
        wanted = len(self.tickets)
        enough = _Enough()
        found = 0

        def collect(t: Tensor) -> Tensor:
            nonlocal found
            if found < wanted:
                self.check(self.tickets[found], t)
                self.values[found] = self.tickets[found].of_first_run(t)
            found += 1
            if found == wanted and stop:
                raise enough
            return t

        args, kwargs = _mapped(self.args, _fetch), _mapped(self.kwargs, _fetch)
        token = enter(
            current().but(
                grad=True,
                inference=False,
                pack=collect,
                unpack=lambda kept: kept,
                autocast=self.autocast,
            )
        )
        try:
            with replaying(self.rng), self.context:
                self.function(*args, **kwargs)
        except _Enough as end:
            if end is not enough:
                raise
            end.__traceback__ = None  # it holds this call, and so the arguments
        finally:
            leave(token)
        if found != wanted:
            self.values.clear()
            raise CheckpointError(
                f"[checkpoint] the function saved {wanted} tensors in the forward but {found} when "
                "it was computed again; it must do the same both times"
            )

    def check(self, ticket: _Ticket, t: Tensor) -> None:
        """Raise unless `t` can stand where the tensor of the first run stood."""
        level = ticket.level
        if level is not None and level.alive and level_at(t._array) is not level:
            raise UnsupportedError(
                "[checkpoint] a gradient inside of the function is taken in forward mode, and the "
                "second run has other tangents; checkpoint what is inside of the transform"
            )
        meta = (t.shape, t.dtype, t.device)
        sizes, again = ([f.size for f in fs] for fs in (ticket.frames, frames_of(t._array)))
        if meta != ticket.meta or sizes != again:
            raise CheckpointError(
                f"[checkpoint] saved tensor {ticket.number} had (shape, dtype, device) "
                f"{ticket.meta} in the forward but {meta} when the function was computed again; "
                "it must do the same both times"
            )
        if share(t).version is ticket.counter and t._version != ticket.version:
            raise VersionError(
                f"[checkpoint] a tensor of shape {t.shape} that the function uses, at version "
                f"{ticket.version} in the forward, is now at version {t._version}: it was changed "
                "in place before the backward; clone it before the in-place operation"
            )


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Say for every `checkpoint` called in this block whether it stops early, whatever it is told.

    A second run that stops early ends as soon as it has what the backward needs.

    >>> import undertow as ut
    >>> from undertow.utils.checkpoint import checkpoint, set_checkpoint_early_stop
    >>> x = ut.tensor([1.0, 2.0], requires_grad=True)
    >>> with set_checkpoint_early_stop(False):
    ...     y = checkpoint(lambda x: x * x, x)
    >>> y.sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """
    token = _early_stop.set(bool(enable))
    try:
        yield
    finally:
        _early_stop.reset(token)


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Accepted: every error of a `checkpoint` tells what differed, debugging or not.

    >>> from undertow.utils.checkpoint import set_checkpoint_debug_enabled
    >>> with set_checkpoint_debug_enabled(True):
    ...     pass
    """
    yield


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """`value` with its tensors changed, also inside tuples, lists and dicts."""
    if isinstance(value, (Tensor, Saved)):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(_mapped(v, change) for v in value)
    if type(value) is dict:
        return {k: _mapped(v, change) for k, v in value.items()}
    return value


def _keep(t: Tensor) -> Saved:
    return Saved("checkpoint", t, node_of(t), t._index, False)


def _fetch(saved: Saved) -> Tensor:
    return saved.get("an argument of the function")


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] | None = None,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`, whose inside is computed again in the backward, not kept.

    Any arguments and results; tensors that the function captures get gradients too; the random
    numbers are the same in both runs; the result can be differentiated to any order. A function
    that does something else the second time is an error where that can be seen.

    `use_reentrant` is accepted for torch's sake: there is one way, which has the properties of
    torch's `use_reentrant=False`. `context_fn` gives two context managers, for the first and the
    second run (see `create_selective_checkpoint_contexts`). `early_stop` ends the second run when
    nothing more is needed.

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0], requires_grad=True)
    >>> y = ut.autograd.checkpoint(lambda x, power: x**power, x, power=3)
    >>> y.sum().backward()
    >>> x.grad
    tensor([ 3., 12.])
    """
    if not callable(function):
        raise DTypeError(f"[checkpoint] takes a function, got {type(function).__name__}")
    if determinism_check not in ("default", "none"):
        raise ArgumentError(
            f"[checkpoint] determinism_check is 'default' or 'none', got {determinism_check!r}"
        )
    first, second = context_fn() if context_fn is not None else (nullcontext(), nullcontext())
    if not current().grad:
        with first:
            return function(*args, **kwargs)
    stop = _early_stop.get()
    if stop is None:
        stop = early_stop
    frame = _Frame(function, args, kwargs, preserve_rng_state, second, stop)
    with saved_tensors_hooks(frame.pack, frame.unpack), first:
        result = function(*args, **kwargs)
        frame.completed = True
    if not frame.completed:
        raise GradientError(
            "[checkpoint] a context of context_fn suppressed an error of the function, so there is "
            "no result; let errors pass"
        )
    return result


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
) -> Any:
    """Functions one after the other, in `segments` checkpoints (the last part is kept as usual).

    >>> import undertow as ut
    >>> x = ut.tensor([1.0], requires_grad=True)
    >>> y = ut.autograd.checkpoint_sequential([lambda x: x * 2] * 4, 2, x)
    >>> y.backward()
    >>> x.grad
    tensor([16.])
    """
    steps: Sequence[Callable[..., Any]] = (
        list(functions.children()) if hasattr(functions, "children") else list(functions)
    )
    if not 1 <= segments <= max(len(steps), 1):
        raise ArgumentError(
            f"[checkpoint_sequential] segments must be between 1 and the {len(steps)} functions, "
            f"got {segments!r}"
        )

    def part(start: int, stop: int) -> Callable[..., Any]:
        def run(value: Any) -> Any:
            for step in steps[start:stop]:
                value = step(value)
            return value

        return run

    size = len(steps) // segments
    for i in range(segments - 1):
        input = checkpoint(
            part(i * size, (i + 1) * size), input, preserve_rng_state=preserve_rng_state
        )
    return part((segments - 1) * size, len(steps))(input)
