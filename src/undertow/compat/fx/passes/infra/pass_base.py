"""`PassBase`: a pass as an object that is called with a graph module."""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

from ...graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """The module that a pass made or changed, and whether it changed anything."""

    graph_module: GraphModule
    modified: bool


class PassBase(abc.ABC):
    """A pass: `call` does it, `requires` and `ensures` check before and behind it."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """Do it."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raise if the pass cannot work on this module."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raise if the pass did not do what it promises."""


def named(fn: Any) -> str:
    """The name of a pass, for messages."""
    return getattr(fn, "__name__", type(fn).__name__)
