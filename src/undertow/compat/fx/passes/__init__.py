"""Passes over graphs: shapes, splitting, matching."""

from ...on_demand import on_demand as _on_demand

_LAZY = {
    name: name
    for name in (
        *("graph_drawer", "graph_manipulation", "infra", "shape_prop", "split_module"),
        *("tools_common", "utils"),
    )
}
__getattr__ = _on_demand(globals(), _LAZY)
__all__: list[str] = []
