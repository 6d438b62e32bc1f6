"""Samples of gamma variables, as logarithms, with their derivative in the concentration.

Note [implicit gradients]
A sample x of Gamma(a, 1) is where the cdf P(a, x) has a value that does not depend on a, so
dx/da = -(dP/da) / p(x), whatever way it was drawn. With P = x^a e^-x Σ x^n / Γ(a + n + 1),
    d log x / da = -Σ t_n (log x - ψ(a + n + 1)),   t_n = x^n / (a (a + 1) … (a + n)),
which needs no special function but one ψ. Terms of both signs cancel in the upper tail: the
relative error is about 1e-16 / Q(a, x), where Q is the probability of a larger sample. From a = 100
on the quantile's expansion in powers of a (Cornish and Fisher's) is shorter, and exact to 1e-7.
Both are written in ops, so there are derivatives of any order. Logarithms do not underflow where
the samples of a small concentration do.
"""

from __future__ import annotations

from typing import Any

from ..autograd import Function
from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..dtypes import float64
from ..errors import UnsupportedError
from ..ops.elementwise.comparison import where
from ..ops.random.random import rand, randn

LARGE = 100.0


class _LogGamma(Function):
    """log of a standard gamma sample; see Note [implicit gradients]."""

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        drawn = _draw(a.detach().double()).to(a.dtype)
        ctx.save_for_backward(a, drawn)
        return drawn

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        a, drawn = ctx.saved_tensors
        return g * slope(a.double(), drawn.double()).to(g.dtype)


def log_standard_gamma(a: Tensor) -> Tensor:
    """The logarithm of a sample of Gamma(a, 1) for each concentration, differentiable in a."""
    drawn: Tensor = _LogGamma.apply(a)
    return drawn


def standard_gamma(a: Tensor) -> Tensor:
    """A sample of Gamma(a, 1) for each concentration, differentiable in it."""
    return log_standard_gamma(a).exp()


def _draw(a: Tensor) -> Tensor:
    """Marsaglia and Tsang's rejection (2000), in logarithms."""
    flat = a.reshape(-1)
    with no_grad():
        d = where(flat < 1, flat + 1, flat) - 1 / 3
        c = (9 * d).rsqrt()
        found = d.log()
        # The places that have no sample yet; nearly all have one after the first round.
        waiting = (flat == flat).nonzero().reshape(-1)
        while waiting.numel():
            dw = d[waiting]
            z = randn(waiting.shape, dtype=float64, device=a.device)
            u = rand(waiting.shape, dtype=float64, device=a.device)
            root = 1 + c[waiting] * z
            log_v = 3 * root.clamp(min=1e-300).log()
            bound = 0.5 * z * z + dw * (1 - log_v.exp() + log_v)
            accepted = (root > 0) & ((1 - u).log() < bound)
            places = waiting[accepted]
            found[places] = d[places].log() + log_v[accepted]
            waiting = waiting[~accepted]
        # Below 1: x u^(1/a), of an x with one more.
        u = 1 - rand(flat.shape, dtype=float64, device=a.device)
        found = where(flat < 1, found + u.log() / flat, found)
    return found.reshape(a.shape)


def slope(a: Tensor, log_x: Tensor) -> Tensor:
    """d log x / da at a fixed value of the cdf, in float64; see Note [implicit gradients]."""
    if not a.numel():
        return a * 0
    largest = float(a.detach().max())
    if float(a.detach().min()) >= LARGE:
        return _expanded(a, log_x)
    by_series = _series(a.clamp(max=LARGE), where(a < LARGE, log_x, a.log()))
    if largest < LARGE:
        return by_series
    far = where(a < LARGE, a * 0 + LARGE, a)
    return where(a < LARGE, by_series, _expanded(far, where(a < LARGE, far.log(), log_x)))


def _series(a: Tensor, log_x: Tensor) -> Tensor:
    x = log_x.exp()
    rest = log_x - (a + 1).digamma()
    term = 1 / a
    total = term * rest
    n = 0
    while n < 2000:
        n += 1
        rest = rest - 1 / (a + n)
        term = term * x / (a + n)
        total = total + term * rest
        if n % 8 == 0:
            with no_grad():
                falling = (a + n > 2 * x).all()
                small = (term * rest).abs() <= 1e-18 * total.abs()
                if bool(falling) and bool(small.all()):
                    break
    return -total


# x = a + z √a + Σ c_k(z) a^(-k/2), z the standard normal quantile: coefficients of c_k in z.
_CORNISH_FISHER: tuple[tuple[float, ...], ...] = (
    (-1 / 3, 0, 1 / 3),
    (0, -7 / 36, 0, 1 / 36),
    (16 / 810, 0, -7 / 810, 0, -3 / 810),
    (0, -433 / 38880, 0, 256 / 38880, 0, 9 / 38880),
    (1472 / 204120, 0, -923 / 204120, 0, -243 / 204120, 0, 12 / 204120),
)


def _expanded(a: Tensor, log_x: Tensor) -> Tensor:
    x = log_x.exp()
    root = a.sqrt()
    # The cube root of a gamma variable is nearly normal (Wilson and Hilferty): where to begin.
    z = ((log_x - a.log()).div(3).exp() - 1 + 1 / (9 * a)) * 3 * root
    for _ in range(3):  # Newton's way to the z of this x
        value, by_z = a + z * root, root
        for k, coefficients in enumerate(_CORNISH_FISHER):
            scale = root ** (-k)
            value = value + _polynomial(coefficients, z) * scale
            slopes = tuple(i * c for i, c in enumerate(coefficients))[1:]
            by_z = by_z + _polynomial(slopes, z) * scale
        z = z - (value - x) / by_z
    by_a = 1 + z / (2 * root)
    for k, coefficients in enumerate(_CORNISH_FISHER):
        by_a = by_a - _polynomial(coefficients, z) * (k / 2) * root ** (-k - 2)
    return by_a / x


def _polynomial(coefficients: tuple[float, ...], z: Tensor) -> Tensor:
    total = z * 0
    for c in reversed(coefficients):
        total = total * z + c
    return total


def _sample_dirichlet(input: Tensor, generator: Any = None) -> Tensor:
    """Samples of Dirichlet distributions with these concentrations along the last dimension.

    They have gradients, as `Dirichlet.rsample` has (in torch a backward is an error).

    >>> import undertow as ut
    >>> bool((ut._sample_dirichlet(ut.ones(4, 3)).sum(-1) - 1).abs().max() < 1e-6)
    True
    """
    if generator is not None:
        raise UnsupportedError(
            "[_sample_dirichlet] draws from the default generator; seed it with ut.manual_seed"
        )
    drawn: Tensor = log_standard_gamma(input).softmax(-1)
    return drawn
