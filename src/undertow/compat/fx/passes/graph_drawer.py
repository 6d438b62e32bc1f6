"""Pictures of graphs: they need Graphviz, and are refused."""

from __future__ import annotations

from typing import Any

from ....errors import UnsupportedError

__all__ = ["FxGraphDrawer"]


class FxGraphDrawer:
    """Refuses: nothing here draws."""

    def __init__(self, graph_module: Any, name: str, *args: Any, **kwargs: Any) -> None:
        raise UnsupportedError(
            "[FxGraphDrawer] draws with pydot and Graphviz, which Undertow does not use; "
            "print(graph_module.graph) or graph_module.print_readable() shows the graph as text"
        )
