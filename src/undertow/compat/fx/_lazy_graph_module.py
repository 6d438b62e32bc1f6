"""Graph modules that are compiled at once: the names of those that wait are here to be asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .graph_module import GraphModule


class _LazyGraphModule(GraphModule):
    """No module is one."""

    @staticmethod
    def force_recompile(gm: Any) -> None:
        """Nothing: every module is compiled."""


def _make_graph_module(*args: Any, graph_module_cls: Any = None, **kwargs: Any) -> GraphModule:
    """A graph module."""
    made: GraphModule = (graph_module_cls or GraphModule)(*args, **kwargs)
    return made


@contextmanager
def _use_lazy_graph_module(should_use: bool) -> Iterator[None]:
    """Nothing changes."""
    yield
