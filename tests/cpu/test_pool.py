"""The pool of native threads: every block once, thread numbers, forks, exits, nested use."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.backends import threads
from undertow.backends.cpu.codegen import jit
from undertow.backends.cpu.threads import pool, pool_code

# Block i: add 1 to data[i], note the thread in who[i], and check that nobody else is running with
# the same thread number. Each block takes `delay` turns, so that several threads get some.
COUNTING = r"""
%context = type { ptr, ptr, ptr, i64 }

define internal void @body(ptr %ctx, i64 %begin, i64 %end, i64 %thread) {
entry:
  %data = load ptr, ptr %ctx
  %who.p = getelementptr %context, ptr %ctx, i64 0, i32 1
  %who = load ptr, ptr %who.p
  %used.p = getelementptr %context, ptr %ctx, i64 0, i32 2
  %used = load ptr, ptr %used.p
  %delay.p = getelementptr %context, ptr %ctx, i64 0, i32 3
  %delay = load i64, ptr %delay.p
  %mine = getelementptr i64, ptr %used, i64 %thread
  %before = atomicrmw add ptr %mine, i64 1 seq_cst
  br label %blocks
blocks:
  %i = phi i64 [ %begin, %entry ], [ %i.next, %worked ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %block, label %done
block:
  %place = getelementptr i64, ptr %data, i64 %i
  %old = atomicrmw add ptr %place, i64 1 monotonic
  %name = getelementptr i64, ptr %who, i64 %i
  %clash = shl i64 %before, 32
  %mark = or i64 %clash, %thread
  store i64 %mark, ptr %name
  br label %wait
wait:
  %turn = phi i64 [ 0, %block ], [ %turn.next, %wait ]
  %turn.next = add i64 %turn, 1
  store volatile i64 %mark, ptr %name
  %again = icmp slt i64 %turn.next, %delay
  br i1 %again, label %wait, label %worked
worked:
  %i.next = add i64 %i, 1
  br label %blocks
done:
  %after = atomicrmw sub ptr %mine, i64 1 seq_cst
  ret void
}

define void @test_counting(ptr %pool, ptr %ctx, i64 %count) {
  %run = load ptr, ptr %pool
  call void %run(ptr %pool, ptr @body, ptr %ctx, i64 %count)
  ret void
}
"""

CALLING = r"""
define void @test_calling(ptr %pool, ptr %body, ptr %ctx, i64 %count) {
  %run = load ptr, ptr %pool
  call void %run(ptr %pool, ptr %body, ptr %ctx, i64 %count)
  ret void
}
"""

# Half of the smallest normal number, in each block, computed in the mode that is given.
MODE = r"""
define internal void @body(ptr %ctx, i64 %begin, i64 %end, i64 %thread) {
entry:
  br label %blocks
blocks:
  %i = phi i64 [ %begin, %entry ], [ %i.next, %worked ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %block, label %done
block:
  %place = getelementptr { float, i32 }, ptr %ctx, i64 %i
  %old = load volatile float, ptr %place
  %new = fmul float %old, 5.0e-1
  store volatile float %new, ptr %place
  %name = getelementptr i8, ptr %place, i64 4
  %number = trunc i64 %thread to i32
  br label %wait
wait:
  %turn = phi i64 [ 0, %block ], [ %turn.next, %wait ]
  %turn.next = add i64 %turn, 1
  store volatile i32 %number, ptr %name
  %again = icmp slt i64 %turn.next, 300
  br i1 %again, label %wait, label %worked
worked:
  %i.next = add i64 %i, 1
  br label %blocks
done:
  ret void
}

define void @test_mode(ptr %pool, ptr %ctx, i64 %count, i32 %mode) {
  %saved = alloca i32
  %given = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %saved)
  store i32 %mode, ptr %given
  call void @llvm.x86.sse.ldmxcsr(ptr %given)
  %run = load ptr, ptr %pool
  call void %run(ptr %pool, ptr @body, ptr %ctx, i64 %count)
  call void @llvm.x86.sse.ldmxcsr(ptr %saved)
  ret void
}

declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
"""

BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_loaded: dict[str, Any] = {}


def kernel(name: str, text: str, *arguments: Any) -> Any:
    """A kernel of this file, compiled once."""
    if name not in _loaded:
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *arguments)
        _loaded[name] = prototype(jit.load(name, text))
    return _loaded[name]


def count(blocks: int, handle: int | None = None, delay: int = 0) -> np.ndarray:
    """Run the counting kernel, check what it did, and return the thread of each block."""
    run = kernel("test_counting", COUNTING, ctypes.c_void_p, ctypes.c_int64)
    handle = pool.pointer() if handle is None else handle
    assert handle
    limit = ctypes.c_int64.from_address(handle + 8).value
    data, who = np.zeros(blocks, np.int64), np.full(blocks, -1, np.int64)
    used = np.zeros(limit, np.int64)
    context = np.array([data.ctypes.data, who.ctypes.data, used.ctypes.data, delay], np.int64)
    run(handle, context.ctypes.data, blocks)
    assert (data == 1).all()
    assert not used.any()
    assert blocks == 0 or (who.min() >= 0 and who.max() < limit)
    return who


def call(body: Callable[[int, int, int], None], blocks: int) -> None:
    """Run blocks whose body is a Python function of begin, end and thread."""
    run = kernel("test_calling", CALLING, BODY, ctypes.c_void_p, ctypes.c_int64)
    run(pool.pointer(), BODY(lambda _, begin, end, thread: body(begin, end, thread)), None, blocks)


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    """Start from two threads, and put back the number of the session."""
    before = ut.get_num_threads()
    ut.set_num_threads(2)
    yield
    ut.set_num_threads(before)


def script(code: str, seconds: int = 400, **env: str) -> str:
    """Run a program that must end well and in time; its output."""
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", "from test_pool import *\n" + code],
        env={**os.environ, "PYTHONPATH": path, **env},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGABRT)  # it and its children say where they hang
        out, err = process.communicate()
    assert process.returncode == 0, f"{process.returncode}\n{out}\n{err}"
    return out


@pytest.mark.parametrize("number", range(2, 9))
@pytest.mark.parametrize("blocks", [0, 1, 2, 7, 1000])
def test_every_block_once(number: int, blocks: int) -> None:
    ut.set_num_threads(number)
    for delay in (0, 100):
        count(blocks, delay=delay)


def test_workers_take_part() -> None:
    """All threads get blocks when there is enough to do."""
    ut.set_num_threads(3)
    seen: set[int] = set()
    for _ in range(50):
        seen |= set(count(1000, delay=200000))
        if seen == {0, 1, 2}:
            return
    pytest.fail(f"only the threads {seen} got blocks")


several_processors = pytest.mark.skipif(
    platform.machine() not in pool_code.FUTEX
    or not hasattr(os, "sched_setaffinity")
    or len(os.sched_getaffinity(0)) < 2,
    reason="only where affinity is known, and there is another processor",
)


@several_processors
def test_workers_stay_off_the_callers_processor() -> None:
    """Wherever the caller goes, they go elsewhere; also those that start later."""
    out = script("""
allowed = os.sched_getaffinity(0)

def check(caller, workers):
    ut.set_num_threads(workers + 1)
    deadline = time.monotonic() + 60
    while True:
        os.sched_setaffinity(0, {caller})  # where it stays for a while
        os.sched_setaffinity(0, allowed)
        count(7, delay=30)
        started = [t.native_id for t in threading.enumerate() if t.name.startswith("undertow-")]
        places = [os.sched_getaffinity(i) for i in started[:workers]]
        if places == [allowed - {caller}] * workers:
            return
        assert time.monotonic() < deadline, (caller, allowed, places)

for caller in [*sorted(allowed)[:5], *sorted(allowed)[:5]]:
    check(caller, 1)
if len(allowed) > 2:
    for caller in sorted(allowed)[:5]:
        check(caller, 2)
print("ok")
""")
    assert out == "ok\n"


@several_processors
def test_workers_stay_where_a_user_has_put_them() -> None:
    """Alone, or with everything else in the process, whatever was taken from them before."""
    out = script("""
allowed = os.sched_getaffinity(0)
count(7)
worker = next(t.native_id for t in threading.enumerate() if t.name.startswith("undertow-"))

def move(*processors):
    for caller in processors:
        os.sched_setaffinity(0, {caller})
        for _ in range(3):
            count(7, delay=30)

first, second = sorted(allowed)[:2]
for confined in (first, second, first):
    os.sched_setaffinity(0, allowed)
    os.sched_setaffinity(worker, allowed)
    move(first, second)
    os.sched_setaffinity(worker, {confined})  # all threads
    move(confined)
    assert os.sched_getaffinity(worker) == {confined}
    move(second, first)  # the worker alone
    assert os.sched_getaffinity(worker) == {confined}
print("ok")
""")
    assert out == "ok\n"


def test_one_thread_needs_no_pool() -> None:
    ut.set_num_threads(1)
    assert pool.pointer() == 0


def test_pointer_follows_the_limit() -> None:
    """The handle is that of the number at this moment, also within a parallel backward."""
    ut.set_num_threads(4)
    four = pool.pointer()
    assert ctypes.c_int64.from_address(four + 8).value == 4
    with threads.shared_between(2):
        half = pool.pointer()
        assert ctypes.c_int64.from_address(half + 8).value == 2
        with threads.shared_between(4):
            assert pool.pointer() == 0
    assert pool.pointer() == four


def test_old_handle_after_another_number() -> None:
    """A handle outlives changes of the number: a kernel may be running with it."""
    handles = {}
    for number in (2, 8, 3, 5, 2, 7):
        ut.set_num_threads(number)
        handles.setdefault(number, pool.pointer())
        assert handles[number] == pool.pointer()
        for handle in handles.values():
            count(100, handle, delay=10)


def test_number_changes_while_running() -> None:
    stop = threading.Event()

    def change() -> None:
        number = 0
        while not stop.is_set():
            number = number % 6 + 2
            ut.set_num_threads(number)
            time.sleep(0.0003)

    other = threading.Thread(target=change)
    other.start()
    try:
        for _ in range(2000):
            count(64, delay=20)
    finally:
        stop.set()
        other.join()


def test_no_block_is_lost_to_a_worker_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system gives no threads, the caller does all the work."""

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    ut.set_num_threads(60)
    have = pool.started()
    assert count(200).max() <= have
    assert pool.started() == have


def test_several_python_threads_at_once() -> None:
    errors: list[BaseException] = []

    def use() -> None:
        try:
            for blocks in range(400):
                count(blocks % 50, delay=50)
        except BaseException as error:
            errors.append(error)

    callers = [threading.Thread(target=use) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert errors == []


def test_nested_use_runs_inline() -> None:
    """A body that runs a job of its own does it alone, as thread 0 of that job."""
    inner: list[int] = []
    outer: list[tuple[int, int]] = []

    def body(begin: int, end: int, thread: int) -> None:
        outer.append((begin, end))
        for _ in range(begin, end):
            inner.extend(count(10))

    call(body, 20)
    assert sorted(i for begin, end in outer for i in range(begin, end)) == list(range(20))
    assert inner == [0] * 200


def test_bodies_in_python() -> None:
    """Python callbacks as bodies, on workers too: thread numbers and ranges are as promised."""
    seen: list[tuple[int, int, int]] = []

    def body(begin: int, end: int, thread: int) -> None:
        time.sleep(0.002)
        seen.append((begin, end, thread))

    for _ in range(20):
        seen.clear()
        call(body, 50)
        assert sorted(i for begin, end, _ in seen for i in range(begin, end)) == list(range(50))
        assert {thread for _, _, thread in seen} <= {0, 1}
        if len({thread for _, _, thread in seen}) == 2:
            return
    pytest.fail("the worker never got a block")


@pytest.mark.skipif(
    "amd64" not in jit.target().triple and "x86_64" not in jit.target().triple,
    reason="changes the mode of x86 processors",
)
def test_workers_take_over_the_floating_point_mode() -> None:
    """Subnormal numbers are flushed on all threads or on none, as the calling thread does."""
    run = kernel("test_mode", MODE, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32)
    smallest = np.finfo(np.float32).tiny
    workers, turn, end = 0, 0, time.monotonic() + 20
    while turn < 40 or (not workers and time.monotonic() < end):
        turn += 1
        flush = turn % 2 == 1
        data = np.zeros(400, [("value", np.float32), ("thread", np.int32)])
        data["value"] = smallest
        run(pool.pointer(), data.ctypes.data, len(data), 0x9FC0 if flush else 0x1F80)
        assert (data["value"] == (0 if flush else smallest * np.float32(0.5))).all()
        workers += (data["thread"] > 0).any()
    if not workers:
        pytest.skip("the machine is too busy for a worker to come in time")


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    """Bit for bit, for kernels that are split into blocks and whose parts are combined."""
    g = np.random.default_rng(0)
    x = ut.tensor(g.normal(size=(1031, 517)).astype(np.float32))
    cases: dict[str, Callable[[], Any]] = {
        "exp": lambda: ut.exp(x),
        "mul": lambda: x * x.mean(0),
        "sum": lambda: x.sum(),
        "rows": lambda: x.sum(1),
        "columns": lambda: x.sum(0),
        "mean": lambda: x.double().mean(),
        "var": lambda: x.var(),
        "argmax": lambda: x.argmax(),
        "softmax": lambda: ut.softmax(x, 1),
        "logsumexp": lambda: ut.logsumexp(x, 0),
        "backward": lambda: ut.autograd.grad(ut.exp(y).sum(0).sum(), y)[0],
    }
    y = x.clone().requires_grad_()
    for name, run in cases.items():
        results = []
        for number in (1, 2, 3, 8):
            ut.set_num_threads(number)
            results += [run().detach().numpy().tobytes() for _ in range(3)]
        assert len(set(results)) == 1, name


def test_naps_instead_of_a_futex() -> None:
    """The waits of systems without a futex, on this one."""
    script("""
pool_code.FUTEX.clear()
for number in (2, 5, 3):
    ut.set_num_threads(number)
    for blocks in (0, 1, 2, 7, 1000):
        for _ in range(50):
            count(blocks, delay=30)
        time.sleep(0.005)
        count(blocks, delay=30)
""")


@pytest.mark.parametrize("machine", ["x86_64", "arm64", "riscv64"])
@pytest.mark.parametrize("futex", [None, (98, 122, 123, 178)])
def test_code_of_other_machines(machine: str, futex: tuple[int, ...] | None) -> None:
    """The text is valid LLVM IR on machines that this one is not."""
    import llvmlite.binding as llvm

    jit.target()
    module = llvm.parse_assembly(
        pool_code.text("f", machine, futex, little=False, microseconds=1000)
    )
    module.verify()
    assert any(not function.is_declaration for function in module.functions)


def test_rapid_jobs() -> None:
    """100000 jobs in a row, at the rate at which workers fall asleep, spin and wake."""
    script("""
run = kernel("test_counting", COUNTING, ctypes.c_void_p, ctypes.c_int64)
for number, jobs in ((2, 70000), (4, 20000), (3, 10000)):
    ut.set_num_threads(number)
    data, who, used = np.zeros(40, np.int64), np.zeros(40, np.int64), np.zeros(8, np.int64)
    context = np.array([data.ctypes.data, who.ctypes.data, used.ctypes.data, 0], np.int64)
    for job in range(jobs):
        run(pool.pointer(), context.ctypes.data, 2 + job % 39)
        if job % 1000 == 0:
            time.sleep(0.0003)
    blocks = np.array([sum(2 + job % 39 > i for job in range(jobs)) for i in range(40)])
    assert (data == blocks).all()
    assert not (who >> 32).any()
""")


def test_fork_then_use() -> None:
    """A child has a fresh pool, and the parent keeps its own."""
    script("""
import multiprocessing

def child(queue):
    assert pool.started() == 0
    for _ in range(200):
        count(50, delay=20)
    queue.put(pool.started())

ut.set_num_threads(3)
old = pool.pointer()
count(1000)
fork = multiprocessing.get_context("fork")
queue = fork.Queue()
children = [fork.Process(target=child, args=(queue,)) for _ in range(3)]
for process in children:
    process.start()
for _ in range(200):
    count(50, delay=20)
for process in children:
    process.join()
    assert process.exitcode == 0
assert [queue.get() for _ in children] == [2, 2, 2]
pid = os.fork()
if not pid:
    assert (count(100, old) == 0).all()  # a handle of the parent's pool: alone
    assert pool.pointer() != old
    sys.exit(0)  # with the handlers at exit
assert os.waitpid(pid, 0)[1] == 0
""")


def test_fork_while_busy() -> None:
    """Fork while other threads run jobs and start workers; the child works and exits."""
    script("""
stop = False
def use():
    while not stop:
        count(100, delay=200)
callers = [threading.Thread(target=use) for _ in range(2)]
for caller in callers:
    caller.start()
for turn in range(40):
    ut.set_num_threads(2 + turn % 5)
    pid = os.fork()
    if not pid:
        for _ in range(20):
            count(30, delay=20)
        pool._close()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
stop = True
for caller in callers:
    caller.join()
""")


@pytest.mark.parametrize("state", ["asleep", "spinning", "daemons", "unused"])
def test_exit(state: str) -> None:
    """The interpreter ends well whatever the workers do."""
    code = {
        "asleep": "count(100); time.sleep(0.01)",
        "spinning": "pool.SPIN = 1e6; count(100)",
        "daemons": """
def use():
    while handle := pool.pointer():  # none once the interpreter ends
        count(40, handle, delay=500)
for _ in range(2):
    threading.Thread(target=use, daemon=True).start()
time.sleep(0.02)
""",
        "unused": "",
    }[state]
    # A fork per exit spares the start of an interpreter; the last exit is that of a whole process.
    script(f"""
for turn in range(20):
    pid = os.fork()
    if not pid:
        ut.set_num_threads(2 + turn % 3)
        exec({code!r})
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0, turn
ut.set_num_threads(2)
{code}
""")


def test_after_exit_kernels_run_alone() -> None:
    """What runs in other handlers at exit finds no pool, and needs none."""
    script("""
count(10)
old = pool.pointer()
pool._close()
assert pool.pointer() == 0 and pool.started() == 0
assert (count(100, old) == 0).all()
ut.set_num_threads(7)
assert pool.pointer() == 0
""")
