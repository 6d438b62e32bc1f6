"""Elementary functions as values of the loop IR, for vectors of any width, to 2 ulp."""

from __future__ import annotations

from collections.abc import Callable

from . import elementary_arith as arith
from .elementary_erf import erf
from .elementary_erf import one_plus_erf as one_plus_erf
from .elementary_exp import cosh, exp, exp2, expm1, sinh, tanh
from .elementary_inverse import acos, asin, atan, atan2
from .elementary_log import acosh, asinh, atanh, log, log1p, log2, log10
from .elementary_power import hypot, power
from .elementary_trig import cos, sin, tan
from .ir import Value

# By the name of the scalar primitive; floating arguments, all of one type.
FUNCTIONS: dict[str, Callable[..., Value]] = {
    "exp": exp,
    "exp2": exp2,
    "expm1": expm1,
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
    "erf": erf,
    "log": log,
    "log2": log2,
    "log10": log10,
    "log1p": log1p,
    "asinh": asinh,
    "acosh": acosh,
    "atanh": atanh,
    "sin": sin,
    "cos": cos,
    "tan": tan,
    "asin": asin,
    "acos": acos,
    "atan": atan,
    "atan2": atan2,
    "pow": power,
    "hypot": hypot,
    "fmod": arith.fmod,
    "mod": arith.mod,
    "floor_div": arith.floor_div,
    "sign": arith.sign,
    "fmax": arith.fmax,
    "fmin": arith.fmin,
    "angle": arith.angle,
    "isnan": arith.isnan,
    "isinf": arith.isinf,
    "isfinite": arith.isfinite,
    "signbit": arith.signbit,
}
# The same for integers.
INTEGER_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "floor_div": arith.int_floor_div,
    "mod": arith.int_mod,
    "fmod": arith.int_fmod,
    "pow": arith.int_power,
    "shift_left": arith.shift_left,
    "shift_right": arith.shift_right,
    "sign": arith.sign,
    "signbit": arith.int_signbit,
    "isfinite": arith.int_isfinite,
    "isnan": arith.isnan,
    "isinf": arith.isnan,
}
