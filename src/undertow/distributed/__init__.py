"""`undertow.distributed`: processes that work together, on MPI; see docs/distributed.md."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ..errors import ArgumentError, UnsupportedError
from ..errors import DistBackendError as DistBackendError
from ..errors import DistError as DistError
from ..errors import DistNetworkError as DistNetworkError
from ..errors import DistributedError as DistributedError
from ..errors import DistStoreError as DistStoreError
from . import groups, wire
from .functions import *  # noqa: F403
from .functions import _all_gather_base as _all_gather_base
from .functions import _reduce_scatter_base as _reduce_scatter_base
from .functions import all_gather_single as all_gather_single
from .functions import reduce_scatter_single as reduce_scatter_single
from .groups import ProcessGroup as ProcessGroup
from .reductions import ReduceOp as ReduceOp
from .stores import FileStore as FileStore
from .stores import HashStore as HashStore
from .stores import PrefixStore as PrefixStore
from .stores import Store as Store
from .stores import TCPStore as TCPStore
from .work import Work as Work

default_pg_timeout = groups.default_timeout()
reduce_op = ReduceOp


class _Groups(type):
    @property
    def WORLD(cls) -> Any:
        """The group of all processes, or None before there is one."""
        return groups.state.world


class group(metaclass=_Groups):
    """`group.WORLD` is the group of all processes."""


class GroupMember(metaclass=_Groups):
    """`GroupMember.WORLD` is the group of all; `NON_GROUP_MEMBER` is one that others are in."""

    NON_GROUP_MEMBER = groups.NON_MEMBER


def is_available() -> bool:
    """Whether several processes can work together: whether mpi4py is installed.

    >>> import undertow as ut
    >>> ut.distributed.is_available() == ut.distributed.is_mpi_available()
    True
    """
    return wire.is_installed()


def is_mpi_available() -> bool:
    """Whether mpi4py is installed."""
    return wire.is_installed()


def is_initialized() -> bool:
    """Whether there is a group."""
    return groups.state.world is not None


def is_torchelastic_launched() -> bool:
    """Whether `undertow run -n` or torchrun has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_backend_available(backend: str) -> bool:
    """Whether `init_process_group` takes a name: gloo and nccl are MPI here, as is mpi.

    >>> import undertow as ut
    >>> ut.distributed.is_backend_available("carrier_pigeon")
    False
    """
    return wire.is_installed() and backend.lower() in ("gloo", "mpi", "nccl")


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | float | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Make the group of all processes that MPI has started, or of this one.

    Whatever the backend is called, MPI carries the bytes. Ranks and their number come from MPI;
    `init_method` and `store` are not needed. `timeout` is how long a collective may wait.

    >>> import undertow as ut
    >>> ut.distributed.init_process_group("gloo", rank=0, world_size=1)
    >>> ut.distributed.get_rank(), ut.distributed.get_world_size()
    (0, 1)
    >>> ut.distributed.destroy_process_group()
    """
    groups.start(backend, timeout, world_size, rank, store)


def destroy_process_group(group: Any = None) -> None:
    """End a group, or all of them."""
    if group is groups.NON_MEMBER:
        return
    groups.stop(groups.resolved("destroy_process_group", group))


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: Any = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> Any:
    """A group of some processes. All processes make it, also those that are not in it."""
    if use_local_synchronization:
        raise UnsupportedError(
            "[new_group] use_local_synchronization=True is not supported; let all processes call it"
        )
    return groups.make(ranks, timeout, backend, group_desc or "")


def get_rank(group: Any = None) -> int:
    """The number of this process in a group; -1 if it is not in it."""
    return -1 if group is groups.NON_MEMBER else groups.resolved("get_rank", group).me


def get_world_size(group: Any = None) -> int:
    """How many processes a group has; -1 if this one is not in it."""
    if group is groups.NON_MEMBER:
        return -1
    return groups.resolved("get_world_size", group).members


def get_backend(group: Any = None) -> str:
    """The name that `init_process_group` was given."""
    return groups.resolved("get_backend", group).backend


def get_global_rank(group: Any, group_rank: int) -> int:
    """The rank in the world of a member of a group."""
    return groups.resolved("get_global_rank", group).ranks[group_rank]


def get_group_rank(group: Any, global_rank: int) -> int:
    """The rank in a group of a process."""
    own = groups.resolved("get_group_rank", group)
    if global_rank not in own.ranks:
        raise ArgumentError(f"[get_group_rank] rank {global_rank} is not in {own}")
    return own.ranks.index(global_rank)


def get_process_group_ranks(group: Any) -> list[int]:
    """The ranks in the world of the members of a group."""
    return list(groups.resolved("get_process_group_ranks", group).ranks)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process on its machine."""
    found = os.environ.get("LOCAL_RANK", fallback_rank)
    if found is None:
        raise ArgumentError("[get_node_local_rank] LOCAL_RANK is not set; give a fallback")
    return int(found)


def get_pg_count() -> int:
    """How many groups there are."""
    return len(groups.state.groups)


def get_default_backend_for_device(device: Any) -> str:
    """Whose collective operations a device would use: gloo's name stands for the CPU's.

    >>> import undertow as ut
    >>> ut.distributed.get_default_backend_for_device("cpu")
    'gloo'
    """
    return "gloo"


def supports_complex(reduceOp: Any) -> bool:
    """Whether complex numbers can be combined so.

    >>> import undertow as ut
    >>> ut.distributed.supports_complex(ut.distributed.ReduceOp.MAX)
    False
    """
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT)
