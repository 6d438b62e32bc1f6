"""Fresh stacks, for backward passes nested deeper than the stack of one thread.

Note [nested passes]
A hook or a custom backward may start a backward pass, whose hooks may start another, and so on.
Each lies on the stack of the one before, and Python allows a thread about a thousand frames. So a
nested pass that would begin beyond half of them runs on a thread of its own, while the one that
started it waits. The threads of one such line of work:
  - end: each waits only for the one that it started, and the innermost for nobody. The line has a
    bounded length; a recursion without an end stays on the last stack and is Python's
    RecursionError there.
  - see one context: a thread begins with a copy of its caller's (modes, the running pass, NumPy's
    error state, the user's variables), and what it leaves changed is set at the caller's as well.
  - stop together: an interrupt reaches the thread that waits outermost; it is raised in the
    innermost, and ends that as any error does. See Note [interrupts] about the waiting.
  - count as one where the same thread may enter twice (`worker`): only one of them is at work.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

T = TypeVar("T")
_MOST = 64  # stacks in one line
_LOOK = 1.0  # seconds after which a caller looks whether the other thread is still there


class _Line:
    """Threads of which each waits for the next."""

    __slots__ = ("threads",)

    def __init__(self) -> None:
        self.threads = [threading.get_ident()]


_line: ContextVar[_Line | None] = ContextVar("undertow_line", default=None)


def _own_line() -> _Line | None:
    """The line that this thread belongs to; a thread that only got its context does not."""
    line = _line.get()
    return line if line is not None and threading.get_ident() in line.threads else None


def worker() -> int:
    """Who is at work: this thread, or the first one of its line."""
    line = _own_line()
    return threading.get_ident() if line is None else line.threads[0]


def is_deep() -> bool:
    """Whether this stack is half full, and there can be another."""
    half = sys.getrecursionlimit() // 2
    frame: Any = sys._getframe()
    count = 0
    while frame is not None and count <= half:
        frame = frame.f_back
        count += 1
    line = _own_line()
    return count > half and (line is None or len(line.threads) < _MOST)


def on_fresh_stack(function: Callable[[], T]) -> T:
    """`function()`, run by another thread in this thread's context; see Note [nested passes]."""
    line = _own_line() or _Line()
    context = copy_context()
    context.run(_line.set, line)
    outcome: list[tuple[Any, BaseException | None]] = []
    done = threading.Lock()
    done.acquire()

    def work() -> None:
        line.threads.append(threading.get_ident())
        result: Any = None
        failure: BaseException | None = None
        try:
            result = context.run(function)
        except BaseException as error:  # whatever it is, the caller gets it
            failure = error
        line.threads.pop()
        outcome.append((result, failure))
        done.release()

    thread = threading.Thread(target=work, name="undertow-nested", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no more threads: this stack has to do
        return function()
    interrupt: BaseException | None = None
    while not outcome:
        try:
            done.acquire(timeout=_LOOK)
            if not thread.is_alive():  # an interrupt may have come where nobody could catch it
                break
        except BaseException as error:
            interrupt = error
            busy = line.threads[-1:]
            if busy and busy[0] != threading.get_ident():  # else it has just finished
                _raise_in(busy[0], type(error))
    try:
        thread.join(_LOOK)  # so that nobody counts it from here on; it has nothing left to do
    except BaseException as error:
        interrupt = error
    lost = RuntimeError("[backward] the thread of a nested pass was interrupted and is gone")
    result: Any
    result, failure = outcome[0] if outcome else (None, lost)
    before = copy_context()
    for variable, value in context.items():
        if variable is not _line and before.get(variable, outcome) is not value:
            variable.set(value)
    if interrupt is not None:
        raise interrupt
    if failure is not None:
        raise failure
    return result


def _raise_in(thread: int, error: type[BaseException]) -> None:
    """Raise an error in another thread, at the next step of its Python code."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
