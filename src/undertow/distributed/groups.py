"""Groups of processes: how the first one is made, and what each of them knows."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent import futures
from datetime import timedelta
from typing import Any

import numpy as np

from .. import nn
from ..errors import ArgumentError, DistributedError, UnsupportedError
from . import protocol, wire, work
from .messages import What
from .watch import ADDRESS, Watch, install_hook, told
from .work import Carrier, Steps, Work

TIMEOUT = 300.0  # seconds
_MOST_GROUPS = 1 << 10
_TAGS = 1 << 18  # of a group; see `What.tags`
HELPERS = 3  # of each group: for checkpoints, gradients in pieces, and batch norm


class ProcessGroup:
    """Some of the processes, in an order of their own."""

    def __init__(
        self,
        number: int,
        ranks: Sequence[int],
        world: Any,
        carrier: Carrier,
        heard: Watch | None,
        timeout: float,
        backend: str,
        description: str = "",
    ) -> None:
        self.number = number
        self.ranks = tuple(ranks)
        self.wire = world
        self.carrier = carrier
        self.watch = heard
        self.timeout = timeout
        self.backend = backend
        self.group_desc = description
        self.group_name = str(number)
        self.members = len(self.ranks)
        self.me = self.ranks.index(world.rank) if world.rank in self.ranks else -1
        self.closed = False
        self.error: BaseException | None = None
        self.turn = threading.Lock()
        self.count = 0  # of collectives
        self.sends = 0
        self._lock = threading.Lock()
        self._scratch = np.empty(0, np.uint8)

    def rank(self) -> int:
        """The number of this process in the group."""
        return self.me

    def size(self) -> int:
        """How many processes it has."""
        return self.members

    def name(self) -> str:
        """The name of the backend."""
        return self.backend

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.number} of ranks {list(self.ranks)}>"

    def scratch(self, size: int) -> Any:
        """Memory for the operation whose turn it is."""
        if self._scratch.size < size:
            self._scratch = np.empty(size, np.uint8)
        return self._scratch[:size]

    def begin(
        self, kind: str, steps: Callable[[What], Steps], async_op: bool, **details: Any
    ) -> Work | None:
        """Run an operation, or leave it to the carrier; `steps` gets to know what it is.

        Collectives have a number, and run one after the other. Messages do not, but begin in order.
        """
        alone = kind == "send"
        with self._lock:
            if self.error is not None:
                raise DistributedError(
                    f"[{details.get('name') or kind}] the group cannot be used after an error: "
                    f"{self.error}"
                ) from self.error
            if not alone:
                self.count += 1
            what = What(self, kind, 0 if alone else self.count, **details)
            made = Work(self, steps(what), what, self.timeout)
            inline = not async_op and not self.carrier.has(self, alone)
            inline = inline and (alone or self.turn.acquire(blocking=False))
            if not inline:
                self.carrier.submit(made, not alone)
        if inline:
            try:
                work.run(made, self.members <= _processors())
            finally:
                if not alone:
                    self.turn.release()
        elif not async_op:
            made.wait()
        return made if async_op else None

    def next_send(self) -> int:
        """The number of the next message from this process."""
        with self._lock:
            self.sends += 1
            return self.sends


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class NotMember(ArgumentError):
    """This process is not in the group that was given."""


class _NonMember:
    """What `new_group` gives to a process that is not in the group; None would mean all."""

    def __repr__(self) -> str:
        return "GroupMember.NON_GROUP_MEMBER"

    def __reduce__(self) -> str:
        return "NON_MEMBER"


NON_MEMBER = _NonMember()


class _State:
    """What this process knows of the others."""

    world: ProcessGroup | None = None
    groups: dict[int, ProcessGroup]
    watch: Watch | None = None
    server: protocol.Server | None = None
    carrier: Carrier
    store: Any = None
    saves: set[futures.Future[None]]  # of checkpoints, under way


state = _State()
state.groups = {}
state.saves = set()


def start(
    backend: str | None, timeout: Any, world_size: int, rank: int, store: Any = None
) -> ProcessGroup:
    """Make the group of all processes."""
    if state.world is not None:
        raise ArgumentError("[init_process_group] there is a group already")
    by_mpi = wire.started_by_mpi()
    size = world_size if world_size != -1 else int(os.environ.get("WORLD_SIZE", "-1"))
    number = rank if rank != -1 else int(os.environ.get("RANK", "-1"))
    if size == -1:
        size = by_mpi[1] if by_mpi else 1
    world: Any = wire.Alone()
    if size != 1:
        if by_mpi is None:
            raise UnsupportedError(
                f"[init_process_group] world_size is {size}, and MPI has not started this process; "
                f"start the program with `undertow run -n {size} script.py`, or with mpiexec"
            )
        _announce(by_mpi[0])
        world = wire.wire()
        if (size, number if number != -1 else world.rank) != (world.size, world.rank):
            raise ArgumentError(
                f"[init_process_group] world_size is {size} and rank {number}, but MPI has started "
                f"{world.size} processes, of which this is {world.rank}"
            )
        if not most_groups(world):
            raise UnsupportedError(
                f"[init_process_group] this MPI has tags up to {world.most_tags}, and "
                f"{(1 + HELPERS) * _TAGS - 1} are needed; use another, such as the wheel mpich"
            )
        _attend(world)
    limit = work.seconds(timeout) or TIMEOUT
    state.carrier = Carrier()
    ranks = range(world.size)
    name = (backend or "gloo").lower()
    made = ProcessGroup(0, ranks, world, state.carrier, state.watch, limit, name, "default_pg")
    state.world = state.groups[0] = made
    if world.size > 1:
        from .batch_norm import batch_norm  # it needs groups itself

        nn.SyncBatchNorm.over_processes = staticmethod(batch_norm)
    state.store = store
    return made


def _announce(rank: int) -> None:
    """Tell the launcher that this process waits for all others, inside MPI."""
    place = os.environ.get(ADDRESS)
    if place is not None and wire.joined() is None:
        launcher = protocol.Client(*protocol.parsed(place))
        launcher.ask(b"report", b"joins", str(rank).encode(), b"")
        launcher.close()


def _attend(world: wire.Wire) -> None:
    """Connect to the server that knows who fails: the launcher's, or one of rank 0."""
    if state.watch is not None:
        return
    place = os.environ.get(ADDRESS)
    if place is None:
        if world.rank == 0:
            state.server = protocol.Server()
            place = f"{protocol.address()}:{state.server.port}"
        place = _told_by_first(world, place)
    state.watch = Watch(*protocol.parsed(place), world.rank)
    install_hook(state.watch)
    atexit.register(_leave, world, state.watch)


