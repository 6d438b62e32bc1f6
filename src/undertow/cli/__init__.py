"""The command `undertow`, also `python -m undertow`: one file for each of its subcommands."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import undertow

from ..errors import UndertowError
from . import adopt, check_device, compare, info, predict, profile, run, train

__all__ = ["main"]
INTERRUPTED = 130  # the exit code that shells expect of a command that Ctrl-C ended


def parser() -> argparse.ArgumentParser:
    """What the command line understands."""
    made = argparse.ArgumentParser(
        prog="undertow",
        description="Train and use classifiers of time series; run programs written for torch.",
    )
    made.add_argument("--version", action="version", version=f"undertow {undertow.__version__}")
    commands = made.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (train, predict, compare, info, check_device, run, profile, adopt):
        name = module.__name__.rpartition(".")[2].replace("_", "-")
        summary, _, rest = (module.__doc__ or "").partition("\n\n")
        command = commands.add_parser(
            name,
            help=summary.rstrip(".").lower(),
            description=f"{summary}\n\n{rest}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 is success, 1 an error that was explained, 2 a wrong command line."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and (given[0] == "-m" or given[0].endswith(".py")):  # python -m undertow train.py
        given.insert(0, "run")
    asked = run.read(given[1:]) if given[:1] == ["run"] else None
    asked = asked or parser().parse_args(given)
    try:
        code: int = asked.run(asked)
        return code
    except UndertowError as error:
        print(f"undertow: {error}", file=sys.stderr)
    except BrokenPipeError:  # whoever read our output has enough; nor shall Python try at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"undertow: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("undertow: interrupted", file=sys.stderr)
        return INTERRUPTED
    return 1
