"""Dtype, device and Python values: to, item, tolist, numpy, copy_."""

from ..core import protocol  # noqa: F401
