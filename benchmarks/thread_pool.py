"""How long it takes until another thread works: the native pool against Python's threads.

Each round hands over a job and waits until the other thread is known to have started: the caller
looks at a flag, as it would work on its own part, and the other thread sets it.
"""

from __future__ import annotations

import ctypes
import queue
import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import llvmlite
from _isa import options
from _race import header

import undertow as ut
from undertow.backends.cpu.codegen import jit
from undertow.backends.cpu.threads import pool

# `handover` does it through the pool; with `wait` and `tell` any two threads can.
HANDOVER = r"""
define internal void @tell(ptr %flag) {
  store atomic i64 1, ptr %flag release, align 8
  ret void
}

define internal void @wait(ptr %flag) {
entry:
  br label %look
look:
  %told = load atomic i64, ptr %flag acquire, align 8
  %done = icmp ne i64 %told, 0
  br i1 %done, label %exit, label %look
exit:
  ret void
}

define internal void @body(ptr %flag, i64 %begin, i64 %end, i64 %thread) {
  %caller = icmp eq i64 %thread, 0
  br i1 %caller, label %first, label %second
first:
  call void @wait(ptr %flag)
  ret void
second:
  call void @tell(ptr %flag)
  ret void
}

define void @handover(ptr %pool, ptr %flag, i64 %rounds) {
entry:
  %run = load ptr, ptr %pool
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  store atomic i64 0, ptr %flag monotonic, align 8
  call void %run(ptr %pool, ptr @body, ptr %flag, i64 2)
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %rounds
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
"""

EMPTY = r"""
define internal void @body(ptr %context, i64 %begin, i64 %end, i64 %thread) {
  ret void
}

define void @empty(ptr %pool, i64 %count, i64 %rounds) {
entry:
  %run = load ptr, ptr %pool
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  call void %run(ptr %pool, ptr @body, ptr null, i64 %count)
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %rounds
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
"""


def function(name: str, text: str, *arguments: Any) -> Any:
    """A function of a module of LLVM IR, called outside the interpreter's lock."""
    return ctypes.CFUNCTYPE(None, *arguments)(jit.load(name, text))


def spent(run: Callable[[], object]) -> float:
    """Microseconds that a call takes."""
    begin = time.perf_counter_ns()
    run()
    return (time.perf_counter_ns() - begin) / 1e3


def rested(run: Callable[[], object]) -> float:
    """Microseconds that a call takes after everybody has gone to sleep."""
    time.sleep(0.002)
    return spent(run)


def main() -> None:
    options(__doc__.splitlines()[0]).parse_args()
    ut.set_num_threads(2)
    header(llvmlite)
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    handover = function("handover", HANDOVER, pointer, pointer, number)
    wait, tell = (function(name, HANDOVER, pointer) for name in ("wait", "tell"))
    empty = function("empty", EMPTY, pointer, number, number)
    flag = ctypes.c_int64()
    where, handle = ctypes.addressof(flag), pool.pointer()
    if not pool.started():
        raise SystemExit("no worker could be started")
    requests: queue.SimpleQueue[None] = queue.SimpleQueue()

    def serve() -> None:
        while True:
            requests.get()
            tell(where)

    def by_queue() -> None:
        flag.value = 0
        requests.put(None)
        wait(where)

    def by_executor() -> None:
        flag.value = 0
        executor.submit(tell, where)
        wait(where)

    threading.Thread(target=serve, daemon=True).start()
    with ThreadPoolExecutor(1) as executor:
        runs = {
            "native, the worker spins": lambda: spent(lambda: handover(handle, where, 20)) / 20,
            "native, the worker sleeps": lambda: rested(lambda: handover(handle, where, 1)),
            "Python thread and queue": lambda: rested(by_queue),
            "ThreadPoolExecutor": lambda: rested(by_executor),
            "a job of 2 empty blocks": lambda: spent(lambda: empty(handle, 2, 20)) / 20,
            "a job of 100 empty blocks": lambda: spent(lambda: empty(handle, 100, 20)) / 20,
        }
        times: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(300):
            for name, run in runs.items():
                times[name].append(run())
    print(f"workers spin for {pool.SPIN:.0f} µs before they sleep; times in microseconds\n")
    for name, found in times.items():
        print(f"{name:28} best {min(found):6.1f}   median {statistics.median(found):6.1f}")


if __name__ == "__main__":
    main()
