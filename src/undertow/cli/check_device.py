"""Test a device in about two minutes, and print a report to paste into an issue.

    undertow check-device cuda
    undertow check-device webgpu --only conv

Results and gradients of each kind of op are compared with the CPU's, and with those of a second
run; then memory and speed. The exit code is 1 if something is wrong.
"""

from __future__ import annotations

import argparse
import platform
import time
from typing import Any

import undertow

from ..backends.registry import backend_on
from ..errors import ArgumentError
from .device_checks import CASES, Outcome, check_cases, check_memory, measure_speed
from .options import device, whole

PART = 0.6  # of the time is for the ops
SHOWN = 20  # failures


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What the command understands."""
    command.add_argument("device", type=device, help="such as cuda, cuda:1, webgpu, opencl or cpu")
    command.add_argument("--only", metavar="WORD", help="only cases whose name has this word in it")
    command.add_argument(
        "--seconds",
        type=whole(1),
        default=120,
        help="about how long; ops have 0.6 of it (%(default)s)",
    )


def run(asked: argparse.Namespace) -> int:
    """Check, and tell what is found as soon as it is."""
    names = [name for name in CASES if not asked.only or asked.only in name]
    if not names:
        raise ArgumentError(
            f"[check-device] --only {asked.only!r} is in no case; these are {', '.join(CASES)}"
        )
    begin = time.monotonic()
    undertow.ones(3, device=asked.device).exp().tolist()  # an error if there is no compiler
    _tell("undertow", f"{undertow.__version__}, Python {platform.python_version()}")
    _tell("system", platform.platform())
    _tell("device", asked.device)
    runtime: Any = getattr(backend_on(asked.device), "runtime", None)
    for name, value in getattr(runtime, "described", dict)().items():
        _tell(name, value)
    outcome = check_cases(asked.device, names, asked.seconds * PART)
    right = _tell_cases(outcome) and not outcome.lost
    if not outcome.lost and not asked.only:
        for told, good in check_memory(asked.device):
            _tell("memory", told + ("" if good else "  WRONG"))
            right &= good
        _tell_speed(asked.device, runtime)
    _tell("time", f"{time.monotonic() - begin:.0f} s")
    _tell("outcome", "what was run is right" if right else "WRONG, see above")
    return 0 if right else 1


def _tell(name: str, value: Any) -> None:
    print(f"{name:10} {value}", flush=True)


def _tell_cases(outcome: Outcome) -> bool:
    """Tell what became of the cases; whether none failed."""
    failed = len(outcome.failures)
    _tell("ops", f"{outcome.right} of {outcome.right + failed} right, with gradients")
    for case, dtype, what in outcome.failures[:SHOWN]:
        _tell("WRONG", f"{case}, {dtype}: {what}")
    if failed > SHOWN:
        _tell("WRONG", f"and {failed - SHOWN} more")
    for case, why in outcome.refused.items():
        _tell("refused", f"{case}: {why}")
    if outcome.lost:
        _tell("lost", f"the device no longer answers; {outcome.left} cases were not run")
    elif outcome.left:
        _tell("left out", f"{outcome.left} cases, for which there was no time")
    return not failed


def _tell_speed(name: str, runtime: Any) -> None:
    """Tell figures, and which part they are of what the device itself says that it can do."""
    limits: dict[str, float] = getattr(runtime, "peaks", dict)()
    for speed in measure_speed(name):
        most = limits.get(speed.limit)
        part = f", {100 * speed.amount * 1e9 / most:.0f} % of {most / 1e9:.0f}" if most else ""
        _tell("speed", f"{speed.name}: {speed.amount:.4g} {speed.unit}{part}")
