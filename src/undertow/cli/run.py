"""Run a program that imports torch, with Undertow in torch's place.

    undertow run train.py --epochs 3
    undertow run -m package.module --epochs 3
    undertow run -n 4 train.py --epochs 3

With `-n` it is started so many times, on MPI, and its processes find each other with
`distributed.init_process_group`; if one fails, all end. Nothing is written: the folder with the
package `torch` goes to the front of PYTHONPATH, for this program and the processes that it starts.
`python -m undertow train.py` is the same.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from ..compat.stand_in import FOLDER
from ..distributed import launch
from ..distributed import run as several
from ..errors import ArgumentError


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What the command understands."""
    command.usage = "undertow run [-h] [-n N] (script.py | -m module) [argument ...]"
    several.add_options(command)
    command.add_argument(
        "program", nargs=argparse.REMAINDER, help="a file, or -m and a module, and its arguments"
    )


def read(given: list[str]) -> argparse.Namespace | None:
    """What `undertow run …` asks for; None leaves it to the parser, for help and for mistakes."""
    end = 0
    while end < len(given) and given[end].startswith("-") and given[end] not in ("-m", "-", "--"):
        alone = "=" in given[end] or given[end] == "--standalone" or given[end][2:].isdigit()
        end += 1 if alone else 2
    options, program = given[:end], given[end:]
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False, add_help=False)
    several.add_options(parser)
    try:
        asked, unknown = parser.parse_known_args(options)
    except argparse.ArgumentError:
        return None
    if unknown:
        return None
    asked.run, asked.program = run, program[program[:1] == ["--"] :]
    return asked


def run(asked: argparse.Namespace) -> int:
    """Become the program: its process is this one, where the system can do that."""
    program = asked.program
    if not program or program == ["-m"]:
        raise ArgumentError("[run] expects a script, or -m and a module: undertow run train.py")
    if sys.flags.ignore_environment:
        raise ArgumentError(
            "[run] Python was started with -E or -I and would not read PYTHONPATH, by which "
            "programs find torch; leave the option out, or use `undertow adopt`"
        )
    path = path_with_torch(os.environ.get("PYTHONPATH"))
    several_asked = asked.count is not None or asked.hosts or asked.elastic
    if several_asked or asked.max_restarts or asked.log_dir:
        return launch.launch(several.plan(asked, program, {"PYTHONPATH": path}))
    command = launch.program(program)
    environment = {**os.environ, "PYTHONPATH": path}
    sys.stdout.flush()
    if os.name == "posix":
        os.execve(command[0], command, environment)
    return subprocess.call(command, env=environment)


def path_with_torch(path: str | None) -> str:
    """A PYTHONPATH on which torch is found first, once."""
    rest = [p for p in (path or "").split(os.pathsep) if p and p != str(FOLDER)]
    return os.pathsep.join([str(FOLDER), *rest])
