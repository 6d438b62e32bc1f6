"""Nested states as flat ones: a path to every tensor and every plain value."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ...core.tensor import Tensor
from ...errors import DTypeError, UnsupportedError


def opened(state: Any) -> Any:
    """A state in which objects that have a `state_dict` are that."""
    if isinstance(state, Tensor):
        return state
    if isinstance(state, dict):
        return {key: opened(value) for key, value in state.items()}
    if hasattr(state, "state_dict") and hasattr(state, "load_state_dict"):
        _refuse_rows(state)
        return opened(state.state_dict())
    if isinstance(state, (list, tuple)):
        return [opened(value) for value in state]
    return state


def _refuse_rows(state: Any) -> None:
    """An optimiser of `fully_shard` has other tensors in every process, under the same names."""
    for group in getattr(state, "param_groups", ()):
        if any(hasattr(p, "_rows_of") for p in group["params"]):
            raise UnsupportedError(
                "[checkpoint] this optimiser has some rows of its parameters only; save "
                "fsdp.optim_state_dict(model, optimizer), and load it into that"
            )


def flat(state: Any, path: str = "") -> dict[str, Any]:
    """Tensors and plain values by path; the parts of a path are JSON, with slashes between."""
    if isinstance(state, (dict, list, tuple)) and len(state):
        items = state.items() if isinstance(state, dict) else enumerate(state)
        found: dict[str, Any] = {}
        for key, value in items:
            found |= flat(value, f"{path}/{json.dumps(key)}")
        return found
    if not isinstance(state, (Tensor, dict, list, tuple, str, int, float, type(None))):
        raise DTypeError(
            f"[save] a checkpoint holds tensors, numbers, text, lists and dicts, got "
            f"{type(state).__name__} at {path or 'the top'}"
        )
    return {path: state}


def filled(state: Any, value: Callable[[str, Any], Any], path: str = "") -> Any:
    """The state with new values; tensors are filled in place, dicts and objects are kept."""
    if isinstance(state, dict) and state:
        for key in state:
            state[key] = filled(state[key], value, f"{path}/{json.dumps(key)}")
        return state
    if isinstance(state, (list, tuple)) and len(state):
        new = [filled(v, value, f"{path}/{json.dumps(i)}") for i, v in enumerate(state)]
        return new if isinstance(state, list) else tuple(new)
    if not isinstance(state, Tensor) and hasattr(state, "load_state_dict"):
        _refuse_rows(state)
        own = state.state_dict()
        state.load_state_dict(filled(own, value, path))
        return state
    return value(path, state)
