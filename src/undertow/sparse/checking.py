"""Checks of sparse tensors: that their parts fit, and gradients with respect to them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from ..core.tensor import Tensor
from .coo import SparseCOO
from .tensor import SparseTensor


class check_sparse_tensor_invariants:
    """Whether constructors check that positions fit the shape. They always do, in any state.

    What is set is kept, as a function, in a `with` block or as a decorator.

    >>> import undertow as ut
    >>> with ut.sparse.check_sparse_tensor_invariants(True):
    ...     print(ut.sparse.check_sparse_tensor_invariants.is_enabled())
    True
    """

    _enabled = False

    def __init__(self, enable: bool = True) -> None:
        self._wanted = enable
        self._before: list[bool] = []

    @staticmethod
    def is_enabled() -> bool:
        """What was set last."""
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable() -> None:
        """Set it to True."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        """Set it to False."""
        check_sparse_tensor_invariants._enabled = False

    def __enter__(self) -> None:
        self._before.append(self.is_enabled())
        check_sparse_tensor_invariants._enabled = self._wanted

    def __exit__(self, *error: object) -> None:
        check_sparse_tensor_invariants._enabled = self._before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with check_sparse_tensor_invariants(self._wanted):
                return function(*args, **kwargs)

        return wrapped


def as_sparse_gradcheck(gradcheck: Callable[..., Any]) -> Callable[..., Any]:
    """`gradcheck` that takes sparse tensors: their values are changed, at their positions.

    >>> import undertow as ut
    >>> check = ut.sparse.as_sparse_gradcheck(ut.autograd.gradcheck)
    >>> s = ut.eye(3, dtype=ut.float64).to_sparse().requires_grad_()
    >>> check(lambda s: (s * 2).to_dense().sin(), (s,))
    True
    """

    @functools.wraps(gradcheck)
    def checked(func: Callable[..., Any], inputs: Any, **kwargs: Any) -> Any:
        kwargs.pop("masked", None)
        given = [inputs] if isinstance(inputs, (Tensor, SparseTensor)) else list(inputs)
        given = [x.coalesce() if isinstance(x, SparseCOO) else x for x in given]

        def dense(*values: Any) -> Any:
            made = [
                x._with(v) if isinstance(x, SparseTensor) else v
                for x, v in zip(given, values, strict=True)
            ]
            found = func(*made)
            if isinstance(found, Iterable) and not isinstance(found, (Tensor, SparseTensor)):
                return tuple(_dense(f) for f in found)
            return _dense(found)

        leaves = [
            x._stored.detach().requires_grad_(x.requires_grad) if isinstance(x, SparseTensor) else x
            for x in given
        ]
        return gradcheck(dense, tuple(leaves), **kwargs)

    return checked


def _dense(x: Any) -> Any:
    return x.to_dense() if isinstance(x, SparseTensor) else x
