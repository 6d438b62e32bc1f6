"""How the parameters of modules are converted, under the name that torch has for it.

Converting and loading keep a parameter the object that it is, which is what "swapping" stands for,
so that switch is kept and changes nothing.
"""

from __future__ import annotations

from .nn.modules.conversion import (
    get_overwrite_module_params_on_conversion,
    get_swap_module_params_on_conversion,
    set_overwrite_module_params_on_conversion,
    set_swap_module_params_on_conversion,
)

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]
