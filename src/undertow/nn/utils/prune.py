"""Pruning: a mask holds some elements of a parameter at zero; torch's `nn.utils.prune`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from ...core.register import FUNCTIONS
from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError
from ..modules.module import Module
from .convert_parameters import parameters_to_vector
from .pruning_methods import (
    BasePruningMethod,
    CustomFromMask,
    Identity,
    L1Unstructured,
    LnStructured,
    PruningContainer,
    RandomStructured,
    RandomUnstructured,
    pre_hooks,
    pruning_of,
)

T = TypeVar("T", bound=Module)

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


def identity(module: T, name: str) -> T:
    """Make a parameter a pruned one of which nothing is pruned.

    >>> import undertow as ut
    >>> m = ut.nn.utils.prune.identity(ut.nn.Linear(2, 2), "bias")
    >>> m.bias_mask
    tensor([1., 1.])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: T, name: str, amount: float) -> T:
    """Prune elements of a parameter at random.

    >>> import undertow as ut
    >>> m = ut.nn.utils.prune.random_unstructured(ut.nn.Linear(2, 3), "weight", amount=1)
    >>> m.weight_mask.sum()
    tensor(5.)
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: T, name: str, amount: float, importance_scores: Tensor | None = None
) -> T:
    """Prune the smallest elements of a parameter, or those with the smallest scores.

    >>> import undertow as ut
    >>> m = ut.nn.utils.prune.l1_unstructured(ut.nn.Linear(2, 3), "weight", amount=0.5)
    >>> m.weight_mask.sum(), sorted(m.state_dict())
    (tensor(3.), ['bias', 'weight_mask', 'weight_orig'])
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: T, name: str, amount: float, dim: int) -> T:
    """Prune slices of a parameter at random.

    >>> import undertow as ut
    >>> m = ut.nn.utils.prune.random_structured(ut.nn.Linear(2, 3), "weight", amount=1, dim=0)
    >>> m.weight_mask.sum()
    tensor(4.)
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: T, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None
) -> T:
    """Prune the slices of a parameter whose n-norm is smallest.

    >>> import undertow as ut
    >>> m = ut.nn.utils.prune.ln_structured(ut.nn.Linear(2, 3), "weight", amount=2, n=2, dim=0)
    >>> m.weight_mask.sum()
    tensor(2.)
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: T, name: str, mask: Tensor) -> T:
    """Prune a parameter where `mask` is zero.

    >>> import undertow as ut
    >>> m = ut.nn.Linear(2, 2)
    >>> m = ut.nn.utils.prune.custom_from_mask(m, "bias", ut.tensor([0, 1]))
    >>> bool(m.bias[0] == 0)
    True
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters as if they were one.

    >>> import undertow as ut
    >>> from undertow.nn.utils import prune
    >>> m = ut.nn.Linear(2, 3)
    >>> pairs = [(m, "weight"), (m, "bias")]
    >>> prune.global_unstructured(pairs, pruning_method=prune.L1Unstructured, amount=4)
    >>> m.weight_mask.sum() + m.bias_mask.sum()
    tensor(5.)
    """
    op = "global_unstructured"
    if not isinstance(parameters, Iterable):
        raise DTypeError(f"[{op}] expects pairs of modules and names, got {parameters!r}")
    if importance_scores is not None and not isinstance(importance_scores, dict):
        raise DTypeError(f"[{op}] importance_scores must be a dict, got {importance_scores!r}")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise DTypeError(
            f"[{op}] needs an unstructured method, got {pruning_method.__name__}, which is "
            f"{method.PRUNING_TYPE}"
        )
    method._tensor_name = "parameters"
    pairs = [(module, name, getattr(module, name)) for module, name in parameters]
    scores = [(importance_scores or {}).get((m, name), t).detach() for m, name, t in pairs]
    masks = [getattr(m, f"{name}_mask", FUNCTIONS["ones_like"](t)) for m, name, t in pairs]
    whole = PruningContainer(method).compute_mask(
        parameters_to_vector(scores), parameters_to_vector(masks)
    )
    parts = whole.split([t.numel() for _, _, t in pairs])
    for (module, name, t), part in zip(pairs, parts, strict=True):
        custom_from_mask(module, name, part.reshape(t.shape))


def remove(module: T, name: str) -> T:
    """Make a pruned tensor the parameter for good.

    >>> import undertow as ut
    >>> m = ut.nn.utils.prune.l1_unstructured(ut.nn.Linear(2, 3), "weight", amount=0.5)
    >>> list(ut.nn.utils.prune.remove(m, "weight").state_dict())
    ['bias', 'weight']
    """
    key, method = pruning_of(module, name)
    if method is None:
        raise ArgumentError(f"[prune.remove] {name!r} of {type(module).__name__} is not pruned")
    method.remove(module)
    del pre_hooks(module)[key]
    return module


def is_pruned(module: Module) -> bool:
    """Whether anything in a module is pruned.

    >>> import undertow as ut
    >>> ut.nn.utils.prune.is_pruned(ut.nn.Linear(2, 3))
    False
    """
    return any(
        isinstance(hook.fn, BasePruningMethod)
        for part in module.modules()
        for hook in pre_hooks(part).values()
    )
