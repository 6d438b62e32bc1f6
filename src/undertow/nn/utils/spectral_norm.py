"""Spectral normalisation by a hook: a weight divided by its largest singular value.

The newer form is `parametrizations.spectral_norm`.
"""

from __future__ import annotations

from typing import Any, TypeVar

from ...core.modes import no_grad
from ...core.tensor import Tensor
from ...errors import ArgumentError
from .. import functional as F
from ..modules.conv import _ConvTransposeNd
from ..modules.module import Module
from ..parameter import Parameter, is_lazy

T = TypeVar("T", bound=Module)


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """A weight with `dim` as rows, and everything else as columns."""
    return weight.movedim(dim, 0).flatten(1)


def default_dim(module: Module) -> int:
    """Where a module's weight has the outputs."""
    return 1 if isinstance(module, _ConvTransposeNd) else 0


def power_iterations(
    matrix: Tensor, u: Tensor, v: Tensor, count: int, eps: float, u_first: bool = False
) -> None:
    """Move u and v in place towards the singular vectors of the largest singular value."""
    steps = [(v, matrix.mH, u), (u, matrix, v)]
    with no_grad():
        for _ in range(count):
            for moved, by, other in reversed(steps) if u_first else steps:
                moved.copy_(F.normalize(by @ other, dim=0, eps=eps))


def singular_value(matrix: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """What the matrix makes of v, along u."""
    return u.conj() @ (matrix @ v)


def random_vectors(matrix: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Random directions of the lengths of columns and rows."""
    with no_grad():
        u, v = (
            F.normalize(matrix.new_empty(n).normal_(0, 1), dim=0, eps=eps) for n in matrix.shape
        )
    return u, v


class SpectralNorm:
    """The hook that computes a weight before each forward."""

    _version = 1

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        if n_power_iterations <= 0:
            raise ArgumentError(
                f"[spectral_norm] expected n_power_iterations to be positive, got "
                f"{n_power_iterations}"
            )
        self.name = name
        self.n_power_iterations = n_power_iterations
        self.dim = dim
        self.eps = eps

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The weight divided by its largest singular value, as far as that is known."""
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            power_iterations(matrix.detach(), u, v, self.n_power_iterations, self.eps)
        u, v = u.clone(), v.clone()  # the next iterations are in place
        return weight / singular_value(matrix, u, v)

    @staticmethod
    def apply(
        module: Module, name: str, n_power_iterations: int, dim: int, eps: float
    ) -> SpectralNorm:
        """Replace a parameter by itself before the division."""
        if _found(module, name) is not None:
            raise ArgumentError(
                f"[spectral_norm] cannot register two spectral_norm hooks on the same parameter "
                f"{name}"
            )
        fn = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ArgumentError(f"[spectral_norm] `{name}` is None: there is nothing to divide")
        if is_lazy(weight):
            raise ValueError(
                "[spectral_norm] the module has uninitialized parameters: call it once first"
            )
        u, v = random_vectors(as_matrix(weight.detach(), dim), eps)
        delattr(module, name)
        module.register_parameter(f"{name}_orig", weight)
        setattr(module, name, weight.detach())
        module.register_buffer(f"{name}_u", u)
        module.register_buffer(f"{name}_v", v)
        module.register_forward_pre_hook(fn)
        return fn

    def remove(self, module: Module) -> None:
        """Make the divided weight a parameter."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for name in ("", "_u", "_v", "_orig"):
            delattr(module, f"{self.name}{name}")
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


def _found(module: Module, name: str) -> int | None:
    """The key of the hook of a weight."""
    hooks = {} if module._hooks is None else module._hooks.forward_pre
    for key, hook in hooks.items():
        if isinstance(hook.fn, SpectralNorm) and hook.fn.name == name:
            return key
    return None


def spectral_norm(
    module: T,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> T:
    """Divide a weight by its largest singular value (Miyato and others, 2018).

    >>> import undertow as ut
    >>> list(ut.nn.utils.spectral_norm(ut.nn.Linear(3, 2)).state_dict())
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    dim = default_dim(module) if dim is None else dim
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: T, name: str = "weight") -> T:
    """Make a weight one parameter again, divided as it is now.

    >>> import undertow as ut
    >>> from undertow.nn.utils import remove_spectral_norm, spectral_norm
    >>> layer = spectral_norm(ut.nn.Linear(3, 2))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'weight_orig']
    >>> [name for name, _ in remove_spectral_norm(layer).named_parameters()]
    ['bias', 'weight']
    """
    key = _found(module, name)
    if key is None or module._hooks is None:
        raise ArgumentError(
            f"[remove_spectral_norm] spectral_norm of '{name}' not found in {module}"
        )
    fn: Any = module._hooks.forward_pre.pop(key).fn
    fn.remove(module)
    return module
