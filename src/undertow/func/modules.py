"""Modules as functions of their parameters, one or several of the same build at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.tensor import Tensor
from ..errors import ArgumentError
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from ..nn.utils import stateless
from ..ops.shape.joining import stack


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers, by name; it has its own again afterwards.

    A tensor that the module has under several names is replaced under all of them, unless
    `tie_weights=False`. `strict=True` wants every name.

    >>> import undertow as ut
    >>> layer = ut.nn.Linear(2, 1, bias=False)
    >>> w = ut.ones(1, 2, requires_grad=True)
    >>> y = ut.func.functional_call(layer, {"weight": w}, ut.tensor([[3.0, 4.0]]))
    >>> ut.autograd.grad(y.sum(), w)
    (tensor([[3., 4.]]),)
    """
    return stateless.functional_call(
        module, parameter_and_buffer_dicts, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of modules of one build, each stacked over the modules.

    >>> import undertow as ut
    >>> layers = [ut.nn.Linear(3, 2) for _ in range(4)]
    >>> parameters, buffers = ut.func.stack_module_state(layers)
    >>> parameters["weight"].shape
    (4, 2, 3)
    """
    if not models:
        raise ArgumentError("[stack_module_state] expects at least one module")
    if len({m.training for m in models}) > 1 or len({type(m) for m in models}) > 1:
        raise ArgumentError(
            "[stack_module_state] expects modules of one class, all in training or all in "
            f"evaluation mode, got {', '.join(sorted({type(m).__name__ for m in models}))}"
        )
    parameters = {}
    for name, first in models[0].named_parameters():
        found = [dict(m.named_parameters())[name] for m in models]
        if any(p.requires_grad != first.requires_grad for p in found):
            raise ArgumentError(
                f"[stack_module_state] {name!r} requires gradients in some of the modules only; "
                "set requires_grad alike in all"
            )
        stacked = stack([p.detach() for p in found])
        parameters[name] = stacked.requires_grad_(first.requires_grad)
    buffers = {
        name: stack([dict(m.named_buffers())[name].detach() for m in models])
        for name, _ in models[0].named_buffers()
    }
    return parameters, buffers


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let the batch norms of a module keep no running statistics, in place.

    >>> import undertow as ut
    >>> net = ut.nn.Sequential(ut.nn.BatchNorm1d(2))
    >>> ut.func.replace_all_batch_norm_modules_(net)[0].running_mean
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
