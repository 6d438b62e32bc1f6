"""`profile`: when to record, and what to do with it, with torch's interface."""

from __future__ import annotations

import enum
import json
import os
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ContextDecorator
from threading import Lock, get_ident
from time import perf_counter_ns as clock
from typing import Any

from ...errors import ArgumentError
from .chrome import memory_timeline, write_page, write_stacks, write_text, write_trace
from .events import KINDS, EventList, tree
from .recorder import Recorder, Wanted

_lock = Lock()
_running: list[Recorder] = []  # at most one


class ProfilerActivity(enum.Enum):
    """What a profiler watches; here everything that runs is seen from the CPU.

    >>> import undertow as ut
    >>> with ut.profiler.profile(activities=[ut.profiler.ProfilerActivity.CPU]) as p:
    ...     _ = ut.ones(3).exp()
    >>> "exp" in {row.key for row in p.key_averages()}
    True
    """

    CPU = 0
    XPU = 1
    CUDA = 2
    MTIA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What a profiler does in a step.

    >>> import undertow as ut
    >>> plan = ut.profiler.schedule(wait=1, warmup=0, active=1)
    >>> plan(0), plan(1) is ut.profiler.ProfilerAction.RECORD_AND_SAVE
    (<ProfilerAction.NONE: 0>, True)
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """When to record: skip the first steps, then wait, warm up, record, again and again.

    >>> import undertow as ut
    >>> plan = ut.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    given = (wait, warmup, active, repeat, skip_first, skip_first_wait)
    if min(given) < 0 or active < 1:
        raise ArgumentError(
            "[schedule] takes numbers of steps, none negative and active at least 1, got "
            f"wait={wait}, warmup={warmup}, active={active}, repeat={repeat}, "
            f"skip_first={skip_first}"
        )

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise ArgumentError(f"[schedule] steps are counted from 0, got {step}")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:  # the first cycle does not wait
            step += wait
        length = wait + warmup + active
        if repeat and step >= length * repeat:
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def supported_activities() -> set[ProfilerActivity]:
    """What can be watched.

    >>> import undertow as ut
    >>> ut.profiler.supported_activities()
    {<ProfilerActivity.CPU: 0>}
    """
    return {ProfilerActivity.CPU}


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """For `on_trace_ready`: write each trace into a folder, under a name of its own.

    >>> import undertow as ut
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write = ut.profiler.tensorboard_trace_handler(folder, "laptop")
    ...     with ut.profiler.profile(on_trace_ready=write):
    ...         _ = ut.ones(3).exp()
    ...     [name.startswith("laptop.") for name in os.listdir(folder)]
    [True]
    """
    worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"

    def handler(prof: profile) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise ArgumentError(
                f"[tensorboard_trace_handler] cannot make the folder {dir_name!r}: {error.strerror}"
            ) from error
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handler


class record_function(ContextDecorator):
    """A block or function with a name, which a profiler shows.

    >>> import undertow as ut
    >>> with ut.profiler.profile() as prof:
    ...     with ut.profiler.record_function("my block"):
    ...         y = ut.ones(2) * 2
    >>> [e.count for e in prof.key_averages() if e.key == "my block"]
    [1]
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._begun: list[int] = []

    def _recreate_cm(self) -> record_function:
        return record_function(self.name, self.args)

    def __enter__(self) -> record_function:
        self._begun.append(clock() if _running else -1)
        return self

    def __exit__(self, *exc: object) -> None:
        begin = self._begun.pop()
        if _running and begin >= 0:
            _running[0].events.append(("mark", self.name, begin, clock(), get_ident()))


