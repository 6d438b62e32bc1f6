"""The state of an optimiser over rows, as one over whole parameters, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.modes import no_grad
from ...core.tensor import Tensor, wrap
from ...errors import ArgumentError
from .. import functions
from .module import units


def _rows(model: Any) -> dict[int, Any]:
    return {id(r.shard): (r, unit) for unit in units(model) for r in unit.rows}


def _parameters(optimizer: Any) -> list[Tensor]:
    return [p for g in optimizer.param_groups for p in g["params"]]


def optim_state_dict(model: Any, optimizer: Any) -> dict[str, Any]:
    """The state of an optimiser as it would be without `fully_shard`; all processes call it."""
    known, found = _rows(model), optimizer.state_dict()
    state = {}
    for number, values in sorted(found["state"].items()):
        p = _parameters(optimizer)[number]
        state[number] = dict(values)
        if id(p) not in known:
            continue
        r, unit = known[id(p)]
        for key, value in values.items():
            if isinstance(value, Tensor) and value.shape == p.shape and value.ndim:
                whole = wrap(np.empty(r.shape, value._array.dtype))
                own = value.detach()
                functions.all_gather(r.pieces(whole), own, unit.group, True, label=r.name).wait()
                state[number][key] = whole
    return {**found, "state": state}


def load_optim_state_dict(model: Any, optimizer: Any, state_dict: dict[str, Any]) -> None:
    """Take a whole state, of which this process keeps its rows; nothing is sent."""
    known, own, state = _rows(model), _parameters(optimizer), {}
    for number, values in state_dict["state"].items():
        if not 0 <= int(number) < len(own):
            raise ArgumentError(f"[load_optim_state_dict] there is no parameter {number}")
        r = known.get(id(own[int(number)]), (None, None))[0]
        with no_grad():
            state[int(number)] = {
                key: value[r.mine].clone()
                if r is not None and isinstance(value, Tensor) and tuple(value.shape) == r.shape
                else value
                for key, value in values.items()
            }
    optimizer.load_state_dict({**state_dict, "state": state})
