"""The Python array API standard, 2024.12: `Tensor.__array_namespace__()` gives this namespace.

Libraries that are written for the standard (SciPy, scikit-learn) work with tensors through it, and
gradients flow where their code is differentiable. Tensors and devices are Undertow's own; what
differs from the plain module are names, signatures, and the standard's promotion. docs/array_api.md
lists where it departs from the standard.

>>> import undertow as ut
>>> x = ut.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
>>> xp = x.__array_namespace__()
>>> xp.mean(xp.permute_dims(x, (1, 0)), axis=1)
tensor([2.0000, 3.5000], grad_fn=<MeanBackward0>)
"""

from importlib import import_module
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi
from typing import Any

import undertow as ut

from ...dtypes import bool as bool
from ...dtypes import complex64 as complex64
from ...dtypes import complex128 as complex128
from ...dtypes import float32 as float32
from ...dtypes import float64 as float64
from ...dtypes import int8 as int8
from ...dtypes import int16 as int16
from ...dtypes import int32 as int32
from ...dtypes import int64 as int64
from ...dtypes import uint8 as uint8
from ...dtypes import uint16 as uint16
from ...dtypes import uint32 as uint32
from ...dtypes import uint64 as uint64
from .creation import *  # noqa: F403
from .data_types import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .info import *  # noqa: F403
from .manipulation import *  # noqa: F403
from .products import *  # noqa: F403
from .searching import *  # noqa: F403
from .statistics import *  # noqa: F403

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