class profile:
    """Record what runs inside, and tell where the time went.

    >>> import undertow as ut
    >>> x = ut.ones(3, 3)
    >>> with ut.profiler.profile(record_shapes=True) as prof:
    ...     y = (x @ x).relu()
    >>> [(e.key, e.input_shapes) for e in prof.key_averages(group_by_input_shape=True)]
    [('matmul', [(3, 3), (3, 3)]), ('relu', [(3, 3)])]

    `schedule` tells in which steps to record, which `step()` counts; `on_trace_ready(prof)` is
    called after each of its cycles. See docs/profiling.md.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        for activity in activities or ():
            if not isinstance(activity, ProfilerActivity):
                raise ArgumentError(
                    f"[profile] activities are of ProfilerActivity, got {activity!r}"
                )
        self.activities = set(activities or supported_activities())
        self.schedule = schedule
        self.on_trace_ready = on_trace_ready
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.acc_events = acc_events
        self.step_num = 0
        self._wanted = Wanted(record_shapes, profile_memory, with_stack, with_flops, with_modules)
        self._recorder: Recorder | None = None  # the one that is on
        self._done: list[Recorder] = []
        self._action = ProfilerAction.NONE
        self._started = False
        self._step_began = 0
        self._metadata: dict[str, Any] = {}

    # When -----------------------------------------------------------------------------------------
    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin; a `with` does that."""
        self._turn(self._planned())
        self._started = True

    def stop(self) -> None:
        """End; what was recorded stays."""
        self._started = False
        ready = self._action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        self._mark_step()
        self._turn(ProfilerAction.NONE)
        if ready and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self) -> None:
        """Tell that the next step of the program begins."""
        if not self._started:
            raise ArgumentError(
                "[profile] step() is for between start() and stop(), or in a `with`"
            )
        before = self._action
        self._mark_step()
        self.step_num += 1
        action = self._planned()
        if before is ProfilerAction.RECORD_AND_SAVE:
            self._turn(ProfilerAction.NONE)
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        self._turn(action)

    def _planned(self) -> ProfilerAction:
        if self.schedule is None:
            return ProfilerAction.RECORD
        action = self.schedule(self.step_num)
        if not isinstance(action, ProfilerAction):
            raise ArgumentError(f"[profile] a schedule gives a ProfilerAction, got {action!r}")
        return action

    def _mark_step(self) -> None:
        if self._recorder is not None and (self.schedule is not None or self.step_num):
            name = f"ProfilerStep#{self.step_num}"
            event = ("step", name, self._step_began, clock(), get_ident())
            self._recorder.events.append(event)

    def _turn(self, action: ProfilerAction) -> None:
        """From what was done before to this."""
        before, self._action = self._action, action
        if action is ProfilerAction.NONE:
            if self._recorder is not None:
                self._end(keep=before is not ProfilerAction.WARMUP)
            return
        if self._recorder is None:
            self._begin()
        assert self._recorder is not None
        if action is not ProfilerAction.WARMUP and before is ProfilerAction.WARMUP:
            self._recorder.clear()
        self._step_began = clock()

    def _begin(self) -> None:
        with _lock:
            if _running:
                raise ArgumentError(
                    "[profile] a profiler is on already; only one can be at a time. Mark the inner "
                    "part with record_function instead"
                )
            self._recorder = Recorder(self._wanted)
            _running.append(self._recorder)
        try:
            self._recorder.start()
        except BaseException:
            self._recorder = None
            _running.clear()
            raise

    def _end(self, keep: bool) -> None:
        recorder, self._recorder = self._recorder, None
        assert recorder is not None
        with _lock:
            _running.clear()
        recorder.stop()
        if keep:
            self._done = [*self._done, recorder] if self.acc_events else [recorder]

    # What was recorded ------------------------------------------------------------------------
    def _recorded(self, what: str) -> Recorder:
        if not self._done:
            raise ArgumentError(
                f"[{what}] nothing was recorded yet; ask after the `with` block, or in "
                "on_trace_ready"
            )
        return self._done[-1]

    def events(self, kinds: Sequence[str] | None = None) -> EventList:
        """All events, or those of some kinds, in the order in which they began.

        Kinds are op, backward, form, launch, kernel, module, optimizer, mark and step.
        """
        self._recorded("events")
        found = [tree(recorder, kinds) for recorder in self._done]
        return EventList([e for events in found for e in events], self._done[-1])

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        *,
        kinds: Sequence[str] = KINDS,
    ) -> EventList:
        """What events of one name have in common: `key_averages().table(sort_by="cpu_time_total")`.

        `kinds=["launch"]` shows the launches of kernels with their bytes and operations,
        `kinds=["form"]` what backends were asked for.
        """
        return self.events(kinds).key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def memory_at_peak(self) -> dict[str, int]:
        """Bytes that were held when most were, by what had taken them; the largest first."""
        recorder = self._recorded("memory_at_peak")
        if not recorder.changes:
            raise ArgumentError("[memory_at_peak] memory was not watched: profile_memory=True")
        return recorder.peak()

    def memory_timeline(self) -> list[tuple[float, int]]:
        """Microseconds since the beginning, and bytes that were held from then on."""
        return memory_timeline(self._recorded("memory_timeline"))

    def thread_times(self) -> dict[str, tuple[float, float]]:
        """By thread, seconds on a processor and seconds of waiting for one; empty but on Linux."""
        return dict(self._recorded("thread_times").busy)

    def add_metadata(self, key: str, value: str) -> None:
        """A text that the trace file keeps."""
        self._metadata[key] = str(value)

    def add_metadata_json(self, key: str, value: str) -> None:
        """The same, of JSON."""
        self._metadata[key] = json.loads(value)

    # Files --------------------------------------------------------------------------------------
    def export_chrome_trace(self, path: str) -> None:
        """Write a trace that Perfetto and chrome://tracing show; compressed if it ends in .gz."""
        recorder = self._recorded("export_chrome_trace")
        write_trace(path, tree(recorder), recorder, self._metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks and microseconds as flame graphs want them; needs with_stack=True."""
        if not self.with_stack:
            raise ArgumentError(
                "[export_stacks] stacks were not recorded: profile(with_stack=True)"
            )
        write_stacks(path, self.events(KINDS), metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Write times and bytes as JSON."""
        if not self.profile_memory:
            raise ArgumentError(
                "[export_memory_timeline] memory was not watched: profile_memory=True"
            )
        times, sizes = zip(*self.memory_timeline(), strict=True)
        write_text(path, json.dumps([times, sizes]), "export_memory_timeline")

    def export_html(self, path: str, table: str | None = None) -> None:
        """Write one page with a flame chart to zoom into; it needs nothing besides."""
        recorder = self._recorded("export_html")
        if table is None:
            table = self.key_averages().table(sort_by="self_cpu_time_total", row_limit=60)
        write_page(path, tree(recorder), recorder, table)
