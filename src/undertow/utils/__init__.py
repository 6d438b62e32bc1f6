"""What torch keeps in `utils`: `checkpoint`, and `data`, which is loaded when somebody asks."""

from typing import TYPE_CHECKING

from ..on_demand import on_demand
from . import checkpoint

if TYPE_CHECKING:
    from . import data

__all__ = ["checkpoint", "data"]
__dir__ = __all__.copy
__getattr__ = on_demand(globals(), {"data": "data"})
