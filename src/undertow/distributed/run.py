"""`python -m undertow.distributed.run`: torchrun's arguments, on MPI.

python -m undertow.distributed.run --nproc-per-node 4 train.py --epochs 3
undertow run -n 4 train.py --epochs 3
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError, UndertowError, UnsupportedError
from .launch import Plan, launch, program


def add_options(command: argparse.ArgumentParser) -> None:
    """How many processes, and where: what comes before the program."""
    add = command.add_argument
    number = ("-n", "--nproc-per-node", "--nproc_per_node")
    add(*number, dest="count", default=None, help="how many processes (on each host)")
    add("--hosts", default="", help="names of machines, with commas between them (by ssh)")
    add(
        *("--master-addr", "--master_addr"),
        default="",
        help="the address of this machine for the hosts, if its name is not enough",
    )
    add("--max-restarts", "--max_restarts", type=int, default=0, help="start anew after a failure")
    add("--log-dir", "--log_dir", default="", help="a folder for the output of each process")
    add("--standalone", action="store_true", help="one machine, as without it")
    ignored = (
        *("nnodes", "node-rank", "rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf"),
        *("master-port", "role", "monitor-interval", "start-method", "redirects", "tee"),
        "local-addr",
    )
    for name in ignored:
        words = dict.fromkeys((f"--{name}", f"--{name.replace('-', '_')}"))
        add(*words, default=None, help=argparse.SUPPRESS)
    add("--elastic", metavar="MIN:MAX", help="begin with MAX, and go on without who is lost")


def plan(asked: Any, words: Sequence[str], environment: dict[str, str]) -> Plan:
    """What a command line asks for."""
    if asked.nnodes not in (None, "1", "1:1"):
        raise UnsupportedError(
            f"[run] --nnodes {asked.nnodes}: one command starts the processes of all machines; "
            "name them with --hosts, or use the batch system's mpiexec"
        )
    hosts = [host for host in asked.hosts.split(",") if host]
    given = asked.count if asked.count is not None else "1"
    if str(given) in ("auto", "cpu", "gpu"):
        given = os.cpu_count() or 1
    try:
        count = int(given)
    except ValueError:
        raise ArgumentError(f"[run] -n is a number of processes, got {given!r}") from None
    count *= max(1, len(hosts))
    least, restarts = 0, asked.max_restarts
    if asked.elastic is not None:
        least, most = _range(asked.elastic)
        if asked.count is None and not hosts:
            count = most
        if not least <= count <= most:
            raise ArgumentError(f"[run] --elastic {asked.elastic} does not allow {count} processes")
        restarts = restarts or most - least
    return Plan(
        program(words),
        count,
        hosts,
        asked.log_dir,
        restarts,
        environment,
        asked.rdzv_id or "none",
        asked.master_addr,
        least,
    )


def _range(text: str) -> tuple[int, int]:
    least, _, most = text.partition(":")
    if not (least.isdigit() and most.isdigit() and 0 < int(least) <= int(most)):
        raise ArgumentError(f"[run] --elastic is MIN:MAX, numbers of processes, got {text!r}")
    return int(least), int(most)


def main(arguments: Sequence[str] | None = None) -> int:
    """Start a program as torchrun would."""
    command = argparse.ArgumentParser(prog="undertow.distributed.run", allow_abbrev=False)
    add_options(command)
    command.add_argument("-m", "--module", action="store_true", help="the program is a module")
    command.add_argument("--no-python", "--no_python", action="store_true", help=argparse.SUPPRESS)
    command.add_argument("program", nargs=argparse.REMAINDER, help="a script and its arguments")
    asked = command.parse_args(arguments)
    words = asked.program
    if not words:
        command.error("expects a script: python -m undertow.distributed.run -n 2 train.py")
    try:
        made = plan(asked, ["-m", *words] if asked.module else words, {})
        if asked.no_python:
            made.command = list(words)
        return launch(made)
    except UndertowError as error:
        print(f"undertow: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
