"""Kernels written by hand whose tasks the threads of a pool share.

Without a pool one thread does all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..codegen.irbuilder import Function, module

TASKS = [("ptr", "call"), ("i64", "begin"), ("i64", "end"), ("i64", "thread")]


def job_text(
    name: str,
    given: Sequence[str],
    attributes: str,
    begin: Callable[[Function], None],
    tasks: Callable[[Function], None],
) -> str:
    """A kernel of Note [packed arguments] as LLVM IR, of pointers that are `given`.

    The last of them is a table of numbers, the first of which says how many tasks there are.
    `begin` writes what comes before all tasks, with the pointers as `%name`, and `tasks` the body
    of a function of `%call`, where the pointers stand, `%begin`, `%end` and `%thread`.
    """
    f = Function(name, [("ptr", "packed")])
    call = f.at("%packed", 8)
    for number, called in enumerate(given):
        f.put(f"%{called} = load ptr, ptr {f.at(call, 8 * number)}, align 8")
    begin(f)
    run_tasks(f, name, f.load("ptr", "%packed", 8), call, f.load("i64", f"%{given[-1]}", 8))
    body = Function(f"{name}_tasks", TASKS, attributes)
    tasks(body)
    return module(f, body)


def run_tasks(f: Function, name: str, pool: str, call: str, count: str) -> None:
    """Run `count` tasks of the function `{name}_tasks`, by a pool or alone."""
    job, alone = f"@{name}_tasks", f.op(f"icmp eq ptr {pool}, null")
    with f.when(alone):
        f.put(f"call void {job}(ptr {call}, i64 0, i64 {count}, i64 0)")
    with f.when(f.op(f"xor i1 {alone}, true")):
        run = f.load("ptr", pool, 8)
        f.put(f"call void {run}(ptr {pool}, ptr {job}, ptr {call}, i64 {count})")
