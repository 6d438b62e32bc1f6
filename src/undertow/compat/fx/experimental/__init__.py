"""What torch keeps under `fx.experimental`."""

from ...on_demand import on_demand as _on_demand

_LAZY = {
    name: name
    for name in (
        *("_config", "const_fold", "normalize", "optimization", "proxy_tensor"),
        "symbolic_shapes",
    )
}
__getattr__ = _on_demand(globals(), _LAZY)
__all__: list[str] = []
