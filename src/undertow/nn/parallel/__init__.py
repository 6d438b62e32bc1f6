"""Wrappers that spread a module over processes and devices, under the paths that torch has."""

from . import distributed as distributed
from .distributed import DataParallel as DataParallel
from .distributed import DistributedDataParallel as DistributedDataParallel
