"""The error function, its complement and its inverse as scalar expressions.

Note [fitted coefficients], also for gamma.py and bessel.py: every table was derived for this
library. The function, divided by the factors written out in the code, is interpolated at the
Chebyshev nodes of the stated interval by a polynomial or a quotient P/Q, solved in 80 digits and
rounded to float64. Tables run from the highest power down. A constant is subtracted where that
makes the quotient a small correction, whose rounding hardly shows. The same expression serves
float32: no threshold or constant leaves its range, and no step depends on the precision.
Accuracies are the worst of dense sweeps against 34-digit values, in float32 of the kernels: NumPy's
own exp and log have errors of 2.5 and 3.8 ulp there, which come on top.
"""

from __future__ import annotations

from math import inf

from .expr import Expr, call, polynomial, where

# erf(x)/x in x*x, |x| in [0, 1].
_ERF_CENTER = (
    5.957176147748911e-11,
    -1.1372848856791674e-09,
    1.4659775274047436e-08,
    -1.6350312701054695e-07,
    1.6461000484121368e-06,
    -1.4925595266831182e-05,
    0.0001205533111164271,
    -0.000854832698083379,
    0.0052239776248180145,
    -0.026866170645076792,
    0.11283791670954879,
    -0.3761263890318375,
    1.1283791670955126,
)

# (1 + 2x) exp(x*x) erfc(x) in q = 1 - 7/(x + 3.5), for x in [1, 6] and in [0.5, 28].
_ERF_TAIL = (
    8.598552718512145e-06,
    2.7990805443091402e-05,
    -4.2556681494383824e-05,
    -0.00012218780307223927,
    0.0005641672438094752,
    -0.00030223824570164244,
    -0.0042149983928362455,
    0.019099331467075886,
    -0.048823326703950384,
    0.08798315376321202,
    -0.11508959814415491,
    0.09751909515443212,
    -0.010555596332330852,
    -0.1400091801376246,
    1.2423492448711546,
)

_ERFC = (
    3.5367704244220635e-09,
    -6.155919817258998e-08,
    -1.6136929112351133e-08,
    5.593213043216329e-07,
    -3.459330237444781e-08,
    -3.7846870004578745e-06,
    2.322045011502968e-06,
    2.4247675823974918e-05,
    -4.277977851043828e-05,
    -0.00012150868000034695,
    0.0005643838253878016,
    -0.00030226854037508963,
    -0.0042150198211104205,
    0.01909933101317131,
    -0.048823325835148215,
    0.08798315382070322,
    -0.11508959815988616,
    0.09751909515337114,
    -0.010555596332223261,
    -0.14000918013762031,
    1.2423492448711544 - 1.25,
)

# erfinv(x)/x - 0.875 in 0.8125**2 - x*x, |x| in [0, 0.8125].
_INV_CENTER_P = (
    -0.0007183223527147236,
    -0.2272556807778966,
    -2.3923053375977363,
    -7.038555356849425,
    -6.8394149623724445,
    0.04493815114751208,
    3.5084882539120157,
    1.7975707808828982,
    0.2720454685059656,
)

_INV_CENTER_Q = (
    0.34822348462143526,
    5.5601252511089605,
    27.06194446282552,
    57.46050139315839,
    61.05394671807336,
    33.805275940113205,
    9.295056101648921,
    1.0,
)

# s - erfinv(x) in s - 1.25, where s = sqrt(-log(1 - x)), x in [0.8125, 1 - 2**-53].
_INV_TAIL_P = (
    4.4552859918085243e-10,
    8.4542047248383e-07,
    7.610400760015247e-05,
    0.001982616787455229,
    0.021652509765686716,
    0.12277405883898411,
    0.4216585505578659,
    0.9321758367869193,
    1.2973338398760061,
    1.0380801441658065,
    0.36283926932148114,
)

