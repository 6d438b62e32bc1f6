"""A few extreme eigenvalues of a large symmetric matrix by iteration (Knyazev, 2001)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.dispatch import apply, expand
from ...core.modes import no_grad
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor, differentiated
from ...dtypes import finfo
from ...errors import ArgumentError, ShapeError, UnsupportedError
from ...shapes import as_int
from ..create.creation import arange
from ..elementwise.comparison import where
from ..random.random import randn
from ..shape.joining import cat, stack
from ..shape.movement import reshaped
from .matrices import flattened, matrices, one_dtype
from .orthogonal import linalg_qr
from .spectra import eigh
from .triangular import cholesky, substitute


def _rule(gs: Any, a: Tensor, out1: Tensor, largest: bool) -> Tensor:
    # That of eigh for some of the vectors; the others are needed too, and asked for here.
    by_values, by_vectors = gs
    n, k = out1.shape[-2:]
    found = (out1 * by_values.unsqueeze(-2)) @ out1.mT
    values, vectors = eigh(a)
    own = arange(k, device=a.device)
    own = n - 1 - own if largest else own
    mine = arange(n, device=a.device).unsqueeze(-1) == own
    gaps = values.index_select(-1, own).unsqueeze(-2) - values.unsqueeze(-1)
    weights = where(mine, 0.0, 1 / where(mine, 1.0, gaps))
    return found + vectors @ (weights * (vectors.mT @ by_vectors)) @ out1.mT


_lobpcg = Op(
    "lobpcg",
    lambda k, a, values, vectors, largest: (k.copy(values), k.copy(vectors)),
    inputs="a values vectors",
    params="largest",
    outputs=2,
    vjp={"a": _rule},
)


@function(method=False)
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Callable[..., None] | None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """The `k` largest (or smallest) eigenvalues of A x = λ B x, A symmetric, and their vectors.

    X are vectors to begin with, iK a preconditioner, `niter` bounds the iterations (1000), and they
    end when all residuals are below `tol`, the root of the dtype's eps by default. Both of torch's
    methods are one here, "ortho". The gradient, without B, is exact at the eigenvectors, and takes
    all of A's; it asks for eigenvalues that are apart.

    >>> import undertow as ut
    >>> values, vectors = ut.lobpcg(ut.arange(1.0, 10.0).diag(), k=2)
    >>> values
    tensor([9.0000, 8.0000])
    """
    matrices("lobpcg", A, square=True)
    if A.is_complex():
        raise UnsupportedError("[lobpcg] is for real matrices; use ut.linalg.eigh for complex ones")
    if method not in (None, "ortho", "basic"):
        raise ArgumentError(f"[lobpcg] method must be 'ortho' or 'basic', got {method!r}")
    if tracker is not None:
        raise UnsupportedError("[lobpcg] tracker= is not supported; leave it out")
    rows = A.shape[-1]
    default = 1 if X is None else X.shape[-1]
    count = as_int("lobpcg", "k", default if k is None else k)
    width = as_int("lobpcg", "n", max(count, default) if n is None else n)
    if not 0 < count <= width or rows < 3 * width:
        raise ArgumentError(
            f"[lobpcg] takes matrices of at least three times as many rows as vectors, got {rows} "
            f"rows for k={count} and n={width}; ut.linalg.eigh takes all"
        )
    if X is not None and X.shape != (*A.shape[:-1], width):
        raise ShapeError(f"[lobpcg] X must have shape {(*A.shape[:-1], width)}, got {X.shape}")
    most = bool(largest is None or largest)
    if B is not None:
        matrices("lobpcg", B, "B", square=True)
        one_dtype("lobpcg", A, B)
        B = expand(B, A.shape)
    if B is not None and differentiated(A, B):
        raise UnsupportedError("[lobpcg] has no gradient with B; detach the matrices")
    if differentiated(A):  # so that the gradient is symmetric, and right to any order
        A = (A + A.mT) / 2
    bound = finfo(A.dtype).eps ** 0.5 if tol is None else float(tol)
    rounds = 1000 if niter is None or niter < 0 else as_int("lobpcg", "niter", niter)
    with no_grad():
        start = randn(*A.shape[:-1], width, dtype=A.dtype, device=A.device) if X is None else X
        given = [t.detach() for t in (A, start, B, iK) if t is not None]
        pairs = []
        for one in zip(
            *[flattened(expand(t, (*A.shape[:-2], *t.shape[-2:]))) for t in given], strict=True
        ):
            rest = list(one[2:])
            weight = rest.pop(0) if B is not None else None
            shortcut = rest.pop(0) if iK is not None else None
            pairs.append(_iterated(one[0], one[1], weight, shortcut, count, rounds, bound, most))
        values = reshaped(stack([v for v, _ in pairs]), (*A.shape[:-2], count))
        vectors = reshaped(stack([x for _, x in pairs]), (*A.shape[:-1], count))
        if A.ndim > 2:  # as in torch, where autocast shows only in a single matrix's vectors
            vectors = vectors.to(A.dtype)
    if B is not None:
        return values, vectors
    found: tuple[Tensor, Tensor] = apply(_lobpcg, (A, values, vectors), (most,))
    return found


def _iterated(
    a: Tensor,
    x: Tensor,
    b: Tensor | None,
    shortcut: Tensor | None,
    count: int,
    rounds: int,
    bound: float,
    largest: bool,
) -> tuple[Tensor, Tensor]:
    """Eigenpairs of one matrix: the best of the span of X, its residuals and its last steps."""
    width = x.shape[-1]
    sizes = a.norm(), a.new_ones(()) if b is None else b.norm()
    values, x = _best(a, b, x, width, largest)
    steps = x[:, :0]
    for _ in range(rounds):
        of_x = x if b is None else b @ x
        residual = a @ x - of_x * values
        scale = x.norm(dim=0) * (sizes[0] + values.abs() * sizes[1])
        small = residual.norm(dim=0) <= bound * scale
        if bool(small[:count].all()):
            break
        residual = residual if shortcut is None else shortcut @ residual
        values, new = _best(a, b, cat([x, residual, steps], -1), width, largest)
        steps = new - x @ (of_x.mT @ new)
        x = new
    return values[:count], x[:, :count]


def _best(a: Tensor, b: Tensor | None, span: Tensor, width: int, largest: bool) -> Any:
    """Rayleigh and Ritz: the extreme eigenpairs of A in the span of some columns."""
    span = span / span.norm(dim=0).clamp_min(finfo(a.dtype).tiny)
    if b is None:
        basis, triangle = linalg_qr(span)
        kept = triangle.diagonal().abs() > finfo(a.dtype).eps * 10
        kept[:width] = True
        basis = linalg_qr(basis[:, kept]).Q
    else:
        inner, turned = eigh(span.mT @ b @ span)
        kept = inner > inner[-1] * finfo(a.dtype).eps * 10
        kept[-width:] = True
        basis = span @ turned[:, kept]
        factor = cholesky(basis.mT @ b @ basis)
        basis = substitute(factor, basis.mT, False).mT
    values, inside = eigh(basis.mT @ a @ basis)
    if largest:
        values, inside = values.flip(-1), inside.flip(-1)
    return values[:width], basis @ inside[:, :width]
