"""Functions and modules as graphs that are read, changed and run: `torch.fx`; see docs/fx.md."""

from ..on_demand import on_demand as _on_demand

_LAZY = {
    name: room or name
    for room, names in {
        "": """
            _compatibility _lazy_graph_module _pytree _symbolic_trace experimental graph
            graph_module immutable_collections interpreter node operator_schemas passes proxy
            subgraph_rewriter tensor_type traceback
        """,
        "_symbolic_trace": """
            PH PHBase PHWithMeta ProxyableClassMeta Tracer symbolic_trace wrap
        """,
        "graph": "CodeGen Graph PythonCode",
        "graph_module": "GraphModule",
        "interpreter": "Interpreter Transformer",
        "node": "Node has_side_effect map_aggregate map_arg",
        "proxy": "Proxy",
        "subgraph_rewriter": "Match replace_pattern replace_pattern_with_filters",
    }.items()
    for name in names.split()
}
__getattr__ = _on_demand(globals(), _LAZY)
__all__ = [
    "PH",
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