def _told_by_first(world: wire.Wire, place: str | None) -> str:
    """A line of rank 0's, before there are groups."""
    line = np.zeros(256, np.uint8)
    if place is not None:
        line[: len(place)] = np.frombuffer(place.encode(), np.uint8)
        requests = [world.isend(line, peer, 3) for peer in range(1, world.size)]
    else:
        requests = [world.irecv(line, 0, 3)]
    deadline = time.monotonic() + TIMEOUT
    while not world.done(requests):
        if time.monotonic() > deadline:
            raise DistributedError(
                f"[init_process_group] rank {world.rank} has not met the others in {TIMEOUT:g} s"
            )
        time.sleep(work.PAUSE)
    return line.tobytes().rstrip(b"\0").decode()


def _leave(world: wire.Wire, heard: Watch) -> None:
    """Leave MPI together, at the end of the program: only if all are there, since MPI would wait.

    Who waits here is woken by the last one that leaves, or by the first that fails.
    """
    if heard.failed:
        return
    heard.leave()
    while heard.failure is None and len(heard.left) < world.size - 1:
        time.sleep(0.005)
    state.carrier.close()  # MPI cannot be left while somebody asks it
    if heard.failure is None:
        world.finish()


def stop(group: ProcessGroup | None) -> None:
    """Forget a group, or all, when nothing is saved with them any more."""
    futures.wait(list(state.saves))
    for one in state.groups.values() if group in (None, state.world) else (group,):
        one.closed = True
    if group is None or group is state.world:
        state.groups.clear()
        state.world = None
        nn.SyncBatchNorm.over_processes = None
        state.carrier.close()
        state.store = None
    else:
        state.groups.pop(group.number, None)
        for kind in range(HELPERS):
            served = state.groups.pop(_helper_number(group, kind), None)
            if served is not None:
                served.closed = True


def alone() -> ProcessGroup:
    """A group of this process only, when nobody has made one."""
    return ProcessGroup(0, [0], wire.Alone(), Carrier(), None, TIMEOUT, "gloo")


def most_groups(world: Any) -> int:
    """How many groups there can be, each with its helpers, for the tags that MPI has.

    Helpers have the numbers above.
    """
    return min(_MOST_GROUPS, (world.most_tags + 1) // ((1 + HELPERS) * _TAGS))


def _helper_number(group: ProcessGroup, kind: int) -> int:
    return (1 + kind) * most_groups(group.wire) + group.number


def helper(group: ProcessGroup, about: str, kind: int = 0) -> ProcessGroup:
    """A group of the same processes, made by them alone: nothing is mixed up with theirs."""
    number = _helper_number(group, kind)
    if number not in state.groups:
        state.groups[number] = ProcessGroup(
            *(number, group.ranks, group.wire, group.carrier, group.watch, group.timeout),
            *(group.backend, about),
        )
    return state.groups[number]


def make(ranks: Sequence[int] | None, timeout: Any, backend: str | None, about: str) -> Any:
    """A further group; `NON_MEMBER` to those who are not in it."""
    world = resolved("new_group", None)
    members = tuple(range(world.members)) if ranks is None else tuple(ranks)
    if len(set(members)) != len(members) or not all(0 <= r < world.members for r in members):
        raise ArgumentError(
            f"[new_group] ranks are different numbers below {world.members}, got {list(members)}"
        )
    number = max(_made) + 1
    _made.append(number)
    most = most_groups(world.wire)
    if number >= most:
        raise UnsupportedError(f"[new_group] there can be {most} groups in a program")
    limit = work.seconds(timeout) or world.timeout
    made = ProcessGroup(
        *(number, sorted(members), world.wire, state.carrier, state.watch, limit),
        *(backend or world.backend, about),
    )
    if made.me < 0:
        return NON_MEMBER
    state.groups[number] = made
    return made


_made = [0]  # numbers of groups that there are or were, the same everywhere


def resolved(name: str, group: Any) -> ProcessGroup:
    """The group that is meant, if there is one."""
    if isinstance(group, ProcessGroup) and not group.closed:
        return group
    if state.world is None:
        raise ArgumentError(
            f"[{name}] there is no process group; call init_process_group first, or ask "
            "is_initialized()"
        )
    if group is None:
        return state.world
    if group is NON_MEMBER:
        raise NotMember(f"[{name}] this process is not in the group")
    if isinstance(group, ProcessGroup):
        raise ArgumentError(f"[{name}] this group has been destroyed: {group}")
    raise ArgumentError(f"[{name}] expects a process group, got {group!r}")


def default_timeout() -> timedelta:
    """How long a collective waits unless it is told otherwise."""
    return timedelta(seconds=TIMEOUT)


def failure() -> str:
    """What was heard of the others' failures; empty if nothing was."""
    heard = state.watch
    return told(heard.failure) if heard is not None and heard.failure is not None else ""
