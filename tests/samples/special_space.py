"""Samples for `ut.special`: ops/bessel, normal, incomplete_gamma and orthogonal_polynomials."""

from __future__ import annotations

from math import inf, nan

import mpmath as mp
import numpy as np

from op_samples import Bad, Const, S, arr, ints, op, positive, singular


def exact(f):
    """A function of mpmath, in 25 digits, as one of arrays."""

    def every(*args):
        wide = np.broadcast_arrays(*(np.asarray(a, float) for a in args))
        with mp.workdps(25):
            rows = zip(*(a.ravel().tolist() for a in wide), strict=True)
            found = [float(mp.re(f(*map(mp.mpf, row)))) for row in rows]
        return np.array(found).reshape(wide[0].shape)

    return every


def unary(name, f, low, high, ends, torch=True):
    """Elements between low and high, and values at the ends (inf, -inf, 0 …)."""

    def value(x):
        if x != x:
            return nan
        return ends[float(x)] if float(x) in ends else f(x)

    reference = exact(value)

    def make(*shape, seed=0):
        return arr(*shape, seed=seed, low=low, high=high)

    samples = [
        S(make(3, 4)),
        S(make()),
        S(make(0, 3)),
        S(make(4, 3).T[:, ::2]),
        S(Const([*ends, nan])),
        S(ints(3, low=1, high=3)) if name != "special.ndtri" else S(make(2)),
    ]
    more = {"rtol": 1e-6, "method": False, "inplace": False}
    # torch's Bessel and Airy functions are right to 1e-6, and not differentiable
    op(name, reference, samples, torch="same" if torch else None, **more)


none = {"torch": False}
unary("special.bessel_j0", mp.j0, -12, 12, {0.0: 1.0, inf: 0.0, -inf: 0.0}, **none)
unary("special.bessel_j1", mp.j1, -12, 12, {0.0: 0.0, inf: 0.0, -inf: 0.0}, **none)
unary("special.bessel_y0", lambda x: mp.bessely(0, x), 0.3, 12, {0.0: -inf, -1.0: nan}, **none)
unary("special.bessel_y1", lambda x: mp.bessely(1, x), 0.3, 12, {0.0: -inf, -1.0: nan}, **none)
unary("special.airy_ai", mp.airyai, -8, 5, {inf: 0.0, 0.0: 0.3550280538878172}, **none)
unary("special.spherical_bessel_j0", mp.sinc, -9, 9, {0.0: 1.0, inf: 0.0}, **none)
unary("special.i1", lambda x: mp.besseli(1, x), -10, 10, {0.0: 0.0})
for n in (0, 1):
    unary(
        f"special.i{n}e",
        lambda x, n=n: mp.besseli(n, x) * mp.exp(-abs(x)),
        0.2,
        12,
        {0.0: 1.0 - n, inf: 0.0, -inf: 0.0},
    )
    ends = {0.0: inf, inf: 0.0, -1.0: nan}
    unary(
        f"special.modified_bessel_k{n}", lambda x, n=n: mp.besselk(n, x), 0.3, 6, ends, torch=False
    )
    unary(
        f"special.scaled_modified_bessel_k{n}",
        lambda x, n=n: mp.besselk(n, x) * mp.exp(x),
        0.3,
        6,
        ends,
        torch=False,
    )
unary("special.erfcx", lambda x: mp.exp(x * x) * mp.erfc(x), -2, 6, {inf: 0.0, -inf: inf, 0.0: 1.0})
unary("special.ndtr", mp.ncdf, -4, 4, {inf: 1.0, -inf: 0.0, 0.0: 0.5})
unary("special.log_ndtr", lambda x: mp.log(mp.ncdf(x)), -9, 4, {inf: 0.0, -inf: -inf})
unary(
    "special.ndtri",
    lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1),
    0.02,
    0.98,
    {0.0: -inf, 1.0: inf, -0.5: nan, 2.0: nan},
)
unary("special.entr", lambda x: -x * mp.log(x), 0.2, 3, {0.0: 0.0, inf: -inf, -1.0: -inf})
singular("special.bessel_j0", S(np.array([0.0, 7.0])), torch=False)
singular("special.bessel_j1", S(np.array([0.0, 2.0, 8.5])), torch=False)
singular("special.airy_ai", S(np.array([0.0, 1.0, -2.1])), torch=False)
singular("special.spherical_bessel_j0", S(np.array([0.0, 1e-9])), torch=False)
singular("special.i1", S(np.array([0.0])))

