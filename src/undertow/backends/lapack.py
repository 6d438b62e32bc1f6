"""Dense linear algebra on the host: NumPy's LAPACK, and what LAPACK has that NumPy does not show.

Each function takes NumPy arrays whose last two dimensions are matrices, all others a batch, and
returns a tuple of fresh arrays; `info` is LAPACK's, int32, 0 where all is well. See
`Backend.linalg`, which finds them in ROUTINES.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import LinAlgError
from .bunch_kaufman import flat, ldl, ldl_solve, size

Arrays = tuple[Any, ...]
_BLOCK = 32  # columns that are eliminated one by one before a product does the rest
_FEW = 32  # matrices: up to here lists are quicker than arrays over all of them
_LARGE = 128  # rows and columns from which on products are worth their panels


# Triangular factors ----------------------------------------------------------------------------
def cholesky(a: Any, upper: bool) -> Arrays:
    """The factor L of L Lᴴ, or its adjoint, of the triangle that is named; and info."""
    lower = _adjoint(a) if upper else a
    info = np.zeros(a.shape[:-2], np.int32)
    try:
        found = np.linalg.cholesky(lower)
        failed = np.isnan(np.diagonal(found, 0, -2, -1)).any()  # which LAPACK may leave unsaid
    except np.linalg.LinAlgError:
        failed = True
    if failed:
        found, info = _cholesky_by_columns(lower)
    return (np.ascontiguousarray(_adjoint(found)) if upper else found), info


def _cholesky_by_columns(a: Any) -> Arrays:
    """Of matrices of which some are not positive definite: what is found before that shows."""
    lead, n = a.shape[:-2], a.shape[-1]
    x = flat(np.tril(a))
    info = np.zeros(len(x), np.int32)
    for j in range(n):
        pivot = x[:, j, j].real - (np.abs(x[:, j, :j]) ** 2).sum(-1)
        bad = ~(pivot > 0) & (info == 0)
        info[bad] = j + 1
        good = info == 0
        root = np.sqrt(pivot[good])
        x[good, j, j] = root
        below = x[good, j + 1 :, j] - np.einsum(
            "bik,bk->bi", x[good, j + 1 :, :j], x[good, j, :j].conj()
        )
        x[good, j + 1 :, j] = below / root[:, None]
    return x.reshape(a.shape), info.reshape(lead)


def lu(a: Any, pivot: bool) -> Arrays:
    """L (below its diagonal of ones) and U in one matrix; pivots, counted from 1; info."""
    lead, (m, n) = a.shape[:-2], a.shape[-2:]
    least = min(m, n)
    x = flat(np.array(a))
    pivots = np.empty((len(x), least), np.int32)
    pivots[:] = np.arange(1, least + 1)
    info = np.zeros(len(x), np.int32)
    each = np.arange(len(x))
    for start in range(0, least, _BLOCK):
        stop = min(start + _BLOCK, least)
        for j in range(start, stop):
            if pivot:
                row = j + size(x[:, j:, j]).argmax(1)
                pivots[:, j] = row + 1
                held = x[:, j].copy()
                x[:, j] = x[each, row]
                x[each, row] = held
            head = x[:, j, j]
            zero = head == 0
            info[zero & (info == 0)] = j + 1
            x[:, j + 1 :, j] /= np.where(zero, 1, head)[:, None]
            x[:, j + 1 :, j + 1 : stop] -= x[:, j + 1 :, j, None] * x[:, j, None, j + 1 : stop]
        for j in range(start, stop):
            x[:, j + 1 : stop, stop:] -= x[:, j + 1 : stop, j, None] * x[:, j, None, stop:]
        x[:, stop:, stop:] -= x[:, stop:, start:stop] @ x[:, start:stop, stop:]
    return x.reshape(a.shape), pivots.reshape(*lead, least), info.reshape(lead)


def triangular(a: Any, b: Any, upper: bool, unit: bool) -> Arrays:
    """X of A X = B, where A is the triangle that is named, with a diagonal of ones if `unit`."""
    x = np.array(b)
    with np.errstate(all="ignore"):  # a zero on the diagonal gives infinities
        _substitute(a, x, upper, unit)
    return (x,)


def _substitute(a: Any, x: Any, upper: bool, unit: bool) -> None:
    """Solve in the memory of x: halves of large matrices, columns of small ones."""
    n = a.shape[-1]
    if n > _BLOCK:
        half = n // 2
        first, last = slice(0, half), slice(half, n)
        if upper:
            first, last = last, first
        _substitute(a[..., first, first], x[..., first, :], upper, unit)
        x[..., last, :] -= a[..., last, first] @ x[..., first, :]
        _substitute(a[..., last, last], x[..., last, :], upper, unit)
        return
    for j in reversed(range(n)) if upper else range(n):
        if not unit:
            x[..., j, :] /= a[..., j, j, None]
        rest = slice(0, j) if upper else slice(j + 1, n)
        x[..., rest, :] -= a[..., rest, j, None] * x[..., j, None, :]


# Linear systems --------------------------------------------------------------------------------
def solve(a: Any, b: Any) -> Arrays:
    """X of A X = B, and info: which pivot was zero."""
    try:
        return np.linalg.solve(a, b), np.zeros(a.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        factors, pivots, info = lu(a, True)
        x = triangular(factors, permuted(b, pivots), False, True)[0]
        return *triangular(factors, x, True, False), info


def permuted(b: Any, pivots: Any) -> Any:
    """The rows of B exchanged one after the other, as `lu` did with those of A."""
    return np.take_along_axis(b, row_order(pivots, b.shape[-2])[0][..., None], -2)


def row_order(pivots: Any, rows: int) -> Arrays:
    """Which row is where after the exchanges, and the permutation that brings them back."""
    exchanges = flat(pivots[..., None])
    order = np.empty((len(exchanges), rows), np.int64)
    order[:] = np.arange(rows)
    each = np.arange(len(order))
    if len(order) < _FEW:
        for number in each:
            order[number] = _exchanged(rows, exchanges[number, :, 0].tolist())
    else:
        for j in range(pivots.shape[-1]):
            row = exchanges[:, j, 0] - 1
            held = order[:, j].copy()
            order[:, j] = order[each, row]
            order[each, row] = held
    found = order.reshape(*pivots.shape[:-1], rows)
    return found, found.argsort(-1)


def _exchanged(rows: int, pivots: list[int]) -> list[int]:
    order = list(range(rows))
    for j, row in enumerate(pivots):
        order[j], order[row - 1] = order[row - 1], order[j]
    return order


def inv(a: Any) -> Arrays:
    """The inverse, and info: which pivot was zero."""
    try:
        return np.linalg.inv(a), np.zeros(a.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        identity = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
        return solve(a, identity)


def cofactors(a: Any) -> Arrays:
    """The conjugated derivative of det: det · A⁻ᴴ, which singular matrices have as well.

    Where an inverse would have lost half of the digits, the singular values give it: in the basis
    of their vectors it is the products of all but one.
    """
    inverse, info = inv(a)
    out = np.linalg.det(a).conj()[..., None, None] * _adjoint(inverse)
    sizes = [np.abs(m).sum(-1).max(-1, initial=0) for m in (a, inverse)]
    poor = ~(sizes[0] * sizes[1] < np.finfo(a.dtype).eps ** -0.5) | (info != 0)
    poor &= np.isfinite(a).all((-2, -1))
    if poor.any():
        u, s, vh = np.linalg.svd(a[poor])
        others = np.repeat(s[..., None, :], s.shape[-1], -2)
        others[..., range(s.shape[-1]), range(s.shape[-1])] = 1
        phase = np.linalg.det(u).conj() * np.linalg.det(vh).conj()
        products = others.prod(-1) * phase[..., None]
        out[poor] = (u * products[..., None, :]) @ vh
    return (out,)


def second_cofactors(a: Any, g: Any) -> Arrays:
    """The conjugated derivative of Σ g · conj(cofactors), from singular values alone.

    In the basis of the singular vectors the second derivatives of det are products of all singular
    values but two, so nothing is divided, and singular matrices have them as well.
    """
    out = np.full(a.shape, np.nan, a.dtype)
    finite = np.isfinite(a).all((-2, -1))
    u, s, vh = np.linalg.svd(a[finite])
    n = s.shape[-1]
    turned = _adjoint(u) @ g[finite] @ _adjoint(vh)
    diagonal = np.einsum("...ii->...i", turned)
    found = np.zeros_like(turned)
    for i in range(n):
        others = np.repeat(s[..., None, :], n, -2)  # row k: without i and k
        others[..., i] = others[..., range(n), range(n)] = 1
        products = others.prod(-1)
        products[..., i] = 0
        found[..., i, :] = -products * turned[..., :, i]
        found[..., i, i] = (products * diagonal).sum(-1)
    phase = (np.linalg.det(u) * np.linalg.det(vh)).conj()
    out[finite] = phase[..., None, None] * (u @ found.conj() @ vh)
    return (out,)


# Spectra ---------------------------------------------------------------------------------------
def _spectral(kind: str, compute: Callable[[], Any], a: Any) -> Any:
    """A routine that iterates: NaN and infinity, with which LAPACK may do anything, stay out."""
    if not np.isfinite(a).all():
        raise LinAlgError(
            f"[{kind}] the matrix has NaN or infinite elements, for which nothing converges; "
            "look for them with ut.isfinite"
        )
    try:
        return compute()
    except np.linalg.LinAlgError as error:
        raise LinAlgError(
            f"[{kind}] the algorithm did not converge for a matrix of shape {a.shape}: it is "
            "ill-conditioned, or has too many repeated values"
        ) from error


def _eig(a: Any) -> Arrays:
    values, vectors = _spectral("eig", lambda: np.linalg.eig(a), a)
    kind = np.result_type(a.dtype, np.complex64)
    return values.astype(kind, copy=False), vectors.astype(kind, copy=False)


def _eigvals(a: Any) -> Arrays:
    values = _spectral("eigvals", lambda: np.linalg.eigvals(a), a)
    return (values.astype(np.result_type(a.dtype, np.complex64), copy=False),)


def _side(upper: bool) -> Any:
    return "U" if upper else "L"


def _expm(a: Any) -> Arrays:
    """The exponential of matrices: Padé's approximant of degree 13, scaled and squared."""
    n = a.shape[-1]
    x = flat(a.astype(np.result_type(a.dtype, np.float64)))
    if not x.size:
        return (np.array(a),)
    norms = np.abs(x).sum(-2).max(-1)
    finite = np.isfinite(norms)
    halvings = np.zeros(len(x), np.int64)
    large = finite & (norms > _THETA)
    halvings[large] = np.ceil(np.log2(norms[large] / _THETA)).astype(np.int64)
    x = np.where(finite[:, None, None], x, 0) * (0.5**halvings)[:, None, None]
    b = _PADE
    identity = np.eye(n)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    odd = x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2
    odd = x @ (odd + b[1] * identity)
    even = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2
    even = even + b[0] * identity
    out = np.linalg.solve(even - odd, even + odd)
    for i in range(int(halvings.max())):
        again = halvings > i
        out[again] = out[again] @ out[again]
    out[~finite] = np.nan
    return (out.reshape(a.shape).astype(a.dtype),)


