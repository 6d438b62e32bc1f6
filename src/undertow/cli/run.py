"""Run a program that imports torch, with Undertow in torch's place.

    undertow run train.py --epochs 3
    undertow run -m package.module --epochs 3

Nothing is written: the folder with the package `torch` goes to the front of PYTHONPATH, for this
program and the processes that it starts. `python -m undertow train.py` is the same.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from ..errors import ArgumentError
from ..stand_in import FOLDER


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What the command understands."""
    command.usage = "undertow run [-h] (script.py | -m module) [argument ...]"
    command.add_argument("program", nargs="*", help="a file, or -m and a module, and its arguments")


def read(given: list[str]) -> argparse.Namespace | None:
    """What `undertow run …` asks for; None leaves it to the parser, which would swallow a `--`."""
    program = given[given[:1] == ["--"] :]
    is_program = program[:1] == ["-m"] or not program[:1] or not program[0].startswith("-")
    is_program = is_program or program[0] == "-"  # as Python: the program comes in
    return argparse.Namespace(run=run, program=program) if is_program else None


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
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    command = [sys.executable, *flags, *program]
    environment = {**os.environ, "PYTHONPATH": path_with_torch(os.environ.get("PYTHONPATH"))}
    sys.stdout.flush()
    if os.name == "posix":
        os.execve(command[0], command, environment)
    return subprocess.call(command, env=environment)


def path_with_torch(path: str | None) -> str:
    """A PYTHONPATH on which torch is found first, once."""
    rest = [p for p in (path or "").split(os.pathsep) if p and p != str(FOLDER)]
    return os.pathsep.join([str(FOLDER), *rest])
