"""`undertow.autograd.profiler`: the older interface of the profiler."""

from __future__ import annotations

from typing import Any

from ...errors import ArgumentError
from ...utils.profiler import profile as _profile
from ...utils.profiler import record_function
from ...utils.profiler.events import EventList, FunctionEvent

__all__ = ["EventList", "FunctionEvent", "profile", "record_function"]


class profile(_profile):
    """`ut.profiler.profile` with older arguments: `enabled`, no schedule, results as properties.

    >>> import undertow as ut
    >>> with ut.autograd.profiler.profile() as prof:
    ...     y = ut.ones(2).exp()
    >>> [e.name for e in prof.function_events if e.kind == "op"]
    ['ones', 'exp']
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Any = None,
    ) -> None:
        super().__init__(
            record_shapes=record_shapes,
            with_flops=with_flops,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_modules=with_modules,
            acc_events=acc_events,
        )
        self.enabled = enabled

    def start(self) -> None:
        if self.enabled:
            super().start()

    def stop(self) -> None:
        if self.enabled:
            super().stop()

    @property
    def function_events(self) -> EventList:
        """All events."""
        return self.events()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events, each without what happened inside of it."""
        return self.events().self_cpu_time_total

    def total_average(self) -> Any:
        """All events together."""
        return self.events().total_average()

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """All events as a table."""
        if not self.enabled:
            raise ArgumentError("[table] the profiler was not enabled")
        return self.events().table(sort_by, row_limit, **options)
