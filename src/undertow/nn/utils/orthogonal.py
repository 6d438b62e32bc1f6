"""A weight that stays orthogonal while it is learned."""

from __future__ import annotations

from typing import TypeVar

from ...core.modes import no_grad
from ...core.tensor import Tensor
from ...dtypes import finfo
from ...errors import ArgumentError, ShapeError, UnsupportedError
from ...ops.create.creation import eye
from ...ops.linalg.matrix_functions import matrix_exp
from ...ops.linalg.orthogonal import geqrf, householder_product
from ...ops.linalg.solving import solve
from ...ops.random.random import randn
from ...ops.shape.joining import cat
from ..modules.module import Module
from . import parametrize

T = TypeVar("T", bound=Module)
MAPS = ("matrix_exp", "cayley", "householder")


def _with_positive_diagonal(a: Tensor) -> Tensor:
    """The orthogonal factor of QR whose R has no negative elements on its diagonal."""
    packed, tau = geqrf(a)
    signs = packed.diagonal(0, -2, -1).sgn().unsqueeze(-2)
    return householder_product(packed, tau) * signs


def _is_orthogonal(q: Tensor) -> bool:
    """Up to rounding, for as many columns as it has."""
    size = q.shape[-1]
    identity = eye(size, dtype=q.dtype, device=q.device)
    bound = 10.0 * q.shape[-2] * finfo(q.dtype).eps
    return bool(((q.mH @ q - identity).abs() <= bound).all())


class _Orthogonal(Module):
    """An orthogonal matrix out of any: by a map, and by a matrix that it begins at."""

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ArgumentError(
                "[orthogonal] orthogonal_map='householder' is for real weights; take 'matrix_exp'"
            )
        self.shape = tuple(weight.shape)
        self.orthogonal_map = orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.shape[-2] < X.shape[-1]
        x = X.mT if wide else X
        q = self._reflected(x) if self.orthogonal_map == "householder" else self._turned(x)
        if self.use_trivialization:
            assert self.base is not None
            q = self.base @ q
        return q.mT if wide else q

    def _turned(self, x: Tensor) -> Tensor:
        """A rotation by the skew part of the lower triangle."""
        n, k = x.shape[-2:]
        x = x.tril()
        if n != k:
            x = cat([x, x.new_zeros((*x.shape[:-1], n - k))], -1)
        skew = x - x.mH
        if self.orthogonal_map == "matrix_exp":
            return matrix_exp(skew)[..., :k]
        identity = eye(n, dtype=x.dtype, device=x.device)
        return solve(identity - skew / 2, identity + skew / 2)[..., :k]

    def _reflected(self, x: Tensor) -> Tensor:
        """Reflections at the columns below the diagonal, whose elements are signs."""
        vectors = x.tril(-1)
        tau = 2.0 / (1.0 + (vectors * vectors).sum(-2))
        signs = x.detach().diagonal(0, -2, -1).trunc().unsqueeze(-2)
        return householder_product(vectors, tau) * signs

    @no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        """What the map makes the orthogonal matrix next to Q of."""
        if tuple(Q.shape) != self.shape:
            raise ShapeError(f"[orthogonal] expected shape {self.shape}, got {tuple(Q.shape)}")
        wide = Q.shape[-2] < Q.shape[-1]
        q = Q.mT if wide else Q
        if not self.use_trivialization:
            if self.orthogonal_map != "householder":
                raise UnsupportedError(
                    f"[orthogonal] nothing can be assigned with orthogonal_map="
                    f"{self.orthogonal_map!r} and use_trivialization=False"
                )
            packed, tau = geqrf(q)
            line = packed.diagonal(0, -2, -1)
            line.copy_(line.sign())
            line[tau == 0] *= -1
            return packed.mT if wide else packed
        n, k = q.shape[-2:]
        if n != k:
            more = randn(*q.shape[:-2], n, n - k, dtype=q.dtype, device=q.device)
            self.base = _with_positive_diagonal(cat([q, more], -1))
        else:
            self.base = q.clone() if _is_orthogonal(q) else _with_positive_diagonal(q)
        found = Q.new_zeros(Q.shape)
        found.diagonal(0, -2, -1).fill_(-1.0)
        return found


def orthogonal(
    module: T,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> T:
    """Keep the columns of a weight orthonormal, or its rows if it is wide, while it is learned.

    `orthogonal_map` is "matrix_exp" (of square and complex weights by default), "cayley" or
    "householder"; `use_trivialization` learns a change of the matrix that it begins at
    (Lezcano-Casado, 2019), so that the weight can be assigned with any map.

    >>> import undertow as ut
    >>> layer = ut.nn.utils.parametrizations.orthogonal(ut.nn.Linear(3, 3))
    >>> (layer.weight @ layer.weight.T - ut.eye(3)).abs().max() < 1e-5
    tensor(True)
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ArgumentError(
            f"[orthogonal] module '{type(module).__name__}' has no parameter or buffer with name "
            f"'{name}'"
        )
    if weight.ndim < 2:
        raise ShapeError(f"[orthogonal] expects a matrix or a batch of them, got {weight.shape}")
    square = weight.shape[-2] == weight.shape[-1]
    chosen = orthogonal_map or ("matrix_exp" if square or weight.is_complex() else "householder")
    if chosen not in MAPS:
        raise ArgumentError(
            f"[orthogonal] orthogonal_map must be one of {', '.join(MAPS)}, got {orthogonal_map!r}"
        )
    made = _Orthogonal(weight, chosen, use_trivialization)
    parametrize.register_parametrization(module, name, made, unsafe=True)
    return module