_INV_TAIL_Q = (
    2.6702226967321913e-07,
    3.314536943801984e-05,
    0.001134275806934155,
    0.016251074278844205,
    0.12083312961975091,
    0.539913499646397,
    1.5776688647520345,
    3.076513511258831,
    3.8934626285368568,
    2.9168436211783706,
    1.0,
)


def erf(x: Expr) -> Expr:
    """The error function, 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x: a primitive."""
    return call("erf", x)


def erf_formula(x: Expr) -> Expr:
    """The error function of other primitives, for NumPy, which has none.

    An odd polynomial for |x| < 1, beyond it 1 - erfc(|x|) with a shorter fit than `erfc` needs,
    since only its absolute error shows. Worst error 1.7 ulp in float64, 2.7 in float32.
    """
    a = call("minimum", abs(x), 6.0)  # 1 - erf(6) is below half an ulp of 1
    tail = 1.0 - call("exp", -(a * a)) * _scaled_erfc(a, _ERF_TAIL)
    return where(a < 1.0, _erf_center(x), call("copysign", tail, x))


def erfc(x: Expr) -> Expr:
    """The complement 1 - erf(x), accurate in relative terms until it underflows.

    Shepherd and Laframboise's observation that (1 + 2x) exp(x*x) erfc(x) is nearly constant on
    the whole half line gives one polynomial for x >= 1/2; erfc(-x) = 2 - erfc(x). Lest the rounding
    of x*x be amplified by exp, x*x is a short number s and the small rest e, found without error
    from a short h near x, as in Cody's routine, and exp(-e) is 1 - e + e*e/2. Worst error
    2.8 ulp in float64, 3.2 in float32.
    """
    a = call("minimum", abs(x), 28.0)  # erfc(28) is zero
    s = call("rint", a * a * 131072.0) * 2.0**-17
    h = call("rint", a * 256.0) * 0.00390625
    e = (h * h - s) + (a - h) * (a + h)
    divisor = 1.0 + 2.0 * a
    e = e + (2.0 * a - (divisor - 1.0)) / divisor  # what rounding took from the divisor
    series = 1.25 + polynomial(1.0 - 7.0 / (a + 3.5), _ERFC)  # 1.25 is exact in float32
    scaled = series / divisor
    tail = (scaled - scaled * (e - 0.5 * e * e)) * call("exp", -s)
    outer = where(x < 0.0, 2.0 - tail, tail)
    return where(a < 0.5, 1.0 - _erf_center(x), outer)


def _erf_center(x: Expr) -> Expr:
    """erf(x) for |x| <= 1."""
    return x * polynomial(x * x, _ERF_CENTER)


def _scaled_erfc(a: Expr, table: tuple[float, ...]) -> Expr:
    """exp(a*a) erfc(a) for a >= 0."""
    return polynomial(1.0 - 7.0 / (a + 3.5), table) / (1.0 + 2.0 * a)


def erfinv(x: Expr) -> Expr:
    """The inverse of `erf`: infinite at -1 and 1, NaN beyond.

    As in Wichura's algorithm AS 241, a quotient in x*x for the middle and one in
    sqrt(-log(1 - |x|)) for the tails; float arguments end at 1 - 2**-53, so one tail suffices.
    Worst error 2.8 ulp in float64 and float32.
    """
    a = abs(x)
    middle = a < 0.8125
    r = 0.66015625 - x * x
    s = call("sqrt", -call("log", 1.0 - a))
    u = s - 1.25
    above = where(middle, polynomial(r, _INV_CENTER_P), polynomial(u, _INV_TAIL_P))
    below = where(middle, polynomial(r, _INV_CENTER_Q), polynomial(u, _INV_TAIL_Q))
    ratio = above / below
    value = where(middle, x * (0.875 + ratio), call("copysign", s - ratio, x))
    return where(call("eq", a, 1.0), x * inf, value)


def erfinv_center(x: Expr) -> Expr:
    """`erfinv` for |x| < 0.8125."""
    r = 0.66015625 - x * x
    return x * (0.875 + call("div", polynomial(r, _INV_CENTER_P), polynomial(r, _INV_CENTER_Q)))
