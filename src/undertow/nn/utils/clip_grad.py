"""Gradients that are kept from growing too large."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any

from ...backends.registry import backend_of
from ...core.modes import no_grad
from ...core.recording import RECORDERS, recorder
from ...core.register import FUNCTIONS
from ...core.tensor import Tensor
from ...core.update import Update
from ...errors import ArgumentError, UnsupportedError
from ...ops.elementwise.extremes import maximum, minimum
from ...ops.shape.joining import flat

Tensors = Tensor | Iterable[Tensor]


def _clamped(grad: Any, low: Any, high: Any) -> Any:
    return (minimum(maximum(grad, low), high),)


_scale = Update("clip_grad_norm_", lambda grad, scale: (grad * scale,), 1, 1, (0,))
_clamp = Update("clip_grad_value_", _clamped, 1, 2, (0,))


def _listed(parameters: Tensors) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def get_total_norm(
    tensors: Tensors,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all elements of all tensors, as if they were one vector.

    >>> import undertow as ut
    >>> ut.nn.utils.get_total_norm([ut.tensor([3.0]), ut.tensor([[4.0]])])
    tensor(5.)
    """
    given = _listed(tensors)
    if not given:
        return FUNCTIONS["tensor"](0.0)
    with no_grad():
        first = given[0]
        if len({(t._array.dtype, backend_of(t._array)) for t in given}) == 1:
            # One vector, and one reduction of it: many launches would cost more than the copy.
            total = _norm(flat(given), float(norm_type))
        else:
            parts = [_norm(t, float(norm_type)).to(first.device) for t in given]
            total = _norm(FUNCTIONS["stack"](parts), float(norm_type))
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise ArgumentError(
            f"[get_total_norm] the total norm of order {norm_type} for gradients is non-finite "
            f"({total.item()}), so it cannot be clipped; pass error_if_nonfinite=False to scale "
            "by it anyway"
        )
    return total


def _norm(x: Tensor, order: float) -> Tensor:
    if order == math.inf:
        return x.abs().max() if x.numel() else x.new_zeros(())
    return FUNCTIONS["norm"](x, order)


def _below_one(scale: float) -> float:
    return 1.0 if scale >= 1 else scale  # NaN stays


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale all gradients in place by `max_norm / total_norm`, if that is below 1.

    >>> import undertow as ut
    >>> w = ut.nn.Parameter(ut.zeros(1))
    >>> w.grad = ut.tensor([4.0])
    >>> ut.nn.utils.clip_grads_with_norm_([w], 2.0, ut.tensor(4.0))
    >>> w.grad
    tensor([2.0000])
    """

    def factor(norm: float) -> float:
        return float(max_norm) / (norm + 1e-6)

    rows = [(p.grad,) for p in _listed(parameters) if p.grad is not None]
    if RECORDERS and recorder() is not None:  # a program computes the factor, and 1 leaves all
        _scale(rows, recorder().asks_of(total_norm, lambda norm: (_below_one(factor(norm)),)))
        return
    scale = factor(total_norm.item())
    if not scale >= 1:
        _scale(rows, (scale,))


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients in place so that their norm is at most `max_norm`; returns the norm.

    >>> import undertow as ut
    >>> w = ut.nn.Parameter(ut.zeros(2))
    >>> w.grad = ut.tensor([3.0, 4.0])
    >>> ut.nn.utils.clip_grad_norm_([w], 1.0), w.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    given = parameters
    if not isinstance(parameters, Tensor):
        given = parameters = list(parameters)
        if not parameters:
            warnings.warn(
                "`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2
            )
    if any(hasattr(p, "_rows_of") for p in _listed(given)):
        raise UnsupportedError(
            "[clip_grad_norm_] this process has some rows of these parameters only; call "
            "model.clip_grad_norm_, which fully_shard has given to the model"
        )
    grads = [p.grad for p in _listed(given) if p.grad is not None]
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    clip_grads_with_norm_(given, max_norm, total)
    return total


def clip_grad_norm(*args: Any, **kwargs: Any) -> Tensor:
    """`clip_grad_norm_`, as it was called once.

    >>> import undertow as ut
    >>> import warnings
    >>> w = ut.nn.Parameter(ut.zeros(2))
    >>> w.grad = ut.tensor([3.0, 4.0])
    >>> with warnings.catch_warnings(action="ignore"):
    ...     ut.nn.utils.clip_grad_norm([w], max_norm=1.0)
    tensor(5.)
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    warnings.warn(
        "`nn.utils.clip_grad_norm` is now deprecated in favor of `nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(*args, **kwargs)


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp every element of every gradient in place between -clip_value and clip_value.

    >>> import undertow as ut
    >>> w = ut.nn.Parameter(ut.zeros(2))
    >>> w.grad = ut.tensor([3.0, -4.0])
    >>> ut.nn.utils.clip_grad_value_(w, 3.5)
    >>> w.grad
    tensor([ 3.0000, -3.5000])
    """
    bound = float(clip_value)
    _clamp([(p.grad,) for p in _listed(parameters) if p.grad is not None], (-bound, bound))
