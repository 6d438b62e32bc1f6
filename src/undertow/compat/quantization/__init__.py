"""`ao.quantization` where it stood before."""

from ..ao.quantization import *  # noqa: F403
from ..on_demand import on_demand

__getattr__ = on_demand(globals(), {})  # the names of torch's that refuse