_THETA = 5.371920351148152  # the norm up to which the approximant is exact to float64's rounding
_PADE = [
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
]


# Orthogonal factors ----------------------------------------------------------------------------
def _qr(a: Any, mode: str) -> Arrays:
    if min(a.shape[-2:]) > _LARGE:
        return _qr_by_panels(a, mode)
    if mode == "r":
        return np.empty(0, a.dtype), np.linalg.qr(a, "r")
    return tuple(np.linalg.qr(a, "complete" if mode == "complete" else "reduced"))


def _qr_by_panels(a: Any, mode: str) -> Arrays:
    """QR of large matrices: panels by LAPACK, the rest by products.

    The reflections of a panel are I - V T Vᴴ. LAPACK's own blocks are as narrow, but what NumPy
    brings along takes several times as long with them, and computes float32 in float64.
    """
    m, n = a.shape[-2:]
    least = min(m, n)
    r = np.array(a)
    panels = []
    for start in range(0, least, _BLOCK):
        stop = min(start + _BLOCK, least)
        packed, tau = np.linalg.qr(r[..., start:, start:stop], "raw")
        packed = np.swapaxes(packed, -2, -1)
        v = np.tril(packed, -1)
        v[..., range(stop - start), range(stop - start)] = 1
        vh = _adjoint(v)
        # T⁻¹ = diag(1/tau) + the upper triangle of VᴴV; a tau may be 0
        factors = tau[..., None] * np.eye(stop - start, dtype=a.dtype)
        t = np.linalg.solve(
            np.eye(stop - start, dtype=a.dtype) + factors @ np.triu(vh @ v, 1), factors
        )
        r[..., start:, start:stop] = np.triu(packed)
        rest = r[..., start:, stop:]
        rest -= v @ (_adjoint(t) @ (vh @ rest))
        panels.append((start, v, t, vh))
    if mode == "r":
        return np.empty(0, a.dtype), r[..., :least, :].copy()
    width = m if mode == "complete" else least
    q = np.zeros((*a.shape[:-2], m, width), a.dtype)
    q[..., range(width), range(width)] = 1
    for start, v, t, vh in reversed(panels):
        rest = q[..., start:, start:]
        rest -= v @ (t @ (vh @ rest))
    return q, r[..., : m if mode == "complete" else least, :].copy()


