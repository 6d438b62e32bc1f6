"""Questions about the backward pass that is running, and about what nodes have saved."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary, ref

from ...autograd.engine import Run, running
from ...core.modes import current
from ...core.node import AccumulateGrad, Node
from ...core.saved import SavedTensor
from ...core.tensor import Tensor, share
from ...errors import ArgumentError, GradientError

__all__ = ["SavedTensor"]

_ids: WeakKeyDictionary[Run, int] = WeakKeyDictionary()
_next = count()


class _WeakTensorRef:
    """Knows a tensor without keeping it."""

    def __init__(self, tensor: Tensor) -> None:
        self._ref = ref(tensor)

    def expired(self) -> bool:
        """Whether the tensor is gone."""
        return self._ref() is None


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether saved-tensor hooks may be entered."""
    return current().refuse is None


def _saved_tensors_hooks_get_disabled_error_message() -> str | None:
    """With which message they may not."""
    return current().refuse


def _get_current_graph_task_keep_graph() -> bool:
    """Whether the backward pass that is running keeps the graph; True outside of one."""
    run = running.get()
    return run is None or run.retain_graph


def _current_graph_task_id() -> int:
    """A number of the backward pass that is running; -1 outside of one."""
    run = running.get()
    return -1 if run is None else _ids.setdefault(run, next(_next))


def _will_engine_execute_node(node: Node) -> bool:
    """Whether the backward pass that is running comes to a node."""
    run = running.get()
    if run is None:
        raise GradientError("[_will_engine_execute_node] no backward pass is running here")
    if run.captures is not None and isinstance(node, AccumulateGrad) and (node, 0) in run.captures:
        raise GradientError(
            "[_will_engine_execute_node] the leaf is an input of the autograd.grad() that is "
            "running, which gives its gradient away and accumulates nothing"
        )
    return node in run.task.numbers


def _unsafe_set_version_counter(tensors: Sequence[Tensor], versions: Sequence[int]) -> None:
    """Say how often tensors have been changed in place, whatever happened to them."""
    for tensor, version in zip(tensors, versions, strict=True):
        if version < 0:
            raise ArgumentError(
                f"[_unsafe_set_version_counter] Cannot set a version below 0, got {version}"
            )
        share(tensor).version.value = version


def _make_saved_tensor(tensor: Tensor, is_output: bool = False) -> Any:
    """A tensor in the keeping of the saved-tensor hooks that are on."""
    from ...autograd.function import Saved, raw
    from ...core.tensor import node_of

    return raw(Saved("_make_saved_tensor", tensor, node_of(tensor), tensor._index, False))
