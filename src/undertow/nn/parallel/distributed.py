"""`DistributedDataParallel` at torch's path; it stands in `undertow.distributed`."""

from ...compat.on_demand import on_demand as _on_demand

__all__ = ["DistributedDataParallel"]  # noqa: F822
__getattr__ = _on_demand(globals(), {"DistributedDataParallel": "...distributed.data_parallel"})
