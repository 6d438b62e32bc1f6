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


def packed_job(
    name: str,
    arrays: Sequence[str],
    numbers: Sequence[str],
    attributes: str,
    tasks: Callable[[Function, dict[str, str]], None],
) -> tuple[Function, Function]:
    """A kernel of Note [packed arguments], and what it calls: of arrays and numbers by name.

    The first number says how many tasks there are. `tasks` writes, with the values of all these,
    the body of a function of `%begin`, `%end` and `%thread`.
    """
    f = Function(name, [("ptr", "packed")])
    call = f.at("%packed", 8)
    count = f.load("i64", f.at(call, 8 * len(arrays)), 8)
    run_tasks(f, name, f.load("ptr", "%packed", 8), call, count)
    body = Function(f"{name}_tasks", TASKS, attributes)
    types = dict.fromkeys(arrays, "ptr") | dict.fromkeys(numbers, "i64")
    places = enumerate(types.items())
    tasks(body, {n: body.load(type, body.at("%call", 8 * i), 8) for i, (n, type) in places})
    return f, body


def run_tasks(f: Function, name: str, pool: str, call: str, count: str) -> None:
    """Run `count` tasks of the function `{name}_tasks`, by a pool or alone."""
    job, alone = f"@{name}_tasks", f.op(f"icmp eq ptr {pool}, null")
    with f.when(alone):
        f.put(f"call void {job}(ptr {call}, i64 0, i64 {count}, i64 0)")
    with f.when(f.op(f"xor i1 {alone}, true")):
        run = f.load("ptr", pool, 8)
        f.put(f"call void {run}(ptr {pool}, ptr {job}, ptr {call}, i64 {count})")
