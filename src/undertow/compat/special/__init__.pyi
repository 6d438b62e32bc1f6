# Written by tools/stubs.py: run `make stubs` instead of editing it.
"""Special functions: torch's `special`, published by `undertow.ops`."""

from ...core.tensor import Tensor
from ...dtypes import DTypeLike, Number
from ...shapes import Ints

def zeta(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Hurwitz' zeta function, the sum of `(other + k)**-input` over k from 0."""

def bessel_j1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the first kind of order 1."""

def bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the first kind of order 0."""

def spherical_bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The spherical Bessel function of order 0, `sin(input) / input`."""

def bessel_y0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the second kind of order 0; -inf at zero, NaN below."""

def bessel_y1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the second kind of order 1; -inf at zero, NaN below."""

def i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 1, the derivative of `i0`."""

def i1e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`i1` scaled by `exp(-abs(input))`, which never overflows."""

def i0e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`i0` scaled by `exp(-abs(input))`; the gradient at its kink, zero, is 0."""

def modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the second kind of order 0; infinite at zero, NaN below."""

def modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the second kind of order 1; infinite at zero, NaN below."""

def scaled_modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`modified_bessel_k0` scaled by `exp(input)`."""

def scaled_modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`modified_bessel_k1` scaled by `exp(input)`."""

def airy_ai(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Airy's function Ai, the decaying solution of y'' = x y."""

def erfcx(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`exp(input**2) * erfc(input)`, which decays slowly where erfc underflows."""

def ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The probability that a standard normal number is below the element."""

def log_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`log(ndtr(input))`, also where that underflows."""

def ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `ndtr`: infinite at 0 and 1, NaN beyond."""

def entr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`-input * log(input)`, an entropy: 0 at zero, -inf below."""

def xlog1py(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`input * log1p(other)`, and 0 where `input` is 0, unless `other` is NaN."""

def chebyshev_polynomial_t(
    input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """Chebyshev's polynomial of the first kind of degree `n` at each element of `input`; 0 for n below 0."""

def chebyshev_polynomial_u(
    input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """Chebyshev's polynomial of the second kind of degree `n` at each element of `input`; 0 for n below 0."""

def chebyshev_polynomial_v(
    input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """Chebyshev's polynomial of the third kind of degree `n` at each element of `input`; 0 for n below 0."""

def chebyshev_polynomial_w(
    input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """Chebyshev's polynomial of the fourth kind of degree `n` at each element of `input`; 0 for n below 0."""

def shifted_chebyshev_polynomial_t(
    input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """`chebyshev_polynomial_t` of 2x - 1 of degree `n` at each element of `input`; 0 for n below 0."""

def shifted_chebyshev_polynomial_u(
    input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """`chebyshev_polynomial_u` of 2x - 1 of degree `n` at each element of `input`; 0 for n below 0."""

def shifted_chebyshev_polynomial_v(
    input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """`chebyshev_polynomial_v` of 2x - 1 of degree `n` at each element of `input`; 0 for n below 0."""

def shifted_chebyshev_polynomial_w(
    input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """`chebyshev_polynomial_w` of 2x - 1 of degree `n` at each element of `input`; 0 for n below 0."""

def hermite_polynomial_h(
    input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """Hermite's polynomial (leading coefficient 2**n) of degree `n` at each element of `input`; 0 for n below 0."""

def hermite_polynomial_he(
    input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """Hermite's polynomial (leading coefficient 1) of degree `n` at each element of `input`; 0 for n below 0."""

def laguerre_polynomial_l(
    input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """Laguerre's polynomial of degree `n` at each element of `input`; 0 for n below 0."""

def legendre_polynomial_p(
    input: Tensor | Number, n: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """Legendre's polynomial of degree `n` at each element of `input`; 0 for n below 0."""

def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of `lgamma`."""

def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The error function of each element."""

def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`1 - erf(input)`, accurate also where it is small."""

def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `erf`; infinite at -1 and 1, NaN beyond."""

def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """2 to the power of each element."""

def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`exp(input) - 1`, accurate also for small elements."""

def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""

def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`log(1 + input)`, accurate also for small elements."""

def log_softmax(input: Tensor, dim: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """`log(softmax(input, dim))`, accurate where the softmax itself would round to zero."""

def logit(input: Tensor, eps: float | None = None, *, out: Tensor | None = None) -> Tensor:
    """`log(input / (1 - input))`, the inverse of `sigmoid`; `eps` first clamps to eps, 1 - eps."""

def logsumexp(
    input: Tensor, dim: Ints, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """`log(sum(exp(input)))` over some dimensions, without overflow."""

def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of `digamma` of order `n`; of order 0, `digamma` itself."""

def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """The nearest integer, or multiple of `10 ** -decimals`; halves go to the even neighbour."""

def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`sin(pi * input) / (pi * input)`, and 1 at zero."""

def softmax(input: Tensor, dim: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """`exp(input)` divided by its sum along `dim`; never overflows."""

def xlogy(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`input * log(other)`, and 0 where `input` is 0, unless `other` is NaN."""

psi = digamma

def expit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`1 / (1 + exp(-input))`, elementwise."""

def gammaln(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""

def gammainc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularized lower incomplete gamma function P of `input` (a) and `other` (x)."""

def gammaincc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularized upper incomplete gamma function, 1 - `igamma`, accurate where it is small."""

modified_bessel_i0 = i0

def multigammaln(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension `p`."""

modified_bessel_i1 = i1
__all__ = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "sinc",
    "softmax",
    "spherical_bessel_j0",
    "xlog1py",
    "xlogy",
    "zeta",
]
