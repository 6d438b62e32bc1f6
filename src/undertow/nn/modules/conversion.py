"""Whether `Module.to` and its kin change a parameter or put a new one in its place."""

from __future__ import annotations

_overwrite = False
_swap = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Let `module.to(...)`, `half()` and others put new parameters in the place of the old ones.

    >>> import undertow as ut
    >>> ut.__future__.set_overwrite_module_params_on_conversion(True)
    >>> ut.__future__.get_overwrite_module_params_on_conversion()
    True
    >>> ut.__future__.set_overwrite_module_params_on_conversion(False)
    """
    global _overwrite
    _overwrite = bool(value)


def get_overwrite_module_params_on_conversion() -> bool:
    """What `set_overwrite_module_params_on_conversion` was told; False at first.

    >>> import undertow as ut
    >>> ut.__future__.get_overwrite_module_params_on_conversion()
    False
    """
    return _overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Kept without effect: a parameter stays the object that it is when it is converted.

    >>> import undertow as ut
    >>> ut.__future__.set_swap_module_params_on_conversion(True)
    >>> ut.__future__.get_swap_module_params_on_conversion()
    True
    >>> ut.__future__.set_swap_module_params_on_conversion(False)
    """
    global _swap
    _swap = bool(value)


def get_swap_module_params_on_conversion() -> bool:
    """What `set_swap_module_params_on_conversion` was told; False at first.

    >>> import undertow as ut
    >>> ut.__future__.get_swap_module_params_on_conversion()
    False
    """
    return _swap


def overwrites() -> bool:
    """Whether a conversion makes new parameters; swapping comes first, as in torch."""
    return _overwrite and not _swap
