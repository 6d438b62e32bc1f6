"""`torch._dynamo`: the compiler of functions, which is not here: nothing is ever compiling.

Marks and switches leave everything as it is, which is what they do in torch without `compile`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..compiler import allow_in_graph, disable, is_compiling, reset
from . import config, eval_frame, exc, utils
from .eval_frame import OptimizedModule

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "error_on_graph_break",
    "eval_frame",
    "exc",
    "explain",
    "export",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "is_dynamo_supported",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "nonstrict_trace",
    "optimize",
    "reset",
    "reset_frame_count",
    "run",
    "set_recursion_limit",
    "utils",
]

assume_constant_result = disallow_in_graph = forbid_in_graph = nonstrict_trace = allow_in_graph
run = eval_frame.innermost_fn = allow_in_graph
is_dynamo_supported = eval_frame.is_dynamo_supported
reset_frame_count = reset


def graph_break(msg: str = "") -> None:
    """End a graph that is being compiled: there is none."""


def mark_dynamic(t: Any, index: Any, **bounds: Any) -> None:
    """Say that a size varies: nothing is compiled for a size.

    >>> import undertow as ut
    >>> ut._dynamo.mark_dynamic(ut.ones(2, 3), 0)
    """


mark_static = maybe_mark_dynamic = mark_unbacked = decorate_unbacked = mark_dynamic


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Say that a tensor stays where it is: nothing is compiled for an address."""


def error_on_graph_break(error_on_graph_break: bool) -> AbstractContextManager[None]:
    """A block in which graphs would have to be whole: there are none."""
    return nullcontext()


def set_recursion_limit(limit: int) -> None:
    """Nothing: no frames are looked at."""


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """The compilers that there are: none."""
    return []


def optimize(*args: Any, **kwargs: Any) -> Any:
    """What `ut.compile` gives: the function itself."""
    return allow_in_graph


def explain(f: Any, *args: Any, **kwargs: Any) -> Any:
    """An error: there are no graphs to explain."""
    raise exc.Unsupported("[_dynamo.explain] nothing is compiled here, so there is no graph")


def export(f: Any, *args: Any, **kwargs: Any) -> Any:
    """An error: there are no graphs to export."""
    raise exc.Unsupported("[_dynamo.export] nothing is compiled here; see undertow.export")
