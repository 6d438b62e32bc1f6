"""Parametrizations that are often wanted: weight norm, spectral norm, orthogonal matrices."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

from ...core.modes import no_grad
from ...core.tensor import Tensor
from ...errors import ArgumentError
from .. import functional as F
from ..modules.module import Module
from . import parametrize
from .orthogonal import orthogonal as orthogonal
from .spectral_norm import as_matrix, default_dim, power_iterations, random_vectors, singular_value
from .weight_norm import norm_except_dim, weight_of

T = TypeVar("T", bound=Module)


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_of(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The length and the direction of a weight."""
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: T, name: str = "weight", dim: int | None = 0) -> T:
    """Learn the length and the direction of a weight apart (Salimans and Kingma, 2016).

    >>> import undertow as ut
    >>> layer = ut.nn.utils.parametrizations.weight_norm(ut.nn.Linear(3, 2))
    >>> list(layer.state_dict())
    ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module._register_load_state_dict_pre_hook(partial(_from_hook, name))
    return module


def _from_hook(name: str, state: Any, prefix: str, *_: Any) -> None:
    """A state of the older form, `nn.utils.weight_norm`, has other names."""
    for old, new in ((f"{name}_g", "original0"), (f"{name}_v", "original1")):
        if f"{prefix}{old}" in state:
            state[f"{prefix}parametrizations.{name}.{new}"] = state.pop(f"{prefix}{old}")


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(
                f"[spectral_norm] dim {dim} is out of range for a weight of shape {weight.shape}"
            )
        if n_power_iterations <= 0:
            raise ArgumentError(
                "[spectral_norm] expected n_power_iterations to be positive, got "
                f"{n_power_iterations}"
            )
        self.dim = dim % weight.ndim
        self.eps = eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight.detach(), self.dim)
            u, v = random_vectors(matrix, eps)
            power_iterations(matrix, u, v, 15, eps, u_first=True)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:  # its only singular value is its length
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            count = self.n_power_iterations
            power_iterations(matrix.detach(), self._u, self._v, count, self.eps, u_first=True)
        u, v = self._u.clone(), self._v.clone()  # the next iterations are in place
        return weight / singular_value(matrix, u, v)

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value itself: it may be of any size."""
        return value


def spectral_norm(
    module: T,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> T:
    """Divide a weight by its largest singular value (Miyato and others, 2018).

    >>> import undertow as ut
    >>> layer = ut.nn.utils.parametrizations.spectral_norm(ut.nn.Linear(3, 2))
    >>> list(layer.state_dict())[1:]
    ['parametrizations.weight.original', 'parametrizations.weight.0._u', \
'parametrizations.weight.0._v']
    """
    if not isinstance(getattr(module, name, None), Tensor):
        raise ArgumentError(
            f"[spectral_norm] module '{type(module).__name__}' has no parameter or buffer with "
            f"name '{name}'"
        )
    with no_grad():
        dim = default_dim(module) if dim is None else dim
        made = _SpectralNorm(getattr(module, name), n_power_iterations, dim, eps)
    parametrize.register_parametrization(module, name, made)
    return module
