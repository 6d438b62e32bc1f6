"""Wrappers that spread a module over processes and devices, under the paths that torch has."""

from ...compat.on_demand import on_demand as _on_demand
from . import distributed as distributed
from .wrappers import DataParallel as DataParallel

__getattr__ = _on_demand(globals(), {"DistributedDataParallel": "..distributed.data_parallel"})