op(
    "special.xlog1py",
    lambda a, b: np.where(a == 0, 0, a * np.log1p(np.where(a == 0, 0, b))),
    [
        S(arr(3, 4), positive(4, seed=1)),
        S(arr(2), 0.5),
        S(2.0, positive(3)),
        S(Const([0.0, 0.0, 1.0]), Const([-1.0, inf, 3.0])),
        S(ints(3), ints(3, low=0, high=5)),
    ],
    method=False,
    inplace=False,
)


def lower(a, x):
    return mp.gammainc(a, 0, x, regularized=True)


def upper(a, x):
    return mp.gammainc(a, x, mp.inf, regularized=True)


gammas = [
    S(np.array([0.3, 2.0, 6.5, 30.0]), np.array([0.2, 3.5, 4.0, 41.0])),
    S(positive(2, 1), positive(3, seed=1)),
    S(positive(0), positive(0)),
    S(np.array([0.05, 0.4]), Const([0.3, 2.0])),
]
edges = S(
    Const([1.0, 0.0, 0.0, 2.0, inf, inf, -1.0, 1.0]),
    Const([0.0, 1.0, 0.0, inf, 1.0, inf, 1.0, -1.0]),
)
for name, f, at in (
    ("igamma", lower, [0, 1, nan, 1, 0, nan, nan, nan]),
    ("igammac", upper, [1, 0, nan, 0, 1, nan, nan, nan]),
):
    op(
        name,
        lambda a, x, f=f, at=at: np.array(at) if np.isinf(x).any() else exact(f)(a, x),
        [*gammas, edges],
        torch_grad=False,
        bad=[Bad(S(ints(2), ints(2)), TypeError, rf"\[{name}\].*int64")],
    )
    # torch has no gradient in a
    singular(name, S(Const([1.0, 2.0]), np.array([0.0, 0.0])), torch=False)
op(
    "mvlgamma",
    lambda x, p: (
        p * (p - 1) / 4 * np.log(np.pi)
        + sum(exact(lambda v: mp.log(abs(mp.gamma(v))))(x - j / 2) for j in range(p))
    ),
    [S(positive(3, 2) + 1, 3), S(positive(), 1), S(positive(0), 2), S(np.array([0.4, 0.2]), 2)],
    bad=[Bad(S(positive(2), 0), ValueError, r"\[mvlgamma\] p must be at least 1, got 0")],
)


def zeta(s, q):
    """Hurwitz' zeta, or what it is where it has no value."""
    if s <= 1 or q <= 0:
        return nan if s < 1 else inf
    return mp.zeta(s, q) if s < inf else float(q) ** -inf


op(
    "special.zeta",
    exact(zeta),
    [
        S(positive(3, 2) + 1.5, positive(2, seed=1)),
        S(positive(2) + 2, 1.0),
        S(Const([1.0, 0.5, 2.0, 2.0]), Const([2.0, 2.0, 0.0, -1.0])),
        S(Const([inf, inf]), Const([1.0, 0.5])),
    ],
    torch_grad=False,
    method=False,
    inplace=False,
)

POLYNOMIALS = {
    "chebyshev_polynomial_t": mp.chebyt,
    "chebyshev_polynomial_u": mp.chebyu,
    "chebyshev_polynomial_v": lambda n, x: mp.chebyu(n, x) - (mp.chebyu(n - 1, x) if n else 0),
    "chebyshev_polynomial_w": lambda n, x: mp.chebyu(n, x) + (mp.chebyu(n - 1, x) if n else 0),
    "hermite_polynomial_h": mp.hermite,
    "hermite_polynomial_he": lambda n, x: mp.hermite(n, x / mp.sqrt(2)) / mp.sqrt(2) ** n,
    "laguerre_polynomial_l": lambda n, x: mp.laguerre(n, 0, x),
    "legendre_polynomial_p": mp.legendre,
}
POLYNOMIALS |= {
    f"shifted_{name}": lambda n, x, f=f: f(n, 2 * x - 1)
    for name, f in POLYNOMIALS.items()
    if "chebyshev" in name
}
for name, f in POLYNOMIALS.items():
    op(
        f"special.{name}",
        exact(lambda x, n, f=f: 0.0 if n < 0 else f(int(n), x)),
        [
            S(arr(2, 3), 3),
            S(arr(4), np.array([0, 1, 2, 5])),
            S(arr(2, 1), Const([4.0, -1.0, 3.7])) if "_t" not in name else S(arr(1), Const([6.0])),
            S(0.3, Const([0.0, 1.0, 4.0])),
            S(arr(0), 2),
        ],
        torch_grad=False,
        method=False,
        inplace=False,
        bad=[Bad(S(0.5, 2), TypeError, r"expects a Tensor")],
    )
