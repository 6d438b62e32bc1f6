"""Activations, losses and the rest of torch's `nn.functional`, published by `undertow.ops`."""

from ..core.register import FUNCTIONAL as _functional

globals().update(_functional)
__all__ = sorted(_functional)
