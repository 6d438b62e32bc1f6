"""What torch keeps in `utils`: `checkpoint`, and more that is loaded when somebody asks."""

from typing import TYPE_CHECKING

from ..compat.on_demand import on_demand
from . import checkpoint

if TYPE_CHECKING:
    from . import data, deterministic, dlpack, hooks, tensorboard

__all__ = ["checkpoint", "data", "deterministic", "dlpack", "hooks", "tensorboard"]
__dir__ = __all__.copy
__getattr__ = on_demand(globals(), {name: name for name in __all__})
