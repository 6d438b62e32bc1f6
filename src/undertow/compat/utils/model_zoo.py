"""Checkpoints at an address, under the name that they had before `hub`."""

from ..hub import load_state_dict_from_url as load_url
from ..hub import tqdm

__all__ = ["load_url", "tqdm"]
