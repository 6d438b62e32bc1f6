"""`undertow.autograd.check` under torch's module name, and the Jacobians that it once offered.

`undertow.autograd.gradcheck` is the function, as in torch. An import of this module by another name
puts the module in its place (Python does that), so the module can be called as well.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from ..core.tensor import Tensor
from ..errors import ArgumentError
from .api import grad
from .check import GradcheckError, gradcheck, gradgradcheck

__all__ = [
    "GradcheckError",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "gradcheck",
    "gradgradcheck",
]


def _old(name: str, grad_out: float) -> None:
    if grad_out != 1.0:
        raise ArgumentError(f"[{name}] grad_out is 1.0, got {grad_out}; scale the result instead")
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and is deprecated; use autograd.gradcheck, "
        "or autograd.functional.jacobian",
        FutureWarning,
        stacklevel=3,
    )


def get_numerical_jacobian(
    fn: Callable[..., Any],
    inputs: Any,
    target: Any = None,
    eps: float = 1e-3,
    grad_out: float = 1.0,
) -> list[Tensor]:
    """The derivatives of the first output of `fn(inputs)` by differences, (input, output) each."""
    _old("get_numerical_jacobian", grad_out)
    given = inputs if target is None else target
    found = []
    for x in [given] if isinstance(given, Tensor) else given:
        if not isinstance(x, Tensor) or not x.is_floating_point():
            continue
        values = x.data.reshape(-1)
        rows = []
        for i in range(x.numel()):
            was = values[i].item()
            ends = []
            for step in (eps, -eps):
                moved = values.clone()
                moved[i] = was + step
                x.data.copy_(moved.reshape(x.shape))
                ends.append(_first(fn(inputs)).detach().clone())
            x.data.copy_(values.reshape(x.shape))
            rows.append(((ends[0] - ends[1]) / (2 * eps)).reshape(-1))
        found.append(_stacked(rows, x))
    return found


def get_analytical_jacobian(
    inputs: Any, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """The derivatives of `output` by backward, (input, output) each, and that all is well.

    The three answers are whether the backward gives the same twice, and whether gradients have the
    shape and the dtype of their inputs.
    """
    _old("get_analytical_jacobian", grad_out)
    given: Sequence[Any] = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    wanted = [x for x in given if isinstance(x, Tensor) and x.requires_grad]
    passes = []
    for _ in range(2):
        columns: list[list[Tensor]] = [[] for _ in wanted]
        for i in range(output.numel()):
            seed = output.new_zeros(output.numel())
            seed[i] = 1
            rows = grad(
                output, wanted, seed.reshape(output.shape), retain_graph=True, allow_unused=True
            )
            for x, row, column in zip(wanted, rows, columns, strict=True):
                column.append((x.new_zeros(x.shape) if row is None else row).reshape(-1))
        passes.append([_stacked(c, x).T for c, x in zip(columns, wanted, strict=True)])
    same = all(bool(((a - b).abs() <= nondet_tol).all()) for a, b in zip(*passes, strict=True))
    return tuple(passes[0]), same, True, True


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, (tuple, list)) else value


def _stacked(rows: list[Tensor], like: Tensor) -> Tensor:
    from ..core.register import FUNCTIONS

    found: Tensor = FUNCTIONS["stack"](rows) if rows else like.new_zeros((0, 0))
    return found


class _Called(ModuleType):
    __call__ = staticmethod(gradcheck)


sys.modules[__name__].__class__ = _Called
