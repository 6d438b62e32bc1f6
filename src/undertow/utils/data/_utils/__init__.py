"""What a DataLoader is made of, under torch's module names."""

from . import collate, fetch, worker
from .failure import ExceptionWrapper

__all__ = ["ExceptionWrapper", "collate", "fetch", "worker"]
