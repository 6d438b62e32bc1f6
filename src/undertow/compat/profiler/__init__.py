"""`undertow.profiler`, which stands in `utils/profiler`, under torch's name."""

from __future__ import annotations

from ...utils.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


def kineto_available() -> bool:
    """Whether torch's own tracer is here, which it is not.

    >>> import undertow as ut
    >>> ut.profiler.kineto_available()  # traces are written all the same: export_chrome_trace
    False
    """
    return False
