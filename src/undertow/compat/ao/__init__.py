"""torch's tools for smaller models: the part that is about training with rounded numbers."""

from ..on_demand import on_demand

__getattr__ = on_demand(globals(), {"quantization": "quantization"})
