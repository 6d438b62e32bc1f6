"""`torch.utils.serialization.config`: the switches of saving and loading."""

from ....files.options import load, save

__all__ = ["load", "save"]
