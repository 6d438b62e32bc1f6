"""The Python array API standard, 2024.12: `Tensor.__array_namespace__()` gives this namespace.

Libraries that are written for the standard (SciPy, scikit-learn) work with tensors through it, and
gradients flow where their code is differentiable. Tensors and devices are Undertow's own; what
differs from the plain module are names, signatures, and the standard's promotion. docs/array_api.md
lists where it departs from the standard.

>>> import undertow as ut
>>> x = ut.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
>>> xp = x.__array_namespace__()
>>> xp.mean(xp.permute_dims(x, (1, 0)), axis=1)
tensor([2.0000, 3.5000], grad_fn=<MeanBackward>)
"""

from importlib import import_module
from math import e, inf, nan, pi
from typing import Any

import undertow as ut

from ..dtypes import bool, complex64, complex128, float32, float64, int8, int16, int32, int64, uint8
from .creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from .data_types import astype, broadcast_arrays, can_cast, finfo, iinfo, isdtype, result_type
from .elementwise import (
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    ceil,
    clip,
    conj,
    copysign,
    cos,
    cosh,
    divide,
    equal,
    exp,
    expm1,
    floor,
    floor_divide,
    greater,
    greater_equal,
    hypot,
    imag,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    positive,
    pow,
    real,
    reciprocal,
    remainder,
    round,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    trunc,
)
from .info import __array_namespace_info__
from .manipulation import (
    broadcast_to,
    concat,
    expand_dims,
    flip,
    matrix_transpose,
    moveaxis,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    tile,
    unstack,
)
from .products import matmul, tensordot, vecdot
from .searching import (
    argmax,
    argmin,
    argsort,
    nonzero,
    searchsorted,
    sort,
    take,
    take_along_axis,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    where,
)
from .statistics import (
    all,
    any,
    count_nonzero,
    cumulative_prod,
    cumulative_sum,
    diff,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)

__array_api_version__ = "2024.12"
VERSIONS = ("2021.12", "2022.12", "2023.12", __array_api_version__)  # each contains those before
newaxis = None

# Extensions of the standard, loaded when somebody asks for them; each needs a module of ours.
_EXTENSIONS = ("fft", "linalg")


def __getattr__(name: str) -> Any:
    """An extension, if there is what it is made of."""
    if name not in _EXTENSIONS or not hasattr(ut, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f".{name}", __name__)


__all__ = [
    name for name in globals() if not name.startswith("_") and name not in ("ut", "import_module")
]
