"""Run a program, tell where its time went, and draw it as a flame chart.

    undertow profile train.py --epochs 1
    undertow profile -o run.html --memory -m package.module

Prints a table and writes one page, profile.html, that needs nothing else. A program that imports
torch finds Undertow in its place.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import traceback

from ..compat.stand_in import FOLDER
from ..errors import ArgumentError
from ..utils.profiler import profile
from ..utils.profiler.events import SORTED_BY


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What the command understands."""
    command.usage = "undertow profile [options] (script.py | -m module) [argument ...]"
    command.add_argument(
        "-o", "--output", default="profile.html", metavar="FILE", help="the page (%(default)s)"
    )
    command.add_argument("--trace", metavar="FILE", help="a trace for Perfetto, besides")
    command.add_argument("--sort", default="self_cpu_time_total", choices=SORTED_BY)
    command.add_argument("--rows", type=int, default=25, help="of the table (%(default)s)")
    command.add_argument("--memory", action="store_true", help="watch memory, too")
    command.add_argument("--shapes", action="store_true", help="keep the shapes of operands")
    command.add_argument("-m", dest="module", action="store_true", help="the program is a module")
    command.add_argument("program", nargs=argparse.REMAINDER, help="a program and its arguments")


def run(asked: argparse.Namespace) -> int:
    """Run the program here, and show what was recorded, also if it fails."""
    program = asked.program[asked.program[:1] == ["--"] :]
    if not program:
        raise ArgumentError("[profile] expects a script, or -m and a module")
    if not asked.module and not os.path.exists(program[0]):
        raise ArgumentError(f"[profile] there is no file {program[0]!r}")
    if not asked.module and os.path.isdir(program[0]):
        raise ArgumentError(f"[profile] {program[0]!r} is a folder; name a script in it")
    for path in filter(None, (asked.output, asked.trace)):
        _check_writable(path)
    recorded = profile(
        record_shapes=asked.shapes, profile_memory=asked.memory, with_flops=True, with_modules=True
    )
    with recorded:
        code = _run(program, asked.module)
    table = recorded.key_averages().table(sort_by=asked.sort, row_limit=asked.rows)
    launches = recorded.key_averages(kinds=["launch"])
    if launches:
        table += "\n" + launches.table(
            sort_by=asked.sort, row_limit=10, header="Launches of kernels"
        )
    if asked.memory:
        held = ", ".join(f"{k} {v:,} bytes" for k, v in [*recorded.memory_at_peak().items()][:8])
        table += f"\nMost memory was held by: {held}\n"
    print(table, end="")
    recorded.export_html(asked.output, table)
    print(f"wrote {asked.output}")
    if asked.trace:
        recorded.export_chrome_trace(asked.trace)
        print(f"wrote {asked.trace}")
    return code


def _check_writable(path: str) -> None:
    """Before the program runs, since it may take long."""
    new = not os.path.exists(path)
    try:
        with open(path, "a"):
            pass
    except OSError as error:
        raise ArgumentError(f"[profile] cannot write {path!r}: {error.strerror}") from error
    if new:
        os.remove(path)


def _run(program: list[str], module: bool) -> int:
    """The program as `python` would run it; its exit code."""
    before = sys.argv, list(sys.path)
    sys.argv = program
    try:
        if module:
            sys.path[:0] = [str(FOLDER), os.getcwd()]
            runpy.run_module(program[0], run_name="__main__", alter_sys=True)
        else:
            here = os.path.dirname(os.path.abspath(program[0]))
            sys.path[:0] = [str(FOLDER), here]
            runpy.run_path(program[0], run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return end.code or 0
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        sys.argv, sys.path[:] = before
    return 0
