"""Weight normalisation by a hook: a length and a direction in place of a weight.

The newer form is `parametrizations.weight_norm`.
"""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

from ...core.tensor import Tensor
from ...errors import ArgumentError
from ..modules.module import Module
from ..parameter import Parameter, is_lazy

T = TypeVar("T", bound=Module)


def norm_except_dim(v: Tensor, dim: int | None) -> Tensor:
    """The lengths of the slices at each position of `dim`, or of the whole for None or -1."""
    if dim is None or dim == -1:
        return (v * v).sum().sqrt()
    others = [d for d in range(v.ndim) if d != dim % v.ndim]
    return ((v * v).sum(others, keepdim=True) if others else v * v).sqrt()


def weight_of(v: Tensor, g: Tensor, dim: int | None) -> Tensor:
    """The weight of that direction and length."""
    return v * (g / norm_except_dim(v, dim))


class WeightNorm:
    """The hook that computes a weight before each forward."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """The weight of the module's present length and direction."""
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return weight_of(v, g, self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Replace a parameter by its length and direction."""
        if _found(module, name) is not None:
            raise ArgumentError(
                f"[weight_norm] cannot register two weight_norm hooks on the same parameter {name}"
            )
        fn = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                "[weight_norm] the module has uninitialized parameters: call it once first"
            )
        delattr(module, name)
        length = norm_except_dim(weight.detach(), fn.dim)
        module.register_parameter(f"{name}_g", Parameter(length))
        module.register_parameter(f"{name}_v", Parameter(weight.detach()))
        setattr(module, name, fn.compute_weight(module))
        module.register_forward_pre_hook(fn)
        return fn

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        weight = self.compute_weight(module).detach()
        for name in (self.name, f"{self.name}_g", f"{self.name}_v"):
            delattr(module, name)
        setattr(module, self.name, Parameter(weight))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def _found(module: Module, name: str) -> int | None:
    """The key of the hook of a weight."""
    hooks = {} if module._hooks is None else module._hooks.forward_pre
    for key, hook in hooks.items():
        if isinstance(hook.fn, WeightNorm) and hook.fn.name == name:
            return key
    return None


def weight_norm(module: T, name: str = "weight", dim: int | None = 0) -> T:
    """Learn the length and the direction of a weight apart (Salimans and Kingma, 2016).

    >>> import undertow as ut, warnings
    >>> warnings.simplefilter("ignore", FutureWarning)
    >>> list(ut.nn.utils.weight_norm(ut.nn.Linear(3, 2)).state_dict())
    ['bias', 'weight_g', 'weight_v']
    """
    warnings.warn(
        "`nn.utils.weight_norm` is deprecated in favor of `nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: T, name: str = "weight") -> T:
    """Make a weight one parameter again.

    >>> import undertow as ut
    >>> import warnings
    >>> from undertow.nn.utils import remove_weight_norm, weight_norm
    >>> with warnings.catch_warnings(action="ignore"):
    ...     layer = weight_norm(ut.nn.Linear(3, 2))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'weight_g', 'weight_v']
    >>> [name for name, _ in remove_weight_norm(layer).named_parameters()]
    ['bias', 'weight']
    """
    key = _found(module, name)
    if key is None or module._hooks is None:
        raise ArgumentError(f"[remove_weight_norm] weight_norm of '{name}' not found in {module}")
    fn: Any = module._hooks.forward_pre.pop(key).fn
    fn.remove(module)
    return module