def _geqrf(a: Any) -> Arrays:
    packed, tau = np.linalg.qr(a, "raw")
    return np.ascontiguousarray(np.swapaxes(packed, -2, -1)), tau


def _adjoint(a: Any) -> Any:
    return np.swapaxes(a, -2, -1).conj()


ROUTINES: dict[str, Callable[..., Arrays]] = {
    "cholesky": cholesky,
    "cofactors": cofactors,
    "det": lambda a: (np.asarray(np.linalg.det(a)),),
    "eig": _eig,
    "eigh": lambda a, upper: tuple(_spectral("eigh", lambda: np.linalg.eigh(a, _side(upper)), a)),
    "eigvals": _eigvals,
    "eigvalsh": lambda a, upper: (
        _spectral("eigvalsh", lambda: np.linalg.eigvalsh(a, _side(upper)), a),
    ),
    "expm": _expm,
    "geqrf": _geqrf,
    "inv": inv,
    "ldl": ldl,
    "ldl_solve": ldl_solve,
    "lu": lu,
    "qr": _qr,
    "row_order": row_order,
    "second_cofactors": second_cofactors,
    "slogdet": lambda a: tuple(map(np.asarray, np.linalg.slogdet(a))),
    "solve": solve,
    "svd": lambda a, full: tuple(_spectral("svd", lambda: np.linalg.svd(a, full), a)),
    "svdvals": lambda a: (_spectral("svd", lambda: np.linalg.svd(a, compute_uv=False), a),),
    "triangular": triangular,
}
