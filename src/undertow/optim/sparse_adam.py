"""SparseAdam, which needs what is not there."""

from __future__ import annotations

from typing import Any

from ..errors import UnsupportedError
from .optimizer import Optimizer


class SparseAdam(Optimizer):
    """Adam for sparse gradients; there are none here, so that making one is an error.

    >>> import undertow as ut
    >>> ut.optim.SparseAdam([ut.ones(2, requires_grad=True)])
    Traceback (most recent call last):
    undertow.errors.UnsupportedError: [SparseAdam] there are no sparse tensors, and so no ...
    """

    def __init__(self, params: Any, *args: Any, **kwargs: Any) -> None:
        raise UnsupportedError(
            "[SparseAdam] there are no sparse tensors, and so no sparse gradients; use Adam, which "
            "changes every row of an embedding"
        )
