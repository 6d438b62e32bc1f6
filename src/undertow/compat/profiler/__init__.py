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
    """Whether torch's own tracer is here, which it is not."""
    return False
