"""How the parameters of modules are converted, under the name that torch has for it.

Converting and loading keep a parameter the object that it is, which is what "swapping" stands for,
so that switch is kept and changes nothing.
"""

from __future__ import annotations

from ..nn import Module

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Let `module.to(...)`, `half()` and others put new parameters in the place of the old ones.

    >>> import undertow as ut
    >>> ut.__future__.set_overwrite_module_params_on_conversion(True)
    >>> ut.__future__.get_overwrite_module_params_on_conversion()
    True
    >>> ut.__future__.set_overwrite_module_params_on_conversion(False)
    """
    Module._overwrites = bool(value)


def get_overwrite_module_params_on_conversion() -> bool:
    """What `set_overwrite_module_params_on_conversion` was told; False at first.

    >>> import undertow as ut
    >>> ut.__future__.get_overwrite_module_params_on_conversion()
    False
    """
    return Module._overwrites


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Kept without effect: a parameter stays the object that it is when it is converted.

    >>> import undertow as ut
    >>> ut.__future__.set_swap_module_params_on_conversion(True)
    >>> ut.__future__.get_swap_module_params_on_conversion()
    True
    >>> ut.__future__.set_swap_module_params_on_conversion(False)
    """
    Module._swaps = bool(value)


def get_swap_module_params_on_conversion() -> bool:
    """What `set_swap_module_params_on_conversion` was told; False at first.

    >>> import undertow as ut
    >>> ut.__future__.get_swap_module_params_on_conversion()
    False
    """
    return Module._swaps
