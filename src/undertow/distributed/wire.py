"""Bytes between processes: MPI, through mpi4py, of which three calls are used.

This is the one file that imports mpi4py. Everything above it is written over `isend`, `irecv` and
`done`, so that no call waits inside MPI, where there is no deadline. (Two do: MPI's own beginning
and its end. The launcher ends processes that hang there.)
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from ..errors import ArgumentError, UnsupportedError

ANY = -1  # as the rank that a message comes from
# Variables by which launchers of MPI tell a process its number, and how many there are.
_STARTED = (
    ("PMI_RANK", "PMI_SIZE"),  # MPICH, Intel MPI
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # Open MPI
    ("PMIX_RANK", "SLURM_NTASKS"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)

_wire: Wire | None = None


class Broken(ConnectionError):
    """MPI could not move bytes: as a rule, the process on the other side is gone."""


def is_installed() -> bool:
    """Whether mpi4py can be imported.

    >>> is_installed() in (True, False)
    True
    """
    return find_spec("mpi4py") is not None


def started_by_mpi() -> tuple[int, int] | None:
    """Rank and size, if a launcher of MPI has started this process."""
    for rank, size in _STARTED:
        if rank in os.environ and size in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
    return None


class Wire:
    """MPI's world of processes."""

    def __init__(self) -> None:
        import mpi4py

        mpi4py.rc.initialize = False
        mpi4py.rc.finalize = False
        from mpi4py import MPI

        if not MPI.Is_initialized():
            MPI.Init_thread(MPI.THREAD_MULTIPLE)
        if MPI.Query_thread() != MPI.THREAD_MULTIPLE:
            raise UnsupportedError(
                "[init_process_group] this MPI was built without support of threads "
                "(MPI_THREAD_MULTIPLE); use another, such as the wheel mpich"
            )
        self._mpi: Any = MPI
        self._world = MPI.COMM_WORLD
        self._world.Set_errhandler(MPI.ERRORS_RETURN)
        self.rank: int = self._world.rank
        self.size: int = self._world.size
        self.most_tags: int = self._world.Get_attr(MPI.TAG_UB) or 0
        self.library: str = MPI.Get_library_version().partition("\n")[0]
        self._testall = MPI.Request.Testall
        self._error = MPI.Exception
        self._byte = MPI.BYTE
        self._any = MPI.ANY_SOURCE

    def isend(self, memory: Any, rank: int, tag: int) -> Any:
        """Begin to send contiguous memory, which stays as it is until that is `done`."""
        try:
            return self._world.Isend([memory, self._byte], rank, tag)
        except self._error as error:
            raise Broken(f"MPI: {error}") from error

    def irecv(self, memory: Any, rank: int, tag: int) -> Any:
        """Begin to receive into contiguous memory, at most as many bytes as it has."""
        source = self._any if rank == ANY else rank
        try:
            return self._world.Irecv([memory, self._byte], source, tag)
        except self._error as error:
            raise Broken(f"MPI: {error}") from error

    def done(self, requests: Sequence[Any]) -> bool:
        """Whether all of them are over; this is also what makes MPI move on."""
        try:
            return self._testall(requests)
        except self._error as error:
            raise Broken(f"MPI: {error}") from error

    def finish(self) -> None:
        """Leave MPI; every process has to."""
        if not self._mpi.Is_finalized():
            self._mpi.Finalize()


class Alone:
    """A world of one process, without MPI."""

    rank, size, library = 0, 1, "one process"
    most_tags = 2**31 - 1

    def done(self, requests: Sequence[Any]) -> bool:
        """Nobody is waited for."""
        return not requests

    def isend(self, memory: Any, rank: int, tag: int) -> Any:
        """There is nobody."""
        raise ArgumentError("[send] there is one process, which cannot send to itself")

    irecv = isend

    def finish(self) -> None:
        """There is nothing to leave."""


def wire() -> Wire:
    """The world of this process, which is joined when it is first asked for."""
    global _wire
    if _wire is None:
        if not is_installed():
            raise UnsupportedError(
                "[init_process_group] several processes need MPI, and mpi4py is not installed; "
                "pip install undertow[mpi]"
            )
        _wire = Wire()
    return _wire


def joined() -> Wire | None:
    """The world, if this process has joined it."""
    return _wire
