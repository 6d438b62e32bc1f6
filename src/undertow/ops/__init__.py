"""Every op, defined once: shape and dtype rule, kernel form, derivative, public name."""

from importlib import import_module
from pathlib import Path
from typing import Any

from .create import compatibility, conversion, creation, from_data  # noqa: F401
from .elementwise import (  # noqa: F401
    activation,
    arithmetic,
    comparison,
    complex_numbers,
    extremes,
    fake_quantize,
    float_parts,
    incomplete_gamma,
    integers,
    rounding,
    special,
    transcendental,
)
from .index import indexing, scatter, selection  # noqa: F401
from .linalg import (  # noqa: F401
    einsum,
    grouped,
    lobpcg,
    low_rank,
    matmul,
    matrix_functions,
    matrix_norms,
    orthogonal,
    pivoted,
    solving,
    spectra,
    triangular,
)
from .nn import (  # noqa: F401
    adaptive_pooling,
    attention,
    batch_norm,
    classification,
    composite,
    convolution,
    ctc,
    dropout,
    embedding,
    fractional_pooling,
    group_norm,
    linear_cross_entropy,
    losses,
    margin,
    multihead,
    native,
    normalisation,
    pooling,
    positional,
    positional_losses,
    recurrent,
    resampling,
    sampling,
    softmax,
    variants,
)
from .random import binomial, distributions, random  # noqa: F401
from .reduce import covariance, histograms, masked, reduction, scan, segments, sort, statistics  # noqa: F401
from .shape import (  # noqa: F401
    copies,
    diagonal,
    inplace_views,
    joining,
    movement,
    padding,
    raw_memory,
    rearrange,
    replacing,
    strided,
    unfolding,
)
from .signal import finite_differences, stft, windows  # noqa: F401


def __getattr__(name: str) -> Any:
    """`ops.aten` and the libraries of operators, as torch has them: see `compat._ops`."""
    if name.startswith("__") or (Path(__file__).parent / name).is_dir():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    operators = import_module(f"{__name__.partition('.')[0]}.compat._ops")
    found = operators.load_library if name == "load_library" else operators.namespace(name)
    globals()[name] = found
    return found
