"""Neural-network functions; `undertow.nn.functional` is torch's `F`."""

from . import functional

__all__ = ["functional"]
