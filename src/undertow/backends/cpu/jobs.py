"""A kernel written by hand whose tasks the threads of a pool share.

    void name(pool, plan, ...)

The first number of the plan says how many tasks there are. Without a pool one thread does all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .irbuilder import Function, module


def job_text(
    name: str,
    given: Sequence[str],
    attributes: str,
    begin: Callable[[Function], None],
    tasks: Callable[[Function], None],
) -> str:
    """The kernel as LLVM IR, of pointers that are `given` besides the pool, the plan first.

    `begin` writes what comes before all tasks, and `tasks` the body of a function of `%call`, where
    the pointers stand, `%begin`, `%end` and `%thread`.
    """
    f = Function(name, [("ptr", "pool"), *(("ptr", called) for called in given)])
    call = f.slot(f"[{len(given)} x ptr]")
    for number, called in enumerate(given):
        f.store("ptr", f"%{called}", f.at(call, 8 * number), 8)
    begin(f)
    count = f.load("i64", "%plan", 8)
    job, alone = f"@{name}_tasks", f.op("icmp eq ptr %pool, null")
    with f.when(alone):
        f.put(f"call void {job}(ptr {call}, i64 0, i64 {count}, i64 0)")
    with f.when(f.op(f"xor i1 {alone}, true")):
        run = f.load("ptr", "%pool", 8)
        f.put(f"call void {run}(ptr %pool, ptr {job}, ptr {call}, i64 {count})")
    told = [("ptr", "call"), ("i64", "begin"), ("i64", "end"), ("i64", "thread")]
    body = Function(f"{name}_tasks", told, attributes)
    tasks(body)
    return module(f, body)
