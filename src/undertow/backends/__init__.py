"""How a device runs what the ops ask for.

Torch keeps settings of libraries here (`backends.cudnn`, `backends.mkl` …): they stand in `compat`.
"""

from ..compat.on_demand import on_demand

_SETTINGS = ("cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum", "quantized")
fp32_precision = "none"  # of products, by torch's newest switch; here always IEEE's
__getattr__ = on_demand(globals(), {name: name for name in _SETTINGS})
_frozen = False


def disable_global_flags() -> None:
    """Kept without effect: what can be set here changes nothing.

    >>> import undertow as ut
    >>> ut.backends.flags_frozen()
    False
    """
    global _frozen
    _frozen = True


def flags_frozen() -> bool:
    """Whether `disable_global_flags` was called."""
    return _frozen
