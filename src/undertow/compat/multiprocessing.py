"""Python's `multiprocessing`, under torch's name; tensors travel by copy.

A tensor that is sent through a queue or a pipe is pickled. The workers of `utils.data.DataLoader`
share memory by themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from multiprocessing import *  # noqa: F403
from multiprocessing import get_context
from typing import Any

from ..errors import ArgumentError, DTypeError

__path__: list[str] = []  # torch has modules below this one
_STRATEGIES = {"file_descriptor", "file_system"} if sys.platform == "linux" else {"file_system"}
_strategy = "file_descriptor" if "file_descriptor" in _STRATEGIES else "file_system"


def set_sharing_strategy(new_strategy: str) -> None:
    """Kept without effect: what is sent between processes is copied."""
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise ArgumentError(
            f"[set_sharing_strategy] expects one of {sorted(_STRATEGIES)}, got {new_strategy!r}"
        )
    _strategy = new_strategy


def get_sharing_strategy() -> str:
    """What `set_sharing_strategy` was told."""
    return _strategy


def get_all_sharing_strategies() -> set[str]:
    """What `set_sharing_strategy` accepts.

    >>> import undertow as ut
    >>> "file_system" in ut.multiprocessing.get_all_sharing_strategies()
    True
    """
    return _STRATEGIES


class ProcessRaisedException(Exception):
    """A process of `spawn` failed; the message is its traceback."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid


class SpawnContext:
    """The processes that `spawn(join=False)` has started."""

    def __init__(self, processes: list[Any], queues: list[Any]) -> None:
        self.processes = processes
        self.error_queues = queues

    def pids(self) -> list[int]:
        """Their process ids."""
        return [p.pid for p in self.processes]

    def join(self, timeout: float | None = None) -> bool:
        """Wait until all have ended; the first that failed ends the others and is raised here."""
        from multiprocessing.connection import wait

        waiting = {p.sentinel: i for i, p in enumerate(self.processes) if p.exitcode is None}
        ended = [waiting[s] for s in wait(list(waiting), timeout)] if waiting else []
        for i in ended:
            self.processes[i].join()
        failed = [i for i, p in enumerate(self.processes) if p.exitcode not in (None, 0)]
        if not failed:
            return all(p.exitcode == 0 for p in self.processes)
        for p in self.processes:
            if p.is_alive():
                p.terminate()
        for p in self.processes:
            p.join()
        i = failed[0]
        process, queue = self.processes[i], self.error_queues[i]
        said = f":\n\n{queue.get()}" if not queue.empty() else f" with exit code {process.exitcode}"
        raise ProcessRaisedException(f"[spawn] process {i} failed{said}", i, process.pid)


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> SpawnContext | None:
    """Run `fn(i, *args)` in `nprocs` processes, i from 0 on; an error in one is raised here."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> SpawnContext | None:
    """What `spawn` does, by any start method."""
    if not callable(fn):
        raise DTypeError(f"[spawn] expects a function, got {type(fn).__name__}")
    context: Any = get_context(start_method)
    processes, queues = [], []
    for i in range(nprocs):
        queue = context.SimpleQueue()
        process = context.Process(target=_run, args=(fn, i, args, queue), daemon=daemon)
        process.start()
        processes.append(process)
        queues.append(queue)
    running = SpawnContext(processes, queues)
    if not join:
        return running
    while not running.join():
        pass
    return None


def _run(fn: Callable[..., Any], i: int, args: tuple[Any, ...], queue: Any) -> None:
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        sys.exit(1)
    except Exception:
        import traceback

        queue.put(traceback.format_exc())
        sys.exit(1)
