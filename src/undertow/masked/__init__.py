"""Reductions over the elements that a mask lets through, published by `undertow.ops`."""

from ..core.register import SPACES as _spaces

globals().update(_spaces["masked"])
__all__ = sorted(_spaces["masked"])
