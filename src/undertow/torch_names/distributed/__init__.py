"""`undertow.distributed`: a group of one process, and clear errors for more.

Processes do not talk to each other here, so `is_available()` is False and programs that ask take
their one-process way. A program that insists gets a group of itself: every collective operation
over one process is exact.
"""

from __future__ import annotations

import enum
import os
from typing import Any

from ...core.modes import no_grad
from ...core.tensor import Tensor
from ...errors import ArgumentError, UnsupportedError

__all__ = [
    "ReduceOp",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "get_backend",
    "get_default_backend_for_device",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "is_available",
    "is_initialized",
    "is_torchelastic_launched",
    "new_group",
    "reduce",
    "reduce_scatter_tensor",
    "scatter",
]

_backend: str | None = None


class ReduceOp(enum.Enum):
    """How tensors of several processes are combined."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"


def is_available() -> bool:
    """Whether processes can work together: no.

    >>> import undertow as ut
    >>> ut.distributed.is_available(), ut.distributed.is_initialized()
    (False, False)
    """
    return False


def is_initialized() -> bool:
    """Whether there is a group."""
    return _backend is not None


def is_torchelastic_launched() -> bool:
    """Whether torchrun has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    **more: Any,
) -> None:
    """Make the group of this one process; for several it is an error.

    >>> import undertow as ut
    >>> ut.distributed.init_process_group("gloo", rank=0, world_size=1)
    >>> ut.distributed.get_rank(), ut.distributed.get_world_size()
    (0, 1)
    >>> ut.distributed.destroy_process_group()
    """
    global _backend
    size = world_size if world_size != -1 else int(os.environ.get("WORLD_SIZE", "1"))
    if size != 1:
        raise UnsupportedError(
            f"[init_process_group] processes do not talk to each other here, and world_size is "
            f"{size}; start one process"
        )
    if is_initialized():
        raise ArgumentError("[init_process_group] there is a group already")
    _backend = backend or "gloo"


def destroy_process_group(group: Any = None) -> None:
    """End the group."""
    global _backend
    _check("destroy_process_group")
    _backend = None


def get_rank(group: Any = None) -> int:
    """The number of this process in the group: 0."""
    return _check("get_rank")


def get_world_size(group: Any = None) -> int:
    """How many processes the group has: 1."""
    return _check("get_world_size") + 1


def get_backend(group: Any = None) -> str:
    """The name that `init_process_group` was given."""
    _check("get_backend")
    assert _backend is not None
    return _backend


def get_default_backend_for_device(device: Any) -> str:
    """Whose collective operations a device would use: gloo's name stands for the CPU's.

    >>> import undertow as ut
    >>> ut.distributed.get_default_backend_for_device("cpu")
    'gloo'
    """
    return "gloo"


def new_group(ranks: Any = None, *args: Any, **kwargs: Any) -> None:
    """The group of this process again."""
    _check("new_group")


def _check(name: str) -> int:
    if not is_initialized():
        raise ArgumentError(
            f"[{name}] there is no process group; call init_process_group first, or ask "
            "is_initialized()"
        )
    return 0


# Over one process -----------------------------------------------------------------------------
def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> None:
    """Wait for the others: there are none."""
    _check("barrier")


def all_reduce(
    tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> None:
    """Combine a tensor over all processes: over one it stays what it is."""
    _check("all_reduce")


def reduce(tensor: Tensor, dst: int = 0, op: Any = ReduceOp.SUM, *args: Any, **kw: Any) -> None:
    """Combine a tensor over all processes: over one it stays what it is."""
    _check("reduce")


def broadcast(tensor: Tensor, src: int = 0, group: Any = None, async_op: bool = False) -> None:
    """Give a tensor of one process to all: there is but this one."""
    _check("broadcast")


def broadcast_object_list(object_list: list[Any], src: int = 0, *args: Any, **kw: Any) -> None:
    """Give objects of one process to all: there is but this one."""
    _check("broadcast_object_list")


def all_gather(tensor_list: list[Tensor], tensor: Tensor, *args: Any, **kw: Any) -> None:
    """Copy the tensor of each process into a list, here of one."""
    _check("all_gather")
    with no_grad():
        tensor_list[0].copy_(tensor)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, *args: Any, **kw: Any
) -> None:
    """Copy the tensors of all processes into one."""
    _check("all_gather_into_tensor")
    with no_grad():
        output_tensor.copy_(input_tensor.reshape(output_tensor.shape))


reduce_scatter_tensor = all_gather_into_tensor


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Put the object of each process into a list, here of one."""
    _check("all_gather_object")
    object_list[0] = obj


def gather(tensor: Tensor, gather_list: list[Tensor] | None = None, *args: Any, **kw: Any) -> None:
    """Copy the tensor of each process into a list at one of them."""
    _check("gather")
    if gather_list is not None:
        all_gather(gather_list, tensor)


def scatter(
    tensor: Tensor, scatter_list: list[Tensor] | None = None, *args: Any, **kw: Any
) -> None:
    """Copy each tensor of a list to one process."""
    _check("scatter")
    if scatter_list is not None:
        with no_grad():
            tensor.copy_(scatter_list[0])
