"""Questions about tensors that a transform wraps: here it wraps none."""

from __future__ import annotations

from typing import Any


def is_batchedtensor(tensor: Any) -> bool:
    """Whether `vmap` has wrapped a tensor: it wraps none.

    >>> import undertow as ut
    >>> is_batchedtensor(ut.ones(2))
    False
    """
    return False


is_legacy_batchedtensor = is_gradtrackingtensor = is_functionaltensor = is_batchedtensor
is_functorch_wrapped_tensor = is_batchedtensor


def peek_interpreter_stack() -> None:
    """The innermost transform that wraps tensors: none."""


def maybe_current_level() -> None:
    """The level of the innermost transform that wraps tensors: none."""


def get_unwrapped(tensor: Any) -> Any:
    """The tensor itself."""
    return tensor


maybe_get_level = maybe_get_bdim = lambda tensor: -1
